//! `/metrics`: who may read it, its contents, and that no caller can make it grow.

use std::{collections::BTreeSet, time::Duration};

use axum::body::Body;
use http::StatusCode;
use jurat_core::{
    account::caller::Scope,
    judge::Price,
    metric::{self, MetricKind, MetricSpec},
};
use jurat_engine::{
    EngineLimits, JudgesConfig, ProviderKind, ProviderSettings, RunWorkerSettings, SoleNode,
};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{FakeExecutor, gated, says_invalid, says_valid, status},
    fake_provider::{FakeProvider, ProviderReply, verdict},
};
use serde_json::json;

/// Metrics that only PostgreSQL has.
const NOT_HERE: [&str; 1] = [metric::STORE_CONNECTIONS.name];

async fn figures(app: &TestApp) -> String {
    let accept = [("accept", "application/openmetrics-text")];
    let reply = app.admin().send("GET", "/metrics", Body::empty(), &accept).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.text()
}

/// The samples without their values.
fn series(text: &str) -> BTreeSet<&str> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.rsplit_once(' ').unwrap().0).collect()
}

#[track_caller]
fn value(text: &str, series: &str) -> f64 {
    let start = format!("{series} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("there is no `{series}` in\n{text}")).parse().unwrap()
}

/// Makes everything happen that is counted.
async fn busy_app() -> TestApp {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_valid(), status(500)]).await;
    let body = json!({ "claim": "x", "consensus": { "replicas": 3 } });
    app.admin().post("/api/v3/validate", &body).await;
    let claim = json!({ "output": 1, "output_schema": { "type": "string" } });
    let body = json!({ "claim": claim, "policy": { "policy_id": "vp.schema_only.v1" } });
    app.admin().post("/api/v3/validate", &body).await;
    let body = json!({ "claim": "x", "consensus": { "session_pool": ["nobody"] } });
    app.admin().post("/api/v3/validate", &body).await;
    app.anonymous().get("/v1/rounds").await;
    busy_with_tasks(&app).await;
    app
}

/// Has a task decided, one without an answer, and a run.
async fn busy_with_tasks(app: &TestApp) {
    app.start(SoleNode::Yes).await;
    let poll = Duration::from_millis(20);
    app.engine.spawn_run_worker(RunWorkerSettings { poll, ..RunWorkerSettings::of_a_node(8) });
    for (executor, state) in [("s1", "finalized"), ("s3", "failed")] {
        let at = format!("/v1/tasks/sample?task_id=of-{executor}");
        let mut contract = app.admin().get(&at).await.json();
        // Knowledge from the other task would be reused.
        contract["inputs"] = json!({ "prompt": executor });
        contract["output_schema"] = json!({});
        contract["assignment"]["explore"]["max_retries"] = json!(0);
        let order = json!({ "contract": contract, "executors": [executor] });
        let reply = app.admin().post("/v1/tasks", &order).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
        let task = app.admin().get(&format!("/v1/tasks/of-{executor}?wait=30")).await.json();
        assert_eq!(task["state"], state, "{task}");
    }
    let agent = json!({ "agent_id": "a", "executor": "s1", "prompt": "x" });
    let spec = json!({ "run_id": "r1", "agents": [agent], "contract": { "output_schema": {} } });
    app.admin().post("/v1/runs", &json!({ "kickoff": true, "spec": spec })).await;
    let run = app.admin().get("/v1/runs/r1?wait=30").await.json();
    assert_eq!(run["status"], "FINALIZED", "{run}");
}

#[tokio::test]
async fn tasks_and_runs_are_counted_by_how_they_ended() {
    let app = busy_app().await;
    let text = figures(&app).await;
    let check = |series: &str, expected: f64| {
        let found = value(&text, series);
        assert!((found - expected).abs() < 1e-9, "{series} is {found}, not {expected}");
    };
    check("jurat_tasks_total{state=\"finalized\"}", 2.0);
    check("jurat_tasks_total{state=\"failed\"}", 1.0);
    check("jurat_task_duration_seconds_count{state=\"failed\"}", 1.0);
    check("jurat_task_claims_released_total{reason=\"failed\"}", 1.0);
    check("jurat_runs_total{status=\"FINALIZED\"}", 1.0);
    check("jurat_run_steps_total{outcome=\"succeeded\"}", 1.0);
    check("jurat_tasks_limit", 256.0);
    check("jurat_tasks_overdue_seconds", 0.0);
}

#[tokio::test]
async fn open_work_is_counted_periodically() {
    let app = TestApp::new().await;
    let fake = FakeExecutor::start(says_valid().task_types(&["swarm"])).await;
    let url = fake.url();
    let body = json!({ "name": "e", "url": url, "agent_events_url": url });
    app.admin().post("/v1/executors", &body).await;
    let submit = async |id: &str| {
        let contract = app.admin().get(&format!("/v1/tasks/sample?task_id={id}")).await.json();
        let order = json!({ "contract": contract, "executors": ["e"] });
        let reply = app.admin().post("/v1/tasks", &order).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    };
    let open = async || {
        let text = figures(&app).await;
        value(&text, "jurat_tasks_open{state=\"created\"}")
    };
    submit("t1").await;
    assert!((open().await - 1.0).abs() < 1e-9);
    // However often the metrics are read, the store is asked every ten seconds.
    submit("t2").await;
    app.clock.advance_ms(9_000);
    assert!((open().await - 1.0).abs() < 1e-9);
    app.clock.advance_ms(1_000);
    assert!((open().await - 2.0).abs() < 1e-9);
}

/// An application whose one provider accepts any model, and a verifier `cites` of that judge.
async fn judged_app(fake: &FakeProvider) -> TestApp {
    let mut provider = ProviderSettings::new(ProviderKind::OpenAi, fake.url());
    let price = Price { input_micros_per_million: 1_000_000, output_micros_per_million: 5_000_000 };
    provider.prices.insert("*".to_owned(), price);
    let mut judges =
        JudgesConfig { cache_for: Some(Duration::from_mins(1)), ..JudgesConfig::default() };
    judges.providers.insert("local".to_owned(), provider);
    let app = TestApp::with_judges(judges).await;
    deploy(&app, "cites", "local/m").await;
    app
}

async fn deploy(app: &TestApp, name: &str, model: &str) {
    let body = json!({
        "name": name,
        "description": "x",
        "criterion": "Return passed=true when the response is true.",
        "input_contract": "text",
        "input_fields": ["response"],
        "few_shot_examples": [
            { "inputs": { "response": "a" }, "passed": true },
            { "inputs": { "response": "b" }, "passed": false },
            { "inputs": { "response": "c" }, "passed": true },
        ],
        "model_settings": { "model": model },
    });
    let reply = app.admin().post("/v1/verifiers", &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
}

async fn judge(app: &TestApp, verifier: &str, response: &str) {
    let body = json!({ "inputs": { "response": response } });
    let reply = app.admin().post(&format!("/v1/verifiers/{verifier}/runs"), &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
}

#[tokio::test]
async fn judges_are_counted_with_their_calls_tokens_and_cost() {
    let says = [
        ProviderReply::Answer(verdict("met")),
        ProviderReply::Status(500),
        ProviderReply::Answer(verdict("met")),
    ];
    let fake = FakeProvider::saying(says).await;
    fake.set_usage(Some((100, 20)));
    let app = judged_app(&fake).await;
    // The first is answered, the second is cached, and the third is asked for twice.
    for response in ["x", "x", "y"] {
        judge(&app, "cites", response).await;
    }
    let text = figures(&app).await;
    let check = |series: &str, expected: f64| {
        let found = value(&text, series);
        assert!((found - expected).abs() < 1e-9, "{series} is {found}, not {expected}");
    };
    check("jurat_judge_calls_total{provider=\"local\",outcome=\"answered\"}", 2.0);
    check("jurat_judge_calls_total{provider=\"local\",outcome=\"failed\"}", 1.0);
    check("jurat_judge_call_duration_seconds_count{provider=\"local\"}", 3.0);
    check("jurat_judge_tokens_total{provider=\"local\",direction=\"input\"}", 200.0);
    check("jurat_judge_tokens_total{provider=\"local\",direction=\"output\"}", 40.0);
    check("jurat_judge_cost_microcredits_total{provider=\"local\"}", 400.0);
    check("jurat_judge_cache_lookups_total{provider=\"local\",result=\"hit\"}", 1.0);
    check("jurat_judge_cache_lookups_total{provider=\"local\",result=\"miss\"}", 2.0);
}

#[tokio::test]
async fn a_model_named_by_a_caller_makes_no_new_series() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = judged_app(&fake).await;
    judge(&app, "cites", "x").await;
    figures(&app).await;
    let before = figures(&app).await;
    for mark in 0..5 {
        deploy(&app, &format!("mark{mark}"), &format!("local/mark{mark}")).await;
        judge(&app, &format!("mark{mark}"), "x").await;
    }
    let after = figures(&app).await;
    assert_eq!(series(&before), series(&after));
    assert!(!after.contains("mark"), "{after}");
}

#[tokio::test]
async fn metrics_need_a_key_with_the_scope() {
    let app = TestApp::new().await;
    let watcher = app.caller("watcher", &[Scope::MetricsRead]).await;
    let reply = watcher.get("/metrics").await;
    assert_eq!(reply.status, StatusCode::OK);
    let other = app.caller("other", &[Scope::RoundsCreate, Scope::RoundsRead]).await;
    assert_eq!(other.get("/metrics").await.status, StatusCode::FORBIDDEN);
    assert_eq!(app.anonymous().get("/metrics").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(watcher.get("/v1/rounds").await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_reader_chooses_the_format_of_the_metrics() {
    const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";
    /// The `Accept` header of Prometheus.
    const SCRAPE: &str = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    let app = TestApp::new().await;
    let read = async |accept| {
        let reply = app.admin().send("GET", "/metrics", Body::empty(), accept).await;
        (reply.headers["content-type"].to_str().unwrap().to_owned(), reply.text())
    };
    for (accept, expected) in [
        (&[][..], PLAIN),
        (&[("accept", "*/*")], PLAIN),
        (&[("accept", "text/plain;version=0.0.4")], PLAIN),
        (&[("accept", "application/openmetrics-text; version=1.0.0")], OPEN),
        (&[("accept", SCRAPE)], OPEN),
    ] {
        assert_eq!(read(accept).await.0, expected, "for {accept:?}");
    }
    let (_, open) = read(&[("accept", SCRAPE)]).await;
    assert!(open.ends_with("# EOF\n"), "{open}");
    assert!(open.contains("\n# TYPE jurat_http_requests counter\n"), "{open}");
    let (_, plain) = read(&[]).await;
    assert!(!plain.contains("# EOF") && !plain.contains("# UNIT"), "{plain}");
    // Readers of this format look for the type of a sample under its own name.
    let types: BTreeSet<&str> =
        plain.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for name in series(&plain).iter().map(|it| it.split('{').next().unwrap()) {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        assert!(types.contains(name) || family.is_some_and(|it| types.contains(it)), "{name}");
    }
}

#[tokio::test]
async fn a_round_is_counted_with_its_replicas_and_its_checks() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_invalid(), status(500)]).await;
    let body = json!({ "claim": "x", "consensus": { "replicas": 3 } });
    app.admin().post("/api/v3/validate", &body).await;
    let text = figures(&app).await;
    let check = |series: &str, expected: f64| {
        let found = value(&text, series);
        assert!((found - expected).abs() < 1e-9, "{series} is {found}, not {expected}");
    };
    check("jurat_rounds_total{kind=\"validate\",outcome=\"split\"}", 1.0);
    check("jurat_round_duration_seconds_count{kind=\"validate\"}", 1.0);
    check("jurat_round_agreement_ratio_count{kind=\"validate\"}", 1.0);
    check("jurat_replicas_total{executor=\"s1\",label=\"VALID\"}", 1.0);
    check("jurat_replicas_total{executor=\"s2\",label=\"INVALID\"}", 1.0);
    check("jurat_replica_failures_total{executor=\"s3\",code=\"http_status\"}", 1.0);
    check("jurat_replica_duration_seconds_count{executor=\"s3\"}", 1.0);
    check("jurat_executor_circuit{executor=\"s1\",state=\"closed\"}", 1.0);
    check("jurat_executor_circuit{executor=\"s1\",state=\"open\"}", 0.0);
    check("jurat_executor_up{executor=\"s1\"}", 1.0);
    check("jurat_store_write_duration_seconds_count{write=\"round_open\"}", 1.0);
    check("jurat_rounds_in_flight", 0.0);
    let validate = "method=\"POST\",route=\"/api/v3/validate\"";
    check(&format!("jurat_http_requests_total{{{validate},status=\"2xx\"}}"), 1.0);
    check(&format!("jurat_http_request_duration_seconds_count{{{validate}}}"), 1.0);
    // The request for the metrics themselves.
    check("jurat_http_requests_in_flight", 1.0);
}

#[tokio::test]
async fn a_caller_who_leaves_is_counted_as_gone() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let body = json!({ "claim": "x" });
    let admin = app.admin();
    let request = admin.post("/api/v3/validate", &body);
    tokio::select! {
        _ = request => panic!("nobody let the executor answer"),
        () = fake.wait_for_calls(1) => {}
    }
    let text = figures(&app).await;
    let gone =
        "jurat_http_requests_total{method=\"POST\",route=\"/api/v3/validate\",status=\"gone\"}";
    assert!((value(&text, gone) - 1.0).abs() < 1e-9);
    fake.release();
}

#[tokio::test]
async fn every_described_metric_appears_and_no_other() {
    let full = TestApp::with_limits(EngineLimits { rounds: 0, ..EngineLimits::default() }).await;
    full.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await;
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let judged = judged_app(&fake).await;
    judge(&judged, "cites", "x").await;
    let text = figures(&busy_app().await).await + &figures(&full).await + &figures(&judged).await;
    let names: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| line.split_once(' ').unwrap().0)
        .collect();
    let described: BTreeSet<&str> =
        metric::ALL.iter().map(|figure| figure.name).filter(|it| !NOT_HERE.contains(it)).collect();
    assert_eq!(names, described);
    for figure in metric::ALL.iter().filter(|figure| !NOT_HERE.contains(&figure.name)) {
        assert!(text.contains(&format!("# TYPE {} {}\n", figure.name, figure.shape.as_str())));
        let sample = &figure.samples()[0];
        let line = text.lines().find(|line| {
            line.strip_prefix(sample.as_str()).is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        let line = line.unwrap_or_else(|| panic!("no sample of {sample}"));
        for label in figure.labels {
            assert!(line.contains(&format!("{label}=\"")), "{line} has no label {label}");
        }
        let labels =
            line.matches("=\"").count() - usize::from(figure.shape == MetricKind::Histogram);
        assert_eq!(labels, figure.labels.len(), "{line}");
    }
}

#[tokio::test]
async fn hostile_input_makes_no_new_series() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let hostile = async |mark: &str| {
        for path in ["nowhere", "v1/rounds/x", "api/v3/validate/x"] {
            app.admin().get(&format!("/{path}{mark}?q={mark}")).await;
        }
        app.admin().send(&format!("M{mark}"), "/v1/rounds", Body::empty(), &[]).await;
        app.with_key(&format!("jrt_live_{mark}")).get("/v1/rounds").await;
        app.admin().delete(&format!("/v1/executors/{mark}")).await;
        app.admin().get(&format!("/v1/sessions/{mark}")).await;
        let terms = json!({ "session_pool": [mark] });
        let body = json!({ "claim": mark, "consensus": terms });
        app.admin().post("/api/v3/validate", &body).await;
        let policy = json!({ "policy_id": format!("vp.{mark}.v1") });
        let body = json!({ "claim": mark, "policy": policy, "context": { mark: mark } });
        app.admin().post("/api/v3/validate", &body).await;
        let headers = [("x-request-id", mark), ("idempotency-key", mark), ("user-agent", mark)];
        let body = json!({ "claim": mark }).to_string();
        app.admin().send("POST", "/api/v3/validate", Body::from(body), &headers).await;
    };
    // The first count creates a series, including the read of the metrics.
    hostile("first").await;
    figures(&app).await;
    let before = figures(&app).await;
    for mark in 0..30 {
        hostile(&format!("mark{mark}")).await;
    }
    let after = figures(&app).await;
    let (before, all) = (series(&before), series(&after));
    let new: Vec<&&str> = all.difference(&before).collect();
    assert!(new.is_empty(), "{new:?}");
    assert!(!after.contains("mark") && !after.contains("first"), "{after}");
}

#[tokio::test]
async fn removing_an_executor_removes_its_series() {
    let app = busy_app().await;
    assert!(figures(&app).await.contains("executor=\"s1\""));
    app.admin().delete("/v1/executors/s1").await;
    let text = figures(&app).await;
    assert!(!text.contains("executor=\"s1\""), "{text}");
    assert!(text.contains("executor=\"s2\""));
}

/// The words of a text that look like names of our metrics.
fn named(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("jurat_") || word.starts_with("process_"))
        .collect()
}

#[test]
fn dashboard_and_alerts_cover_exactly_the_existing_metrics() {
    let dashboard = include_str!("../../../../docs/operations/dashboard.json");
    let alerts = include_str!("../../../../docs/operations/alerts.yml");
    let page = include_str!("../../../../docs/reference/metrics.md");
    serde_json::from_str::<serde_json::Value>(dashboard).unwrap();
    let samples: BTreeSet<String> = metric::ALL.iter().flat_map(MetricSpec::samples).collect();
    for name in named(dashboard).union(&named(alerts)) {
        assert!(samples.contains(*name), "there is no figure `{name}`");
    }
    let (panels, described) = (named(dashboard), named(page));
    for figure in metric::ALL {
        let samples = figure.samples();
        assert!(samples.iter().any(|it| panels.contains(it.as_str())), "no panel: {}", figure.name);
        assert!(samples.iter().all(|it| described.contains(it.as_str())), "{}", figure.name);
    }
}
