//! A port that nobody should connect to, which counts connections.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;

/// A listener that counts connections and closes them immediately.
#[derive(Debug)]
pub struct Canary {
    address: SocketAddr,
    /// The same socket as the task's, to count connections that have arrived but were not yet
    /// accepted.
    listener: TcpListener,
    seen: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

/// Starts a canary.
///
/// # Panics
///
/// Outside of a tokio runtime, and if no loopback port is free.
#[expect(clippy::expect_used, reason = "without a loopback port no test can go on")]
pub fn canary() -> Canary {
    start().expect("a free loopback port")
}

impl Canary {
    /// The base address without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections were made so far; every complete one is counted.
    pub fn connections(&self) -> usize {
        while self.listener.accept().is_ok() {
            self.seen.fetch_add(1, Ordering::SeqCst);
        }
        self.seen.load(Ordering::SeqCst)
    }

    pub fn was_touched(&self) -> bool {
        0 < self.connections()
    }
}

fn start() -> io::Result<Canary> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let taken = tokio::net::TcpListener::from_std(listener.try_clone()?)?;
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let mut task = JoinSet::new();
    task.spawn(async move {
        while let Ok((connection, _)) = taken.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            drop(connection);
        }
    });
    Ok(Canary { address, listener, seen, _task: task })
}
