//! The cost of judge calls: calls that were sent, later corrections by the provider, and the usage
//! of earlier judgments.

use std::convert::Infallible;

use jurat_core::{
    account::ledger::Movement,
    id::{AccountId, RoundId},
    judge::{Tokens, UsageHistory, UsageSample},
    time::Timestamp,
};

use super::ledger::{self, DayReservation, Posting, day_of, give_back, post};
use crate::{
    Result, StoreError,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// The cost of judge calls.
    pub struct JudgeCallOps = store.judge_calls();
    reads {
        /// The cost of the judge calls that a round sent, for each seat.
        fn sent(account: &AccountId, round: &RoundId) -> Vec<u64> = sent;
        /// The usage of the latest judgments of a verifier in one account.
        fn history(of: &JudgeHistoryKey) -> UsageHistory = history;
    }
    changes {
        /// Adds the usage of a judgment to the history.
        fn add_sample(used: &JudgmentSample) -> () = learn;
    }
    writes {
        /// Records the cost of all calls so far, before the next one is sent.
        fn note(sent: &JudgeCallCosts) -> (), or LeaseLost = note;
        /// Corrects the cost of an ended round, and returns the amount that moved. A higher cost is
        /// taken only from credit that is available and not needed for open rounds, and only from
        /// the rest of the daily limit.
        fn correct_cost(correction: &CostCorrection) -> i64, or Infallible = correct;
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

/// The cost of the calls of an open round so far, for each seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeCallCosts {
    pub account: AccountId,
    pub round: RoundId,
    pub lease_token: u64,
    pub micros: Vec<u64>,
}

/// The round has ended, or another node holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseLost;

/// The amount to add to the cost of an ended round; a negative amount is given back.
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

/// Maximum number of judgments to remember.
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

async fn sent(tx: &mut Tx<'_>, account: &AccountId, round: &RoundId) -> Result<Vec<u64>> {
    let found = tx.first(SENT, args![account, round.as_str()], read_sent).await?;
    Ok(found.unwrap_or_default())
}

fn read_sent(cells: &dyn DbRow) -> Result<Vec<u64>> {
    let columns = RowReader::new(cells, "rounds", "id")?;
    if columns.maybe_text("sent_micros")?.is_none() {
        return Ok(Vec::new());
    }
    columns.document("sent_micros")
}

async fn note(tx: &mut Tx<'_>, sent: &JudgeCallCosts) -> Result<Result<(), LeaseLost>> {
    let micros = document(&sent.micros)?;
    let token = sent.lease_token.cast_signed();
    let args = args![micros, &sent.account, sent.round.as_str(), token];
    Ok(if tx.run(NOTE, args).await? == 1 { Ok(()) } else { Err(LeaseLost) })
}

async fn history(tx: &mut Tx<'_>, of: &JudgeHistoryKey) -> Result<UsageHistory> {
    let sample = |(size, input, output, requests): StoredSample| UsageSample {
        size,
        tokens: Tokens { input, output },
        requests,
    };
    Ok(UsageHistory::new(kept(tx, of).await?.into_iter().map(sample)))
}

async fn kept(tx: &mut Tx<'_>, of: &JudgeHistoryKey) -> Result<Vec<StoredSample>> {
    let args = args![&of.account, &of.verifier_id, &of.model];
    Ok(tx.first(HISTORY, args, read_samples).await?.unwrap_or_default())
}

fn read_samples(cells: &dyn DbRow) -> Result<Vec<StoredSample>> {
    RowReader::new(cells, "judge_history", "verifier_id")?.document("samples")
}

async fn learn(tx: &mut Tx<'_>, used: &JudgmentSample) -> Result<()> {
    let JudgmentSample { of, sample, at } = used;
    // Neither of two concurrent writers may lose the sample of the other.
    tx.lock(&format!("judge history {} {} {}", of.account, of.verifier_id, of.model)).await?;
    let mut samples = kept(tx, of).await?;
    samples.push((sample.size, sample.tokens.input, sample.tokens.output, sample.requests));
    let latest = &samples[samples.len().saturating_sub(MOST_SAMPLES)..];
    let args = args![&of.account, &of.verifier_id, &of.model, document(latest)?, *at];
    tx.run(LEARN, args).await?;
    Ok(())
}

async fn correct(tx: &mut Tx<'_>, correction: &CostCorrection) -> Result<Result<i64, Infallible>> {
    let CostCorrection { account, round, micros: wanted, .. } = correction;
    let day = correction.day_cap_micros.map(|cap| (day_of(correction.opened_at.micros()), cap));
    // The day is reserved before the balance is locked, as it is when a round opens.
    if let Some((day, cap)) = day
        && 0 < *wanted
        && !ledger::reserve(tx, &DayReservation { day, micros: *wanted, cap }).await?
    {
        return Ok(Ok(0));
    }
    let mut micros = *wanted;
    let available = ledger::locked_balance(tx, account.as_str()).await?.available;
    if correction.is_limited && 0 < micros {
        let at_risk = ledger::at_risk(tx, account.as_str(), round.as_str()).await?;
        micros = micros.min(available.saturating_sub(at_risk)).max(0);
    }
    if let Some((day, cap)) = day {
        let unused = *wanted.max(&0) - micros;
        give_back(tx, &DayReservation { day, micros: unused, cap }).await?;
    }
    if micros == 0 {
        return Ok(Ok(0));
    }
    let posting = Posting::of_round(account, round, correction.at)
        .with(Movement::Capture, micros)
        .with(Movement::Release, -micros)
        .noting("what the provider reported afterwards");
    post(tx, &posting).await?;
    if let Some(run) = &correction.run {
        tx.run(VERIFIER_RUN_COST, args![micros, account, run]).await?;
    }
    Ok(Ok(micros))
}

fn document(value: &(impl serde::Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value).map_err(StoreError::unavailable)
}
