//! The invariants of a task whatever died on the way, read from its store.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    agent_run::{AgentRunEventRow, AgentRunKey, EventsStart},
    id::AccountId,
    task::{
        LeaseRelease, Task, TaskEvent, TaskFilter, TaskKey, TaskLease, TaskPhase, TaskRecord,
        TaskRole,
    },
};
use jurat_store::{AgentRunEventsQuery, Behalf, Store, TaskEventsQuery};

/// More events than any of these tasks has.
const ALL: u32 = 1_000;

fn behalf() -> Behalf {
    Behalf::Account(AccountId::admin())
}

/// A task with all its events.
pub(super) struct Kept {
    record: TaskRecord,
    events: Vec<TaskEvent>,
}

/// Every task of the store with this prefix, with its state and its events.
pub(super) async fn tasks(store: &Store, begins: &str) -> Vec<Kept> {
    let (account, filter) =
        (AccountId::admin(), TaskFilter { limit: ALL, ..TaskFilter::default() });
    let mut all = Vec::new();
    for found in store.tasks().page(&behalf(), &account, &filter).await.unwrap() {
        if found.id.starts_with(begins) {
            all.push(kept(store, &found.id).await);
        }
    }
    all
}

async fn kept(store: &Store, id: &str) -> Kept {
    let key = TaskKey { account: AccountId::admin(), id: id.to_owned() };
    let record = store.tasks().get(&behalf(), &key).await.unwrap().unwrap();
    let asked = TaskEventsQuery { task: key, after: 0, limit: ALL };
    let events = store.tasks().events(&behalf(), &asked).await.unwrap();
    let Some(TaskEvent::Created { terms }) = events.first().map(|it| &it.event) else {
        panic!("a task does not begin with its creation")
    };
    let mut replayed = Task::created(id, (**terms).clone(), events[0].at);
    for event in events.iter().skip(1) {
        replayed.apply(&event.event, event.at);
    }
    assert_eq!(replayed, record.state, "the events make another task");
    let numbers: Vec<u64> = events.iter().map(|it| it.seq).collect();
    assert_eq!(numbers, (1..=record.seq).collect::<Vec<u64>>(), "the events have gaps");
    Kept { record, events: events.into_iter().map(|it| it.event).collect() }
}

/// What the account paid.
pub(super) async fn spent(store: &Store) -> i64 {
    let account =
        store.accounts().get(&Behalf::Platform, &AccountId::admin()).await.unwrap().unwrap();
    assert!(account.balance.is_whole(), "{:?}", account.balance);
    account.balance.spent
}

/// The events of a run.
pub(super) async fn run_events(store: &Store, id: &str) -> Vec<AgentRunEventRow> {
    let run = AgentRunKey { account: AccountId::admin(), id: id.to_owned() };
    let asked = AgentRunEventsQuery { run, from: EventsStart::After(0), limit: ALL };
    store.agent_runs().events(&behalf(), &asked).await.unwrap()
}

impl Kept {
    pub(super) fn id(&self) -> &str {
        &self.record.key.id
    }

    pub(super) fn candidates(&self) -> BTreeSet<&str> {
        self.record.state.proposals.iter().map(|it| it.id.as_str()).collect()
    }

    pub(super) fn count(&self, wanted: impl Fn(&TaskEvent) -> bool) -> usize {
        self.events.iter().filter(|it| wanted(it)).count()
    }

    fn claims(&self) -> BTreeMap<u64, &TaskLease> {
        let mut claims = BTreeMap::new();
        for event in &self.events {
            if let TaskEvent::Claimed { token, claim } = event {
                claims.insert(*token, claim);
            }
        }
        claims
    }

    /// It was decided once, with every vote counted once and every unit paid once.
    pub(super) fn assert_decided_once(&self) {
        let task = &self.record.state;
        assert_eq!(task.phase, TaskPhase::Finalized, "{:?}", self.events);
        assert_eq!(self.count(|it| matches!(it, TaskEvent::Finalized { .. })), 1);
        assert_eq!(self.count(|it| matches!(it, TaskEvent::Committed { .. })), 1);
        let claims = self.claims();
        let charges = self.count(|it| matches!(it, TaskEvent::Charged { .. }));
        let work: BTreeSet<&str> = claims.values().map(|it| it.execution_id.as_str()).collect();
        assert_eq!(charges, work.len(), "work is charged once, whoever goes on with it");
        let budget = task.terms.budget;
        assert!(task.spent.steps <= budget.max_steps && task.spent.units() <= budget.cost_units);
        self.assert_each_once(&claims);
        assert_asked_under_one_name(&claims);
    }

    /// Nobody proposes or votes twice, and finished work is never started again.
    fn assert_each_once(&self, claims: &BTreeMap<u64, &TaskLease>) {
        let mut finished: BTreeSet<(TaskRole, &str, Option<&str>)> = BTreeSet::new();
        let mut revealed = BTreeSet::new();
        for event in &self.events {
            let work = |token: &u64| {
                let claim = claims[token];
                (claim.role, claim.holder.as_str(), claim.candidate.as_deref())
            };
            if let TaskEvent::Claimed { token, .. } = event {
                assert!(!finished.contains(&work(token)), "{:?} is done twice", work(token));
            } else if let TaskEvent::Proposed { token, .. }
            | TaskEvent::VoteCommitted { token, .. } = event
            {
                assert!(finished.insert(work(token)), "{:?} is on record twice", work(token));
            } else if let TaskEvent::VoteRevealed { candidate, voter, .. } = event {
                assert!(revealed.insert((candidate, voter)), "{voter} is counted twice");
            }
        }
    }

    /// Whether a surviving process lost a lease, because the machine is so busy.
    pub(super) fn is_starved(&self) -> bool {
        let claims = self.claims();
        let last = claims.values().next_back().map(|it| it.node.as_str());
        let mut lost: BTreeSet<&str> = BTreeSet::new();
        for event in &self.events {
            if let TaskEvent::Released { token, reason: LeaseRelease::LeaseRanOut } = event {
                lost.insert(&claims[token].node);
            } else if let TaskEvent::Claimed { claim, .. } = event
                && lost.contains(claim.node.as_str())
            {
                return true;
            }
        }
        last.is_some_and(|last| lost.contains(last))
    }
}

/// Work that is resumed has the execution id under which it was started.
fn assert_asked_under_one_name(claims: &BTreeMap<u64, &TaskLease>) {
    let mut names: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    for claim in claims.values().filter(|it| it.role != TaskRole::Finalize) {
        let work = (claim.role, &claim.holder, &claim.candidate);
        names.entry(work).or_default().insert(&claim.execution_id);
    }
    for (work, names) in names {
        assert_eq!(names.len(), 1, "{work:?} was asked for under {names:?}");
    }
}
