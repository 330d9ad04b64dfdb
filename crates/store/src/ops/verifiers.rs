//! Verifiers that a caller owns, or reaches through workflows that name them. Access is not stored:
//! each query derives it, so that it ends with the grant, the binding or the archiving.

mod deploy;
mod remove;
pub(crate) mod rows;

use const_format::concatcp;
use jurat_core::{
    account::full_name,
    id::AccountId,
    time::Timestamp,
    verifier::{
        Verifier, VerifierConfig, VerifierSelector, VerifierVersion,
        registry::{DeployedVersion, ReachedVerifier, ShareRoute, VersionSummary},
    },
    workflow::{ShareOrigin, VerifierRole},
};

use self::rows::{
    COLUMNS, OWNER_HANDLE, REACH, REACHES, REACHES_GROUPED, read_verifier, read_version,
};
use super::workflows::label;
use crate::{
    NameMatch, Result, StorageFull,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Verifiers that a caller can reach.
    pub struct VerifierOps = store.verifiers();
    reads {
        /// A version of an active verifier, by default the current one; nothing for a system
        /// verifier.
        fn get(asked: &VerifierLookup) -> NameMatch<ReachedVersion> = get;
        /// The active verifiers that a caller can reach, in the order of their names.
        fn list(query: &VerifierQuery) -> Vec<ReachedVerifier> = list;
        /// The versions of an active verifier that the caller may tune, newest first.
        fn versions(query: &VersionQuery) -> Vec<VersionSummary> = versions;
    }
    writes {
        /// Adds a version: to the verifier with the name, or as the first of a new one.
        fn deploy(deploy: &NewVerifierVersion) -> DeployedVersion, or DeployRefusal = deploy::deploy;
        /// Permanently deactivates a verifier, and returns it as it was. A revoked verifier stays
        /// revoked.
        fn revoke(removal: &VerifierRemoval) -> Verifier, or VerifierRemoveRefusal = remove::revoke;
        /// Erases a verifier, even a revoked one: its versions, measurements, runs and cached
        /// verdicts, and the texts of judges in the rounds of its runs. The decision entries of
        /// those rounds stay, because they hold digests only. Returns the verifier as it was.
        fn delete(removal: &VerifierRemoval) -> Verifier, or VerifierRemoveRefusal = remove::delete;
    }
}

/// A version to be deployed: the first of a verifier, or the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVerifierVersion {
    pub account: AccountId,
    pub name: String,
    pub description: String,
    pub config: VerifierConfig,
    /// The current token of an existing verifier; left out for a new one.
    pub expected_token: Option<String>,
    /// The identifier of a new verifier.
    pub new_id: String,
    pub new_token: String,
    /// The storage quota of its owner, who need not be the caller.
    pub quota_bytes: u64,
    pub at: Timestamp,
}

/// Why a version was not deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeployRefusal {
    /// The owner of the verifier has used up its storage.
    Full(StorageFull),
    /// The verifier exists, and no token was given.
    TokenMissing { current: String },
    /// Another version was deployed in the meantime.
    TokenStale { current: String },
    /// A token was given, and there is no such verifier.
    TokenUnexpected,
    /// The name belongs to a verifier that was revoked.
    NameRevoked,
    /// The token belongs to no verifier of this name that the caller accepted; these full names
    /// lead to those of other owners.
    TokenOfNone(Vec<String>),
}

/// The verifier to revoke or to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierRemoval {
    pub account: AccountId,
    pub which: VerifierSelector,
    pub at: Timestamp,
}

/// Why a verifier was not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifierRemoveRefusal {
    Unknown,
    /// Live templates with these names were published with the verifier, so it stays.
    Serving(Vec<String>),
}

/// The verifier that a caller asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierLookup {
    pub caller: AccountId,
    pub which: VerifierSelector,
    pub version: Option<u32>,
    /// A caller with a lower role does not find it.
    pub needs: VerifierRole,
}

/// A version, and the role of the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct ReachedVersion {
    pub version: VerifierVersion,
    pub role: VerifierRole,
    /// `None` for an owner.
    pub shared: Option<ShareRoute>,
}

/// A page of the verifiers that a caller can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierQuery {
    pub caller: AccountId,
    /// Starts after this name and id.
    pub after: Option<(String, String)>,
    pub limit: u32,
}

/// A page of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionQuery {
    pub caller: AccountId,
    pub verifier_id: String,
    /// Starts after this version.
    pub before: Option<u32>,
    pub limit: u32,
}

const VERSION_COLUMNS: &str = concatcp!(
    COLUMNS,
    ", verifier_versions.version, verifier_versions.description as version_description, \
     verifier_versions.config, verifier_versions.config_hash, verifier_versions.deployed_at"
);
const JOIN_VERSIONS: &str = " join verifier_versions \
    on verifier_versions.account_id = verifiers.account_id \
    and verifier_versions.verifier_id = verifiers.id ";

// Verifiers that the caller can reach, with their versions: its own, and those that were granted.
// SQLite keeps the join order of `cross join`: access comes first, so that a foreign verifier takes
// as long as an unknown one.
const OWN: &str = " from (select own.account_id, own.id as verifier_id, 'owner' as via \
    from verifiers as own where own.account_id = $1 and ";
const VERSIONS_OF_REACH: &str = concatcp!(
    REACHES_GROUPED,
    ") as reach cross join verifiers",
    JOIN_VERSIONS,
    "where verifiers.account_id = reach.account_id and verifiers.id = reach.verifier_id \
     and verifiers.standing = 'active'"
);
/// Only the verifier `$2`.
const REACHED: &str = concatcp!(
    OWN,
    "own.id = $2 union all ",
    REACHES,
    " and workflow_bindings.verifier_id = $2",
    VERSIONS_OF_REACH
);

/// The version defaults to the current one. An owner's `via` sorts after all others.
const BY_ID: &str = concatcp!(
    "select ",
    VERSION_COLUMNS,
    ", reach.via, ",
    OWNER_HANDLE,
    REACHED,
    " and verifier_versions.version = coalesce($3, verifiers.current_version) \
     and reach.via >= $4"
);
const OWN_BY_NAME: &str = concatcp!(
    "select ",
    VERSION_COLUMNS,
    ", 'owner' as via, ",
    OWNER_HANDLE,
    " from verifiers",
    JOIN_VERSIONS,
    "where verifiers.account_id = $1 and verifiers.name = $2 and verifiers.standing = 'active' \
     and verifier_versions.version = coalesce($3, verifiers.current_version)"
);
/// A verifier by its name `$2` and its owner `$5`.
const BY_FULL_NAME: &str = concatcp!(
    "select ",
    VERSION_COLUMNS,
    ", reach.via, ",
    OWNER_HANDLE,
    OWN,
    "own.name = $2 union all ",
    REACHES,
    VERSIONS_OF_REACH,
    " and verifier_versions.version = coalesce($3, verifiers.current_version) \
     and reach.via >= $4 and verifiers.name = $2 and verifiers.account_id in ",
    crate::ops::workflows::of_owner!("$5")
);
/// Shared verifiers with the name, accepted ones first. A caller that owns a verifier with the name
/// means its own, whatever its versions are.
const SHARED_BY_NAME: &str = concatcp!(
    "select ",
    COLUMNS,
    ", reach.via, ",
    OWNER_HANDLE,
    " from ",
    REACH,
    " join verifiers on verifiers.account_id = reach.account_id \
     and verifiers.id = reach.verifier_id \
     where verifiers.name = $2 and verifiers.standing = 'active' \
     and reach.via >= $3 and not exists (select 1 from verifiers as own \
     where own.account_id = $1 and own.name = $2 and own.standing = 'active') \
     order by substr(reach.via, 3, 1) desc, verifiers.id limit 3"
);
/// Reads no more of the caller's own verifiers than the page shows; the first condition on the name
/// lets SQLite start at the page.
const LIST: &str = concatcp!(
    "select * from (select ",
    COLUMNS,
    ", 'owner' as via, ",
    OWNER_HANDLE,
    " from verifiers \
     where verifiers.account_id = $1 and verifiers.standing = 'active' and verifiers.name >= $2 \
     and (verifiers.name > $2 or verifiers.id > $3) order by verifiers.name limit $4) as own \
     union all select ",
    COLUMNS,
    ", reach.via, ",
    OWNER_HANDLE,
    " from ",
    REACH,
    " join verifiers on verifiers.account_id = reach.account_id \
     and verifiers.id = reach.verifier_id where verifiers.standing = 'active' \
     and (verifiers.name, verifiers.id) > ($2, $3) order by name, id limit $4"
);
const VERSIONS: &str = concatcp!(
    "select verifier_versions.verifier_id, verifier_versions.version, \
     verifier_versions.description, verifier_versions.config_hash, verifier_versions.deployed_at",
    REACHED,
    " and reach.via >= '2' \
     and verifier_versions.version < $3 order by verifier_versions.version desc limit $4"
);

async fn get(tx: &mut Tx<'_>, asked: &VerifierLookup) -> Result<NameMatch<ReachedVersion>> {
    let VerifierLookup { caller, which, version, needs } = asked;
    // The role in the form of `via`, which has no number for an owner.
    let least = match needs {
        VerifierRole::Exec => "1",
        VerifierRole::Tune => "2",
        VerifierRole::Owner => "3",
    };
    let name = match which {
        VerifierSelector::System(_) => return Ok(NameMatch::Nothing),
        VerifierSelector::Id(id) => {
            let args = args![caller, id, *version, least];
            return tx.first(BY_ID, args, read_reached_version).await.map(NameMatch::one);
        }
        VerifierSelector::Of { owner, name } => {
            let args = args![caller, name, *version, least, owner.as_str()];
            return tx.first(BY_FULL_NAME, args, read_reached_version).await.map(NameMatch::one);
        }
        VerifierSelector::Name(name) => name,
    };
    let own = tx.first(OWN_BY_NAME, args![caller, name, *version], read_reached_version).await?;
    if own.is_some() {
        return Ok(NameMatch::one(own));
    }
    let shared = tx.all(SHARED_BY_NAME, args![caller, name, least], read_full_name).await?;
    Ok(NameMatch::named_elsewhere(shared))
}

async fn list(tx: &mut Tx<'_>, query: &VerifierQuery) -> Result<Vec<ReachedVerifier>> {
    let (name, id) = query.after.as_ref().map_or(("", ""), |(name, id)| (name, id));
    tx.all(LIST, args![&query.caller, name, id, query.limit], read_reached).await
}

async fn versions(tx: &mut Tx<'_>, query: &VersionQuery) -> Result<Vec<VersionSummary>> {
    // Greater than any version.
    let before = query.before.map_or(i64::MAX, i64::from);
    let args = args![&query.caller, &query.verifier_id, before, query.limit];
    tx.all(VERSIONS, args, read_summary).await
}

fn read_reached(cells: &dyn DbRow) -> Result<ReachedVerifier> {
    let verifier = read_verifier(cells)?;
    let (role, shared) = read_via(cells, &verifier)?;
    Ok(ReachedVerifier { verifier, role, shared })
}

fn read_reached_version(cells: &dyn DbRow) -> Result<ReachedVersion> {
    let version = read_version(cells)?;
    let (role, shared) = read_via(cells, &version.verifier)?;
    Ok(ReachedVersion { version, role, shared })
}

/// The name of a verifier for those who do not own it.
fn read_full_name(cells: &dyn DbRow) -> Result<String> {
    let reached = read_reached(cells)?;
    let owner = reached.shared.map_or_else(String::new, |shared| shared.by.owner);
    Ok(full_name(&owner, &reached.verifier.name))
}

fn read_via(cells: &dyn DbRow, verifier: &Verifier) -> Result<(VerifierRole, Option<ShareRoute>)> {
    let columns = RowReader::new(cells, "verifiers", "id")?;
    let via = columns.text("via")?;
    if via == "owner" {
        return Ok((VerifierRole::Owner, None));
    }
    let mut parts = via.splitn(3, ' ');
    let (role, is_accepted, workflow) = match (parts.next(), parts.next(), parts.next()) {
        (Some("1"), Some(state), Some(workflow)) => (VerifierRole::Exec, state == "1", workflow),
        (Some("2"), Some(state), Some(workflow)) => (VerifierRole::Tune, state == "1", workflow),
        _ => return Err(columns.bad("via", "it is no role, state and workflow")),
    };
    let owner = label(columns.maybe_text("owner_handle")?, verifier.account.as_str());
    let by = ShareOrigin { owner, is_accepted };
    Ok((role, Some(ShareRoute { workflow: workflow.to_owned(), by })))
}

fn read_summary(cells: &dyn DbRow) -> Result<VersionSummary> {
    let columns = RowReader::new(cells, "verifier_versions", "verifier_id")?;
    Ok(VersionSummary {
        version: columns.count("version")?,
        description: columns.text("description")?,
        config_hash: columns.text("config_hash")?,
        deployed_at: columns.time("deployed_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::sqlite::setup::plan;

    #[test]
    fn a_list_and_a_verifier_read_no_verifiers_that_they_do_not_show() {
        let active = "SEARCH verifiers USING INDEX verifiers_active (account_id=? AND name>?)";
        let list = plan(LIST);
        assert!(list.contains(&active.to_owned()), "{list:?}");
        assert!(!list.iter().any(|line| line.starts_with("SCAN verifiers")), "{list:?}");
        let by_name = "SEARCH verifiers USING INDEX verifiers_by_name (account_id=? AND name=?)";
        let version = "SEARCH verifier_versions USING INDEX sqlite_autoindex_verifier_versions_1 \
            (account_id=? AND verifier_id=? AND version=?)";
        let owner = "SEARCH owners USING INDEX sqlite_autoindex_accounts_1 (id=?)";
        assert_eq!(plan(OWN_BY_NAME), [by_name, version, owner]);
    }
}
