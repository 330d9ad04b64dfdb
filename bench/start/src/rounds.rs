//! Rounds as the program writes them, made without executors.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jurat_core::{
    executor::Independence,
    id::{AccountId, NodeId, RoundId},
    round::{
        OpenRound, RetainedRequest, RoundClosing, RoundEnding, Seat,
        consensus::{Basis, Consensus, Outcome},
        decision::DecisionEntry,
        job::{Disagreement, JobKind, Toggle},
        replica::{AnswerContent, Label, Replica, ReplicaAnswer, ReplicaVote},
    },
    time::Timestamp,
};
use jurat_store::{Behalf, RoundCharge, Store, WriteOutcome};
use serde_json::json;

/// Concurrent writes: as many as the store commits together.
const AT_ONCE: usize = 256;
/// 2026-01-01, followed by one round every second.
const FIRST_MS: i64 = 1_767_225_600_000;
const REPLICAS: usize = 3;

/// Adds closed rounds: three validations for every delegation, and one split in twenty. There is no
/// fact check and no abstention, so that lists of those find nothing.
pub(crate) async fn fill(store: &Arc<Store>, count: u32) -> Result<()> {
    let walks = stream::iter(0..count).map(|number| {
        let store = Arc::clone(store);
        async move {
            let open = open(number, u128::from(number));
            let closing = closing(&open, number);
            store.rounds().open(&Behalf::from(&open.account), &open, None).await?;
            ensure!(
                store.rounds().close(&Behalf::from(&open.account), &open, &closing).await?
                    == WriteOutcome::Done(RoundCharge::Own),
                "lost"
            );
            Ok(())
        }
    });
    walks.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    Ok(())
}

/// Adds rounds that stay open.
pub(crate) async fn leave_open(store: &Arc<Store>, turn: usize, count: u32) -> Result<()> {
    for number in 0..count {
        // The second half of the identifier distinguishes the starts.
        let bits = (u128::try_from(turn)? + 1) << 64 | u128::from(number);
        store
            .rounds()
            .open(&Behalf::from(&open(number, bits).account), &open(number, bits), None)
            .await?;
    }
    Ok(())
}

fn open(number: u32, bits: u128) -> OpenRound {
    let opened_at = Timestamp::from_millis(FIRST_MS + i64::from(number) * 1_000);
    OpenRound {
        id: RoundId::new(opened_at, bits),
        account: AccountId::admin(),
        kind: if number.is_multiple_of(4) { JobKind::Delegate } else { JobKind::Validate },
        node: NodeId::new(Timestamp::from_millis(FIRST_MS), 1),
        lease_token: u64::from(number) + 1,
        lease_until: opened_at.plus_millis(70_000),
        request_digest: format!("sha256:{number:064x}"),
        policy_id: "vp.schema_only.v1".to_owned(),
        policy_hash: format!("sha256:{:064x}", 7),
        disagreement: Disagreement::ReturnAll,
        traces: Toggle::Off,
        seats: (0..REPLICAS).map(seat).collect(),
        opened_at,
        deadline_at: opened_at.plus_millis(60_000),
        run: None,
        verifier: None,
        step: None,
        hold: None,
        kept: RetainedRequest::default(),
    }
}

fn seat(index: usize) -> Seat {
    Seat {
        session_id: format!("session-{index}"),
        executor: format!("executor-{index}"),
        independence: independence(index),
        reliability: 0.8,
    }
}

fn independence(index: usize) -> Independence {
    Independence {
        provider_family: format!("family-{index}"),
        model_id: format!("model-{index}"),
        host: "127.0.0.1".to_owned(),
        executor: format!("executor-{index}"),
    }
}

fn closing(open: &OpenRound, number: u32) -> RoundClosing {
    let is_split = number.is_multiple_of(20);
    let label = |index| if is_split && 0 < index { Label::Invalid } else { Label::Valid };
    let replicas: Vec<Replica> = (0..REPLICAS).map(|index| replica(index, label(index))).collect();
    let consensus = Consensus {
        outcome: if is_split { Outcome::Split } else { Outcome::Agreed },
        verdict: (!is_split).then_some(Label::Valid),
        output: None,
        verdicts: replicas.iter().map(|replica| replica.answer.label()).collect(),
        groups: vec![Some(0); REPLICAS],
        winner: (!is_split).then_some(0),
        asked: REPLICAS,
        started: REPLICAS,
        answered: REPLICAS,
        cancelled: 0,
        agreement: 1.0,
        agreement_answered: 1.0,
        strategy: "majority".to_owned(),
        equivalence: "label".to_owned(),
        score: None,
        confidence: 0.8,
        effective_votes: 2.7,
        disagreed: is_split,
        tie_broken: false,
        basis: (!is_split).then_some(Basis::Executors),
    };
    let closed_at = open.opened_at.plus_millis(250);
    let sealed = DecisionEntry::new(open, RoundEnding::Closed, &replicas, &consensus, closed_at)
        .canonical_entry();
    RoundClosing {
        ending: RoundEnding::Closed,
        replicas,
        consensus,
        closed_at,
        receipt_id: sealed.digest,
        entry: sealed.text,
        bookings: Vec::new(),
    }
}

fn replica(index: usize, label: Label) -> Replica {
    let said = AnswerContent {
        output: Some(json!({ "answer": "a sentence of the usual length, as a model says it" })),
        score: Some(0.9),
        ..AnswerContent::default()
    };
    Replica {
        index,
        seat: index,
        replaced_by: None,
        session_id: format!("session-{index}"),
        executor: format!("executor-{index}"),
        independence: independence(index),
        reliability: 0.8,
        answer: ReplicaAnswer::Vote(ReplicaVote { label, said }),
        latency_ms: 40,
        cost_micros: 0,
        usage: None,
    }
}
