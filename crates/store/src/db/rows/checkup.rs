//! Rows of a check-up.

use jurat_core::id::{AccountId, RoundId};

use super::{
    DbRow, RowReader,
    rounds::{read_round, read_summary},
};
use crate::{EndedRoundsQuery, Result, RoundRecord};

/// The account and id of an ended round.
pub(crate) fn read_ended(cells: &impl DbRow) -> Result<(AccountId, RoundId)> {
    let columns = RowReader::new(cells, "rounds", "id")?;
    Ok((columns.id("account_id", AccountId::parse)?, columns.id("id", RoundId::parse)?))
}

/// A record whose replicas are still to be read.
pub(crate) fn read_record(cells: &impl DbRow) -> Result<RoundRecord> {
    let of_entry = RowReader::new(cells, "entries", "id")?;
    let missing = || of_entry.bad("entry", "the round has ended, but it has no entry");
    let entry_receipt_id = of_entry.maybe_text("entry_receipt_id")?.ok_or_else(missing)?;
    let erased_at = RowReader::new(cells, "rounds", "id")?.maybe_time("erased_at")?;
    let round = read_round(cells)?;
    let listed = read_summary(cells)?.closing.ok_or_else(missing)?;
    Ok(RoundRecord { round, listed, entry_receipt_id, erased_at })
}

/// The start of a page; nothing is less than the empty text.
pub(crate) fn page_start(page: &EndedRoundsQuery) -> (&str, &str, &str) {
    let (account, id) =
        page.after.as_ref().map_or(("", ""), |(account, id)| (account.as_str(), id.as_str()));
    (account, id, page.since.as_ref().map_or("", RoundId::as_str))
}
