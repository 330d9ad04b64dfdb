//! Changes the state and the owner of templates. The content of a version never changes.

use jurat_core::{
    account::team::InvitationKind,
    id::AccountId,
    time::Timestamp,
    workflow::{
        operation::OfferOutcome,
        template::{ChangedTemplate, Template, TemplateChangeKind, TemplateSelector},
    },
};

use super::{
    TemplateChange, TemplateChangeRefusal, TemplateOffer, TemplateOfferRefusal,
    read::{BY_SLUG, OWN, find, read_template},
};
use crate::{
    InvitationRefusal, Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args},
    },
    ops::invitations::{NewInvitation, cancel_all, invitation_make, lock_target},
};

const VERSION: &str = "\
    select template_id, version, unpublished_at from template_versions \
    where template_id = $1 and version = $2";
const LIVE: &str = "\
    select template_id from template_versions where template_id = $1 and unpublished_at is null";
const UNPUBLISH: &str = "\
    update template_versions set unpublished_at = coalesce(unpublished_at, $1) \
    where template_id = $2 and version = $3";
const DEPRECATE: &str = "\
    update template_versions set deprecated_at = coalesce(deprecated_at, $1), \
    deprecation_message = $2 where template_id = $3 and version = $4";
const ARCHIVE: &str = "\
    update templates set archived_at = coalesce(archived_at, $1), archive_reason = $2, \
    updated_at = $1 where id = $3";
const UNARCHIVE: &str = "\
    update templates set archived_at = null, archive_reason = null, updated_at = $1 where id = $2";
const DELETE_VERSION: [&str; 3] = [
    "delete from template_pins where template_id = $1 and version = $2",
    "delete from template_files where template_id = $1 and version = $2",
    "delete from template_versions where template_id = $1 and version = $2",
];
const DELETE: [&str; 5] = [
    "delete from template_pins where template_id = $1",
    "delete from template_files where template_id = $1",
    "delete from template_versions where template_id = $1",
    "delete from template_moves where template_id = $1",
    "delete from templates where id = $1",
];
const HANDLE: &str = "select id, handle from accounts where id = $1";
const GIVE: &str = "update templates set account_id = $1, updated_at = $2 where id = $3";
const LEAVE: &str = "\
    insert into template_moves (account_id, slug, template_id) values ($1, $2, $3) \
    on conflict (account_id, slug) do update set template_id = excluded.template_id";
/// An account that gets a template back needs no redirect from its name.
const RETURN: &str = "delete from template_moves where account_id = $1 and slug = $2";

pub(super) async fn change(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
) -> Result<Result<ChangedTemplate, TemplateChangeRefusal>> {
    let Some(template) = held(tx, &change.account, &change.which, change.at).await? else {
        return Ok(Err(TemplateChangeRefusal::Unknown));
    };
    let id = template.id.clone();
    let done = match &change.change {
        TemplateChangeKind::Unpublish(version) => {
            of_version(tx, &id, *version, Some(UNPUBLISH), change).await?
        }
        TemplateChangeKind::Deprecate(version, message) => {
            deprecate(tx, (&id, *version), message.as_deref(), change.at).await?
        }
        TemplateChangeKind::DeleteVersion(version) => {
            of_version(tx, &id, *version, None, change).await?
        }
        TemplateChangeKind::Archive(reason) => {
            tx.run(ARCHIVE, args![change.at, reason.as_deref(), &id]).await?;
            Ok(())
        }
        TemplateChangeKind::Unarchive => {
            tx.run(UNARCHIVE, args![change.at, &id]).await?;
            Ok(())
        }
        TemplateChangeKind::Delete => delete(tx, &template, change.at).await?,
    };
    Ok(done.map(|()| ChangedTemplate { template, at: change.at }))
}

/// One of the account's templates, locked. A foreign template is treated exactly like a missing
/// one.
async fn held(
    tx: &mut Tx<'_>,
    account: &AccountId,
    which: &TemplateSelector,
    at: Timestamp,
) -> Result<Option<Template>> {
    let Some(id) = find(tx, which, at).await? else { return Ok(None) };
    if tx.first(OWN, args![&id, account], read_template).await?.is_none() {
        return Ok(None);
    }
    lock_target(tx, &id).await?;
    tx.lock(&format!("templates {account}")).await?;
    // The template may have changed while this transaction waited for the lock.
    tx.first(OWN, args![&id, account], read_template).await
}

/// Whether the version is published; `None` if there is no such version.
async fn is_published(tx: &mut Tx<'_>, id: &str, version: u32) -> Result<Option<bool>> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "template_versions", "template_id")?;
        Ok(columns.maybe_time("unpublished_at")?.is_none())
    };
    tx.first(VERSION, args![id, version], read).await
}

/// Unpublishes a version, or deletes it if `unpublish` is `None`.
async fn of_version(
    tx: &mut Tx<'_>,
    id: &str,
    version: u32,
    unpublish: Option<&'static str>,
    change: &TemplateChange,
) -> Result<Result<(), TemplateChangeRefusal>> {
    match (is_published(tx, id, version).await?, unpublish) {
        (None, _) => return Ok(Err(TemplateChangeRefusal::VersionUnknown)),
        (Some(_), Some(text)) => {
            tx.run(text, args![change.at, id, version]).await?;
        }
        (Some(true), None) => return Ok(Err(TemplateChangeRefusal::StillPublished)),
        (Some(false), None) => {
            for text in DELETE_VERSION {
                tx.run(text, args![id, version]).await?;
            }
        }
    }
    Ok(Ok(()))
}

async fn deprecate(
    tx: &mut Tx<'_>,
    (id, version): (&str, u32),
    message: Option<&str>,
    at: Timestamp,
) -> Result<Result<(), TemplateChangeRefusal>> {
    if is_published(tx, id, version).await?.is_none() {
        return Ok(Err(TemplateChangeRefusal::VersionUnknown));
    }
    tx.run(DEPRECATE, args![at, message, id, version]).await?;
    Ok(Ok(()))
}

async fn delete(
    tx: &mut Tx<'_>,
    template: &Template,
    at: Timestamp,
) -> Result<Result<(), TemplateChangeRefusal>> {
    let read = |cells: &dyn DbRow| {
        RowReader::new(cells, "template_versions", "template_id")?.text("template_id")
    };
    let is_published = tx.first(LIVE, args![&template.id], read).await?.is_some();
    if is_published && template.archived_at.is_none() {
        return Ok(Err(TemplateChangeRefusal::Live));
    }
    cancel_all(tx, &template.id, None, at).await?;
    for text in DELETE {
        tx.run(text, args![&template.id]).await?;
    }
    Ok(Ok(()))
}

pub(super) async fn offer(
    tx: &mut Tx<'_>,
    offer: &TemplateOffer,
) -> Result<Result<OfferOutcome<Template>, TemplateOfferRefusal>> {
    let Some(template) = held(tx, &offer.account, &offer.which, offer.at).await? else {
        return Ok(Err(TemplateOfferRefusal::Unknown));
    };
    let new = NewInvitation {
        id: offer.invitation_id.clone(),
        kind: InvitationKind::TemplateOwnership,
        target_id: template.id.clone(),
        target_label: format!("@{}/{}", template.handle, template.slug),
        from: offer.account.clone(),
        to: offer.to.clone(),
        at: offer.at,
    };
    Ok(match invitation_make(tx, &new).await? {
        Ok(invitation) => Ok(OfferOutcome::Invitation(invitation)),
        Err(InvitationRefusal::Oneself) => Ok(OfferOutcome::Own(Box::new(template))),
        Err(refused) => Err(TemplateOfferRefusal::Invitation(refused)),
    })
}

/// Transfers a template to another account; its old name redirects. The inner error explains why it
/// cannot be transferred.
pub(crate) async fn transfer(
    tx: &mut Tx<'_>,
    target: &str,
    from: &AccountId,
    to: &AccountId,
    at: Timestamp,
) -> Result<Result<(), String>> {
    let (first, second) = if from < to { (from, to) } else { (to, from) };
    tx.lock(&format!("templates {first}")).await?;
    tx.lock(&format!("templates {second}")).await?;
    let Some(template) = tx.first(OWN, args![target, from], read_template).await? else {
        return Ok(Err("the sender of the offer no longer owns the template".to_owned()));
    };
    let read = |cells: &dyn DbRow| RowReader::new(cells, "accounts", "id")?.maybe_text("handle");
    if tx.first(HANDLE, args![to], read).await?.flatten().is_none() {
        return Ok(Err("a template needs an owner with a handle; claim one first".to_owned()));
    }
    let slug = &template.slug;
    if tx.first(BY_SLUG, args![to, slug], read_template).await?.is_some() {
        return Ok(Err(format!("the new owner already has a template `{slug}`")));
    }
    tx.run(GIVE, args![to, at, target]).await?;
    tx.run(LEAVE, args![from, slug, target]).await?;
    tx.run(RETURN, args![to, slug]).await?;
    Ok(Ok(()))
}
