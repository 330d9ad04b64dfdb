//! Rounds and decision entries in SQLite.

use jurat_core::{
    account::ledger::{CreditAdmission, admit},
    id::{AccountId, NodeId, RoundId},
    round::{OpenRound, Round, RoundSummary},
    time::Timestamp,
};
use rusqlite::{Connection, ToSql, params};

use super::{all, execute, first, idempotency, ledger, verifier_runs};
use crate::{
    Result, RoundCloseOutcome, RoundFilter, RoundOpenOutcome, RoundTakeover, TakeoverScope,
    db::{
        rows::{
            idempotency::IdempotencyRow,
            rounds::{
                AFTER_ALL, BEFORE_ALL, CaptureRow, ClosingRow, RoundRow, TAKEOVER_TRIES,
                read_cancelled, read_id, read_replica, read_round, read_summary, read_taken_over,
            },
        },
        sql::{self, open_columns, replica_columns},
    },
};

const OPEN: &str = "\
    insert into rounds (account_id, id, kind, state, node_id, lease_token, lease_until, \
    request_digest, policy_id, policy_hash, disagreement, traces, seats, opened_at, deadline_at, \
    run, held_micros, is_limited, day_cap_micros, step, most_micros, verifier_id) \
    values (?1, ?2, ?3, 'open', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
    ?18, ?19, ?20, ?21)";
const PAYLOAD: &str = "\
    insert into round_payloads (account_id, round_id, asked, request, created_at) \
    values (?1, ?2, ?3, ?4, ?5)";
/// Whether what is said in an open round is to be erased.
const ERASED: &str = "\
    select erased_at from rounds \
    where account_id = ?1 and id = ?2 and state = 'open' and lease_token = ?3";

// PostgreSQL closes a round in one statement; here three cost less than one that does it all.
const END: &str = "\
    update rounds set state = ?4, closed_at = ?5, outcome = ?6, verdict = ?7, \
    agreement_bp = ?8, confidence_bp = ?9, consensus = ?10, receipt_id = ?11 \
    where account_id = ?1 and id = ?2 and state = 'open' and lease_token = ?3";
const REPLICA: &str = concat!(
    "insert into replicas (account_id, ",
    replica_columns!(),
    ") values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
);
const ENTRY: &str = "\
    insert into entries (account_id, round_id, receipt_id, entry, recorded_at) \
    values (?1, ?2, ?3, ?4, ?5)";

/// The first answer of a step's execution.
const OF_TASK_CALL: &str = "\
    select id from rounds where account_id = ?1 and step is not null \
    and json_extract(step, '$.execution_id') = ?2 and state = 'closed' and outcome <> 'failed' \
    order by closed_at, id limit 1";

// One process has the file, so its own clock measures the leases.
const TAKE_OVER_LAPSED: &str = concat!(
    "update rounds set node_id = ?1, lease_token = ?2, lease_until = ?3 where rowid in ( \
     select rowid from rounds where state = 'open' and lease_until <= ?5 \
     order by lease_until limit ?4) returning ",
    open_columns!()
);
const TAKE_OVER_ALL: &str = concat!(
    "update rounds set node_id = ?1, lease_token = ?2, lease_until = ?3 where rowid in ( \
     select rowid from rounds where state = 'open' and node_id <> ?1 \
     order by lease_until limit ?4) returning ",
    open_columns!()
);

pub(super) fn open(
    tx: &Connection,
    mut row: RoundRow,
    idempotency: Option<&IdempotencyRow>,
) -> Result<RoundOpenOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(RoundOpenOutcome::Repeated);
    }
    // What can be refused comes before what is written, so that nothing has to be undone.
    if let Some(hold) = row.limited() {
        let available_micros = ledger::balance(tx, &row.account_id)?.available;
        let at_risk = ledger::at_risk(tx, &row.account_id, &row.id)?;
        match admit(available_micros, at_risk, &hold) {
            CreditAdmission::Begin { held_micros, may_owe_micros } => {
                row.hold_only(held_micros, may_owe_micros);
            }
            CreditAdmission::Wait => return Ok(RoundOpenOutcome::InTurn),
            CreditAdmission::Short => return Ok(RoundOpenOutcome::Overdrawn { available_micros }),
        }
    }
    let reserved = row.reserved();
    if let Some(part) = &reserved
        && !ledger::has_left(tx, part)?
    {
        return Ok(RoundOpenOutcome::DaySpent);
    }
    if let Some(run) = &row.run_row
        && !verifier_runs::add(tx, run)?
    {
        return Ok(RoundOpenOutcome::VerifierGone);
    }
    if let Some(part) = &reserved {
        ledger::reserve(tx, part)?;
    }
    if let Some(posting) = &row.posting {
        ledger::post(tx, posting)?;
    }
    insert(tx, &row)?;
    idempotency::record_write(tx, idempotency, Some(&row.id))?;
    Ok(row.opened())
}

fn insert(tx: &Connection, row: &RoundRow) -> Result<()> {
    execute(
        tx,
        OPEN,
        params![
            row.account_id,
            row.id,
            row.kind,
            row.node_id,
            row.lease_token,
            row.lease_until,
            row.request_digest,
            row.policy_id,
            row.policy_hash,
            row.disagreement,
            row.traces,
            row.seats,
            row.opened_at,
            row.deadline_at,
            row.run,
            row.held_micros,
            row.is_limited,
            row.day_cap_micros,
            row.step,
            row.most_micros,
            row.verifier_id
        ],
    )?;
    if let Some(asked) = &row.asked {
        let params = params![row.account_id, row.id, asked, row.request, row.opened_at];
        execute(tx, PAYLOAD, params)?;
    }
    Ok(())
}

pub(super) fn close(tx: &Connection, mut row: ClosingRow) -> Result<RoundCloseOutcome> {
    let (mut closed, mut captured) = (RoundCloseOutcome::Closed, None);
    if let Some(CaptureRow { execution_id, unpaid }) = row.capture.take() {
        if is_captured(tx, &row.account_id, &execution_id)? {
            (row, closed) = (*unpaid, RoundCloseOutcome::PaidBefore);
        } else {
            captured = Some(execution_id);
        }
    }
    if let Some(words) = row.words
        && is_erased(tx, &row)?
    {
        row.erase(words)?;
    }
    if !end(tx, &row)? {
        return Ok(RoundCloseOutcome::Lost);
    }
    if let Some(execution_id) = captured {
        let params = params![row.account_id, execution_id, row.id, row.closed_at];
        execute(tx, sql::CAPTURE_ADD, params)?;
    }
    if let Some(end) = &row.run_end {
        verifier_runs::end(tx, &row.account_id, end)?;
    }
    if let Some(part) = &row.returned {
        ledger::give_back(tx, part)?;
    }
    if let Some(posting) = &row.posting {
        ledger::post(tx, posting)?;
    }
    Ok(closed)
}

/// Whether what an execution costs was captured. Only one thread writes, so what is asked first
/// stays true.
fn is_captured(tx: &Connection, account_id: &str, execution_id: &str) -> Result<bool> {
    let params = params![account_id, execution_id];
    Ok(first(tx, sql::CAPTURE_GET, params, |_| Ok(()))?.is_some())
}

fn is_erased(tx: &Connection, row: &ClosingRow) -> Result<bool> {
    let params = params![row.account_id, row.id, row.lease_token];
    let erased_at = first(tx, ERASED, params, |row| Ok(row.get::<_, Option<i64>>(0)?))?;
    Ok(erased_at.flatten().is_some())
}

/// Writes what ends a round; `false` when it has ended already or is another node's.
fn end(tx: &Connection, row: &ClosingRow) -> Result<bool> {
    let ended = execute(
        tx,
        END,
        params![
            row.account_id,
            row.id,
            row.lease_token,
            row.state,
            row.closed_at,
            row.outcome,
            row.verdict,
            row.agreement_bp,
            row.confidence_bp,
            row.consensus,
            row.receipt_id
        ],
    )?;
    if ended == 0 {
        return Ok(false);
    }
    for replica in &row.replicas {
        execute(
            tx,
            REPLICA,
            params![
                row.account_id,
                row.id,
                replica.position,
                replica.session_id,
                replica.executor,
                replica.label.as_str(),
                replica.failure,
                replica.latency_ms,
                replica.cost_micros,
                replica.document
            ],
        )?;
    }
    execute(tx, ENTRY, params![row.account_id, row.id, row.receipt_id, row.entry, row.closed_at])?;
    Ok(true)
}

pub(super) fn get(tx: &Connection, account: &AccountId, id: &RoundId) -> Result<Option<Round>> {
    let params = params![account.as_str(), id.as_str()];
    let round = first(tx, sql::ROUND_GET, params, |row| read_round(row))?;
    round.map(|round| with_replicas(tx, round)).transpose()
}

pub(super) fn of_task_call(
    tx: &Connection,
    account: &AccountId,
    execution_id: &str,
) -> Result<Option<Round>> {
    let id = first(tx, OF_TASK_CALL, params![account.as_str(), execution_id], |row| read_id(row))?;
    id.map_or(Ok(None), |id| get(tx, account, &id))
}

pub(super) fn list(
    tx: &Connection,
    account: &AccountId,
    filter: &RoundFilter,
) -> Result<Vec<RoundSummary>> {
    let before = filter.before.as_ref().map_or(AFTER_ALL, RoundId::as_str);
    let after = filter.after.as_ref().map_or(BEFORE_ALL, RoundId::as_str);
    let (text, words) = sql::list::round_list(filter);
    let account = account.as_str();
    let mut params: Vec<&dyn ToSql> = vec![&account, &before, &after];
    params.extend(words.iter().map(|word| word as &dyn ToSql));
    params.push(&filter.limit);
    all(tx, text, params.as_slice(), |row| read_summary(row))
}

pub(super) fn take_over(tx: &Connection, claim: &RoundTakeover) -> Result<Vec<OpenRound>> {
    for _ in 0..TAKEOVER_TRIES {
        let found = take_over_batch(tx, claim)?;
        let is_last = found.is_empty();
        let readable: Vec<OpenRound> = found.into_iter().flatten().collect();
        if is_last || !readable.is_empty() {
            return Ok(readable);
        }
    }
    Ok(Vec::new())
}

fn take_over_batch(tx: &Connection, claim: &RoundTakeover) -> Result<Vec<Option<OpenRound>>> {
    let node = claim.node.as_str();
    let token = claim.lease_token.cast_signed();
    let until = claim.lease_until.micros();
    match claim.orphans {
        TakeoverScope::LeaseOver => {
            let params = params![node, token, until, claim.limit, claim.now.micros()];
            all(tx, TAKE_OVER_LAPSED, params, |row| read_taken_over(row))
        }
        TakeoverScope::All => {
            all(tx, TAKE_OVER_ALL, params![node, token, until, claim.limit], |row| {
                read_taken_over(row)
            })
        }
    }
}

pub(super) fn cancel(
    tx: &Connection,
    account: &AccountId,
    id: &RoundId,
    at: Timestamp,
) -> Result<bool> {
    let params = params![at.micros(), account.as_str(), id.as_str()];
    Ok(execute(tx, sql::ROUND_CANCEL, params)? == 1)
}

pub(super) fn cancelled(tx: &Connection, node: &NodeId) -> Result<Vec<(AccountId, RoundId)>> {
    all(tx, sql::ROUNDS_CANCELLED, params![node.as_str()], |row| read_cancelled(row))
}

pub(super) fn entry(
    tx: &Connection,
    account: &AccountId,
    receipt_id: &str,
) -> Result<Option<String>> {
    first(tx, sql::ENTRY_GET, params![account.as_str(), receipt_id], |row| Ok(row.get(0)?))
}

pub(super) fn with_replicas(tx: &Connection, mut round: Round) -> Result<Round> {
    if let Some(closing) = &mut round.closing {
        let params = params![round.open.account.as_str(), round.open.id.as_str()];
        closing.replicas = all(tx, sql::ROUND_REPLICAS, params, |row| read_replica(row))?;
    }
    Ok(round)
}

#[cfg(test)]
mod tests {
    use jurat_core::round::{RoundStatus, consensus::Outcome, job::JobKind};

    use super::*;
    use crate::db::sqlite::setup;

    const ANY: RoundFilter = RoundFilter {
        kind: None,
        outcome: None,
        state: None,
        limit: 10,
        before: None,
        after: None,
    };

    /// How SQLite finds the rows of a list: one line for each place that it reads.
    fn plan(filter: &RoundFilter) -> Vec<String> {
        let connection = setup::open_memory().unwrap();
        let (text, _) = sql::list::round_list(filter);
        let mut statement = connection.prepare(&format!("explain query plan {text}")).unwrap();
        let lines = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
        let lines: Vec<String> = lines.map(Result::unwrap).collect();
        lines.into_iter().filter(|line| line.contains(" rounds ")).collect()
    }

    #[test]
    fn no_list_reads_all_rounds_of_an_account_to_find_none() {
        const ANSWERED: &str = "SEARCH rounds USING INDEX rounds_by_answer \
            (account_id=? AND kind=? AND outcome=? AND id>? AND id<?)";
        const UNDER_WAY: &str = "SCAN rounds USING INDEX rounds_open";
        let (kind, outcome) = (Some(JobKind::Validate), Some(Outcome::Split));
        assert_eq!(plan(&RoundFilter { kind, outcome, ..ANY }), [ANSWERED]);
        assert_eq!(plan(&RoundFilter { outcome, ..ANY }), [ANSWERED; 3]);
        let of_kind = plan(&RoundFilter { kind, ..ANY });
        assert_eq!(of_kind, [ANSWERED, ANSWERED, ANSWERED, ANSWERED, UNDER_WAY]);
        assert_eq!(plan(&RoundFilter { state: Some(RoundStatus::Open), ..ANY }), [UNDER_WAY]);
        let otherwise = "SEARCH rounds USING INDEX rounds_not_closed \
            (account_id=? AND state=? AND id>? AND id<?)";
        assert_eq!(plan(&RoundFilter { state: Some(RoundStatus::Cancelled), ..ANY }), [otherwise]);
    }
}
