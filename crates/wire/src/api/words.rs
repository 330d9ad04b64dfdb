//! The fixed words of the domain as the API writes and describes them.

use std::borrow::Cow;

use jurat_core::{
    agent_event, caller, code, consensus, job, ledger, replica, round, run, session, share, task,
    task_run, team, template, verifier, workflow,
};
use serde::{Serialize, Serializer};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{ObjectBuilder, Schema, Type},
    },
};

/// The words of a set of the core: encoded by its names, described by the list of all of them.
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
    AgentEventDirection, agent_event::Direction, "Which way an event goes: `out` to an executor, of a task; `in` for one, from whoever sent it.";
    AgentEventState, agent_event::Delivery, "How far the telling of an event has come.";
    Aggregation, job::Aggregation, "How the scores of the winners become one.";
    Basis, consensus::Basis, "On what a decision rests.";
    CheckState, template::CheckState, "Whether a part of a design holds.";
    DisagreementPolicy, job::Disagreement, "What is answered when the replicas do not agree.";
    ErrorCode, code::Code, "A stable name for what went wrong.";
    FactcheckMode, job::FactcheckMode, "How a fact check is to be done; passed on to the executors.";
    FailureCode, replica::FailureCode, "Why a replica has no verdict.";
    InvitationKind, team::InvitationKind, "What an invitation offers.";
    InvitationResolution, team::Resolution, "How an invitation ended.";
    InputContract, verifier::InputContract, "What a judge reads: named text fields, one image, or both.";
    Kind, job::Kind, "What a round was asked to do.";
    Label, replica::Label, "What a replica, or a round, says in one word.";
    Merge, job::Merge, "How the output of the winners is made.";
    Movement, ledger::Movement, "Why credit moved.";
    Outcome, consensus::Outcome, "What came of a round.";
    Place, ledger::Place, "Where credit is: outside of the account, available, held for a round, or spent.";
    MissingReputation, task_run::MissingReputation, "What agents count for whose reputation is not given: nothing, or one unit.";
    NullStep, task_run::NullStep, "What to do when there is no value.";
    ReasoningEffort, verifier::Effort, "How hard a judge should think, for models that take such a hint.";
    RunErrorCode, run::RunError, "Why a run has no verdict.";
    RunEventType, task_run::RunEventKind, "What happened to a run.";
    RunState, task_run::RunStatus, "How far a run has come.";
    RunPurpose, run::Purpose, "What a run is for.";
    SafetyStatus, template::SafetyStatus, "What the screen found.";
    Scope, caller::Scope, "What a key may do.";
    StepState, task_run::StepStatus, "How far a step of a run has come.";
    TieStep, task_run::TieStep, "A way out of a tie.";
    TaskAggregation, task::Aggregation, "How verdicts on a candidate become a decision; `QUORUM` when left out.";
    TaskState, task::Phase, "How far a task has come.";
    CandidateStanding, task::Standing, "How a candidate stands.";
    CandidateGap, task::Gap, "Why votes decided nothing.";
    ClaimRole, task::Role, "What somebody claims to do.";
    VoteForfeit, task::Forfeit, "Why a vote does not count.";
    TeamRole, team::TeamRole, "What somebody is in a team.";
    FileKind, workflow::ContentKind, "Whether a file reads as text.";
    WhoseWorkflows, workflow::Whose, "Whose workflows: the caller's own, those that others share, or both.";
    WorkflowRole, workflow::Role, "What somebody may do with a workflow, from less to more.";
    WorkflowSource, workflow::Source, "How a version came to be, as its author says.";
    Tier, session::Tier, "How much is expected of a session, and asked for by a job.";
    TimeoutPolicy, job::TimeoutPolicy, "What a replica without an answer does to the count.";
    ShareState, share::ShareState, "What the caller made of what was shared with it.";
    VerifierRole, workflow::VerifierRole, "What somebody may do with a verifier: run it, also tune it, or everything.";
    VerifierStatus, verifier::Standing, "Whether a verifier can be used.";
}

/// Where a round stands: it runs, or it has ended in one of several ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundState(pub Option<round::Ending>);

const OPEN: &str = "open";

impl Serialize for RoundState {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str(self.0.map_or(OPEN, round::Ending::as_str))
    }
}

impl PartialSchema for RoundState {
    fn schema() -> RefOr<Schema> {
        let endings = round::Ending::ALL.iter().map(|ending| ending.as_str());
        one_of(
            "Where a round stands: it runs, or how it ended.",
            std::iter::once(OPEN).chain(endings),
        )
    }
}

impl ToSchema for RoundState {}

/// A string that is one of these words.
pub(super) fn one_of(text: &str, words: impl Iterator<Item = &'static str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(text))
        .enum_values(Some(words))
        .build()
        .into()
}
