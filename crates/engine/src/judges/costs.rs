//! What the judge calls of a round cost: charged when a request leaves, corrected when it is known.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use jurat_core::{
    account::ledger::{CreditHold, settle},
    id::RoundId,
    judge::{Price, Tokens, UsageSample},
    round::{OpenRound, replica::JudgeUsage},
};
use jurat_store::{
    Behalf, CostCorrection, IdempotencyAnswer, IdempotencyRecord, JudgeCallCosts, JudgeHistoryKey,
    JudgmentSample, SavedAnswer, StoreError, WriteOutcome,
};

use super::verdict_cache::CACHE_WRITE_TIMEOUT;
use crate::{Engine, rounds::close::until_it_is_there};

/// The calls of one judgment, each with what it cost or is taken to have cost.
#[derive(Debug)]
pub(crate) struct JudgmentMeter {
    price: Price,
    margin_percent: u32,
    /// Whose history learns from it.
    of: JudgeHistoryKey,
    calls: Mutex<Vec<MeteredCall>>,
    /// What the replica was charged for it.
    charged_micros: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct MeteredCall {
    tokens: Tokens,
    /// The size of its prompt: the most tokens that it could have.
    size: u64,
    state: MeteredCallState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MeteredCallState {
    /// No reply has come, so that its tokens are an estimate.
    Sent,
    /// A reply without a count came, so that its tokens are an estimate for good.
    Estimated,
    /// The provider counted them.
    Counted,
    /// Nothing was used: it never left, or it was refused.
    Nothing,
}

impl JudgmentMeter {
    /// A meter that is on the bill, where there is one.
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

    /// A request leaves. Until a reply comes it costs what is expected of it.
    pub(super) fn begin_call(&self, expected: Tokens, size: u64) -> usize {
        let mut calls = self.calls();
        calls.push(MeteredCall { tokens: expected, size, state: MeteredCallState::Sent });
        calls.len() - 1
    }

    /// The provider counted what the call used.
    pub(super) fn counted(&self, call: usize, tokens: Tokens) {
        self.set(call, tokens, MeteredCallState::Counted);
    }

    /// A reply came that does not say what it used.
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

    /// What all calls cost, with one more that is about to leave.
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

    /// What the judgment used, if its provider counted all of it.
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
        // Nothing that is done under the lock leaves it half done.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Notes are written one after the other, so that an older one never replaces a newer one.
    charge_writes: tokio::sync::Mutex<()>,
    settled: tokio::sync::Mutex<Option<SettledCost>>,
}

/// What a round that is on record cost.
#[derive(Debug, Clone, Copy)]
struct SettledCost {
    /// What it cost beside the judge calls.
    besides_micros: i64,
    /// What was taken for all of it.
    captured_micros: i64,
    /// How often that was corrected.
    corrections: u32,
}

/// Where a judgment is charged.
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

    /// What the judge calls of a seat cost so far, whatever became of whoever made them.
    pub(crate) fn charge(&self, seat: usize) -> u64 {
        let meters = self.meters();
        let of_seat = meters.iter().filter(|(at, _)| *at == seat);
        of_seat.map(|(_, meter)| meter.charge()).fold(0, u64::saturating_add)
    }

    /// The sum of something over all calls.
    fn sum(&self, micros: impl Fn(&JudgmentMeter) -> u64) -> i64 {
        let meters = self.meters();
        as_signed(meters.iter().map(|(_, meter)| micros(meter)).fold(0, u64::saturating_add))
    }

    /// What all seats cost when one more call leaves.
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
        self.meters.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Notes a call before it leaves, so that it is charged even if this node stops.
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
        let noted = self.inner.store.sharing().judge_calls_note(&tab.behalf(), &sent, None).await;
        match noted.map_err(ChargeError::Store)? {
            WriteOutcome::Done(()) | WriteOutcome::Repeated => Ok(()),
            WriteOutcome::Refused(jurat_store::LeaseLost) => Err(ChargeError::Lost),
        }
    }

    /// The round is on record with this cost: what is reported from now on corrects it.
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

    /// A reply came for which nobody waits any more.
    pub(super) async fn correct_late_report(
        &self,
        bill: Option<&SeatBill>,
        meter: &Arc<JudgmentMeter>,
    ) {
        self.record_sample(meter).await;
        let Some(SeatBill { costs: tab, .. }) = bill else { return };
        let mut settled = tab.settled.lock().await;
        // A round that is not on record yet looks for differences when it is.
        if let Some(settled) = settled.as_mut() {
            self.correct_settled(tab, settled).await;
        }
    }

    /// Takes what the calls cost by what is known now. Until that is on record it is owed, and tried
    /// again with what is reported next.
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
            // An earlier try that was thought to have failed may have moved another amount.
            if !is_repeated {
                return;
            }
        }
    }

    /// Writes a correction once, however often its answer gets lost. Returns what it moved, and
    /// whether that was before.
    async fn write_correction(
        &self,
        tab: &JudgeCosts,
        hold: &CreditHold,
        micros: i64,
        once: &IdempotencyRecord,
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
        let write = || store.sharing().credit_correct(&behalf, &correction, Some(once));
        match until_it_is_there(write).await? {
            WriteOutcome::Done(moved) => Ok((moved, false)),
            WriteOutcome::Repeated => {
                let before = || store.idempotency_get(&once.account, &once.key);
                let answer = until_it_is_there(before).await?.and_then(|before| before.answer);
                // What was noted without its amount was all of it.
                Ok((answer.and_then(|it| it.text.parse().ok()).unwrap_or(micros), true))
            }
        }
    }

    fn correction_note(&self, tab: &JudgeCosts, number: u32) -> IdempotencyRecord {
        let saved = |moved: &i64| SavedAnswer { status: 200, text: moved.to_string() };
        let key = correction_key(&tab.open.id, number);
        IdempotencyRecord {
            account: tab.open.account.clone(),
            operation: "correction".to_owned(),
            request_digest: key.clone(),
            key,
            answer: IdempotencyAnswer::OfResult(Arc::new(move |moved| {
                moved.downcast_ref().map(saved)
            })),
            at: self.inner.clock.now(),
        }
    }

    /// Lets the history of the verifier know what a judgment used.
    pub(super) async fn record_sample(&self, meter: &JudgmentMeter) {
        // What costs nothing is never set aside.
        let Some(sample) = meter.sample().filter(|_| meter.price != Price::default()) else {
            return;
        };
        let of = meter.of.clone();
        let behalf = Behalf::Account(of.account.clone());
        let used = JudgmentSample { of, sample, at: self.inner.clock.now() };
        let learned = self.inner.store.sharing().judge_history_add(&behalf, &used, None);
        match tokio::time::timeout(CACHE_WRITE_TIMEOUT, learned).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "could not store the usage of a judgment");
            }
            Err(_) => tracing::warn!("could not store the usage of a judgment in time"),
        }
    }
}

/// The key under which a correction is noted. Those of callers are printable ASCII, so that none of
/// them is such a key.
fn correction_key(round: &RoundId, number: u32) -> String {
    format!("\u{b7}correction\u{b7}{round}\u{b7}{number}")
}

fn as_signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}
