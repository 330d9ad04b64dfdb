//! Shows and lists rounds.

use jurat_core::{
    account::caller::{Caller, Scope},
    id::RoundId,
    round::{Round, RoundFilter, RoundStatus, RoundSummary},
    time::Timestamp,
};
use jurat_store::{Behalf, KeyRange, RoundCount};

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

    /// How many of the caller's newest rounds match `state` and were opened or ended since a time.
    /// Rounds of tasks are left out.
    pub async fn round_count(
        &self,
        caller: &Caller,
        state: Option<RoundStatus>,
        updated_since: Option<Timestamp>,
        among: u32,
    ) -> Result<u32, EngineError> {
        require_scope(caller, Scope::RoundsRead)?;
        let filter = RoundCount { state, updated_since, among };
        let (rounds, account) = (self.inner.store.rounds(), caller.account());
        Ok(rounds.count(&Behalf::from(account), account, &filter).await?)
    }

    /// The caller's newest rounds whose idempotency keys begin with a text that ends in `:`.
    pub async fn rounds_under_keys(
        &self,
        caller: &Caller,
        beginning: &str,
        limit: u32,
    ) -> Result<Vec<RoundId>, EngineError> {
        require_scope(caller, Scope::RoundsRead)?;
        // The character after `:` ends the range.
        let until = format!("{};", beginning.trim_end_matches(':'));
        let keys = KeyRange { from: beginning.to_owned(), until, limit };
        let (notes, account) = (self.inner.store.idempotency(), caller.account());
        Ok(notes.rounds(&Behalf::from(account), account, &keys).await?)
    }
}
