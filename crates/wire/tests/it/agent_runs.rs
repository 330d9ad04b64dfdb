//! Decoding of agent runs: accepted specs, messages about faulty ones, and the tasks of steps.

use jurat_core::{
    agent_run::{
        AgentRun, AgentRunCommand, AgentRunSpec, ReexploreSignal, TieBreak, UnresolvedCause,
    },
    canonical::digest_json,
    code::ProblemCode,
    time::Timestamp,
};
use jurat_wire::{
    api::agent_runs::{body, decode_cancel, decode_submit, located},
    executor::{TaskSubmission, step_submission},
    problem::Problem,
};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn spec() -> Value {
    json!({
        "run_id": "r1",
        "shared_inputs": { "topic": "bridges" },
        "agents": [
            { "agent_id": "a", "executor": "one", "prompt": "what is so?" },
            { "agent_id": "b", "executor": "two", "profile": "careful", "prompt": "is it so?",
              "weight": 2.5, "priority": -3 },
        ],
    })
}

fn run(spec: &Value) -> AgentRun {
    AgentRun::new(decode_submit(spec, NOW).unwrap().spec, NOW)
}

fn step(run: &AgentRun, agent_id: &str) -> TaskSubmission {
    step_submission(run, agent_id).unwrap().unwrap()
}

fn refused(body: &Value) -> Problem {
    decode_submit(body, NOW).unwrap_err()
}

fn fields(problem: &Problem) -> Vec<String> {
    let body = problem.body();
    let errors = body["errors"].as_array().unwrap().iter();
    errors.map(|it| it["field"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_spec_is_taken_alone_and_with_the_word_to_begin() {
    let bare = decode_submit(&spec(), NOW).unwrap();
    assert!(!bare.kickoff);
    assert_eq!(bare.spec.task_type, "swarm");
    assert_eq!((bare.spec.retry.max_attempts, bare.spec.retry.backoff_ms), (2, 1_500));
    assert_eq!(bare.spec.aggregation.tie.chain, [TieBreak::Stochastic]);
    assert_eq!(
        (bare.spec.agents[0].weight, bare.spec.agents[0].profile.as_str()),
        (1.0, "default")
    );
    assert_eq!((bare.spec.agents[1].weight, bare.spec.agents[1].priority), (2.5, -3));
    for name in ["spec", "run_spec"] {
        let order = decode_submit(&json!({ "kickoff": true, name: spec() }), NOW).unwrap();
        assert!(order.kickoff);
        assert_eq!((order.spec, order.spec_digest), (bare.spec.clone(), digest_json(&spec())));
    }
}

#[test]
fn all_that_is_wrong_with_a_spec_is_named() {
    let mut wrong = spec();
    wrong["agents"][0]["weight"] = json!("heavy");
    wrong["agents"][1]["executor"] = json!("no name");
    wrong["agents"][1]["surplus"] = json!(1);
    wrong["aggregation"] = json!({ "tie_policy": { "chain": ["COIN"] } });
    wrong["retry"] = json!({ "max_attempts": 0 });
    wrong["word"] = json!(1);
    let problem = refused(&wrong);
    assert_eq!(problem.code, ProblemCode::ValidationError);
    assert_eq!(
        fields(&problem),
        [
            "agents.1.surplus",
            "word",
            "agents.0.weight",
            "agents.1.executor",
            "retry.max_attempts",
            "aggregation.tie_policy.chain",
        ]
    );
    let mut twice = json!({ "spec": spec() });
    twice["spec"]["agents"][1]["agent_id"] = json!("a");
    assert_eq!(fields(&refused(&twice)), ["spec.agents.1.agent_id"]);
}

#[test]
fn a_nul_is_refused_with_its_field() {
    for (pointer, field) in [
        ("/task_type", "task_type"),
        ("/feed_key", "feed_key"),
        ("/agents/0/profile", "agents.0.profile"),
        ("/agents/1/prompt", "agents.1.prompt"),
    ] {
        let mut wrong = spec();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        wrong.pointer_mut(parent).unwrap()[name] = json!("a\0b");
        assert_eq!(fields(&refused(&wrong)), [field]);
    }
    let problem = decode_cancel(&json!({ "reason": "a\0b" })).unwrap_err();
    assert_eq!(problem.field.as_deref(), Some("reason"));
}

#[test]
fn what_is_found_later_is_named_as_it_stands_in_the_submission() {
    let found = |field: &str| {
        Problem::new(ProblemCode::ValidationError, format!("`{field}` is so")).at(field)
    };
    let named = |body: &Value, field: &str| {
        let problem = located(body, found(field));
        assert_eq!(problem.detail, format!("`{}` is so", problem.field.as_deref().unwrap()));
        problem.field.unwrap()
    };
    assert_eq!(named(&spec(), "agents.0.executor"), "agents.0.executor");
    let mut order = json!({ "kickoff": true, "run_spec": spec() });
    assert_eq!(named(&order, "agents.0.executor"), "run_spec.agents.0.executor");
    assert_eq!(named(&order, "output_schema"), "run_spec.contract.output_schema");
    order["run_spec"]["agents"][1]["contract"] = json!({ "output_schema": {} });
    assert_eq!(named(&order, "output_schema"), "run_spec.agents.1.contract.output_schema");
}

#[test]
fn what_is_for_networks_of_nodes_is_refused_or_kept() {
    let mut labelled = spec();
    labelled["feed_key"] = json!("venue.x");
    let order = decode_submit(&labelled, NOW).unwrap();
    assert_eq!(order.labels["feed_key"], "venue.x");
    assert_eq!(order.spec_digest, digest_json(&labelled));
    let stored = order.spec.to_document(&order.labels);
    assert_eq!(stored["feed_key"], "venue.x");
    assert_eq!(AgentRunSpec::from_document(&stored).unwrap(), order.spec);
    // An earlier version of the program reads the stored form as a request.
    assert_eq!(decode_submit(&stored, NOW).unwrap().spec, order.spec);
    let mut rounds = spec();
    rounds["round_policy"] = json!({ "min_participants": 3 });
    let problem = refused(&rounds);
    assert_eq!(
        (problem.code, problem.field.as_deref()),
        (ProblemCode::NotSupported, Some("round_policy"))
    );
}

#[test]
fn a_contract_that_no_task_could_have_is_refused_where_it_was_written() {
    let mut wrong = spec();
    wrong["contract"] = json!({ "budget": { "time_ms": 0 } });
    // The fault affects both agents, but is reported once.
    assert_eq!(fields(&refused(&wrong)), ["contract.budget.time_ms"]);
    assert!(!refused(&wrong).detail.contains(';'), "{}", refused(&wrong).detail);
    wrong["agents"][1]["contract"] = json!({ "budget": { "max_steps": 0, "time_ms": "x" } });
    assert_eq!(
        fields(&refused(&wrong)),
        [
            "contract.budget.time_ms",
            "agents.1.contract.budget.time_ms",
            "agents.1.contract.budget.max_steps"
        ]
    );
    let mut wrong = spec();
    wrong["agents"][1]["contract"] = json!({ "acceptance": { "surplus": true } });
    assert_eq!(fields(&refused(&wrong)), ["agents.1.contract.acceptance.surplus"]);
    let mut wrong = spec();
    wrong["contract"] = json!({ "inputs": {} });
    assert_eq!(fields(&refused(&wrong)), ["contract.inputs"]);
}

#[test]
fn a_step_is_a_task_with_the_inputs_of_its_agent() {
    let run = run(&spec());
    let order = step(&run, "b");
    assert_eq!(order.contract.task_id, "run-r1:b:0:1");
    assert_eq!(
        order.contract.inputs,
        json!({ "topic": "bridges", "prompt": "is it so?", "agent_id": "b" })
    );
    assert_eq!(
        (order.executors, order.profile),
        (vec!["two".to_owned()], Some("careful".to_owned()))
    );
    assert!(order.verifiers.is_empty());
    assert_eq!(order.contract.expiry_ms, 1_800_000_600_000);
}

#[test]
fn the_task_of_an_attempt_is_the_same_whoever_makes_it() {
    let mut run = run(&spec());
    run.steps[0].begun_at = Some(NOW.plus_millis(5_000));
    let one = step(&run, "a");
    run.steps[0].run_at = NOW.plus_millis(9_000);
    assert_eq!(step(&run, "a"), one);
    assert_eq!(one.contract.expiry_ms, 1_800_000_605_000);
}

#[test]
fn an_agent_that_is_asked_once_more_hears_why() {
    let mut run = run(&spec());
    let unresolved = vec![(jurat_core::agent_run::BucketName::Answer, UnresolvedCause::Tie)];
    run.signal = Some(ReexploreSignal { iteration: 1, unresolved, require_new_evidence: true });
    run.iteration = 1;
    let order = step(&run, "a");
    assert_eq!(order.contract.task_id, "run-r1:a:1:1");
    let signal = &order.contract.inputs["_aggregation_signal"];
    assert_eq!(signal["type"], "NEED_MORE_EVIDENCE");
    assert_eq!(signal["unresolved_buckets"], json!(["answer"]));
}

#[test]
fn a_run_and_then_its_agents_say_otherwise_than_the_sample() {
    let mut spec = spec();
    spec["verifiers"] = json!(["v1", "v2", "v3"]);
    spec["contract"] = json!({
        "output_schema": { "type": "object", "required": ["decision"] },
        "budget": { "time_ms": 5_000, "explore_cost_units": 9_000 },
        "acceptance": {
            "quorum_threshold": 2,
            "verifier_policy": { "policy_id": "vp.crosscheck.v1", "policy_params": { "x": 1 } },
        },
    });
    spec["agents"][0]["contract"] = json!({ "budget": { "time_ms": 7_000_000 } });
    spec["agents"][0]["verifiers"] = json!(["v4", "v5"]);
    let run = run(&spec);
    let (one, other) = (step(&run, "a"), step(&run, "b"));
    assert_eq!((one.contract.budget.time_ms, other.contract.budget.time_ms), (7_000_000, 5_000));
    assert_eq!(one.contract.expiry_ms, 1_800_007_060_000, "it lasts as long as its budget");
    let contract = other.contract;
    assert_eq!(contract.output_schema, json!({ "type": "object", "required": ["decision"] }));
    assert_eq!(contract.acceptance.verifier_policy.policy_id, "vp.crosscheck.v1");
    assert!(contract.acceptance.verifier_policy.policy_hash.starts_with("sha256:"));
    // Members that follow from these are derived.
    assert_eq!(contract.assignment.verify.max_verifiers, 2);
    assert_eq!(contract.budget.reuse_verify_time_ms, 5_000);
    assert_eq!(contract.budget.cost_units, 9_650);
    assert_eq!(one.verifiers, ["v4", "v5"]);
    assert_eq!(other.verifiers, ["v1", "v2", "v3"]);
}

#[test]
fn a_run_is_told_with_its_counts_and_its_steps() {
    let mut run = run(&spec());
    run.act(AgentRunCommand::Kickoff, NOW).unwrap();
    run.steps[1].begun_at = Some(NOW);
    let told = json!(body(&run));
    assert_eq!(told["counts"]["queued"], 2);
    assert_eq!(told["counts"]["remote_dispatched"], 0);
    assert_eq!((&told["status"], &told["started_at"]), (&json!("QUEUED"), &json!(null)));
    assert_eq!(told["steps"][0]["task_id"], json!(null));
    assert_eq!(told["steps"][1]["task_id"], "run-r1:b:0:1");
}
