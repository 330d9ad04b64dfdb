//! Knowledge from decisions.

use jurat_core::{
    id::AccountId,
    task::{
        TaskRecord,
        knowledge::{
            Knowledge, KnowledgeDigests, KnowledgeFilter, KnowledgeKey, KnowledgePosition,
            KnowledgeRecord, KnowledgeScope,
        },
    },
};
use jurat_store::{
    KnowledgeDeprecation, KnowledgeFetch, KnowledgeHits, KnowledgeLookup, KnowledgeSummary,
    SimilarKnowledge, Store, TaskAppend, TaskAppendExtras, TaskAppendRefusal, WriteOutcome,
};
use serde_json::json;

use super::{
    tasks::{after, append, get, key, new_task, submitted},
    workflows::behalf,
};
use crate::{
    backend::Backend,
    samples::{account, at},
};

pub(crate) fn decision(millis: i64) -> Knowledge {
    Knowledge {
        epoch: 1,
        task_type: "swarm".to_owned(),
        digests: digests("in"),
        words: "what is the capital of France".to_owned(),
        candidate: "cand-1".to_owned(),
        output: json!({"answer": "Paris", "confidence": 0.1}),
        output_digest: "sha256:paris".to_owned(),
        profile: "careful".to_owned(),
        proposers: vec!["alpha".to_owned(), "beta".to_owned()],
        source: None,
        reason_codes: vec![100],
        confidence: 0.1,
        quorum: json!({"approvals": 2, "rejections": 0}),
        final_hash: "sha256:09".to_owned(),
        created_at: at(millis),
        deprecated_at: None,
    }
}

fn digests(inputs: &str) -> KnowledgeDigests {
    KnowledgeDigests {
        policy_id: "vp.schema_only.v1".to_owned(),
        inputs: inputs.to_owned(),
        schema: "schema".to_owned(),
        params: "params".to_owned(),
    }
}

async fn learned(
    store: &Store,
    whose: &AccountId,
    id: &str,
    knowledge: &Knowledge,
) -> KnowledgeRecord {
    let record = submitted(store, &new_task(whose, id, 10)).await;
    let with =
        TaskAppendExtras { knowledge: Some(knowledge.clone()), ..TaskAppendExtras::default() };
    let write = TaskAppend { with, ..after(&record, vec![], 20) };
    assert_eq!(append(store, &write).await, WriteOutcome::Done(()));
    KnowledgeRecord { task_id: id.to_owned(), knowledge: knowledge.clone() }
}

/// The summary of it, without its output.
fn known(KnowledgeRecord { task_id, knowledge }: &KnowledgeRecord) -> KnowledgeSummary {
    KnowledgeSummary {
        key: named(task_id),
        candidate: knowledge.candidate.clone(),
        output_bytes: knowledge.output.to_string().len().try_into().unwrap(),
        profile: knowledge.profile.clone(),
        proposers: knowledge.proposers.clone(),
        source: knowledge.source.clone(),
        final_hash: knowledge.final_hash.clone(),
    }
}

fn alike(it: &KnowledgeRecord) -> SimilarKnowledge {
    let KnowledgeSummary { key, output_bytes, .. } = known(it);
    SimilarKnowledge { key, words: it.knowledge.words.clone(), output_bytes }
}

fn named(task: &str) -> KnowledgeKey {
    KnowledgeKey { task_id: task.to_owned(), epoch: 1 }
}

fn asked(whose: &AccountId) -> KnowledgeLookup {
    KnowledgeLookup {
        account: whose.clone(),
        task_type: "swarm".to_owned(),
        digests: digests("in"),
        exact: 2,
        others: 3,
    }
}

async fn hits(store: &Store, asked: &KnowledgeLookup) -> KnowledgeHits {
    store.knowledge().hits(&behalf(&asked.account), asked).await.unwrap()
}

pub(crate) async fn a_decision_is_found_for_the_same_inputs(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    assert_eq!(hits(store, &asked(&alice)).await, KnowledgeHits::default());
    let mut same = Vec::new();
    for number in 0..3 {
        let id = format!("same-{number}");
        same.push(learned(store, &alice, &id, &decision(100 + number)).await);
    }
    let other = Knowledge { digests: digests("other"), ..decision(200) };
    let other = learned(store, &alice, "other", &other).await;
    let elsewhere = Knowledge { task_type: "elsewhere".to_owned(), ..decision(300) };
    learned(store, &alice, "elsewhere", &elsewhere).await;

    let found = hits(store, &asked(&alice)).await;
    assert_eq!(found.exact, [known(&same[2]), known(&same[1])]);
    // The newest three are searched, and two of them are on the same inputs.
    assert_eq!(found.others, [alike(&other)]);
    let another_policy =
        KnowledgeDigests { policy_id: "vp.crosscheck.v1".to_owned(), ..digests("in") };
    let found = hits(store, &KnowledgeLookup { digests: another_policy, ..asked(&alice) }).await;
    assert_eq!((found.exact.len(), found.others.len()), (0, 3));
    // No other account learns of it.
    assert_eq!(hits(store, &asked(&account("bob"))).await, KnowledgeHits::default());
}

pub(crate) async fn a_deprecated_decision_is_exported_and_not_used(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    learned(store, &alice, "t-1", &decision(100)).await;
    let which = KnowledgeDeprecation { task: key(&alice, "t-1"), epoch: 1, at: at(200) };
    let (knowledge, whose) = (store.knowledge(), behalf(&alice));
    assert!(knowledge.deprecate(&whose, &which).await.unwrap());
    assert!(!knowledge.deprecate(&whose, &which).await.unwrap());
    assert_eq!(hits(store, &asked(&alice)).await, KnowledgeHits::default());
    let page =
        KnowledgeFilter { of: KnowledgeScope::Task("t-1".to_owned()), before: None, limit: 10 };
    let found = knowledge.export(&whose, &alice, &page).await.unwrap();
    let expected = Knowledge { deprecated_at: Some(at(200)), ..decision(100) };
    assert_eq!(found, [KnowledgeRecord { task_id: "t-1".to_owned(), knowledge: expected }]);
}

pub(crate) async fn a_deprecation_applies_to_every_equal_decision(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    learned(store, &alice, "first", &decision(100)).await;
    let copy = Knowledge { source: Some(named("first")), ..decision(101) };
    learned(store, &alice, "copy", &copy).await;
    learned(store, &alice, "anew", &decision(102)).await;
    let rome = Knowledge { output_digest: "sha256:rome".to_owned(), ..decision(103) };
    learned(store, &alice, "other-output", &rome).await;
    let elsewhere = Knowledge { digests: digests("other"), ..decision(104) };
    learned(store, &alice, "other-inputs", &elsewhere).await;
    learned(store, &bob, "first", &decision(100)).await;

    let which = KnowledgeDeprecation { task: key(&alice, "copy"), epoch: 1, at: at(200) };
    let done = store.knowledge().deprecate(&behalf(&alice), &which).await.unwrap();
    assert!(done);
    let wide = |whose: &AccountId| KnowledgeLookup { exact: 9, others: 9, ..asked(whose) };
    let names = |found: &[KnowledgeSummary]| -> Vec<String> {
        found.iter().map(|it| it.key.task_id.clone()).collect()
    };
    let found = hits(store, &wide(&alice)).await;
    assert_eq!(names(&found.exact), ["other-output"]);
    assert_eq!(found.others.iter().map(|it| &it.key.task_id).collect::<Vec<_>>(), ["other-inputs"]);
    assert_eq!(names(&hits(store, &wide(&bob)).await.exact), ["first"]);
}

pub(crate) async fn a_decision_derived_from_a_deprecated_one_is_not_used(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    learned(store, &alice, "first", &decision(100)).await;
    let which = KnowledgeDeprecation { task: key(&alice, "first"), epoch: 1, at: at(200) };
    store.knowledge().deprecate(&behalf(&alice), &which).await.unwrap();
    // It was being verified when somebody complained.
    let copy = Knowledge { source: Some(named("first")), ..decision(300) };
    learned(store, &alice, "copy", &copy).await;
    assert_eq!(hits(store, &asked(&alice)).await, KnowledgeHits::default());
    // A decision that is proposed and approved again counts.
    let anew = learned(store, &alice, "anew", &decision(400)).await;
    assert_eq!(hits(store, &asked(&alice)).await.exact, [known(&anew)]);
}

pub(crate) async fn a_deprecated_decision_is_not_reused(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    for whose in [&alice, &bob] {
        learned(store, whose, "first", &decision(100)).await;
    }
    let record = submitted(store, &new_task(&alice, "second", 110)).await;
    let reusing = |record: &TaskRecord| {
        let with = TaskAppendExtras { reused: Some(named("first")), ..TaskAppendExtras::default() };
        TaskAppend { with, ..after(record, vec![], 120) }
    };
    assert_eq!(append(store, &reusing(&record)).await, WriteOutcome::Done(()));
    let which = KnowledgeDeprecation { task: key(&alice, "first"), epoch: 1, at: at(200) };
    store.knowledge().deprecate(&behalf(&alice), &which).await.unwrap();
    // It was found before somebody complained, and nothing is written of it afterwards.
    let refused = WriteOutcome::Refused(TaskAppendRefusal::Deprecated);
    assert_eq!(append(store, &reusing(&record)).await, refused);
    assert_eq!(get(store, &record.key).await.unwrap().updated_at, at(120));
    let other = submitted(store, &new_task(&bob, "second", 110)).await;
    assert_eq!(append(store, &reusing(&other)).await, WriteOutcome::Done(()));
}

pub(crate) async fn outputs_are_read_by_name_and_none_that_is_too_large(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    let small = learned(store, &alice, "small", &decision(100)).await;
    let large = Knowledge { output: json!("é".repeat(500)), ..decision(101) };
    let large = learned(store, &alice, "large", &large).await;
    learned(store, &bob, "small", &decision(102)).await;
    let read = async |whose: &AccountId, largest: u64| {
        let keys = ["large", "none", "small"].map(named).to_vec();
        let wanted = KnowledgeFetch { account: whose.clone(), keys, largest };
        store.knowledge().read(&behalf(whose), &wanted).await.unwrap()
    };
    // The size is in bytes, including the two quotes.
    assert_eq!(known(&large).output_bytes, 1_002);
    assert_eq!(read(&alice, 1_002).await, [large, small.clone()]);
    assert_eq!(read(&alice, 1_001).await, [small]);
    assert_eq!(read(&bob, 1_002).await.len(), 1);
}

pub(crate) async fn knowledge_is_exported_in_pages(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let mut all = Vec::new();
    for number in 0..7 {
        let knowledge = decision(100 + number / 2);
        all.push(learned(store, &alice, &format!("t-{number}"), &knowledge).await);
    }
    learned(store, &account("bob"), "t-9", &decision(900)).await;
    all.reverse();
    let of = KnowledgeScope::TaskType("swarm".to_owned());
    let mut page = KnowledgeFilter { of, before: None, limit: 2 };
    let mut found: Vec<KnowledgeRecord> = Vec::new();
    loop {
        let some = store.knowledge().export(&behalf(&alice), &alice, &page).await.unwrap();
        let Some(last) = some.last() else { break };
        page.before = Some(KnowledgePosition {
            created_at: last.knowledge.created_at,
            task_id: last.task_id.clone(),
            epoch: last.knowledge.epoch,
        });
        found.extend(some);
    }
    assert_eq!(found, all);
}
