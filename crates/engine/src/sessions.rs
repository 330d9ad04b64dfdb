//! Operations on sessions. They belong to the installation, so they need an admin.

use jurat_core::{
    caller::{Caller, Scope},
    session::Session,
};
use jurat_store::{Page, SessionAdded};

use crate::{Engine, EngineError, executors::require};

impl Engine {
    pub async fn session_add(
        &self,
        caller: &Caller,
        session: Session,
    ) -> Result<Session, EngineError> {
        require(caller, Scope::Admin)?;
        match self.inner.store.session_add(&session).await? {
            SessionAdded::Added => {
                self.inner.pool.forget();
                Ok(session)
            }
            SessionAdded::Exists => {
                Err(EngineError::Conflict(format!("there is a session `{}` already", session.id)))
            }
            SessionAdded::ExecutorUnknown => {
                let reason = format!(
                    "names `{}`, which is not registered; add it with `jurat executors add`",
                    session.executor
                );
                Err(EngineError::Invalid { field: "executor", reason })
            }
        }
    }

    pub async fn session_list(
        &self,
        caller: &Caller,
        page: &Page,
    ) -> Result<Vec<Session>, EngineError> {
        require(caller, Scope::Admin)?;
        Ok(self.inner.store.session_list(page).await?)
    }

    pub async fn session_show(&self, caller: &Caller, id: &str) -> Result<Session, EngineError> {
        require(caller, Scope::Admin)?;
        self.inner.store.session_get(id).await?.ok_or_else(|| unknown(id))
    }

    pub async fn session_remove(&self, caller: &Caller, id: &str) -> Result<(), EngineError> {
        require(caller, Scope::Admin)?;
        if !self.inner.store.session_remove(id).await? {
            return Err(unknown(id));
        }
        self.inner.pool.forget();
        Ok(())
    }
}

fn unknown(id: &str) -> EngineError {
    EngineError::NotFound { what: "session", id: id.to_owned() }
}
