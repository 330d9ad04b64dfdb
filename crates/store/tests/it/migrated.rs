//! Databases of earlier versions: migrated, read back in full, and usable.

use std::{fs, path::Path};

use futures::future::join_all;
use jurat_core::{
    agent_run::{AgentRunFilter, AgentRunKey, AgentRunSpec},
    id::{AccountId, PaymentId, RoundId},
    idempotency::SavedAnswer,
    payment::state::PaymentState,
    round::{Round, RoundEnding, decision::DecisionEntry, replica::Label},
    task::{TaskFilter, TaskKey, agent_event::AgentEventFilter},
    verifier::{VerifierSelector, run::VerifierRunFilter},
    workflow::{OwnershipFilter, WorkflowSelector, operation::WorkflowFilter},
};
use jurat_store::{
    Behalf, KeyRecord, NameMatch, RoundCharge, RoundTakeover, Store, TakeoverScope,
    TaskEventsQuery, TeamListQuery, WorkflowLookup, WriteOutcome,
};

use crate::samples::{
    account, at, claim, close_round, closing, executor, expiry, find_round, newest, open_round,
    page, round, session, verifier, verifiers,
};

/// A schema version, and the data that a program of that version wrote.
#[derive(Debug)]
pub(crate) struct Fixture {
    /// Such as `0001_first`.
    pub(crate) name: String,
    /// The migrations up to this version, by name and text.
    pub(crate) migrations: Vec<(String, String)>,
    pub(crate) rows: String,
    /// The statements of the program of this version, once through everything.
    pub(crate) program: String,
}

impl Fixture {
    pub(crate) fn version(&self) -> i64 {
        i64::try_from(self.migrations.len()).unwrap()
    }

    /// How many rows of the table it has.
    fn count(&self, table: &str) -> usize {
        self.rows.lines().filter(|line| line.starts_with(&format!("insert into {table} "))).count()
    }
}

/// Every fixture, for one of the databases. `cargo xtask tidy` checks that none is missing.
pub(crate) fn fixtures(database: &str) -> Vec<Fixture> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(crate_folder.join(path)).unwrap();
    let migrations: Vec<(String, String)> = names(&crate_folder.join("migrations").join(database))
        .into_iter()
        .map(|name| (name.clone(), read(&format!("migrations/{database}/{name}"))))
        .map(|(name, text)| (name.trim_end_matches(".sql").to_owned(), text))
        .collect();
    let fixture = |name: String| {
        let last = migrations.iter().position(|migration| migration.0 == name).unwrap();
        Fixture {
            migrations: migrations[..=last].to_vec(),
            rows: read(&format!("tests/fixtures/{name}/{database}.sql")),
            program: read(&format!("tests/fixtures/{name}/{database}_program.sql")),
            name,
        }
    };
    let found: Vec<Fixture> =
        names(&crate_folder.join("tests/fixtures")).into_iter().map(fixture).collect();
    assert_eq!(found.len() + 1, migrations.len(), "one for each schema but the newest");
    found
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Reads everything back through the store.
pub(crate) async fn everything_is_there(fixture: &Fixture, store: &Store) {
    let executors = store.executors().list(&Behalf::Platform, &page(None, 1_000)).await.unwrap();
    assert_eq!(executors.len(), fixture.count("executors"), "{}", fixture.name);
    assert!(executors.iter().any(|it| it.probe.as_ref().is_some_and(|it| it.capabilities.is_ok())));
    let sessions = store.sessions().list(&Behalf::Platform, &page(None, 1_000)).await.unwrap();
    assert_eq!(sessions.len(), fixture.count("sessions"));
    let pool = store.sessions().pool(&Behalf::Platform).await.unwrap();
    assert_eq!((pool.executors.len(), pool.sessions.len()), (executors.len(), sessions.len()));
    assert!(0 < store.sessions().pool_version(&Behalf::Platform).await.unwrap());
    for key in keys(fixture, store).await {
        assert!(!key.key.scopes.is_empty());
    }

    answers_are_there(fixture, store).await;
    registry_is_there(fixture, store).await;
    sharing_is_there(fixture, store).await;
    tasks_are_there(fixture, store).await;
    payments_are_there(fixture, store).await;
    let rounds = rounds(fixture, store).await;
    let open = rounds.iter().filter(|round| round.closing.is_none()).count();
    assert!(0 < open, "some were under way");
    assert_eq!(rounds.len() - open, fixture.count("entries"));
    let replicas = rounds.iter().filter_map(|round| round.closing.as_ref());
    assert_eq!(replicas.map(|it| it.replicas.len()).sum::<usize>(), fixture.count("replicas"));
    for round in &rounds {
        sealed_as_it_was(round, store).await;
    }
}

/// The answers under idempotency keys, as the program of that version encoded them.
async fn answers_are_there(fixture: &Fixture, store: &Store) {
    let rows = fixture.rows.lines().filter(|line| line.starts_with("insert into idempotency "));
    for row in rows {
        let (_, values) = row.split_once(" values ('").unwrap();
        let mut names = values.split("', '");
        let (account, key) = (names.next().unwrap(), names.next().unwrap());
        // A round is its own answer; another write has a tag and a text.
        let expected = values.split_once(", null, ").and_then(|(_, rest)| {
            let (tag, rest) = rest.split_once(", '")?;
            let (text, _) = rest.rsplit_once("', ")?;
            Some(SavedAnswer { tag: tag.parse().ok()?, text: text.replace("''", "'") })
        });
        let account = AccountId::parse(account).unwrap();
        let found = store.idempotency().get(&Behalf::from(&account), &account, key).await.unwrap();
        let found = found.unwrap_or_else(|| panic!("{}: {key} is gone", fixture.name));
        assert_eq!(found.answer, expected, "{}: {key}", fixture.name);
        assert_eq!(found.answer.is_some(), found.round.is_none(), "{}: {key}", fixture.name);
    }
}

/// Verifiers with their versions, runs and measurements, and a ledger that adds up.
async fn registry_is_there(fixture: &Fixture, store: &Store) {
    let (mut found_verifiers, mut runs) = (0, 0);
    for account in first_values(fixture, "accounts") {
        let account = AccountId::parse(&account).unwrap();
        assert!(store.accounts().get(&Behalf::Platform, &account).await.unwrap().is_some());
        let reached = verifiers(store, &account, &page(None, 1_000)).await;
        // Shared ones are counted at their owners.
        for listed in reached.into_iter().filter(|it| it.account == account) {
            let which = VerifierSelector::Id(listed.id.clone());
            let found = verifier(store, &account, &which, Some(1)).await.unwrap();
            assert_eq!(found.config.hash(), found.config_hash);
            found_verifiers += 1;
        }
        runs += store
            .verifier_runs()
            .list(&Behalf::from(&account), &account, &every_run())
            .await
            .unwrap()
            .len();
    }
    let revoked = fixture.rows.lines().filter(|row| row.contains("'revoked'")).count();
    assert_eq!(found_verifiers + revoked, fixture.count("verifiers"), "{}", fixture.name);
    assert_eq!(runs, fixture.count("verifier_runs"), "{}", fixture.name);
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

/// Workflows with the files of their current versions, teams, and templates with theirs.
async fn sharing_is_there(fixture: &Fixture, store: &Store) {
    let (mut workflows, mut members, store) = (0, 0, &store);
    for account in first_values(fixture, "accounts") {
        let account = AccountId::parse(&account).unwrap();
        let whose = Behalf::Account(account.clone());
        let filter = WorkflowFilter {
            whose: OwnershipFilter::Mine,
            with_archived: true,
            tag: None,
            search: None,
            before: None,
            limit: 1_000,
        };
        for found in store.workflows().list(&whose, &account, &filter).await.unwrap() {
            let asked = WorkflowLookup {
                caller: account.clone(),
                which: WorkflowSelector::Id(found.workflow.id.clone()),
                version: None,
            };
            let NameMatch::One(view) = store.workflows().get(&whose, &asked).await.unwrap() else {
                panic!("{} is gone", found.workflow.id)
            };
            assert_eq!(view.version.version, found.workflow.current_version);
            workflows += 1;
        }
        let wanted = TeamListQuery { account: account.clone(), role: None };
        members += store.teams().list(&whose, &wanted).await.unwrap().len();
    }
    assert_eq!(workflows, fixture.count("workflows"), "{}", fixture.name);
    assert_eq!(members, fixture.count("team_members"), "{}", fixture.name);
}

/// Tasks with their events, runs with their steps, and what executors were sent.
async fn tasks_are_there(fixture: &Fixture, store: &Store) {
    let (mut tasks, mut task_events, mut runs, mut steps, mut sent) = (0, 0, 0, 0, 0);
    for account in first_values(fixture, "accounts") {
        let account = AccountId::parse(&account).unwrap();
        let (whose, store) = (Behalf::Account(account.clone()), &store);
        let limit = 1_000;
        let filter = TaskFilter { limit, ..TaskFilter::default() };
        for task in store.tasks().page(&whose, &account, &filter).await.unwrap() {
            let key = TaskKey { account: account.clone(), id: task.id };
            let found = store.tasks().get(&whose, &key).await.unwrap().unwrap();
            assert_eq!(found.seq, task.seq);
            let asked = TaskEventsQuery { task: key, after: 0, limit };
            task_events += store.tasks().events(&whose, &asked).await.unwrap().len();
            tasks += 1;
        }
        let filter = AgentRunFilter { limit, ..AgentRunFilter::default() };
        for run in store.agent_runs().page(&whose, &account, &filter).await.unwrap() {
            let key = AgentRunKey { account: account.clone(), id: run.run_id };
            let found = store.agent_runs().get(&whose, &key).await.unwrap().unwrap();
            let spec = AgentRunSpec::from_document(&found.spec).unwrap();
            assert_eq!(spec.agents.len(), found.steps.len());
            steps += found.steps.len();
            runs += 1;
        }
        let filter = AgentEventFilter { limit, ..AgentEventFilter::default() };
        sent += store.agent_events().page(&whose, &account, &filter).await.unwrap().len();
    }
    let found = [tasks, task_events, runs, steps, sent];
    let tables = ["tasks", "task_events", "task_runs", "task_run_steps", "agent_events"];
    assert_eq!(found, tables.map(|table| fixture.count(table)), "{}", fixture.name);
}

/// Payments, each with the reply and the round that it paid for.
async fn payments_are_there(fixture: &Fixture, store: &Store) {
    let rows = fixture.rows.lines().filter(|row| row.starts_with("insert into payments "));
    for row in rows {
        let id = PaymentId::parse(row.split('\'').nth(3).unwrap()).unwrap();
        let found = store.payments().get(&Behalf::Platform, &id).await.unwrap().unwrap();
        let is_unpaid = matches!(found.state, PaymentState::Reserved | PaymentState::FailedFinal);
        assert_eq!(found.answer.is_some(), !is_unpaid, "{id}");
        if let Some(round) = &found.round {
            assert!(read(store, &found.account, round).await.closing.is_some(), "{id}");
        }
        let key = store.payments().of_authorization(&Behalf::Platform, &found.key).await.unwrap();
        assert_eq!(key, Some(found));
    }
}

fn every_run() -> VerifierRunFilter {
    VerifierRunFilter { limit: 1_000, ..VerifierRunFilter::default() }
}

/// The decision that is made of all that was read has the bytes and the digest of the one recorded.
async fn sealed_as_it_was(round: &Round, store: &Store) {
    let Some(end) = &round.closing else { return };
    assert_eq!(end.replicas.len(), round.open.seats.len());
    let labels: Vec<Label> = end.replicas.iter().map(|it| it.answer.label()).collect();
    assert_eq!(labels, end.consensus.verdicts);
    let record = store
        .checkup()
        .record(&Behalf::from(&round.open.account), &round.open.account, &round.open.id)
        .await
        .unwrap()
        .unwrap();
    if record.erased_at.is_none() {
        let (replicas, consensus) = (&end.replicas, &end.consensus);
        let again = DecisionEntry::new(&round.open, end.ending, replicas, consensus, end.closed_at)
            .canonical_entry();
        assert_eq!((&again.text, &again.digest), (&end.entry, &end.receipt_id));
    }
    let entry = store
        .rounds()
        .entry(&Behalf::from(&round.open.account), &round.open.account, &end.receipt_id)
        .await
        .unwrap();
    assert_eq!(entry.as_ref(), Some(&end.entry));
}

async fn keys(fixture: &Fixture, store: &Store) -> Vec<KeyRecord> {
    let mut keys = Vec::new();
    for id in first_values(fixture, "api_keys") {
        keys.push(store.keys().get(&Behalf::Platform, &id).await.unwrap().unwrap());
    }
    assert_eq!(keys.len(), fixture.count("api_keys"));
    keys
}

async fn rounds(fixture: &Fixture, store: &Store) -> Vec<Round> {
    let mut rounds = Vec::new();
    for account in first_values(fixture, "accounts") {
        let account = AccountId::parse(&account).unwrap();
        for line in
            store.rounds().list(&Behalf::from(&account), &account, &newest(1_000)).await.unwrap()
        {
            rounds.push(read(store, &account, &line.open.id).await);
        }
    }
    assert_eq!(rounds.len(), fixture.count("rounds"));
    rounds
}

async fn read(store: &Store, account: &AccountId, id: &RoundId) -> Round {
    find_round(store, account, id).await.unwrap()
}

/// The first value of each row of the table.
fn first_values(fixture: &Fixture, table: &str) -> Vec<String> {
    let rows = fixture.rows.lines().filter(|row| row.starts_with(&format!("insert into {table} ")));
    rows.map(|row| row.split('\'').nth(1).unwrap().to_owned()).collect()
}

/// Continues with it: closes open rounds, and adds to everything that can be added to.
pub(crate) async fn work_goes_on(fixture: &Fixture, store: &Store) {
    let under_way = rounds(fixture, store).await.into_iter().filter(|it| it.closing.is_none());
    let under_way: Vec<Round> = under_way.collect();
    let late = at(0).plus_millis(10 * 365 * 24 * 3_600_000);
    let claim = RoundTakeover { now: late, ..claim("next", TakeoverScope::All) };
    let claimed = store.rounds().take_over(&Behalf::Platform, &claim).await.unwrap();
    assert_eq!(claimed.len(), under_way.len());
    for open in &claimed {
        let end = crate::samples::ended(
            open,
            RoundEnding::Expired,
            jurat_core::round::consensus::Outcome::Failed,
            expiry(open).replicas.into_iter().take(open.seats.len()).collect(),
        );
        assert_eq!(close_round(store, open, &end).await, WriteOutcome::Done(RoundCharge::Own));
        assert_eq!(read(store, &open.account, &open.id).await.closing, Some(end));
    }
    store
        .executors()
        .add(&Behalf::Platform, &executor("next"), Some(&session("next", "next")), None)
        .await
        .unwrap();
    let open = round(&account("admin"), 7);
    open_round(store, &open).await;
    close_round(store, &open, &closing(&open)).await;
    assert_eq!(read(store, &open.account, &open.id).await.closing, Some(closing(&open)));
    store.ping().await.unwrap();
}

/// What the earlier program did after the migration is what any node may have done.
pub(crate) async fn the_earlier_program_was_understood(store: &Store) {
    assert!(
        store
            .executors()
            .get(&Behalf::Platform, "previous")
            .await
            .unwrap()
            .unwrap()
            .probe
            .is_some()
    );
    assert!(store.sessions().get(&Behalf::Platform, "previous").await.unwrap().is_some());
    let pool = store.sessions().pool(&Behalf::Platform).await.unwrap();
    assert_eq!(pool.executors["previous"].remote, None, "it knows no executors of other nodes");
    let payments = ["pay_one", "pay_two", "pay_three"].map(async |id| {
        let id = PaymentId::parse(id).unwrap();
        store.payments().get(&Behalf::Platform, &id).await.unwrap().map(|it| it.state)
    });
    let states = [Some(PaymentState::Settled), Some(PaymentState::FailedFinal), None];
    assert_eq!(join_all(payments).await, states);
    let key = store.keys().get(&Behalf::Platform, "previouskey").await.unwrap().unwrap();
    assert_eq!(key.key.account, account("previous"));
    let id = RoundId::parse("rnd_previous").unwrap();
    let walked = read(store, &account("previous"), &id).await;
    let end = walked.closing.unwrap();
    assert_eq!((end.ending, end.replicas.len()), (RoundEnding::Closed, 1));
    let listed = store
        .rounds()
        .list(&Behalf::from(&account("previous")), &account("previous"), &newest(10))
        .await
        .unwrap();
    assert_eq!(listed.len(), 1);
    let which = VerifierSelector::Name("previous".to_owned());
    let found = verifier(store, &account("previous"), &which, None).await.unwrap();
    assert_eq!((found.version, found.description.as_str()), (2, "Is very kind."));
    let run = "0198bcfe-0000-7000-8000-000000000003";
    assert!(
        store
            .verifier_runs()
            .get(&Behalf::from(&account("previous")), &account("previous"), run)
            .await
            .unwrap()
            .is_some()
    );
    let state =
        store.accounts().get(&Behalf::Platform, &account("previous")).await.unwrap().unwrap();
    assert_eq!((state.balance.granted, state.suspended_at), (1_000, None));
}
