//! Jurat's only storage layer: families of operations on SQLite or PostgreSQL.

pub mod backup;
mod db;
mod error;
mod ops;
mod store;

use std::{
    fmt,
    path::{Path, PathBuf},
};

pub use crate::{
    db::{
        idempotency::{IdempotencyAnswer, IdempotencyRecord, PriorWrite},
        load::{ConnectionCounts, StoreLoad},
        tx::{Behalf, NotFound, WriteOutcome},
    },
    error::{StoreError, StoreErrorKind},
    ops::{
        accounts::{AccountOps, Suspension},
        agent_events::{
            AgentEventAdd, AgentEventOps, AgentEventOutcome, AgentEventPruning, AgentEventTake,
            NotLeaseHolder, TooManyPending, UndeliverableEvent,
        },
        agent_runs::{
            AgentRunConflict, AgentRunEventsQuery, AgentRunOps, AgentRunRecord, AgentRunRefusal,
            AgentRunState, AgentRunSubmit, AgentRunWrite, AgentStepRenewal, AgentStepTake,
            NewAgentStep, TakenAgentStep,
        },
        checkup::{CheckupOps, EndedRoundsQuery, RoundRecord, StoreCheckup},
        evidence::{EvidenceBlob, EvidenceOps, EvidencePruning, NewEvidence},
        executors::{ExecutorAddRefusal, ExecutorOps},
        idempotency::{IdempotencyOps, KeyRange},
        invitations::{
            InvitationAnswer, InvitationAnswerRefusal, InvitationOps, InvitationRefusal,
        },
        judge_calls::{
            CostCorrection, JudgeCallCosts, JudgeCallOps, JudgeHistoryKey, JudgmentSample,
            LeaseLost,
        },
        keys::{
            KeyNameTaken, KeyOps, KeyRecord, KeyRevocation, KeyRevokeRefusal, KeyRotateRefusal,
            KeyRotation, KeySuccession, LiveKeys,
        },
        knowledge::{
            KnowledgeDeprecation, KnowledgeFetch, KnowledgeHits, KnowledgeLookup, KnowledgeOps,
            KnowledgeSummary, SimilarKnowledge,
        },
        ledger::{CreditGrant, CreditGrantRefusal, LedgerOps, Spending},
        logins::{
            DeviceAnswer, DeviceLookup, DevicePoll, DevicePollOutcome, DeviceRefusal, DeviceUse,
            LoginCodeOutcome, LoginCodeRefusal, LoginCodeTry, LoginCodeUse, LoginEntrant, LoginOps,
            NewDevice, NewLoginCode,
        },
        measurements::{MeasurementOps, VersionKey},
        open_work::{OpenWorkCounts, OpenWorkOps, QueueDepth},
        payments::{
            NewPayment, PaymentCounts, PaymentEnd, PaymentOps, PaymentPruning, PaymentRefusal,
            PaymentSettling, PaymentTake, PaymentUnsettled,
        },
        peers::{PeerBookingsQuery, PeerInvitationRefusal, PeerInvitationUse, PeerOps},
        people::{HandleChange, HandleRefusal, PeopleOps},
        rounds::{
            RoundCharge, RoundCount, RoundLost, RoundOpenRefusal, RoundOpening, RoundOps,
            RoundTakeover, TakeoverScope,
        },
        sessions::{SessionAddRefusal, SessionOps},
        shares::{ShareAnswer, ShareOps, ShareRefusal, ShareUse},
        storage::{
            ErasureRefusal, PruneCounts, PruneOrder, RoundErasure, RoundKey, RoundKeys,
            StorageFull, StorageOps, StorageUsage,
        },
        tasks::{
            TaskAppend, TaskAppendExtras, TaskAppendRefusal, TaskBallotRow, TaskEventsQuery,
            TaskOps, TaskSubmit, TaskSubmitRefusal,
        },
        teams::{
            MemberRemoval, NewTeam, TeamInvite, TeamListQuery, TeamLookup, TeamOps, TeamRefusal,
        },
        templates::{
            ForkRefusal, ForkedVerifier, PublishRefusal, PublishableWorkflow,
            PublishedVerifierLookup, TemplateChange, TemplateChangeRefusal, TemplateFileBytes,
            TemplateFileLookup, TemplateFork, TemplateLookup, TemplateOffer, TemplateOfferRefusal,
            TemplateOps, TemplatePublish, TemplateWordSearch,
        },
        verdicts::{CachedVerdict, VerdictOps, VerdictPruning},
        verifier_runs::VerifierRunOps,
        verifiers::{
            DeployRefusal, NewVerifierVersion, ReachedVersion, VerifierLookup, VerifierOps,
            VerifierQuery, VerifierRemoval, VerifierRemoveRefusal, VersionQuery,
        },
        webhooks::{
            PushAdd, TakenWebhookDelivery, TooManyPushes, TooManyWebhooks, WebhookAdd,
            WebhookEffect, WebhookKey, WebhookNoted, WebhookOps, WebhookOutcome, WebhookPruning,
            WebhookReplay, WebhookRotation, WebhookSend, WebhookSendRefusal, WebhookTake,
            WebhookUpdate,
        },
        workflows::{
            FilesPatch, GrantRevocation, NameMatch, OwnershipChange, SaveTarget, WorkflowChange,
            WorkflowFileSet, WorkflowFilesLookup, WorkflowGrantOrder, WorkflowLookup,
            WorkflowOffer, WorkflowOfferRefusal, WorkflowOps, WorkflowRefusal, WorkflowSave,
            WorkflowWordSearch, WrongField,
        },
    },
    store::{FaultPlan, OperationName, Store, WriteFault, migrate_postgres, open},
};

type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Whether a SQLite file is empty, without writing to it. An unreadable file does not count as
/// blank.
pub fn is_blank(path: &Path) -> bool {
    // SQLite would remove the log of an empty file, and that log may hold the only data left.
    let is_empty = path.metadata().is_ok_and(|found| found.len() == 0);
    is_empty || crate::db::sqlite::setup::is_blank(path).unwrap_or(false)
}

/// The location of the store.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// Lost when the process ends; for tests and demonstrations.
    Memory,
    File(PathBuf),
    /// `migrate_url` logs in with the role that owns the tables; without it, the tables must exist.
    Postgres {
        url: String,
        migrate_url: Option<String>,
    },
}

impl fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("Memory"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            // The addresses may hold passwords.
            Self::Postgres { .. } => f.debug_struct("Postgres").finish_non_exhaustive(),
        }
    }
}
