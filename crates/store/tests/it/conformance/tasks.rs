//! Tasks and their events.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use jurat_core::{
    id::{AccountId, RoundId},
    list::ListPosition,
    policy::EvaluationStatus,
    round::candidate::{ArtifactRef, Evidence, InlineEvidence},
    task::{
        Ballot, Budget, BudgetRenewal, DecisionMode, ExhaustedRoles, LeaseRelease, Task,
        TaskCandidateRow, TaskEvent, TaskFilter, TaskKey, TaskLease, TaskPhase, TaskRecord,
        TaskRole, TaskTake, TaskTerms, VoteAggregation,
        agent_event::{AgentEventFilter, Delivery, EventDirection, NewAgentEvent},
    },
};
use jurat_store::{
    Behalf, Store, StoreErrorKind, TaskAppend, TaskAppendExtras, TaskAppendRefusal, TaskBallotRow,
    TaskEventsQuery, TaskSubmit, TaskSubmitRefusal, WriteOutcome,
};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::json;

use super::{knowledge::decision, workflows::behalf};
use crate::{
    backend::Backend,
    samples::{account, at},
};

pub(crate) fn terms() -> TaskTerms {
    TaskTerms {
        mode: DecisionMode::OneShot,
        lease_ms: 5_000,
        propose_at_once: 1,
        verify_at_once: 3,
        max_proposers: 1,
        topk: 3,
        no_new_evidence_rounds: 3,
        max_verifiers: 3,
        max_finalizers: 1,
        quorum: 1,
        da_quorum: 0,
        reveal_ms: 10_000,
        max_repeats: 1,
        max_retries: 2,
        backoff_ms: 200,
        aggregation: VoteAggregation::Quorum,
        budget: Budget {
            time_ms: 30_000,
            max_steps: 10,
            cost_units: 1_000,
            explore: 350,
            verify: 450,
            finalize: 200,
            reuse_verify_time_ms: 20_000,
            reuse_verify_cost_units: 200,
            reuse_max_attempts: 1,
            renewal: BudgetRenewal::Lifetime,
        },
        window_ms: 1_000,
        expires_at: at(120_000),
    }
}

pub(crate) fn key(account: &AccountId, id: &str) -> TaskKey {
    TaskKey { account: account.clone(), id: id.to_owned() }
}

pub(crate) fn new_task(account: &AccountId, id: &str, millis: i64) -> TaskSubmit {
    let contract = json!({"task_id": id, "inputs": {"prompt": "hello"}, "of": 0.1});
    TaskSubmit {
        task: key(account, id),
        task_type: "swarm".to_owned(),
        contract,
        contract_digest: format!("sha256:{id}"),
        panel: json!({"executors": ["one"], "verifiers": [], "profile": "default"}),
        ordered_by: Some("a key".to_owned()),
        state: Task::created(id, terms(), at(millis)),
        events: vec![TaskEvent::Created { terms: Box::new(terms()) }],
        due_at: Some(at(millis)),
        at: at(millis),
        most_open: 1_000,
    }
}

pub(crate) async fn submitted(store: &Store, submit: &TaskSubmit) -> TaskRecord {
    let behalf = behalf(&submit.task.account);
    match store.tasks().submit(&behalf, submit, None).await.unwrap() {
        WriteOutcome::Done(done) => done.record,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn get(store: &Store, key: &TaskKey) -> Option<TaskRecord> {
    store.tasks().get(&behalf(&key.account), key).await.unwrap()
}

pub(crate) async fn append(
    store: &Store,
    append: &TaskAppend,
) -> WriteOutcome<(), TaskAppendRefusal> {
    store.tasks().append(&behalf(&append.task.account), append, None).await.unwrap()
}

/// The events on top of a record, with the resulting state.
pub(crate) fn after(record: &TaskRecord, events: Vec<TaskEvent>, millis: i64) -> TaskAppend {
    let mut state = record.state.clone();
    for event in &events {
        state.apply(event, at(millis));
    }
    TaskAppend {
        task: record.key.clone(),
        expected_seq: record.seq,
        due_at: state.wakes_at(),
        events,
        state,
        at: at(millis),
        with: TaskAppendExtras::default(),
    }
}

fn claimed(token: u64, holder: &str) -> TaskEvent {
    let claim = TaskLease {
        role: TaskRole::Propose,
        holder: holder.to_owned(),
        node: "node".to_owned(),
        independence: "model".to_owned(),
        pool_keys: 1,
        execution_id: format!("exec-p-{token}"),
        candidate: None,
        until: at(5_000),
    };
    TaskEvent::Claimed { token, claim }
}

fn candidate() -> TaskCandidateRow {
    let artifact = ArtifactRef {
        uri: "https://example.com/a".to_owned(),
        digest: "sha256:02".to_owned(),
        size_bytes: 5,
        mime: "text/plain".to_owned(),
        created_at: 3,
        producer: "one".to_owned(),
    };
    let inline =
        InlineEvidence { mime: "text/plain".to_owned(), content: "\u{0} trace".to_owned() };
    TaskCandidateRow {
        id: "cand-1".to_owned(),
        execution_id: "exec-p-1".to_owned(),
        executor: "one".to_owned(),
        round: Some(RoundId::parse("rnd_00000000000000000000000001").unwrap()),
        output: json!({"answer": "yes", "confidence": 0.1}),
        evidence: Evidence { inline: vec![inline], refs: vec![artifact] },
        digest: "sha256:01".to_owned(),
        created_at: at(20),
    }
}

fn ballot(voter: &str) -> TaskBallotRow {
    let said = Ballot {
        status: EvaluationStatus::Passed,
        score: 0.1,
        reason_codes: vec![100],
        verdict_digest: "sha256:03".to_owned(),
        available: vec!["sha256:04".to_owned()],
    };
    TaskBallotRow {
        candidate: "cand-1".to_owned(),
        turn: 1,
        voter: voter.to_owned(),
        ballot: said,
        salt: "salt".to_owned(),
        round: None,
        created_at: at(30),
    }
}

pub(crate) fn told(id: &str, dedupe_key: Option<&str>) -> NewAgentEvent {
    NewAgentEvent {
        id: id.to_owned(),
        direction: EventDirection::Out,
        executor: "one".to_owned(),
        event_type: "task_result_received".to_owned(),
        source_kind: "task_lifecycle".to_owned(),
        dedupe_key: dedupe_key.map(str::to_owned),
        body: json!({"event_id": id}),
        next_at: Some(at(40)),
    }
}

fn everything() -> TaskAppendExtras {
    TaskAppendExtras {
        candidate: Some(candidate()),
        ballot: Some(ballot("two")),
        knowledge: Some(decision(20)),
        reused: None,
        agent_events: vec![told("first", Some("same")), told("second", Some("same"))],
        given_up: Vec::new(),
    }
}

/// A task with a row in every table that belongs to tasks.
pub(crate) async fn with_everything(store: &Store, account: &AccountId) {
    let record = submitted(store, &new_task(account, "t-1", 10)).await;
    let events = vec![claimed(1, "one")];
    let write = TaskAppend { with: everything(), ..after(&record, events, 20) };
    assert_eq!(append(store, &write).await, WriteOutcome::Done(()));
}

pub(crate) async fn a_task_reads_back_as_it_was_submitted(backend: &Backend) {
    let store = &*backend.store;
    let submit = new_task(&account("alice"), "t-1", 10);
    let record = submitted(store, &submit).await;
    assert_eq!(record.key, submit.task);
    assert_eq!((&record.contract, &record.panel), (&submit.contract, &submit.panel));
    assert_eq!((record.seq, record.due_at), (1, Some(at(10))));
    assert_eq!((record.created_at, record.updated_at, record.ended_at), (at(10), at(10), None));
    assert_eq!(record.state, submit.state);
    assert_eq!(get(store, &submit.task).await.unwrap(), record);
    assert_eq!(get(store, &key(&account("alice"), "t-2")).await, None);
}

pub(crate) async fn a_task_is_submitted_once(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let submit = new_task(&alice, "t-1", 10);
    let record = submitted(store, &submit).await;
    let again = TaskSubmit { at: at(99), ..submit.clone() };
    assert_eq!(submitted(store, &again).await, record);
    let other = TaskSubmit { contract_digest: "sha256:other".to_owned(), ..submit.clone() };
    let refused = store.tasks().submit(&behalf(&alice), &other, None).await.unwrap();
    assert_eq!(refused, WriteOutcome::Refused(TaskSubmitRefusal::Taken));
    let other = TaskSubmit { panel: json!({"executors": ["two"]}), ..submit.clone() };
    let refused = store.tasks().submit(&behalf(&alice), &other, None).await.unwrap();
    assert_eq!(refused, WriteOutcome::Refused(TaskSubmitRefusal::OtherPanel));
    let full = TaskSubmit { most_open: 1, ..new_task(&alice, "t-2", 11) };
    let refused = store.tasks().submit(&behalf(&alice), &full, None).await.unwrap();
    assert_eq!(refused, WriteOutcome::Refused(TaskSubmitRefusal::TooManyOpen));
    // Another account has ids and a limit of its own.
    let bobs = TaskSubmit { most_open: 1, ..new_task(&account("bob"), "t-1", 12) };
    assert_eq!(submitted(store, &bobs).await.created_at, at(12));

    let second = backend.second().await;
    let third = new_task(&alice, "t-3", 13);
    let both = [store, &*second].map(|store| async { submitted(store, &third).await });
    let both = join_all(both).await;
    assert_eq!(both[0], both[1]);
    assert_eq!(get(store, &third.task).await.unwrap().seq, 1);
    second.close().await;
}

pub(crate) async fn events_and_their_documents_are_written_together(backend: &Backend) {
    let store = &*backend.store;
    let record = submitted(store, &new_task(&account("alice"), "t-1", 10)).await;
    let (key, whose) = (&record.key, behalf(&record.key.account));
    let events =
        vec![claimed(1, "one"), TaskEvent::Charged { role: TaskRole::Propose, reuse: false }];
    let written = TaskAppend { with: everything(), ..after(&record, events, 20) };
    assert_eq!(append(store, &written).await, WriteOutcome::Done(()));

    let now = get(store, key).await.unwrap();
    assert_eq!((now.seq, now.state.phase, now.updated_at), (3, TaskPhase::Claimed, at(20)));
    assert_eq!((&now.state, now.due_at), (&written.state, written.due_at));
    let store = &store;
    let found = store.tasks().candidate(&whose, key, "cand-1").await.unwrap().unwrap();
    assert_eq!(found, candidate());
    assert_eq!(store.tasks().candidates(&whose, key, &10).await.unwrap(), [candidate()]);
    assert_eq!(store.tasks().candidate(&whose, key, "cand-2").await.unwrap(), None);
    let refs = store.tasks().references(&whose, key, "sha256:01").await.unwrap();
    assert_eq!(refs, candidate().evidence.refs);
    assert_eq!(store.tasks().references(&whose, key, "sha256:02").await.unwrap(), []);
    let sealed = store.tasks().ballots(&whose, key, "cand-1", &1).await.unwrap();
    assert_eq!(sealed, [ballot("two")]);
    assert_eq!(store.tasks().ballots(&whose, key, "cand-1", &2).await.unwrap(), []);
    // Of two events with one key, one is kept.
    let told = store.agent_events().get(&whose, &key.account, "first").await.unwrap().unwrap();
    assert_eq!((told.state, told.attempts), (Delivery::Pending, 0));
    assert_eq!(store.agent_events().get(&whose, &key.account, "second").await.unwrap(), None);
}

pub(crate) async fn events_are_read_in_pages_in_their_order(backend: &Backend) {
    let store = &*backend.store;
    let mut record = submitted(store, &new_task(&account("alice"), "t-1", 10)).await;
    for token in 1..=3 {
        let given_up =
            LeaseRelease::GivenUp { detail: "a `quote` and \u{0} and \"more\"".to_owned() };
        let events = vec![claimed(token, "one"), TaskEvent::Released { token, reason: given_up }];
        append(store, &after(&record, events, 10 + i64::try_from(token).unwrap())).await;
        record = get(store, &record.key).await.unwrap();
    }
    let asked = |after, limit| TaskEventsQuery { task: record.key.clone(), after, limit };
    let whose = behalf(&record.key.account);
    let all = store.tasks().events(&whose, &asked(0, 100)).await.unwrap();
    assert_eq!(all.iter().map(|it| it.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(all[0].event, TaskEvent::Created { terms: Box::new(terms()) });
    assert_eq!((&all[5].event, all[5].at), (&claimed(3, "one"), at(13)));
    let some = store.tasks().events(&whose, &asked(3, 2)).await.unwrap();
    assert_eq!(some, all[3..5]);
    assert_eq!(store.tasks().events(&whose, &asked(7, 2)).await.unwrap(), []);
}

pub(crate) async fn two_concurrent_appends_have_one_winner(backend: &Backend) {
    let store = &*backend.store;
    let second = backend.second().await;
    let record = submitted(store, &new_task(&account("alice"), "t-1", 10)).await;
    let appends = (1..=8).map(|token| {
        let store = if token % 2 == 0 { store } else { &*second };
        let one = TaskCandidateRow { id: format!("cand-{token}"), ..candidate() };
        let with = TaskAppendExtras { candidate: Some(one), ..TaskAppendExtras::default() };
        let write = TaskAppend { with, ..after(&record, vec![claimed(token, "one")], 20) };
        async move { (append(store, &write).await, token) }
    });
    let outcomes = join_all(appends).await;
    let won: Vec<u64> = outcomes
        .iter()
        .filter(|(outcome, _)| *outcome == WriteOutcome::Done(()))
        .map(|(_, token)| *token)
        .collect();
    assert_eq!(won.len(), 1);
    let stale = WriteOutcome::Refused(TaskAppendRefusal::Stale { seq: 2 });
    assert_eq!(outcomes.iter().filter(|(outcome, _)| *outcome == stale).count(), 7);
    let now = get(store, &record.key).await.unwrap();
    assert_eq!((now.seq, now.state.last_token), (2, won[0]));
    let whose = behalf(&record.key.account);
    let kept = store.tasks().candidates(&whose, &record.key, &10).await.unwrap();
    assert_eq!(kept.len(), 1, "those who lost left nothing behind");
    second.close().await;
}

pub(crate) async fn a_refused_append_leaves_nothing_behind(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let record = submitted(store, &new_task(&alice, "t-1", 10)).await;
    let stale = TaskAppend {
        expected_seq: 7,
        with: everything(),
        ..after(&record, vec![claimed(1, "one")], 20)
    };
    let refused = WriteOutcome::Refused(TaskAppendRefusal::Stale { seq: 1 });
    assert_eq!(append(store, &stale).await, refused);
    let unknown = TaskAppend { task: key(&alice, "t-2"), ..stale.clone() };
    assert_eq!(append(store, &unknown).await, WriteOutcome::Refused(TaskAppendRefusal::Unknown));

    // A write that fails halfway is undone as well.
    let fine = TaskAppend { with: everything(), ..after(&record, vec![claimed(1, "one")], 20) };
    append(store, &fine).await;
    let now = get(store, &record.key).await.unwrap();
    let twice = TaskAppend { with: everything(), ..after(&now, vec![claimed(2, "two")], 21) };
    let failed = store.tasks().append(&behalf(&alice), &twice, None).await.unwrap_err();
    assert_eq!(failed.kind, StoreErrorKind::Conflict);
    assert_eq!(get(store, &record.key).await.unwrap(), now);
    let asked = TaskEventsQuery { task: record.key.clone(), after: 0, limit: 10 };
    let events = store.tasks().events(&behalf(&alice), &asked).await.unwrap();
    assert_eq!(events.len(), 2);
}

pub(crate) async fn a_task_that_is_due_is_taken_by_one_node(backend: &Backend) {
    const TASKS: usize = 40;
    let store = &*backend.store;
    let second = backend.second().await;
    for number in 0..TASKS {
        let owner = account(if number % 2 == 0 { "alice" } else { "bob" });
        let millis = i64::try_from(number).unwrap();
        submitted(store, &new_task(&owner, &format!("t-{number}"), millis)).await;
    }
    let later = TaskSubmit { due_at: Some(at(9_000)), ..new_task(&account("alice"), "late", 50) };
    submitted(store, &later).await;
    let over = TaskSubmit { due_at: None, ..new_task(&account("alice"), "never", 50) };
    submitted(store, &over).await;

    let take = of_all((1_000, 5_000), 5);
    let turns = (0..10).map(|turn| {
        let store = if turn % 2 == 0 { store } else { &*second };
        let take = take.clone();
        async move { taken(store, &take).await }
    });
    let mut all: Vec<TaskKey> = join_all(turns).await.into_iter().flatten().collect();
    // One passes over tasks that another one holds at that moment, so some may be left.
    all.extend(taken(&second, &TaskTake { limit: 100, ..take.clone() }).await);
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (TASKS, TASKS));

    // They are due again later.
    assert_eq!(taken(store, &take).await, []);
    let next = store.tasks().next_due(&Behalf::Platform).await.unwrap();
    assert_eq!(next, Some(at(5_000)));
    let again = of_all((5_000, 9_000), 100);
    assert_eq!(taken(store, &again).await.len(), TASKS);
    second.close().await;
}

fn of_all((now, until): (i64, i64), limit: u32) -> TaskTake {
    let (now, until) = (at(now), at(until));
    TaskTake { now, until, limit, in_flight: BTreeMap::new(), after: None }
}

async fn taken(store: &Store, take: &TaskTake) -> Vec<TaskKey> {
    store.tasks().take_due(&Behalf::Platform, take).await.unwrap().tasks
}

pub(crate) async fn the_longest_due_are_taken_first(backend: &Backend) {
    let store = &*backend.store;
    assert_eq!(store.tasks().next_due(&Behalf::Platform).await.unwrap(), None);
    let alice = account("alice");
    for (id, millis) in [("c", 30), ("a", 10), ("b", 20)] {
        submitted(store, &new_task(&alice, id, millis)).await;
    }
    let take = of_all((25, 100), 1);
    assert_eq!(taken(store, &take).await, [key(&alice, "a")]);
    assert_eq!(taken(store, &take).await, [key(&alice, "b")]);
    assert_eq!(taken(store, &take).await, []);
}

pub(crate) async fn tasks_are_listed_by_every_filter_newest_first(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    for number in 0..12_i64 {
        let mut submit = new_task(&alice, &format!("t-{number:02}"), 100 + number / 2);
        if number % 3 == 0 {
            "other".clone_into(&mut submit.task_type);
        }
        let record = submitted(store, &submit).await;
        if number % 2 == 0 {
            append(store, &after(&record, vec![claimed(1, "one")], 200)).await;
        }
    }
    submitted(store, &new_task(&account("bob"), "t-99", 999)).await;
    for task_type in [None, Some("swarm"), Some("other")] {
        for phase in
            [None, Some(TaskPhase::Created), Some(TaskPhase::Claimed), Some(TaskPhase::Failed)]
        {
            let expected: Vec<String> = (0..12)
                .rev()
                .filter(|it| task_type.is_none_or(|wanted| (wanted == "other") == (it % 3 == 0)))
                .filter(|it| match phase {
                    None => true,
                    Some(TaskPhase::Claimed) => it % 2 == 0,
                    Some(TaskPhase::Created) => it % 2 == 1,
                    _ => false,
                })
                .map(|it| format!("t-{it:02}"))
                .collect();
            assert_eq!(walked(store, &alice, task_type, phase).await, expected);
        }
    }
}

/// All pages of a list, with two tasks on each.
async fn walked(
    store: &Store,
    account: &AccountId,
    task_type: Option<&str>,
    phase: Option<TaskPhase>,
) -> Vec<String> {
    let task_type = task_type.map(str::to_owned);
    let mut filter = TaskFilter { phase, task_type, before: None, limit: 2 };
    let mut found = Vec::new();
    loop {
        let page = store.tasks().page(&behalf(account), account, &filter).await.unwrap();
        let Some(last) = page.last() else { return found };
        assert!(page.len() <= 2);
        filter.before = Some(ListPosition { created_at: last.created_at, id: last.id.clone() });
        found.extend(page.into_iter().map(|line| line.id));
    }
}

pub(crate) async fn an_ended_task_has_its_time_and_reason(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let record = submitted(store, &new_task(&alice, "t-1", 10)).await;
    let tick = jurat_core::task::TaskCommand::Tick { exhausted: ExhaustedRoles::default() };
    let late = at(500_000);
    let events = jurat_core::task::decide(&record.state, &tick, late, &BTreeMap::new()).unwrap();
    append(store, &after(&record, events, 500_000)).await;
    let now = get(store, &record.key).await.unwrap();
    assert_eq!((now.ended_at, now.due_at), (Some(late), None));
    assert!(now.reason.is_some_and(|reason| !reason.is_empty()));
    // It is no longer one of the open ones.
    let next = TaskSubmit { most_open: 1, ..new_task(&alice, "t-2", 11) };
    assert_eq!(submitted(store, &next).await.seq, 1);
}

pub(crate) async fn another_account_sees_no_tasks(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    let record = submitted(store, &new_task(&alice, "t-1", 10)).await;
    let write = TaskAppend { with: everything(), ..after(&record, vec![claimed(1, "one")], 20) };
    append(store, &write).await;
    let (tasks, theirs, whose) = (&store, key(&bob, "t-1"), behalf(&bob));
    assert_eq!(tasks.tasks().get(&whose, &theirs).await.unwrap(), None);
    let asked = TaskEventsQuery { task: theirs.clone(), after: 0, limit: 10 };
    assert_eq!(tasks.tasks().events(&whose, &asked).await.unwrap(), []);
    assert_eq!(tasks.tasks().candidate(&whose, &theirs, "cand-1").await.unwrap(), None);
    assert_eq!(tasks.tasks().ballots(&whose, &theirs, "cand-1", &1).await.unwrap(), []);
    assert_eq!(walked(store, &bob, None, None).await, [] as [&str; 0]);
    let steal = TaskAppend { task: theirs, ..after(&record, vec![claimed(2, "two")], 21) };
    assert_eq!(append(store, &steal).await, WriteOutcome::Refused(TaskAppendRefusal::Unknown));
    let filter = AgentEventFilter { limit: 9, ..AgentEventFilter::default() };
    assert_eq!(tasks.agent_events().page(&whose, &bob, &filter).await.unwrap(), []);
    if backend.is_postgres() {
        // Even a question that names the wrong account is answered with nothing.
        assert_eq!(tasks.tasks().get(&whose, &record.key).await.unwrap(), None);
    }
}

pub(crate) async fn events_of_tasks_cannot_be_changed_or_removed(backend: &Backend) {
    submitted(&backend.store, &new_task(&account("alice"), "t-1", 10)).await;
    for sql in ["update task_events set kind = 'x'", "delete from task_events"] {
        let refusal = backend.tamper(sql).await.unwrap_err();
        assert!(refusal.contains("events of tasks are append-only"), "{refusal}");
    }
}

/// An action on a task at some time.
#[derive(Debug, Clone)]
enum Step {
    Claim,
    Renew,
    Release,
    Propose,
    Tick,
    Cancel,
    Late,
}

fn command(step: &Step, task: &Task, now: i64) -> jurat_core::task::TaskCommand {
    use jurat_core::task::TaskCommand;
    let token = task.claims.keys().next().copied().unwrap_or(1);
    match step {
        Step::Claim => {
            let TaskEvent::Claimed { token, claim } = claimed(task.last_token + 1, "one") else {
                panic!("it is a claim")
            };
            TaskCommand::TakeLease { token, claim: TaskLease { until: at(now + 5_000), ..claim } }
        }
        Step::Renew => TaskCommand::Renew { token, until: at(now + 5_000) },
        Step::Release | Step::Late => TaskCommand::Release {
            token,
            reason: LeaseRelease::Failed { code: "timeout".to_owned(), detail: "late".to_owned() },
        },
        Step::Propose => TaskCommand::Propose {
            token,
            candidate: format!("cand-{token}"),
            digest: format!("sha256:{token}"),
            evidence: vec![],
            round_id: "rnd".to_owned(),
        },
        Step::Tick => TaskCommand::Tick { exhausted: ExhaustedRoles::default() },
        Step::Cancel => TaskCommand::Cancel { reason: "enough".to_owned() },
    }
}

pub(crate) async fn the_stored_state_equals_its_replayed_events(backend: &Backend) {
    let store = &*backend.store;
    let steps = prop::collection::vec(
        prop_oneof![
            4 => Just(Step::Claim),
            2 => Just(Step::Renew),
            2 => Just(Step::Release),
            3 => Just(Step::Propose),
            3 => Just(Step::Tick),
            1 => Just(Step::Cancel),
            1 => Just(Step::Late),
        ],
        1..25,
    );
    let mut runner = TestRunner::deterministic();
    for number in 0..12 {
        let submit = new_task(&account("alice"), &format!("t-{number}"), 10);
        let mut record = submitted(store, &submit).await;
        let mut now = 10;
        for step in steps.new_tree(&mut runner).unwrap().current() {
            now += if matches!(step, Step::Late) { 6_000 } else { 50 };
            let command = command(&step, &record.state, now);
            let known = BTreeMap::new();
            let Ok(events) = jurat_core::task::decide(&record.state, &command, at(now), &known)
            else {
                continue;
            };
            assert_eq!(append(store, &after(&record, events, now)).await, WriteOutcome::Done(()));
            record = get(store, &record.key).await.unwrap();
        }
        assert_eq!(folded(store, &record).await, record.state);
    }
}

/// The task that the stored events make, read in pages.
async fn folded(store: &Store, record: &TaskRecord) -> Task {
    let mut task = Task::created(&record.key.id, terms(), record.created_at);
    let mut asked = TaskEventsQuery { task: record.key.clone(), after: 0, limit: 5 };
    loop {
        let page = store.tasks().events(&behalf(&record.key.account), &asked).await.unwrap();
        for event in &page {
            assert_eq!(event.seq, asked.after + 1);
            asked.after = event.seq;
            task.apply(&event.event, event.at);
        }
        if page.is_empty() {
            assert_eq!(asked.after, record.seq);
            return task;
        }
    }
}
