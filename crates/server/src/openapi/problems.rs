//! The errors of an operation: one reply for each status, with an example for each code.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use jurat_core::code::ProblemCode;
use jurat_wire::{
    api::{
        a2a::{self, error::HttpErrorBody, rpc::A2aRpcResponse},
        openai::error::ChatErrorReply,
    },
    problem::{Problem, ProblemBody},
};
use serde_json::{Value, json};
use utoipa::{
    PartialSchema as _, ToSchema as _,
    openapi::{
        Content, ContentBuilder, Header, HeaderBuilder, Ref, RefOr, Response, ResponseBuilder,
        example::{Example, ExampleBuilder},
        schema::{ObjectBuilder, Schema, SchemaFormat, Type},
    },
};

use crate::operation::{ErrorForm, example as example_of, header};

/// The name of the schema of problems in the form of prompt-oriented clients.
const PEER_PROBLEM: &str = "PeerProblem";

/// The schema of a problem whose `error` is the text instead of the code.
pub(super) fn peer_schema() -> (String, RefOr<Schema>) {
    let mut schema = ProblemBody::schema();
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        let text =
            ObjectBuilder::new().schema_type(Type::String).description(Some("The error in words."));
        object.properties.insert("error".to_owned(), text.build().into());
        object.description = Some("An error, in the form of prompt-oriented clients.".to_owned());
    }
    (PEER_PROBLEM.to_owned(), schema)
}

/// The responses of these codes; `cases` says when some of them occur.
pub(super) fn responses(
    codes: &[ProblemCode],
    cases: &[(ProblemCode, &str)],
    form: ErrorForm,
) -> Vec<(u16, Response)> {
    let mut by_status: BTreeMap<u16, BTreeSet<ProblemCode>> = BTreeMap::new();
    for code in codes {
        let status = match form {
            ErrorForm::A2aHttp => a2a::error::http_status(*code),
            ErrorForm::Problem | ErrorForm::Peer | ErrorForm::OpenAi | ErrorForm::A2aRpc => {
                code.http_status()
            }
        };
        by_status.entry(status).or_default().insert(*code);
    }
    by_status
        .into_iter()
        .map(|(status, codes)| (status, response(status, &codes, cases, form)))
        .collect()
}

/// A list if a code has a case, else only the codes.
fn description(codes: &BTreeSet<ProblemCode>, cases: &[(ProblemCode, &str)]) -> String {
    let case = |code: ProblemCode| cases.iter().find(|(of, _)| *of == code).map(|(_, when)| *when);
    if codes.iter().all(|code| case(*code).is_none()) {
        let names: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
        return names.join(", ");
    }
    let line = |code: &ProblemCode| match case(*code) {
        Some(when) => format!("- `{code}`: {when}"),
        None => format!("- `{code}`"),
    };
    codes.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The content of an error, by its media types.
fn contents(codes: &BTreeSet<ProblemCode>, form: ErrorForm) -> Vec<(&'static str, Content)> {
    let of = |name: Cow<'_, str>| ContentBuilder::new().schema(Some(Ref::from_schema_name(name)));
    let examples = codes.iter().map(|code| {
        (code.as_str(), RefOr::Ref::<Example>(Ref::new(format!("#/components/examples/{code}"))))
    });
    let problem = |name| of(name).examples_from_iter(examples).build();
    match form {
        ErrorForm::Problem => vec![("application/problem+json", problem(ProblemBody::name()))],
        ErrorForm::Peer => vec![("application/problem+json", problem(PEER_PROBLEM.into()))],
        // The same problems are in `error.jurat` of this form.
        ErrorForm::OpenAi => vec![("application/json", of(ChatErrorReply::name()).build())],
        ErrorForm::A2aRpc => vec![("application/json", of(A2aRpcResponse::name()).build())],
        ErrorForm::A2aHttp => {
            let content = of(HttpErrorBody::name()).build();
            vec![(a2a::MEDIA_TYPE, content.clone()), ("application/json", content)]
        }
    }
}

fn response(
    status: u16,
    codes: &BTreeSet<ProblemCode>,
    cases: &[(ProblemCode, &str)],
    form: ErrorForm,
) -> Response {
    let mut response = ResponseBuilder::new()
        .description(description(codes, cases))
        .header("X-Request-Id", header("The request id, for reports."));
    for (kind, content) in contents(codes, form) {
        response = response.content(kind, content);
    }
    if status == 401 {
        response = response
            .header("WWW-Authenticate", header("`Bearer`; of `/mcp`, with `resource_metadata`."));
    }
    if status == 429 || status == 503 {
        response = response.header("Retry-After", seconds("Seconds to wait before trying again."));
    }
    if status == 429 {
        response = response
            .header("RateLimit", header("Remaining quota of the key."))
            .header("RateLimit-Policy", header("Rate limit of the key."));
    }
    response.build()
}

/// An example of every code, to which the operations refer.
pub(super) fn examples() -> impl Iterator<Item = (&'static str, Example)> {
    // The router answers this one, before any operation is reached.
    let codes = ProblemCode::ALL.iter().filter(|code| **code != ProblemCode::MethodNotAllowed);
    codes.map(|code| {
        (code.as_str(), ExampleBuilder::new().value(Some(example(*code).body())).build())
    })
}

/// A problem as a caller may see it.
#[expect(clippy::too_many_lines, reason = "it is a table with one line for each code")]
fn example(code: ProblemCode) -> Problem {
    let problem = |detail: &str| Problem::new(code, detail);
    match code {
        ProblemCode::AuthRequired => problem("the request has no key"),
        ProblemCode::Forbidden => problem("the key lacks the scope `admin`"),
        ProblemCode::HostRefused => {
            problem("the header `Host` names a host that this server does not serve").at("Host")
        }
        ProblemCode::InvalidJson => problem("`claim` appears twice").at("claim"),
        ProblemCode::ValidationError => problem("`name` is required").at("name"),
        ProblemCode::RequestInvalid => {
            problem("`consensus.replicas` must be 1, 3 or 5").at("consensus.replicas")
        }
        ProblemCode::NotSupported => {
            problem("`consensus.replicas` `adaptive` is not supported; use 1, 3 or 5")
                .at("consensus.replicas")
        }
        ProblemCode::SchemaRefused => {
            problem("the output schema is refused: it refers to `https://example.com/schema.json`, which is outside the schema")
                .at("output_schema")
                .with("reason", json!("remote_ref"))
        }
        ProblemCode::PolicyInvalid => problem("the policy is refused: there is no policy `vp.none.v1`").at("policy"),
        ProblemCode::NotFound => problem("there is no executor `alpha`"),
        ProblemCode::UserNotFound => problem("there is no user or team with this name"),
        ProblemCode::WorkflowOwnershipMustTransfer => problem("the owner of a workflow cannot leave it"),
        ProblemCode::MethodNotAllowed => problem("this path does not support that method"),
        ProblemCode::Conflict => problem("there is already an executor `alpha`"),
        ProblemCode::IdempotencyMismatch => problem("the idempotency key was used for another request"),
        ProblemCode::BudgetExhausted => {
            problem("the account's credit is too low: this costs at least 0.12 USD, and 0.05 USD is available")
        }
        ProblemCode::AnonymousDailyCap => {
            problem("the daily credit for callers without a key is spent or reserved")
                .with("resets_at", json!("2026-11-16T00:00:00Z"))
        }
        ProblemCode::PaymentRequired => payment_required(),
        ProblemCode::PaymentUnavailable => {
            problem("the facilitator did not answer whether the payment is valid; nothing was paid")
        }
        ProblemCode::SafetyVerificationFailed => {
            problem("the template is not published: A hidden step sends keys to another host.")
                .with("reasoning", json!("A hidden step sends keys to another host."))
                .with("verifier_run_id", json!("0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70"))
        }
        ProblemCode::SafetyVerificationUnavailable => {
            problem("the safety of the template could not be judged: the judge did not answer before the deadline")
        }
        ProblemCode::AccountSuspended => problem("the account is suspended"),
        ProblemCode::InvalidCredentials => problem("the code is wrong or expired"),
        ProblemCode::HandleInvalid => problem("`handle` must have 3 to 40 lowercase letters, digits or hyphens, with no hyphen at either end").at("handle"),
        ProblemCode::HandleTaken => problem("the handle `ann` is taken"),
        ProblemCode::HandleReserved => problem("the handle `admin` is reserved"),
        ProblemCode::HandleAlreadyClaimed => problem("the account already has the handle `ann`"),
        ProblemCode::HandleNotClaimed => problem("the account has no handle"),
        ProblemCode::HandleRenameTooSoon => problem("the handle was changed recently; it can be changed again in 16 days"),
        ProblemCode::HandleRenameLimitExceeded => problem("the handle was changed 3 times this year"),
        ProblemCode::InvitationExpired => problem("the invitation has expired"),
        ProblemCode::InvitationAlreadyResolved => problem("the invitation was already accepted"),
        ProblemCode::InvitationAlreadyPending => problem("such an invitation is already pending"),
        ProblemCode::QuotaExceeded => problem("an account can send at most 100 invitations a day"),
        ProblemCode::SessionUnknown => {
            problem("there is no session `204`").at("consensus.session_pool")
        }
        ProblemCode::SessionPoolTooSmall => {
            problem("the pool has 2 sessions and 3 replicas were asked for").at("consensus.session_pool")
        }
        ProblemCode::SessionsUnavailable => {
            problem("3 replicas were asked for and 2 sessions can answer now").with("sessions", json!([{ "session_id": "gamma", "problem": "its executor is down" }]))
        }
        ProblemCode::ExecutorUnavailable => {
            problem("the executor at `http://127.0.0.1:8787` does not answer: no connection").at("url")
        }
        ProblemCode::PeerUnavailable => {
            problem("the node 3b6a27bc could not be joined: no connection").at("ticket")
        }
        ProblemCode::ConsensusDisagreement => disagreement(),
        ProblemCode::RequestTimeout => problem("the body arrived too slowly"),
        ProblemCode::PayloadTooLarge => problem("the body is larger than 1048576 bytes"),
        ProblemCode::UnsupportedMediaType => problem("the body must be JSON"),
        ProblemCode::RateLimited => problem("the key may send 60 requests per minute"),
        ProblemCode::Overloaded => problem("too many rounds are in progress"),
        ProblemCode::ShuttingDown => problem("the server is shutting down"),
        ProblemCode::StoreUnavailable => problem("the store is unavailable"),
        ProblemCode::Internal => problem("something went wrong inside the server"),
    }
}

/// A demand for a payment.
fn payment_required() -> Problem {
    Problem::new(ProblemCode::PaymentRequired, "the request is paid for; it has no payment")
        .with("x402Version", json!(1))
        .with("accepts", example_of(include_str!("problems/accepts.json")))
}

/// A disagreement, which carries the members of a reply.
fn disagreement() -> Problem {
    let reply = example_of(include_str!("problems/disagreement.json"));
    let mut problem = Problem::new(
        ProblemCode::ConsensusDisagreement,
        "the replicas do not agree: outcome `split`, agreement 0.3333",
    );
    for name in ["consensus", "replicas", "round_id", "receipt_id"] {
        problem = problem.with(name, reply.get(name).cloned().unwrap_or(Value::Null));
    }
    problem
}

/// A header that holds a whole number of seconds.
fn seconds(text: &str) -> Header {
    let schema = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(None::<SchemaFormat>)
        .minimum(Some(0));
    HeaderBuilder::new().schema(Some(schema)).description(Some(text)).build()
}
