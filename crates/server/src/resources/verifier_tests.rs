//! `/v1/verifiers/{ref}/tests` and `/attacks`: measurements of the judges of a version.

use std::{borrow::Cow, convert::Infallible, pin::Pin};

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{Response, sse::Event},
};
use futures::stream;
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    verifier::attack::AttackFamily,
};
use jurat_engine::{
    CaseProgress, CaseWatcher, Engine, EngineError, ExpectedCase, MeasureData, MeasureReport,
    MeasureRequest, MeasuredCase, VersionComparison,
};
use jurat_wire::{
    api::{
        events,
        verifier_tests::{
            AttackVerifierRequest, CaseBody, CaseError, CaseEvent, CaseOrder, CaseSource,
            ComparedBody, FlipBody, MeasureOrder, ReportBody, TestVerifierRequest, decode_attack,
            decode_test,
        },
        verifiers,
    },
    problem::ProblemBody,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::consensus::wants_stream;
use crate::{
    operation::{EventDescription, Operation, example},
    request::{
        decode::{MaybeJson, PathText},
        encode::{self, HandlerResult},
        event_stream,
    },
    resources::{VERIFIERS, verifiers::VERIFIER},
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![test_operation(), attack_operation()]
}

fn test_operation() -> Operation {
    let text = "Has the judges of a version decide labelled cases, and reports how often they are right, with confidence intervals. Without `cases`, the version's own examples are used, each judged without showing it to the judge as an example. Every case is a run with the purpose `test` and costs as much. An empty body means `{}`. If the credit or a limit does not cover the first case, nothing is judged; later problems are not errors, and the report says why a case was left out. If the client disconnects, the measurement stops; cases in progress finish and are paid. Platform verifiers cannot be measured. With `Accept: text/event-stream` each judged case is sent as an event `case`, and the report as the last event.";
    measures(
        Operation::post("/v1/verifiers/{ref}/tests", "verifier_test", test)
            .begins_rounds()
            .tag(VERIFIERS)
            .summary("Test a verifier")
            .text(text)
            .in_path([VERIFIER]),
        example(include_str!("verifier_tests/verifier_report.json")),
    )
    .takes::<TestVerifierRequest>([(
        "plain",
        example(include_str!("verifier_tests/verifier_test_request.json")),
    )])
}

/// Judges cases whose verdict is known.
async fn test(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    headers: HeaderMap,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let request = request(&text, decode_test(&given(body))?)?;
    measure(engine, caller, request, &headers).await
}

fn attack_operation() -> Operation {
    let text = "Tries known injections on the judges of a version, and reports how often one passes. Every attack is a run with the purpose `attack` and costs as much; it should fail. A verifier without a text field is 400. With `Accept: text/event-stream` each judged attack is sent as an event `case`, and the report as the last event.";
    measures(
        Operation::post("/v1/verifiers/{ref}/attacks", "verifier_attack", attack)
            .begins_rounds()
            .tag(VERIFIERS)
            .summary("Attack a verifier")
            .text(text)
            .in_path([VERIFIER]),
        example(include_str!("verifier_tests/verifier_attack_report.json")),
    )
    .takes::<AttackVerifierRequest>([(
        "plain",
        example(include_str!("verifier_tests/verifier_attack_request.json")),
    )])
}

/// Judges known injections.
async fn attack(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    headers: HeaderMap,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let request = request(&text, decode_attack(&given(body))?)?;
    measure(engine, caller, request, &headers).await
}

/// An absent body counts as an empty object.
fn given(body: Value) -> Value {
    if body.is_null() { json!({}) } else { body }
}

async fn measure(
    engine: Engine,
    caller: Caller,
    request: MeasureRequest,
    headers: &HeaderMap,
) -> HandlerResult {
    if !wants_stream(headers) {
        let report = engine.verifier_measure(&caller, request, None).await?;
        return Ok(encode::created(&body(&report)));
    }
    let (watcher, cases) = mpsc::unbounded_channel();
    Ok(streamed(engine, caller, request, (watcher, cases)))
}

type MeasureFuture = Pin<Box<dyn Future<Output = Result<MeasureReport, EngineError>> + Send>>;

struct MeasureStream {
    cases: UnboundedReceiver<CaseProgress>,
    measuring: MeasureFuture,
    /// The last event, which waits until all cases are sent.
    report: Option<Event>,
}

/// Sends each case as an event, then the report. A client that disconnects stops the measurement.
fn streamed(
    engine: Engine,
    caller: Caller,
    request: MeasureRequest,
    (watcher, cases): (CaseWatcher, UnboundedReceiver<CaseProgress>),
) -> Response {
    let measuring = async move { engine.verifier_measure(&caller, request, Some(watcher)).await };
    let watch = MeasureStream { cases, measuring: Box::pin(measuring), report: None };
    let events = stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        if watch.report.is_none() {
            tokio::select! {
                biased;
                Some(done) = watch.cases.recv() => {
                    return Some((Ok::<_, Infallible>(judged(&done)), Some(watch)));
                }
                report = &mut watch.measuring => watch.report = Some(last(report)),
            }
        }
        // The last cases and the report may arrive at the same time.
        match watch.cases.try_recv() {
            Ok(done) => Some((Ok(judged(&done)), Some(watch))),
            Err(_) => watch.report.take().map(|report| (Ok(report), None)),
        }
    });
    let mut response = event_stream::reply(events);
    *response.status_mut() = StatusCode::CREATED;
    response
}

fn judged(done: &CaseProgress) -> Event {
    let event = CaseEvent { index: done.index, total: done.total, case: case(&done.case) };
    named("case", &json!(event))
}

fn last(report: Result<MeasureReport, EngineError>) -> Event {
    match report {
        Ok(report) => named("report", &json!(body(&report))),
        Err(error) => named(events::ERROR, &encode::engine_problem(&error).body()),
    }
}

fn named(name: &str, body: &Value) -> Event {
    Event::default().event(name).data(body.to_string())
}

fn request(
    text: &str,
    order: MeasureOrder,
) -> Result<MeasureRequest, jurat_wire::problem::Problem> {
    let reference = verifiers::pinned(verifiers::reference(text)?, order.version)?;
    let data = match order.cases {
        CaseSource::Own => MeasureData::Own,
        CaseSource::Previous => MeasureData::Previous,
        CaseSource::Given(cases) => MeasureData::Given(cases.into_iter().map(labelled).collect()),
        CaseSource::Attacks(families) => MeasureData::Attacks(families),
    };
    Ok(MeasureRequest {
        reference,
        data,
        judges: order.judges,
        replicas: order.replicas,
        is_fresh: order.is_fresh,
        compare: order.compare,
        timeout_ms: order.timeout_ms,
    })
}

fn labelled(case: CaseOrder) -> ExpectedCase {
    ExpectedCase::new(case.id, case.inputs, case.media_url, case.passed)
}

fn body(report: &MeasureReport) -> ReportBody<'_> {
    ReportBody {
        measurement_id: Cow::Borrowed(&report.id),
        verifier_id: Cow::Borrowed(&report.verifier_id),
        name: Cow::Borrowed(&report.verifier_name),
        version: report.version,
        purpose: Cow::Borrowed(report.purpose.as_str()),
        judges: Cow::Borrowed(&report.judges),
        replicas: report.replicas,
        families: report.families.iter().map(|family| family.as_str().into()).collect(),
        shown: report.is_own,
        data_digest: Cow::Borrowed(&report.data_digest),
        figures: report.shown_figures(),
        reliability: Cow::Borrowed(&report.reliability),
        cases: report.cases.iter().map(case).collect(),
        compared: report.compared.as_ref().map(compared),
        cost_usd: ReportBody::cost(report.cost_micros),
        measured_at: ReportBody::measured_at(report.at),
    }
}

fn case(case: &MeasuredCase) -> CaseBody<'_> {
    CaseBody {
        id: Cow::Borrowed(&case.id),
        inputs: Cow::Borrowed(&case.inputs),
        media_url: case.media_url.as_deref().map(Cow::Borrowed),
        family: case.family.map(AttackFamily::as_str).map(Cow::Borrowed),
        expected: case.expected,
        got: case.got,
        reasoning: case.reasoning.as_deref().map(Cow::Borrowed),
        error: case.error.as_ref().map(CaseError::of),
        verifier_run_id: case.run_id.as_deref().map(Cow::Borrowed),
        cost_usd: ReportBody::cost(case.cost_micros),
    }
}

fn compared(compared: &VersionComparison) -> ComparedBody<'_> {
    let flips = compared.flips.iter().map(|flip| FlipBody {
        id: Cow::Borrowed(&flip.id),
        expected: flip.expected,
        before: flip.before,
        after: flip.after,
    });
    ComparedBody {
        with_version: compared.with_version,
        flips: flips.collect(),
        is_worse: compared.is_worse,
        p_value: compared.p_value,
    }
}

fn measures(operation: Operation, example: Value) -> Operation {
    operation
        .scope(Scope::VerifiersRun)
        .answers::<ReportBody<'_>>(201, "The result.", example)
        .or_streams(
            &[
                ("case", EventDescription::of::<CaseEvent<'_>>()),
                ("report", EventDescription::of::<ReportBody<'_>>()),
                (events::ERROR, EventDescription::of::<ProblemBody<'_>>()),
            ],
            "event: case\ndata: …\n\nevent: report\ndata: …\n\n",
        )
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::NotFound,
            ProblemCode::BudgetExhausted,
            ProblemCode::AccountSuspended,
            ProblemCode::SessionPoolTooSmall,
            ProblemCode::SessionsUnavailable,
            ProblemCode::ShuttingDown,
        ])
}
