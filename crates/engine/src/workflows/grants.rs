//! Grants on workflows: access for other accounts.

use jurat_core::{
    account::{
        AccountName,
        caller::{Caller, Scope},
    },
    id::uuid,
    workflow::{
        AccessRole, GrantLine, Workflow, WorkflowRef,
        operation::{
            GrantRevocationResult, OfferOutcome, WorkflowGrantResult, WorkflowLeaveResult,
        },
    },
};
use jurat_store::{
    GrantRevocation, InvitationRefusal, WorkflowGrantOrder, WorkflowOffer, WorkflowOfferRefusal,
};

use super::{found_one, refusal, require_unpinned, workflow_query};
use crate::access::behalf_of;
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, access::require_scope,
    accounts::invitations,
};

/// A recipient of a share, as a request names it.
pub type Sharee = AccountName;

/// A requested grant.
#[derive(Debug, Clone)]
pub struct NewWorkflowGrant {
    pub grantee: Sharee,
    pub role: AccessRole,
    /// Whether the versions before the current one are shared, too.
    pub with_history: bool,
}

impl Engine {
    /// Grants a role on a workflow, or changes it.
    pub async fn workflow_grant(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        new: NewWorkflowGrant,
        keyed: Option<IdempotentWrite<WorkflowGrantResult>>,
    ) -> Result<IdempotentOutcome<WorkflowGrantResult>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        require_unpinned(reference)?;
        let order = WorkflowGrantOrder {
            caller: caller.account().clone(),
            which: reference.which.clone(),
            grantee: new.grantee,
            role: new.role,
            with_history: new.with_history,
            at: self.inner.clock.now(),
        };
        let workflows = self.inner.store.workflows();
        let write =
            async |once: Option<&_>| workflows.grant(&behalf_of(caller), &order, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Note, write).await?;
        done.map_err(|refused| refusal(refused, &reference.to_string()))
    }

    /// Revokes a grant.
    pub async fn workflow_revoke(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        grantee: Sharee,
        keyed: Option<IdempotentWrite<GrantRevocationResult>>,
    ) -> Result<IdempotentOutcome<GrantRevocationResult>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        require_unpinned(reference)?;
        let order = GrantRevocation {
            caller: caller.account().clone(),
            which: reference.which.clone(),
            grantee,
            at: self.inner.clock.now(),
        };
        let workflows = self.inner.store.workflows();
        let write =
            async |once: Option<&_>| workflows.revoke(&behalf_of(caller), &order, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Less, write).await?;
        done.map_err(|refused| refusal(refused, &reference.to_string()))
    }

    /// Gives up the caller's own direct grant.
    pub async fn workflow_leave(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        keyed: Option<IdempotentWrite<WorkflowLeaveResult>>,
    ) -> Result<IdempotentOutcome<WorkflowLeaveResult>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        require_unpinned(reference)?;
        let change = self.change_of(caller, reference);
        let workflows = self.inner.store.workflows();
        let write =
            async |once: Option<&_>| workflows.leave(&behalf_of(caller), &change, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Less, write).await?;
        done.map_err(|refused| refusal(refused, &reference.to_string()))
    }

    /// Offers ownership of a workflow, with the verifiers that it names.
    pub async fn workflow_transfer(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        to: Sharee,
        keyed: Option<IdempotentWrite<OfferOutcome<Workflow>>>,
    ) -> Result<IdempotentOutcome<OfferOutcome<Workflow>>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        require_unpinned(reference)?;
        let clock = &self.inner.clock;
        let at = clock.now();
        let offer = WorkflowOffer {
            caller: caller.account().clone(),
            which: reference.which.clone(),
            to,
            invitation_id: uuid(at, clock.bits()),
            at,
        };
        let workflows = self.inner.store.workflows();
        let write =
            async |once: Option<&_>| workflows.offer(&behalf_of(caller), &offer, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Note, write).await?;
        let done = done.map_err(|refused| match refused {
            WorkflowOfferRefusal::Workflow(refused) => refusal(refused, &reference.to_string()),
            WorkflowOfferRefusal::Invitation(InvitationRefusal::Unknown) => {
                EngineError::user_not_found()
            }
            WorkflowOfferRefusal::Invitation(refused) => {
                invitations::offer_refusal(&refused, "the new owner")
            }
        })?;
        self.mail_offer(&done);
        Ok(done)
    }

    /// The grants on a workflow. A caller that may not share it sees only their own access.
    pub async fn workflow_grants(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
    ) -> Result<Vec<GrantLine>, EngineError> {
        require_scope(caller, Scope::WorkflowsRead)?;
        require_unpinned(reference)?;
        let asked = workflow_query(caller, reference);
        let found = self.inner.store.workflows().grants(&behalf_of(caller), &asked).await?;
        found_one(found, reference)
    }
}
