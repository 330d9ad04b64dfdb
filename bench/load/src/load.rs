//! A closed loop of requests over kept-alive connections, with one request in progress on each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::cpu;

/// The request, and how to recognize a correct answer.
#[derive(Debug, Clone)]
pub struct Target {
    pub address: SocketAddr,
    pub method: Method,
    pub path: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Sent as JSON with every request.
    pub body: Bytes,
    pub vary: RequestVariation,
    /// Occurs in every correct answer; checked during the warm-up.
    pub marker: String,
}

/// The difference between one request and the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestVariation {
    Nothing,
    /// A number of [`DIGITS`] digits, written into the body at each of these offsets.
    Body {
        at: Vec<usize>,
    },
    /// A number of [`DIGITS`] digits as the value of this header.
    Header {
        name: HeaderName,
    },
    /// A number of six digits below this one, appended to the path.
    Path {
        below: u64,
    },
}

/// The length of the number in a body.
pub const DIGITS: usize = 16;

/// Numbers the requests of all connections, so that no two of them are equal.
static NUMBER: AtomicU64 = AtomicU64::new(0);
/// Prime, so that consecutive numbers are far apart.
const STRIDE: u64 = 7_919;

/// The amount of load.
#[derive(Debug, Clone, Copy)]
pub struct LoadPlan {
    pub connections: usize,
    /// Requests per connection that are not counted.
    pub warm_up: u64,
    pub stop: LoadStop,
}

#[derive(Debug, Clone, Copy)]
pub enum LoadStop {
    After(Duration),
    /// This many in total, over all connections.
    Requests(u64),
}

/// The measurements of one run.
#[derive(Debug, Clone)]
pub struct LoadSample {
    pub requests: u64,
    pub elapsed: Duration,
    /// CPU time of the watched processes, in their order.
    pub cpu: Vec<Duration>,
    /// Nanoseconds, ascending.
    latencies: Vec<u64>,
}

impl RequestVariation {
    /// A number in place of every run of [`DIGITS`] zeros in the body.
    pub fn zeros_of(body: &str) -> Self {
        Self::Body { at: body.match_indices(&"0".repeat(DIGITS)).map(|(at, _)| at).collect() }
    }
}

impl LoadSample {
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
    pub fn per_second(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The latency in microseconds that this share of the requests did not exceed.
    pub fn percentile_us(&self, share: f64) -> f64 {
        percentile(&self.latencies, share)
    }

    /// CPU microseconds per request, in the process at this index of `watched`.
    #[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 52 bits")]
    pub fn cpu_us_per_request(&self, place: usize) -> f64 {
        let time = self.cpu.get(place).copied().unwrap_or_default();
        time.as_secs_f64() * 1e6 / self.requests.max(1) as f64
    }
}

/// Puts the load on the target, and reads the CPU time of the processes around the counted part.
///
/// An answer other than 2xx, or without the marker during the warm-up, ends the run with an error:
/// the speed of wrong answers is of no interest.
pub async fn run(target: &Target, plan: &LoadPlan, watched: &[u32]) -> Result<LoadSample> {
    let mut drivers = JoinSet::new();
    let mut warming = JoinSet::new();
    for _ in 0..plan.connections {
        let mut lane = LoadConnection::connect(target, &mut drivers).await?;
        let (warm_up, marker) = (plan.warm_up, target.marker.clone());
        warming.spawn(async move {
            lane.warm_up(warm_up, &marker).await?;
            anyhow::Ok(lane)
        });
    }
    let mut lanes = Vec::new();
    while let Some(lane) = warming.join_next().await {
        lanes.push(lane??);
    }

    let before = read(watched)?;
    let start = now();
    let end = ConnectionEnd::new(plan.stop, start);
    let mut counting = JoinSet::new();
    for mut lane in lanes {
        let end = end.clone();
        counting.spawn(async move { lane.count(&end).await });
    }
    let mut latencies = Vec::new();
    while let Some(counted) = counting.join_next().await {
        latencies.append(&mut counted??);
    }
    let elapsed = now() - start;
    let after = read(watched)?;

    ensure!(!latencies.is_empty(), "no request was counted: measure longer");
    latencies.sort_unstable();
    let cpu = after.iter().zip(&before).map(|(after, before)| after.saturating_sub(*before));
    Ok(LoadSample { requests: latencies.len() as u64, elapsed, cpu: cpu.collect(), latencies })
}

fn read(watched: &[u32]) -> Result<Vec<Duration>> {
    watched.iter().map(|pid| cpu::of_process(*pid)).collect()
}

/// When a connection stops; shared, so that requests are counted over all connections.
#[derive(Debug, Clone)]
enum ConnectionEnd {
    At(Instant),
    Taken { left: Arc<AtomicU64> },
}

impl ConnectionEnd {
    fn new(stop: LoadStop, start: Instant) -> Self {
        match stop {
            LoadStop::After(duration) => Self::At(start + duration),
            LoadStop::Requests(requests) => {
                Self::Taken { left: Arc::new(AtomicU64::new(requests)) }
            }
        }
    }

    fn is_reached(&self, now: Instant) -> bool {
        match self {
            Self::At(end) => *end <= now,
            Self::Taken { left } => left
                .try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_err(),
        }
    }
}

/// One connection, and the request that it sends repeatedly.
#[derive(Debug)]
pub struct LoadConnection {
    sender: SendRequest<Full<Bytes>>,
    parts: Parts,
    path: String,
    body: Bytes,
    vary: RequestVariation,
}

impl LoadConnection {
    /// Connects; the task that drives the connection is added to the set.
    pub async fn connect(target: &Target, drivers: &mut JoinSet<()>) -> Result<Self> {
        let stream = TcpStream::connect(target.address)
            .await
            .with_context(|| format!("cannot connect to {}", target.address))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        drivers.spawn(async move {
            // A failure of the connection shows in the request that it interrupts.
            let _ = connection.await;
        });
        let mut request = Request::builder()
            .method(&target.method)
            .uri(&target.path)
            .header(HOST, target.address.to_string())
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in &target.headers {
            request = request.header(name, value);
        }
        let (parts, ()) = request.body(())?.into_parts();
        let (path, body) = (target.path.clone(), target.body.clone());
        Ok(Self { sender, parts, path, body, vary: target.vary.clone() })
    }

    async fn warm_up(&mut self, requests: u64, marker: &str) -> Result<()> {
        // At least one, so that the marker is checked.
        for _ in 0..requests.max(1) {
            let answer = self.ask().await?;
            let text = String::from_utf8_lossy(&answer);
            ensure!(text.contains(marker), "the answer has no `{marker}`: {text}");
        }
        Ok(())
    }

    async fn count(&mut self, end: &ConnectionEnd) -> Result<Vec<u64>> {
        let mut latencies = Vec::new();
        let mut start = now();
        while !end.is_reached(start) {
            self.ask().await?;
            let done = now();
            latencies.push(u64::try_from((done - start).as_nanos()).unwrap_or(u64::MAX));
            start = done;
        }
        Ok(latencies)
    }

    /// Sends the request and reads the answer, whatever it is.
    pub async fn send(&mut self) -> Result<(StatusCode, Bytes)> {
        self.sender.ready().await?;
        let request = self.next()?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }

    fn next(&self) -> Result<Request<Full<Bytes>>> {
        let (mut parts, mut body) = (self.parts.clone(), self.body.clone());
        match &self.vary {
            RequestVariation::Nothing => {}
            RequestVariation::Body { at } => {
                let digits = next_digits();
                let mut text = body.to_vec();
                for at in at {
                    let place = text.get_mut(*at..at + DIGITS).context("the body is too short")?;
                    place.copy_from_slice(digits.as_bytes());
                }
                body = Bytes::from(text);
            }
            RequestVariation::Header { name } => {
                parts.headers.insert(name, HeaderValue::from_str(&next_digits())?);
            }
            RequestVariation::Path { below } => {
                let number = NUMBER.fetch_add(1, Ordering::Relaxed).wrapping_mul(STRIDE) % below;
                parts.uri = format!("{}{number:06}", self.path).parse()?;
            }
        }
        Ok(Request::from_parts(parts, Full::new(body)))
    }

    async fn ask(&mut self) -> Result<Bytes> {
        let (status, body) = self.send().await?;
        if !status.is_success() {
            bail!("{} answered {status}: {}", self.parts.uri, String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}

/// A number that no other request has.
fn next_digits() -> String {
    format!("{:01$}", NUMBER.fetch_add(1, Ordering::Relaxed), DIGITS)
}

/// The smallest value that at least this share of the sorted values does not exceed, in
/// microseconds from nanoseconds.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and nanoseconds are far below 2^52, and the rank is within the slice"
)]
pub fn percentile(sorted: &[u64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    let place = rank.clamp(1, sorted.len().max(1)) - 1;
    sorted.get(place).map_or(0.0, |nanos| *nanos as f64 / 1_000.0)
}

/// The real time, which a measurement needs.
#[expect(clippy::disallowed_methods, reason = "a measurement is about the real time")]
pub fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_occurred() {
        let nanos: Vec<u64> = (1..=200).map(|n| n * 1_000).collect();
        for (share, us) in [(0.0, 1.0), (0.5, 100.0), (0.99, 198.0), (1.0, 200.0)] {
            assert!((percentile(&nanos, share) - us).abs() < 1e-9, "{share}");
        }
        assert!((percentile(&[7_000], 0.5) - 7.0).abs() < 1e-9);
        assert!(percentile(&[], 0.5).abs() < 1e-9);
    }
}
