//! Verifiers that an account can reach: its own, and those of workflows that it may use. Access is
//! not stored: each query derives it, so that it ends with the grant, the binding or the archive.

use jurat_core::{
    account::full_name,
    id::AccountId,
    verifier::{
        Verifier, VerifierSelector, VerifierVersion,
        registry::{ReachedVerifier, ShareRoute, VersionSummary},
    },
    workflow::{ShareOrigin, VerifierRole},
};

use super::workflows::{label, of_owner};
use crate::{
    NameMatch, Result,
    db::{
        rows::{
            DbRow, RowReader,
            registry::{read_verifier, read_version, read_version_summary, version_below},
        },
        sql::registry::{owner_handle, reach, reaches, verifier_columns},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Verifiers that an account can reach: its own, and those of workflows that it may use.
    pub trait VerifierOps;
    reads {
        /// A version of an active verifier, or its current one; nothing for a system verifier.
        fn verifier_get(asked: &VerifierLookup) -> NameMatch<ReachedVersion> = get;
        /// The active verifiers that an account can reach, by name.
        fn verifier_list(query: &VerifierQuery) -> Vec<ReachedVerifier> = list;
        /// The versions of an active verifier for accounts that may tune it, newest first.
        fn verifier_versions(query: &VersionQuery) -> Vec<VersionSummary> = versions;
    }
    writes {}
}

/// A requested verifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierLookup {
    pub caller: AccountId,
    pub which: VerifierSelector,
    pub version: Option<u32>,
    /// An account with a lower role does not find it.
    pub needs: VerifierRole,
}

/// A version, and the caller's role on its verifier.
#[derive(Debug, Clone, PartialEq)]
pub struct ReachedVersion {
    pub version: VerifierVersion,
    pub role: VerifierRole,
    /// `None` for an owner.
    pub shared: Option<ShareRoute>,
}

/// A page of the verifiers that an account can reach.
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

macro_rules! version_columns {
    () => {
        concat!(
            verifier_columns!(),
            ", verifier_versions.version, verifier_versions.description as version_description, \
             verifier_versions.config, verifier_versions.config_hash, \
             verifier_versions.deployed_at"
        )
    };
}

macro_rules! of_verifier {
    ($table:literal) => {
        concat!(
            " on ",
            $table,
            ".account_id = verifiers.account_id and ",
            $table,
            ".verifier_id = verifiers.id "
        )
    };
}

/// Verifiers with the caller's role on them, and their versions: own ones selected by the first
/// condition, and granted ones selected by the second. SQLite keeps the join order of `cross join`:
/// access comes first, so that a foreign verifier takes as long as a missing one.
macro_rules! reached_by {
    ($own:literal, $granted:literal) => {
        concat!(
            " from (select own.account_id, own.id as verifier_id, 'owner' as via \
             from verifiers as own where own.account_id = $1 and ",
            $own,
            " union all ",
            reaches!($granted),
            ") as reach cross join verifiers join verifier_versions",
            of_verifier!("verifier_versions"),
            "where verifiers.account_id = reach.account_id and verifiers.id = reach.verifier_id \
             and verifiers.standing = 'active'"
        )
    };
}

/// The one verifier `$2`.
macro_rules! reached {
    () => {
        reached_by!("own.id = $2", " and workflow_bindings.verifier_id = $2")
    };
}

/// With the current version if none is named. An owner's row sorts after all others.
const BY_ID: &str = concat!(
    "select ",
    version_columns!(),
    ", reach.via, ",
    owner_handle!(),
    reached!(),
    " and verifier_versions.version = coalesce($3, verifiers.current_version) \
     and reach.via >= $4"
);
pub(crate) const OWN_BY_NAME: &str = concat!(
    "select ",
    version_columns!(),
    ", 'owner' as via, ",
    owner_handle!(),
    " from verifiers join verifier_versions",
    of_verifier!("verifier_versions"),
    "where verifiers.account_id = $1 and verifiers.name = $2 and verifiers.standing = 'active' \
     and verifier_versions.version = coalesce($3, verifiers.current_version)"
);
/// By its name `$2` and its owner `$5`.
const BY_FULL_NAME: &str = concat!(
    "select ",
    version_columns!(),
    ", reach.via, ",
    owner_handle!(),
    reached_by!("own.name = $2", ""),
    " and verifier_versions.version = coalesce($3, verifiers.current_version) \
     and reach.via >= $4 and verifiers.name = $2 and verifiers.account_id in ",
    of_owner!("$5")
);
/// Those of other owners with the name; accepted ones come first. If the caller has one with the
/// name, that one is meant, whatever its versions are.
const SHARED_BY_NAME: &str = concat!(
    "select ",
    verifier_columns!(),
    ", reach.via, ",
    owner_handle!(),
    " from ",
    reach!(),
    " join verifiers on verifiers.account_id = reach.account_id \
     and verifiers.id = reach.verifier_id \
     where verifiers.name = $2 and verifiers.standing = 'active' \
     and reach.via >= $3 and not exists (select 1 from verifiers as own \
     where own.account_id = $1 and own.name = $2 and own.standing = 'active') \
     order by substr(reach.via, 3, 1) desc, verifiers.id limit 3"
);
/// No more of the own ones are read than are shown; the first condition on the name lets SQLite
/// start where the page does.
pub(crate) const LIST: &str = concat!(
    "select * from (select ",
    verifier_columns!(),
    ", 'owner' as via, ",
    owner_handle!(),
    " from verifiers \
     where verifiers.account_id = $1 and verifiers.standing = 'active' and verifiers.name >= $2 \
     and (verifiers.name > $2 or verifiers.id > $3) order by verifiers.name limit $4) as own \
     union all select ",
    verifier_columns!(),
    ", reach.via, ",
    owner_handle!(),
    " from ",
    reach!(),
    " join verifiers on verifiers.account_id = reach.account_id \
     and verifiers.id = reach.verifier_id where verifiers.standing = 'active' \
     and (verifiers.name, verifiers.id) > ($2, $3) order by name, id limit $4"
);
const VERSIONS: &str = concat!(
    "select verifier_versions.verifier_id, verifier_versions.version, \
     verifier_versions.description, verifier_versions.config_hash, verifier_versions.deployed_at",
    reached!(),
    " and reach.via >= '2' \
     and verifier_versions.version < $3 order by verifier_versions.version desc limit $4"
);

async fn get(tx: &mut impl Tx, asked: &VerifierLookup) -> Result<NameMatch<ReachedVersion>> {
    let VerifierLookup { caller, which, version, needs } = asked;
    // The code of a role within `via`, in which an owner has none.
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

async fn list(tx: &mut impl Tx, query: &VerifierQuery) -> Result<Vec<ReachedVerifier>> {
    let (name, id) = query.after.as_ref().map_or(("", ""), |(name, id)| (name, id));
    tx.all(LIST, args![&query.caller, name, id, query.limit], read_reached).await
}

async fn versions(tx: &mut impl Tx, query: &VersionQuery) -> Result<Vec<VersionSummary>> {
    let before = version_below(query.before);
    let args = args![&query.caller, &query.verifier_id, before, query.limit];
    tx.all(VERSIONS, args, |cells| read_version_summary(&cells)).await
}

fn read_reached(cells: &dyn DbRow) -> Result<ReachedVerifier> {
    let verifier = read_verifier(&cells)?;
    let (role, shared) = read_via(cells, &verifier)?;
    Ok(ReachedVerifier { verifier, role, shared })
}

fn read_reached_version(cells: &dyn DbRow) -> Result<ReachedVersion> {
    let version = read_version(&cells)?;
    let (role, shared) = read_via(cells, &version.verifier)?;
    Ok(ReachedVersion { version, role, shared })
}

/// The full name of a verifier, for those who do not own it.
fn read_full_name(cells: &dyn DbRow) -> Result<String> {
    let reached = read_reached(cells)?;
    let owner = reached.shared.map_or_else(String::new, |shared| shared.by.owner);
    Ok(full_name(&owner, &reached.verifier.name))
}

fn read_via(cells: &dyn DbRow, verifier: &Verifier) -> Result<(VerifierRole, Option<ShareRoute>)> {
    let columns = RowReader::new(&cells, "verifiers", "id")?;
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
