//! Operations on executors. They belong to the installation, so they need an admin.

pub(crate) mod pool;
pub(crate) mod probe;
mod sessions;
pub(crate) mod signature;

use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    executor::{BreakerState, Executor, Probe, breakers::PauseScope, session::Session},
    list::ListPage,
};
use jurat_store::{Behalf, ExecutorAddRefusal, NotFound, WriteOutcome};

use crate::{
    Engine, EngineError, EventsProbe, ExecutorView, IdempotentOutcome, IdempotentWrite, Leaves,
    access::require_scope,
};

/// An executor to be registered.
#[derive(Debug, Clone)]
pub struct NewExecutor {
    pub executor: Executor,
    pub session: Option<Session>,
    /// Refuses an executor that does not answer now.
    pub must_answer: bool,
}

impl Engine {
    /// Registers an executor and, optionally, a session to it.
    pub async fn executor_add(
        &self,
        caller: &Caller,
        addition: NewExecutor,
        keyed: Option<IdempotentWrite<ExecutorView>>,
    ) -> Result<IdempotentOutcome<ExecutorView>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let NewExecutor { executor, session, must_answer } = addition;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Note).await? {
            // The earlier request may have ended before it invalidated the cache here.
            self.inner.pool.forget();
            return Ok(IdempotentOutcome::Before(answer));
        }
        if let Some(name) = &executor.token_env
            && (self.inner.secrets)(name).is_none()
        {
            let reason = format!(
                "names the environment variable `{name}`, which is not set where the server runs"
            );
            return Err(EngineError::invalid("token_env", reason));
        }
        if must_answer {
            self.check_answers(&executor).await?;
        }
        let same_url = self.executors_at(&executor).await?;
        let (circuit, rests_for) = (BreakerState::Closed, PauseScope::All);
        let unprobed = ExecutorView { executor, circuit, rests_for, same_url };
        let once = self.idempotency_record(caller, keyed, &unprobed);
        let ExecutorView { executor, same_url, .. } = unprobed;
        match self
            .inner
            .store
            .executors()
            .add(&Behalf::Platform, &executor, session.as_ref(), once.as_ref())
            .await?
        {
            WriteOutcome::Done(()) => {}
            WriteOutcome::Repeated => return self.concurrent_answer(caller, keyed).await,
            WriteOutcome::Refused(ExecutorAddRefusal::ExecutorExists) => {
                return Err(EngineError::Conflict(format!(
                    "there is already an executor `{}`",
                    executor.name
                )));
            }
            WriteOutcome::Refused(ExecutorAddRefusal::SessionExists) => {
                let id = session.map(|session| session.id).unwrap_or_default();
                return Err(EngineError::Conflict(format!("there is already a session `{id}`")));
            }
        }
        // The health of an earlier executor of this name does not apply to this one.
        self.inner.pool.forget_health(&executor.name);
        self.inner.pool.forget();
        tracing::info!(executor.name = %executor.name, "added an executor");
        if let Some(address) = self.address_of(&executor.name).await? {
            self.probe(&executor.name, &address).await;
        }
        let view = ExecutorView { same_url, ..self.executor_view(executor) };
        self.complete_record(caller, keyed, &view).await;
        Ok(IdempotentOutcome::Now(view))
    }

    /// Checks that an unregistered executor is healthy and declares its capabilities.
    async fn check_answers(&self, executor: &Executor) -> Result<(), EngineError> {
        let probe = self.probe_unregistered(executor).await;
        let Some(why) = probe.as_ref().map_or(Some("it is not a valid URL"), Probe::problem) else {
            return Ok(());
        };
        let detail = format!("the executor at `{}` does not answer: {why}", executor.url);
        Err(EngineError::refused(ProblemCode::ExecutorUnavailable, detail).at("url"))
    }

    /// The executors registered at the same address under other names.
    async fn executors_at(&self, executor: &Executor) -> Result<Vec<String>, EngineError> {
        let view = self.pool_view().await?;
        let others = view.pool.executors.values();
        // The same address is another service on another node.
        let is_same = |it: &&Executor| it.url == executor.url && it.remote == executor.remote;
        let others = others.filter(|it| is_same(it) && it.name != executor.name);
        Ok(others.map(|it| it.name.clone()).collect())
    }

    pub async fn executor_list(
        &self,
        caller: &Caller,
        page: &ListPage,
    ) -> Result<Vec<ExecutorView>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let executors = self.inner.store.executors().list(&Behalf::Platform, page).await?;
        Ok(executors.into_iter().map(|executor| self.executor_view(executor)).collect())
    }

    pub async fn executor_show(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<ExecutorView, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let executor = self
            .inner
            .store
            .executors()
            .get(&Behalf::Platform, name)
            .await?
            .ok_or_else(|| unknown_executor(name))?;
        Ok(self.executor_view(executor))
    }

    /// Probes the health and the capabilities of an executor now.
    pub async fn executor_check(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<(Probe, Option<EventsProbe>), EngineError> {
        require_scope(caller, Scope::Admin)?;
        let address = self.address_of(name).await?.ok_or_else(|| unknown_executor(name))?;
        let (probe, events) = futures::join!(self.probe(name, &address), self.probe_events(name));
        Ok((probe, events?))
    }

    /// Removes an executor and its sessions; returns their identifiers.
    pub async fn executor_remove(
        &self,
        caller: &Caller,
        name: &str,
        keyed: Option<IdempotentWrite<Vec<String>>>,
    ) -> Result<IdempotentOutcome<Vec<String>>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Less).await? {
            // The earlier request may have ended before it invalidated the cache here.
            self.inner.pool.forget();
            return Ok(IdempotentOutcome::Before(answer));
        }
        let once = self.result_record(caller, keyed);
        let sessions = match self
            .inner
            .store
            .executors()
            .remove(&Behalf::Platform, name, once.as_ref())
            .await?
        {
            WriteOutcome::Done(sessions) => sessions,
            WriteOutcome::Refused(NotFound) => return Err(unknown_executor(name)),
            WriteOutcome::Repeated => return self.concurrent_answer(caller, keyed).await,
        };
        self.inner.pool.forget();
        self.inner.pool.forget_health(name);
        self.inner.metrics.executors.forget(name);
        tracing::info!(executor.name = name, "removed an executor and its sessions");
        Ok(IdempotentOutcome::Now(sessions))
    }
}

fn unknown_executor(name: &str) -> EngineError {
    EngineError::NotFound { what: "executor", id: name.to_owned() }
}
