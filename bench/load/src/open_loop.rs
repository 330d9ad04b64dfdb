//! An open loop: requests are due at times that no answer changes, like those of many callers.
//!
//! A latency counts from the time at which the request was due, not from the time at which a
//! connection was free to send it. So a server that slows down cannot hide the delay from the
//! statistics.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::load::{LoadConnection, Target, now, percentile};

/// The offered load and its duration.
#[derive(Debug, Clone, Copy)]
pub struct OfferedLoad {
    /// Requests per second, at random times.
    pub rate: f64,
    /// Connections, each of which carries one request at a time.
    pub lanes: usize,
    /// The start, which is not counted.
    pub settle: Duration,
    pub counted: Duration,
    /// An answer that comes later than this after its request was due is useless.
    pub timeout: Duration,
}

/// The results of the requests that were due in the counted time.
#[derive(Debug, Clone, Default)]
pub struct OpenLoopOutcome {
    pub counted: Duration,
    pub ok: u64,
    /// Refused with 503.
    pub shed: u64,
    /// Any other answer, or none.
    pub failed: u64,
    /// No answer in time.
    pub late: u64,
    /// Latencies of the successful requests in nanoseconds, ascending.
    latencies: Vec<u64>,
}

impl OpenLoopOutcome {
    pub fn good_per_second(&self) -> f64 {
        self.per_second(self.ok)
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.counted.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The latency in microseconds that this share of the successful answers did not exceed.
    pub fn percentile_us(&self, share: f64) -> f64 {
        percentile(&self.latencies, share)
    }

    fn note(&mut self, end: RequestEnd, latency: Duration) {
        match end {
            RequestEnd::Ok => {
                self.ok += 1;
                self.latencies.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
            }
            RequestEnd::Shed => self.shed += 1,
            RequestEnd::Failed => self.failed += 1,
            RequestEnd::Late => self.late += 1,
        }
    }

    fn add(&mut self, mut other: Self) {
        self.ok += other.ok;
        self.shed += other.shed;
        self.failed += other.failed;
        self.late += other.late;
        self.latencies.append(&mut other.latencies);
    }
}

#[derive(Debug, Clone, Copy)]
enum RequestEnd {
    Ok,
    Shed,
    Failed,
    Late,
}

/// A request and the time at which it is due.
#[derive(Debug, Clone, Copy)]
struct DueRequest {
    due: Instant,
    is_counted: bool,
}

/// Requests that are due and wait for a connection.
#[derive(Debug)]
struct RequestQueue {
    tickets: Mutex<VecDeque<DueRequest>>,
    ready: Semaphore,
}

impl RequestQueue {
    fn push(&self, ticket: DueRequest) {
        self.tickets.lock().push_back(ticket);
        self.ready.add_permits(1);
    }

    /// The next request; `None` after the last one.
    async fn pop(&self) -> Option<DueRequest> {
        self.ready.acquire().await.ok()?.forget();
        self.tickets.lock().pop_front()
    }

    fn len(&self) -> usize {
        self.tickets.lock().len()
    }
}

/// Offers the load, and reports its results.
pub async fn offer(target: &Target, offer: &OfferedLoad) -> Result<OpenLoopOutcome> {
    let queue = Arc::new(RequestQueue { tickets: Mutex::default(), ready: Semaphore::new(0) });
    let mut lanes = JoinSet::new();
    for _ in 0..offer.lanes.max(1) {
        let (target, queue, patience) = (target.clone(), Arc::clone(&queue), offer.timeout);
        let mut drivers = JoinSet::new();
        let lane = LoadConnection::connect(&target, &mut drivers).await?;
        lanes.spawn(work(target, lane, drivers, queue, patience));
    }
    issue(offer, &queue).await;
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let until = now() + offer.timeout;
    while 0 < queue.len() && now() < until {
        ticks.tick().await;
    }
    queue.ready.close();
    let mut outcome = OpenLoopOutcome { counted: offer.counted, ..OpenLoopOutcome::default() };
    while let Some(lane) = lanes.join_next().await {
        outcome.add(lane?);
    }
    // No connection was free for these in time.
    let unsent = queue.tickets.lock();
    outcome.late += unsent.iter().filter(|ticket| ticket.is_counted).count() as u64;
    drop(unsent);
    outcome.latencies.sort_unstable();
    Ok(outcome)
}

/// Releases requests when they are due, in batches of about a millisecond.
async fn issue(offer: &OfferedLoad, queue: &RequestQueue) {
    let mut chance = RandomGaps(0x9e37_79b9_7f4a_7c15);
    let start = now();
    let (counted_from, end) = (start + offer.settle, start + offer.settle + offer.counted);
    let mut due = start;
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    while due < end {
        ticks.tick().await;
        let until = now().min(end);
        while due <= until && due < end {
            queue.push(DueRequest { due, is_counted: counted_from <= due });
            due += chance.gap(offer.rate);
        }
    }
}

async fn work(
    target: Target,
    mut lane: LoadConnection,
    mut drivers: JoinSet<()>,
    queue: Arc<RequestQueue>,
    patience: Duration,
) -> OpenLoopOutcome {
    let mut outcome = OpenLoopOutcome::default();
    while let Some(ticket) = queue.pop().await {
        let left = (ticket.due + patience).saturating_duration_since(now());
        let end = match tokio::time::timeout(left, lane.send()).await {
            Ok(Ok((status, _))) if status.is_success() => RequestEnd::Ok,
            Ok(Ok((StatusCode::SERVICE_UNAVAILABLE, _))) => RequestEnd::Shed,
            Ok(Ok(_) | Err(_)) => RequestEnd::Failed,
            Err(_) => RequestEnd::Late,
        };
        if ticket.is_counted {
            outcome.note(end, now() - ticket.due);
        }
        if matches!(end, RequestEnd::Failed | RequestEnd::Late) {
            // The connection may be closed, or an answer may still be arriving on it.
            drivers.shutdown().await;
            match LoadConnection::connect(&target, &mut drivers).await {
                Ok(new) => lane = new,
                Err(_) => return outcome,
            }
        }
    }
    outcome
}

/// Random gaps, the same in every run.
struct RandomGaps(u64);

impl RandomGaps {
    /// The time to the next request of many independent callers.
    #[expect(clippy::cast_precision_loss, reason = "chance needs no more than 52 bits")]
    fn gap(&mut self, rate: f64) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let share = ((self.0 >> 12) + 1) as f64 / (1_u64 << 52) as f64;
        Duration::from_secs_f64(-share.ln() / rate.max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_match_the_rate_on_average() {
        let mut chance = RandomGaps(7);
        let sum: Duration = (0..100_000).map(|_| chance.gap(1_000.0)).sum();
        assert!((99.0..101.0).contains(&sum.as_secs_f64()), "{sum:?}");
    }
}
