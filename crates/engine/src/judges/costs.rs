//! The cost of the judge calls of a round: charged when a request leaves, corrected when the usage
//! is known.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use jurat_core::{
    account::ledger::{CreditHold, settle},
    id::RoundId,
    idempotency::SavedAnswer,
    judge::{Price, Tokens, UsageSample},
    round::{OpenRound, replica::JudgeUsage},
};
use jurat_store::{
    Behalf, CostCorrection, IdempotencyAnswer, IdempotencyRecord, JudgeCallCosts, JudgeHistoryKey,
    JudgmentSample, StoreError, WriteOutcome,
};
use parking_lot::{Mutex, MutexGuard};

use super::verdict_cache::CACHE_WRITE_TIMEOUT;
use crate::{Engine, rounds::close::until_it_is_there};

/// The calls of one judgment, each with its known or estimated cost.
#[derive(Debug)]
pub(crate) struct JudgmentMeter {
    price: Price,
    margin_percent: u32,
    /// The history that records its usage.
    of: JudgeHistoryKey,
    calls: Mutex<Vec<MeteredCall>>,
    /// What the replica was charged for it.
    charged_micros: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct MeteredCall {
    tokens: Tokens,
    /// The size of its prompt: an upper limit of its tokens.
    size: u64,
    state: MeteredCallState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MeteredCallState {
    /// No reply has come, so the tokens are an estimate.
    Sent,
    /// A reply without a count came, so the tokens remain an estimate.
    Estimated,
    /// The provider counted them.
    Counted,
    /// Nothing was used: the request never left, or was refused.
    Nothing,
}

impl JudgmentMeter {
    /// A meter, added to the bill if there is one.
    pub(super) fn new(
        price: Price,
        margin_percent: u32,
        of: JudgeHistoryKey,
        bill: Option<&SeatBill>,
    ) -> Arc<Self> {
        let (calls, charged_micros) = (Mutex::default(), AtomicU64::new(0));
        let meter = Arc::new(Self { price, margin_percent, of, calls, charged_micros });
        if let Some(SeatBill { costs: tab, seat }) = bill {
            tab.meters().push((*seat, Arc::clone(&meter)));
        }
        meter
    }

    /// Records a request that leaves. Until a reply comes, it costs its estimate.
    pub(super) fn begin_call(&self, expected: Tokens, size: u64) -> usize {
        let mut calls = self.calls();
        calls.push(MeteredCall { tokens: expected, size, state: MeteredCallState::Sent });
        calls.len() - 1
    }

    /// The provider counted the usage of the call.
    pub(super) fn counted(&self, call: usize, tokens: Tokens) {
        self.set(call, tokens, MeteredCallState::Counted);
    }

    /// A reply came without a count.
    pub(super) fn estimated(&self, call: usize, tokens: Tokens) {
        self.set(call, tokens, MeteredCallState::Estimated);
    }

    /// The call used nothing.
    pub(super) fn nothing(&self, call: usize) {
        self.set(call, Tokens::default(), MeteredCallState::Nothing);
    }

    pub(super) fn usage(&self) -> JudgeUsage {
        let calls = self.calls();
        let tokens = sum(&calls);
        JudgeUsage {
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            calls: u32::try_from(calls.len()).unwrap_or(u32::MAX),
            is_cached: false,
        }
    }

    /// The cost of all calls, with one more that is about to leave.
    fn cost_with(&self, more: Tokens) -> u64 {
        self.price.cost_micros(sum(&self.calls()).plus(more), self.margin_percent)
    }

    fn cost(&self) -> u64 {
        self.cost_with(Tokens::default())
    }

    /// What the replica is charged for all calls so far.
    pub(super) fn charge(&self) -> u64 {
        let cost = self.cost();
        self.charged_micros.store(cost, Ordering::Relaxed);
        cost
    }

    /// What the replica was charged for it.
    fn charged(&self) -> u64 {
        self.charged_micros.load(Ordering::Relaxed)
    }

    /// The usage of the judgment, if its provider counted all of it.
    fn sample(&self) -> Option<UsageSample> {
        let calls = self.calls();
        let counted = calls.iter().filter(|call| call.state == MeteredCallState::Counted).count();
        let is_open = |call: &MeteredCall| {
            matches!(call.state, MeteredCallState::Sent | MeteredCallState::Estimated)
        };
        let requests = u32::try_from(counted).ok().filter(|count| 0 < *count)?;
        if calls.iter().any(is_open) {
            return None;
        }
        let size = calls.iter().map(|call| call.size).max()?;
        Some(UsageSample { size, tokens: sum(&calls), requests })
    }

    fn set(&self, call: usize, tokens: Tokens, state: MeteredCallState) {
        if let Some(call) = self.calls().get_mut(call) {
            (call.tokens, call.state) = (tokens, state);
        }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<MeteredCall>> {
        // No operation under the lock can leave it half done.
        self.calls.lock()
    }
}

fn sum(calls: &[MeteredCall]) -> Tokens {
    calls.iter().fold(Tokens::default(), |sum, call| sum.plus(call.tokens))
}

/// All judge calls of a round, by seat.
#[derive(Debug)]
pub(crate) struct JudgeCosts {
    open: OpenRound,
    meters: Mutex<Vec<(usize, Arc<JudgmentMeter>)>>,
    /// Charges are written one after the other, so that an older one never replaces a newer one.
    charge_writes: tokio::sync::Mutex<()>,
    settled: tokio::sync::Mutex<Option<SettledCost>>,
}

/// The recorded cost of a round.
#[derive(Debug, Clone, Copy)]
struct SettledCost {
    /// The cost besides the judge calls.
    besides_micros: i64,
    /// The captured credit for all of it.
    captured_micros: i64,
    /// How many times it was corrected.
    corrections: u32,
}

/// The bill of one seat.
#[derive(Debug, Clone)]
pub(crate) struct SeatBill {
    pub(crate) costs: Arc<JudgeCosts>,
    pub(crate) seat: usize,
}

impl JudgeCosts {
    pub(crate) fn new(open: &OpenRound) -> Arc<Self> {
        Arc::new(Self {
            open: open.clone(),
            meters: Mutex::default(),
            charge_writes: tokio::sync::Mutex::default(),
            settled: tokio::sync::Mutex::default(),
        })
    }

    /// The cost of a seat's judge calls so far, even of abandoned ones.
    pub(crate) fn charge(&self, seat: usize) -> u64 {
        let meters = self.meters();
        let of_seat = meters.iter().filter(|(at, _)| *at == seat);
        of_seat.map(|(_, meter)| meter.charge()).fold(0, u64::saturating_add)
    }

    /// Sums a value over all calls.
    fn sum(&self, micros: impl Fn(&JudgmentMeter) -> u64) -> i64 {
        let meters = self.meters();
        as_signed(meters.iter().map(|(_, meter)| micros(meter)).fold(0, u64::saturating_add))
    }

    /// The cost of all seats if one more call leaves.
    fn costs_with_next(&self, next: &Arc<JudgmentMeter>, expected: Tokens) -> Vec<u64> {
        let mut costs: BTreeMap<usize, u64> = BTreeMap::new();
        for (seat, meter) in self.meters().iter() {
            let more = if Arc::ptr_eq(meter, next) { expected } else { Tokens::default() };
            let cost = costs.entry(*seat).or_default();
            *cost = cost.saturating_add(meter.cost_with(more));
        }
        let seats = costs.keys().next_back().map_or(0, |last| last + 1);
        (0..seats).map(|seat| costs.get(&seat).copied().unwrap_or_default()).collect()
    }

    fn meters(&self) -> MutexGuard<'_, Vec<(usize, Arc<JudgmentMeter>)>> {
        self.meters.lock()
    }

    fn behalf(&self) -> Behalf {
        Behalf::Account(self.open.account.clone())
    }
}

/// Why a call may not leave.
#[derive(Debug)]
pub(super) enum ChargeError {
    /// The round has ended, or another node has it.
    Lost,
    Store(StoreError),
}

impl Engine {
    /// Records a call before it leaves, so that it is charged even if this node stops.
    pub(super) async fn charge_call(
        &self,
        bill: Option<&SeatBill>,
        meter: &Arc<JudgmentMeter>,
        expected: Tokens,
    ) -> Result<(), ChargeError> {
        let Some(SeatBill { costs: tab, .. }) = bill else { return Ok(()) };
        if meter.price == Price::default() {
            return Ok(());
        }
        let _turn = tab.charge_writes.lock().await;
        let sent = JudgeCallCosts {
            account: tab.open.account.clone(),
            round: tab.open.id.clone(),
            lease_token: tab.open.lease_token,
            micros: tab.costs_with_next(meter, expected),
        };
        let noted = self.inner.store.judge_calls().note(&tab.behalf(), &sent, None).await;
        match noted.map_err(ChargeError::Store)? {
            WriteOutcome::Done(()) | WriteOutcome::Repeated => Ok(()),
            WriteOutcome::Refused(jurat_store::LeaseLost) => Err(ChargeError::Lost),
        }
    }

    /// The round is recorded with this cost: later reports correct it.
    pub(crate) async fn settle_judge_costs(
        &self,
        tab: &JudgeCosts,
        hold: Option<CreditHold>,
        cost_micros: i64,
    ) {
        let Some(hold) = hold else { return };
        let (captured_micros, _) = settle(&hold, cost_micros);
        let besides_micros = cost_micros.saturating_sub(tab.sum(JudgmentMeter::charged));
        let mut settled = tab.settled.lock().await;
        let now = settled.insert(SettledCost { besides_micros, captured_micros, corrections: 0 });
        self.correct_settled(tab, now).await;
    }

    /// Corrects the cost after a reply that nobody waited for.
    pub(super) async fn correct_late_report(
        &self,
        bill: Option<&SeatBill>,
        meter: &Arc<JudgmentMeter>,
    ) {
        self.record_sample(meter).await;
        let Some(SeatBill { costs: tab, .. }) = bill else { return };
        let mut settled = tab.settled.lock().await;
        // A round that is not recorded yet is corrected when it is.
        if let Some(settled) = settled.as_mut() {
            self.correct_settled(tab, settled).await;
        }
    }

    /// Captures the difference to the cost as it is known now. Until that is recorded it is owed,
    /// and the next report tries again.
    async fn correct_settled(&self, tab: &JudgeCosts, settled: &mut SettledCost) {
        let Some(hold) = tab.open.hold else { return };
        loop {
            let cost_micros = settled.besides_micros.saturating_add(tab.sum(JudgmentMeter::cost));
            let micros = settle(&hold, cost_micros).0 - settled.captured_micros;
            if micros == 0 {
                return;
            }
            let once = self.correction_note(tab, settled.corrections);
            let (moved, is_repeated) = match self.write_correction(tab, &hold, micros, &once).await
            {
                Ok(written) => written,
                Err(error) => {
                    tracing::error!(round.id = %tab.open.id, micros, error = %error, "could not correct the cost of a judge call");
                    return;
                }
            };
            settled.captured_micros = settled.captured_micros.saturating_add(moved);
            settled.corrections += 1;
            tracing::info!(round.id = %tab.open.id, micros = moved, "provider reported the usage of a judge call later");
            // An earlier try that seemed to fail may have moved another amount.
            if !is_repeated {
                return;
            }
        }
    }

    /// Writes a correction once, even if its reply gets lost. Returns the moved amount, and whether
    /// it was moved before.
    async fn write_correction(
        &self,
        tab: &JudgeCosts,
        hold: &CreditHold,
        micros: i64,
        once: &IdempotencyRecord<i64>,
    ) -> Result<(i64, bool), StoreError> {
        let correction = CostCorrection {
            account: tab.open.account.clone(),
            round: tab.open.id.clone(),
            run: tab.open.run.as_ref().map(|run| run.id.clone()),
            micros,
            is_limited: hold.is_limited,
            day_cap_micros: hold.day_cap_micros,
            opened_at: tab.open.opened_at,
            at: self.inner.clock.now(),
        };
        let (store, behalf) = (&self.inner.store, tab.behalf());
        let write = || store.judge_calls().correct_cost(&behalf, &correction, Some(once));
        match until_it_is_there(write).await? {
            WriteOutcome::Done(moved) => Ok((moved, false)),
            WriteOutcome::Repeated => {
                let before = || store.idempotency().get(&behalf, &once.account, &once.key);
                let answer = until_it_is_there(before).await?.and_then(|before| before.answer);
                // A record without an amount covered all of it.
                Ok((answer.and_then(|it| it.text.parse().ok()).unwrap_or(micros), true))
            }
        }
    }

    fn correction_note(&self, tab: &JudgeCosts, number: u32) -> IdempotencyRecord<i64> {
        let saved = |moved: &i64| SavedAnswer { tag: 0, text: moved.to_string() };
        let key = correction_key(&tab.open.id, number);
        IdempotencyRecord {
            account: tab.open.account.clone(),
            operation: "correction".to_owned(),
            request_digest: key.clone(),
            key,
            answer: IdempotencyAnswer::of(saved),
            at: self.inner.clock.now(),
        }
    }

    /// Adds the usage of a judgment to the history of the verifier.
    pub(super) async fn record_sample(&self, meter: &JudgmentMeter) {
        // Free judgments need no history, because no credit is held for them.
        let Some(sample) = meter.sample().filter(|_| meter.price != Price::default()) else {
            return;
        };
        let of = meter.of.clone();
        let behalf = Behalf::Account(of.account.clone());
        let used = JudgmentSample { of, sample, at: self.inner.clock.now() };
        let learned = self.inner.store.judge_calls().add_sample(&behalf, &used);
        match tokio::time::timeout(CACHE_WRITE_TIMEOUT, learned).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "could not store the usage of a judgment");
            }
            Err(_) => tracing::warn!("could not store the usage of a judgment in time"),
        }
    }
}

/// The key under which a correction is recorded. Keys of callers are printable ASCII, so none of
/// them can be equal to it.
fn correction_key(round: &RoundId, number: u32) -> String {
    format!("\u{b7}correction\u{b7}{round}\u{b7}{number}")
}

fn as_signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}
