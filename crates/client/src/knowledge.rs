//! `/v1/knowledge`: decisions that may be used again.

use jurat_wire::api::knowledge::KnowledgeBody;

use crate::call::{Call, Page};

pub fn list(task_type: Option<&str>, task_id: Option<&str>) -> Call<Page<KnowledgeBody<'static>>> {
    Call::get("/v1/knowledge").query("task_type", task_type).query("task_id", task_id)
}
