//! Named points before and after what is written and asked. Tests let the process end at one, to
//! see that nothing is lost or done twice; elsewhere passing one does nothing.

use std::{fmt, sync::Arc};

/// Every point that a process can pass, so that a test can see whether it ended a process at all of
/// them. What is between two of them is one write, or one call of somebody else.
///
/// There is none before steps or tasks are taken: whoever looks for work does so again and again, and
/// has changed nothing before it found some.
pub const FAILPOINTS: [&str; 21] = [
    // The round of a step is recorded, before anybody is asked, and closed with what came.
    "round_open_before",
    "round_open_after",
    "round_close_before",
    "round_close_after",
    // A task is taken over from its caller, and taken up by a node.
    "task_submit_before",
    "task_submit_after",
    "task_take_after",
    // A node writes what happened to a task, and asks for a step of it.
    "task_append_before",
    "task_append_after",
    "task_ask_before",
    "task_ask_after",
    // What evidence refers to was fetched, and nobody knows yet.
    "evidence_fetch_after",
    // Events to executors are taken up by a node, and told before that is noted.
    "event_take_after",
    "event_tell_after",
    // A run is taken over from its caller, and its steps are taken up by a worker.
    "run_submit_before",
    "run_submit_after",
    "run_take_after",
    // A worker writes what became of a step, and whoever else changes a run what they want.
    "run_write_before",
    "run_write_after",
    // A worker goes on holding a step.
    "run_renew_before",
    "run_renew_after",
];

/// What happens at a point.
pub type FailpointHook = Arc<dyn Fn(&'static str) + Send + Sync>;

/// The points of a process.
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
