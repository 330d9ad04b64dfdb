//! Rows of verifiers and their versions, and the SQL that derives the access to them.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    verifier::{SYSTEM_PREFIX, Verifier, VerifierConfig, VerifierVersion},
};
use serde_json::Value;

use crate::{
    Result, StoreError,
    db::row::{DbRow, RowReader},
    ops::workflows::{IS_ACCEPTED, PRINCIPALS},
};

pub(crate) const COLUMNS: &str = "\
    verifiers.account_id, verifiers.id, verifiers.name, verifiers.description, \
    verifiers.current_version, verifiers.version_token, verifiers.standing, \
    verifiers.created_at, verifiers.updated_at";

/// The verifiers that the caller reaches through grants. `via` begins with `2` if the caller may
/// tune the verifier, and with `1` if it may only run it. Then follows `1` if the grant is
/// accepted, or `0`, and the identifier of a workflow.
pub(super) const REACHES: &str = concatcp!(
    "select workflow_bindings.account_id, workflow_bindings.verifier_id, \
     max(case workflow_grants.role when 'view' then '1 ' else '2 ' end \
     || case when ",
    IS_ACCEPTED,
    " then '1 ' else '0 ' end || workflows.id) as via from workflow_grants join workflows \
     on workflows.account_id = workflow_grants.account_id \
     and workflows.id = workflow_grants.workflow_id and workflows.archived_at is null \
     join workflow_bindings on workflow_bindings.account_id = workflows.account_id \
     and workflow_bindings.workflow_id = workflows.id \
     where workflow_grants.account_id <> $1 and workflow_grants.state <> 'declined' \
     and workflow_grants.grantee_id in ",
    PRINCIPALS
);
/// Each verifier once, by its best grant.
pub(super) const REACHES_GROUPED: &str =
    " group by workflow_bindings.account_id, workflow_bindings.verifier_id";
pub(super) const REACH: &str = concatcp!("(", REACHES, REACHES_GROUPED, ") as reach");

/// The handle of the owner of a verifier.
pub(super) const OWNER_HANDLE: &str = "\
    (select owners.handle from accounts as owners where owners.id = verifiers.account_id) \
    as owner_handle";

/// The source of rows that belong to a verifier. They are written only while the verifier exists
/// and is the caller's own, is shared with the caller, or is published.
pub(crate) const USABLE: &str = concatcp!(
    " from verifiers where verifiers.id = $2 and \
     (verifiers.account_id = $1 or exists (select 1 from workflow_bindings \
     join workflows on workflows.account_id = workflow_bindings.account_id \
     and workflows.id = workflow_bindings.workflow_id and workflows.archived_at is null \
     join workflow_grants on workflow_grants.account_id = workflows.account_id \
     and workflow_grants.workflow_id = workflows.id \
     where workflow_bindings.account_id = verifiers.account_id \
     and workflow_bindings.verifier_id = verifiers.id \
     and workflow_grants.state <> 'declined' and workflow_grants.grantee_id in ",
    PRINCIPALS,
    ") or exists (select 1 from template_pins join template_versions \
     on template_versions.template_id = template_pins.template_id \
     and template_versions.version = template_pins.version \
     join templates on templates.id = template_pins.template_id \
     where template_pins.verifier_id = verifiers.id \
     and template_versions.unpublished_at is null and templates.archived_at is null)) "
);
/// PostgreSQL also prevents a deletion of the verifier in the meantime.
pub(crate) const USABLE_LOCKED: &str = concatcp!(USABLE, "for key share of verifiers ");

/// A concurrent deploy of the same name may come first.
pub(crate) const VERIFIER_ADD: &str = "\
    insert into verifiers (account_id, id, name, description, current_version, version_token, \
    standing, created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
    on conflict (account_id, name) do nothing";
pub(crate) const VERSION_ADD: &str = "\
    insert into verifier_versions (\
        account_id, verifier_id, version, description, config, config_hash, deployed_at) \
    values ($1, $2, $3, $4, $5, $6, $7)";

/// Whether a verifier is one of the platform's, which are not in the store.
pub(crate) fn is_system(verifier_id: &str) -> bool {
    verifier_id.starts_with(SYSTEM_PREFIX)
}

/// The refusal of rows whose verifier is gone.
pub(crate) fn verifier_gone() -> StoreError {
    StoreError::conflict("the verifier no longer exists")
}

pub(crate) fn read_verifier(cells: &dyn DbRow) -> Result<Verifier> {
    let columns = RowReader::new(cells, "verifiers", "id")?;
    Ok(Verifier {
        account: columns.id("account_id", AccountId::parse)?,
        id: columns.text("id")?,
        name: columns.text("name")?,
        description: columns.text("description")?,
        current_version: columns.count("current_version")?,
        version_token: columns.text("version_token")?,
        standing: columns.word("standing")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}

pub(crate) fn read_version(cells: &dyn DbRow) -> Result<VerifierVersion> {
    let columns = RowReader::new(cells, "verifier_versions", "id")?;
    let document: Value = columns.document("config")?;
    let config = VerifierConfig::read(&document);
    Ok(VerifierVersion {
        verifier: read_verifier(cells)?,
        version: columns.count("version")?,
        description: columns.text("version_description")?,
        config: config.ok_or_else(|| columns.bad("config", "it is no configuration"))?,
        config_hash: columns.text("config_hash")?,
        deployed_at: columns.time("deployed_at")?,
    })
}
