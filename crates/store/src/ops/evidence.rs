//! Fetched evidence, kept for a while and separately for each account.

use jurat_core::{id::AccountId, time::Timestamp};

use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, of_found, operations},
    },
};

operations! {
    /// Fetched evidence.
    pub struct EvidenceOps = store.evidence();
    reads {
        /// The evidence of the account with this digest.
        fn get(account: &AccountId, digest: &str) -> Option<EvidenceBlob> = get;
    }
    changes {
        /// Stores fetched evidence; known evidence only gets a newer time and address.
        fn put(found: &NewEvidence) -> () = put;
        /// Removes outdated evidence, and the oldest evidence of each account above its limit.
        /// Returns the number of removed rows, at most the limit for each kind.
        fn prune(pruning: &EvidencePruning) -> u64 = prune;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceBlob {
    pub digest: String,
    /// The address from which it was fetched.
    pub uri: String,
    pub mime: String,
    pub bytes: Vec<u8>,
    pub fetched_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvidence {
    pub account: AccountId,
    pub blob: EvidenceBlob,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidencePruning {
    /// Evidence that was fetched before this time is removed.
    pub before: Timestamp,
    /// The bytes that each account may keep.
    pub most_bytes: u64,
    pub limit: u32,
}

const GET: &str = "\
    select digest, uri, mime, bytes, fetched_at from evidence_blobs \
    where account_id = $1 and digest = $2";
const PUT: &str = "\
    insert into evidence_blobs (account_id, digest, uri, size, mime, bytes, fetched_at) \
    values ($1, $2, $3, $4, $5, $6, $7) on conflict (account_id, digest) do update \
    set fetched_at = excluded.fetched_at, uri = excluded.uri \
    where evidence_blobs.fetched_at < excluded.fetched_at";

const PRUNE_OLD: (&str, &str) = of_found!(
    "delete from evidence_blobs",
    "evidence_blobs where fetched_at < $1 order by fetched_at limit $2",
    ""
);
/// Reads only the index, and none of the contents.
const PRUNE_MANY: &str = "\
    delete from evidence_blobs where (account_id, digest) in (\
        select account_id, digest from (\
            select account_id, digest, sum(size) over (\
                partition by account_id order by fetched_at desc, digest desc) as so_far \
            from evidence_blobs) as sized \
        where so_far > $1 limit $2)";

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[(GET, GET), (PUT, PUT), PRUNE_OLD];

async fn get(tx: &mut Tx<'_>, account: &AccountId, digest: &str) -> Result<Option<EvidenceBlob>> {
    tx.first(GET, args![account, digest], read).await
}

async fn put(tx: &mut Tx<'_>, found: &NewEvidence) -> Result<()> {
    let blob = &found.blob;
    let size = u64::try_from(blob.bytes.len()).unwrap_or(u64::MAX);
    let args = args![
        &found.account,
        &blob.digest,
        &blob.uri,
        size,
        &blob.mime,
        blob.bytes.clone(),
        blob.fetched_at
    ];
    tx.run(PUT, args).await?;
    Ok(())
}

async fn prune(tx: &mut Tx<'_>, pruning: &EvidencePruning) -> Result<u64> {
    // Two nodes that remove the same rows in different orders would deadlock.
    tx.lock("evidence").await?;
    let old = tx.run(tx.own(PRUNE_OLD), args![pruning.before, pruning.limit]).await?;
    let many = tx.run(PRUNE_MANY, args![pruning.most_bytes, pruning.limit]).await?;
    Ok(old.saturating_add(many))
}

fn read(cells: &dyn DbRow) -> Result<EvidenceBlob> {
    let columns = RowReader::new(cells, "evidence_blobs", "digest")?;
    Ok(EvidenceBlob {
        digest: columns.text("digest")?,
        uri: columns.text("uri")?,
        mime: columns.text("mime")?,
        bytes: columns.bytes("bytes")?,
        fetched_at: columns.time("fetched_at")?,
    })
}
