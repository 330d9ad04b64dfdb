//! Accepts tasks, and waits for them.

use std::time::Duration;

use futures::FutureExt as _;
use jurat_core::{
    account::caller::{Caller, Scope},
    canonical::digest_json,
    policy::SEMANTIC,
    task::{Task, TaskAddition, TaskEvent, TaskKey, TaskRecord},
};
use jurat_store::{TaskSubmit, TaskSubmitRefusal};
use jurat_wire::executor::{TaskContract, TaskSubmission};
use serde_json::Value;

use super::call::submitting_key;
use super::{LongPoll, TaskRoster};
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves,
    access::{behalf_of, require_scope},
};

/// A contract as it is stored, with its digest.
struct WrittenContract {
    contract: Value,
    digest: String,
}

impl Engine {
    /// Submits a task. The same contract under the same id is the same task.
    pub async fn task_submit(
        &self,
        caller: &Caller,
        order: TaskSubmission,
        keyed: Option<IdempotentWrite<TaskAddition>>,
    ) -> Result<IdempotentOutcome<TaskAddition>, EngineError> {
        self.task_submit_at(caller, order, keyed, 1).await
    }

    /// Submits a task that is this attempt at a step of a run.
    pub(crate) async fn task_submit_at(
        &self,
        caller: &Caller,
        order: TaskSubmission,
        keyed: Option<IdempotentWrite<TaskAddition>>,
        attempt: u32,
    ) -> Result<IdempotentOutcome<TaskAddition>, EngineError> {
        check_scopes(caller, &order.contract)?;
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        let id = &order.contract.task_id;
        let contract = serde_json::to_value(&order.contract)
            .map_err(|_| EngineError::Bug("a contract cannot be written"))?;
        let written = WrittenContract { digest: digest_json(&contract), contract };
        let mut tries = 0;
        let done = loop {
            // An existing task is not checked again: its contract may have expired meanwhile.
            let panel = match self.task_already_submitted(caller, &order, &written.digest).await? {
                Some(known) if keyed.is_none() => return Ok(IdempotentOutcome::Now(known)),
                Some(known) => known.record.panel,
                None => {
                    self.require_storage(caller).await?;
                    let checked = self.task_check(caller, &order).await?;
                    TaskRoster { attempt, ..checked }.write()
                }
            };
            let submit = self.task_new(caller, &order, &written, panel);
            tries += 1;
            match self.task_write(caller, &submit, keyed.as_ref()).await? {
                Ok(done) => break done,
                Err(TaskSubmitRefusal::Taken) => return Err(id_taken(id)),
                Err(TaskSubmitRefusal::TooManyOpen) => return Err(self.too_many_open()),
                // A concurrent request submitted it. It exists now, and is compared with this one.
                Err(TaskSubmitRefusal::OtherPanel) if tries < 2 => {}
                Err(TaskSubmitRefusal::OtherPanel) => {
                    return Err(EngineError::Bug("the panel of a task changed"));
                }
            }
        };
        self.inner.tasks_in_flight.wake.notify_one();
        Ok(done)
    }

    fn task_new(
        &self,
        caller: &Caller,
        order: &TaskSubmission,
        written: &WrittenContract,
        panel: Value,
    ) -> TaskSubmit {
        let (now, terms) = (self.inner.clock.now(), order.contract.terms());
        TaskSubmit {
            task: key(caller, &order.contract.task_id),
            task_type: order.contract.task_type.clone(),
            contract: written.contract.clone(),
            contract_digest: written.digest.clone(),
            panel,
            ordered_by: submitting_key(caller),
            state: Task::created(&order.contract.task_id, terms.clone(), now),
            events: vec![TaskEvent::Created { terms: Box::new(terms) }],
            due_at: Some(now),
            at: now,
            most_open: self.inner.limits.open_tasks,
        }
    }

    async fn task_write(
        &self,
        caller: &Caller,
        submit: &TaskSubmit,
        keyed: Option<&IdempotentWrite<TaskAddition>>,
    ) -> Result<Result<IdempotentOutcome<TaskAddition>, TaskSubmitRefusal>, EngineError> {
        let (tasks, behalf) = (self.inner.store.tasks(), behalf_of(caller));
        self.write_idempotent(caller, keyed, Leaves::Note, async |once| {
            self.inner.failpoints.pass("task_submit_before");
            let writing = tasks.submit(&behalf, submit, once);
            let written = self.inner.metrics.write("task_submit", writing).await;
            self.inner.failpoints.pass("task_submit_after");
            written
        })
        .await
    }

    fn too_many_open(&self) -> EngineError {
        EngineError::Conflict(format!(
            "the account has reached its limit of {} open tasks; wait, or cancel some",
            self.inner.limits.open_tasks
        ))
    }

    /// The task that has the id already, if its contract is the same.
    async fn task_already_submitted(
        &self,
        caller: &Caller,
        order: &TaskSubmission,
        digest: &str,
    ) -> Result<Option<TaskAddition>, EngineError> {
        let id = &order.contract.task_id;
        let tasks = self.inner.store.tasks();
        match tasks.get(&behalf_of(caller), &key(caller, id)).await? {
            None => Ok(None),
            Some(record) if record.contract_digest == digest => {
                if let Some(member) = TaskRoster::read(&record.panel).differs(order) {
                    return Err(EngineError::Conflict(format!(
                        "there is already a task `{id}` with this contract and other `{member}`; leave them out to get the existing task"
                    )));
                }
                Ok(Some(TaskAddition { record, is_new: false }))
            }
            Some(_) => Err(id_taken(id)),
        }
    }

    /// The task once it has more events than these, nothing more happens unless a caller asks for
    /// it, or the time is up.
    pub async fn task_wait(
        &self,
        caller: &Caller,
        id: &str,
        after: u64,
        within: Duration,
    ) -> Result<TaskRecord, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let key = key(caller, id);
        let following = self.inner.task_followers.follow(&key);
        let read = || self.task_of(&key).boxed();
        let is_enough = |it: &TaskRecord| after < it.seq || it.state.is_at_rest();
        self.follow(following, LongPoll { after, within }, read, is_enough).await
    }
}

/// Checks that the key may do what the calls of a task do on its behalf.
pub(crate) fn check_scopes(caller: &Caller, contract: &TaskContract) -> Result<(), EngineError> {
    require_scope(caller, Scope::TasksWrite)?;
    require_scope(caller, Scope::RoundsCreate)?;
    if contract.acceptance.verifier_policy.policy_id == SEMANTIC {
        require_scope(caller, Scope::VerifiersRun)?;
    }
    Ok(())
}

fn key(caller: &Caller, id: &str) -> TaskKey {
    TaskKey { account: caller.account().clone(), id: id.to_owned() }
}

fn id_taken(id: &str) -> EngineError {
    EngineError::Conflict(format!("there is already a task `{id}` with another contract"))
}
