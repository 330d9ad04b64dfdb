//! Agent runs on a real store with executors behind sockets.

use std::time::Duration;

use jurat_core::{
    agent_run::{AgentRunAddition, AgentRunKey, AgentRunStatus, EventsStart, StepStatus},
    id::AccountId,
};
use jurat_engine::{
    AgentRunView, Clock as _, EngineError, EngineLimits, IdempotentOutcome, RunWorkerEnd,
    RunWorkerSettings, SoleNode,
};
use jurat_store::{AgentStepTake, Behalf, Store, StoreLocation, TakenAgentStep};
use jurat_testkit::{
    app::{TestApp, admin_caller},
    fake_executor::{Behaviour, FakeExecutor, answers, gated, status},
    unreliable_store::{UnreliableStore, WriteFault},
};
use jurat_wire::api::agent_runs::decode_submit;
use serde_json::{Value, json};

/// The longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(30);

fn says(answer: &str) -> Behaviour {
    answers(json!({ "answer": answer, "confidence": 0.9 })).task_types(&["swarm"])
}

fn worker(name: &str) -> RunWorkerSettings {
    RunWorkerSettings {
        name: name.to_owned(),
        at_once: 8,
        poll: Duration::from_millis(20),
        lease_ms: 30_000,
        until: RunWorkerEnd::Stopped,
    }
}

/// A node that drives tasks, with a run worker.
async fn node() -> TestApp {
    let app = TestApp::new().await;
    app.start(SoleNode::Yes).await;
    app.engine.spawn_run_worker(worker("here"));
    app
}

/// A spec whose agents have the executors `s1`, `s2`, … in order.
fn spec(id: &str, agents: &[&str]) -> Value {
    let agent = |(number, name): (usize, &&str)| {
        json!({
            "agent_id": name, "executor": format!("s{}", number + 1),
            "prompt": format!("{name}, what is so?"),
        })
    };
    let agents: Vec<Value> = agents.iter().enumerate().map(agent).collect();
    json!({ "run_id": id, "shared_inputs": { "topic": "bridges" }, "agents": agents })
}

async fn submit(
    app: &TestApp,
    spec: &Value,
    kickoff: bool,
) -> Result<AgentRunAddition, EngineError> {
    let body = json!({ "kickoff": kickoff, "spec": spec });
    let order = decode_submit(&body, app.clock.now()).unwrap();
    match app.engine.agent_run_submit(&admin_caller(), order, None).await? {
        IdempotentOutcome::Now(added) => Ok(added),
        IdempotentOutcome::Before(_) => panic!("no key was given"),
    }
}

async fn wait_until(
    app: &TestApp,
    id: &str,
    is_done: impl Fn(&AgentRunView) -> bool,
) -> AgentRunView {
    let waiting = async {
        let mut seen = 0;
        loop {
            let within = Duration::from_secs(1);
            let view = app.engine.agent_run_wait(&admin_caller(), id, seen, within).await.unwrap();
            if is_done(&view) {
                return view;
            }
            seen = view.events;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    let Ok(view) = waited else { panic!("the run does not go on: {:?}", told(app, id).await) };
    view
}

async fn ended(app: &TestApp, id: &str) -> AgentRunView {
    wait_until(app, id, |view| view.run.status.is_over()).await
}

/// The events of a run, in order.
async fn told(app: &TestApp, id: &str) -> Vec<(String, Value)> {
    let from = EventsStart::After(0);
    let events = app.engine.agent_run_events(&admin_caller(), id, from, 200).await.unwrap();
    events.into_iter().map(|it| (it.event.kind.to_string(), it.event.body)).collect()
}

async fn kinds(app: &TestApp, id: &str) -> Vec<String> {
    told(app, id).await.into_iter().map(|(kind, _)| kind).collect()
}

fn executed(fake: &FakeExecutor) -> Vec<Value> {
    let calls = fake.calls().into_iter().filter(|call| call.endpoint() == "execute");
    calls.map(|call| call.body).collect()
}

fn aggregation(view: &AgentRunView) -> &Value {
    &view.run.result.as_ref().unwrap()["aggregation"]
}

#[tokio::test]
async fn three_agents_with_different_executors_give_one_answer() {
    let app = node().await;
    let [a, b, c] = app.executors([says("Paris"), says("London"), says("paris")]).await;
    let added = submit(&app, &spec("r1", &["a", "b", "c"]), true).await.unwrap();
    assert_eq!(added, AgentRunAddition { is_new: true, status: AgentRunStatus::Queued });
    let view = ended(&app, "r1").await;
    assert_eq!(view.run.status, AgentRunStatus::Finalized, "{:?}", told(&app, "r1").await);
    assert_eq!(aggregation(&view)["final_answer"], "Paris");
    assert_eq!(aggregation(&view)["answer_votes"], json!({ "Paris": 2, "London": 1 }));
    for (fake, agent) in [(&a, "a"), (&b, "b"), (&c, "c")] {
        let asked = executed(fake);
        assert_eq!(asked.len(), 1, "{agent} is asked once");
        assert_eq!(asked[0]["task_id"], format!("run-r1:{agent}:0:1"));
        assert_eq!(
            asked[0]["inputs"],
            json!({
                "topic": "bridges", "agent_id": agent,
                "prompt": format!("{agent}, what is so?"),
            })
        );
    }
    let kinds = kinds(&app, "r1").await;
    assert_eq!(kinds[..2], ["RUN_CREATED", "RUN_KICKOFF"]);
    assert_eq!(kinds.iter().filter(|kind| *kind == "STEP_COMPLETED").count(), 3);
    assert_eq!(kinds.last().unwrap(), "RUN_FINALIZED");
    // The same spec again is the same run.
    let again = submit(&app, &spec("r1", &["a", "b", "c"]), true).await.unwrap();
    assert_eq!(again, AgentRunAddition { is_new: false, status: AgentRunStatus::Finalized });
    app.engine.shutdown().await;
}

#[tokio::test]
async fn agents_with_other_executors_are_asked_despite_earlier_decisions() {
    let app = node().await;
    let [first, second] = app.executors([says("yes"), says("no")]).await;
    submit(&app, &spec("r1", &["a"]), true).await.unwrap();
    ended(&app, "r1").await;
    let mut other = spec("r2", &["a"]);
    other["agents"][0]["executor"] = json!("s2");
    submit(&app, &other, true).await.unwrap();
    let view = ended(&app, "r2").await;
    assert_eq!(aggregation(&view)["answer_votes"], json!({ "no": 1 }));
    assert_eq!((executed(&first).len(), executed(&second).len()), (1, 1));
    // The same agent with the same executor needs no second answer.
    submit(&app, &spec("r3", &["a"]), true).await.unwrap();
    let view = ended(&app, "r3").await;
    assert_eq!(aggregation(&view)["answer_votes"], json!({ "yes": 1 }));
    assert_eq!(executed(&first).len(), 1);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn one_heavy_answer_beats_two_light_ones() {
    let app = node().await;
    let _fakes = app.executors([says("no"), says("no"), says("yes")]).await;
    let mut spec = spec("r1", &["a", "b", "c"]);
    spec["agents"][2]["weight"] = json!(3.5);
    submit(&app, &spec, true).await.unwrap();
    let view = ended(&app, "r1").await;
    assert_eq!(aggregation(&view)["final_answer"], "yes");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_run_waits_for_its_start_command() {
    let app = node().await;
    let [fake] = app.executors([says("yes")]).await;
    submit(&app, &spec("r1", &["a"]), false).await.unwrap();
    let view = app.engine.agent_run_get(&admin_caller(), "r1").await.unwrap();
    assert_eq!((view.run.status, executed(&fake).len()), (AgentRunStatus::Created, 0));
    app.engine.agent_run_kickoff(&admin_caller(), "r1", None).await.unwrap();
    ended(&app, "r1").await;
    let again = app.engine.agent_run_kickoff(&admin_caller(), "r1", None).await.unwrap_err();
    assert!(again.to_string().contains("has already started"), "{again}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_brief_store_outage_costs_a_step_no_attempt() {
    let store = UnreliableStore::new(WriteFault::Refused, 0);
    let app = TestApp::on(store.store(), EngineLimits::default()).await;
    app.start(SoleNode::Yes).await;
    app.engine.spawn_run_worker(worker("here"));
    let [fake] = app.executors([gated(says("yes"))]).await;
    submit(&app, &spec("r1", &["a"]), true).await.unwrap();
    fake.wait_for_calls(1).await;
    // Every read now has failed, including that of the step.
    store.without_tasks(12).await;
    fake.release();
    let view = ended(&app, "r1").await;
    assert_eq!(view.run.status, AgentRunStatus::Finalized, "{:?}", told(&app, "r1").await);
    assert_eq!(view.run.steps[0].attempt, 1, "{:?}", told(&app, "r1").await);
    assert_eq!(executed(&fake).len(), 1);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_failed_agent_is_retried_with_a_new_task() {
    let app = node().await;
    let [well, ill] = app.executors([says("yes"), status(500).task_types(&["swarm"])]).await;
    let mut spec = spec("r1", &["a", "b"]);
    spec["contract"] = json!({
        "budget": { "max_steps": 2 }, "assignment": { "explore": { "max_retries": 0 } },
    });
    submit(&app, &spec, true).await.unwrap();
    // Nothing else is in progress when time moves on.
    let waiting = |view: &AgentRunView| {
        let [a, b] = [0, 1].map(|index| view.run.steps[index].status);
        (a, b) == (StepStatus::Succeeded, StepStatus::RetryWait)
    };
    let view = wait_until(&app, "r1", waiting).await;
    assert_eq!(view.run.steps[1].attempt, 2);
    ill.set(says("yes").provider_family("family-2").model_id("model-2"));
    app.clock.advance_ms(10_000);
    let view = ended(&app, "r1").await;
    assert_eq!(
        aggregation(&view)["answer_votes"],
        json!({ "yes": 2 }),
        "{:?}",
        told(&app, "r1").await
    );
    let tasks: Vec<Value> = executed(&ill).iter().map(|call| call["task_id"].clone()).collect();
    assert_eq!(tasks.last().unwrap(), "run-r1:b:0:2");
    let calls = executed(&ill);
    let attempts = [&calls[0]["attempt_id"], &calls.last().unwrap()["attempt_id"]];
    assert_eq!(attempts, ["attempt-1", "attempt-2"]);
    assert_eq!(executed(&well).len(), 1, "only what failed is tried again");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn tied_agents_are_asked_again_with_the_reason() {
    let app = node().await;
    let [one, other] = app.executors([says("yes"), gated(says("no"))]).await;
    let mut spec = spec("r1", &["a", "b"]);
    spec["aggregation"] = json!({ "tie_policy": { "chain": ["REEXPLORE", "STOCHASTIC"] } });
    submit(&app, &spec, true).await.unwrap();
    other.wait_for_calls(1).await;
    // The first answer must be in before it changes.
    wait_until(&app, "r1", |view| view.run.steps[0].status == StepStatus::Succeeded).await;
    one.set(says("no").provider_family("family-1").model_id("model-1"));
    other.release();
    let view = ended(&app, "r1").await;
    assert_eq!((view.run.iteration, &aggregation(&view)["final_answer"]), (1, &json!("no")));
    let asked = executed(&one);
    assert_eq!(asked[1]["task_id"], "run-r1:a:1:1");
    let signal = &asked[1]["inputs"]["_aggregation_signal"];
    assert_eq!(signal["type"], "NEED_MORE_EVIDENCE");
    assert_eq!(signal["unresolved_buckets"], json!(["answer"]));
    assert!(asked[0]["inputs"].get("_aggregation_signal").is_none());
    let kinds = kinds(&app, "r1").await;
    assert!(kinds.contains(&"RUN_TIE_REEXPLORE_TRIGGERED".to_owned()), "{kinds:?}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_permanent_failure_is_final() {
    let app = node().await;
    let [fake] = app.executors([says("yes")]).await;
    let mut spec = spec("r1", &["a"]);
    spec["contract"] = json!({
        "output_schema": { "type": "object", "required": ["decision"] },
        "assignment": { "explore": { "max_retries": 0 } },
    });
    spec["retry"] = json!({ "max_attempts": 1 });
    submit(&app, &spec, true).await.unwrap();
    let view = ended(&app, "r1").await;
    assert_eq!(view.run.status, AgentRunStatus::Failed);
    assert!(view.run.error.unwrap().starts_with("no agent succeeded; a: "));
    assert!(!executed(&fake).is_empty());
    assert_eq!(kinds(&app, "r1").await.last().unwrap(), "RUN_FAILED");
    // A caller retries it, with another task.
    fake.set(
        answers(json!({ "decision": "go" }))
            .task_types(&["swarm"])
            .provider_family("family-1")
            .model_id("model-1"),
    );
    app.engine.agent_run_retry(&admin_caller(), "r1", None).await.unwrap();
    let view = ended(&app, "r1").await;
    assert_eq!(aggregation(&view)["final_decision"], "go");
    assert_eq!(executed(&fake).last().unwrap()["task_id"], "run-r1:a:0:2");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_cancelled_run_cancels_the_tasks_of_its_steps() {
    let app = node().await;
    let [fake, _other] = app.executors([gated(says("yes")), says("yes")]).await;
    submit(&app, &spec("r1", &["a", "b"]), true).await.unwrap();
    fake.wait_for_calls(1).await;
    wait_until(&app, "r1", |view| view.run.steps[1].status == StepStatus::Succeeded).await;
    let reason = Some("asked twice".to_owned());
    app.engine.agent_run_cancel(&admin_caller(), "r1", reason, None).await.unwrap();
    let view = ended(&app, "r1").await;
    assert_eq!(view.run.status, AgentRunStatus::Cancelled);
    assert_eq!(view.run.steps[0].status, StepStatus::Cancelled);
    let task = app.engine.task_show(&admin_caller(), "run-r1:a:0:1").await.unwrap();
    assert_eq!(task.reason.as_deref(), Some("its run was called off"));
    fake.release();
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_run_that_could_never_succeed_is_refused_with_the_field() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says("yes")]).await;
    let mut unknown = spec("r1", &["a"]);
    unknown["agents"][0]["executor"] = json!("nobody");
    let error = submit(&app, &unknown, true).await.unwrap_err();
    assert_eq!(error.field().as_deref(), Some("agents.0.executor"));
    let mut policy = spec("r1", &["a"]);
    policy["contract"] = json!({
        "acceptance": { "verifier_policy": {
            "policy_id": "vp.schema_thresholds.v1",
            "policy_params": { "thresholds": "none" },
        } },
    });
    let error = submit(&app, &policy, true).await.unwrap_err();
    assert!(error.field().unwrap().starts_with("contract.acceptance.verifier_policy"), "{error}");
    let mut quorum = spec("r1", &["a"]);
    quorum["agents"][0]["contract"] = json!({ "acceptance": { "quorum_threshold": 3 } });
    let error = submit(&app, &quorum, true).await.unwrap_err();
    let field = "agents.0.contract.acceptance.quorum_threshold";
    assert_eq!(error.field().as_deref(), Some(field));
    let mut policy = spec("r1", &["a"]);
    policy["contract"] =
        json!({ "acceptance": { "verifier_policy": { "policy_id": "vp.unheard-of.v1" } } });
    let error = submit(&app, &policy, true).await.unwrap_err();
    let field = "contract.acceptance.verifier_policy.policy_id";
    assert_eq!(error.field().as_deref(), Some(field), "{error}");
    let mut late = spec("r1", &["a"]);
    late["contract"] = json!({ "expiry_ms": 600_000 });
    let error = submit(&app, &late, true).await.unwrap_err();
    assert_eq!(error.field().as_deref(), Some("contract.expiry_ms"));
    assert!(error.to_string().contains("milliseconds since 1970"), "{error}");
    // No profile bypasses the price of a session.
    let mut unpriced = spec("r1", &["a"]);
    unpriced["agents"][0]["profile"] = json!("unheard-of");
    let error = submit(&app, &unpriced, true).await.unwrap_err();
    assert_eq!(error.field().as_deref(), Some("agents.0.profile"), "{error}");
    submit(&app, &spec("r1", &["a"]), false).await.unwrap();
    let mut other = spec("r1", &["a"]);
    other["agents"][0]["prompt"] = json!("another");
    let error = submit(&app, &other, true).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict(_)), "{error}");
    // The same spec is the same run, even after its executor is gone.
    app.admin().delete("/v1/executors/s1").await;
    assert!(!submit(&app, &spec("r1", &["a"]), false).await.unwrap().is_new);
}

/// The contract that the guide shows for a run.
fn of_the_guide() -> Value {
    let guide = include_str!("../../../../docs/guide/runs.md");
    let (_, rest) = guide.split_once("of its steps:\n\n```json\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let names = example.replace("\"delta\"", "\"s2\"").replace("\"epsilon\"", "\"s3\"");
    serde_json::from_str(&names).unwrap()
}

#[tokio::test]
async fn the_contract_that_the_guide_shows_works() {
    let app = node().await;
    let decides = answers(json!({ "decision": "go" })).task_types(&["swarm"]);
    let _fakes = app.executors([decides, says("yes"), says("yes")]).await;
    let mut spec = spec("r1", &["a"]);
    for (name, value) in of_the_guide().as_object().unwrap() {
        spec[name] = value.clone();
    }
    submit(&app, &spec, true).await.unwrap();
    let view = ended(&app, "r1").await;
    assert_eq!(aggregation(&view)["final_decision"], "go", "{:?}", told(&app, "r1").await);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn an_executor_has_a_limited_number_of_steps() {
    let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
    let limits = EngineLimits { steps_per_executor: 2, ..EngineLimits::default() };
    let app = TestApp::on(store, limits).await;
    app.start(SoleNode::Yes).await;
    app.engine.spawn_run_worker(worker("here"));
    let [fake] = app.executors([gated(says("yes"))]).await;
    let mut spec = spec("r1", &["a"]);
    let agent = |name: &str| json!({ "agent_id": name, "executor": "s1", "prompt": "x" });
    spec["agents"] = json!(["a", "b", "c", "d", "e"].map(agent));
    submit(&app, &spec, true).await.unwrap();
    fake.wait_for_calls(2).await;
    let view = app.engine.agent_run_get(&admin_caller(), "r1").await.unwrap();
    let leased = view.run.steps.iter().filter(|it| it.status == StepStatus::Leased).count();
    assert_eq!(leased, 2);
    fake.release();
    let view = ended(&app, "r1").await;
    assert_eq!(aggregation(&view)["answer_votes"], json!({ "yes": 5 }));
    app.engine.shutdown().await;
}

/// Takes a step like a worker that stops right after it.
async fn taken_and_left(store: &Store, app: &TestApp, until_ms: u64) -> Vec<TakenAgentStep> {
    let now = app.clock.now();
    let take = AgentStepTake {
        worker: "gone".to_owned(),
        token: "token of the one that is gone".to_owned(),
        until: now.plus_millis(until_ms),
        now,
        limit: 1,
        per_executor: 8,
    };
    store.agent_runs().take_steps(&Behalf::Platform, &take).await.unwrap()
}

#[tokio::test]
async fn a_step_of_a_dead_worker_is_done_once_by_another() {
    let app = TestApp::new().await;
    app.start(SoleNode::Yes).await;
    let [fake] = app.executors([says("yes")]).await;
    submit(&app, &spec("r1", &["a"]), true).await.unwrap();
    let left = taken_and_left(&app.store, &app, 1_000).await;
    assert_eq!(left[0].agent_id, "a");
    app.engine.spawn_run_worker(worker("here"));
    app.clock.advance_ms(2_000);
    let view = ended(&app, "r1").await;
    assert_eq!(view.run.status, AgentRunStatus::Finalized);
    assert_eq!(executed(&fake).len(), 1);
    let leases: Vec<Value> = told(&app, "r1")
        .await
        .into_iter()
        .filter(|(kind, _)| kind == "STEP_LEASED")
        .map(|(_, body)| json!([body["worker"], body["again"]]))
        .collect();
    assert_eq!(leases, [json!(["gone", false]), json!(["here", true])]);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_stopping_worker_releases_its_steps() {
    let app = node().await;
    let [fake] = app.executors([gated(says("yes"))]).await;
    submit(&app, &spec("r1", &["a"]), true).await.unwrap();
    fake.wait_for_calls(1).await;
    app.engine.stop_rounds();
    let key = AgentRunKey { account: AccountId::admin(), id: "r1".to_owned() };
    let store = std::sync::Arc::clone(&app.store);
    let behalf = Behalf::Account(AccountId::admin());
    let released = async {
        loop {
            let run = store.agent_runs().get(&behalf, &key).await.unwrap().unwrap();
            if run.steps[0].status == StepStatus::Queued {
                return run;
            }
            tokio::task::yield_now().await;
        }
    };
    let run = tokio::time::timeout(PATIENCE, released).await.unwrap();
    assert_eq!((run.steps[0].attempt, &run.steps[0].lease), (1, &None));
    assert!(run.steps[0].begun_at.is_some(), "whoever takes it goes on with the same task");
    fake.release();
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_run_is_cancelled_with_the_key_that_submitted_it() {
    let app = node().await;
    let [fake] = app.executors([gated(says("yes"))]).await;
    let scopes = ["tasks:write", "tasks:read", "rounds:create"];
    let made = app.admin().post("/v1/api-keys", &json!({ "name": "a", "scopes": scopes })).await;
    let made = made.json();
    let order = json!({ "kickoff": true, "spec": spec("one", &["a"]) });
    let reply = app.with_key(made["key"].as_str().unwrap()).post("/v1/runs", &order).await;
    assert!(reply.status.is_success(), "{}", reply.text());
    fake.wait_for_calls(1).await;
    app.admin().delete(&format!("/v1/api-keys/{}", made["id"].as_str().unwrap())).await;
    let view = wait_until(&app, "one", |view| view.run.status.is_over()).await;
    assert_eq!(view.run.status, AgentRunStatus::Cancelled, "{:?}", view.run);
    let events = app.admin().get("/v1/runs/one/events").await.text();
    assert!(events.contains("the key that submitted it was revoked or has expired"), "{events}");
    let asked = fake.calls().into_iter().filter(|call| call.endpoint() == "execute").count();
    assert_eq!(asked, 1);
}
