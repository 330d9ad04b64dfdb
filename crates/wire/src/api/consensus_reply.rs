//! Replies of the consensus API, built from rounds.

use std::{borrow::Cow, collections::BTreeMap};

use jurat_core::{
    id::RoundId,
    reason,
    round::{
        OpenRound, Round, RoundClosing, RoundEnding,
        consensus::{OutputOrigin, ScoreSummary, Spread, output_by, spread},
        job::{JobKind, Toggle},
        replica::{self, AnswerContent, Replica, ReplicaFailure},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::words::{Basis, FailureCode, Label, Outcome};

/// Members of an output that hold the answer in words, by preference.
const ANSWERS: [&str; 3] = ["answer", "text", "content"];
/// Reason added to a winning verdict whose confidence is not above one half.
const UNLIKELY: &str = "The confidence is not above one half: the deciding replicas are no more reliable than those that disagree or gave no answer.";

/// The reply to a consensus request; the kind of job decides its form.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged)]
pub enum RoundReply<'a> {
    Delegate(DelegateReply<'a>),
    Verdict(VerdictReply<'a>),
}

/// The reply to a delegate request.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct DelegateReply<'a> {
    /// `OK`, or `NO_CONSENSUS` when no output won.
    #[schema(example = "OK")]
    pub status: Cow<'static, str>,
    /// The winning output; null if there is none.
    #[schema(value_type = Value, required = true)]
    pub output: Option<Cow<'a, Value>>,
    /// Probability that the output is right; 0 if there is none, never 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    pub consensus: ConsensusBlock<'a>,
    /// One for each seat, in the order of `verdicts`, followed by the replicas that a spare
    /// replaced.
    pub replicas: Vec<ReplicaBody<'a>>,
    pub round_id: Cow<'a, str>,
    /// Digest of the recorded decision.
    pub receipt_id: Cow<'a, str>,
}

/// The reply to a validate or factcheck request.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct VerdictReply<'a> {
    /// The winning verdict, such as `VALID` or `TRUE`; null if none won.
    #[schema(required = true)]
    pub verdict: Option<Label>,
    /// The winning side's reasons, in words.
    pub reasons: Vec<String>,
    /// Probability that the verdict is right; 0 if there is none, never 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    pub consensus: ConsensusBlock<'a>,
    /// One for each seat, in the order of `verdicts`, followed by the replicas that a spare
    /// replaced.
    pub replicas: Vec<ReplicaBody<'a>>,
    pub round_id: Cow<'a, str>,
    /// Digest of the recorded decision.
    pub receipt_id: Cow<'a, str>,
}

/// The `consensus` block: the five fields that every client may rely on, then Jurat's own.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Consensus)]
pub struct ConsensusBlock<'a> {
    /// Number of seats: the requested number of replicas.
    pub replicas: usize,
    /// Size of the largest group divided by the number of replicas asked.
    #[schema(minimum = 0, maximum = 1)]
    pub agreement: f64,
    /// The label of each seat, in selection order: that of the last session called for the seat.
    pub verdicts: Vec<Label>,
    /// The aggregation; `none` for a round that expired or was cancelled.
    #[schema(example = "majority")]
    pub strategy: Cow<'a, str>,
    /// Probability that the winning answer is right; 0 if there is no winner, never 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    pub outcome: Outcome,
    /// Size of the largest group divided by the number of replicas that answered.
    #[schema(minimum = 0, maximum = 1)]
    pub agreement_answered: f64,
    /// Same value as `replicas`.
    pub asked: usize,
    /// Number of seats for which a session was called; the others failed before a call.
    pub started: usize,
    /// Number of replicas that gave an answer of any kind.
    pub answered: usize,
    /// Number of replicas that were cancelled before they answered.
    pub cancelled: usize,
    /// The relation by which answers were compared; `label` for validate and factcheck.
    #[schema(example = "label")]
    pub equivalence: Cow<'a, str>,
    /// The group of each seat; null for a seat without a vote.
    pub groups: Cow<'a, [Option<usize>]>,
    /// The winning group.
    #[schema(required = true)]
    pub winner: Option<usize>,
    /// Number of independent votes that the votes are equivalent to.
    pub effective_votes: f64,
    /// Whether the requested agreement was not reached.
    pub disagreement: bool,
    /// True if the winning answer has a confidence of one half or less, and therefore is no more
    /// likely right than wrong; otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    pub low_confidence: Option<bool>,
    /// Whether `best_effort` chose between equal groups.
    pub tie_broken: bool,
    /// Basis of the winning answer: `executors`, `judges`, or `form` if the server decided alone
    /// under a policy that needs no judgment. Null if there is no winner.
    #[schema(required = true)]
    pub basis: Option<Basis>,
    #[schema(required = true)]
    pub score: Option<ScoreBody<'a>>,
    /// `replica` if one replica gave the output, `merge` if it was built from several.
    #[schema(required = true)]
    pub output_by: Option<Cow<'static, str>>,
    /// Spread of the numbers in the winning outputs, by JSON Pointer.
    pub spread: BTreeMap<String, SpreadBody>,
}

/// Spread of numbers.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Spread)]
pub struct SpreadBody {
    pub min: f64,
    pub max: f64,
    pub deviation: f64,
}

/// The winners' own scores.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Score)]
pub struct ScoreBody<'a> {
    /// `mean` or `median`.
    #[schema(example = "mean")]
    pub method: Cow<'a, str>,
    pub value: f64,
    pub min: f64,
    pub max: f64,
    pub deviation: f64,
}

/// A replica: one session's attempt within a round.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Replica)]
pub struct ReplicaBody<'a> {
    /// Position in selection order, from 0. Spares follow the seats.
    pub replica_id: usize,
    pub session_id: Cow<'a, str>,
    pub executor: Cow<'a, str>,
    /// Validate and factcheck: the replica's verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Label)]
    pub verdict: Option<Label>,
    /// Delegate: the replica's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Label)]
    pub status: Option<Label>,
    /// The output it returned; null in validate.
    #[schema(value_type = Value, required = true)]
    pub output: Option<Cow<'a, Value>>,
    /// Its own confidence in its answer: `score` of `/verify`, or the member `confidence` of the
    /// output.
    #[schema(required = true)]
    pub score: Option<f64>,
    /// Reason codes for its answer.
    pub reason_codes: Cow<'a, [u16]>,
    pub evidence: EvidenceBody<'a>,
    /// Time until its answer arrived.
    pub latency_ms: u64,
    /// The price of the session plus the judge's usage, in millionths of a credit.
    pub cost: u64,
    #[schema(required = true)]
    pub error: Option<ReplicaErrorBody<'a>>,
    /// Only if it failed and was replaced by a spare: the `replica_id` of the spare. Such a replica
    /// is neither in `verdicts` nor in any count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = usize)]
    pub replaced_by: Option<usize>,
    /// `provider/model@host`.
    pub independence: String,
    /// Assumed share of correct answers of the session.
    #[schema(minimum = 0, maximum = 1)]
    pub reliability: f64,
    /// Its group, as in `consensus.groups`.
    #[schema(required = true)]
    pub group: Option<usize>,
    /// The hash that the server computed; validate only.
    #[schema(required = true)]
    pub verifier_result_hash: Option<Cow<'a, str>>,
    /// Notes, such as a missing hash.
    pub notes: Cow<'a, [String]>,
    /// Only in events: the round that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub round_id: Option<Cow<'a, str>>,
}

/// The parts of a single replica that version 2 replies show.
#[derive(Debug, Default)]
pub(super) struct SingleReplica<'a> {
    pub(super) label: Option<Label>,
    pub(super) evidence: EvidenceBody<'a>,
    pub(super) error: Option<ReplicaErrorBody<'a>>,
    pub(super) session_id: Cow<'a, str>,
}

impl<'a> SingleReplica<'a> {
    pub(super) fn of(replicas: Vec<ReplicaBody<'a>>) -> Self {
        let one = replicas.into_iter().next().map(|replica| Self {
            label: replica.verdict.or(replica.status),
            evidence: replica.evidence,
            error: replica.error,
            session_id: replica.session_id,
        });
        one.unwrap_or_default()
    }
}

/// Why a replica has no verdict.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ReplicaError)]
pub struct ReplicaErrorBody<'a> {
    pub code: FailureCode,
    pub detail: Cow<'a, str>,
}

impl<'a> ReplicaErrorBody<'a> {
    pub(super) fn of(failure: &'a ReplicaFailure) -> Self {
        Self { code: FailureCode(failure.code), detail: Cow::Borrowed(&failure.detail) }
    }
}

/// Evidence from a replica; empty if it gave no answer.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[schema(as = Evidence)]
pub struct EvidenceBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<EvidenceRefBody>)]
    pub refs: Option<Vec<EvidenceRefBody<'a>>>,
    /// Only if `consensus.include` asks for traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<EvidenceInline>)]
    pub inline: Option<Vec<EvidenceInline<'a>>>,
}

/// Evidence stored elsewhere.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = EvidenceRef)]
pub struct EvidenceRefBody<'a> {
    pub uri: Cow<'a, str>,
    pub digest: Cow<'a, str>,
    pub size_bytes: u64,
    pub mime: Cow<'a, str>,
    /// Milliseconds since 1970.
    pub created_at: u64,
    pub producer: Cow<'a, str>,
}

/// Inline evidence.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct EvidenceInline<'a> {
    pub mime: Cow<'a, str>,
    pub content: Cow<'a, str>,
}

impl<'a> RoundReply<'a> {
    /// The reply for a round that has ended; `None` while the round is open.
    pub fn of(round: &'a Round) -> Option<Self> {
        let closing = round.closing.as_ref()?;
        let consensus = &closing.consensus;
        let confidence = consensus.confidence;
        let block = ConsensusBlock::of(closing);
        let replicas = replicas(&round.open, closing);
        let (round_id, receipt_id) = (round.open.id.as_str(), closing.receipt_id.as_str());
        Some(match round.open.kind {
            JobKind::Delegate => Self::Delegate(DelegateReply {
                status: Cow::Borrowed(
                    consensus.verdict.map_or("NO_CONSENSUS", replica::Label::as_str),
                ),
                output: consensus.output.as_ref().map(Cow::Borrowed),
                confidence,
                consensus: block,
                replicas,
                round_id: Cow::Borrowed(round_id),
                receipt_id: Cow::Borrowed(receipt_id),
            }),
            JobKind::Validate | JobKind::Factcheck => Self::Verdict(VerdictReply {
                verdict: consensus.verdict.map(Label),
                reasons: reasons(closing),
                confidence,
                consensus: block,
                replicas,
                round_id: Cow::Borrowed(round_id),
                receipt_id: Cow::Borrowed(receipt_id),
            }),
        })
    }
}

impl<'a> ConsensusBlock<'a> {
    /// The consensus block of a round that has ended.
    pub fn of(closing: &'a RoundClosing) -> Self {
        let consensus = &closing.consensus;
        let spread = spread(&closing.replicas, consensus).into_iter();
        Self {
            replicas: consensus.asked,
            agreement: consensus.agreement,
            verdicts: consensus.verdicts.iter().copied().map(Label).collect(),
            strategy: Cow::Borrowed(&consensus.strategy),
            confidence: consensus.confidence,
            outcome: Outcome(consensus.outcome),
            agreement_answered: consensus.agreement_answered,
            asked: consensus.asked,
            started: consensus.started,
            answered: consensus.answered,
            cancelled: consensus.cancelled,
            equivalence: Cow::Borrowed(&consensus.equivalence),
            groups: Cow::Borrowed(&consensus.groups),
            winner: consensus.winner,
            effective_votes: consensus.effective_votes,
            disagreement: consensus.disagreed,
            low_confidence: consensus.is_unlikely().then_some(true),
            tie_broken: consensus.tie_broken,
            basis: consensus.basis.map(Basis),
            score: consensus.score.as_ref().map(ScoreBody::of),
            output_by: output_by(&closing.replicas, consensus)
                .map(|by| match by {
                    OutputOrigin::Replica => "replica",
                    OutputOrigin::Merge => "merge",
                })
                .map(Cow::Borrowed),
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
        Self {
            method: Cow::Borrowed(method),
            value: *value,
            min: *min,
            max: *max,
            deviation: *deviation,
        }
    }
}

/// Why a round ended before it was decided; `None` if it was decided.
pub const fn undecided(ending: RoundEnding) -> Option<&'static str> {
    match ending {
        RoundEnding::Closed => None,
        RoundEnding::Cancelled => Some("the round was cancelled before it was decided"),
        RoundEnding::Expired => Some("the node stopped before the round was decided"),
    }
}

/// An output in words: text as it is, or the answer of an object; `None` if it has neither.
pub(crate) fn words_of(output: &Value) -> Option<&str> {
    output.as_str().or_else(|| ANSWERS.iter().find_map(|name| output.get(name)?.as_str()))
}

/// All replicas of a round, each with its group: first those that count, in the order of
/// `verdicts`, then those that a spare replaced.
pub fn replicas<'a>(open: &OpenRound, closing: &'a RoundClosing) -> Vec<ReplicaBody<'a>> {
    let mut ordered: Vec<&Replica> = closing.replicas.iter().collect();
    ordered.sort_by_key(|replica| (!replica.is_counted(), replica.seat, replica.index));
    let one = |replica: &'a Replica| {
        let group = closing.consensus.group_of(replica);
        ReplicaBody::of(open.kind, open.traces, replica, group)
    };
    ordered.into_iter().map(one).collect()
}

impl<'a> ReplicaBody<'a> {
    /// A replica with its group; `traces` adds its inline evidence.
    pub fn of(kind: JobKind, traces: Toggle, replica: &'a Replica, group: Option<usize>) -> Self {
        let said = replica.answer.content();
        let label = Label(replica.answer.label());
        let is_delegate = kind == JobKind::Delegate;
        Self {
            replica_id: replica.index,
            session_id: Cow::Borrowed(&replica.session_id),
            executor: Cow::Borrowed(&replica.executor),
            verdict: (!is_delegate).then_some(label),
            status: is_delegate.then_some(label),
            output: said.and_then(|said| said.output.as_ref()).map(Cow::Borrowed),
            score: said.and_then(|said| said.score),
            reason_codes: Cow::Borrowed(said.map_or(&[], |said| &said.reason_codes)),
            evidence: said.map(|said| EvidenceBody::of(said, traces)).unwrap_or_default(),
            latency_ms: replica.latency_ms,
            cost: replica.cost_micros,
            error: replica.answer.failure().map(ReplicaErrorBody::of),
            replaced_by: replica.replaced_by,
            independence: replica.independence.to_string(),
            reliability: replica.reliability,
            group,
            verifier_result_hash: said
                .and_then(|said| said.result_hash.as_deref())
                .map(Cow::Borrowed),
            notes: Cow::Borrowed(said.map_or(&[], |said| &said.notes)),
            round_id: None,
        }
    }

    /// The replica for events, which name its round.
    #[must_use]
    pub(super) fn in_round(self, round: &'a RoundId) -> Self {
        Self { round_id: Some(Cow::Borrowed(round.as_str())), ..self }
    }
}

impl<'a> EvidenceBody<'a> {
    fn of(said: &'a AnswerContent, traces: Toggle) -> Self {
        let refs = said.evidence.refs.iter().map(|it| EvidenceRefBody {
            uri: Cow::Borrowed(&it.uri),
            digest: Cow::Borrowed(&it.digest),
            size_bytes: it.size_bytes,
            mime: Cow::Borrowed(&it.mime),
            created_at: it.created_at,
            producer: Cow::Borrowed(&it.producer),
        });
        let inline = said.evidence.inline.iter().map(|it| EvidenceInline {
            mime: Cow::Borrowed(&it.mime),
            content: Cow::Borrowed(&it.content),
        });
        Self {
            refs: Some(refs.collect()),
            inline: (traces == Toggle::On).then(|| inline.collect()),
        }
    }
}

/// The winning side's reasons, in words.
fn reasons(closing: &RoundClosing) -> Vec<String> {
    let consensus = &closing.consensus;
    let winners = closing.replicas.iter().filter(|replica| {
        consensus.winner.is_some() && consensus.group_of(replica) == consensus.winner
    });
    let mut reasons: Vec<String> = Vec::new();
    if consensus.is_unlikely() {
        reasons.push(UNLIKELY.to_owned());
    }
    for said in winners.filter_map(|replica| replica.answer.content()) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_output_is_said_in_words() {
        for (output, expected) in [
            (json!("four"), Some("four")),
            (json!({ "answer": "four", "confidence": 0.9 }), Some("four")),
            (json!({ "answer": 4 }), None),
            (json!(4), None),
        ] {
            assert_eq!(words_of(&output), expected);
        }
    }
}
