//! Operations on sessions. They belong to the installation, so they need an admin.

use jurat_core::{
    account::caller::{Caller, Scope},
    executor::session::{Session, SessionStanding},
    list::ListPage,
    round::select::EligibleSession,
};
use jurat_store::{Behalf, NotFound, SessionAddRefusal, WriteOutcome};

use crate::{Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves};
use crate::{access::require_scope, executors::pool::eligible_sessions};

impl Engine {
    pub async fn session_add(
        &self,
        caller: &Caller,
        session: Session,
        keyed: Option<IdempotentWrite<Session>>,
    ) -> Result<IdempotentOutcome<Session>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Note).await? {
            // The earlier request may have ended before it invalidated the cache here.
            self.inner.pool.forget();
            return Ok(IdempotentOutcome::Before(answer));
        }
        let once = self.idempotency_record(caller, keyed, &session);
        match self.inner.store.sessions().add(&Behalf::Platform, &session, once.as_ref()).await? {
            WriteOutcome::Done(()) => {
                self.inner.pool.forget();
                tracing::info!(session.id = %session.id, executor.name = %session.executor, "added a session");
                Ok(IdempotentOutcome::Now(session))
            }
            WriteOutcome::Repeated => self.concurrent_answer(caller, keyed).await,
            WriteOutcome::Refused(SessionAddRefusal::Exists) => {
                Err(EngineError::Conflict(format!("there is already a session `{}`", session.id)))
            }
            WriteOutcome::Refused(SessionAddRefusal::ExecutorUnknown) => {
                let reason = format!(
                    "names `{}`, which is not registered; add it with `jurat executors add`",
                    session.executor
                );
                Err(EngineError::invalid("executor", reason))
            }
        }
    }

    pub async fn session_list(
        &self,
        caller: &Caller,
        page: &ListPage,
    ) -> Result<Vec<Session>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        Ok(self.inner.store.sessions().list(&Behalf::Platform, page).await?)
    }

    /// Every session and whether its executor can be asked now, for callers that ask them. It shows
    /// no more than the reply to a round does.
    pub async fn session_directory(
        &self,
        caller: &Caller,
    ) -> Result<Vec<SessionStanding>, EngineError> {
        require_scope(caller, Scope::RoundsCreate)?;
        let view = self.pool_view().await?;
        let standings = self.pool_health_for(caller.account());
        let entry = |it: EligibleSession<'_>| SessionStanding {
            session: it.session.clone(),
            standing: it.standing.cloned(),
        };
        Ok(eligible_sessions(&view, &[], &standings).into_iter().map(entry).collect())
    }

    pub async fn session_show(&self, caller: &Caller, id: &str) -> Result<Session, EngineError> {
        require_scope(caller, Scope::Admin)?;
        self.inner
            .store
            .sessions()
            .get(&Behalf::Platform, id)
            .await?
            .ok_or_else(|| unknown_session(id))
    }

    pub async fn session_remove(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<IdempotentWrite<()>>,
    ) -> Result<IdempotentOutcome<()>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Less).await? {
            // The earlier request may have ended before it invalidated the cache here.
            self.inner.pool.forget();
            return Ok(IdempotentOutcome::Before(answer));
        }
        let once = self.idempotency_record(caller, keyed, &());
        match self.inner.store.sessions().remove(&Behalf::Platform, id, once.as_ref()).await? {
            WriteOutcome::Done(()) => {
                self.inner.pool.forget();
                tracing::info!(session.id = id, "removed a session");
                Ok(IdempotentOutcome::Now(()))
            }
            WriteOutcome::Refused(NotFound) => Err(unknown_session(id)),
            WriteOutcome::Repeated => self.concurrent_answer(caller, keyed).await,
        }
    }
}

fn unknown_session(id: &str) -> EngineError {
    EngineError::NotFound { what: "session", id: id.to_owned() }
}
