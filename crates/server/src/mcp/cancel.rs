//! How callers give up calls: by leaving, or by a notification that names the call.
//!
//! Revisions before 2026-07-28 say that a lost connection does not cancel a request, and have a
//! notification for that; in the newest one, closing the connection cancels it. There are no
//! sessions, so a call is found by the key and by the id that its client gave it.

use std::{collections::BTreeMap, sync::Arc};

use axum::http::request::Parts;
use jurat_core::account::caller::Caller;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::SESSION_ID;

/// The notification that cancels a call.
pub(super) const CANCELLED: &str = "notifications/cancelled";

/// The key of the caller, the session that it names, if any, and the id of the request as JSON.
type CallName = (String, String, String);

/// The calls in progress on this node that a notification may cancel.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallsInFlight(Arc<Mutex<BTreeMap<CallName, Vec<CancellationToken>>>>);

impl CallsInFlight {
    /// Lists a call until the returned guard is dropped.
    pub(super) fn enter(&self, message: &Parts, caller: &Caller, id: &Value) -> CallInFlight {
        let name = name_of(message, caller, id);
        let mut calls = self.0.lock();
        let named = calls.entry(name.clone()).or_default();
        let off = CancellationToken::new();
        named.push(off.clone());
        drop(calls);
        CallInFlight { calls: self.clone(), name, off }
    }

    /// Cancels the call that a notification names. If two clients share a key and an id, nobody
    /// knows whose call is meant, so neither is cancelled.
    pub(super) fn cancel(&self, message: &Parts, notification: &Value) {
        let Some(caller) = message.extensions.get::<Caller>() else { return };
        let name = name_of(message, caller, &notification["params"]["requestId"]);
        if let Some([off]) = self.0.lock().get(&name).map(Vec::as_slice) {
            off.cancel();
        }
    }
}

fn name_of(message: &Parts, caller: &Caller, id: &Value) -> CallName {
    let session = message.headers.get(SESSION_ID).and_then(|it| it.to_str().ok());
    // The account too: visitors of this machine have a key without an id of its own.
    let key = format!("{} {}", caller.account(), caller.key().id);
    (key, session.unwrap_or_default().to_owned(), id.to_string())
}

/// Keeps a call on the list.
#[derive(Debug)]
pub(super) struct CallInFlight {
    calls: CallsInFlight,
    name: CallName,
    off: CancellationToken,
}

impl CallInFlight {
    pub(super) fn signal(&self) -> CancellationToken {
        self.off.clone()
    }
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        let mut calls = self.calls.0.lock();
        if let Some(named) = calls.get_mut(&self.name) {
            // Only clones of one token are equal.
            named.retain(|it| *it != self.off);
            if named.is_empty() {
                calls.remove(&self.name);
            }
        }
    }
}

/// What ends a call before its result.
#[derive(Debug, Clone)]
pub(crate) struct CallSignals {
    /// Cancelled when the caller disconnects.
    pub(super) left: CancellationToken,
    /// Cancelled by a notification.
    pub(super) off: CancellationToken,
    /// Whether a lost connection cancels nothing.
    pub(super) survives_connection: bool,
}

/// How a caller gave up a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// Its work is not wanted any more.
    Cancelled,
    /// It did not wait for the result, which it may still want.
    Disconnected,
}

impl CallSignals {
    /// Resolves when the caller gives up the call.
    pub(crate) async fn departed(&self) -> Departure {
        tokio::select! {
            biased;
            () = self.off.cancelled() => Departure::Cancelled,
            () = self.left.cancelled() => if self.survives_connection {
                Departure::Disconnected
            } else {
                Departure::Cancelled
            },
        }
    }
}
