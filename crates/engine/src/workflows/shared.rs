//! Who else may use a workflow.

use jurat_core::{
    account::AccountName,
    caller::{Caller, Scope},
    id::uuid,
    workflow::{GrantLine, Role, Workflow, WorkflowRef},
};
use jurat_store::{
    GrantOrder, Granting, InvitationRefused, Left, OfferRefused, Offered, Once, RevokeOrder,
    Revoking, WorkflowOffer,
};

use super::{asked, behalf, one, refusal, whole};
use crate::{Done, Engine, EngineError, Keyed, Leaves, executors::require, invitations};

/// Somebody to share with, as a request names them.
pub type Sharee = AccountName;

/// A grant to be made.
#[derive(Debug, Clone)]
pub struct NewWorkflowGrant {
    pub grantee: Sharee,
    pub role: Role,
    /// Whether the versions before the current one are shared too.
    pub with_history: bool,
}

impl Engine {
    /// Lets somebody use a workflow, or changes what they may do.
    pub async fn workflow_grant(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        new: NewWorkflowGrant,
        keyed: Option<Keyed<Granting>>,
    ) -> Result<Done<Granting>, EngineError> {
        require(caller, Scope::WorkflowsWrite)?;
        whole(reference)?;
        let order = GrantOrder {
            caller: caller.account().clone(),
            which: reference.which.clone(),
            grantee: new.grantee,
            role: new.role,
            with_history: new.with_history,
            at: self.inner.clock.now(),
        };
        let sharing = self.inner.store.sharing();
        let write =
            async |once: Option<&Once>| sharing.workflow_grant(&behalf(caller), &order, once).await;
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Note, write).await?;
        done.map_err(|refused| refusal(refused, &reference.to_string()))
    }

    /// Takes a grant back.
    pub async fn workflow_revoke(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        grantee: Sharee,
        keyed: Option<Keyed<Revoking>>,
    ) -> Result<Done<Revoking>, EngineError> {
        require(caller, Scope::WorkflowsWrite)?;
        whole(reference)?;
        let order = RevokeOrder {
            caller: caller.account().clone(),
            which: reference.which.clone(),
            grantee,
            at: self.inner.clock.now(),
        };
        let sharing = self.inner.store.sharing();
        let write = async |once: Option<&Once>| {
            sharing.workflow_revoke(&behalf(caller), &order, once).await
        };
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Less, write).await?;
        done.map_err(|refused| refusal(refused, &reference.to_string()))
    }

    /// Takes back what the caller was granted directly.
    pub async fn workflow_leave(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        keyed: Option<Keyed<Left>>,
    ) -> Result<Done<Left>, EngineError> {
        require(caller, Scope::WorkflowsWrite)?;
        whole(reference)?;
        let change = self.change_of(caller, reference);
        let sharing = self.inner.store.sharing();
        let write = async |once: Option<&Once>| {
            sharing.workflow_leave(&behalf(caller), &change, once).await
        };
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Less, write).await?;
        done.map_err(|refused| refusal(refused, &reference.to_string()))
    }

    /// Asks somebody to own a workflow, with the verifiers that it names.
    pub async fn workflow_transfer(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        to: Sharee,
        keyed: Option<Keyed<Offered<Workflow>>>,
    ) -> Result<Done<Offered<Workflow>>, EngineError> {
        require(caller, Scope::WorkflowsWrite)?;
        whole(reference)?;
        let clock = &self.inner.clock;
        let at = clock.now();
        let offer = WorkflowOffer {
            caller: caller.account().clone(),
            which: reference.which.clone(),
            to,
            invitation_id: uuid(at, clock.bits()),
            at,
        };
        let sharing = self.inner.store.sharing();
        let write =
            async |once: Option<&Once>| sharing.workflow_offer(&behalf(caller), &offer, once).await;
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Note, write).await?;
        let done = done.map_err(|refused| match refused {
            OfferRefused::Workflow(refused) => refusal(refused, &reference.to_string()),
            OfferRefused::Invitation(InvitationRefused::Unknown) => EngineError::UserNotFound,
            OfferRefused::Invitation(refused) => invitations::refusal(&refused, "the new owner"),
        })?;
        self.mail_offer(&done);
        Ok(done)
    }

    /// Who may use a workflow. Who may not share it sees only what reaches themselves.
    pub async fn workflow_grants(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
    ) -> Result<Vec<GrantLine>, EngineError> {
        require(caller, Scope::WorkflowsRead)?;
        whole(reference)?;
        let asked = asked(caller, reference);
        let found = self.inner.store.sharing().workflow_grants(&behalf(caller), &asked).await?;
        one(found, reference)
    }
}
