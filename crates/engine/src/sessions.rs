//! Operations on sessions. They belong to the installation, so they need an admin.

use jurat_core::{
    caller::{Caller, Scope},
    session::Session,
};
use jurat_store::{Page, Removed, SessionAdded};

use crate::{Done, Engine, EngineError, Keyed, Leaves, executors::require};

impl Engine {
    pub async fn session_add(
        &self,
        caller: &Caller,
        session: Session,
        keyed: Option<Keyed<Session>>,
    ) -> Result<Done<Session>, EngineError> {
        require(caller, Scope::Admin)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Note).await? {
            // Whoever did it may have left before it was noticed here.
            self.inner.pool.forget();
            return Ok(Done::Before(answer));
        }
        let once = self.note_of(caller, keyed, &session);
        match self.inner.store.session_add(&session, once.as_ref()).await? {
            SessionAdded::Added => {
                self.inner.pool.forget();
                tracing::info!(session.id = %session.id, executor.name = %session.executor, "added a session");
                Ok(Done::Now(session))
            }
            SessionAdded::Repeated => self.answered_meanwhile(caller, keyed).await,
            SessionAdded::Exists => {
                Err(EngineError::Conflict(format!("there is already a session `{}`", session.id)))
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

    pub async fn session_remove(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<Keyed<()>>,
    ) -> Result<Done<()>, EngineError> {
        require(caller, Scope::Admin)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Less).await? {
            // Whoever did it may have left before it was noticed here.
            self.inner.pool.forget();
            return Ok(Done::Before(answer));
        }
        let once = self.note_of(caller, keyed, &());
        match self.inner.store.session_remove(id, once.as_ref()).await? {
            Removed::Removed(_) => {
                self.inner.pool.forget();
                tracing::info!(session.id = id, "removed a session");
                Ok(Done::Now(()))
            }
            Removed::Unknown => Err(unknown(id)),
            Removed::Repeated => self.answered_meanwhile(caller, keyed).await,
        }
    }
}

fn unknown(id: &str) -> EngineError {
    EngineError::NotFound { what: "session", id: id.to_owned() }
}
