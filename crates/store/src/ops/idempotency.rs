//! The notes of writes under idempotency keys. Each write adds its own; see `db/idempotency.rs`.

use jurat_core::{
    id::{AccountId, RoundId},
    idempotency::SavedAnswer,
};

use crate::{
    PriorWrite, Result,
    db::{
        idempotency::set_answer,
        row::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Writes that were done under idempotency keys.
    pub struct IdempotencyOps = store.idempotency();
    reads {
        /// The write that was done under a key.
        fn get(account: &AccountId, key: &str) -> Option<PriorWrite> = get;
        /// The newest rounds that were begun under keys of a range.
        fn rounds(account: &AccountId, keys: &KeyRange) -> Vec<RoundId> = rounds;
    }
    changes {
        /// Replaces the answer that is kept under a key.
        fn set_answer(account: &AccountId, key: &str, answer: &SavedAnswer) -> () = set_answer;
    }
}

const GET: &str = "\
    select key, operation, request_digest, round_id, status, answer, created_at \
    from idempotency where account_id = $1 and key = $2";

/// A range of keys: the first one, and the first one beyond it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub from: String,
    pub until: String,
    pub limit: u32,
}

const ROUNDS: &str = "\
    select round_id as id from idempotency \
    where account_id = $1 and key >= $2 and key < $3 and round_id is not null \
    order by round_id desc limit $4";

/// The statements, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[(GET, GET), (ROUNDS, ROUNDS)];

async fn rounds(tx: &mut Tx<'_>, account: &AccountId, keys: &KeyRange) -> Result<Vec<RoundId>> {
    tx.all(ROUNDS, args![account, &keys.from, &keys.until, keys.limit], read_id).await
}

async fn get(tx: &mut Tx<'_>, account: &AccountId, key: &str) -> Result<Option<PriorWrite>> {
    tx.first(GET, args![account, key], read).await
}

fn read(cells: &dyn DbRow) -> Result<PriorWrite> {
    let columns = RowReader::new(cells, "idempotency", "key")?;
    let answer = match columns.maybe_text("answer")? {
        None => None,
        Some(text) => Some(SavedAnswer { tag: columns.count("status")?, text }),
    };
    Ok(PriorWrite {
        operation: columns.text("operation")?,
        request_digest: columns.text("request_digest")?,
        round: columns.maybe_id("round_id", RoundId::parse)?,
        answer,
        at: columns.time("created_at")?,
    })
}

fn read_id(cells: &dyn DbRow) -> Result<RoundId> {
    RowReader::new(cells, "idempotency", "id")?.id("id", RoundId::parse)
}
