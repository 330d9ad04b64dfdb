//! Commands of callers on submitted tasks: cancel one, dispute a decision, or start the next epoch.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use jurat_core::{
    account::caller::{Caller, Scope},
    task::{
        ComplaintSignature, LeaseRelease, TaskCommand, TaskComplaint, TaskKey, TaskPhase,
        TaskRecord, TaskRefusal, VoteAggregation, VoterReliability,
    },
};

use super::{
    TaskPortError, TaskWrite, WorkerPort as _,
    change::{TaskChange, TaskChangeOutcome, change_task},
    ports::{store_adapter::TaskStoreAdapter, worker_adapter::WorkerAdapter},
};
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, access::require_scope,
};

/// The maximum difference between the clock of a signer and ours.
const SKEW_MS: u64 = 300_000;
/// The only outcome that can be reported about a decision.
const OUTCOME: &str = "BAD";

impl Engine {
    /// Like [`Engine::task_cancel`], without an idempotency key.
    pub async fn task_cancel_unkeyed(
        &self,
        caller: &Caller,
        id: &str,
        reason: Option<&str>,
    ) -> Result<TaskRecord, EngineError> {
        match self.task_cancel(caller, id, reason, None).await? {
            IdempotentOutcome::Now(record) => Ok(record),
            IdempotentOutcome::Before(_) => {
                Err(EngineError::Bug("a write without a key was repeated"))
            }
        }
    }

    /// Cancels a task. A task that ended otherwise stays as it is, and that is a conflict.
    pub async fn task_cancel(
        &self,
        caller: &Caller,
        id: &str,
        reason: Option<&str>,
        keyed: Option<IdempotentWrite<TaskRecord>>,
    ) -> Result<IdempotentOutcome<TaskRecord>, EngineError> {
        require_scope(caller, Scope::TasksWrite)?;
        if let Some(answer) = self.done_already(caller, keyed.as_ref(), Leaves::Less).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        let record = self.task_of(&key(caller, id)).await?;
        let reason = reason.unwrap_or("cancelled by its caller").to_owned();
        let command = TaskCommand::Cancel { reason };
        match self.task_change(caller, &record, command, keyed.as_ref()).await? {
            Ok(done) => Ok(done),
            Err((TaskRefusal::Over(TaskPhase::Cancelled), record)) => {
                Ok(IdempotentOutcome::Now(record))
            }
            Err((TaskRefusal::Over(phase), _)) => {
                Err(EngineError::Conflict(format!("the task `{id}` has already ended: {phase}")))
            }
            Err((refusal, _)) => Err(EngineError::Conflict(refusal.to_string())),
        }
    }

    /// Starts the next epoch of a continuous task whose decision is final.
    pub async fn task_next_epoch(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<IdempotentWrite<TaskRecord>>,
    ) -> Result<IdempotentOutcome<TaskRecord>, EngineError> {
        require_scope(caller, Scope::TasksWrite)?;
        if let Some(answer) = self.done_already(caller, keyed.as_ref(), Leaves::Rows).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        let record = self.task_of(&key(caller, id)).await?;
        let changed =
            self.task_change(caller, &record, TaskCommand::NextEpoch, keyed.as_ref()).await?;
        let done = changed.map_err(|(refusal, _)| EngineError::Conflict(refusal.to_string()))?;
        self.inner.tasks_in_flight.wake.notify_one();
        Ok(done)
    }

    /// Disputes a final decision, while that is possible.
    pub async fn task_complain(
        &self,
        caller: &Caller,
        id: &str,
        feedback: TaskComplaint,
        keyed: Option<IdempotentWrite<TaskRecord>>,
    ) -> Result<IdempotentOutcome<TaskRecord>, EngineError> {
        require_scope(caller, Scope::TasksWrite)?;
        if let Some(answer) = self.done_already(caller, keyed.as_ref(), Leaves::Note).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        let record = self.task_of(&key(caller, id)).await?;
        if !record.has_contract() {
            let why = format!("the task `{id}` ended so long ago that its contract was pruned");
            return Err(EngineError::Conflict(why));
        }
        let epoch = feedback.epoch.or(record.state.newest_decision()).unwrap_or(1);
        let signed = self.checked_signature(&record, epoch, &feedback)?;
        let command = TaskCommand::Complain { epoch, reason: feedback.reason, signed };
        let changed = self.task_change(caller, &record, command, keyed.as_ref()).await?;
        changed.map_err(|(refusal, _)| EngineError::Conflict(refusal.to_string()))
    }

    /// Releases the work of an executor that declines it.
    pub(crate) async fn task_decline(
        &self,
        key: &TaskKey,
        holder: &str,
        execution: &str,
        detail: String,
    ) -> Result<(), EngineError> {
        let late = || {
            let why = "the lease is no longer held, so it is too late to decline";
            EngineError::Conflict(why.to_owned())
        };
        let record = self.task_of(key).await?;
        let mut claims = record.state.claims.iter();
        let held = claims.find(|(_, it)| it.holder == holder && it.execution_id == execution);
        let token = held.map(|(token, _)| *token).ok_or_else(late)?;
        let reason = LeaseRelease::Failed { code: "declined".to_owned(), detail };
        let caller = self.caller_without_key(&key.account).await?;
        let command = TaskCommand::Release { token, reason };
        let changed = self.task_change(&caller, &record, command, None).await?;
        changed.map_err(|_| late())?;
        self.inner.tasks_in_flight.wake.notify_one();
        Ok(())
    }

    /// Writes the events of a command; the inner error says why nothing was written.
    async fn task_change(
        &self,
        caller: &Caller,
        record: &TaskRecord,
        command: TaskCommand,
        keyed: Option<&IdempotentWrite<TaskRecord>>,
    ) -> Result<Result<IdempotentOutcome<TaskRecord>, (TaskRefusal, TaskRecord)>, EngineError> {
        let note = |append: &TaskWrite| {
            self.idempotency_record(caller, keyed, &record_after(record, append))
        };
        let wanted = TaskChange {
            command,
            weigher: self.task_weights(record).await?,
            idempotency: Box::new(note),
        };
        let store = TaskStoreAdapter { engine: self.clone() };
        let changed = change_task(&store, &*self.inner.clock, &record.key, &wanted).await;
        let changed = changed.map_err(|error| not_written(record, &error))?;
        self.inner.tasks_in_flight.tell(&record.key);
        Ok(match changed {
            TaskChangeOutcome::Done(_) => {
                Ok(IdempotentOutcome::Now(self.task_of(&record.key).await?))
            }
            TaskChangeOutcome::Refused(refusal, _) => {
                Err((refusal, self.task_of(&record.key).await?))
            }
            TaskChangeOutcome::Before => Ok(self.concurrent_answer(caller, keyed).await?),
            TaskChangeOutcome::Missing => {
                let id = record.key.id.clone();
                return Err(EngineError::NotFound { what: "task", id });
            }
        })
    }

    /// How often each voter is right, if votes that are weighted by it may be counted on the way.
    async fn task_weights(&self, record: &TaskRecord) -> Result<VoterReliability, EngineError> {
        let is_weighed = record.state.terms.aggregation == VoteAggregation::ReputationWeighted;
        if record.state.is_at_rest() || !is_weighed {
            return Ok(VoterReliability::new());
        }
        let hands = WorkerAdapter { engine: self.clone() };
        hands.weights(&record.clone().into()).await.map_err(|error| not_written(record, &error))
    }

    /// The signature of a complaint, if the contract names who may dispute.
    fn checked_signature(
        &self,
        record: &TaskRecord,
        epoch: u64,
        feedback: &TaskComplaint,
    ) -> Result<Option<ComplaintSignature>, EngineError> {
        let settlement = &record.contract["acceptance"]["settlement"];
        let named = settlement["feedback"]["authority_pubkey"].as_str().unwrap_or_default();
        let key = named.strip_prefix("ed25519:").and_then(|digits| hex::decode(digits).ok());
        match (key, &feedback.signature, feedback.timestamp) {
            (None, None, None) => Ok(None),
            (None, Some(_), _) => {
                Err(wrong("signature", "cannot be checked: the contract names no key"))
            }
            (_, None, Some(_)) => Err(wrong("timestamp", "needs a `signature`")),
            (Some(_), None, None) => {
                let about = signed_prefix(record, epoch);
                let problem = format!(
                    "is required: only the holder of `{named}` may dispute the decision, by signing `{about}|<reason>|<timestamp>`"
                );
                Err(wrong("signature", &problem))
            }
            (Some(_), Some(_), None) => {
                Err(wrong("timestamp", "is required with a `signature`, which covers it"))
            }
            (Some(key), Some(signature), Some(timestamp)) => {
                self.check_signing_time(record, epoch, timestamp)?;
                let text =
                    format!("{}|{}|{timestamp}", signed_prefix(record, epoch), feedback.reason);
                let bytes = hex::decode(signature).unwrap_or_default();
                let verified =
                    UnparsedPublicKey::new(&ED25519, key).verify(text.as_bytes(), &bytes);
                if verified.is_err() {
                    let problem = format!("is not a signature by `{named}` of `{text}`");
                    return Err(wrong("signature", &problem));
                }
                Ok(Some(ComplaintSignature {
                    timestamp,
                    signature: signature.to_ascii_lowercase(),
                }))
            }
        }
    }

    /// Checks that it was signed after the decision and before now.
    fn check_signing_time(
        &self,
        record: &TaskRecord,
        epoch: u64,
        timestamp: u64,
    ) -> Result<(), EngineError> {
        let millis = |at: jurat_core::time::Timestamp| u64::try_from(at.millis()).unwrap_or(0);
        let now = millis(self.inner.clock.now());
        let window = record.state.windows.iter().find(|it| it.epoch == epoch);
        let decided = window.map(|it| millis(it.until)).unwrap_or_default();
        let decided = decided.saturating_sub(record.state.terms.window_ms);
        if now.saturating_add(SKEW_MS) < timestamp {
            return Err(wrong("timestamp", "is in the future"));
        }
        if timestamp.saturating_add(SKEW_MS) < decided {
            return Err(wrong("timestamp", "is earlier than the final decision"));
        }
        Ok(())
    }
}

/// The start of the signed text. Tasks of two accounts may share a name and an authority, so the
/// account is part of it: otherwise a complaint about one task could be replayed against the other.
fn signed_prefix(record: &TaskRecord, epoch: u64) -> String {
    format!("{}|{}|{epoch}|{OUTCOME}", record.key.account, record.key.id)
}

/// The task after the write.
fn record_after(record: &TaskRecord, append: &TaskWrite) -> TaskRecord {
    let count = u64::try_from(append.events.len()).unwrap_or(u64::MAX);
    let ended = append.task.is_over().then_some(append.at);
    TaskRecord {
        seq: append.before.seq.saturating_add(count),
        due_at: append.due_at,
        updated_at: append.at,
        ended_at: record.ended_at.or(ended),
        reason: append.task.reason().map(str::to_owned),
        state: append.task.clone(),
        ..record.clone()
    }
}

fn not_written(record: &TaskRecord, error: &TaskPortError) -> EngineError {
    tracing::warn!(task.id = %record.key.id, error = %error, "could not change a task");
    EngineError::Busy("the task could not be changed now")
}

fn key(caller: &Caller, id: &str) -> TaskKey {
    TaskKey { account: caller.account().clone(), id: id.to_owned() }
}

fn wrong(field: &str, problem: &str) -> EngineError {
    EngineError::invalid(field, problem)
}
