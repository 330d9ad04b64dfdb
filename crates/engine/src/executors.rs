//! Operations on executors. They belong to the installation, so they need an admin.

use std::sync::Arc;

use jurat_core::{
    caller::{Caller, Scope},
    code::Code,
    conduct::RestsFor,
    executor::{BreakerState, Executor, Probe},
    session::Session,
};
use jurat_store::{Added, OnceAnswer, Page, Removed};

use crate::{Done, Engine, EngineError, EventsProbe, ExecutorView, Keyed, Leaves};

/// An executor to be registered.
#[derive(Debug, Clone)]
pub struct Addition {
    pub executor: Executor,
    pub session: Option<Session>,
    /// Refuses an executor that does not answer now.
    pub must_answer: bool,
}

impl Engine {
    /// Registers an executor and, where given, a session to it.
    pub async fn executor_add(
        &self,
        caller: &Caller,
        addition: Addition,
        keyed: Option<Keyed<ExecutorView>>,
    ) -> Result<Done<ExecutorView>, EngineError> {
        require(caller, Scope::Admin)?;
        let Addition { executor, session, must_answer } = addition;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Note).await? {
            // Whoever did it may have left before it was noticed here.
            self.inner.pool.forget();
            return Ok(Done::Before(answer));
        }
        if let Some(name) = &executor.token_env
            && (self.inner.secrets)(name).is_none()
        {
            let reason = format!(
                "names the environment variable `{name}`, which is not set where the server runs"
            );
            return Err(EngineError::Invalid { field: "token_env", reason });
        }
        if must_answer {
            self.answers(&executor).await?;
        }
        let same_url = self.others_at(&executor).await?;
        let (circuit, rests_for) = (BreakerState::Closed, RestsFor::All);
        let unprobed = ExecutorView { executor, circuit, rests_for, same_url };
        let once = self.note_of(caller, keyed, &unprobed);
        let ExecutorView { executor, same_url, .. } = unprobed;
        match self.inner.store.executor_add(&executor, session.as_ref(), once.as_ref()).await? {
            Added::Added => {}
            Added::Repeated => return self.answered_meanwhile(caller, keyed).await,
            Added::ExecutorExists => {
                return Err(EngineError::Conflict(format!(
                    "there is already an executor `{}`",
                    executor.name
                )));
            }
            Added::SessionExists => {
                let id = session.map(|session| session.id).unwrap_or_default();
                return Err(EngineError::Conflict(format!("there is already a session `{id}`")));
            }
        }
        // What was known of an executor that had the name before is not true of this one.
        self.inner.pool.drop_standing(&executor.name);
        self.inner.pool.forget();
        tracing::info!(executor.name = %executor.name, "added an executor");
        if let Some(address) = self.address_of(&executor.name).await? {
            self.probe(&executor.name, &address).await;
        }
        let view = ExecutorView { same_url, ..self.executor_view(executor) };
        self.complete_note(caller, keyed, &view).await;
        Ok(Done::Now(view))
    }

    /// Whether an executor that is not registered yet is healthy and says what it can do.
    async fn answers(&self, executor: &Executor) -> Result<(), EngineError> {
        let probe = self.probe_unregistered(executor).await;
        let Some(why) = probe.as_ref().map_or(Some("it is not a valid URL"), Probe::problem) else {
            return Ok(());
        };
        let detail = format!("the executor at `{}` does not answer: {why}", executor.url);
        let (code, field) = (Code::ExecutorUnavailable, Some("url"));
        Err(EngineError::Refused { code, field, detail })
    }

    /// The executors that are registered at the same address under other names.
    async fn others_at(&self, executor: &Executor) -> Result<Vec<String>, EngineError> {
        let view = self.pool_view().await?;
        let others = view.pool.executors.values();
        let others = others.filter(|it| it.url == executor.url && it.name != executor.name);
        Ok(others.map(|it| it.name.clone()).collect())
    }

    pub async fn executor_list(
        &self,
        caller: &Caller,
        page: &Page,
    ) -> Result<Vec<ExecutorView>, EngineError> {
        require(caller, Scope::Admin)?;
        let executors = self.inner.store.executor_list(page).await?;
        Ok(executors.into_iter().map(|executor| self.executor_view(executor)).collect())
    }

    pub async fn executor_show(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<ExecutorView, EngineError> {
        require(caller, Scope::Admin)?;
        let executor = self.inner.store.executor_get(name).await?.ok_or_else(|| unknown(name))?;
        Ok(self.executor_view(executor))
    }

    /// Asks an executor for its health and its capabilities now.
    pub async fn executor_check(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<(Probe, Option<EventsProbe>), EngineError> {
        require(caller, Scope::Admin)?;
        let address = self.address_of(name).await?.ok_or_else(|| unknown(name))?;
        let (probe, events) = futures::join!(self.probe(name, &address), self.probe_events(name));
        Ok((probe, events?))
    }

    /// Removes an executor and its sessions; returns their identifiers.
    pub async fn executor_remove(
        &self,
        caller: &Caller,
        name: &str,
        keyed: Option<Keyed<Vec<String>>>,
    ) -> Result<Done<Vec<String>>, EngineError> {
        require(caller, Scope::Admin)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Less).await? {
            // Whoever did it may have left before it was noticed here.
            self.inner.pool.forget();
            return Ok(Done::Before(answer));
        }
        let once = self.note_for(caller, keyed, |saving| {
            OnceAnswer::OfRemoval(Arc::new(move |sessions| saving.of(&sessions.to_vec())))
        });
        let sessions = match self.inner.store.executor_remove(name, once.as_ref()).await? {
            Removed::Removed(sessions) => sessions,
            Removed::Unknown => return Err(unknown(name)),
            Removed::Repeated => return self.answered_meanwhile(caller, keyed).await,
        };
        self.inner.pool.forget();
        self.inner.pool.drop_standing(name);
        self.inner.metrics.executors.forget(name);
        tracing::info!(executor.name = name, "removed an executor and its sessions");
        Ok(Done::Now(sessions))
    }
}

pub(crate) fn require(caller: &Caller, scope: Scope) -> Result<(), EngineError> {
    if caller.may(scope) { Ok(()) } else { Err(EngineError::Forbidden(scope)) }
}

fn unknown(name: &str) -> EngineError {
    EngineError::NotFound { what: "executor", id: name.to_owned() }
}
