//! An agent run from its start to its end, with everything that can happen to its steps.

use std::collections::BTreeSet;

use jurat_core::{
    agent_run::{
        AgentRun, AgentRunCommand, AgentRunEvent, AgentRunEventKind, AgentRunRejection,
        AgentRunSpec, AgentRunStatus, AggregationSpec, RetrySpec, StepConclusion, StepLease,
        StepOutcome, StepStatus, TieBreak,
    },
    time::Timestamp,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::agent_runs::agent;

fn run(agents: &[&str]) -> AgentRun {
    let spec = AgentRunSpec {
        run_id: "r1".to_owned(),
        task_type: "swarm".to_owned(),
        shared_inputs: json!({}),
        agents: agents.iter().map(|id| agent(id)).collect(),
        contract: json!({}),
        verifiers: Vec::new(),
        per_executor: None,
        retry: RetrySpec::default(),
        aggregation: AggregationSpec::default(),
    };
    assert_eq!(spec.check(), []);
    let mut run = AgentRun::new(spec, at(0));
    run.act(AgentRunCommand::Kickoff, at(0)).unwrap();
    run
}

const fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Leases a step, as the store does for a worker.
fn lease(run: &mut AgentRun, agent: &str, token: &str) {
    let step = run.steps.iter_mut().find(|step| step.agent_id == agent).unwrap();
    step.status = StepStatus::Leased;
    step.begun_at = step.begun_at.or(Some(at(1)));
    let (token, worker) = (token.to_owned(), "w".to_owned());
    step.lease = Some(StepLease { token, until: at(30_000), worker });
    run.status =
        if run.status == AgentRunStatus::Queued { AgentRunStatus::Running } else { run.status };
}

fn ended(agent: &str, token: &str, outcome: StepOutcome) -> AgentRunCommand {
    AgentRunCommand::StepEnded { agent_id: agent.to_owned(), token: token.to_owned(), outcome }
}

fn says(answer: &str) -> StepOutcome {
    says_with(json!({ "answer": answer }), &[])
}

fn says_with(output: Value, evidence: &[&str]) -> StepOutcome {
    let evidence: BTreeSet<String> = evidence.iter().map(|it| (*it).to_owned()).collect();
    StepOutcome::Succeeded(StepConclusion { output, candidate_id: "c".to_owned(), evidence })
}

fn fails() -> StepOutcome {
    StepOutcome::Failed { error: "it broke".to_owned(), is_lasting: false }
}

fn kinds(events: &[AgentRunEvent]) -> Vec<&'static str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

fn do_step(run: &mut AgentRun, agent: &str, outcome: StepOutcome) -> Vec<AgentRunEvent> {
    lease(run, agent, "t");
    run.act(ended(agent, "t", outcome), at(10)).unwrap()
}

#[test]
fn the_last_step_ends_the_run() {
    let mut run = run(&["a", "b", "c"]);
    assert_eq!(kinds(&do_step(&mut run, "a", says("Paris"))), ["STEP_COMPLETED"]);
    do_step(&mut run, "b", says("London"));
    assert_eq!(run.status, AgentRunStatus::Running);
    let events = do_step(&mut run, "c", says("paris"));
    assert_eq!(kinds(&events), ["STEP_COMPLETED", "RUN_FINALIZED"]);
    assert_eq!(events[1].body["final_answer"], "Paris");
    assert_eq!(run.finished_at, Some(at(10)));
    let aggregation = &run.result.as_ref().unwrap()["aggregation"];
    assert_eq!(aggregation["answer_votes"], json!({ "Paris": 2, "London": 1 }));
    assert_eq!(aggregation["steps"][0]["task_id"], "run-r1:a:0:1");
    assert_eq!(run.result.as_ref().unwrap()["counts"]["succeeded"], 3);
}

#[test]
fn a_failed_step_waits_and_retries_with_a_new_task() {
    let mut run = run(&["a"]);
    let events = do_step(&mut run, "a", fails());
    assert_eq!(kinds(&events), ["STEP_RETRY_WAIT"]);
    assert_eq!(events[0].body["task_id"], "run-r1:a:0:1");
    let step = run.step("a").unwrap().clone();
    assert_eq!((step.status, step.attempt), (StepStatus::RetryWait, 2));
    assert_eq!((step.run_at, step.begun_at), (at(1_510), None));
    let events = do_step(&mut run, "a", fails());
    assert_eq!(kinds(&events), ["STEP_FAILED", "RUN_FAILED"]);
    assert_eq!(run.error.as_deref(), Some("no agent succeeded; a: it broke"));
}

#[test]
fn a_permanent_failure_is_not_retried() {
    let mut run = run(&["a"]);
    let lasting = StepOutcome::Failed { error: "no such executor".to_owned(), is_lasting: true };
    assert_eq!(kinds(&do_step(&mut run, "a", lasting)), ["STEP_FAILED", "RUN_FAILED"]);
}

#[test]
fn an_earlier_conclusion_remains_if_a_later_iteration_fails() {
    let mut run = run(&["a", "b"]);
    run.spec.retry.max_attempts = 1;
    run.steps.iter_mut().for_each(|step| step.last_attempt = 1);
    run.spec.aggregation.tie.chain = vec![TieBreak::Reexplore, TieBreak::Stochastic];
    do_step(&mut run, "a", says("yes"));
    let events = do_step(&mut run, "b", says("no"));
    assert_eq!(kinds(&events), ["STEP_COMPLETED", "RUN_TIE_REEXPLORE_TRIGGERED"]);
    do_step(&mut run, "a", fails());
    let events = do_step(&mut run, "b", fails());
    assert_eq!(kinds(&events), ["STEP_FAILED", "RUN_FINALIZED"]);
    let aggregation = &run.result.as_ref().unwrap()["aggregation"];
    assert_eq!(aggregation["answer_votes"], json!({ "yes": 1, "no": 1 }));
    assert_eq!(aggregation["steps"][0]["status"], "FAILED");
}

#[test]
fn a_late_worker_changes_nothing() {
    let mut run = run(&["a"]);
    lease(&mut run, "a", "first");
    lease(&mut run, "a", "second");
    let before = run.clone();
    assert_eq!(run.act(ended("a", "first", says("x")), at(5)), Err(AgentRunRejection::LeaseLost));
    assert_eq!(run, before);
    run.act(ended("a", "second", says("y")), at(6)).unwrap();
    assert_eq!(run.act(ended("a", "second", says("z")), at(7)), Err(AgentRunRejection::LeaseLost));
    assert_eq!(run.result.unwrap()["aggregation"]["final_answer"], "y");
}

#[test]
fn a_worker_that_stops_returns_its_step_with_the_same_task() {
    let mut run = run(&["a"]);
    assert_eq!(kinds(&do_step(&mut run, "a", StepOutcome::Released)), ["STEP_RELEASED"]);
    let step = run.step("a").unwrap();
    assert_eq!((step.status, step.attempt), (StepStatus::Queued, 1));
    assert_eq!(step.begun_at, Some(at(1)), "the contract stays the same");
}

#[test]
fn a_cancelled_run_waits_for_steps_in_progress() {
    let mut run = run(&["a", "b"]);
    lease(&mut run, "a", "t");
    let events = run.act(AgentRunCommand::Cancel { reason: None }, at(5)).unwrap();
    assert_eq!(kinds(&events), ["RUN_CANCEL_REQUESTED", "STEP_CANCELLED"]);
    assert_eq!(run.status, AgentRunStatus::Cancelling);
    assert_eq!(run.act(AgentRunCommand::Cancel { reason: None }, at(6)), Ok(vec![]));
    let events = run.act(ended("a", "t", StepOutcome::Cancelled), at(7)).unwrap();
    assert_eq!(kinds(&events), ["STEP_CANCELLED", "RUN_CANCELLED"]);
    assert_eq!(
        run.act(AgentRunCommand::Cancel { reason: None }, at(8)),
        Err(AgentRunRejection::Over)
    );
}

#[test]
fn a_retry_repeats_the_steps_that_did_not_succeed() {
    let mut run = run(&["a", "b"]);
    do_step(&mut run, "a", says("yes"));
    do_step(&mut run, "b", fails());
    assert_eq!(run.act(AgentRunCommand::Retry, at(9)), Err(AgentRunRejection::NotOver));
    do_step(&mut run, "b", fails());
    assert_eq!(run.status, AgentRunStatus::Finalized, "one agent is enough");
    let events = run.act(AgentRunCommand::Retry, at(20)).unwrap();
    assert_eq!(events[0].body, json!({ "agents": ["b"] }));
    assert_eq!(run.step("b").unwrap().attempt, 3, "no task is used twice");
    assert_eq!((&run.result, run.finished_at), (&None, None));
    do_step(&mut run, "b", says("yes"));
    assert_eq!(run.result.as_ref().unwrap()["aggregation"]["answer_votes"], json!({ "yes": 2 }));
    assert_eq!(run.act(AgentRunCommand::Retry, at(30)), Err(AgentRunRejection::NothingToRetry));
}

#[test]
fn tied_agents_are_asked_again_with_the_reason() {
    let mut run = run(&["a", "b"]);
    run.spec.aggregation.tie.chain = vec![TieBreak::Reexplore, TieBreak::Stochastic];
    do_step(&mut run, "a", says_with(json!({ "answer": "yes" }), &["d1"]));
    let events = do_step(&mut run, "b", says("no"));
    assert_eq!(kinds(&events), ["STEP_COMPLETED", "RUN_TIE_REEXPLORE_TRIGGERED"]);
    assert_eq!((run.status, run.iteration), (AgentRunStatus::Queued, 1));
    assert_eq!(
        run.signal.as_ref().unwrap().document(),
        json!({
            "type": "NEED_MORE_EVIDENCE", "path": "tie", "iteration": 1,
            "unresolved_buckets": ["answer"], "require_new_evidence": true,
            "null_primary_kind": null, "null_reason": null,
        })
    );
    assert_eq!(run.task_id("a", 1), "run-r1:a:1:1");
    assert!(run.explored.evidence.contains("d1"));
    do_step(&mut run, "a", says("yes"));
    let events = do_step(&mut run, "b", says("yes"));
    assert_eq!(
        events[1].body,
        json!({ "final_decision": null, "final_answer": "yes", "iteration": 1 })
    );
}

#[test]
fn commands_in_the_wrong_order_are_refused() {
    let mut run = run(&["a"]);
    assert_eq!(run.act(AgentRunCommand::Kickoff, at(1)), Err(AgentRunRejection::Begun));
    do_step(&mut run, "a", says("x"));
    assert_eq!(
        run.act(AgentRunCommand::Cancel { reason: None }, at(2)),
        Err(AgentRunRejection::Over)
    );
    let ids: BTreeSet<String> = [("a-b", "c"), ("a", "b-c")]
        .into_iter()
        .map(|(id, agent)| {
            let mut other = run.clone();
            other.spec.run_id = id.to_owned();
            other.task_id(agent, 1)
        })
        .collect();
    assert_eq!(ids.len(), 2, "no two runs share a task");
}

#[derive(Debug, Clone)]
enum Act {
    Lease(usize, u8),
    End(usize, u8, u8),
    Cancel,
    Retry,
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0_usize..3, 0_u8..3).prop_map(|(step, token)| Act::Lease(step, token)),
        6 => (0_usize..3, 0_u8..3, 0_u8..6).prop_map(|(step, token, how)| Act::End(step, token, how)),
        1 => Just(Act::Cancel),
        1 => Just(Act::Retry),
    ]
}

proptest! {
    /// Whatever happens in whatever order: a run has ended exactly when all its steps have, it ends
    /// once for each start, and no task serves two attempts.
    #[test]
    fn a_run_ends_once_and_only_when_all_its_steps_have(acts in proptest::collection::vec(acts(), 1..80)) {
        let ids = ["a", "b", "c"];
        let mut run = run(&ids);
        run.spec.aggregation.tie.chain = vec![TieBreak::Reexplore, TieBreak::Stochastic];
        let mut begun: BTreeSet<String> = BTreeSet::new();
        let mut is_open = true;
        for (now, act) in (1_i64..).zip(acts) {
            let events = match act {
                Act::Lease(step, token) => {
                    if run.steps[step].is_waiting() && !run.status.is_over() {
                        let is_new = run.steps[step].begun_at.is_none();
                        lease(&mut run, ids[step], &token.to_string());
                        let task = run.task_id(ids[step], run.steps[step].attempt);
                        prop_assert!(begun.insert(task) || !is_new, "a task is begun once");
                    }
                    Vec::new()
                }
                Act::End(step, token, how) => {
                    let outcome = match how {
                        0 => fails(),
                        1 => StepOutcome::Cancelled,
                        2 => StepOutcome::Released,
                        3 => says("no"),
                        _ => says("yes"),
                    };
                    let before = run.clone();
                    let acted = run.act(ended(ids[step], &token.to_string(), outcome), at(now));
                    if acted.is_err() {
                        prop_assert_eq!(&run, &before);
                    }
                    acted.unwrap_or_default()
                }
                Act::Cancel => run.act(AgentRunCommand::Cancel { reason: None }, at(now)).unwrap_or_default(),
                Act::Retry => {
                    let events = run.act(AgentRunCommand::Retry, at(now)).unwrap_or_default();
                    is_open |= !events.is_empty();
                    events
                }
            };
            for event in events.iter().filter(|event| event.kind.is_end()) {
                prop_assert!(is_open, "{:?} comes after the end", event.kind);
                is_open = false;
            }
            let all_over = run.steps.iter().all(|step| step.status.is_over());
            prop_assert_eq!(run.status.is_over(), all_over);
            prop_assert_eq!(run.status.is_over(), !is_open);
            prop_assert_eq!(run.result.is_some(), !is_open);
            let is_held = |it: &jurat_core::agent_run::AgentStep| it.lease.is_some();
            prop_assert!(run.steps.iter().all(|it| is_held(it) == (it.status == StepStatus::Leased)));
        }
    }
}

#[test]
fn every_kind_of_event_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = AgentRunEventKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(names.len(), AgentRunEventKind::ALL.len());
}
