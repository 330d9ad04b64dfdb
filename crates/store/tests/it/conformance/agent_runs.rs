//! Agent runs, and the queue of their steps.

use std::{collections::BTreeSet, sync::Arc};

use futures::future::join_all;
use jurat_core::{
    agent_run::{
        AgentRunAddition, AgentRunEvent, AgentRunEventKind, AgentRunFilter, AgentRunKey,
        AgentRunStatus, AgentStep, EventsStart, StepConclusion, StepStatus,
    },
    id::AccountId,
    list::ListPosition,
    time::Timestamp,
};
use jurat_store::{
    AgentRunConflict, AgentRunEventsQuery, AgentRunRecord, AgentRunRefusal, AgentRunState,
    AgentRunSubmit, AgentRunWrite, AgentStepRenewal, AgentStepTake, Behalf, NewAgentStep, Store,
    TakenAgentStep, WriteOutcome,
};
use serde_json::json;

use crate::{
    backend::Backend,
    samples::{account, at},
};

fn key(account: &AccountId, id: &str) -> AgentRunKey {
    AgentRunKey { account: account.clone(), id: id.to_owned() }
}

fn step(agent: &str, status: StepStatus, run_at: Timestamp) -> AgentStep {
    AgentStep {
        agent_id: agent.to_owned(),
        status,
        attempt: 1,
        last_attempt: 2,
        run_at,
        begun_at: None,
        lease: None,
        conclusion: None,
        error: None,
    }
}

fn state(status: AgentRunStatus, at: Timestamp) -> AgentRunState {
    AgentRunState {
        status,
        iteration: 0,
        explored: json!({}),
        result: None,
        error: None,
        updated_at: at,
        started_at: None,
        finished_at: None,
    }
}

/// A run with queued steps: each agent with its executor and its priority.
fn submit(account: &AccountId, id: &str, agents: &[(&str, &str, i32)]) -> AgentRunSubmit {
    let new = |(agent, executor, priority): &(&str, &str, i32)| NewAgentStep {
        step: step(agent, StepStatus::Queued, at(0)),
        executor: (*executor).to_owned(),
        priority: *priority,
        at_once: None,
    };
    AgentRunSubmit {
        run: key(account, id),
        ordered_by: Some("a key".to_owned()),
        task_type: "swarm".to_owned(),
        spec: json!({ "run_id": id }),
        spec_digest: format!("digest of {id}"),
        state: state(AgentRunStatus::Queued, at(0)),
        steps: agents.iter().map(new).collect(),
        events: vec![AgentRunEvent::new(
            AgentRunEventKind::RunCreated,
            json!({ "agents": agents.len() }),
        )],
        at: at(0),
        most_open: 10,
    }
}

async fn submitted(
    store: &Store,
    submit: &AgentRunSubmit,
) -> WriteOutcome<AgentRunAddition, AgentRunRefusal> {
    let behalf = Behalf::Account(submit.run.account.clone());
    store.agent_runs().submit(&behalf, submit, None).await.unwrap()
}

async fn got(store: &Store, run: &AgentRunKey) -> AgentRunRecord {
    let behalf = Behalf::Account(run.account.clone());
    store.agent_runs().get(&behalf, run).await.unwrap().unwrap()
}

fn take(worker: &str, now: i64, limit: u32, per_executor: u32) -> AgentStepTake {
    AgentStepTake {
        worker: worker.to_owned(),
        token: format!("token of {worker} at {now}"),
        until: at(now + 30),
        now: at(now),
        limit,
        per_executor,
    }
}

async fn taken(store: &Store, take: &AgentStepTake) -> Vec<TakenAgentStep> {
    store.agent_runs().take_steps(&Behalf::Platform, take).await.unwrap()
}

fn agents(steps: &[TakenAgentStep]) -> Vec<&str> {
    steps.iter().map(|step| step.agent_id.as_str()).collect()
}

async fn renewed(
    store: &Store,
    step: &TakenAgentStep,
    token: &str,
    until: i64,
) -> Option<AgentRunStatus> {
    let renewal =
        AgentStepRenewal { step: step.clone(), token: token.to_owned(), until: at(until) };
    match store.agent_runs().renew_step(&Behalf::Platform, &renewal, None).await.unwrap() {
        WriteOutcome::Done(status) => Some(status),
        WriteOutcome::Refused(_) => None,
        WriteOutcome::Repeated => panic!("there was no key"),
    }
}

/// Writes only one ended step of the run.
async fn ended(
    store: &Store,
    run: &AgentRunRecord,
    changed: AgentStep,
) -> WriteOutcome<(), AgentRunConflict> {
    let write = AgentRunWrite {
        run: run.key.clone(),
        expected_seq: run.seq,
        state: AgentRunState { updated_at: at(9), ..run.state.clone() },
        steps: vec![changed],
        events: vec![AgentRunEvent::new(
            AgentRunEventKind::StepCompleted,
            json!({ "agent_id": "a" }),
        )],
        at: at(9),
    };
    let behalf = Behalf::Account(run.key.account.clone());
    store.agent_runs().write(&behalf, &write, None).await.unwrap()
}

/// A row in every table of runs.
pub(crate) async fn with_everything(store: &Store, account: &AccountId) {
    submitted(store, &submit(account, "r-1", &[("a", "one", 0)])).await;
}

pub(crate) async fn a_run_reads_back_with_its_steps(backend: &Backend) {
    let store = Arc::clone(&backend.store);
    let ann = account("ann");
    let mut run = submit(&ann, "r", &[("b", "one", 1), ("a", "two", -5)]);
    run.state.status = AgentRunStatus::Created;
    let added = |is_new| AgentRunAddition { is_new, status: AgentRunStatus::Created };
    assert_eq!(submitted(&store, &run).await, WriteOutcome::Done(added(true)));
    let found = got(&store, &run.run).await;
    assert_eq!((found.spec, found.seq), (run.spec.clone(), 1));
    assert_eq!(found.state, run.state);
    assert_eq!(found.steps, [run.steps[0].step.clone(), run.steps[1].step.clone()]);
    assert_eq!(submitted(&store, &run).await, WriteOutcome::Done(added(false)));
    let other = AgentRunSubmit { spec_digest: "another".to_owned(), ..run.clone() };
    assert_eq!(submitted(&store, &other).await, WriteOutcome::Refused(AgentRunRefusal::Taken));
    let bob = Behalf::Account(account("bob"));
    let theirs = key(&account("bob"), "r");
    assert_eq!(store.agent_runs().get(&bob, &theirs).await.unwrap(), None);
    let crowded = AgentRunSubmit { most_open: 1, ..submit(&ann, "r2", &[("a", "one", 0)]) };
    assert_eq!(
        submitted(&store, &crowded).await,
        WriteOutcome::Refused(AgentRunRefusal::TooManyOpen)
    );
}

pub(crate) async fn steps_are_taken_by_age_and_within_a_run_by_priority(backend: &Backend) {
    let store = Arc::clone(&backend.store);
    let ann = account("ann");
    let older = submit(&ann, "r1", &[("low", "one", -1), ("high", "one", 5)]);
    let mut younger = submit(&ann, "r2", &[("loud", "one", i32::MAX)]);
    younger.steps[0].step.run_at = at(1);
    submitted(&store, &younger).await;
    submitted(&store, &older).await;
    assert_eq!(agents(&taken(&store, &take("w", 2, 1, 8)).await), ["high"]);
    assert_eq!(agents(&taken(&store, &take("w", 3, 1, 8)).await), ["low"]);
    assert_eq!(agents(&taken(&store, &take("w", 4, 1, 8)).await), ["loud"]);
    assert_eq!(taken(&store, &take("w", 5, 1, 8)).await, []);
    let run = got(&store, &older.run).await;
    assert_eq!((run.state.status, run.state.started_at), (AgentRunStatus::Running, Some(at(2))));
    assert_eq!(run.seq, 3, "each step that is taken is told");
    let lease = run.steps[1].lease.clone().unwrap();
    assert_eq!((lease.worker.as_str(), lease.until), ("w", at(32)));
    assert_eq!(run.steps[1].begun_at, Some(at(2)));
}

pub(crate) async fn an_executor_has_a_limited_number_of_concurrent_steps(backend: &Backend) {
    let store = Arc::clone(&backend.store);
    let ann = account("ann");
    let mut run =
        submit(&ann, "r", &[("a", "one", 0), ("b", "one", 0), ("c", "one", 0), ("d", "two", 0)]);
    submitted(&store, &run).await;
    assert_eq!(agents(&taken(&store, &take("w1", 1, 10, 2)).await), ["a", "b", "d"]);
    assert_eq!(taken(&store, &take("w2", 2, 10, 2)).await, []);
    assert_eq!(agents(&taken(&store, &take("w2", 3, 10, 3)).await), ["c"]);
    run = submit(&ann, "s", &[("a", "three", 0), ("b", "three", 0), ("c", "three", 0)]);
    for step in &mut run.steps {
        step.at_once = Some(2);
    }
    submitted(&store, &run).await;
    assert_eq!(taken(&store, &take("w3", 4, 10, 8)).await.len(), 2, "the run bounds it too");
    assert_eq!(taken(&store, &take("w3", 5, 10, 8)).await, []);
}

pub(crate) async fn accounts_share_the_steps_of_an_executor_fairly(backend: &Backend) {
    let store = &*backend.store;
    let (many, few) = (account("many"), account("few"));
    for number in 0..30 {
        let run = submit(&many, &format!("m{number:02}"), &[("a", "x", 0)]);
        submitted(store, &AgentRunSubmit { most_open: 100, ..run }).await;
    }
    let late = submit(&few, "r", &[("b", "x", 0), ("c", "x", 0)]);
    let mut late = AgentRunSubmit { at: at(5), ..late };
    for new in &mut late.steps {
        new.step.run_at = at(5);
    }
    submitted(store, &late).await;
    let of = |steps: &[TakenAgentStep], whose: &AccountId| {
        steps.iter().filter(|it| it.run.account == *whose).count()
    };
    let first = taken(store, &take("one", 10, 8, 3)).await;
    assert_eq!((of(&first, &many), of(&first, &few)), (2, 1), "{first:?}");
    // An account with more steps in progress waits for one with fewer.
    let second = taken(store, &take("two", 11, 1, 8)).await;
    assert_eq!((of(&second, &many), of(&second, &few)), (0, 1), "{second:?}");
    let third = taken(store, &take("three", 12, 8, 8)).await;
    assert_eq!((of(&third, &many), of(&third, &few)), (4, 0), "{third:?}");
}

pub(crate) async fn concurrent_workers_take_a_step_once(backend: &Backend) {
    let store = Arc::clone(&backend.store);
    let ann = account("ann");
    let names: Vec<String> = (0..24).map(|number| format!("a{number:02}")).collect();
    for run in ["r1", "r2", "r3"] {
        let agents: Vec<(&str, &str, i32)> = names
            .iter()
            .enumerate()
            .map(|(number, name)| (name.as_str(), if number % 2 == 0 { "one" } else { "two" }, 0))
            .collect();
        submitted(&store, &submit(&ann, run, &agents)).await;
    }
    let mut seen: BTreeSet<TakenAgentStep> = BTreeSet::new();
    let mut all = 0;
    for now in 1..20 {
        let askers = (0..4).map(|worker| {
            let store = Arc::clone(&store);
            async move { taken(&store, &take(&format!("w{worker}"), now, 3, 100)).await }
        });
        for steps in join_all(askers).await {
            all += steps.len();
            seen.extend(steps);
        }
    }
    assert_eq!((all, seen.len()), (72, 72), "each once");
}

pub(crate) async fn a_step_with_an_expired_lease_is_taken_over(backend: &Backend) {
    let store = Arc::clone(&backend.store);
    let ann = account("ann");
    let run = submit(&ann, "r", &[("a", "one", 0)]);
    submitted(&store, &run).await;
    let first = taken(&store, &take("w1", 1, 1, 1)).await;
    let step = first[0].clone();
    let late = got(&store, &run.run).await;
    assert_eq!(renewed(&store, &step, "token of w1 at 1", 40).await, Some(AgentRunStatus::Running));
    assert_eq!(taken(&store, &take("w2", 39, 1, 1)).await, [], "it was renewed");
    assert_eq!(taken(&store, &take("w2", 40, 1, 1)).await, std::slice::from_ref(&step));
    assert_eq!(renewed(&store, &step, "token of w1 at 1", 90).await, None);
    let now = got(&store, &run.run).await;
    assert_eq!(now.steps[0].begun_at, Some(at(1)), "it is the same attempt");
    let mut done = late.steps[0].clone();
    (done.status, done.lease) = (StepStatus::Succeeded, None);
    let refused = WriteOutcome::Refused(AgentRunConflict::Stale { seq: now.seq });
    assert_eq!(ended(&store, &late, done.clone()).await, refused, "a late writer changes nothing");
    assert_eq!(got(&store, &run.run).await, now);
    assert_eq!(ended(&store, &now, done).await, WriteOutcome::Done(()));
}

pub(crate) async fn a_change_of_a_run_is_atomic(backend: &Backend) {
    let store = Arc::clone(&backend.store);
    let ann = account("ann");
    let run = submit(&ann, "r", &[("a", "one", 0)]);
    submitted(&store, &run).await;
    taken(&store, &take("w", 1, 1, 1)).await;
    let before = got(&store, &run.run).await;
    let evidence = BTreeSet::from(["sha256:1".to_owned()]);
    let conclusion =
        StepConclusion { output: json!({ "answer": 1 }), candidate_id: "c".to_owned(), evidence };
    let mut step = before.steps[0].clone();
    step.status = StepStatus::Succeeded;
    step.lease = None;
    step.conclusion = Some(conclusion);
    let write = AgentRunWrite {
        run: run.run.clone(),
        expected_seq: before.seq,
        state: AgentRunState {
            status: AgentRunStatus::Finalized,
            iteration: 1,
            explored: json!({ "evidence": ["sha256:1"] }),
            result: Some(json!({ "final": true })),
            error: Some("none".to_owned()),
            updated_at: at(9),
            started_at: before.state.started_at,
            finished_at: Some(at(9)),
        },
        steps: vec![step.clone()],
        events: vec![
            AgentRunEvent::new(AgentRunEventKind::StepCompleted, json!({})),
            AgentRunEvent::new(AgentRunEventKind::RunFinalized, json!({ "iteration": 1 })),
        ],
        at: at(9),
    };
    let behalf = Behalf::Account(ann.clone());
    let written = store.agent_runs().write(&behalf, &write, None).await.unwrap();
    assert_eq!(written, WriteOutcome::Done(()));
    let after = got(&store, &run.run).await;
    assert_eq!(
        (after.state, after.steps, after.seq),
        (write.state.clone(), vec![step], before.seq + 2)
    );
    let again = store.agent_runs().write(&behalf, &write, None).await.unwrap();
    assert_eq!(again, WriteOutcome::Refused(AgentRunConflict::Stale { seq: before.seq + 2 }));
    let unknown = AgentRunWrite { run: key(&ann, "x"), ..write };
    let unknown = store.agent_runs().write(&behalf, &unknown, None).await.unwrap();
    assert_eq!(unknown, WriteOutcome::Refused(AgentRunConflict::Unknown));
}

pub(crate) async fn events_of_a_run_are_read_from_both_ends(backend: &Backend) {
    let store = Arc::clone(&backend.store);
    let ann = account("ann");
    let run = submit(&ann, "r", &[("a", "one", 0), ("b", "two", 0)]);
    submitted(&store, &run).await;
    taken(&store, &take("w", 1, 2, 1)).await;
    let behalf = Behalf::Account(ann);
    let events = async |from, limit| {
        let asked = AgentRunEventsQuery { run: run.run.clone(), from, limit };
        let found = store.agent_runs().events(&behalf, &asked).await.unwrap();
        found.iter().map(|it| (it.seq, it.event.kind.as_str())).collect::<Vec<_>>()
    };
    let all = [(1, "RUN_CREATED"), (2, "STEP_LEASED"), (3, "STEP_LEASED")];
    assert_eq!(events(EventsStart::After(0), 10).await, all);
    assert_eq!(events(EventsStart::After(2), 10).await, all[2..]);
    assert_eq!(events(EventsStart::Before(u64::MAX), 2).await, [all[2], all[1]]);
    assert_eq!(events(EventsStart::Before(2), 2).await, [all[0]]);
}

pub(crate) async fn runs_are_listed_newest_first_with_their_counts(backend: &Backend) {
    let store = Arc::clone(&backend.store);
    let ann = account("ann");
    for (number, id) in ["r1", "r2", "r3"].into_iter().enumerate() {
        let mut run = submit(&ann, id, &[("a", "one", 0), ("b", "two", 0)]);
        run.at = at(i64::try_from(number).unwrap());
        submitted(&store, &run).await;
    }
    taken(&store, &take("w", 5, 1, 1)).await;
    let behalf = Behalf::Account(ann.clone());
    let page = async |status, before: Option<ListPosition>| {
        let filter = AgentRunFilter { status, before, limit: 2 };
        store.agent_runs().page(&behalf, &ann, &filter).await.unwrap()
    };
    let first = page(None, None).await;
    assert_eq!(first.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), ["r3", "r2"]);
    assert_eq!(first[0].counts[&StepStatus::Queued], 2);
    assert_eq!(first[0].counts[&StepStatus::Failed], 0);
    let last = &first[1];
    let before = ListPosition { created_at: last.created_at, id: last.run_id.clone() };
    assert_eq!(page(None, Some(before)).await.len(), 1);
    let running = page(Some(AgentRunStatus::Running), None).await;
    assert_eq!(running.len(), 1);
    assert_eq!(running[0].counts[&StepStatus::Leased], 1);
}

pub(crate) async fn a_waiting_step_is_taken_when_it_is_due(backend: &Backend) {
    let store = Arc::clone(&backend.store);
    let mut run = submit(&account("ann"), "r", &[("a", "one", 0)]);
    run.steps[0].step = step("a", StepStatus::RetryWait, at(50));
    assert!(store.agent_runs().is_idle(&Behalf::Platform).await.unwrap());
    submitted(&store, &run).await;
    assert!(!store.agent_runs().is_idle(&Behalf::Platform).await.unwrap());
    let due = async || store.agent_runs().next_due(&Behalf::Platform).await.unwrap();
    assert_eq!(due().await, Some(at(50)));
    assert_eq!(taken(&store, &take("w", 49, 1, 1)).await, []);
    assert_eq!(agents(&taken(&store, &take("w", 50, 1, 1)).await), ["a"]);
    assert_eq!(due().await, Some(at(80)), "its lease ends then");
}

pub(crate) async fn another_account_sees_no_agent_runs(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (account("ann"), account("bob"));
    let run = submit(&ann, "r", &[("a", "one", 0)]);
    submitted(store, &run).await;
    let step = taken(store, &take("w", 1, 1, 1)).await.remove(0);
    let (agent_runs, behalf) = (store.agent_runs(), Behalf::Account(bob.clone()));
    let theirs = key(&bob, "r");
    assert_eq!(agent_runs.get(&behalf, &theirs).await.unwrap(), None);
    let before = got(store, &run.run).await;
    let stolen = AgentRunRecord { key: theirs.clone(), ..before.clone() };
    let written = ended(store, &stolen, before.steps[0].clone()).await;
    assert_eq!(written, WriteOutcome::Refused(AgentRunConflict::Unknown));
    let stolen = TakenAgentStep { run: theirs, ..step };
    let renewal =
        AgentStepRenewal { step: stolen, token: "token of w at 1".to_owned(), until: at(99) };
    let renewed = agent_runs.renew_step(&behalf, &renewal, None).await.unwrap();
    assert!(matches!(renewed, WriteOutcome::Refused(_)), "{renewed:?}");
    assert_eq!(got(store, &run.run).await, before);
}
