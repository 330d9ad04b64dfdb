//! The options of an executor server.

use std::fmt;
use std::time::Duration;

use jurat_guard::public::Range;

use crate::signature::NodePublicKey;

/// How an executor is served.
#[derive(Debug, Clone, Default)]
pub struct ExecutorOptions {
    pub limits: ExecutorLimits,
    pub compat: KernelCompat,
    /// If set, every endpoint except `/health` requires `Authorization: Bearer <token>`.
    pub token: Option<Secret>,
    /// Ranges that are not public but may serve evidence, even without TLS.
    pub evidence_allow: Vec<Range>,
    /// If there are any, `/agent-events` accepts only events that one of these nodes signed
    /// recently.
    pub nodes: Vec<NodePublicKey>,
}

/// The limits of an executor server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutorLimits {
    /// Concurrent connections; more wait until one is free.
    pub connections: usize,
    /// How long a client may keep a connection until the head of its next request is complete.
    pub idle: Duration,
    /// The maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// The maximum number of values in a request body, counting lists and objects.
    pub values: usize,
    /// How long a client may take to send its body.
    pub read: Duration,
    /// Concurrent executions and verifications; more are answered with 503.
    pub concurrent: usize,
    /// How long one execution or judgement may take.
    pub execute: Duration,
    /// Memory for cached answers, in bytes.
    pub remembered_bytes: u64,
    /// How long an answer is cached.
    pub remembered: Duration,
    /// The grace period for requests and executions after the signal to stop.
    pub grace: Duration,
    /// Threads that evaluate policies.
    pub policy_threads: usize,
}

impl Default for ExecutorLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            // Longer than the 30 seconds for which Jurat keeps an idle connection: otherwise one
            // side could send a request while the other closes the connection.
            idle: Duration::from_secs(35),
            body_bytes: 2 * 1024 * 1024,
            // More than a node sends: the limit of a caller's request plus that of an executor's
            // answer.
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

/// The kernel that the answers are meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KernelCompat {
    #[default]
    Jurat,
    /// WattSwarm's kernel requires a reason code on every verdict and a hash without prefix.
    WattSwarm,
}

/// A text that never appears in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
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
