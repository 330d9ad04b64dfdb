//! Named points before and after every write and call. Tests end the process at one of them, to see
//! that nothing is lost or done twice; otherwise they do nothing.

use std::{fmt, sync::Arc};

/// Every fail point, so that a test can check that it ended a process at all of them. Between two
/// points there is one write, or one call to another service.
///
/// There is none before steps or tasks are taken: looking for work repeats itself, and changes
/// nothing until it finds some.
pub const FAILPOINTS: [&str; 32] = [
    // A round is recorded before any executor is asked, and closed with the answers.
    "round_open_before",
    "round_open_after",
    "round_close_before",
    "round_close_after",
    // A task is accepted from its caller, and taken by a node.
    "task_submit_before",
    "task_submit_after",
    "task_take_after",
    // A node records the events of a task, and makes a task call.
    "task_append_before",
    "task_append_after",
    "task_ask_before",
    "task_ask_after",
    // Evidence was fetched, and not recorded yet.
    "evidence_fetch_after",
    // Agent events are taken by a node, and delivered before that is recorded.
    "event_take_after",
    "event_tell_after",
    // Webhook deliveries are taken by a node, and sent before that is recorded.
    "webhook_take_after",
    "webhook_send_after",
    // A run is accepted from its caller, and its steps are taken by a worker.
    "run_submit_before",
    "run_submit_after",
    "run_take_after",
    // A worker records the result of a step, or a caller changes a run.
    "run_write_before",
    "run_write_after",
    // A worker renews its lease on a step.
    "run_renew_before",
    "run_renew_after",
    // A payment is set aside for one request.
    "payment_reserve_before",
    "payment_reserve_after",
    // The authorization is given back, because nothing was charged.
    "payment_release_before",
    "payment_release_after",
    // The reply is stored with the intent to settle, and the facilitator was asked before its
    // answer is recorded.
    "payment_settle_before",
    "payment_settle_after",
    "payment_record_before",
    "payment_record_after",
    // A node takes a payment whose settlement is due.
    "payment_take_after",
];

/// The action at a fail point.
pub type FailpointHook = Arc<dyn Fn(&'static str) + Send + Sync>;

/// The fail points of a process.
#[derive(Clone, Default)]
pub struct Failpoints(Option<FailpointHook>);

impl Failpoints {
    pub fn new(passing: FailpointHook) -> Self {
        Self(Some(passing))
    }

    pub(crate) fn pass(&self, name: &'static str) {
        if let Some(passing) = &self.0 {
            debug_assert!(FAILPOINTS.contains(&name), "the point `{name}` is not on the list");
            passing(name);
        }
    }
}

impl fmt::Debug for Failpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.0.is_some() { "watched" } else { "unwatched" };
        f.debug_tuple("Points").field(&what).finish()
    }
}
