//! Tasks on a real store with executors behind sockets: driven to their end, cancelled, taken over.

mod decisions;
mod driven;
mod evidence;
mod fair_share;
mod faults;
pub(crate) mod keys;
mod knowledge;
mod leases;
mod refusals;
pub(crate) mod restart;
mod secret_votes;
mod submission;
mod weights;

use std::time::Duration;

use jurat_core::task::{TaskAddition, TaskEvent, TaskRecord};
use jurat_engine::{Clock as _, EngineError, IdempotentOutcome, SoleNode};
use jurat_testkit::{
    app::{TestApp, admin_caller},
    fake_executor::{Behaviour, FakeExecutor, answers},
};
use jurat_wire::executor::{TaskContract, TaskSubmission};
use serde_json::{Value, json};

/// The longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(20);

/// A contract with short leases, so that tests do not wait long.
pub(crate) fn contract(app: &TestApp, id: &str) -> TaskContract {
    let now = u64::try_from(app.clock.now().millis()).unwrap();
    let mut contract = TaskContract::sample(id, now);
    contract.assignment.claim.lease_ms = 300;
    contract.assignment.explore.backoff_ms = Some(1);
    contract
}

pub(crate) fn order(contract: TaskContract, executors: &[&str]) -> TaskSubmission {
    let executors = executors.iter().map(|it| (*it).to_owned()).collect();
    TaskSubmission { contract, executors, verifiers: Vec::new(), profile: None }
}

/// Requires this many votes, and allows as many concurrently.
pub(crate) fn with_quorum(mut contract: TaskContract, quorum: u32) -> TaskContract {
    contract.acceptance.quorum_threshold = quorum;
    contract.assignment.verify.max_verifiers = quorum;
    contract.assignment.claim.max_concurrency.verify = quorum;
    contract
}

/// Sets another policy.
pub(crate) fn under(contract: &mut TaskContract, policy_id: &str, params: Value) {
    let binding = &mut contract.acceptance.verifier_policy;
    binding.policy_hash = jurat_core::policy::policy_hash(policy_id, &params);
    policy_id.clone_into(&mut binding.policy_id);
    binding.policy_params = params;
}

pub(crate) async fn submit(
    app: &TestApp,
    order: TaskSubmission,
) -> Result<TaskAddition, EngineError> {
    match app.engine.task_submit(&admin_caller(), order, None).await? {
        IdempotentOutcome::Now(submitted) => Ok(submitted),
        IdempotentOutcome::Before(_) => Err(EngineError::Bug("no key was given")),
    }
}

/// A node that drives tasks.
pub(crate) async fn node() -> TestApp {
    let app = TestApp::new().await;
    app.start(SoleNode::Yes).await;
    app
}

/// Waits until a task satisfies the condition.
pub(crate) async fn wait_until(
    app: &TestApp,
    id: &str,
    is_done: impl Fn(&TaskRecord) -> bool,
) -> TaskRecord {
    let waiting = async {
        let mut seq = 0;
        loop {
            let within = Duration::from_secs(1);
            let record = app.engine.task_wait(&admin_caller(), id, seq, within).await.unwrap();
            if is_done(&record) {
                return record;
            }
            seq = record.seq;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap()
}

pub(crate) async fn ended(app: &TestApp, id: &str) -> TaskRecord {
    wait_until(app, id, |record| record.state.is_over()).await
}

pub(crate) async fn events(app: &TestApp, id: &str) -> Vec<TaskEvent> {
    let events = app.engine.task_events(&admin_caller(), id, 0, 1_000).await.unwrap();
    events.into_iter().map(|it| it.event).collect()
}

/// An executor that answers and votes correctly.
pub(crate) fn able() -> Behaviour {
    answers(json!({ "answer": "42", "confidence": 0.9 })).task_types(&["swarm"])
}

/// How many times an endpoint of an executor was called.
pub(crate) fn asked(fake: &FakeExecutor, endpoint: &str) -> usize {
    fake.calls().iter().filter(|call| call.endpoint() == endpoint).count()
}
