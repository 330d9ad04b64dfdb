//! What is remembered of decisions.

use jurat_core::id::AccountId;
use jurat_store::{
    AppendedWith, Deprecation, Knowledge, KnowledgeAsked, KnowledgeDigests, KnowledgeHits,
    KnowledgeOf, KnowledgePage, KnowledgePosition, Learned, Store, TaskAppend, Written,
};
use serde_json::json;

use super::{
    tasks::{after, append, key, new_task, submitted},
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

async fn learned(store: &dyn Store, whose: &AccountId, id: &str, knowledge: &Knowledge) -> Learned {
    let record = submitted(store, &new_task(whose, id, 10)).await;
    let with = AppendedWith { knowledge: Some(knowledge.clone()), ..AppendedWith::default() };
    let write = TaskAppend { with, ..after(&record, vec![], 20) };
    assert_eq!(append(store, &write).await, Written::Done(()));
    Learned { task_id: id.to_owned(), knowledge: knowledge.clone() }
}

fn asked(whose: &AccountId) -> KnowledgeAsked {
    KnowledgeAsked {
        account: whose.clone(),
        task_type: "swarm".to_owned(),
        digests: digests("in"),
        exact: 2,
        others: 3,
    }
}

async fn hits(store: &dyn Store, asked: &KnowledgeAsked) -> KnowledgeHits {
    store.tasks().knowledge_hits(&behalf(&asked.account), asked).await.unwrap()
}

pub(crate) async fn a_decision_is_found_by_those_who_ask_the_same(backend: &Backend) {
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
    assert_eq!(found.exact, [same[2].clone(), same[1].clone()]);
    // The newest three are looked at, and two of them are on the same.
    assert_eq!(found.others, [other]);
    let another_policy =
        KnowledgeDigests { policy_id: "vp.crosscheck.v1".to_owned(), ..digests("in") };
    let found = hits(store, &KnowledgeAsked { digests: another_policy, ..asked(&alice) }).await;
    assert_eq!((found.exact.len(), found.others.len()), (0, 3));
    // Nobody else learns of it.
    assert_eq!(hits(store, &asked(&account("bob"))).await, KnowledgeHits::default());
}

pub(crate) async fn a_deprecated_decision_is_exported_and_not_used(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    learned(store, &alice, "t-1", &decision(100)).await;
    let which = Deprecation { task: key(&alice, "t-1"), epoch: 1, at: at(200) };
    let (tasks, whose) = (store.tasks(), behalf(&alice));
    assert_eq!(tasks.knowledge_deprecate(&whose, &which, None).await.unwrap(), Written::Done(true));
    assert_eq!(
        tasks.knowledge_deprecate(&whose, &which, None).await.unwrap(),
        Written::Done(false)
    );
    assert_eq!(hits(store, &asked(&alice)).await, KnowledgeHits::default());
    let page = KnowledgePage {
        account: alice.clone(),
        of: KnowledgeOf::Task("t-1".to_owned()),
        before: None,
        limit: 10,
    };
    let found = tasks.knowledge_export(&whose, &page).await.unwrap();
    let expected = Knowledge { deprecated_at: Some(at(200)), ..decision(100) };
    assert_eq!(found, [Learned { task_id: "t-1".to_owned(), knowledge: expected }]);
}

pub(crate) async fn what_is_remembered_is_exported_in_pages(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let mut all = Vec::new();
    for number in 0..7 {
        let knowledge = decision(100 + number / 2);
        all.push(learned(store, &alice, &format!("t-{number}"), &knowledge).await);
    }
    learned(store, &account("bob"), "t-9", &decision(900)).await;
    all.reverse();
    let of = KnowledgeOf::TaskType("swarm".to_owned());
    let mut page = KnowledgePage { account: alice.clone(), of, before: None, limit: 2 };
    let mut found: Vec<Learned> = Vec::new();
    loop {
        let some = store.tasks().knowledge_export(&behalf(&alice), &page).await.unwrap();
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
