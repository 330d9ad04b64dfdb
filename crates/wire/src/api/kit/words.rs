//! The fixed words of the domain, as the API writes and describes them.

use std::borrow::Cow;

use jurat_core::{
    account::{caller, ledger, team},
    agent_run, code,
    executor::session,
    peer,
    peer::book,
    round,
    round::{consensus, job, replica},
    task,
    task::agent_event,
    verifier,
    verifier::run,
    webhook, workflow,
    workflow::{share, template},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{ObjectBuilder, Schema, Type},
    },
};

use super::{
    faults::RequestFaults,
    request::{DraftField, FieldPath, RequestField, SchemaParts, component, noted, values::word},
};

/// Wraps an enum of the core: its values are written and read by name, and the schema lists all
/// names.
macro_rules! described {
    ($($name:ident, $word:path, $text:literal;)+) => {$(
        #[doc = $text]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name(pub $word);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
                writer.serialize_str(self.0.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(reader)?;
                let mut words = <$word>::ALL.iter().copied();
                let word = words.find(|word| word.as_str() == text);
                word.map(Self).ok_or_else(|| unknown_word(stringify!($name), &text))
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                one_of($text, <$word>::ALL.iter().map(|word| word.as_str()))
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }
        }
    )+};
}

described! {
    AgentEventDirection, agent_event::EventDirection, "Direction of an event: `out` if a task caused it, `in` if a caller sent it for an executor.";
    AgentEventState, agent_event::Delivery, "Delivery state of an event.";
    Aggregation, job::ScoreAggregation, "How the scores of the winners are combined.";
    Basis, consensus::Basis, "Basis of a decision.";
    BookSide, book::BookSide, "Who worked for whom: `earned` if this node worked for the peer, `owed` if the peer worked for this node.";
    CheckState, template::DesignState, "Whether a design criterion is met.";
    DisagreementPolicy, job::Disagreement, "What to return when the replicas do not agree.";
    ErrorCode, code::ProblemCode, "Stable error code.";
    FactcheckMode, job::FactcheckMode, "How to do a fact check; passed on to the executors.";
    FailureCode, replica::FailureCode, "Why a replica has no verdict.";
    InvitationKind, team::InvitationKind, "Kind of offer in an invitation.";
    InvitationResolution, team::InvitationOutcome, "How an invitation ended.";
    InputContract, verifier::InputContract, "Input of a judge: named text fields, one image, or both.";
    Kind, job::JobKind, "Kind of a round.";
    Label, replica::Label, "Verdict or status of a replica or a round.";
    Merge, job::OutputMerge, "How the output is built from the winners' outputs.";
    Movement, ledger::Movement, "Reason for a credit transfer.";
    Outcome, consensus::Outcome, "Outcome of a round.";
    PeerStanding, peer::PeerStanding, "Whether this node deals with a peer: nothing is sent to a blocked one or accepted from it.";
    Place, ledger::CreditBucket, "Where credit is: outside the account, available, held for a round, or spent.";
    MissingReputation, agent_run::MissingReputation, "Weight of agents without a given reputation: zero or one unit.";
    NullStep, agent_run::NullAction, "What to do when there is no value.";
    ReasoningEffort, verifier::Effort, "Reasoning effort of a judge, for models that support it.";
    RunErrorCode, run::VerifierRunError, "Why a run has no verdict.";
    RunEventType, agent_run::AgentRunEventKind, "Kind of event of a run.";
    RunState, agent_run::AgentRunStatus, "Status of a run.";
    RunPurpose, run::VerifierRunPurpose, "Purpose of a run.";
    SafetyStatus, template::SafetyStatus, "Result of the safety screen.";
    Scope, caller::Scope, "Scope of a key.";
    StepState, agent_run::StepStatus, "Status of a step of a run.";
    TieStep, agent_run::TieBreak, "How to break a tie.";
    TaskAggregation, task::VoteAggregation, "How votes on a candidate become a decision; `QUORUM` by default.";
    TaskState, task::TaskPhase, "State of a task.";
    CandidateStanding, task::ProposalStanding, "State of a candidate.";
    CandidateGap, task::VoteGap, "Why votes decided nothing.";
    ClaimRole, task::TaskRole, "Work that a lease is for.";
    VoteForfeit, task::Forfeit, "Why a vote does not count.";
    TeamRole, team::TeamRole, "Role in a team.";
    FileKind, workflow::ContentKind, "Whether a file is text or binary.";
    WhoseWorkflows, workflow::OwnershipFilter, "Which workflows: the caller's own, those shared by others, or both.";
    WorkflowRole, workflow::AccessRole, "Role on a workflow, from least to most access.";
    WorkflowSource, workflow::VersionSource, "How a version was created, according to its author.";
    Tier, session::Tier, "Quality tier of a session, or the tier that a job requires.";
    TimeoutPolicy, job::TimeoutPolicy, "How a replica without an answer counts.";
    ShareState, share::ShareState, "The caller's answer to a share.";
    VerifierRole, workflow::VerifierRole, "Role on a verifier: run it, also tune it, or full access.";
    VerifierStatus, verifier::VerifierStanding, "Whether a verifier can be used.";
    WebhookDeliveryState, webhook::WebhookDeliveryState, "State of a webhook delivery.";
    WebhookEventType, webhook::WebhookEventType, "Type of a webhook event.";
    WebhookState, webhook::WebhookState, "Whether events are sent to a webhook.";
}

/// Makes words readable in requests: any other word is refused, with the list of known words.
macro_rules! read {
    ($($name:ident, $word:path;)+) => {$(
        impl RequestField for $name {
            fn read(
                value: &Value,
                at: &FieldPath<'_>,
                faults: &mut RequestFaults,
            ) -> Option<Self> {
                let known = <$word>::ALL.iter().map(|word| word.as_str());
                noted(word(value, known), at, faults).map(Self)
            }

            fn describe() -> RefOr<Schema> {
                component::<Self>()
            }

            fn describe_parts(parts: &mut SchemaParts) {
                parts.push((Self::name().into_owned(), Self::schema()));
            }
        }

        impl DraftField for $name {
            type Draft = String;
        }
    )+};
}

read! {
    DisagreementPolicy, job::Disagreement;
    FactcheckMode, job::FactcheckMode;
    InputContract, verifier::InputContract;
    Merge, job::OutputMerge;
    MissingReputation, agent_run::MissingReputation;
    NullStep, agent_run::NullAction;
    ReasoningEffort, verifier::Effort;
    TaskAggregation, task::VoteAggregation;
    TieStep, agent_run::TieBreak;
    Scope, caller::Scope;
    Tier, session::Tier;
    TimeoutPolicy, job::TimeoutPolicy;
    WhoseWorkflows, workflow::OwnershipFilter;
    WorkflowSource, workflow::VersionSource;
    WebhookEventType, webhook::WebhookEventType;
}

/// The state of a round: open, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundState(pub Option<round::RoundEnding>);

const OPEN: &str = "open";

impl Serialize for RoundState {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str(self.0.map_or(OPEN, round::RoundEnding::as_str))
    }
}

impl<'de> Deserialize<'de> for RoundState {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(reader)?;
        if text == OPEN {
            return Ok(Self(None));
        }
        let mut endings = round::RoundEnding::ALL.iter().copied();
        let ending = endings.find(|ending| ending.as_str() == text);
        ending.map(|it| Self(Some(it))).ok_or_else(|| unknown_word("RoundState", &text))
    }
}

impl PartialSchema for RoundState {
    fn schema() -> RefOr<Schema> {
        let endings = round::RoundEnding::ALL.iter().map(|ending| ending.as_str());
        one_of("State of a round: open, or how it ended.", std::iter::once(OPEN).chain(endings))
    }
}

impl ToSchema for RoundState {}

/// The error about a word that this version does not know.
pub(crate) fn unknown_word<E: de::Error>(set: &str, text: &str) -> E {
    E::custom(format!("`{text}` is not a known {set}"))
}

/// The schema of a string that is one of these words.
pub(crate) fn one_of(text: &str, words: impl Iterator<Item = &'static str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(text))
        .enum_values(Some(words))
        .build()
        .into()
}
