//! Operations on executors. They belong to the installation, so they need an admin.

use jurat_core::{
    caller::{Caller, Scope},
    executor::{Executor, Probe},
    session::Session,
};
use jurat_store::{Added, Page};

use crate::{Engine, EngineError, ExecutorView};

impl Engine {
    /// Registers an executor and, where given, a session to it.
    pub async fn executor_add(
        &self,
        caller: &Caller,
        executor: Executor,
        session: Option<Session>,
    ) -> Result<ExecutorView, EngineError> {
        require(caller, Scope::Admin)?;
        if let Some(name) = &executor.token_env
            && (self.inner.secrets)(name).is_none()
        {
            let reason =
                format!("names the variable `{name}`, which is not set where the server runs");
            return Err(EngineError::Invalid { field: "token_env", reason });
        }
        match self.inner.store.executor_add(&executor, session.as_ref()).await? {
            Added::Added => {}
            Added::ExecutorExists => {
                return Err(EngineError::Conflict(format!(
                    "there is an executor `{}` already",
                    executor.name
                )));
            }
            Added::SessionExists => {
                let id = session.map(|session| session.id).unwrap_or_default();
                return Err(EngineError::Conflict(format!("there is a session `{id}` already")));
            }
        }
        // What was known of an executor that had the name before is not true of this one.
        self.inner.pool.drop_standing(&executor.name);
        self.inner.pool.forget();
        if let Some(address) = self.address_of(&executor.name).await? {
            self.probe(&executor.name, &address).await;
        }
        Ok(self.executor_view(executor))
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
    pub async fn executor_check(&self, caller: &Caller, name: &str) -> Result<Probe, EngineError> {
        require(caller, Scope::Admin)?;
        let address = self.address_of(name).await?.ok_or_else(|| unknown(name))?;
        Ok(self.probe(name, &address).await)
    }

    /// Removes an executor and its sessions; returns their identifiers.
    pub async fn executor_remove(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Vec<String>, EngineError> {
        require(caller, Scope::Admin)?;
        let sessions =
            self.inner.store.executor_remove(name).await?.ok_or_else(|| unknown(name))?;
        self.inner.pool.forget();
        self.inner.pool.drop_standing(name);
        self.inner.metrics.executors.forget(name);
        Ok(sessions)
    }
}

pub(crate) fn require(caller: &Caller, scope: Scope) -> Result<(), EngineError> {
    if caller.may(scope) { Ok(()) } else { Err(EngineError::Forbidden(scope)) }
}

fn unknown(name: &str) -> EngineError {
    EngineError::NotFound { what: "executor", id: name.to_owned() }
}
