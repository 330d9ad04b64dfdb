//! Transfers a workflow to another owner, with the verifiers that it names.

use const_format::concatcp;
use jurat_core::{
    account::team::InvitationKind,
    id::AccountId,
    time::Timestamp,
    workflow::{AccessRole, Workflow, operation::OfferOutcome},
};

use super::rows::COLUMNS;
use super::{
    NameMatch, OwnershipChange, WorkflowOffer, WorkflowOfferRefusal, WorkflowRefusal, files, reach,
    rows::read_workflow, tried,
};
use crate::{
    InvitationRefusal, Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args},
    },
    ops::invitations::{NewInvitation, invitation_make, lock_target},
};

const OWN: &str = concatcp!(
    "select ",
    COLUMNS,
    " from workflows where workflows.account_id = $1 and workflows.id = $2"
);
const BOUND: &str = "\
    select distinct verifiers.id, verifiers.name from workflow_bindings join verifiers \
    on verifiers.account_id = workflow_bindings.account_id \
    and verifiers.id = workflow_bindings.verifier_id \
    where workflow_bindings.account_id = $1 and workflow_bindings.workflow_id = $2 \
    order by verifiers.id";
const BOUND_ELSEWHERE: &str = "\
    select workflows.id, workflows.slug from workflow_bindings join workflows \
    on workflows.account_id = workflow_bindings.account_id \
    and workflows.id = workflow_bindings.workflow_id \
    where workflow_bindings.account_id = $1 and workflow_bindings.verifier_id = $2 \
    and workflow_bindings.workflow_id <> $3 order by workflows.slug limit 1";
const NAME_TAKEN: &str = "select id from verifiers where account_id = $1 and name = $2";

/// The rows that move with a workflow: to the account `$1`, from `$2`, by the id `$3`. Versions
/// never change, so they are copied and the old ones removed.
const MOVES: [&str; 7] = [
    "insert into workflow_blobs (account_id, sha256, content, created_at) \
     select $1, workflow_blobs.sha256, workflow_blobs.content, workflow_blobs.created_at \
     from workflow_blobs where workflow_blobs.account_id = $2 and workflow_blobs.sha256 in ( \
     select workflow_files.sha256 from workflow_files \
     where workflow_files.account_id = $2 and workflow_files.workflow_id = $3) \
     on conflict (account_id, sha256) do nothing",
    "insert into workflow_versions (account_id, workflow_id, version, name, description, outcome, \
     tags, body, source, bindings, created_by, created_at) \
     select $1, workflow_id, version, name, description, outcome, tags, body, source, bindings, \
     created_by, created_at from workflow_versions where account_id = $2 and workflow_id = $3",
    "update workflow_files set account_id = $1 where account_id = $2 and workflow_id = $3",
    "update workflow_bindings set account_id = $1 where account_id = $2 and workflow_id = $3",
    "update workflow_grants set account_id = $1 where account_id = $2 and workflow_id = $3",
    "update named_grants set account_id = $1 where account_id = $2 and workflow_id = $3",
    "update workflows set account_id = $1 where account_id = $2 and id = $3",
];
const VERSIONS_LEAVE: &str =
    "delete from workflow_versions where account_id = $1 and workflow_id = $2";
const GRANT_ENDS: [&str; 2] = [
    "delete from workflow_grants where account_id = $1 and workflow_id = $2 and grantee_id = $3",
    "delete from named_grants where account_id = $1 and workflow_id = $2 and grantee_id = $3",
];
const TOUCH: &str = "update workflows set updated_at = $1 where account_id = $2 and id = $3";

/// The rows that move with a verifier.
const VERIFIER_MOVES: [&str; 4] = [
    "insert into verifier_versions (\
     account_id, verifier_id, version, description, config, config_hash, deployed_at) \
     select $1, verifier_id, version, description, config, config_hash, deployed_at \
     from verifier_versions where account_id = $2 and verifier_id = $3",
    "update verifier_measurements set account_id = $1 where account_id = $2 and verifier_id = $3",
    "update verifiers set account_id = $1 where account_id = $2 and id = $3",
    "update template_pins set account_id = $1 where account_id = $2 and verifier_id = $3",
];
const VERIFIER_VERSIONS_LEAVE: &str =
    "delete from verifier_versions where account_id = $1 and verifier_id = $2";

/// Offers, answers and changes of the same workflow wait for each other, before anything else is
/// locked.
pub(super) async fn offer(
    tx: &mut Tx<'_>,
    offer: &WorkflowOffer,
) -> Result<Result<OfferOutcome<Workflow>, WorkflowOfferRefusal>> {
    let reached = match reach::find(tx, &offer.caller, &offer.which).await? {
        NameMatch::One(reached) => reached,
        NameMatch::Nothing => {
            return Ok(Err(WorkflowOfferRefusal::Workflow(WorkflowRefusal::NotFound)));
        }
        NameMatch::Elsewhere(names) => {
            return Ok(Err(WorkflowOfferRefusal::Workflow(WorkflowRefusal::Elsewhere(names))));
        }
    };
    lock_target(tx, &reached.workflow.id).await?;
    let again = reach::by_id(tx, &offer.caller, &reached.workflow.id).await?;
    let Some(reached) = again else {
        return Ok(Err(WorkflowOfferRefusal::Workflow(WorkflowRefusal::NotFound)));
    };
    tried!(reach::may(&reached, AccessRole::Owner).map_err(WorkflowOfferRefusal::Workflow));
    let new = NewInvitation {
        id: offer.invitation_id.clone(),
        kind: InvitationKind::WorkflowOwnership,
        target_id: reached.workflow.id.clone(),
        target_label: reached.workflow.name.clone(),
        from: offer.caller.clone(),
        to: offer.to.clone(),
        at: offer.at,
    };
    Ok(match invitation_make(tx, &new).await? {
        Ok(invitation) => Ok(OfferOutcome::Invitation(invitation)),
        Err(InvitationRefusal::Oneself) => Ok(OfferOutcome::Own(Box::new(reached.workflow))),
        Err(refused) => Err(WorkflowOfferRefusal::Invitation(refused)),
    })
}

pub(super) async fn give(tx: &mut Tx<'_>, giving: &OwnershipChange) -> Result<Result<(), String>> {
    transfer(tx, &giving.workflow_id, &giving.from, &giving.to, giving.at).await
}

/// Moves a workflow with its versions, files, grants and the verifiers that it names. The inner
/// error explains why it cannot be moved.
pub(crate) async fn transfer(
    tx: &mut Tx<'_>,
    target_id: &str,
    from: &AccountId,
    to: &AccountId,
    at: Timestamp,
) -> Result<Result<(), String>> {
    let (first, second) = if from <= to { (from, to) } else { (to, from) };
    reach::lock(tx, first).await?;
    reach::lock(tx, second).await?;
    let Some(workflow) = own(tx, from, target_id).await? else {
        return Ok(Err("the workflow no longer exists".to_owned()));
    };
    if from == to {
        return Ok(Ok(()));
    }
    let verifiers = tx.all(BOUND, args![from, target_id], read_named).await?;
    if let Some(why) = hindered(tx, &workflow, to, &verifiers).await? {
        return Ok(Err(why));
    }
    for text in GRANT_ENDS {
        tx.run(text, args![from, target_id, to]).await?;
    }
    for text in MOVES {
        tx.run(text, args![to, from, target_id]).await?;
    }
    tx.run(VERSIONS_LEAVE, args![from, target_id]).await?;
    tx.run(TOUCH, args![at, to, target_id]).await?;
    for (id, _) in &verifiers {
        for text in VERIFIER_MOVES {
            tx.run(text, args![to, from, id]).await?;
        }
        tx.run(VERIFIER_VERSIONS_LEAVE, args![from, id]).await?;
    }
    files::forget(tx, from).await?;
    Ok(Ok(()))
}

/// A workflow of an account.
pub(super) async fn own(tx: &mut Tx<'_>, owner: &AccountId, id: &str) -> Result<Option<Workflow>> {
    tx.first(OWN, args![owner, id], read_workflow).await
}

/// The reason why the workflow cannot be transferred, in words.
async fn hindered(
    tx: &mut Tx<'_>,
    workflow: &Workflow,
    to: &AccountId,
    verifiers: &[(String, String)],
) -> Result<Option<String>> {
    if reach::own_by_slug(tx, to, &workflow.slug).await?.is_some() {
        return Ok(Some(format!("the new owner already has a workflow `{}`", workflow.slug)));
    }
    for (id, name) in verifiers {
        let read = |cells: &dyn DbRow| RowReader::new(cells, "workflows", "id")?.text("slug");
        let args = args![&workflow.account, id, &workflow.id];
        if let Some(slug) = tx.first(BOUND_ELSEWHERE, args, read).await? {
            return Ok(Some(format!(
                "the verifier `{name}` is also named by the workflow `{slug}`"
            )));
        }
        let read = |cells: &dyn DbRow| RowReader::new(cells, "verifiers", "id")?.text("id");
        if tx.first(NAME_TAKEN, args![to, name], read).await?.is_some() {
            return Ok(Some(format!("the new owner already has a verifier `{name}`")));
        }
    }
    Ok(None)
}

fn read_named(cells: &dyn DbRow) -> Result<(String, String)> {
    let columns = RowReader::new(cells, "verifiers", "id")?;
    Ok((columns.text("id")?, columns.text("name")?))
}
