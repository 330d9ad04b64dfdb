//! One execution per `execution_id`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

use jurat_runtime::{
    Capabilities, Evidence, Execute, Execution, ExecutorError, ExecutorLimits, ExecutorOptions,
    ExecutorService, serve,
};

use crate::server::{Reply, Server, execute_request};

/// Counts its executions, and finishes each when it gets a permit.
#[derive(Clone)]
struct Gated {
    started: Arc<Semaphore>,
    gate: Arc<Semaphore>,
    ended: Arc<Semaphore>,
    count: Arc<AtomicUsize>,
}

impl Gated {
    fn new(permits: usize) -> Self {
        Self {
            started: Arc::new(Semaphore::new(0)),
            gate: Arc::new(Semaphore::new(permits)),
            ended: Arc::new(Semaphore::new(0)),
            count: Arc::default(),
        }
    }

    async fn wait_for_a_start(&self) {
        self.started.acquire().await.unwrap().forget();
    }

    async fn wait_for_an_end(&self) {
        self.ended.acquire().await.unwrap().forget();
    }

    fn executions(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl ExecutorService for Gated {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            task_types: vec!["*".to_owned()],
            profiles: vec!["*".to_owned()],
            provider_family: "gated".to_owned(),
            model_id: "gated".to_owned(),
            policies: Vec::new(),
        }
    }

    async fn execute(&self, request: &Execute) -> Result<Execution, ExecutorError> {
        let number = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        self.started.add_permits(1);
        self.gate.acquire().await.unwrap().forget();
        self.ended.add_permits(1);
        assert!(request.inputs["prompt"] != "panic once" || number != 1, "a defect");
        if request.inputs["prompt"] == "fail once" && number == 1 {
            return Err(ExecutorError::Failed("the first time".to_owned()));
        }
        Ok(Execution { output: json!({"number": number}), evidence: Evidence::default() })
    }
}

/// Sends a request, and disconnects when the execution has started.
async fn leave_early(server: &Server, gated: &Gated) {
    tokio::select! {
        reply = execute(server, "e", "hi") => panic!("it was to hang: {reply:?}"),
        () = gated.wait_for_a_start() => {}
    }
}

async fn execute(server: &Server, id: &str, prompt: &str) -> Reply {
    server.post("/execute", &execute_request(id, "swarm", &json!({"prompt": prompt}))).await
}

#[tokio::test]
async fn the_same_request_gets_the_same_answer() {
    let gated = Gated::new(10);
    let server = Server::start(gated.clone(), ExecutorOptions::default()).await;
    let first = execute(&server, "e", "hi").await;
    assert_eq!(first.json["candidate_output"], json!({"number": 1}));
    assert_eq!(execute(&server, "e", "hi").await, first);
    assert_eq!(
        execute(&server, "other", "hi").await.json["candidate_output"],
        json!({"number": 2})
    );
    assert_eq!(gated.executions(), 2);
}

#[tokio::test]
async fn another_request_under_the_same_id_is_a_conflict() {
    let server = Server::start(Gated::new(10), ExecutorOptions::default()).await;
    assert_eq!(execute(&server, "e", "hi").await.status, 200);
    let reply = execute(&server, "e", "ho").await;
    assert_eq!((reply.status, &reply.json["error"]), (409, &json!("execution_id_reused")));
    assert_eq!(reply.json["field"], "execution_id");
}

#[tokio::test]
async fn duplicates_wait_for_the_first() {
    let gated = Gated::new(0);
    let server = Server::start(gated.clone(), ExecutorOptions::default()).await;
    let open = async {
        gated.wait_for_a_start().await;
        gated.gate.add_permits(10);
    };
    let ask = || execute(&server, "e", "hi");
    let (a, b, c, ()) = tokio::join!(ask(), ask(), ask(), open);
    assert_eq!(a.json["candidate_output"], json!({"number": 1}));
    assert_eq!((&b, &c), (&a, &a));
    assert_eq!(gated.executions(), 1);
}

#[tokio::test]
async fn a_failure_is_not_cached() {
    let server = Server::start(Gated::new(10), ExecutorOptions::default()).await;
    let reply = execute(&server, "e", "fail once").await;
    assert_eq!((reply.status, &reply.json["message"]), (500, &json!("the first time")));
    assert_eq!(execute(&server, "e", "fail once").await.status, 200);
}

#[tokio::test]
async fn a_caller_that_returns_finds_the_same_execution() {
    let gated = Gated::new(0);
    let server = Server::start(gated.clone(), ExecutorOptions::default()).await;
    leave_early(&server, &gated).await;
    // While it still runs, another request under its id is noticed, and the same request waits.
    assert_eq!(execute(&server, "e", "ho").await.status, 409);
    gated.gate.add_permits(1);
    let reply = execute(&server, "e", "hi").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(gated.executions(), 1);
}

#[tokio::test]
async fn an_answer_is_cached_even_if_nobody_waited() {
    let gated = Gated::new(0);
    let server = Server::start(gated.clone(), ExecutorOptions::default()).await;
    leave_early(&server, &gated).await;
    gated.gate.add_permits(1);
    gated.wait_for_an_end().await;
    assert_eq!(execute(&server, "e", "hi").await.json["candidate_output"], json!({"number": 1}));
    assert_eq!(gated.executions(), 1);
}

#[tokio::test]
async fn a_running_execution_is_never_evicted() {
    let gated = Gated::new(0);
    let limits = ExecutorLimits {
        remembered_bytes: 0,
        remembered: Duration::from_nanos(1),
        ..ExecutorLimits::default()
    };
    let server =
        Server::start(gated.clone(), ExecutorOptions { limits, ..ExecutorOptions::default() })
            .await;
    leave_early(&server, &gated).await;
    assert_eq!(execute(&server, "e", "ho").await.status, 409);
    assert_eq!(gated.executions(), 1);
}

#[tokio::test]
async fn the_attempt_number_does_not_change_the_request() {
    let gated = Gated::new(10);
    let server = Server::start(gated.clone(), ExecutorOptions::default()).await;
    let mut request = execute_request("e", "swarm", &json!({"prompt": "hi"}));
    let first = server.post("/execute", &request).await;
    request["attempt_id"] = json!("attempt-2");
    assert_eq!(server.post("/execute", &request).await, first);
    assert_eq!(gated.executions(), 1);
}

#[tokio::test]
async fn new_knowledge_between_tries_does_not_change_the_request() {
    let gated = Gated::new(10);
    let server = Server::start(gated.clone(), ExecutorOptions::default()).await;
    let mut request = execute_request("e", "swarm", &json!({"prompt": "hi"}));
    let first = server.post("/execute", &request).await;
    request["seed_bundle"] = json!({"seed_type": "SIMILAR_HITS_V1", "hits": []});
    assert_eq!(server.post("/execute", &request).await, first);
    assert_eq!(gated.executions(), 1);
}

#[tokio::test]
async fn an_executor_that_panics_can_be_asked_again() {
    let limits = ExecutorLimits { concurrent: 1, ..ExecutorLimits::default() };
    let gated = Gated::new(10);
    let server =
        Server::start(gated, ExecutorOptions { limits, ..ExecutorOptions::default() }).await;
    let reply = execute(&server, "e", "panic once").await;
    assert_eq!((reply.status, &reply.json["error"]), (500, &json!("executor_failed")));
    assert_eq!(execute(&server, "e", "panic once").await.status, 200);
}

#[tokio::test]
async fn a_shutdown_waits_for_an_execution_without_a_caller() {
    let gated = Gated::new(0);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server::at(listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move { drop(stopped.await) };
    let serving = serve(listener, Arc::new(gated.clone()), ExecutorOptions::default(), shutdown);
    let leaving = async {
        leave_early(&server, &gated).await;
        drop(server);
        stop.send(()).unwrap();
        gated.gate.add_permits(1);
    };
    let (served, ()) = tokio::join!(serving, leaving);
    served.unwrap();
    assert_eq!(gated.ended.available_permits(), 1);
}

#[tokio::test]
async fn work_beyond_the_limit_is_refused_and_health_stays_ok() {
    let gated = Gated::new(0);
    let limits = ExecutorLimits { concurrent: 1, ..ExecutorLimits::default() };
    let server =
        Server::start(gated.clone(), ExecutorOptions { limits, ..ExecutorOptions::default() })
            .await;
    let second = async {
        gated.wait_for_a_start().await;
        let reply = execute(&server, "b", "hi").await;
        assert_eq!(server.get("/health").await.status, 200);
        gated.gate.add_permits(1);
        reply
    };
    let (first, second) = tokio::join!(execute(&server, "a", "hi"), second);
    assert_eq!(first.status, 200);
    assert_eq!((second.status, &second.json["error"]), (503, &json!("overloaded")));
}
