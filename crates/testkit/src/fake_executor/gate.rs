//! A gate that holds answers back until a test lets them go.

use std::sync::Arc;

use tokio::sync::watch;

/// Clones are the same gate, so that several fakes can wait at one.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Opens the gate for good.
    pub fn release(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn opened(&self) {
        // The sender is alive as long as `self` is, so that only an open gate ends this.
        let _ = self.0.subscribe().wait_for(|is_open| *is_open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
