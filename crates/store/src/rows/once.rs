//! Rows of what was done under idempotency keys.

use jurat_core::id::RoundId;

use super::{Cells, Columns};
use crate::{
    Result,
    once::{DoneBefore, Once, OnceAnswer, SavedAnswer},
};

pub(crate) struct OnceRow {
    pub(crate) account_id: String,
    pub(crate) key: String,
    pub(crate) operation: String,
    pub(crate) request_digest: String,
    pub(crate) answer: OnceAnswer,
    pub(crate) created_at: i64,
}

impl OnceRow {
    pub(crate) fn new(once: &Once) -> Self {
        Self {
            account_id: once.account.as_str().to_owned(),
            key: once.key.clone(),
            operation: once.operation.clone(),
            request_digest: once.request_digest.clone(),
            answer: once.answer.clone(),
            created_at: once.at.micros(),
        }
    }

    /// The round whose place a new one takes.
    pub(crate) fn instead_of(&self) -> Option<&str> {
        if let OnceAnswer::RoundInsteadOf(id) = &self.answer { Some(id.as_str()) } else { None }
    }

    /// The answer that is known before the write.
    pub(crate) fn known(&self) -> Option<SavedAnswer> {
        self.answer.known()
    }
}

/// HTTP statuses have three digits.
pub(crate) fn status(status: u16) -> i16 {
    i16::try_from(status).unwrap_or(i16::MAX)
}

pub(crate) fn read_done(cells: &impl Cells) -> Result<DoneBefore> {
    let columns = Columns::new(cells, "idempotency", "key")?;
    let round = match columns.maybe_text("round_id")? {
        None => None,
        Some(_) => Some(columns.id("round_id", RoundId::parse)?),
    };
    let answer = match columns.maybe_text("answer")? {
        None => None,
        Some(text) => Some(SavedAnswer { status: columns.count("status")?, text }),
    };
    Ok(DoneBefore {
        operation: columns.text("operation")?,
        request_digest: columns.text("request_digest")?,
        round,
        answer,
        at: columns.time("created_at")?,
    })
}
