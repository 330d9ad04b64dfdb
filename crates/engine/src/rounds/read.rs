//! Shows and lists rounds.

use jurat_core::{
    account::caller::{Caller, Scope},
    id::RoundId,
    round::{Round, RoundStatus, RoundSummary, consensus::Outcome, job::JobKind},
    time::Timestamp,
};
use jurat_store::{Behalf, RoundFilter};

use crate::{Engine, EngineError, access::require_scope};

/// Selects rounds.
#[derive(Debug, Clone, Default)]
pub struct RoundQuery {
    pub kind: Option<JobKind>,
    pub outcome: Option<Outcome>,
    pub state: Option<RoundStatus>,
    /// Opened at this time or later.
    pub since: Option<Timestamp>,
    /// Opened before this time.
    pub until: Option<Timestamp>,
    pub before: Option<RoundId>,
    pub limit: u32,
}

impl Engine {
    pub async fn round_show(&self, caller: &Caller, id: &RoundId) -> Result<Round, EngineError> {
        require_scope(caller, Scope::RoundsRead)?;
        self.round_of(caller.account(), id).await
    }

    /// The caller's rounds, newest first, without their answers.
    pub async fn round_list(
        &self,
        caller: &Caller,
        query: RoundQuery,
    ) -> Result<Vec<RoundSummary>, EngineError> {
        require_scope(caller, Scope::RoundsRead)?;
        // Identifiers start with the time, so they can be compared with one.
        let until = query.until.map(|at| RoundId::new(at, 0));
        let mut filter = RoundFilter {
            kind: query.kind,
            outcome: query.outcome,
            state: query.state,
            limit: query.limit,
            before: query.before.into_iter().chain(until).min(),
            after: query.since.map(|at| RoundId::new(at, 0)),
        };
        // A filter must not reveal how a round ended that is still shown as open.
        let is_about_ends =
            query.outcome.is_some() || query.state.is_some_and(|it| it != RoundStatus::Open);
        let wanted = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let mut lines: Vec<RoundSummary> = Vec::new();
        loop {
            let found = self
                .inner
                .store
                .rounds()
                .list(&Behalf::from(caller.account()), caller.account(), &filter)
                .await?;
            let is_last = found.len() < wanted;
            filter.before = found.last().map(|line| line.open.id.clone());
            let shown = self.visible_lines(caller.account(), found).await?;
            lines.extend(shown.into_iter().filter(|it| !is_about_ends || it.closing.is_some()));
            if is_last || wanted <= lines.len() {
                lines.truncate(wanted);
                return self.with_asked_lines(caller.account(), lines).await;
            }
        }
    }
}
