//! Shows and lists rounds.

use jurat_core::{
    account::caller::{Caller, Scope},
    id::RoundId,
    round::{Round, RoundFilter, RoundStatus, RoundSummary},
};
use jurat_store::Behalf;

use crate::{Engine, EngineError, access::require_scope};

impl Engine {
    pub async fn round_show(&self, caller: &Caller, id: &RoundId) -> Result<Round, EngineError> {
        require_scope(caller, Scope::RoundsRead)?;
        self.round_of(caller.account(), id).await
    }

    /// The caller's rounds, newest first, without their answers.
    pub async fn round_list(
        &self,
        caller: &Caller,
        mut filter: RoundFilter,
    ) -> Result<Vec<RoundSummary>, EngineError> {
        require_scope(caller, Scope::RoundsRead)?;
        // A filter must not reveal how a round ended that is still shown as open.
        let is_about_ends =
            filter.outcome.is_some() || filter.state.is_some_and(|it| it != RoundStatus::Open);
        let wanted = usize::try_from(filter.limit).unwrap_or(usize::MAX);
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
