//! `/api/*/x402`: the same operations, paid for one by one by callers without a key.

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::Response,
};
use jurat_core::{
    canonical,
    code::ProblemCode,
    id::PaymentId,
    idempotency::SavedAnswer,
    payment::record::PaymentProtocol,
    round::{Round, job::Job},
};
use jurat_engine::{
    Delivery, Engine, PaymentRefused, PurchaseOrder, PurchaseOutcome, RequestMemory,
};
use jurat_wire::{
    api::{
        consensus_reply::{DelegateReply, VerdictReply},
        consensus_request::{
            self, DelegateRequest, DelegateRequestV2, FactcheckRequest, ValidateRequest,
            ValidateRequestV2,
        },
        payments::{PaidReply, PaymentPendingBody},
        v2::{self, DelegateReplyV2, VerdictReplyV2},
    },
    problem::Problem,
    x402::{
        facilitator::receipt,
        header_text,
        payment::PaymentMessage,
        required::{self, PaidResource},
    },
};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::consensus::{ReplyVersion, reply};
use crate::{
    operation::{
        Operation, example,
        parameters::{self, PathParameter},
    },
    request::{
        decode::{Json, PathText},
        encode::{self, HandlerResult},
        idempotency,
    },
    resources::PAYMENTS,
    router,
};

const X_PAYMENT: &str = "x-payment";
const PAYMENT_SIGNATURE: &str = "payment-signature";
const PAYMENT_REQUIRED: &str = "payment-required";
const PAYMENT_ID: &str = "x-jurat-payment";
/// How many seconds a payer waits before it asks again.
const RETRY_AFTER_S: u64 = 5;

const PAYMENT: PathParameter =
    PathParameter::new("payment_id", "The id of a payment.", "pay_01M7FK9E95X98Q9WNDGQCN8XAR");

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        delegate_v2_operation(),
        validate_v2_operation(),
        delegate_operation(),
        validate_operation(),
        factcheck_operation(),
        show_operation(),
    ]
}

/// A request that may carry a payment.
pub(super) struct PaidRequest {
    method: String,
    path: String,
    url: String,
    /// The payment, and the version of the protocol that the sender speaks.
    payment: Option<PaymentMessage>,
    memory: Option<Arc<RequestMemory>>,
}

impl FromRequestParts<Engine> for PaidRequest {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, engine: &Engine) -> Result<Self, Response> {
        if !engine.sells() {
            return Err(router::unknown_route(parts.uri.clone()).await);
        }
        let payment = payment(&parts.headers).map_err(|problem| encode::problem(&problem))?;
        let path = parts.uri.path().to_owned();
        Ok(Self {
            method: parts.method.to_string(),
            url: url(engine, &parts.headers, &path),
            path,
            payment,
            memory: parts.extensions.get::<Arc<RequestMemory>>().cloned(),
        })
    }
}

/// The public address of a path.
fn url(engine: &Engine, headers: &HeaderMap, path: &str) -> String {
    if let Some(base) = engine.public_url() {
        return format!("{}{path}", base.trim_end_matches('/'));
    }
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    format!("http://{}{path}", host.unwrap_or("localhost"))
}

/// The payment in the header of either version of the protocol.
fn payment(headers: &HeaderMap) -> Result<Option<PaymentMessage>, Problem> {
    let wrong = |name: &str, member: Option<&str>, problem: &str| {
        let place = member.map(|member| format!("`{member}` in ")).unwrap_or_default();
        let detail = format!("{place}the header `{}` {problem}", name.to_ascii_uppercase());
        Problem::new(ProblemCode::ValidationError, detail).at(name.to_ascii_uppercase())
    };
    let mut found = None;
    for (name, protocol) in
        [(X_PAYMENT, PaymentProtocol::V1), (PAYMENT_SIGNATURE, PaymentProtocol::V2)]
    {
        for value in headers.get_all(name) {
            if found.is_some() {
                return Err(wrong(name, None, "is the second payment of the request"));
            }
            let text = value.to_str().map_err(|_| wrong(name, None, "is not base64"))?;
            let read = PaymentMessage::read(protocol, text);
            found = Some(read.map_err(|error| wrong(name, error.member, error.problem))?);
        }
    }
    Ok(found)
}

fn delegate_operation() -> Operation {
    let operation = Operation::post("/api/v3/x402/delegate", "delegate_paid", delegate)
        .aliased("/api/v3", "/api/v4", "_v4")
        .summary("Delegate a job and pay for it")
        .text("Like `/api/v3/delegate`, for a caller who pays for this request instead of having a key.")
        .takes::<DelegateRequest>([(
            "plain",
            example(include_str!("consensus/delegate_request.json")),
        )]);
    paid::<DelegateReply<'_>>(operation, include_str!("consensus/delegate.json"))
}

async fn delegate(
    State(engine): State<Engine>,
    asked: PaidRequest,
    Json(body): Json,
) -> HandlerResult {
    let job = consensus_request::delegate(&body)?;
    asked.buy(&engine, job, &body, ReplyVersion::V3).await
}

fn validate_operation() -> Operation {
    let operation = Operation::post("/api/v3/x402/validate", "validate_paid", validate)
        .aliased("/api/v3", "/api/v4", "_v4")
        .summary("Validate a candidate and pay for it")
        .text("Like `/api/v3/validate`, for a caller who pays for this request instead of having a key.")
        .takes::<ValidateRequest>([(
            "plain",
            example(include_str!("consensus/validate_request.json")),
        )]);
    paid::<VerdictReply<'_>>(operation, include_str!("consensus/validate.json"))
}

async fn validate(
    State(engine): State<Engine>,
    asked: PaidRequest,
    Json(body): Json,
) -> HandlerResult {
    let job = consensus_request::validate(&body)?;
    asked.buy(&engine, job, &body, ReplyVersion::V3).await
}

fn factcheck_operation() -> Operation {
    let operation = Operation::post("/api/v3/x402/factcheck", "factcheck_paid", factcheck)
        .aliased("/api/v3", "/api/v4", "_v4")
        .summary("Fact-check a claim and pay for it")
        .text("Like `/api/v3/factcheck`, for a caller who pays for this request instead of having a key.")
        .takes::<FactcheckRequest>([(
            "plain",
            example(include_str!("consensus/factcheck_request.json")),
        )]);
    paid::<VerdictReply<'_>>(operation, include_str!("consensus/factcheck.json"))
}

async fn factcheck(
    State(engine): State<Engine>,
    asked: PaidRequest,
    Json(body): Json,
) -> HandlerResult {
    let job = consensus_request::factcheck(&body)?;
    asked.buy(&engine, job, &body, ReplyVersion::V3).await
}

fn delegate_v2_operation() -> Operation {
    let operation = Operation::post("/api/v2/x402/delegate", "delegate_paid_v2", delegate_v2)
        .summary("Delegate a job to one session and pay for it")
        .text("Like `/api/v2/delegate`, for a caller who pays for this request instead of having a key.")
        .takes::<DelegateRequestV2>([(
            "plain",
            example(include_str!("consensus/delegate_v2_request.json")),
        )]);
    paid::<DelegateReplyV2<'_>>(operation, include_str!("consensus/delegate_v2.json"))
}

async fn delegate_v2(
    State(engine): State<Engine>,
    asked: PaidRequest,
    Json(body): Json,
) -> HandlerResult {
    let (known, warnings) = v2::up::<DelegateRequestV2>(body.clone());
    let job = consensus_request::delegate(&known)?;
    asked.buy(&engine, job, &body, ReplyVersion::V2(warnings)).await
}

fn validate_v2_operation() -> Operation {
    let operation = Operation::post("/api/v2/x402/validate", "validate_paid_v2", validate_v2)
        .summary("Validate a candidate with one session and pay for it")
        .text("Like `/api/v2/validate`, for a caller who pays for this request instead of having a key.")
        .takes::<ValidateRequestV2>([(
            "plain",
            example(include_str!("consensus/validate_v2_request.json")),
        )]);
    paid::<VerdictReplyV2<'_>>(operation, include_str!("consensus/validate_v2.json"))
}

async fn validate_v2(
    State(engine): State<Engine>,
    asked: PaidRequest,
    Json(body): Json,
) -> HandlerResult {
    let (known, warnings) = v2::up::<ValidateRequestV2>(body.clone());
    let job = consensus_request::validate(&known)?;
    asked.buy(&engine, job, &body, ReplyVersion::V2(warnings)).await
}

fn show_operation() -> Operation {
    let text = "Returns the reply of a settled payment for seven days, 202 while the settlement is not known, and 409 if the request was interrupted before that; send it again then, with the same payment. The id of a payment is secret: the reply to the paid request has it in `X-Jurat-Payment`.";
    Operation::get("/api/v3/x402/payments/{payment_id}", "payment_show", show)
        .aliased("/api/v3", "/api/v4", "_v4")
        .for_payers()
        .tag(PAYMENTS)
        .summary("Fetch the reply of a payment")
        .text(text)
        .in_path([PAYMENT])
        .answers::<PaidReply<'_>>(
            200,
            "The reply to the paid request.",
            example(include_str!("consensus/validate.json")),
        )
        .answers::<PaymentPendingBody<'_>>(
            202,
            "Whether the payment was settled is not known yet.",
            example(include_str!("x402/pending.json")),
        )
        .and_header("Retry-After", "Seconds to wait before the next request.")
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict, ProblemCode::ConsensusDisagreement])
}

async fn show(
    State(engine): State<Engine>,
    headers: HeaderMap,
    PathText(id): PathText,
) -> HandlerResult {
    let given = payment(&headers)?;
    let not_found = || Problem::new(ProblemCode::NotFound, format!("there is no payment `{id}`"));
    let parsed = PaymentId::parse(&id).map_err(|_| not_found())?;
    let outcome = engine.payment_show(&parsed).await?;
    Ok(respond(outcome, given.map(|payment| payment.protocol)))
}

impl PaidRequest {
    async fn buy(
        self,
        engine: &Engine,
        job: Job,
        body: &Value,
        version: ReplyVersion,
    ) -> HandlerResult {
        let mut request = format!("{} {}\n", self.method, self.path).into_bytes();
        request.extend(canonical::canonical(body));
        let protocol = self.payment.as_ref().map(|payment| payment.protocol);
        let order = PurchaseOrder {
            resource: PaidResource { url: self.url, description: description(&job) },
            job,
            request_digest: canonical::digest(&request),
            payment: self.payment,
            encoder: Arc::new(move |round| encoded(round, &version)),
            memory: self.memory,
        };
        Ok(respond(engine.purchase(order).await?, protocol))
    }
}

fn description(job: &Job) -> &'static str {
    use jurat_core::round::job::JobKind;
    match job.work.kind() {
        JobKind::Delegate => "A job done by independent executors, with their agreement",
        JobKind::Validate => "A verdict of independent executors on a candidate",
        JobKind::Factcheck => "A verdict of independent executors on a claim",
    }
}

/// The reply to a paid request, as it is stored.
fn encoded(round: Round, version: &ReplyVersion) -> SavedAnswer {
    match reply(Ok(round), version) {
        Ok(text) => SavedAnswer { tag: StatusCode::OK.as_u16(), text },
        Err(problem) => {
            SavedAnswer { tag: problem.code.http_status(), text: problem.body().to_string() }
        }
    }
}

fn respond(outcome: PurchaseOutcome, protocol: Option<PaymentProtocol>) -> Response {
    match outcome {
        PurchaseOutcome::Required(refused) => required(&refused, protocol),
        PurchaseOutcome::Pending(id) => pending(&id),
        PurchaseOutcome::Delivered(delivery) => delivered(*delivery, protocol),
    }
}

/// The demand, in the body for version 1 of the protocol and in a header for version 2.
fn required(refused: &PaymentRefused, protocol: Option<PaymentProtocol>) -> Response {
    let PaymentRefused { demand, resource, identifier, problem, failed } = refused;
    let accepts = json!([required::v1(demand, resource)]);
    let body = Problem::new(ProblemCode::PaymentRequired, problem.clone())
        .with("x402Version", json!(1))
        .with("accepts", accepts);
    let mut response = encode::problem(&body);
    let document = required::v2_document(demand, resource, *identifier, problem);
    put(response.headers_mut(), PAYMENT_REQUIRED, &header_text(&document));
    put(response.headers_mut(), "cache-control", "no-store");
    if let Some(payment) = failed {
        let reason = payment.reason.as_deref().unwrap_or("unsettled");
        let protocol = protocol.unwrap_or(payment.protocol);
        let network = Delivery::network(payment, protocol);
        let outcome = receipt(network, &payment.key.payer, Err(reason));
        put(response.headers_mut(), receipt_header(protocol), &header_text(&outcome));
    }
    response
}

/// The settlement is not known: neither a reply nor a new demand.
fn pending(id: &PaymentId) -> Response {
    let location = format!("/api/v3/x402/payments/{id}");
    let body = PaymentPendingBody {
        payment_id: id.as_str().into(),
        state: "settlement_pending".into(),
        retry_after_s: RETRY_AFTER_S,
        url: location.as_str().into(),
    };
    let mut response = encode::accepted(&body, &location);
    put(response.headers_mut(), "retry-after", &RETRY_AFTER_S.to_string());
    put(response.headers_mut(), PAYMENT_ID, id.as_str());
    response
}

fn delivered(delivery: Delivery, protocol: Option<PaymentProtocol>) -> Response {
    let Delivery { answer: SavedAnswer { tag: status, text }, payment, is_repeated } = delivery;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let mut response = encode::text(status, text);
    if status.is_client_error() {
        put(response.headers_mut(), "content-type", "application/problem+json");
    }
    if let Some(payment) = &payment {
        let transaction = payment.transaction.as_deref().unwrap_or_default();
        let protocol = protocol.unwrap_or(payment.protocol);
        let network = Delivery::network(payment, protocol);
        let outcome = receipt(network, &payment.key.payer, Ok(transaction));
        put(response.headers_mut(), receipt_header(protocol), &header_text(&outcome));
        put(response.headers_mut(), PAYMENT_ID, payment.id.as_str());
    }
    if is_repeated { idempotency::mark_replayed(response) } else { response }
}

/// The header of the receipt, in the words of the version that the sender speaks.
fn receipt_header(protocol: PaymentProtocol) -> &'static str {
    match protocol {
        PaymentProtocol::V1 => "x-payment-response",
        PaymentProtocol::V2 => "payment-response",
    }
}

fn put(headers: &mut HeaderMap, name: &'static str, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// The common part of all paid operations.
fn paid<R: ToSchema>(operation: Operation, reply: &str) -> Operation {
    operation
        .begins_rounds()
        .for_payers()
        .tag(PAYMENTS)
        .answers::<R>(200, "The reply; its payment was settled, or nothing was charged.", example(reply))
        .and_header("PAYMENT-RESPONSE", "Receipt of a payment in version 2 of the protocol, as base64 of JSON; absent if nothing was charged.")
        .and_header("X-PAYMENT-RESPONSE", "The same in version 1.")
        .and_header("X-Jurat-Payment", "Id of the payment, which is secret.")
        .and_header("Idempotent-Replayed", "`true` if this is the stored reply to a repeated request.")
        .answers::<PaymentPendingBody<'_>>(
            202,
            "Whether the payment was settled is not known yet. Send the request again with the same payment.",
            example(include_str!("x402/pending.json")),
        )
        .and_header("Location", "URL of the payment.")
        .and_header("Retry-After", "Seconds to wait before the next request.")
        .with([
            parameters::payment(
                "PAYMENT-SIGNATURE",
                "Payment in version 2 of the protocol, as base64 of JSON.",
            ),
            parameters::payment("X-PAYMENT", "Payment in version 1 of the protocol."),
        ])
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::RequestInvalid,
            ProblemCode::NotSupported,
            ProblemCode::PolicyInvalid,
            ProblemCode::SchemaRefused,
            ProblemCode::SessionUnknown,
            ProblemCode::SessionPoolTooSmall,
            ProblemCode::SessionsUnavailable,
            ProblemCode::PaymentRequired,
            ProblemCode::PaymentUnavailable,
            ProblemCode::IdempotencyMismatch,
            ProblemCode::AccountSuspended,
            ProblemCode::ShuttingDown,
            ProblemCode::ConsensusDisagreement,
            ProblemCode::Conflict,
            ProblemCode::NotFound,
        ])
}
