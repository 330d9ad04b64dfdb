//! The resource `/v1/tasks`.

mod contract;
mod decision;
mod event;
mod feedback;
mod reply;
mod request;

pub(super) use self::{contract::is_reserved, request::read_submit};
pub use self::{
    contract::{TaskContractBody, checked_id as task_id},
    decision::{DecidedCandidate, DecisionBody, TaskCallRounds, decision},
    event::{TASK, TASK_EVENT, TaskEventBody, TaskEventName, event_body},
    feedback::{FeedbackDraft, FeedbackRequest, decode_feedback},
    reply::{
        BudgetAccount, CandidateBody, SettlingBody, TaskBody, TaskLeaseBody, TaskLine,
        TaskRosterBody, TaskSpendingBody, TaskSummaryBody, TaskView, VoteBody, body, summary,
        whole,
    },
    request::{
        CancelTaskDraft, CancelTaskRequest, ExecutorName, SubmitTask, TaskOrder, VoterList,
        decode_cancel, decode_submit, located,
    },
};
