//! What candidates of a simulated world refer to, and what is found there.

use std::time::Duration;

use jurat_core::{
    candidate::ArtifactRef,
    evidence::{Checked, Finding, Found, amend_answer, checked},
    replica::Answer,
};
use jurat_engine::task::ProposeOrder;

use super::{
    chance::Chance,
    plan::Weather,
    world::{World, pause},
};

/// What a candidate refers to.
pub(super) fn refs(chance: &mut Chance, matter: u64, order: &ProposeOrder) -> Vec<ArtifactRef> {
    let is_wanted = order.filed.task.terms.da_quorum > 0;
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

/// Looks at what is referred to: what the answer of a verifier is then, and what was there for it.
pub(super) async fn fetch(
    world: &World,
    answer: Answer,
    refs: &[ArtifactRef],
) -> (Answer, Vec<String>) {
    let mut findings = Vec::new();
    for reference in refs {
        findings.push(Finding::new(reference, look(world, &reference.uri).await));
    }
    let answer = amend_answer(answer, &findings);
    let available = answer.said().and_then(checked).as_ref().map(Checked::available);
    (answer, available.unwrap_or_default())
}

async fn look(world: &World, uri: &str) -> Found {
    let all = [Found::Seen, Found::Unreachable, Found::Timeout, Found::Denied, Found::Mismatch];
    // Most of it is there, or is not there, for everybody.
    let lasting = Chance::of(world.plan.seed, uri).between(0, 19);
    let found = match (world.plan.weather, lasting) {
        (Weather::Calm, _) | (Weather::Showers, 0..14) | (_, 0..10) => Found::Seen,
        (_, 10..14) => world.draw(|chance| all[usize::try_from(chance.between(0, 4)).unwrap()]),
        (_, 14..16) => Found::Unreachable,
        (_, 16) => Found::Timeout,
        (_, 17..19) => Found::Denied,
        _ => Found::Mismatch,
    };
    let span = if found == Found::Timeout { 1_500 } else { 20 };
    pause(Duration::from_millis(world.draw(|chance| chance.between(0, span)))).await;
    found
}
