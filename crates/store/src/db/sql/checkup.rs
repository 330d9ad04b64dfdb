//! What a check-up reads.

use super::open_columns;

pub(crate) const ENDED_COUNT: &str = "select count(*) from rounds where state <> 'open'";

pub(crate) const NEWEST: &str = "select opened_at from rounds order by id desc limit 1";

/// The oldest of the newest so many.
pub(crate) const ENDED_SINCE: &str =
    "select id from rounds where state <> 'open' order by id desc limit 1 offset $1";

pub(crate) const ENDED_PAGE: &str = "\
    select account_id, id from rounds where (account_id, id) > ($1, $2) and id >= $3 \
    and state <> 'open' order by account_id, id limit $4";

pub(crate) const STRAYS: &str = "\
    select entries.round_id from entries where not exists ( \
    select 1 from rounds where rounds.account_id = entries.account_id \
    and rounds.id = entries.round_id and rounds.state <> 'open') limit $1";

pub(crate) const RECORD: &str = concat!(
    "select ",
    open_columns!(),
    ", rounds.state, rounds.closed_at, rounds.outcome, rounds.verdict, rounds.agreement_bp, \
     rounds.confidence_bp, rounds.consensus, rounds.receipt_id, rounds.erased_at, entries.entry, \
     entries.receipt_id as entry_receipt_id from rounds left join entries \
     on entries.account_id = rounds.account_id and entries.round_id = rounds.id \
     where rounds.account_id = $1 and rounds.id = $2 and rounds.state <> 'open'"
);
