//! Hides secret votes: a verdict stays secret until its vote is revealed, even in its round.
//!
//! Every round that a caller reads passes through here. A round with a secret verdict is shown as
//! open: its end would reveal the verdict.

use std::collections::BTreeMap;

use jurat_core::{
    id::AccountId,
    round::{OpenRound, Round, RoundEnding, RoundSummary, consensus::Outcome},
    task::{Task, TaskKey},
};
use jurat_store::Behalf;

use crate::{Engine, EngineError};

impl Engine {
    /// The round as its owner may see it.
    pub(crate) async fn visible_round(&self, mut round: Round) -> Result<Round, EngineError> {
        let end = round.closing.as_ref().map(|it| (it.ending, it.consensus.outcome));
        if let Some(task_id) = may_reveal_vote(&round.open, end) {
            let task = self.task_if_stored(&round.open.account, task_id).await?;
            if is_vote_secret(&round.open, task.as_ref()) {
                round.closing = None;
            }
        }
        Ok(round)
    }

    /// The lines of a list as their owner may see them.
    pub(crate) async fn visible_lines(
        &self,
        account: &AccountId,
        mut lines: Vec<RoundSummary>,
    ) -> Result<Vec<RoundSummary>, EngineError> {
        let mut tasks: BTreeMap<String, Option<Task>> = BTreeMap::new();
        for line in &mut lines {
            let end = line.closing.as_ref().map(|it| (it.ending, it.outcome));
            let Some(task_id) = may_reveal_vote(&line.open, end).map(str::to_owned) else {
                continue;
            };
            if !tasks.contains_key(&task_id) {
                let task = self.task_if_stored(account, &task_id).await?;
                tasks.insert(task_id.clone(), task);
            }
            if is_vote_secret(&line.open, tasks.get(&task_id).and_then(Option::as_ref)) {
                line.closing = None;
            }
        }
        Ok(lines)
    }

    /// Whether a task is open.
    pub(crate) async fn is_task_open(
        &self,
        account: &AccountId,
        id: &str,
    ) -> Result<bool, EngineError> {
        let key = TaskKey { account: account.clone(), id: id.to_owned() };
        let behalf = Behalf::Account(account.clone());
        let found = self.inner.store.tasks().get(&behalf, &key).await?;
        Ok(found.is_some_and(|record| record.ended_at.is_none()))
    }

    async fn task_if_stored(
        &self,
        account: &AccountId,
        id: &str,
    ) -> Result<Option<Task>, EngineError> {
        let key = TaskKey { account: account.clone(), id: id.to_owned() };
        let behalf = Behalf::Account(account.clone());
        let found = self.inner.store.tasks().get(&behalf, &key).await?;
        Ok(found.map(|record| record.state))
    }
}

/// The task whose vote the end of a round may reveal. `None` if nobody answered, or if the round
/// was stopped.
fn may_reveal_vote(open: &OpenRound, end: Option<(RoundEnding, Outcome)>) -> Option<&str> {
    let step = open.step.as_ref().filter(|_| open.is_vote())?;
    let (ending, outcome) = end?;
    let is_verdict = ending == RoundEnding::Closed && outcome != Outcome::Failed;
    is_verdict.then_some(step.task_id.as_str())
}

fn is_vote_secret(open: &OpenRound, task: Option<&Task>) -> bool {
    let (Some(step), Some(task)) = (&open.step, task) else { return false };
    step.vote.as_ref().is_some_and(|vote| task.hides(vote, &step.execution_id))
}
