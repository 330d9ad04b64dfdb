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
    decision::{DecidedCandidate, DecisionBody, TaskCallRounds, decision},
    described::{SubmitTask, TaskContractBody, TaskOrder},
    event::{TASK, TASK_EVENT, TaskEventBody, TaskEventName, event_body},
    feedback::{FeedbackRequest, TaskComplaint, decode_feedback},
    reply::{
        BudgetAccount, CandidateBody, SettlingBody, TaskBody, TaskLeaseBody, TaskLine,
        TaskRosterBody, TaskSpendingBody, TaskSummaryBody, TaskView, VoteBody, body, summary,
        whole,
    },
    request::{CancelTaskRequest, TaskSubmission, decode_cancel, decode_submit, located},
};
pub(super) use self::{
    contract::is_reserved,
    request::{is_name, names, read_submit},
};

#[cfg(test)]
pub(in crate::api) use self::request::decode_shape;
