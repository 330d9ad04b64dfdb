//! Traces and evaluation events, as a collector receives them.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use hex::encode;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use jurat_guard::client::{ClientLimits, HttpReply, OutboundClient};
use jurat_testkit::{
    fake_collector::{FakeCollector, attribute},
    fake_executor::{FakeExecutor, says_invalid, says_valid, status},
};
use opentelemetry_proto::tonic::{common::v1::KeyValue, logs::v1::LogRecord, trace::v1::Span};
use serde_json::{Value, json};

use crate::home::{Home, Process};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa00b902b7";
/// Longer than any test needs on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(25);

fn serve(home: &Home, endpoint: &str, more: &[(&str, &str)]) -> Process {
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("JURAT_TELEMETRY_OTLP_ENDPOINT", endpoint).env("OTEL_BSP_SCHEDULE_DELAY", "100");
    command.envs(more.iter().copied());
    Process::new(command).listening()
}

async fn post(home: &Home, url: &str, body: &Value, headers: &[(&'static str, &str)]) -> HttpReply {
    let key = std::fs::read_to_string(home.state().join("admin.key")).unwrap();
    let mut map = HeaderMap::new();
    let bearer = HeaderValue::from_str(&format!("Bearer {}", key.trim())).unwrap();
    map.insert("authorization", bearer);
    map.insert("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        map.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    let mut request = Request::post(url).body(Bytes::from(body.to_string())).unwrap();
    *request.headers_mut() = map;
    OutboundClient::new(ClientLimits::default()).unwrap().send(request, PATIENCE).await.unwrap()
}

async fn register(home: &Home, server: &Process, name: &str, fake: &FakeExecutor) {
    let body = json!({ "name": name, "url": fake.url() });
    let reply = post(home, &format!("{}/v1/executors", server.url), &body, &[]).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
}

async fn ended(server: Process) -> i32 {
    server.terminate();
    let waiting = tokio::task::spawn_blocking(move || server.wait().code().unwrap());
    tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_is_one_tree_below_the_callers_span_and_its_verdicts_are_events() {
    let (home, collector) = (Home::new(), FakeCollector::start().await);
    let headers = [("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=one")];
    let server = serve(&home, &collector.url(), &headers);
    let mut fakes = Vec::new();
    for (index, behaviour) in [says_valid(), says_invalid(), status(500)].into_iter().enumerate() {
        let (family, model) = (format!("family-{index}"), format!("model-{index}"));
        let behaviour = behaviour.provider_family(&family).model_id(&model);
        let fake = FakeExecutor::start(behaviour).await;
        register(&home, &server, &format!("e{index}"), &fake).await;
        fakes.push(fake);
    }
    let body = json!({
        "claim": { "output": 7, "output_schema": { "type": "integer" } },
        "policy": { "policy_id": "vp.schema_only.v1" },
        "consensus": { "session_pool": ["e0", "e1", "e2"], "replicas": 3 },
    });
    let caller = format!("00-{TRACE}-{PARENT}-01");
    let headers = [("traceparent", caller.as_str()), ("tracestate", "shop=1")];
    let url = format!("{}/api/v3/validate", server.url);
    let reply = post(&home, &url, &body, &headers).await;
    let reply: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(ended(server).await, 0);

    let mut spans = collector.spans(|spans| spans.iter().any(|it| it.name == "round")).await;
    spans.retain(|it| encode(&it.trace_id) == TRACE);
    let round = check_tree(&spans, &reply);
    check_replicas(&spans, &round, &fakes);
    check_events(&collector.records(4).await, &round, &reply);
    assert_eq!(collector.last_header("x-tenant").as_deref(), Some("one"));
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|it| it.name == name).collect()
}

/// The span of the request is below its caller's, and every other one is below that.
fn check_tree(spans: &[Span], reply: &Value) -> Span {
    let [request] = named(spans, "POST /api/v3/validate")[..] else { panic!("{spans:?}") };
    assert_eq!(encode(&request.parent_span_id), PARENT);
    assert_eq!(request.kind, 2, "a server span");
    let of = |key| attribute(&request.attributes, key);
    assert_eq!(of("http.response.status_code").as_deref(), Some("200"));
    assert_eq!(of("http.route").as_deref(), Some("/api/v3/validate"));
    let [round] = named(spans, "round")[..] else { panic!("{spans:?}") };
    assert_eq!(round.parent_span_id, request.span_id);
    let round_id = attribute(&round.attributes, "jurat.round.id");
    assert_eq!(round_id.as_deref(), reply["round_id"].as_str());
    assert_eq!(named(spans, "check").len(), 1);
    assert_eq!(named(spans, "store_write").len(), 2);
    let known: BTreeSet<&[u8]> = spans.iter().map(|it| it.span_id.as_slice()).collect();
    for span in spans {
        let is_below = known.contains(span.parent_span_id.as_slice());
        assert!(is_below || span.span_id == request.span_id, "{span:?}");
    }
    round.clone()
}

/// Each executor received the span of its own replica.
fn check_replicas(spans: &[Span], round: &Span, fakes: &[FakeExecutor]) {
    let mut seen = BTreeSet::new();
    for replica in named(spans, "POST /verify") {
        assert_eq!(replica.parent_span_id, round.span_id);
        assert_eq!(replica.kind, 3, "a client span");
        let name = attribute(&replica.attributes, "jurat.executor.name").unwrap();
        let calls = fakes[name[1..].parse::<usize>().unwrap()].calls();
        let call = calls.iter().find(|call| call.endpoint() == "verify").unwrap();
        let expected = format!("00-{TRACE}-{}-01", encode(&replica.span_id));
        assert_eq!(call.header("traceparent"), Some(expected.as_str()));
        assert_eq!(call.header("tracestate"), Some("shop=1"));
        seen.insert((name, attribute(&replica.attributes, "error.type")));
    }
    let failed = ("e2".to_owned(), Some("http_status".to_owned()));
    assert!(seen.len() == 3 && seen.contains(&failed), "{seen:?}");
}

/// Every verdict names its judge and its rules.
fn check_events(records: &[LogRecord], round: &Span, reply: &Value) {
    for record in records {
        assert_eq!(record.event_name, "gen_ai.evaluation.result");
        assert_eq!((encode(&record.trace_id).as_str(), &record.span_id), (TRACE, &round.span_id));
        let of = |key| attribute(&record.attributes, key);
        assert_eq!(of("gen_ai.response.id").as_deref(), reply["round_id"].as_str());
        assert_eq!(of("jurat.receipt.id").as_deref(), reply["receipt_id"].as_str());
        assert_eq!(of("jurat.policy.id").as_deref(), Some("vp.schema_only.v1"));
        assert!(of("jurat.policy.hash").unwrap().starts_with("sha256:"));
    }
    let told: Vec<String> = records.iter().map(|it| summary(&it.attributes)).collect();
    assert_eq!(
        told,
        [
            "vp.schema_only.v1: VALID by e0/e0 family-0 model-0 ",
            "vp.schema_only.v1: INVALID by e1/e1 family-1 model-1 ",
            "vp.schema_only.v1:  by e2/e2 family-2 model-2 http_status",
            "consensus:  by /   split",
        ]
    );
}

/// An event in one line.
fn summary(attributes: &[KeyValue]) -> String {
    let of = |key| attribute(attributes, key).unwrap_or_default();
    format!(
        "{}: {} by {}/{} {} {} {}",
        of("gen_ai.evaluation.name"),
        of("gen_ai.evaluation.score.label"),
        of("jurat.executor.name"),
        of("jurat.session.id"),
        of("gen_ai.provider.name"),
        of("gen_ai.request.model"),
        of("error.type"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_with_a_trace_decides_and_the_ratio_decides_otherwise() {
    let (home, collector) = (Home::new(), FakeCollector::start().await);
    let server = serve(&home, &collector.url(), &[("JURAT_TELEMETRY_SAMPLE_RATIO", "0")]);
    let fake = FakeExecutor::start(says_valid()).await;
    register(&home, &server, "e0", &fake).await;
    let url = format!("{}/api/v3/validate", server.url);
    let body = json!({ "claim": "x" });
    let other = format!("00-{}-{PARENT}-00", TRACE.replace('4', "5"));
    let caller = format!("00-{TRACE}-{PARENT}-01");
    for headers in [&[][..], &[("traceparent", other.as_str())], &[("traceparent", "00-junk")]] {
        assert_eq!(post(&home, &url, &body, headers).await.status, StatusCode::OK);
    }
    post(&home, &url, &body, &[("traceparent", caller.as_str())]).await;
    assert_eq!(ended(server).await, 0);
    let spans = collector.spans(|spans| !spans.is_empty()).await;
    assert!(spans.iter().all(|span| encode(&span.trace_id) == TRACE), "{spans:?}");
    // Executors learn that the trace is not kept.
    let calls = fake.calls();
    let given: Vec<_> = calls.iter().filter_map(|call| call.header("traceparent")).collect();
    assert_eq!(given.len(), 4);
    assert!(given[1].starts_with(&other[..36]) && given[1].ends_with("-00"), "{given:?}");
    assert!(given[3].starts_with(&caller[..36]) && given[3].ends_with("-01"), "{given:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_collector_costs_nothing_and_is_logged() {
    let home = Home::new();
    let server = serve(&home, "http://127.0.0.1:1", &[]);
    let fake = FakeExecutor::start(says_valid()).await;
    register(&home, &server, "e0", &fake).await;
    let url = format!("{}/api/v3/validate", server.url);
    for _ in 0..3 {
        let reply = post(&home, &url, &json!({ "claim": "x" }), &[]).await;
        assert_eq!(reply.status, StatusCode::OK);
    }
    let line = server.wait_for("the collector does not accept traces and events");
    assert!(line.contains("problem=\"no connection\""), "{line}");
    assert_eq!(ended(server).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_collector_does_not_delay_the_shutdown() {
    let home = Home::new();
    // Connections are accepted, and nobody reads from them.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let server = serve(&home, &endpoint, &[]);
    let fake = FakeExecutor::start(says_valid()).await;
    register(&home, &server, "e0", &fake).await;
    let url = format!("{}/api/v3/validate", server.url);
    let reply = post(&home, &url, &json!({ "claim": "x" }), &[]).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(ended(server).await, 0);
}
