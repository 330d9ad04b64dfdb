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
    }
    changes {
        /// Replaces the answer that is kept under a key.
        fn set_answer(account: &AccountId, key: &str, answer: &SavedAnswer) -> () = set_answer;
    }
}

const GET: &str = "\
    select key, operation, request_digest, round_id, status, answer, created_at \
    from idempotency where account_id = $1 and key = $2";

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
