//! The JSON documents in rows. They borrow their data to write it, and own it after reading.

use std::borrow::Cow;

use jurat_core::{
    executor::{Capabilities, Independence, Probe},
    round::{
        Seat, TaskCallTicket, VoteTicket,
        candidate::{ArtifactRef, Evidence, InlineEvidence},
        consensus::{Consensus, ScoreSummary},
        replica::{AnswerContent, JudgeUsage, Label, ReplicaAnswer, ReplicaVote},
    },
    time::Timestamp,
    verifier::run::{Provenance, VerifierRunTicket},
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

type DocumentText<'a> = Cow<'a, str>;

#[derive(Serialize, Deserialize)]
pub(crate) struct ProbeDocument<'a> {
    at: i64,
    health_error: Option<DocumentText<'a>>,
    capabilities: Result<CapabilitiesDocument<'a>, DocumentText<'a>>,
}

#[derive(Serialize, Deserialize)]
struct CapabilitiesDocument<'a> {
    task_types: Cow<'a, [String]>,
    profiles: Cow<'a, [String]>,
    provider_family: DocumentText<'a>,
    model_id: DocumentText<'a>,
    policies: Cow<'a, [String]>,
}

impl<'a> From<&'a Probe> for ProbeDocument<'a> {
    fn from(probe: &'a Probe) -> Self {
        let capabilities = probe.capabilities.as_ref();
        Self {
            at: probe.at.micros(),
            health_error: borrowed(probe.health_error.as_ref()),
            capabilities: capabilities
                .map(|known| CapabilitiesDocument {
                    task_types: Cow::Borrowed(&known.task_types),
                    profiles: Cow::Borrowed(&known.profiles),
                    provider_family: Cow::Borrowed(&known.provider_family),
                    model_id: Cow::Borrowed(&known.model_id),
                    policies: Cow::Borrowed(&known.policies),
                })
                .map_err(|error| Cow::Borrowed(error.as_str())),
        }
    }
}

impl From<ProbeDocument<'_>> for Probe {
    fn from(document: ProbeDocument<'_>) -> Self {
        Self {
            at: Timestamp::from_micros(document.at),
            health_error: document.health_error.map(Cow::into_owned),
            capabilities: document
                .capabilities
                .map(|known| Capabilities {
                    task_types: known.task_types.into_owned(),
                    profiles: known.profiles.into_owned(),
                    provider_family: known.provider_family.into_owned(),
                    model_id: known.model_id.into_owned(),
                    policies: known.policies.into_owned(),
                })
                .map_err(Cow::into_owned),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct IndependenceDocument<'a> {
    provider_family: DocumentText<'a>,
    model_id: DocumentText<'a>,
    host: DocumentText<'a>,
    executor: DocumentText<'a>,
}

impl<'a> From<&'a Independence> for IndependenceDocument<'a> {
    fn from(key: &'a Independence) -> Self {
        Self {
            provider_family: Cow::Borrowed(&key.provider_family),
            model_id: Cow::Borrowed(&key.model_id),
            host: Cow::Borrowed(&key.host),
            executor: Cow::Borrowed(&key.executor),
        }
    }
}

impl From<IndependenceDocument<'_>> for Independence {
    fn from(document: IndependenceDocument<'_>) -> Self {
        Self {
            provider_family: document.provider_family.into_owned(),
            model_id: document.model_id.into_owned(),
            host: document.host.into_owned(),
            executor: document.executor.into_owned(),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SeatDocument<'a> {
    session_id: DocumentText<'a>,
    executor: DocumentText<'a>,
    independence: IndependenceDocument<'a>,
    reliability: f64,
}

impl<'a> From<&'a Seat> for SeatDocument<'a> {
    fn from(seat: &'a Seat) -> Self {
        Self {
            session_id: Cow::Borrowed(&seat.session_id),
            executor: Cow::Borrowed(&seat.executor),
            independence: (&seat.independence).into(),
            reliability: seat.reliability,
        }
    }
}

impl From<SeatDocument<'_>> for Seat {
    fn from(document: SeatDocument<'_>) -> Self {
        Self {
            session_id: document.session_id.into_owned(),
            executor: document.executor.into_owned(),
            independence: document.independence.into(),
            reliability: document.reliability,
        }
    }
}

/// The members of a replica that have no column.
#[derive(Serialize, Deserialize)]
pub(crate) struct ReplicaDocument<'a> {
    pub(crate) independence: IndependenceDocument<'a>,
    pub(crate) reliability: f64,
    pub(crate) answer: AnswerDocument<'a>,
    /// Absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<UsageDocument>,
    /// The seat of a spare; other replicas have the seat of their position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seat: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaced_by: Option<usize>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct UsageDocument {
    input_tokens: u64,
    output_tokens: u64,
    calls: u32,
    is_cached: bool,
}

impl From<JudgeUsage> for UsageDocument {
    fn from(usage: JudgeUsage) -> Self {
        let JudgeUsage { input_tokens, output_tokens, calls, is_cached } = usage;
        Self { input_tokens, output_tokens, calls, is_cached }
    }
}

impl From<UsageDocument> for JudgeUsage {
    fn from(document: UsageDocument) -> Self {
        let UsageDocument { input_tokens, output_tokens, calls, is_cached } = document;
        Self { input_tokens, output_tokens, calls, is_cached }
    }
}

/// An answer without its label and its failure code, which are columns.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerDocument<'a> {
    Vote(AnswerContentDocument<'a>),
    Abstained(AnswerContentDocument<'a>),
    Nothing { detail: DocumentText<'a>, said: Option<AnswerContentDocument<'a>> },
}

impl<'a> From<&'a ReplicaAnswer> for AnswerDocument<'a> {
    fn from(answer: &'a ReplicaAnswer) -> Self {
        match answer {
            ReplicaAnswer::Vote(ReplicaVote { said, .. }) => Self::Vote(said.into()),
            ReplicaAnswer::Abstained { said, .. } => Self::Abstained(said.into()),
            ReplicaAnswer::Nothing { failure, said, .. } => Self::Nothing {
                detail: Cow::Borrowed(&failure.detail),
                said: said.as_ref().map(Into::into),
            },
        }
    }
}

impl AnswerDocument<'_> {
    /// The rest of an answer after it was erased.
    pub(crate) fn erased(label: Label, has_failed: bool) -> Self {
        let said = AnswerContentDocument {
            output: None,
            score: None,
            reason_codes: Cow::Borrowed(&[]),
            evidence_inline: Vec::new(),
            evidence_refs: Vec::new(),
            result_hash: None,
            notes: Cow::Borrowed(&[]),
        };
        if has_failed {
            Self::Nothing { detail: Cow::Borrowed(ERASED), said: None }
        } else if matches!(label, Label::Retry | Label::NeedsSpec) {
            Self::Abstained(said)
        } else {
            Self::Vote(said)
        }
    }
}

impl AnswerDocument<'_> {
    /// Erases the notes, the inline evidence and the failure's detail. The statements that delete a
    /// verifier do the same to ended rounds.
    pub(crate) fn erase_words(&mut self) {
        let said = match self {
            Self::Vote(said) | Self::Abstained(said) => Some(said),
            Self::Nothing { detail, said } => {
                *detail = Cow::Borrowed(ERASED);
                said.as_mut()
            }
        };
        if let Some(said) = said {
            said.evidence_inline = Vec::new();
            said.notes = Cow::Borrowed(&[]);
        }
    }
}

/// Replaces a text that was erased.
const ERASED: &str = "erased";

#[derive(Serialize, Deserialize)]
pub(crate) struct AnswerContentDocument<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    output: Option<Cow<'a, Value>>,
    score: Option<f64>,
    reason_codes: Cow<'a, [u16]>,
    evidence_inline: Vec<InlineDocument<'a>>,
    evidence_refs: Vec<ReferenceDocument<'a>>,
    result_hash: Option<DocumentText<'a>>,
    notes: Cow<'a, [String]>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct InlineDocument<'a> {
    mime: DocumentText<'a>,
    content: DocumentText<'a>,
}

impl<'a> From<&'a InlineEvidence> for InlineDocument<'a> {
    fn from(inline: &'a InlineEvidence) -> Self {
        Self { mime: Cow::Borrowed(&inline.mime), content: Cow::Borrowed(&inline.content) }
    }
}

impl From<InlineDocument<'_>> for InlineEvidence {
    fn from(document: InlineDocument<'_>) -> Self {
        Self { mime: document.mime.into_owned(), content: document.content.into_owned() }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ReferenceDocument<'a> {
    uri: DocumentText<'a>,
    digest: DocumentText<'a>,
    size_bytes: u64,
    mime: DocumentText<'a>,
    created_at: u64,
    producer: DocumentText<'a>,
}

impl<'a> From<&'a ArtifactRef> for ReferenceDocument<'a> {
    fn from(artifact: &'a ArtifactRef) -> Self {
        Self {
            uri: Cow::Borrowed(&artifact.uri),
            digest: Cow::Borrowed(&artifact.digest),
            size_bytes: artifact.size_bytes,
            mime: Cow::Borrowed(&artifact.mime),
            created_at: artifact.created_at,
            producer: Cow::Borrowed(&artifact.producer),
        }
    }
}

impl From<ReferenceDocument<'_>> for ArtifactRef {
    fn from(document: ReferenceDocument<'_>) -> Self {
        Self {
            uri: document.uri.into_owned(),
            digest: document.digest.into_owned(),
            size_bytes: document.size_bytes,
            mime: document.mime.into_owned(),
            created_at: document.created_at,
            producer: document.producer.into_owned(),
        }
    }
}

impl<'a> From<&'a AnswerContent> for AnswerContentDocument<'a> {
    fn from(said: &'a AnswerContent) -> Self {
        let inline = said.evidence.inline.iter().map(InlineDocument::from);
        let refs = said.evidence.refs.iter().map(ReferenceDocument::from);
        Self {
            output: said.output.as_ref().map(Cow::Borrowed),
            score: said.score,
            reason_codes: Cow::Borrowed(&said.reason_codes),
            evidence_inline: inline.collect(),
            evidence_refs: refs.collect(),
            result_hash: borrowed(said.result_hash.as_ref()),
            notes: Cow::Borrowed(&said.notes),
        }
    }
}

impl From<AnswerContentDocument<'_>> for AnswerContent {
    fn from(document: AnswerContentDocument<'_>) -> Self {
        let inline = document.evidence_inline.into_iter().map(InlineEvidence::from);
        let refs = document.evidence_refs.into_iter().map(ArtifactRef::from);
        Self {
            output: document.output.map(Cow::into_owned),
            score: document.score,
            reason_codes: document.reason_codes.into_owned(),
            evidence: Evidence { inline: inline.collect(), refs: refs.collect() },
            result_hash: document.result_hash.map(Cow::into_owned),
            notes: document.notes.into_owned(),
        }
    }
}

/// A consensus without its outcome, which is a column.
#[derive(Serialize, Deserialize)]
pub(crate) struct ConsensusDocument<'a> {
    pub(crate) verdict: Option<DocumentText<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub(crate) output: Option<Cow<'a, Value>>,
    pub(crate) verdicts: Vec<DocumentText<'a>>,
    pub(crate) groups: Cow<'a, [Option<usize>]>,
    pub(crate) winner: Option<usize>,
    pub(crate) asked: usize,
    pub(crate) started: usize,
    pub(crate) answered: usize,
    pub(crate) cancelled: usize,
    pub(crate) agreement: f64,
    pub(crate) agreement_answered: f64,
    pub(crate) strategy: DocumentText<'a>,
    pub(crate) equivalence: DocumentText<'a>,
    pub(crate) score: Option<ScoreDocument<'a>>,
    pub(crate) confidence: f64,
    pub(crate) effective_votes: f64,
    pub(crate) disagreed: bool,
    pub(crate) tie_broken: bool,
    /// Absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) basis: Option<DocumentText<'a>>,
}

impl<'a> From<&'a Consensus> for ConsensusDocument<'a> {
    fn from(consensus: &'a Consensus) -> Self {
        let verdicts = consensus.verdicts.iter().map(|label| Cow::Borrowed(label.as_str()));
        Self {
            verdict: consensus.verdict.map(|label| Cow::Borrowed(label.as_str())),
            output: consensus.output.as_ref().map(Cow::Borrowed),
            verdicts: verdicts.collect(),
            groups: Cow::Borrowed(&consensus.groups),
            winner: consensus.winner,
            asked: consensus.asked,
            started: consensus.started,
            answered: consensus.answered,
            cancelled: consensus.cancelled,
            agreement: consensus.agreement,
            agreement_answered: consensus.agreement_answered,
            strategy: Cow::Borrowed(&consensus.strategy),
            equivalence: Cow::Borrowed(&consensus.equivalence),
            score: consensus.score.as_ref().map(Into::into),
            confidence: consensus.confidence,
            effective_votes: consensus.effective_votes,
            disagreed: consensus.disagreed,
            tie_broken: consensus.tie_broken,
            basis: consensus.basis.map(|basis| Cow::Borrowed(basis.as_str())),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ScoreDocument<'a> {
    method: DocumentText<'a>,
    value: f64,
    min: f64,
    max: f64,
    deviation: f64,
}

impl<'a> From<&'a ScoreSummary> for ScoreDocument<'a> {
    fn from(score: &'a ScoreSummary) -> Self {
        Self {
            method: Cow::Borrowed(&score.method),
            value: score.value,
            min: score.min,
            max: score.max,
            deviation: score.deviation,
        }
    }
}

impl From<ScoreDocument<'_>> for ScoreSummary {
    fn from(document: ScoreDocument<'_>) -> Self {
        Self {
            method: document.method.into_owned(),
            value: document.value,
            min: document.min,
            max: document.max,
            deviation: document.deviation,
        }
    }
}

/// The record of a verifier run with its round.
#[derive(Serialize, Deserialize)]
pub(crate) struct VerifierRunDocument<'a> {
    id: DocumentText<'a>,
    verifier_id: DocumentText<'a>,
    version: u32,
    pub(crate) purpose: DocumentText<'a>,
    provenance: ProvenanceDocument<'a>,
    inputs_digest: DocumentText<'a>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ProvenanceDocument<'a> {
    workflow_id: Option<DocumentText<'a>>,
    workflow_version: Option<u32>,
    workflow_ref: Option<DocumentText<'a>>,
    run_id: Option<DocumentText<'a>>,
}

impl<'a> From<&'a VerifierRunTicket> for VerifierRunDocument<'a> {
    fn from(ticket: &'a VerifierRunTicket) -> Self {
        Self {
            id: Cow::Borrowed(&ticket.id),
            verifier_id: Cow::Borrowed(&ticket.verifier_id),
            version: ticket.version,
            purpose: Cow::Borrowed(ticket.purpose.as_str()),
            provenance: (&ticket.provenance).into(),
            inputs_digest: Cow::Borrowed(&ticket.inputs_digest),
        }
    }
}

impl VerifierRunDocument<'_> {
    pub(crate) fn into_ticket(
        self,
        purpose: jurat_core::verifier::run::VerifierRunPurpose,
    ) -> VerifierRunTicket {
        VerifierRunTicket {
            id: self.id.into_owned(),
            verifier_id: self.verifier_id.into_owned(),
            version: self.version,
            purpose,
            provenance: self.provenance.into(),
            inputs_digest: self.inputs_digest.into_owned(),
        }
    }
}

/// The task call of a round; without a candidate it is a proposal.
#[derive(Serialize, Deserialize)]
pub(crate) struct TaskCallDocument<'a> {
    task_id: DocumentText<'a>,
    execution_id: DocumentText<'a>,
    vote: Option<VoteDocument<'a>>,
}

#[derive(Serialize, Deserialize)]
struct VoteDocument<'a> {
    candidate: DocumentText<'a>,
    turn: u32,
}

impl<'a> From<&'a TaskCallTicket> for TaskCallDocument<'a> {
    fn from(step: &'a TaskCallTicket) -> Self {
        let vote = |it: &'a VoteTicket| VoteDocument {
            candidate: Cow::Borrowed(&it.candidate),
            turn: it.turn,
        };
        Self {
            task_id: Cow::Borrowed(&step.task_id),
            execution_id: Cow::Borrowed(&step.execution_id),
            vote: step.vote.as_ref().map(vote),
        }
    }
}

impl From<TaskCallDocument<'_>> for TaskCallTicket {
    fn from(document: TaskCallDocument<'_>) -> Self {
        let vote = |it: VoteDocument<'_>| VoteTicket {
            candidate: it.candidate.into_owned(),
            turn: it.turn,
        };
        Self {
            task_id: document.task_id.into_owned(),
            execution_id: document.execution_id.into_owned(),
            vote: document.vote.map(vote),
        }
    }
}

impl<'a> From<&'a Provenance> for ProvenanceDocument<'a> {
    fn from(provenance: &'a Provenance) -> Self {
        Self {
            workflow_id: borrowed(provenance.workflow_id.as_ref()),
            workflow_version: provenance.workflow_version,
            workflow_ref: borrowed(provenance.workflow_ref.as_ref()),
            run_id: borrowed(provenance.run_id.as_ref()),
        }
    }
}

impl From<ProvenanceDocument<'_>> for Provenance {
    fn from(document: ProvenanceDocument<'_>) -> Self {
        Self {
            workflow_id: document.workflow_id.map(Cow::into_owned),
            workflow_version: document.workflow_version,
            workflow_ref: document.workflow_ref.map(Cow::into_owned),
            run_id: document.run_id.map(Cow::into_owned),
        }
    }
}

fn borrowed(text: Option<&String>) -> Option<DocumentText<'_>> {
    text.map(|text| Cow::Borrowed(text.as_str()))
}

/// An output may be `null`, which is not the same as no output.
fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'static, Value>>, D::Error> {
    Value::deserialize(deserializer).map(|value| Some(Cow::Owned(value)))
}
