//! Checks whether tasks, runs, agent events and webhooks progress, or wait in vain.

use jurat_core::{checkup::CheckupFinding, task::TaskRecord, time::Timestamp, webhook::Webhook};
use jurat_store::{Behalf, OpenWorkCounts};

use crate::{Engine, EngineError};

/// How long something may wait before it is reported.
const OVERDUE_AFTER_MS: u64 = 60_000;
/// An executor that is away may return within this time.
const EVENTS_OVERDUE_MS: u64 = 300_000;
/// Older undelivered events are not reported.
const RECENT_MS: i64 = 24 * 3_600_000;
/// How many are named, and how far they are counted.
const NAMED: usize = 3;
const MOST_TASKS: u32 = 100;
const MOST_EVENTS: u32 = 10_000;
const MOST_WEBHOOKS: u32 = 100;

impl Engine {
    pub(super) async fn work_findings(&self) -> Result<Vec<CheckupFinding>, EngineError> {
        let now = self.inner.clock.now();
        let open_work = self.inner.store.open_work();
        let counts = open_work.counts(&Behalf::Platform).await?;
        let before = Timestamp::from_millis(now.millis() - OVERDUE_AFTER_MS.cast_signed());
        let late = open_work.overdue(&Behalf::Platform, &before, &MOST_TASKS).await?;
        let mut findings = task_findings(&counts, &late, now);
        findings.extend(run_findings(&counts, now));
        findings.extend(event_findings(&counts, self.recently_given_up(now).await?, now));
        let disabled = self.inner.store.webhooks().disabled(&Behalf::Platform, &MOST_WEBHOOKS);
        findings.extend(webhook_findings(&counts, &disabled.await?, now));
        Ok(findings)
    }

    /// Recent events of all accounts that were not delivered.
    async fn recently_given_up(&self, now: Timestamp) -> Result<u32, EngineError> {
        let store = &self.inner.store;
        let since = Timestamp::from_millis(now.millis() - RECENT_MS);
        let (mut after, mut count) = (String::new(), 0_u32);
        while let Some(account) =
            store.agent_events().account_after(&Behalf::Platform, &after).await?
        {
            let most = MOST_EVENTS.saturating_sub(count);
            if most == 0 {
                break;
            }
            count += store.open_work().given_up(&Behalf::Platform, &account, &since, &most).await?;
            account.as_str().clone_into(&mut after);
        }
        Ok(count)
    }
}

fn task_findings(
    counts: &OpenWorkCounts,
    late: &[TaskRecord],
    now: Timestamp,
) -> Vec<CheckupFinding> {
    let open: u64 = counts.tasks.iter().map(|(_, count)| count).sum();
    let (expired, waiting): (Vec<&TaskRecord>, Vec<&TaskRecord>) =
        late.iter().partition(|it| it.state.terms.expires_at <= now);
    if late.is_empty() {
        let text = format!("open: {open}; none is waiting for a node");
        return vec![CheckupFinding::ok("tasks", text)];
    }
    let advice =
        "Start `jurat serve` on this store; if it is running, check its log and `tasks.at_once`.";
    let mut findings = Vec::new();
    if !expired.is_empty() {
        let text = format!(
            "{} expired but still open: {}",
            task_count(expired.len()),
            names(&expired, now)
        );
        findings.push(CheckupFinding::warning("tasks", text, advice));
    }
    if !waiting.is_empty() {
        let text = format!(
            "{} overdue for more than a minute, and no node has taken them: {}",
            task_count(waiting.len()),
            names(&waiting, now)
        );
        findings.push(CheckupFinding::warning("tasks", text, advice));
    }
    findings
}

fn task_count(count: usize) -> String {
    if u32::try_from(count).is_ok_and(|count| count < MOST_TASKS) {
        return if count == 1 { "1 is".to_owned() } else { format!("{count} are") };
    }
    format!("{count} or more are")
}

/// The first of them, with how long they have been due.
fn names(records: &[&TaskRecord], now: Timestamp) -> String {
    let named = records.iter().take(NAMED).map(|it| {
        let seconds = it.due_at.map_or(0, |due| now.millis_since(due) / 1_000);
        format!("`{}` for {seconds} s", it.key.id)
    });
    let named: Vec<String> = named.collect();
    let rest = if NAMED < records.len() { ", …" } else { "" };
    format!("{}{rest}", named.join(", "))
}

fn run_findings(counts: &OpenWorkCounts, now: Timestamp) -> Vec<CheckupFinding> {
    let open: u64 = counts.runs.iter().map(|(_, count)| count).sum();
    let age = |at: Option<Timestamp>| at.map_or(0, |at| now.millis_since(at));
    let (queued, leased, workers) = (&counts.queued, &counts.leased, counts.workers);
    let mut findings = Vec::new();
    if OVERDUE_AFTER_MS < age(queued.first) {
        let text = format!(
            "steps waiting for a worker: {}, the oldest for {} s; busy workers: {workers}",
            queued.count,
            age(queued.first) / 1_000
        );
        let advice = "Start `jurat run worker` or `jurat serve`; if they are running, their executors may be busy.";
        findings.push(CheckupFinding::warning("runs", text, advice));
    }
    if OVERDUE_AFTER_MS < age(leased.first) {
        let text = format!(
            "the worker of a step disappeared {} s ago, and no other worker has taken the step",
            age(leased.first) / 1_000
        );
        let advice = "Start `jurat run worker` or `jurat serve`.";
        findings.push(CheckupFinding::warning("runs", text, advice));
    }
    if findings.is_empty() {
        let text = format!(
            "open: {open}; steps in progress: {}, queued: {}, busy workers: {workers}",
            leased.count, queued.count
        );
        findings.push(CheckupFinding::ok("runs", text));
    }
    findings
}

fn webhook_findings(
    counts: &OpenWorkCounts,
    disabled: &[Webhook],
    now: Timestamp,
) -> Vec<CheckupFinding> {
    let pending = &counts.deliveries;
    let late = pending.first.map_or(0, |due| now.millis_since(due));
    let mut findings = Vec::new();
    if OVERDUE_AFTER_MS < late {
        let text =
            format!("waiting deliveries: {}, the oldest due for {} s", pending.count, late / 1_000);
        let advice = "Start `jurat serve` on this store; if it is running, check its log and `webhooks.deliveries_per_minute`.";
        findings.push(CheckupFinding::warning("webhooks", text, advice));
    }
    if !disabled.is_empty() {
        let named = disabled.iter().take(NAMED).map(|it| {
            let reason = it.disabled.as_ref().map_or("", |it| it.reason.as_str());
            format!("`{}` of `{}`: {reason}", it.id, it.account)
        });
        let named: Vec<String> = named.collect();
        let rest = if NAMED < disabled.len() { ", …" } else { "" };
        let text = format!(
            "disabled because they failed: {} ({}{rest})",
            disabled.len(),
            named.join(", ")
        );
        let advice = "Their owners can fix the receivers and run `jurat webhooks enable`.";
        findings.push(CheckupFinding::warning("webhooks", text, advice));
    }
    if findings.is_empty() {
        let text = format!("waiting deliveries: {}; none is late", pending.count);
        findings.push(CheckupFinding::ok("webhooks", text));
    }
    findings
}

fn event_findings(counts: &OpenWorkCounts, given_up: u32, now: Timestamp) -> Vec<CheckupFinding> {
    let pending = &counts.events;
    let age = pending.first.map_or(0, |at| now.millis_since(at));
    let mut findings = Vec::new();
    if EVENTS_OVERDUE_MS < age {
        let text =
            format!("waiting for delivery: {}, the oldest for {} s", pending.count, age / 1_000);
        let advice = "Start `jurat serve` on this store, or fix the executors in `jurat agent-events list --state pending`.";
        findings.push(CheckupFinding::warning("agent-events", text, advice));
    }
    if given_up != 0 {
        let text = format!("{given_up} could not be delivered in the last day");
        let advice = "`jurat agent-events list --state failed` shows why, per account.";
        findings.push(CheckupFinding::warning("agent-events", text, advice));
    }
    if findings.is_empty() {
        let text = format!("waiting for delivery: {}; none failed in the last day", pending.count);
        findings.push(CheckupFinding::ok("agent-events", text));
    }
    findings
}
