//! How an executor is served.

use std::fmt;
use std::time::Duration;

use jurat_guard::public::Range;

use crate::signature::NodePublicKey;

#[derive(Debug, Clone, Default)]
pub struct ExecutorOptions {
    pub limits: ExecutorLimits,
    pub compat: KernelCompat,
    /// When set, every endpoint but `/health` wants `Authorization: Bearer <token>`.
    pub token: Option<Secret>,
    /// Ranges that are not public from which evidence may be fetched all the same, also without TLS.
    pub evidence_allow: Vec<Range>,
    /// When there are some, `/agent-events` takes only what one of these nodes signed a moment ago.
    pub nodes: Vec<NodePublicKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutorLimits {
    /// Connections at the same time; more wait until one is free.
    pub connections: usize,
    /// How long a client may keep a connection before the head of its next request is complete.
    pub idle: Duration,
    /// The largest request body in bytes.
    pub body_bytes: usize,
    /// The most values in a request body, each list and object counted.
    pub values: usize,
    /// How long a client may take to send its body.
    pub read: Duration,
    /// Executions and verifications at the same time; more are answered with 503.
    pub concurrent: usize,
    /// How long one execution or judgement may take.
    pub execute: Duration,
    /// Memory for remembered answers, in bytes.
    pub remembered_bytes: u64,
    /// How long an answer is remembered.
    pub remembered: Duration,
    /// How long requests and executions may take to end after the signal to stop.
    pub grace: Duration,
    /// Threads that evaluate policies.
    pub policy_threads: usize,
}

impl Default for ExecutorLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            // Longer than the 30 seconds for which Jurat keeps an idle connection: otherwise both
            // sides could use it at the same moment, one to ask and the other to hang up.
            idle: Duration::from_secs(35),
            body_bytes: 2 * 1024 * 1024,
            // More than a node sends: what a caller may ask, and what an executor may answer.
            values: 200_000,
            read: Duration::from_secs(30),
            concurrent: 256,
            execute: Duration::from_mins(5),
            remembered_bytes: 64 * 1024 * 1024,
            remembered: Duration::from_hours(1),
            grace: Duration::from_secs(10),
            policy_threads: 2,
        }
    }
}

/// Which kernel the answers are meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KernelCompat {
    #[default]
    Jurat,
    /// The kernel of WattSwarm wants a reason code on every verdict and a hash without prefix.
    WattSwarm,
}

/// A text that does not show up in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
