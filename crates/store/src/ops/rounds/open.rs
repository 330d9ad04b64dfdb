//! Opens a round, with its verifier run, its hold and its part of the daily limit.

use const_format::concatcp;
use jurat_core::account::ledger::{CreditAdmission, admit};

use super::{CLOCK, RoundOpenRefusal, RoundOpening, rows::RoundRow};
use crate::{
    Result,
    db::tx::{Tx, args},
    ops::{ledger, verifier_runs},
};

const INTO: &str = "\
    insert into rounds (account_id, id, kind, state, node_id, lease_token, opened_at, \
    lease_until, request_digest, policy_id, policy_hash, disagreement, traces, seats, deadline_at, \
    run, held_micros, is_limited, day_cap_micros, step, most_micros, verifier_id) \
    values ($1, $2, $3, 'open', $4, $5, $6, ";
const VALUES: &str = " + $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";
const OPEN_SQLITE: &str = concatcp!(INTO, "$6", VALUES);
/// One statement and one message, even with the request.
const OPEN_POSTGRES: &str = concatcp!(
    "with opened as (",
    INTO,
    CLOCK,
    VALUES,
    ") insert into round_payloads (account_id, round_id, asked, request, created_at) \
     select $1, $2, $22::text, $23::text, $6 where $22::text is not null"
);
const PAYLOAD: &str = "\
    insert into round_payloads (account_id, round_id, asked, request, created_at) \
    values ($1, $2, $3, $4, $5)";
const HOLD_LESS: &str = "update rounds set held_micros = $1 where account_id = $2 and id = $3";

/// The order of the locks is the same everywhere: the verifier, the day, the balance.
pub(super) async fn open(
    tx: &mut Tx<'_>,
    mut row: RoundRow,
) -> Result<Result<RoundOpening, RoundOpenRefusal>> {
    insert(tx, &row).await?;
    if let Some(run) = &row.run_row
        && !verifier_runs::add(tx, run).await?
    {
        return Ok(Err(RoundOpenRefusal::VerifierGone));
    }
    if let Some(part) = row.reserved()
        && !ledger::reserve(tx, &part).await?
    {
        return Ok(Err(RoundOpenRefusal::DaySpent));
    }
    if let Some(refused) = hold(tx, &mut row).await? {
        return Ok(Err(refused));
    }
    if let Some(posting) = &row.posting {
        ledger::post(tx, posting).await?;
    }
    Ok(Ok(row.opened()))
}

/// Decides how much a limited account holds, or returns the reason to refuse the round.
async fn hold(tx: &mut Tx<'_>, row: &mut RoundRow) -> Result<Option<RoundOpenRefusal>> {
    let Some(hold) = row.limited() else { return Ok(None) };
    let available_micros = ledger::locked_balance(tx, &row.account_id).await?.available;
    let at_risk = ledger::at_risk(tx, &row.account_id, &row.id).await?;
    match admit(available_micros, at_risk, &hold) {
        CreditAdmission::Begin { held_micros, may_owe_micros } => {
            row.hold_only(held_micros, may_owe_micros);
        }
        CreditAdmission::Wait => return Ok(Some(RoundOpenRefusal::InTurn)),
        CreditAdmission::Short => {
            return Ok(Some(RoundOpenRefusal::Overdrawn { available_micros }));
        }
    }
    if row.held_micros != Some(hold.micros) {
        tx.run(HOLD_LESS, args![row.held_micros, &row.account_id, &row.id]).await?;
    }
    Ok(None)
}

/// Writes the round and the request.
pub(super) async fn insert(tx: &mut Tx<'_>, row: &RoundRow) -> Result<()> {
    let mut args = args![
        &row.account_id,
        &row.id,
        row.kind,
        &row.node_id,
        row.lease_token,
        row.opened_at,
        row.lease_until.saturating_sub(row.opened_at),
        &row.request_digest,
        &row.policy_id,
        &row.policy_hash,
        row.disagreement,
        row.traces,
        &row.seats,
        row.deadline_at,
        row.run.as_ref(),
        row.held_micros,
        row.is_limited,
        row.day_cap_micros,
        row.step.as_ref(),
        row.most_micros,
        row.verifier_id.as_ref()
    ];
    if !tx.is_sqlite() {
        args.extend(args![row.asked.as_ref(), row.request.as_ref()]);
        return tx.run(OPEN_POSTGRES, args).await.map(drop);
    }
    tx.run(OPEN_SQLITE, args).await?;
    if let Some(asked) = &row.asked {
        let args = args![&row.account_id, &row.id, asked, row.request.as_ref(), row.opened_at];
        tx.run(PAYLOAD, args).await?;
    }
    Ok(())
}
