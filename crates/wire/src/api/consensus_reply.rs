//! Replies of the consensus API, made from rounds.

use jurat_core::{
    consensus::{OutputBy, ScoreSummary, Spread, output_by, spread},
    job::{Kind, Toggle},
    reason,
    replica::{Label, Replica, Said},
    round::{Closing, OpenRound, Round},
};
use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// The reply to a delegate, validate or factcheck request.
#[derive(Debug, Serialize)]
pub struct Reply<'a> {
    /// Validate and factcheck: the verdict, or null.
    #[serde(skip_serializing_if = "Member::is_left_out")]
    verdict: Member<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<String>>,
    /// Delegate: `OK`, or `NO_CONSENSUS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Member::is_left_out")]
    output: Member<&'a Value>,
    confidence: f64,
    consensus: ConsensusBlock<'a>,
    replicas: Vec<ReplicaBody<'a>>,
    round_id: &'a str,
    receipt_id: &'a str,
}

/// A member that one kind of reply has, perhaps as null, and another has not.
#[derive(Debug)]
enum Member<T> {
    LeftOut,
    Is(Option<T>),
}

impl<T> Member<T> {
    const fn is_left_out(&self) -> bool {
        matches!(self, Self::LeftOut)
    }
}

impl<T: Serialize> Serialize for Member<T> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::LeftOut => writer.serialize_none(),
            Self::Is(value) => value.serialize(writer),
        }
    }
}

/// The `consensus` block: the five names every client may rely on, then ours.
#[derive(Debug, Serialize)]
pub struct ConsensusBlock<'a> {
    replicas: usize,
    agreement: f64,
    verdicts: Vec<Word>,
    strategy: &'a str,
    confidence: f64,
    outcome: &'static str,
    agreement_answered: f64,
    asked: usize,
    started: usize,
    answered: usize,
    cancelled: usize,
    equivalence: &'a str,
    groups: &'a [Option<usize>],
    winner: Option<usize>,
    effective_votes: f64,
    disagreement: bool,
    tie_broken: bool,
    score: Option<ScoreBody<'a>>,
    /// Whether a replica gave the output as it is, or merging made it.
    output_by: Option<&'static str>,
    /// How far the numbers of the winning outputs lie apart, by JSON Pointer.
    spread: BTreeMap<String, SpreadBody>,
}

#[derive(Debug, Serialize)]
struct SpreadBody {
    min: f64,
    max: f64,
    deviation: f64,
}

#[derive(Debug, Serialize)]
struct ScoreBody<'a> {
    method: &'a str,
    value: f64,
    min: f64,
    max: f64,
    deviation: f64,
}

/// One replica, as it stands in replies and in events.
#[derive(Debug, Serialize)]
pub struct ReplicaBody<'a> {
    replica_id: usize,
    session_id: &'a str,
    executor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Word>,
    output: Option<&'a Value>,
    score: Option<f64>,
    reason_codes: &'a [u16],
    evidence: EvidenceBody<'a>,
    latency_ms: u64,
    cost: u64,
    error: Option<ErrorBody<'a>>,
    independence: String,
    reliability: f64,
    group: Option<usize>,
    verifier_result_hash: Option<&'a str>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct ErrorBody<'a> {
    code: &'static str,
    detail: &'a str,
}

#[derive(Debug, Default, Serialize)]
struct EvidenceBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    refs: Option<Vec<RefBody<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline: Option<Vec<InlineBody<'a>>>,
}

#[derive(Debug, Serialize)]
struct RefBody<'a> {
    uri: &'a str,
    digest: &'a str,
    size_bytes: u64,
    mime: &'a str,
    created_at: u64,
    producer: &'a str,
}

#[derive(Debug, Serialize)]
struct InlineBody<'a> {
    mime: &'a str,
    content: &'a str,
}

/// A label by its name.
#[derive(Debug, Clone, Copy)]
struct Word(Label);

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str(self.0.as_str())
    }
}

impl<'a> Reply<'a> {
    /// The reply of a round that has ended; `None` while it runs.
    pub fn of(round: &'a Round) -> Option<Self> {
        let closing = round.closing.as_ref()?;
        let consensus = &closing.consensus;
        let is_delegate = round.open.kind == Kind::Delegate;
        Some(Self {
            verdict: if is_delegate {
                Member::LeftOut
            } else {
                Member::Is(consensus.verdict.map(Word))
            },
            reasons: (!is_delegate).then(|| reasons(closing)),
            status: is_delegate.then(|| consensus.verdict.map_or("NO_CONSENSUS", Label::as_str)),
            output: if is_delegate {
                Member::Is(consensus.output.as_ref())
            } else {
                Member::LeftOut
            },
            confidence: consensus.confidence,
            consensus: ConsensusBlock::of(closing),
            replicas: replicas(&round.open, closing),
            round_id: round.open.id.as_str(),
            receipt_id: &closing.receipt_id,
        })
    }
}

impl<'a> ConsensusBlock<'a> {
    pub fn of(closing: &'a Closing) -> Self {
        let consensus = &closing.consensus;
        let spread = spread(&closing.replicas, consensus).into_iter();
        Self {
            replicas: consensus.asked,
            agreement: consensus.agreement,
            verdicts: consensus.verdicts.iter().copied().map(Word).collect(),
            strategy: &consensus.strategy,
            confidence: consensus.confidence,
            outcome: consensus.outcome.as_str(),
            agreement_answered: consensus.agreement_answered,
            asked: consensus.asked,
            started: consensus.started,
            answered: consensus.answered,
            cancelled: consensus.cancelled,
            equivalence: &consensus.equivalence,
            groups: &consensus.groups,
            winner: consensus.winner,
            effective_votes: consensus.effective_votes,
            disagreement: consensus.disagreed,
            tie_broken: consensus.tie_broken,
            score: consensus.score.as_ref().map(ScoreBody::of),
            output_by: output_by(&closing.replicas, consensus).map(|by| match by {
                OutputBy::Replica => "replica",
                OutputBy::Merge => "merge",
            }),
            spread: spread
                .map(|(at, Spread { min, max, deviation })| {
                    (at, SpreadBody { min, max, deviation })
                })
                .collect(),
        }
    }
}

impl<'a> ScoreBody<'a> {
    fn of(summary: &'a ScoreSummary) -> Self {
        let ScoreSummary { method, value, min, max, deviation } = summary;
        Self { method, value: *value, min: *min, max: *max, deviation: *deviation }
    }
}

/// All replicas of a round, each with its group.
pub fn replicas<'a>(open: &OpenRound, closing: &'a Closing) -> Vec<ReplicaBody<'a>> {
    let one = |replica: &'a Replica| {
        let group = closing.consensus.groups.get(replica.index).copied().flatten();
        ReplicaBody::of(open.kind, open.traces, replica, group)
    };
    closing.replicas.iter().map(one).collect()
}

impl<'a> ReplicaBody<'a> {
    pub fn of(kind: Kind, traces: Toggle, replica: &'a Replica, group: Option<usize>) -> Self {
        let said = replica.answer.said();
        let label = Word(replica.answer.label());
        let is_delegate = kind == Kind::Delegate;
        Self {
            replica_id: replica.index,
            session_id: &replica.session_id,
            executor: &replica.executor,
            verdict: (!is_delegate).then_some(label),
            status: is_delegate.then_some(label),
            output: said.and_then(|said| said.output.as_ref()),
            score: said.and_then(|said| said.score),
            reason_codes: said.map_or(&[], |said| &said.reason_codes),
            evidence: said.map(|said| EvidenceBody::of(said, traces)).unwrap_or_default(),
            latency_ms: replica.latency_ms,
            cost: replica.cost_micros,
            error: replica
                .answer
                .failure()
                .map(|failure| ErrorBody { code: failure.code.as_str(), detail: &failure.detail }),
            independence: replica.independence.to_string(),
            reliability: replica.reliability,
            group,
            verifier_result_hash: said.and_then(|said| said.result_hash.as_deref()),
            notes: said.map_or(&[], |said| &said.notes),
        }
    }
}

impl<'a> EvidenceBody<'a> {
    fn of(said: &'a Said, traces: Toggle) -> Self {
        let refs = said.evidence.refs.iter().map(|it| RefBody {
            uri: &it.uri,
            digest: &it.digest,
            size_bytes: it.size_bytes,
            mime: &it.mime,
            created_at: it.created_at,
            producer: &it.producer,
        });
        let inline = said
            .evidence
            .inline
            .iter()
            .map(|it| InlineBody { mime: &it.mime, content: &it.content });
        Self {
            refs: Some(refs.collect()),
            inline: (traces == Toggle::On).then(|| inline.collect()),
        }
    }
}

/// Why the winning side says what it says, in words.
fn reasons(closing: &Closing) -> Vec<String> {
    let consensus = &closing.consensus;
    let winners = closing.replicas.iter().filter(|replica| {
        consensus.winner.is_some()
            && consensus.groups.get(replica.index).copied().flatten() == consensus.winner
    });
    let mut reasons: Vec<String> = Vec::new();
    for said in winners.filter_map(|replica| replica.answer.said()) {
        let texts = said.reason_codes.iter().map(|code| {
            let known = reason::ALL.iter().find(|(known, ..)| known == code);
            known.map_or_else(|| format!("Reason code {code}."), |(_, _, text)| (*text).to_owned())
        });
        for text in texts {
            if !reasons.contains(&text) {
                reasons.push(text);
            }
        }
    }
    reasons
}
