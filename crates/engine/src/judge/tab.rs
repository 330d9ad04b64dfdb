//! What the judge calls of a round cost: charged when a request leaves, corrected when it is known.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use jurat_core::{
    id::RoundId,
    judge::{Price, Sample, Tokens},
    ledger::{Hold, settle},
    replica::Usage,
    round::OpenRound,
};
use jurat_store::{
    Behalf, Correction, HistoryOf, JudgeCallsSent, JudgmentUsed, Once, OnceAnswer, SavedAnswer,
    StoreError, Written,
};

use super::known::KEEP_WITHIN;
use crate::{Engine, close::until_it_is_there};

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

    /// What the replica was charged for it.
    fn charged(&self) -> u64 {
        self.charged_micros.load(Ordering::Relaxed)
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
    /// What it cost beside the judge calls.
    besides_micros: i64,
    /// What was taken for all of it.
    captured_micros: i64,
    /// How often that was corrected.
    corrections: u32,
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

    /// The sum of something over all calls.
    fn sum(&self, micros: impl Fn(&Meter) -> u64) -> i64 {
        let meters = self.meters();
        signed(meters.iter().map(|(_, meter)| micros(meter)).fold(0, u64::saturating_add))
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
    Store(StoreError),
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
        let besides_micros = cost_micros.saturating_sub(tab.sum(Meter::charged));
        let mut settled = tab.settled.lock().await;
        let now = settled.insert(Settled { besides_micros, captured_micros, corrections: 0 });
        self.correct(tab, now).await;
    }

    /// A reply came for which nobody waits any more.
    pub(super) async fn reported_late(&self, bill: Option<&Bill>, meter: &Arc<Meter>) {
        self.learn(meter).await;
        let Some(Bill { tab, .. }) = bill else { return };
        let mut settled = tab.settled.lock().await;
        // A round that is not on record yet looks for differences when it is.
        if let Some(settled) = settled.as_mut() {
            self.correct(tab, settled).await;
        }
    }

    /// Takes what the calls cost by what is known now. Until that is on record it is owed, and tried
    /// again with what is reported next.
    async fn correct(&self, tab: &Tab, settled: &mut Settled) {
        let Some(hold) = tab.open.hold else { return };
        loop {
            let cost_micros = settled.besides_micros.saturating_add(tab.sum(Meter::cost));
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
        tab: &Tab,
        hold: &Hold,
        micros: i64,
        once: &Once,
    ) -> Result<(i64, bool), StoreError> {
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
        let (store, behalf) = (&self.inner.store, tab.behalf());
        let write = || store.sharing().credit_correct(&behalf, &correction, Some(once));
        match until_it_is_there(write).await? {
            Written::Done(moved) => Ok((moved, false)),
            Written::Repeated => {
                let before = || store.once_get(&once.account, &once.key);
                let answer = until_it_is_there(before).await?.and_then(|before| before.answer);
                // What was noted without its amount was all of it.
                Ok((answer.and_then(|it| it.text.parse().ok()).unwrap_or(micros), true))
            }
        }
    }

    fn correction_note(&self, tab: &Tab, number: u32) -> Once {
        let saved = |moved: &i64| SavedAnswer { status: 200, text: moved.to_string() };
        let key = correction_key(&tab.open.id, number);
        Once {
            account: tab.open.account.clone(),
            operation: "correction".to_owned(),
            request_digest: key.clone(),
            key,
            answer: OnceAnswer::OfResult(Arc::new(move |moved| moved.downcast_ref().map(saved))),
            at: self.inner.clock.now(),
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

/// The key under which a correction is noted. Those of callers are printable ASCII, so that none of
/// them is such a key.
fn correction_key(round: &RoundId, number: u32) -> String {
    format!("\u{b7}correction\u{b7}{round}\u{b7}{number}")
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}
