//! Writes that happen once: each leaves a note under the caller's idempotency key.

use std::{any::Any, fmt, sync::Arc};

use jurat_core::{
    id::{AccountId, RoundId},
    idempotency::SavedAnswer,
    time::Timestamp,
};

use super::tx::{SqlArg, Tx, TxFuture, args};
use crate::{Result, WriteOutcome};

/// The note that a write leaves behind, in the same transaction.
#[derive(Debug, Clone)]
pub struct IdempotencyRecord {
    pub account: AccountId,
    pub key: String,
    pub operation: String,
    /// Identifies the request, to recognize a repetition.
    pub request_digest: String,
    pub answer: IdempotencyAnswer,
    pub at: Timestamp,
}

/// Encodes the answer from a result of any type; `None` for an unexpected type.
type AnyAnswerFn = Arc<dyn Fn(&dyn Any) -> Option<SavedAnswer> + Send + Sync>;

/// The answer to a repeated request.
#[derive(Clone)]
pub enum IdempotencyAnswer {
    /// The round itself is the answer.
    Round,
    /// A round that replaces the noted one, which was lost because its node stopped. The write
    /// counts as repeated if another round has already replaced the noted one.
    RoundInsteadOf(RoundId),
    Known(SavedAnswer),
    /// Encoded from the result of the write; absent if the result has an unexpected type.
    OfResult(AnyAnswerFn),
}

impl IdempotencyAnswer {
    /// An answer that is encoded from the result of the write.
    pub fn of<T: 'static>(encode: impl Fn(&T) -> SavedAnswer + Send + Sync + 'static) -> Self {
        Self::OfResult(Arc::new(move |result| result.downcast_ref().map(&encode)))
    }

    /// The answer that is known before the write.
    fn known(&self) -> Option<SavedAnswer> {
        if let Self::Known(answer) = self { Some(answer.clone()) } else { None }
    }

    /// The answer that is known only after the write.
    fn of_result(&self, result: &dyn Any) -> Option<SavedAnswer> {
        if let Self::OfResult(answer) = self { answer(result) } else { None }
    }
}

impl fmt::Debug for IdempotencyAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Round => "Round",
            Self::RoundInsteadOf(_) => "RoundInsteadOf",
            Self::Known(_) => "Known",
            Self::OfResult(_) => "OfResult",
        })
    }
}

/// The earlier write under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorWrite {
    pub operation: String,
    pub request_digest: String,
    pub round: Option<RoundId>,
    pub answer: Option<SavedAnswer>,
    pub at: Timestamp,
}

const ADD: &str = "\
    insert into idempotency (\
        account_id, key, operation, request_digest, round_id, status, answer, created_at) \
    values ($1, $2, $3, $4, $5, cast($6 as smallint), $7, $8) on conflict do nothing";
/// Replaces a round that its node abandoned.
const REPLACE: &str = "\
    update idempotency set round_id = $1 where account_id = $2 and key = $3 and round_id = $4";
const ANSWER: &str = "\
    update idempotency set status = cast($1 as smallint), answer = $2 \
    where account_id = $3 and key = $4";

/// A note that is about to be stored.
pub(crate) struct Note {
    record: IdempotencyRecord,
    /// The round that the write opens.
    round: Option<RoundId>,
}

impl Note {
    pub(crate) fn of_write(record: &IdempotencyRecord) -> Self {
        Self { record: record.clone(), round: None }
    }

    pub(crate) fn of_round(record: &IdempotencyRecord, round: &RoundId) -> Self {
        Self { record: record.clone(), round: Some(round.clone()) }
    }

    /// Adds the note before the write, and returns `false` if the write was done before. If another
    /// transaction is adding the same note, this waits for it. A rollback removes the note.
    async fn reserve(&self, tx: &mut Tx<'_>) -> Result<bool> {
        let IdempotencyRecord { account, key, operation, request_digest, answer, at } =
            &self.record;
        let round = self.round.as_ref().map(RoundId::as_str);
        if let IdempotencyAnswer::RoundInsteadOf(before) = answer {
            let args = args![round, account, key, before.as_str()];
            return Ok(tx.run(REPLACE, args).await? == 1);
        }
        let known = answer.known();
        let (status, text) = known.map(|it| (status(it.status), it.text)).unzip();
        let args = args![account, key, operation, request_digest, round, status, text, *at];
        Ok(tx.run(ADD, args).await? == 1)
    }
}

/// Does a write once: stores its note with it, and skips the write if the note already exists.
pub(crate) fn write_once<'t, 'c, T, R, W>(
    tx: &'t mut Tx<'c>,
    note: Option<Note>,
    work: W,
) -> TxFuture<'t, WriteOutcome<T, R>>
where
    T: Send + 'static,
    R: Send + 'static,
    W: for<'u> FnOnce(&'u mut Tx<'c>) -> TxFuture<'u, Result<T, R>> + Send + 'static,
{
    Box::pin(async move {
        if let Some(note) = &note
            && !note.reserve(tx).await?
        {
            return Ok(WriteOutcome::Repeated);
        }
        let result = match work(tx).await? {
            Ok(result) => result,
            Err(refused) => return Ok(WriteOutcome::Refused(refused)),
        };
        if let Some(Note { record, .. }) = &note
            && let Some(answer) = record.answer.of_result(&result)
        {
            set_answer(tx, &record.account, &record.key, &answer).await?;
        }
        Ok(WriteOutcome::Done(result))
    })
}

/// Replaces the answer that is kept under a key.
pub(crate) async fn set_answer(
    tx: &mut Tx<'_>,
    account: &AccountId,
    key: &str,
    answer: &SavedAnswer,
) -> Result<()> {
    let args: Vec<SqlArg> = args![status(answer.status), &answer.text, account, key];
    tx.run(ANSWER, args).await.map(drop)
}

/// HTTP statuses have three digits.
fn status(status: u16) -> i64 {
    i64::from(status)
}
