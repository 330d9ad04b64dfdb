//! Runs of several agents, and the queue of their steps.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use jurat_core::{
    id::AccountId,
    task_run::{RunStatus, StepStatus},
    time::Timestamp,
};
use jurat_store::{
    Behalf, EventsFrom, HeldStep, NewRunEvent, NewStep, NotHeld, Position, RunAdvance,
    RunEventsAsked, RunKey, RunNote, RunRefused, RunSubmit, RunSubmitRefused, StepFinish,
    StepFinished, StepLease, StepOutcome, StepRenewal, StepTake, Store, TakenStep, TaskRun,
    TaskRunFilter, TaskTake, Written,
};
use serde_json::{Value, json};

use super::workflows::behalf;
use crate::{
    backend::Backend,
    samples::{account, at},
};

fn key(account: &AccountId, id: &str) -> RunKey {
    RunKey { account: account.clone(), id: id.to_owned() }
}

fn step(id: &str, executor: &str, priority: i32, millis: i64) -> NewStep {
    NewStep {
        id: id.to_owned(),
        executor: executor.to_owned(),
        body: json!({"prompt": id, "weight": 0.1}),
        priority,
        attempt: 1,
        run_at: at(millis),
    }
}

fn event(kind: &str) -> NewRunEvent {
    NewRunEvent { kind: kind.to_owned(), body: json!({"why": kind}) }
}

fn new_run(account: &AccountId, id: &str, steps: Vec<NewStep>) -> RunSubmit {
    RunSubmit {
        run: key(account, id),
        task_type: "swarm".to_owned(),
        spec: json!({"run_id": id}),
        spec_digest: format!("sha256:{id}"),
        explored: json!({"iterations": 0}),
        steps,
        events: vec![event("RUN_CREATED"), event("RUN_KICKOFF")],
        is_kicked_off: true,
        at: at(10),
        most_open: 1_000,
    }
}

async fn submitted(store: &dyn Store, submit: &RunSubmit) -> TaskRun {
    let whose = behalf(&submit.run.account);
    match store.tasks().task_run_submit(&whose, submit, None).await.unwrap() {
        Written::Done(done) => done.run,
        other => panic!("{other:?}"),
    }
}

async fn get(store: &dyn Store, run: &RunKey) -> TaskRun {
    store.tasks().task_run_get(&behalf(&run.account), run).await.unwrap().unwrap()
}

async fn counts(store: &dyn Store, run: &RunKey) -> BTreeMap<StepStatus, u32> {
    store.tasks().task_run_counts(&behalf(&run.account), run).await.unwrap()
}

fn take(worker: &str, millis: i64, limit: u32) -> StepTake {
    StepTake {
        lease: StepLease {
            worker: worker.to_owned(),
            token: format!("{worker}-{millis}"),
            until: at(millis + 1_000),
        },
        now: at(millis),
        limit,
        at_once: BTreeMap::new(),
        at_once_otherwise: 100,
    }
}

async fn taken(store: &dyn Store, take: &StepTake) -> Vec<TakenStep> {
    match store.tasks().task_run_take_steps(&Behalf::Platform, take, None).await.unwrap() {
        Written::Done(steps) => steps,
        other => panic!("{other:?}"),
    }
}

fn ids(steps: &[TakenStep]) -> Vec<&str> {
    steps.iter().map(|it| it.step.step.id.as_str()).collect()
}

fn held(taken: &TakenStep) -> HeldStep {
    let token = taken.step.lease.as_ref().unwrap().token.clone();
    HeldStep { run: taken.step.run.clone(), id: taken.step.step.id.clone(), token }
}

async fn finish(
    store: &dyn Store,
    held: &HeldStep,
    outcome: StepOutcome,
    millis: i64,
) -> Written<StepFinished, NotHeld> {
    let events = vec![event("STEP_COMPLETED")];
    let finish = StepFinish { held: held.clone(), outcome, events, at: at(millis) };
    let whose = behalf(&held.run.account);
    store.tasks().task_run_step_finish(&whose, &finish, None).await.unwrap()
}

async fn finished(
    store: &dyn Store,
    held: &HeldStep,
    outcome: StepOutcome,
    millis: i64,
) -> StepFinished {
    match finish(store, held, outcome, millis).await {
        Written::Done(done) => done,
        other => panic!("{other:?}"),
    }
}

fn said(answer: &str) -> StepOutcome {
    StepOutcome::Succeeded { output: json!({"answer": answer, "confidence": 0.1}) }
}

fn advance(run: &TaskRun, status: RunStatus, result: Option<Value>) -> RunAdvance {
    RunAdvance {
        note: RunNote { run: run.key.clone(), events: vec![event("RUN_FINALIZED")], at: at(500) },
        expected_seq: run.seq,
        status,
        steps: vec![],
        explored: json!({"iterations": 1}),
        result,
        error: None,
    }
}

async fn advanced(store: &dyn Store, advance: &RunAdvance) -> Written<TaskRun, RunRefused> {
    let whose = behalf(&advance.note.run.account);
    store.tasks().task_run_advance(&whose, advance, None).await.unwrap()
}

/// A run with a row in every table that belongs to runs.
pub(crate) async fn with_everything(store: &dyn Store, account: &AccountId) {
    submitted(store, &new_run(account, "r-1", vec![step("a", "one", 0, 10)])).await;
}

pub(crate) async fn a_run_goes_from_its_spec_to_its_result(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let submit = RunSubmit {
        is_kicked_off: false,
        ..new_run(&alice, "r-1", vec![step("a", "one", 0, 10), step("b", "two", 0, 10)])
    };
    let run = submitted(store, &submit).await;
    assert_eq!((run.status, run.seq, run.due_at), (RunStatus::Created, 2, None));
    assert_eq!((&run.spec, &run.explored), (&submit.spec, &submit.explored));
    assert_eq!(taken(store, &take("w", 20, 10)).await, [], "nobody kicked it off");
    let note = RunNote { run: run.key.clone(), events: vec![event("RUN_KICKOFF")], at: at(20) };
    let whose = behalf(&alice);
    let kicked = store.tasks().task_run_kickoff(&whose, &note, None).await.unwrap();
    assert!(matches!(kicked, Written::Done(run) if run.status == RunStatus::Queued));
    let again = store.tasks().task_run_kickoff(&whose, &note, None).await.unwrap();
    assert_eq!(again, Written::Refused(RunRefused::Is(RunStatus::Queued)));

    let steps = taken(store, &take("w", 30, 10)).await;
    assert_eq!(ids(&steps), ["a", "b"]);
    assert_eq!(
        (steps[0].run_status, steps[0].step.status),
        (RunStatus::Running, StepStatus::Leased)
    );
    assert_eq!(steps[0].step.step.body, submit.steps[0].body);
    assert_eq!(get(store, &run.key).await.started_at, Some(at(30)));
    assert_eq!(taken(store, &take("x", 31, 10)).await, []);

    let first = finished(store, &held(&steps[0]), said("yes"), 40).await;
    assert!(!first.was_last);
    let last =
        finished(store, &held(&steps[1]), StepOutcome::Failed { error: "no".into() }, 41).await;
    assert!(last.was_last);
    let now = get(store, &run.key).await;
    assert_eq!((now.seq, now.due_at), (last.seq, Some(at(41))));
    let due = TaskTake { now: at(50), until: at(90), limit: 10 };
    let keys = store.tasks().task_run_take_due(&Behalf::Platform, &due, None).await.unwrap();
    assert_eq!(keys, Written::Done(vec![run.key.clone()]));

    let end = advance(&now, RunStatus::Finalized, Some(json!({"final_answer": "yes"})));
    let Written::Done(ended) = advanced(store, &end).await else { panic!("it was not ended") };
    assert_eq!(
        (ended.status, ended.finished_at, ended.due_at),
        (RunStatus::Finalized, Some(at(500)), None)
    );
    assert_eq!(ended.result, end.result);
    assert_eq!(get(store, &run.key).await, ended);
    let stale = Written::Refused(RunRefused::Stale { seq: ended.seq });
    assert_eq!(advanced(store, &end).await, stale, "a run ends once");
    assert_eq!(
        counts(store, &run.key).await,
        BTreeMap::from([(StepStatus::Succeeded, 1), (StepStatus::Failed, 1)])
    );
    let stored = store.tasks().task_run_steps(&whose, &run.key).await.unwrap();
    assert_eq!(stored[0].output, Some(json!({"answer": "yes", "confidence": 0.1})));
    assert_eq!((stored[1].error.as_deref(), &stored[1].lease), (Some("no"), &None));
}

pub(crate) async fn a_run_is_submitted_once(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let submit = new_run(&alice, "r-1", vec![step("a", "one", 0, 10)]);
    let run = submitted(store, &submit).await;
    assert_eq!(submitted(store, &RunSubmit { at: at(99), ..submit.clone() }).await, run);
    let other = RunSubmit { spec_digest: "sha256:other".to_owned(), ..submit.clone() };
    let refused = store.tasks().task_run_submit(&behalf(&alice), &other, None).await.unwrap();
    assert_eq!(refused, Written::Refused(RunSubmitRefused::Taken));
    let full = RunSubmit { most_open: 1, ..new_run(&alice, "r-2", vec![]) };
    let refused = store.tasks().task_run_submit(&behalf(&alice), &full, None).await.unwrap();
    assert_eq!(refused, Written::Refused(RunSubmitRefused::TooManyOpen));
    assert_eq!(counts(store, &run.key).await, BTreeMap::from([(StepStatus::Queued, 1)]));
}

pub(crate) async fn steps_are_taken_by_priority_and_then_by_age(backend: &Backend) {
    let store = &*backend.store;
    let steps = vec![
        step("old", "one", 0, 10),
        step("older", "two", 0, 5),
        step("urgent", "one", 7, 30),
        step("least", "two", -3, 1),
    ];
    submitted(store, &new_run(&account("alice"), "r-1", steps)).await;
    submitted(store, &new_run(&account("bob"), "r-1", vec![step("bobs", "one", 0, 7)])).await;
    assert_eq!(ids(&taken(store, &take("w", 40, 3)).await), ["urgent", "older", "bobs"]);
    assert_eq!(ids(&taken(store, &take("w", 41, 3)).await), ["old", "least"]);
    assert_eq!(taken(store, &take("w", 42, 3)).await, []);
}

pub(crate) async fn an_executor_does_no_more_at_once_than_it_can(backend: &Backend) {
    let store = &*backend.store;
    let second = backend.second().await;
    let steps = (0..20).map(|it| step(&format!("s-{it:02}"), "one", 0, 10)).collect();
    submitted(store, &new_run(&account("alice"), "r-1", steps)).await;
    let others = (0..5).map(|it| step(&format!("o-{it}"), "two", 0, 11)).collect();
    submitted(store, &new_run(&account("bob"), "r-1", others)).await;
    let three = |worker: &str, millis| StepTake {
        at_once: BTreeMap::from([("one".to_owned(), 3)]),
        at_once_otherwise: 2,
        ..take(worker, millis, 10)
    };
    let takes = (0..8).map(|turn| {
        let store = if turn % 2 == 0 { store } else { &*second };
        let take = three(&format!("w-{turn}"), 20);
        async move { taken(store, &take).await }
    });
    let mut all: Vec<TakenStep> = join_all(takes).await.into_iter().flatten().collect();
    let of = |all: &[TakenStep], name: &str| {
        all.iter().filter(|it| it.step.step.executor == name).cloned().collect::<Vec<_>>()
    };
    assert_eq!((of(&all, "one").len(), of(&all, "two").len()), (3, 2));
    // Whoever is done makes room for one.
    finished(store, &held(&of(&all, "one")[0]), said("yes"), 30).await;
    all = taken(&*second, &three("late", 31)).await;
    assert_eq!((of(&all, "one").len(), of(&all, "two").len()), (1, 0));
    second.close().await;
}

pub(crate) async fn no_step_is_given_out_twice(backend: &Backend) {
    const STEPS: usize = 60;
    let store = &*backend.store;
    let second = backend.second().await;
    for run in 0..6 {
        let steps = (0..10).map(|it| step(&format!("s-{it}"), &format!("e-{it}"), it % 3, 10));
        let owner = account(if run % 2 == 0 { "alice" } else { "bob" });
        submitted(store, &new_run(&owner, &format!("r-{run}"), steps.collect())).await;
    }
    let takes = (0..20).map(|turn| {
        let store = if turn % 2 == 0 { store } else { &*second };
        let take = take(&format!("w-{turn}"), 20, 5);
        async move { taken(store, &take).await }
    });
    let mut all: Vec<TakenStep> = join_all(takes).await.into_iter().flatten().collect();
    // One passes over steps that another one holds at that moment, so some may be left.
    all.extend(taken(&*second, &take("last", 20, 100)).await);
    let distinct: BTreeSet<_> =
        all.iter().map(|it| (it.step.run.clone(), it.step.step.id.clone())).collect();
    assert_eq!((all.len(), distinct.len()), (STEPS, STEPS));
    // All finish at once, and of each run one is the last.
    let ends = all.iter().enumerate().map(|(number, taken)| {
        let store = if number % 2 == 0 { store } else { &*second };
        async move { finished(store, &held(taken), said("yes"), 30).await }
    });
    let last = join_all(ends).await.iter().filter(|it| it.was_last).count();
    assert_eq!(last, 6);
    second.close().await;
}

pub(crate) async fn a_late_worker_changes_nothing(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let run = submitted(store, &new_run(&alice, "r-1", vec![step("a", "one", 0, 10)])).await;
    let late = held(&taken(store, &take("slow", 20, 1)).await[0]);
    let renewal = StepRenewal { held: late.clone(), until: at(1_500) };
    let whose = behalf(&alice);
    let renewed = store.tasks().task_run_step_renew(&whose, &renewal, None).await.unwrap();
    assert_eq!(renewed, Written::Done(RunStatus::Running));
    assert_eq!(taken(store, &take("fast", 1_400, 1)).await, [], "it was renewed");
    let next = store.tasks().task_run_next_due(&Behalf::Platform).await.unwrap();
    assert_eq!(next, Some(at(1_500)));

    let again = taken(store, &take("fast", 1_600, 1)).await;
    assert_eq!((ids(&again), again[0].step.step.attempt), (vec!["a"], 1));
    let before = store.tasks().task_run_steps(&whose, &run.key).await.unwrap();
    for outcome in [
        said("late"),
        StepOutcome::Failed { error: "late".to_owned() },
        StepOutcome::Retry { error: "late".to_owned(), at: at(9) },
        StepOutcome::GivenBack,
        StepOutcome::Cancelled,
    ] {
        assert_eq!(finish(store, &late, outcome, 1_700).await, Written::Refused(NotHeld));
    }
    let renewed = store.tasks().task_run_step_renew(&whose, &renewal, None).await.unwrap();
    assert_eq!(renewed, Written::Refused(NotHeld));
    assert_eq!(store.tasks().task_run_steps(&whose, &run.key).await.unwrap(), before);
    assert_eq!(get(store, &run.key).await.seq, 2, "nothing was recorded either");
    assert!(finished(store, &held(&again[0]), said("yes"), 1_800).await.was_last);
    // What is over is nobody's.
    assert_eq!(finish(store, &held(&again[0]), said("no"), 1_900).await, Written::Refused(NotHeld));
}

pub(crate) async fn a_step_that_failed_waits_and_is_tried_again(backend: &Backend) {
    let store = &*backend.store;
    let run =
        submitted(store, &new_run(&account("alice"), "r-1", vec![step("a", "one", 0, 10)])).await;
    let first = taken(store, &take("w", 20, 1)).await;
    let retry = StepOutcome::Retry { error: "busy".to_owned(), at: at(100) };
    assert!(!finished(store, &held(&first[0]), retry, 30).await.was_last);
    assert_eq!(counts(store, &run.key).await, BTreeMap::from([(StepStatus::RetryWait, 1)]));
    let next = store.tasks().task_run_next_due(&Behalf::Platform).await.unwrap();
    assert_eq!(next, Some(at(100)));
    assert_eq!(taken(store, &take("w", 99, 1)).await, []);
    let again = taken(store, &take("w", 100, 1)).await;
    assert_eq!((again[0].step.step.attempt, again[0].step.error.as_deref()), (2, Some("busy")));
    // Given back, it is the same attempt.
    finished(store, &held(&again[0]), StepOutcome::GivenBack, 110).await;
    let third = taken(store, &take("x", 111, 1)).await;
    assert_eq!(third[0].step.step.attempt, 2);
}

pub(crate) async fn a_cancelled_run_ends_when_nobody_works_on_it(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let steps = vec![step("a", "one", 1, 10), step("b", "two", 0, 10), step("c", "two", 0, 10)];
    let run = submitted(store, &new_run(&alice, "r-1", steps)).await;
    let one = taken(store, &take("w", 20, 1)).await;
    let (whose, tasks) = (behalf(&alice), store.tasks());
    let note =
        RunNote { run: run.key.clone(), events: vec![event("RUN_CANCEL_REQUESTED")], at: at(30) };
    let cancelled = tasks.task_run_cancel(&whose, &note, None).await.unwrap();
    assert!(matches!(cancelled, Written::Done(run) if run.status == RunStatus::Cancelling));
    assert_eq!(
        counts(store, &run.key).await,
        BTreeMap::from([(StepStatus::Leased, 1), (StepStatus::Cancelled, 2)])
    );
    // The one who has a step learns of it, and what would be tried again is not.
    let renewal = StepRenewal { held: held(&one[0]), until: at(1_500) };
    let renewed = tasks.task_run_step_renew(&whose, &renewal, None).await.unwrap();
    assert_eq!(renewed, Written::Done(RunStatus::Cancelling));
    let retry = StepOutcome::Retry { error: "busy".to_owned(), at: at(100) };
    let done = finished(store, &held(&one[0]), retry, 40).await;
    assert_eq!((done.run_status, done.was_last), (RunStatus::Cancelling, true));
    let now = get(store, &run.key).await;
    assert_eq!(now.due_at, Some(at(40)));
    advanced(store, &advance(&now, RunStatus::Cancelled, None)).await;
    let again = tasks.task_run_cancel(&whose, &note, None).await.unwrap();
    assert_eq!(again, Written::Refused(RunRefused::Is(RunStatus::Cancelled)));

    // Without anybody at work it ends at once.
    let idle = submitted(store, &new_run(&alice, "r-2", vec![step("a", "one", 0, 10)])).await;
    let note = RunNote { run: idle.key.clone(), ..note };
    let cancelled = tasks.task_run_cancel(&whose, &note, None).await.unwrap();
    assert!(matches!(
        cancelled,
        Written::Done(run) if run.status == RunStatus::Cancelled && run.finished_at == Some(at(30))
    ));
    let nobodys = RunNote { run: key(&alice, "r-9"), ..note };
    let unknown = tasks.task_run_cancel(&whose, &nobodys, None).await.unwrap();
    assert_eq!(unknown, Written::Refused(RunRefused::Unknown));
}

pub(crate) async fn agents_are_asked_once_more_and_a_late_word_of_before_is_lost(
    backend: &Backend,
) {
    let store = &*backend.store;
    let alice = account("alice");
    let run = submitted(store, &new_run(&alice, "r-1", vec![step("a", "one", 0, 10)])).await;
    let first = taken(store, &take("w", 20, 1)).await;
    finished(store, &held(&first[0]), said("tie"), 30).await;
    let now = get(store, &run.key).await;
    let more = RunAdvance {
        steps: vec![NewStep { attempt: 2, ..step("a", "one", 0, 40) }, step("b", "two", 0, 40)],
        ..advance(&now, RunStatus::Running, None)
    };
    let Written::Done(running) = advanced(store, &more).await else { panic!("not asked again") };
    assert_eq!((running.due_at, &running.explored), (None, &json!({"iterations": 1})));
    assert_eq!(counts(store, &run.key).await, BTreeMap::from([(StepStatus::Queued, 2)]));
    assert_eq!(finish(store, &held(&first[0]), said("late"), 50).await, Written::Refused(NotHeld));
    let again = taken(store, &take("x", 60, 5)).await;
    assert_eq!((ids(&again), again[0].step.step.attempt), (vec!["a", "b"], 2));
    assert_eq!(again[0].step.output, None);
    // The run ends over the heads of those at work, and what they say is lost.
    let now = get(store, &run.key).await;
    advanced(store, &advance(&now, RunStatus::Failed, None)).await;
    assert_eq!(finish(store, &held(&again[0]), said("late"), 70).await, Written::Refused(NotHeld));
    assert_eq!(counts(store, &run.key).await, BTreeMap::from([(StepStatus::Cancelled, 2)]));
}

pub(crate) async fn a_refused_advance_leaves_nothing_behind(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let run = submitted(store, &new_run(&alice, "r-1", vec![step("a", "one", 0, 10)])).await;
    let stale = TaskRun { seq: 1, ..run.clone() };
    let refused = advanced(store, &advance(&stale, RunStatus::Failed, None)).await;
    assert_eq!(refused, Written::Refused(RunRefused::Stale { seq: 2 }));
    assert_eq!(get(store, &run.key).await, run);
    assert_eq!(counts(store, &run.key).await, BTreeMap::from([(StepStatus::Queued, 1)]));
}

pub(crate) async fn events_of_a_run_are_read_both_ways(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let run = submitted(store, &new_run(&alice, "r-1", vec![step("a", "one", 0, 10)])).await;
    let one = taken(store, &take("w", 20, 1)).await;
    finished(store, &held(&one[0]), said("yes"), 30).await;
    let kinds = async |from, limit| {
        let asked = RunEventsAsked { run: run.key.clone(), from, limit };
        let found = store.tasks().task_run_events(&behalf(&alice), &asked).await.unwrap();
        found.into_iter().map(|it| (it.seq, it.event.kind)).collect::<Vec<_>>()
    };
    let line = |seq, kind: &str| (seq, kind.to_owned());
    let (created, kicked, done) =
        (line(1, "RUN_CREATED"), line(2, "RUN_KICKOFF"), line(3, "STEP_COMPLETED"));
    let all = [created.clone(), kicked.clone(), done.clone()];
    assert_eq!(kinds(EventsFrom::After(0), 10).await, all);
    assert_eq!(kinds(EventsFrom::After(1), 1).await, std::slice::from_ref(&kicked));
    assert_eq!(kinds(EventsFrom::Before(u64::MAX), 2).await, [done, kicked]);
    assert_eq!(kinds(EventsFrom::Before(2), 2).await, [created]);
    for sql in ["update task_run_events set kind = 'x'", "delete from task_run_events"] {
        let refusal = backend.tamper(sql).await.unwrap_err();
        assert!(refusal.contains("events of runs are append-only"), "{refusal}");
    }
}

pub(crate) async fn runs_are_listed_newest_first_in_pages(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    for number in 0..7_i64 {
        let submit = RunSubmit {
            is_kicked_off: number % 2 == 0,
            at: at(100 + number / 2),
            ..new_run(&alice, &format!("r-{number}"), vec![])
        };
        submitted(store, &submit).await;
    }
    submitted(store, &new_run(&account("bob"), "r-9", vec![])).await;
    let walked = async |status| {
        let mut filter = TaskRunFilter { account: alice.clone(), status, before: None, limit: 2 };
        let mut found: Vec<String> = Vec::new();
        loop {
            let page = store.tasks().task_run_page(&behalf(&alice), &filter).await.unwrap();
            let Some(last) = page.last() else { return found };
            filter.before = Some(Position { created_at: last.created_at, id: last.id.clone() });
            found.extend(page.into_iter().map(|line| line.id));
        }
    };
    assert_eq!(walked(None).await, ["r-6", "r-5", "r-4", "r-3", "r-2", "r-1", "r-0"]);
    assert_eq!(walked(Some(RunStatus::Queued)).await, ["r-6", "r-4", "r-2", "r-0"]);
    assert_eq!(walked(Some(RunStatus::Created)).await, ["r-5", "r-3", "r-1"]);
    assert_eq!(walked(Some(RunStatus::Failed)).await, [] as [&str; 0]);
}

pub(crate) async fn another_account_sees_no_task_runs(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    let run = submitted(store, &new_run(&alice, "r-1", vec![step("a", "one", 0, 10)])).await;
    let one = taken(store, &take("w", 20, 1)).await;
    let (tasks, whose, theirs) = (store.tasks(), behalf(&bob), key(&bob, "r-1"));
    assert_eq!(tasks.task_run_get(&whose, &theirs).await.unwrap(), None);
    assert_eq!(tasks.task_run_steps(&whose, &theirs).await.unwrap(), []);
    let note = RunNote { run: theirs.clone(), events: vec![], at: at(30) };
    let refused = tasks.task_run_cancel(&whose, &note, None).await.unwrap();
    assert_eq!(refused, Written::Refused(RunRefused::Unknown));
    let stolen = HeldStep { run: theirs, ..held(&one[0]) };
    assert_eq!(finish(store, &stolen, said("mine"), 40).await, Written::Refused(NotHeld));
    assert_eq!(get(store, &run.key).await.seq, 2);
    let none: Option<Timestamp> = get(store, &run.key).await.finished_at;
    assert_eq!(none, None);
}
