//! The load generator against a small server in the same process.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use bytes::Bytes;
use jurat_bench_load::load::{LoadPlan, LoadStop, Target, run};
use jurat_bench_load::{Method, OfferedLoad, RequestVariation, offer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Serves until the set is dropped.
async fn serve(router: Router) -> (Target, JoinSet<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let target = Target {
        address: listener.local_addr().unwrap(),
        method: Method::POST,
        path: "/echo".to_owned(),
        headers: Vec::new(),
        body: Bytes::from_static(b"{\"marker\":1}"),
        vary: RequestVariation::Nothing,
        marker: "marker".to_owned(),
    };
    let mut server = JoinSet::new();
    server.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (target, server)
}

fn echo(count: Arc<AtomicU64>) -> Router {
    let handler = async move |body: Bytes| {
        count.fetch_add(1, Ordering::SeqCst);
        body
    };
    Router::new().route("/echo", post(handler))
}

#[tokio::test]
async fn the_requested_number_is_sent_and_the_warm_up_is_not_counted() {
    let count = Arc::new(AtomicU64::new(0));
    let (target, _server) = serve(echo(Arc::clone(&count))).await;
    let plan = LoadPlan { connections: 3, warm_up: 5, stop: LoadStop::Requests(100) };
    let sample = run(&target, &plan, &[std::process::id()]).await.unwrap();
    assert_eq!(sample.requests, 100);
    assert_eq!(count.load(Ordering::SeqCst), 115);
    assert_eq!(sample.cpu.len(), 1);
    assert!(0.0 < sample.percentile_us(0.5));
    assert!(sample.percentile_us(0.5) <= sample.percentile_us(0.99));
    assert!(0.0 < sample.per_second());
}

#[tokio::test]
async fn a_run_by_time_ends() {
    let (target, _server) = serve(echo(Arc::default())).await;
    let stop = LoadStop::After(Duration::from_millis(50));
    let sample = run(&target, &LoadPlan { connections: 2, warm_up: 1, stop }, &[]).await.unwrap();
    assert!(0 < sample.requests);
    assert!(Duration::from_millis(50) <= sample.elapsed);
}

#[tokio::test]
async fn wrong_answers_are_not_measured() {
    let refuse = async || (StatusCode::BAD_GATEWAY, "marker: no");
    let (target, _server) = serve(Router::new().route("/echo", post(refuse))).await;
    let plan = LoadPlan { connections: 1, warm_up: 1, stop: LoadStop::Requests(1) };
    let error = run(&target, &plan, &[]).await.unwrap_err();
    assert_eq!(error.to_string(), "/echo answered 502 Bad Gateway: marker: no");

    let other = async || "{}";
    let (target, _server) = serve(Router::new().route("/echo", post(other))).await;
    let error = run(&target, &plan, &[]).await.unwrap_err();
    assert_eq!(error.to_string(), "the answer has no `marker`: {}");
}

fn slowly(rate: f64) -> OfferedLoad {
    OfferedLoad {
        rate,
        lanes: 4,
        settle: Duration::ZERO,
        counted: Duration::from_millis(300),
        timeout: Duration::from_secs(20),
    }
}

#[tokio::test]
async fn an_open_loop_keeps_its_rate_and_separates_refusals_from_failures() {
    let count = Arc::new(AtomicU64::new(0));
    let (target, _server) = serve(echo(Arc::clone(&count))).await;
    let outcome = offer(&target, &slowly(1_000.0)).await.unwrap();
    assert_eq!(outcome.ok, count.load(Ordering::SeqCst));
    assert!((200..400).contains(&outcome.ok), "{}", outcome.ok);
    assert_eq!((outcome.shed, outcome.failed, outcome.late), (0, 0, 0));

    for (status, shed) in [(StatusCode::SERVICE_UNAVAILABLE, true), (StatusCode::NOT_FOUND, false)]
    {
        let refuse = async move || status;
        let (target, _server) = serve(Router::new().route("/echo", post(refuse))).await;
        let outcome = offer(&target, &slowly(100.0)).await.unwrap();
        assert_eq!(outcome.ok, 0);
        assert_eq!(0 < outcome.shed, shed);
        assert_eq!(0 < outcome.failed, !shed);
    }
}

#[tokio::test]
async fn the_wait_for_a_connection_counts_as_latency() {
    // One connection and slow answers: all requests except the first wait.
    let slow = async || {
        tokio::time::timeout(Duration::from_millis(50), std::future::pending::<()>())
            .await
            .is_err()
            .to_string()
    };
    let (target, _server) = serve(Router::new().route("/echo", post(slow))).await;
    let outcome = offer(&target, &OfferedLoad { lanes: 1, ..slowly(100.0) }).await.unwrap();
    assert!(10 <= outcome.ok);
    assert!(200_000.0 < outcome.percentile_us(0.99), "{}", outcome.percentile_us(0.99));
}
