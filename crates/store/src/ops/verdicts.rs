//! Cached verdicts of judges.

use const_format::concatcp;
use jurat_core::{id::AccountId, time::Timestamp};
use serde_json::Value;

use super::verifiers::rows::{USABLE, USABLE_LOCKED, is_system};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, json},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Cached verdicts of judges.
    pub struct VerdictOps = store.verdicts();
    reads {
        /// The verdict of a judge on the same question, if it is not older than `since`.
        fn get(account: &AccountId, digest: &str, since: &Timestamp) -> Option<CachedVerdict> = get;
    }
    changes {
        /// Stores a verdict for its verifier, unless the verifier is gone.
        fn put(account: &AccountId, verifier_id: &str, verdict: &CachedVerdict) -> () = put;
        /// Removes verdicts that are too old or too many, the oldest first, and returns their
        /// number. Two nodes that prune at the same time may remove a few more.
        fn prune(pruning: &VerdictPruning) -> u64 = prune;
    }
}

/// A verdict that a judge gave earlier.
#[derive(Debug, Clone, PartialEq)]
pub struct CachedVerdict {
    /// The digest of everything that the judge was given.
    pub digest: String,
    pub document: Value,
    pub at: Timestamp,
}

/// The cached verdicts to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerdictPruning {
    /// Removes verdicts from before this time.
    pub before: Timestamp,
    /// Maximum number of verdicts to keep, the newest ones.
    pub most: u32,
    /// Maximum number to remove in one transaction, so that no other write waits long.
    pub limit: u32,
}

const GET: &str = "\
    select digest, document, created_at from known_verdicts \
    where account_id = $1 and digest = $2 and created_at >= $3";

const INTO: &str =
    "insert into known_verdicts (account_id, verifier_id, digest, document, created_at)";
const VALUES: &str = "$1, $2, $3, $4, $5";
const OR_REPLACE: &str = "\
    on conflict (account_id, digest) do update set verifier_id = excluded.verifier_id, \
    document = excluded.document, created_at = excluded.created_at";
const PUT: (&str, &str) = (
    concatcp!(INTO, " select ", VALUES, USABLE, OR_REPLACE),
    concatcp!(INTO, " select ", VALUES, USABLE_LOCKED, OR_REPLACE),
);
const PUT_OF_SYSTEM: &str = concatcp!(INTO, " values (", VALUES, ") ", OR_REPLACE);

// The verdicts are chosen once: PostgreSQL may run a plain subquery again for every row. It skips
// verdicts that another transaction has locked, because a prune must not wait for another prune.
const CHOSEN: &str = "\
    with gone as materialized (select account_id, digest from known_verdicts ";
const SKIP_LOCKED: &str = " for update skip locked";
const REMOVED: &str = ") delete from known_verdicts \
    where (account_id, digest) in (select account_id, digest from gone)";
const OLD: &str = "where created_at < $1 order by created_at limit $2";
/// A negative limit would mean no limit in SQLite, and an error in PostgreSQL.
const MANY: &str = "\
    order by created_at limit ( \
    select case when count(*) <= $1 then 0 when count(*) - $1 < $2 then count(*) - $1 \
    else $2 end from known_verdicts)";
const PRUNE_OLD: (&str, &str) =
    (concatcp!(CHOSEN, OLD, REMOVED), concatcp!(CHOSEN, OLD, SKIP_LOCKED, REMOVED));
const PRUNE_MANY: (&str, &str) =
    (concatcp!(CHOSEN, MANY, REMOVED), concatcp!(CHOSEN, MANY, SKIP_LOCKED, REMOVED));

async fn get(
    tx: &mut Tx<'_>,
    account: &AccountId,
    digest: &str,
    since: &Timestamp,
) -> Result<Option<CachedVerdict>> {
    tx.first(GET, args![account, digest, *since], read).await
}

async fn put(
    tx: &mut Tx<'_>,
    account: &AccountId,
    verifier_id: &str,
    verdict: &CachedVerdict,
) -> Result<()> {
    let text = if is_system(verifier_id) { PUT_OF_SYSTEM } else { tx.own(PUT) };
    let document = json(&verdict.document)?;
    tx.run(text, args![account, verifier_id, &verdict.digest, document, verdict.at]).await.map(drop)
}

async fn prune(tx: &mut Tx<'_>, pruning: &VerdictPruning) -> Result<u64> {
    let VerdictPruning { before, most, limit } = *pruning;
    let old = tx.run(tx.own(PRUNE_OLD), args![before, limit]).await?;
    let left = u64::from(limit).saturating_sub(old);
    let many = tx.run(tx.own(PRUNE_MANY), args![most, left]).await?;
    Ok(old.saturating_add(many))
}

fn read(cells: &dyn DbRow) -> Result<CachedVerdict> {
    let columns = RowReader::new(cells, "known_verdicts", "digest")?;
    Ok(CachedVerdict {
        digest: columns.text("digest")?,
        document: columns.document("document")?,
        at: columns.time("created_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::sqlite::setup::plan;

    #[test]
    fn old_verdicts_are_found_along_an_index() {
        let found = plan(PRUNE_OLD.0);
        let old = "SEARCH known_verdicts USING INDEX known_verdicts_by_age (created_at<?)";
        assert!(found.contains(&old.to_owned()), "{found:?}");
        assert!(!found.iter().any(|line| line.contains("SCAN known_verdicts")), "{found:?}");
        let found = plan(PRUNE_MANY.0);
        let by_age = "USING INDEX known_verdicts_by_age";
        assert!(found.iter().any(|line| line.contains(by_age)), "{found:?}");
    }
}
