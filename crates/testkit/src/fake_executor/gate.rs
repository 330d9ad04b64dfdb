//! A gate that holds answers back until a test releases them.

use std::sync::Arc;

use tokio::sync::watch;

/// Clones share one gate, so that several fakes can wait at it.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Opens the gate permanently.
    pub fn release(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn opened(&self) {
        // The sender lives as long as `self`, so only an open gate ends the wait.
        let _ = self.0.subscribe().wait_for(|is_open| *is_open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
