//! Rows of idempotency keys.

use jurat_core::{id::RoundId, idempotency::SavedAnswer};

use super::{DbRow, RowReader};
use crate::{
    Result,
    db::idempotency::{IdempotencyAnswer, IdempotencyRecord, PriorWrite},
};

pub(crate) struct IdempotencyRow {
    pub(crate) account_id: String,
    pub(crate) key: String,
    pub(crate) operation: String,
    pub(crate) request_digest: String,
    pub(crate) answer: IdempotencyAnswer,
    pub(crate) created_at: i64,
}

impl IdempotencyRow {
    pub(crate) fn new(idempotency: &IdempotencyRecord) -> Self {
        Self {
            account_id: idempotency.account.as_str().to_owned(),
            key: idempotency.key.clone(),
            operation: idempotency.operation.clone(),
            request_digest: idempotency.request_digest.clone(),
            answer: idempotency.answer.clone(),
            created_at: idempotency.at.micros(),
        }
    }

    /// The round that a new one replaces.
    pub(crate) fn instead_of(&self) -> Option<&str> {
        if let IdempotencyAnswer::RoundInsteadOf(id) = &self.answer {
            Some(id.as_str())
        } else {
            None
        }
    }

    /// The reply that is known before the write.
    pub(crate) fn known(&self) -> Option<SavedAnswer> {
        self.answer.known()
    }
}

/// HTTP statuses have three digits.
pub(crate) fn status(status: u16) -> i16 {
    i16::try_from(status).unwrap_or(i16::MAX)
}

pub(crate) fn read_prior_write(cells: &impl DbRow) -> Result<PriorWrite> {
    let columns = RowReader::new(cells, "idempotency", "key")?;
    let round = match columns.maybe_text("round_id")? {
        None => None,
        Some(_) => Some(columns.id("round_id", RoundId::parse)?),
    };
    let answer = match columns.maybe_text("answer")? {
        None => None,
        Some(text) => Some(SavedAnswer { status: columns.count("status")?, text }),
    };
    Ok(PriorWrite {
        operation: columns.text("operation")?,
        request_digest: columns.text("request_digest")?,
        round,
        answer,
        at: columns.time("created_at")?,
    })
}
