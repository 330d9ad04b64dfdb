//! The cost of judge calls: sent calls, corrections by later reports, and the usage of earlier
//! judgments.

use std::convert::Infallible;

use jurat_core::{
    account::ledger::Movement,
    id::{AccountId, RoundId},
    judge::{Tokens, UsageHistory, UsageSample},
    time::Timestamp,
};

use super::credit::post;
use crate::{
    Result, StoreError,
    db::{
        rows::{
            DbRow, RowReader,
            ledger::{Posting, read_at_risk, read_balance},
            rounds::day_of,
        },
        sql::ledger as sql,
        tx::{Tx, args, operations},
    },
};

operations! {
    /// The cost of judge calls.
    pub trait JudgeCallOps;
    reads {
        /// The cost of the sent judge calls of a round, for each seat as far as there are any.
        fn judge_calls_sent(account: &AccountId, round: &RoundId) -> Vec<u64> = sent;
        /// The usage of the latest judgments of a verifier, as one account ran it.
        fn judge_history(of: &JudgeHistoryKey) -> UsageHistory = history;
    }
    writes {
        /// Records the cost of all calls sent so far, before the next one leaves.
        fn judge_calls_note(sent: &JudgeCallCosts) -> (), or LeaseLost = note;
        /// Adds the usage of a judgment to the history.
        fn judge_history_add(used: &JudgmentSample) -> (), or Infallible = learn;
        /// Corrects the cost of an ended round, and returns the moved amount. More is taken only
        /// from credit that is available and not needed for rounds in progress, and only within the
        /// daily limit.
        fn credit_correct(correction: &CostCorrection) -> i64, or Infallible = correct;
    }
}

/// The account, the verifier and the judge of some judgments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeHistoryKey {
    pub account: AccountId,
    pub verifier_id: String,
    pub model: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgmentSample {
    pub of: JudgeHistoryKey,
    pub sample: UsageSample,
    pub at: Timestamp,
}

/// The cost of an open round's calls so far, for each seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeCallCosts {
    pub account: AccountId,
    pub round: RoundId,
    pub lease_token: u64,
    pub micros: Vec<u64>,
}

/// The round has ended, or another node has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseLost;

/// The amount to add to the cost of an ended round; a negative amount is returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostCorrection {
    pub account: AccountId,
    pub round: RoundId,
    /// The verifier run of the round.
    pub run: Option<String>,
    pub micros: i64,
    /// Whether the account pays from its credit, up to the balance.
    pub is_limited: bool,
    /// For a visitor: the daily spending limit of all visitors together.
    pub day_cap_micros: Option<i64>,
    /// When the round was opened, which determines the day.
    pub opened_at: Timestamp,
    pub at: Timestamp,
}

/// How many judgments are remembered.
const MOST_SAMPLES: usize = 100;

const SENT: &str = "select id, sent_micros from rounds where account_id = $1 and id = $2";
const NOTE: &str = "\
    update rounds set sent_micros = $1 \
    where account_id = $2 and id = $3 and state = 'open' and lease_token = $4";
const HISTORY: &str = "\
    select verifier_id, samples from judge_history \
    where account_id = $1 and verifier_id = $2 and model = $3";
const LEARN: &str = "\
    insert into judge_history (account_id, verifier_id, model, samples, updated_at) \
    values ($1, $2, $3, $4, $5) on conflict (account_id, verifier_id, model) do update \
    set samples = excluded.samples, updated_at = excluded.updated_at";
const VERIFIER_RUN_COST: &str = "\
    update verifier_runs set cost_micros = cost_micros + $1 where account_id = $2 and id = $3";

/// A stored sample: size, input tokens, output tokens, requests.
type StoredSample = (u64, u64, u64, u32);

async fn sent(tx: &mut impl Tx, account: &AccountId, round: &RoundId) -> Result<Vec<u64>> {
    let found = tx.first(SENT, args![account, round.as_str()], read_sent).await?;
    Ok(found.unwrap_or_default())
}

fn read_sent(cells: &dyn DbRow) -> Result<Vec<u64>> {
    let columns = RowReader::new(&cells, "rounds", "id")?;
    if columns.maybe_text("sent_micros")?.is_none() {
        return Ok(Vec::new());
    }
    columns.document("sent_micros")
}

async fn note(tx: &mut impl Tx, sent: &JudgeCallCosts) -> Result<Result<(), LeaseLost>> {
    let micros = document(&sent.micros)?;
    let token = sent.lease_token.cast_signed();
    let args = args![micros, &sent.account, sent.round.as_str(), token];
    Ok(if tx.run(NOTE, args).await? == 1 { Ok(()) } else { Err(LeaseLost) })
}

async fn history(tx: &mut impl Tx, of: &JudgeHistoryKey) -> Result<UsageHistory> {
    let sample = |(size, input, output, requests): StoredSample| UsageSample {
        size,
        tokens: Tokens { input, output },
        requests,
    };
    Ok(UsageHistory::new(kept(tx, of).await?.into_iter().map(sample)))
}

async fn kept(tx: &mut impl Tx, of: &JudgeHistoryKey) -> Result<Vec<StoredSample>> {
    let args = args![&of.account, &of.verifier_id, &of.model];
    Ok(tx.first(HISTORY, args, read_samples).await?.unwrap_or_default())
}

fn read_samples(cells: &dyn DbRow) -> Result<Vec<StoredSample>> {
    RowReader::new(&cells, "judge_history", "verifier_id")?.document("samples")
}

async fn learn(tx: &mut impl Tx, used: &JudgmentSample) -> Result<Result<(), Infallible>> {
    let JudgmentSample { of, sample, at } = used;
    // Two concurrent writers must not lose each other's sample.
    tx.lock(&format!("judge history {} {} {}", of.account, of.verifier_id, of.model)).await?;
    let mut samples = kept(tx, of).await?;
    samples.push((sample.size, sample.tokens.input, sample.tokens.output, sample.requests));
    let latest = &samples[samples.len().saturating_sub(MOST_SAMPLES)..];
    let args = args![&of.account, &of.verifier_id, &of.model, document(latest)?, *at];
    tx.run(LEARN, args).await?;
    Ok(Ok(()))
}

async fn correct(tx: &mut impl Tx, correction: &CostCorrection) -> Result<Result<i64, Infallible>> {
    let day = correction.day_cap_micros.map(|cap| (day_of(correction.opened_at.micros()), cap));
    let mut micros = correction.micros;
    // The day is locked before the balance, as when a round opens.
    if let Some((day, cap)) = day {
        tx.run(sql::DAY_MAKE, args![day]).await?;
        if 0 < micros && tx.run(sql::DAY_RESERVE, args![micros, day, cap]).await? == 0 {
            return Ok(Ok(0));
        }
    }
    let wanted = micros.max(0);
    let read = |cells: &dyn DbRow| read_balance(&cells);
    let lock = tx.own((sql::BALANCE_GET, sql::BALANCE_LOCK));
    let balance = tx.first(lock, args![&correction.account], read).await?;
    let available = balance.map_or(0, |(balance, _)| balance.available);
    if correction.is_limited && 0 < micros {
        let args = args![&correction.account, correction.round.as_str()];
        let read = |cells: &dyn DbRow| read_at_risk(&cells);
        let at_risk = tx.first(sql::AT_RISK, args, read).await?.unwrap_or(0);
        micros = micros.min(available.saturating_sub(at_risk)).max(0);
    }
    if let Some((day, _)) = day {
        let unused = wanted - micros;
        tx.run(sql::DAY_RETURN, args![unused, day]).await?;
    }
    if micros == 0 {
        return Ok(Ok(0));
    }
    let posting = Posting::of_round(&correction.account, &correction.round, correction.at)
        .with(Movement::Capture, micros)
        .with(Movement::Release, -micros)
        .noting("what the provider reported afterwards");
    post(tx, &posting).await?;
    if let Some(run) = &correction.run {
        tx.run(VERIFIER_RUN_COST, args![micros, &correction.account, run]).await?;
    }
    Ok(Ok(micros))
}

fn document(value: &(impl serde::Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value).map_err(StoreError::unavailable)
}
