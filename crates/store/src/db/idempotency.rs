//! Writes that happen once: each leaves a note under the caller's idempotency key.

use std::{fmt, sync::Arc};

use jurat_core::{
    id::{AccountId, RoundId},
    idempotency::SavedAnswer,
    time::Timestamp,
};

use super::tx::{SqlArg, Tx, TxFuture, args};
use crate::{Result, WriteOutcome};

/// The note that a write with the result `T` leaves behind, in the same transaction.
#[derive(Debug)]
pub struct IdempotencyRecord<T> {
    pub account: AccountId,
    pub key: String,
    pub operation: String,
    /// Identifies the request, to recognize a repetition.
    pub request_digest: String,
    pub answer: IdempotencyAnswer<T>,
    pub at: Timestamp,
}

impl<T> Clone for IdempotencyRecord<T> {
    fn clone(&self) -> Self {
        Self {
            account: self.account.clone(),
            key: self.key.clone(),
            operation: self.operation.clone(),
            request_digest: self.request_digest.clone(),
            answer: self.answer.clone(),
            at: self.at,
        }
    }
}

/// The answer to a repeated request for a write with the result `T`.
pub enum IdempotencyAnswer<T> {
    /// The round itself is the answer.
    Round,
    /// A round that replaces the noted one, which was lost because its node stopped. The write
    /// counts as repeated if another round has already replaced the noted one.
    RoundInsteadOf(RoundId),
    Known(SavedAnswer),
    /// Encoded from the result of the write.
    OfResult(Arc<dyn Fn(&T) -> SavedAnswer + Send + Sync>),
}

impl<T> Clone for IdempotencyAnswer<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Round => Self::Round,
            Self::RoundInsteadOf(round) => Self::RoundInsteadOf(round.clone()),
            Self::Known(answer) => Self::Known(answer.clone()),
            Self::OfResult(encode) => Self::OfResult(Arc::clone(encode)),
        }
    }
}

impl<T> IdempotencyAnswer<T> {
    /// An answer that is encoded from the result of the write.
    pub fn of(encode: impl Fn(&T) -> SavedAnswer + Send + Sync + 'static) -> Self {
        Self::OfResult(Arc::new(encode))
    }

    /// The answer that is known before the write.
    fn known(&self) -> Option<SavedAnswer> {
        if let Self::Known(answer) = self { Some(answer.clone()) } else { None }
    }

    /// The answer that is known only after the write.
    fn of_result(&self, result: &T) -> Option<SavedAnswer> {
        if let Self::OfResult(encode) = self { Some(encode(result)) } else { None }
    }
}

impl<T> fmt::Debug for IdempotencyAnswer<T> {
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

// The column of the tag is called `status`, because the tag of HTTP is the status of the reply.
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
pub(crate) struct Note<T> {
    record: IdempotencyRecord<T>,
    /// The round that the write opens.
    round: Option<RoundId>,
}

impl<T> Note<T> {
    pub(crate) fn of_write(record: &IdempotencyRecord<T>) -> Self {
        Self { record: record.clone(), round: None }
    }

    pub(crate) fn of_round(record: &IdempotencyRecord<T>, round: &RoundId) -> Self {
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
        let (tag, text) = known.map(|it| (i64::from(it.tag), it.text)).unzip();
        let args = args![account, key, operation, request_digest, round, tag, text, *at];
        Ok(tx.run(ADD, args).await? == 1)
    }
}

/// Does a write once: stores its note with it, and skips the write if the note already exists.
pub(crate) fn write_once<'t, 'c, T, R, W>(
    tx: &'t mut Tx<'c>,
    note: Option<Note<T>>,
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
    let args: Vec<SqlArg> = args![i64::from(answer.tag), &answer.text, account, key];
    tx.run(ANSWER, args).await.map(drop)
}
