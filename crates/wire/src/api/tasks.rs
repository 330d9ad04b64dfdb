//! The resource `/v1/tasks`.

mod contract;
mod described;
mod request;

pub(super) use self::request::is_name;
pub use self::{
    described::{SubmitTask, TaskContractBody, TaskOrder},
    request::{CancelTaskRequest, TaskSubmission, decode_cancel, decode_submit},
};
