//! Stored bytes, stored payloads, and pruning.

use jurat_core::{
    id::AccountId,
    idempotency::SavedAnswer,
    round::{OpenRound, RetainedRequest, RoundRequest},
    time::Timestamp,
    workflow::{AccessRole, VersionSource},
};
use jurat_store::{
    Behalf, DeployRefusal, ErasureRefusal, FilesPatch, IdempotencyAnswer, IdempotencyRecord,
    NewVerifierVersion, PruneCounts, PruneOrder, RoundErasure, RoundKey, RoundKeys, StorageFull,
    TaskEventsQuery, WorkflowRefusal, WorkflowSave, WriteOutcome,
};

use super::{
    tasks::{after, append, new_task, submitted},
    verifiers::deployed,
    workflows::{behalf, binding, draft, grant, grant_of, id, next, refused, saved, used, user},
};
use crate::{
    backend::Backend,
    samples::{account, at, close_round, closing, deploy, find_round, open_round, round},
};

const DAY_MS: i64 = 86_400_000;

/// Each table that counts towards the quota, with its text columns: a row counts 200 bytes plus
/// these. Rows marked as pruned count nothing.
const COUNTED: &[(&str, &[&str], IsMarked)] = &[
    ("rounds", &["seats", "run", "consensus", "step"], IsMarked::Yes),
    ("replicas", &["document"], IsMarked::Yes),
    ("round_payloads", &["asked", "request"], IsMarked::No),
    ("idempotency", &["key", "answer"], IsMarked::No),
    ("api_keys", &["name", "scopes"], IsMarked::No),
    ("verifier_versions", &["description", "config"], IsMarked::No),
    ("verifier_measurements", &["document", "cases"], IsMarked::No),
    ("verifier_runs", &["provenance", "error_message", "reasoning"], IsMarked::Yes),
    ("known_verdicts", &["document"], IsMarked::No),
    ("workflows", &["description", "outcome", "tags", "search_text", "search_body"], IsMarked::No),
    ("workflow_versions", &["description", "outcome", "tags", "body", "bindings"], IsMarked::No),
    ("workflow_files", &["path"], IsMarked::No),
    ("workflow_blobs", &["content"], IsMarked::No),
    ("templates", &["slug", "archive_reason"], IsMarked::No),
    ("tasks", &["contract", "panel", "state"], IsMarked::Yes),
    ("task_events", &["body"], IsMarked::No),
    ("task_candidates", &["output", "evidence_inline", "evidence_refs"], IsMarked::No),
    ("task_ballots", &["ballot"], IsMarked::No),
    ("knowledge", &["words", "output"], IsMarked::No),
    ("task_runs", &["spec", "explored", "result", "error"], IsMarked::Yes),
    ("task_run_steps", &["output", "error"], IsMarked::Yes),
    ("task_run_events", &["body"], IsMarked::No),
    ("agent_events", &["body", "decision", "last_error"], IsMarked::No),
    ("webhooks", &["url", "description", "events"], IsMarked::No),
    ("webhook_deliveries", &["body", "reply", "last_error"], IsMarked::No),
    ("payments", &["settle_request", "answer"], IsMarked::No),
];

/// Tables that belong to an account through its templates.
const OF_TEMPLATES: &[(&str, &[&str])] = &[
    (
        "template_versions",
        &[
            "summary",
            "document",
            "search_name",
            "search_text",
            "search_body",
            "deprecation_message",
        ],
    ),
    ("template_files", &["path", "content"]),
];

/// Tables of accounts that do not count, and why they cannot fill the store.
const EXEMPT: &[(&str, &str)] = &[
    ("entries", "decisions are kept for ever"),
    ("credit_balances", "the ledger is kept for ever"),
    ("credit_transfers", "the ledger is kept for ever"),
    ("execution_captures", "it is a part of the ledger"),
    ("peer_bookings", "the books between nodes are kept for ever"),
    ("account_storage", "it is the count itself"),
    ("evidence_blobs", "a cache with a bound of its own"),
    ("judge_history", "as many samples as a verifier keeps, for each that counts"),
    ("verifiers", "one beside versions that count"),
    ("workflow_bindings", "the bindings of a version that counts"),
    ("workflow_grants", "500 of a workflow that counts"),
    ("named_grants", "500 of a workflow that counts, 200 a day"),
    ("grant_days", "one a day"),
    ("share_blocks", "one for each owner"),
    ("template_moves", "one beside a template that counts"),
    ("template_pins", "one for each binding of a version that counts"),
    ("handles", "one after another, with a rest between"),
    ("team_members", "one for each invitation"),
    ("device_logins", "they end within minutes"),
    ("anonymous_grants", "one a month"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum IsMarked {
    Yes,
    No,
}

/// Names the accounts whose count is not the sum of their rows.
pub(crate) fn miscounted() -> String {
    let size = |table: &str, texts: &[&str]| {
        let texts = texts.iter().map(|it| format!(" + coalesce(octet_length({table}.{it}), 0)"));
        format!("200{}", texts.collect::<String>())
    };
    let own = COUNTED.iter().map(|(table, texts, is_marked)| {
        let size = size(table, texts);
        let only = if *is_marked == IsMarked::Yes { " where pruned_at is null" } else { "" };
        format!("select account_id, {size} as size from {table}{only}")
    });
    let through = OF_TEMPLATES.iter().map(|(table, texts)| {
        let size = size(table, texts);
        format!(
            "select templates.account_id, {size} as size from {table} \
             join templates on templates.id = {table}.template_id"
        )
    });
    let all: Vec<String> = own.chain(through).collect();
    format!(
        "select account_id from (select account_id, sum(size) as off from ({} \
         union all select account_id, -bytes as size from account_storage) as counted \
         group by account_id) as sums where off <> 0 order by account_id",
        all.join(" union all ")
    )
}

fn asked(open: OpenRound, text: &str) -> OpenRound {
    let request = Some(format!("{{\"claim\":\"{text}\"}}"));
    let asked = RoundRequest { line: "what is asked".to_owned(), request };
    OpenRound { kept: RetainedRequest { asked: Some(asked), erased_at: None }, ..open }
}

async fn ended(backend: &Backend, open: &OpenRound) {
    open_round(&backend.store, open).await;
    close_round(&backend.store, open, &closing(open)).await;
}

async fn bytes(backend: &Backend, account: &AccountId) -> u64 {
    backend.store.storage().bytes(&behalf(account), account).await.unwrap().bytes
}

async fn kept(backend: &Backend, of: &OpenRound, by: &AccountId) -> RetainedRequest {
    let key = RoundKey { account: of.account.clone(), round: of.id.clone() };
    backend.store.storage().retained(&behalf(by), &key).await.unwrap()
}

fn order(account: &AccountId, before: Timestamp) -> PruneOrder {
    PruneOrder {
        account: account.clone(),
        at: at(100 * DAY_MS),
        answers_before: before,
        texts_before: before,
        events_before: before,
        agent_events_before: before,
        deliveries_before: before,
        limit: 100,
    }
}

async fn prune(backend: &Backend, order: &PruneOrder) -> PruneCounts {
    let storage = backend.store.storage();
    storage.prune(&behalf(&order.account), order).await.unwrap()
}

async fn erase(
    backend: &Backend,
    of: &OpenRound,
    millis: i64,
) -> WriteOutcome<Timestamp, ErasureRefusal> {
    let (account, round) = (of.account.clone(), of.id.clone());
    let erasing = RoundErasure { account, round, at: at(millis) };
    backend.store.storage().erase_round(&behalf(&of.account), &erasing, None).await.unwrap()
}

pub(crate) async fn the_request_is_stored_with_its_round(backend: &Backend) {
    let alice = account("alice");
    let (first, second) = (asked(round(&alice, 1), "é\\u0000"), round(&alice, 2));
    ended(backend, &first).await;
    ended(backend, &second).await;
    assert_eq!(kept(backend, &first, &alice).await, first.kept);
    assert_eq!(kept(backend, &second, &alice).await, RetainedRequest::default());
    let rounds = vec![first.id.clone(), second.id.clone()];
    let of = RoundKeys { account: alice.clone(), rounds };
    let lines = backend.store.storage().request_lines(&behalf(&alice), &of).await.unwrap();
    assert_eq!(lines, [(first.id.clone(), "what is asked".to_owned())]);
    // Another account finds nothing, whatever it names.
    let bob = account("bob");
    let of = RoundKeys { account: bob.clone(), rounds: vec![first.id.clone()] };
    assert_eq!(backend.store.storage().request_lines(&behalf(&bob), &of).await.unwrap(), []);
    let stolen = OpenRound { account: bob.clone(), ..first };
    assert_eq!(kept(backend, &stolen, &bob).await, RetainedRequest::default());
}

pub(crate) async fn request_and_answers_are_erased_and_the_decision_stays(backend: &Backend) {
    let alice = account("alice");
    let open = asked(round(&alice, 1), "a secret");
    open_round(&backend.store, &open).await;
    assert_eq!(erase(backend, &open, 5_000).await, WriteOutcome::Refused(ErasureRefusal::Open));
    let end = closing(&open);
    close_round(&backend.store, &open, &end).await;
    let unknown = round(&alice, 9);
    assert_eq!(
        erase(backend, &unknown, 5_000).await,
        WriteOutcome::Refused(ErasureRefusal::Unknown)
    );
    let stolen = OpenRound { account: account("bob"), ..open.clone() };
    assert_eq!(
        erase(backend, &stolen, 5_000).await,
        WriteOutcome::Refused(ErasureRefusal::Unknown)
    );

    assert_eq!(erase(backend, &open, 6_000).await, WriteOutcome::Done(at(6_000)));
    assert_eq!(erase(backend, &open, 7_000).await, WriteOutcome::Done(at(6_000)), "once is enough");
    assert_eq!(
        kept(backend, &open, &alice).await,
        RetainedRequest { asked: None, erased_at: Some(at(6_000)) }
    );
    let read = find_round(&backend.store, &alice, &open.id).await.unwrap().closing.unwrap();
    assert_eq!((read.entry, read.receipt_id), (end.entry, end.receipt_id));
    assert_eq!(read.consensus.output, None);
    assert_eq!(read.consensus.verdict, end.consensus.verdict);
    for (read, was) in read.replicas.iter().zip(&end.replicas) {
        assert_eq!(read.answer.label(), was.answer.label());
        let said = read.answer.content();
        assert!(said.is_none_or(|said| said.output.is_none() && said.notes.is_empty()));
    }
}

pub(crate) async fn stored_bytes_are_counted(backend: &Backend) {
    let (alice, bob) = (account("alice"), account("bob"));
    assert_eq!(bytes(backend, &alice).await, 0);
    let small = asked(round(&alice, 1), "x");
    ended(backend, &small).await;
    let before = bytes(backend, &alice).await;
    assert!(0 < before);
    let large = asked(round(&alice, 2), &"x".repeat(100_000));
    ended(backend, &large).await;
    let after = bytes(backend, &alice).await;
    assert_eq!(after - before, before + 99_999, "as the first, and what it is longer");
    assert_eq!(bytes(backend, &bob).await, 0);
    erase(backend, &large, 9_000).await;
    let erased = bytes(backend, &alice).await;
    assert!(erased < before * 2, "{erased}");
    // Summed up it is as much.
    backend.store.storage().sum(&behalf(&alice), &alice).await.unwrap();
    let stored = backend.store.storage().bytes(&behalf(&alice), &alice).await.unwrap();
    assert_eq!((stored.bytes, stored.parts), (erased, 1));
    // Idempotency records count as well.
    note(backend, &alice, "key", 1, "done").await;
    assert!(erased + 1_000 < bytes(backend, &alice).await);
}

async fn note(backend: &Backend, account: &AccountId, key: &str, day: i64, operation: &str) {
    let once = IdempotencyRecord {
        account: account.clone(),
        key: key.to_owned(),
        operation: operation.to_owned(),
        request_digest: "d".to_owned(),
        answer: IdempotencyAnswer::Known(SavedAnswer { tag: 201, text: "x".repeat(1_000) }),
        at: at(day * DAY_MS),
    };
    let executor = crate::samples::executor(&format!("e-{key}"));
    backend.store.executors().add(&Behalf::Platform, &executor, None, Some(&once)).await.unwrap();
}

pub(crate) async fn old_data_is_pruned_and_recent_data_stays(backend: &Backend) {
    let (alice, bob) = (account("alice"), account("bob"));
    let day = |number: u32| number * 86_400;
    let old = asked(round(&alice, day(1)), "old");
    let young = asked(round(&alice, day(50)), "young");
    let his = asked(round(&bob, day(1)), "his");
    for open in [&old, &young, &his] {
        ended(backend, open).await;
    }
    note(backend, &alice, "old", 1, "key_create").await;
    note(backend, &alice, "young", 50, "key_create").await;
    note(backend, &alice, "step", 1, "task_step").await;
    // The record of an open round prevents starting it twice.
    let open = round(&alice, day(2));
    let once = IdempotencyRecord {
        account: alice.clone(),
        key: "open".to_owned(),
        operation: "validate".to_owned(),
        request_digest: "d".to_owned(),
        answer: IdempotencyAnswer::Round,
        at: at(DAY_MS),
    };
    backend.store.rounds().open(&Behalf::from(&open.account), &open, Some(&once)).await.unwrap();

    let order = order(&alice, at(30 * DAY_MS));
    let expected = PruneCounts { answers: 1, rounds: 1, ..PruneCounts::default() };
    let storage = backend.store.storage();
    assert_eq!(storage.prunable(&behalf(&alice), &order).await.unwrap(), expected);
    assert_eq!(prune(backend, &order).await, expected);
    assert_eq!(prune(backend, &order).await, PruneCounts::default(), "there is no more");

    assert_eq!(kept(backend, &old, &alice).await.asked, None);
    assert_eq!(kept(backend, &young, &alice).await, young.kept);
    assert_eq!(kept(backend, &his, &bob).await, his.kept);
    assert!(find_round(&backend.store, &alice, &old.id).await.unwrap().closing.is_some());
    for (key, is_there) in [("old", false), ("young", true), ("step", true), ("open", true)] {
        let found =
            backend.store.idempotency().get(&Behalf::from(&alice), &alice, key).await.unwrap();
        assert_eq!(found.is_some(), is_there, "{key}");
    }
}

pub(crate) async fn events_go_with_tasks_that_ended_long_ago(backend: &Backend) {
    let alice = account("alice");
    let store = &*backend.store;
    let ended = submitted(store, &new_task(&alice, "ended", 0)).await;
    let failed = jurat_core::task::TaskEvent::Cancelled { reason: "x".to_owned() };
    let end = after(&ended, vec![failed], 10);
    assert_eq!(append(store, &end).await, WriteOutcome::Done(()));
    submitted(store, &new_task(&alice, "open", 0)).await;
    // Events cannot be removed in any other way.
    assert!(backend.tamper("delete from task_events").await.is_err());

    let pruned = prune(backend, &order(&alice, at(30 * DAY_MS))).await;
    assert_eq!(pruned, PruneCounts { tasks: 1, ..PruneCounts::default() });
    for (id, count) in [("ended", 0), ("open", 1)] {
        let task = super::tasks::key(&alice, id);
        let asked = TaskEventsQuery { task, after: 0, limit: 10 };
        let found = store.tasks().events(&behalf(&alice), &asked).await.unwrap();
        assert_eq!(found.len(), count, "{id}");
    }
    assert!(backend.tamper("delete from task_events").await.is_err());
}

pub(crate) async fn accounts_with_stored_data_are_found_in_pages(backend: &Backend) {
    for name in ["bob", "alice"] {
        ended(backend, &round(&account(name), 1)).await;
    }
    let storage = backend.store.storage();
    let (mut after, mut found) = (String::new(), Vec::new());
    while let Some(account) = storage.account_after(&Behalf::Platform, &after).await.unwrap() {
        after = account.to_string();
        found.push(account);
    }
    assert_eq!(found, [account("alice"), account("bob")]);
}

pub(crate) async fn every_table_of_accounts_counts_or_is_exempt(backend: &Backend) {
    let (tables, triggers) = if backend.is_postgres() {
        (
            "select table_name::text from information_schema.columns \
             where table_schema = current_schema() and column_name = 'account_id' order by 1",
            "select relname || '_' || tgname from pg_trigger \
             join pg_class on pg_class.oid = tgrelid where relnamespace = current_schema()::regnamespace",
        )
    } else {
        (
            "select tables.name from sqlite_schema as tables, pragma_table_info(tables.name) as columns \
             where tables.type = 'table' and columns.name = 'account_id' order by 1",
            "select name from sqlite_schema where type = 'trigger'",
        )
    };
    let found = backend.texts(tables).await;
    let mut known: Vec<&str> = COUNTED.iter().map(|it| it.0).collect();
    known.extend(EXEMPT.iter().map(|it| it.0));
    known.sort_unstable();
    assert_eq!(found, known, "a table is counted by triggers, or says here why it need not be");
    let triggers = backend.texts(triggers).await;
    let counted = COUNTED.iter().map(|it| it.0).chain(OF_TEMPLATES.iter().map(|it| it.0));
    for table in counted {
        for part in ["stored", "restored", "unstored"] {
            let name = format!("{table}_{part}");
            assert!(triggers.contains(&name), "{name}");
        }
    }
}

pub(crate) async fn an_erased_round_uses_no_storage(backend: &Backend) {
    let alice = account("alice");
    ended(backend, &asked(round(&alice, 1), "x")).await;
    let before = bytes(backend, &alice).await;
    let second = asked(round(&alice, 2), "y");
    ended(backend, &second).await;
    assert!(before < bytes(backend, &alice).await);
    erase(backend, &second, 9_000).await;
    assert_eq!(bytes(backend, &alice).await, before, "its skeleton belongs to its decision");
    let old = PruneCounts { rounds: 1, ..PruneCounts::default() };
    assert_eq!(prune(backend, &order(&alice, at(30 * DAY_MS))).await, old);
    assert_eq!(bytes(backend, &alice).await, 0);
    assert_eq!(backend.texts(&miscounted()).await, [""; 0]);
}

/// A deleted verifier leaves a part of its rounds.
pub(crate) async fn a_round_of_a_deleted_verifier_is_pruned_too(backend: &Backend) {
    let alice = account("alice");
    let open = asked(round(&alice, 1), "x");
    ended(backend, &open).await;
    backend.tamper("update rounds set erased_at = 5").await.unwrap();
    let old = PruneCounts { rounds: 1, ..PruneCounts::default() };
    assert_eq!(prune(backend, &order(&alice, at(30 * DAY_MS))).await, old);
    let erased_at = Some(Timestamp::from_micros(5));
    assert_eq!(kept(backend, &open, &alice).await, RetainedRequest { asked: None, erased_at });
    assert_eq!(bytes(backend, &alice).await, 0);
}

pub(crate) async fn tasks_and_runs_that_are_pruned_count_nothing(backend: &Backend) {
    let (alice, store) = (account("alice"), &*backend.store);
    super::tasks::with_everything(store, &alice).await;
    super::agent_runs::with_everything(store, &alice).await;
    // Both end; knowledge and agent events have times of their own.
    for end in [
        "update tasks set ended_at = 5, due_at = null",
        "update task_runs set finished_at = 5, status = 'CANCELLED', \
         spec = '{\"run_id\":\"r-1\",\"agents\":[{\"agent_id\":\"a\",\"executor\":\"one\",\
         \"prompt\":\"a secret\",\"weight\":2}]}'",
        "delete from knowledge",
        "delete from agent_events",
        "delete from evidence_blobs",
    ] {
        backend.tamper(end).await.unwrap();
    }
    assert!(0 < bytes(backend, &alice).await);
    let pruned = prune(backend, &order(&alice, at(30 * DAY_MS))).await;
    assert!(0 < pruned.tasks && 0 < pruned.runs, "{pruned:?}");
    assert_eq!(bytes(backend, &alice).await, 0);
    assert_eq!(backend.texts(&miscounted()).await, [""; 0]);
    for table in ["task_events", "task_candidates", "task_ballots", "task_run_events"] {
        let found = backend.texts(&format!("select account_id from {table}")).await;
        assert_eq!(found, [""; 0], "{table}");
    }
    let contracts = backend.texts("select distinct contract from tasks").await;
    assert_eq!(contracts, ["{}"]);
    let spec = backend.texts("select spec from task_runs").await.remove(0);
    let spec: serde_json::Value = serde_json::from_str(&spec).unwrap();
    let agent = serde_json::json!({
        "agent_id": "a", "executor": "one", "profile": "default", "prompt": "erased",
        "weight": 2, "priority": 0,
    });
    assert_eq!(spec["agents"], serde_json::json!([agent]));
    let steps = backend.texts("select id from task_run_steps").await;
    assert_eq!(steps, ["a"], "who did what stays");
}

pub(crate) async fn a_full_owner_account_refuses_writes_of_others(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let cites = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    let bindings = Some(vec![binding("cites", &cites.id)]);
    let first = saved(store, &WorkflowSave { bindings, ..draft(&alice, "report", 2) }).await;
    grant(store, &grant_of(&alice, id(&first), &bob, AccessRole::Edit)).await;
    used(store, &bob, &first).await;

    let stored = bytes(backend, &alice).await;
    assert!(bytes(backend, &bob).await < stored);
    let full = StorageFull { account: alice.clone(), bytes: stored, quota_bytes: stored };
    let save = WorkflowSave { quota_bytes: stored, ..next(draft(&bob, "report", 3), &first) };
    assert_eq!(refused(store, &save).await, WorkflowRefusal::Full(full.clone()));
    let patch = FilesPatch {
        caller: bob.clone(),
        which: id(&first),
        expected_token: Some(first.workflow.version_token.clone()),
        files: Vec::new(),
        delete_paths: Vec::new(),
        body: Some("# More".to_owned()),
        source: VersionSource::Manual,
        new_token: "patched".to_owned(),
        quota_bytes: stored,
        at: at(4),
    };
    let patched = store.workflows().patch_files(&behalf(&bob), &patch, None).await.unwrap();
    assert_eq!(patched, WriteOutcome::Refused(WorkflowRefusal::Full(full.clone())));
    let tuned = NewVerifierVersion {
        expected_token: Some("token-1".to_owned()),
        quota_bytes: stored,
        ..deploy(&bob, "cites", 5)
    };
    assert_eq!(
        store.verifiers().deploy(&Behalf::from(&tuned.account), &tuned, None).await.unwrap(),
        WriteOutcome::Refused(DeployRefusal::Full(full))
    );
    assert_eq!(bytes(backend, &alice).await, stored);
    // With room they may, and the bytes count for the owner.
    let quota_bytes = stored + 1;
    saved(store, &WorkflowSave { quota_bytes, ..save }).await;
    assert!(stored < bytes(backend, &alice).await);
}
