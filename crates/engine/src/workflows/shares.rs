//! Operations on workflows that others share with the caller.

use jurat_core::{
    account::caller::{Caller, Scope},
    id::AccountId,
    workflow::{
        ReachableWorkflow, ShareOrigin,
        share::{Share, ShareAction, ShareFilter},
    },
};
use jurat_store::{ShareAnswer, ShareRefusal, ShareUse};

use crate::access::behalf_of;
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, access::require_scope,
};

impl Engine {
    /// The workflows of others that were granted to the caller.
    pub async fn share_list(
        &self,
        caller: &Caller,
        filter: &ShareFilter,
    ) -> Result<Vec<Share>, EngineError> {
        require_scope(caller, Scope::WorkflowsRead)?;
        Ok(self.inner.store.shares().list(&behalf_of(caller), caller.account(), filter).await?)
    }

    /// Accepts or declines a share, or declines everything that its owner shares, now and later.
    pub async fn share_answer(
        &self,
        caller: &Caller,
        id: &str,
        verb: ShareAction,
        keyed: Option<IdempotentWrite<Share>>,
    ) -> Result<IdempotentOutcome<Share>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        let answer = ShareAnswer {
            caller: caller.account().clone(),
            id: id.to_owned(),
            verb,
            at: self.inner.clock.now(),
        };
        let shares = self.inner.store.shares();
        let write = async |once: Option<&_>| shares.answer(&behalf_of(caller), &answer, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Note, write).await?;
        done.map_err(|refused| match refused {
            ShareRefusal::Unknown => {
                let id = id.chars().take(80).collect();
                EngineError::NotFound { what: "share", id }
            }
            ShareRefusal::OfTeam => EngineError::Conflict(
                "the workflow is shared with a team that you are in; leave the team to drop it"
                    .to_owned(),
            ),
        })
    }

    /// Using a share by its id or full name accepts it.
    pub(crate) async fn share_used(
        &self,
        caller: &Caller,
        owner: &AccountId,
        workflow_id: &str,
        shared: &ShareOrigin,
    ) -> Result<(), EngineError> {
        if shared.is_accepted {
            return Ok(());
        }
        let used = ShareUse {
            caller: caller.account().clone(),
            owner: owner.clone(),
            workflow_id: workflow_id.to_owned(),
        };
        self.inner.store.shares().note_use(&behalf_of(caller), &used, None).await?;
        Ok(())
    }

    pub(crate) async fn reach_used(
        &self,
        caller: &Caller,
        reached: &ReachableWorkflow,
    ) -> Result<(), EngineError> {
        match &reached.shared {
            Some(shared) => {
                let workflow = &reached.workflow;
                self.share_used(caller, &workflow.account, &workflow.id, shared).await
            }
            None => Ok(()),
        }
    }
}

/// Full names in a sentence.
pub fn names_listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" or ")
}
