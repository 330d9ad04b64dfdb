//! What the judge calls of a round cost: charged when a request leaves, corrected when it is known.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use jurat_core::{
    judge::{Price, Sample, Tokens},
    ledger::{Hold, settle},
    replica::Usage,
    round::OpenRound,
};
use jurat_store::{Behalf, Correction, HistoryOf, JudgeCallsSent, JudgmentUsed, Written};

use super::known::KEEP_WITHIN;
use crate::Engine;

/// The calls of one judgment, each with what it cost or is taken to have cost.
#[derive(Debug)]
pub(crate) struct Meter {
    price: Price,
    margin_percent: u32,
    /// Whose history learns from it.
    of: HistoryOf,
    calls: Mutex<Vec<Call>>,
    /// What the replica was charged for it.
    charged_micros: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct Call {
    tokens: Tokens,
    /// The size of its prompt: the most tokens that it could have.
    size: u64,
    state: CallState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    /// No reply has come, so that its tokens are an estimate.
    Sent,
    /// A reply without a count came, so that its tokens are an estimate for good.
    Estimated,
    /// The provider counted them.
    Counted,
    /// Nothing was used: it never left, or it was refused.
    Nothing,
}

impl Meter {
    /// A meter that is on the bill, where there is one.
    pub(super) fn new(
        price: Price,
        margin_percent: u32,
        of: HistoryOf,
        bill: Option<&Bill>,
    ) -> Arc<Self> {
        let (calls, charged_micros) = (Mutex::default(), AtomicU64::new(0));
        let meter = Arc::new(Self { price, margin_percent, of, calls, charged_micros });
        if let Some(Bill { tab, seat }) = bill {
            tab.meters().push((*seat, Arc::clone(&meter)));
        }
        meter
    }

    /// A request leaves. Until a reply comes it costs what is expected of it.
    pub(super) fn leaves(&self, expected: Tokens, size: u64) -> usize {
        let mut calls = self.calls();
        calls.push(Call { tokens: expected, size, state: CallState::Sent });
        calls.len() - 1
    }

    /// The provider counted what the call used.
    pub(super) fn counted(&self, call: usize, tokens: Tokens) {
        self.set(call, tokens, CallState::Counted);
    }

    /// A reply came that does not say what it used.
    pub(super) fn estimated(&self, call: usize, tokens: Tokens) {
        self.set(call, tokens, CallState::Estimated);
    }

    /// The call used nothing.
    pub(super) fn nothing(&self, call: usize) {
        self.set(call, Tokens::default(), CallState::Nothing);
    }

    pub(super) fn usage(&self) -> Usage {
        let calls = self.calls();
        let tokens = sum(&calls);
        Usage {
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

    /// What became known since the replica was charged, as a difference.
    fn difference(&self) -> i64 {
        let cost = self.cost();
        let charged = self.charged_micros.swap(cost, Ordering::Relaxed);
        signed(cost).saturating_sub(signed(charged))
    }

    /// What the judgment used, if its provider counted all of it.
    fn sample(&self) -> Option<Sample> {
        let calls = self.calls();
        let counted = calls.iter().filter(|call| call.state == CallState::Counted).count();
        let is_open = |call: &Call| matches!(call.state, CallState::Sent | CallState::Estimated);
        let requests = u32::try_from(counted).ok().filter(|count| 0 < *count)?;
        if calls.iter().any(is_open) {
            return None;
        }
        let size = calls.iter().map(|call| call.size).max()?;
        Some(Sample { size, tokens: sum(&calls), requests })
    }

    fn set(&self, call: usize, tokens: Tokens, state: CallState) {
        if let Some(call) = self.calls().get_mut(call) {
            (call.tokens, call.state) = (tokens, state);
        }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Call>> {
        // Nothing that is done under the lock leaves it half done.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sum(calls: &[Call]) -> Tokens {
    calls.iter().fold(Tokens::default(), |sum, call| sum.plus(call.tokens))
}

/// All judge calls of a round, by seat.
#[derive(Debug)]
pub(crate) struct Tab {
    open: OpenRound,
    meters: Mutex<Vec<(usize, Arc<Meter>)>>,
    /// Notes are written one after the other, so that an older one never replaces a newer one.
    noting: tokio::sync::Mutex<()>,
    settled: tokio::sync::Mutex<Option<Settled>>,
}

/// What a round that is on record cost.
#[derive(Debug, Clone, Copy)]
struct Settled {
    cost_micros: i64,
    /// What was taken of that.
    captured_micros: i64,
}

/// Where a judgment is charged.
#[derive(Debug, Clone)]
pub(crate) struct Bill {
    pub(crate) tab: Arc<Tab>,
    pub(crate) seat: usize,
}

impl Tab {
    pub(crate) fn new(open: &OpenRound) -> Arc<Self> {
        Arc::new(Self {
            open: open.clone(),
            meters: Mutex::default(),
            noting: tokio::sync::Mutex::default(),
            settled: tokio::sync::Mutex::default(),
        })
    }

    /// What the judge calls of a seat cost so far, whatever became of whoever made them.
    pub(crate) fn charge(&self, seat: usize) -> u64 {
        let meters = self.meters();
        let of_seat = meters.iter().filter(|(at, _)| *at == seat);
        of_seat.map(|(_, meter)| meter.charge()).fold(0, u64::saturating_add)
    }

    /// What all seats cost when one more call leaves.
    fn costs_with(&self, next: &Arc<Meter>, expected: Tokens) -> Vec<u64> {
        let mut costs: BTreeMap<usize, u64> = BTreeMap::new();
        for (seat, meter) in self.meters().iter() {
            let more = if Arc::ptr_eq(meter, next) { expected } else { Tokens::default() };
            let cost = costs.entry(*seat).or_default();
            *cost = cost.saturating_add(meter.cost_with(more));
        }
        let seats = costs.keys().next_back().map_or(0, |last| last + 1);
        (0..seats).map(|seat| costs.get(&seat).copied().unwrap_or_default()).collect()
    }

    fn meters(&self) -> MutexGuard<'_, Vec<(usize, Arc<Meter>)>> {
        self.meters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn behalf(&self) -> Behalf {
        Behalf::Account(self.open.account.clone())
    }
}

/// Why a call may not leave.
#[derive(Debug)]
pub(super) enum NotNoted {
    /// The round has ended, or another node has it.
    Lost,
    Store(jurat_store::StoreError),
}

impl Engine {
    /// Notes a call before it leaves, so that it is charged even if this node stops.
    pub(super) async fn note_call_sent(
        &self,
        bill: Option<&Bill>,
        meter: &Arc<Meter>,
        expected: Tokens,
    ) -> Result<(), NotNoted> {
        let Some(Bill { tab, .. }) = bill else { return Ok(()) };
        if meter.price == Price::default() {
            return Ok(());
        }
        let _turn = tab.noting.lock().await;
        let sent = JudgeCallsSent {
            account: tab.open.account.clone(),
            round: tab.open.id.clone(),
            lease_token: tab.open.lease_token,
            micros: tab.costs_with(meter, expected),
        };
        let noted = self.inner.store.sharing().judge_calls_note(&tab.behalf(), &sent, None).await;
        match noted.map_err(NotNoted::Store)? {
            Written::Done(()) | Written::Repeated => Ok(()),
            Written::Refused(jurat_store::LeaseLost) => Err(NotNoted::Lost),
        }
    }

    /// The round is on record with this cost: what is reported from now on corrects it.
    pub(crate) async fn settle_tab(&self, tab: &Tab, hold: Option<Hold>, cost_micros: i64) {
        let Some(hold) = hold else { return };
        let (captured_micros, _) = settle(&hold, cost_micros);
        let mut settled = tab.settled.lock().await;
        *settled = Some(Settled { cost_micros, captured_micros });
        self.correct(tab, &mut settled).await;
    }

    /// A reply came for which nobody waits any more.
    pub(super) async fn reported_late(&self, bill: Option<&Bill>, meter: &Arc<Meter>) {
        self.learn(meter).await;
        let Some(Bill { tab, .. }) = bill else { return };
        let mut settled = tab.settled.lock().await;
        // A round that is not on record yet looks for differences when it is.
        if settled.is_some() {
            self.correct(tab, &mut settled).await;
        }
    }

    async fn correct(&self, tab: &Tab, settled: &mut Option<Settled>) {
        let (Some(settled), Some(hold)) = (settled, tab.open.hold) else { return };
        let difference: i64 = tab.meters().iter().map(|(_, meter)| meter.difference()).sum();
        settled.cost_micros = settled.cost_micros.saturating_add(difference);
        let (target_micros, _) = settle(&hold, settled.cost_micros);
        let micros = target_micros - settled.captured_micros;
        if difference == 0 || micros == 0 {
            return;
        }
        let correction = Correction {
            account: tab.open.account.clone(),
            round: tab.open.id.clone(),
            run: tab.open.run.as_ref().map(|run| run.id.clone()),
            micros,
            is_limited: hold.is_limited,
            day_cap_micros: hold.day_cap_micros,
            opened_at: tab.open.opened_at,
            at: self.inner.clock.now(),
        };
        let store = self.inner.store.sharing();
        match store.credit_correct(&tab.behalf(), &correction, None).await {
            Ok(Written::Done(moved)) => {
                settled.captured_micros += moved;
                tracing::info!(round.id = %tab.open.id, micros = moved, "provider reported the usage of a judge call later");
            }
            Ok(Written::Repeated) => {}
            Err(error) => {
                tracing::warn!(round.id = %tab.open.id, error = %error, "could not correct the cost of a judge call");
            }
        }
    }

    /// Lets the history of the verifier know what a judgment used.
    pub(super) async fn learn(&self, meter: &Meter) {
        // What costs nothing is never set aside.
        let Some(sample) = meter.sample().filter(|_| meter.price != Price::default()) else {
            return;
        };
        let of = meter.of.clone();
        let behalf = Behalf::Account(of.account.clone());
        let used = JudgmentUsed { of, sample, at: self.inner.clock.now() };
        let learned = self.inner.store.sharing().judge_history_add(&behalf, &used, None);
        match tokio::time::timeout(KEEP_WITHIN, learned).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "could not store the usage of a judgment");
            }
            Err(_) => tracing::warn!("could not store the usage of a judgment in time"),
        }
    }
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}
