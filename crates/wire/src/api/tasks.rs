//! The resource `/v1/tasks`.

mod contract;
mod decision;
mod described;
mod event;
mod feedback;
mod reply;
mod request;

pub use self::{
    contract::checked_id as task_id,
    decision::{DecidedView, DecisionBody, StepRounds, decision},
    described::{SubmitTask, TaskContractBody, TaskOrder},
    event::{EventBody, EventName, TASK, TASK_EVENT, event_body},
    feedback::{FeedbackRequest, TaskFeedback, decode_feedback},
    reply::{
        Account, CandidateBody, ClaimBody, SettlingBody, TaskBody, TaskLine, TaskPanel, TaskSpent,
        TaskSummaryBody, TaskView, VoteBody, body, summary, whole,
    },
    request::{CancelTaskRequest, TaskSubmission, decode_cancel, decode_submit, placed},
};
pub(super) use self::{
    contract::is_reserved,
    request::{is_name, names, read_submit},
};

#[cfg(test)]
pub(in crate::api) use self::request::decode_shape;
