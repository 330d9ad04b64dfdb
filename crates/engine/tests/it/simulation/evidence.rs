//! The references of candidates in a simulated world, and what is found there.

use std::time::Duration;

use jurat_core::round::{
    candidate::ArtifactRef,
    evidence::{EvidenceCheck, EvidenceFinding, EvidenceStatus, amend_answer, evidence_check},
    replica::ReplicaAnswer,
};
use jurat_engine::tasks::ProposeOrder;

use super::{
    chance::Chance,
    plan::Weather,
    world::{World, pause},
};

/// The references of a candidate.
pub(super) fn refs(chance: &mut Chance, matter: u64, order: &ProposeOrder) -> Vec<ArtifactRef> {
    let is_wanted = order.snapshot.task.terms.da_quorum > 0;
    if !chance.percent(if is_wanted { 85 } else { 30 }) {
        return Vec::new();
    }
    let reference = |page: u64| ArtifactRef {
        uri: format!("https://evidence.example/{matter}/{page}"),
        digest: format!("sha256:{matter:032x}{page:032x}"),
        size_bytes: 1,
        mime: "text/plain".to_owned(),
        created_at: 0,
        producer: order.executor.clone(),
    };
    let first = chance.between(0, 5);
    let second = chance.percent(20).then_some(first + 1);
    [first].into_iter().chain(second).map(reference).collect()
}

/// Fetches the references: the amended answer of a voter, and the evidence that it could see.
pub(super) async fn fetch(
    world: &World,
    answer: ReplicaAnswer,
    refs: &[ArtifactRef],
) -> (ReplicaAnswer, Vec<String>) {
    let mut findings = Vec::new();
    for reference in refs {
        findings.push(EvidenceFinding::new(reference, look(world, &reference.uri).await));
    }
    let answer = amend_answer(answer, &findings);
    let available =
        answer.content().and_then(evidence_check).as_ref().map(EvidenceCheck::available);
    (answer, available.unwrap_or_default())
}

async fn look(world: &World, uri: &str) -> EvidenceStatus {
    let all = [
        EvidenceStatus::Seen,
        EvidenceStatus::Unreachable,
        EvidenceStatus::Timeout,
        EvidenceStatus::Denied,
        EvidenceStatus::Mismatch,
    ];
    // Most of it exists, or does not exist, for everybody.
    let lasting = Chance::of(world.plan.seed, uri).between(0, 19);
    let found = match (world.plan.weather, lasting) {
        (Weather::Calm, _) | (Weather::Showers, 0..14) | (_, 0..10) => EvidenceStatus::Seen,
        (_, 10..14) => world.draw(|chance| all[usize::try_from(chance.between(0, 4)).unwrap()]),
        (_, 14..16) => EvidenceStatus::Unreachable,
        (_, 16) => EvidenceStatus::Timeout,
        (_, 17..19) => EvidenceStatus::Denied,
        _ => EvidenceStatus::Mismatch,
    };
    let span = if found == EvidenceStatus::Timeout { 1_500 } else { 20 };
    pause(Duration::from_millis(world.draw(|chance| chance.between(0, span)))).await;
    found
}
