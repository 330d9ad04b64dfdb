//! `/v1/executors`.

use jurat_wire::api::{
    executors::{AddExecutorDraft, ExecutorBody, ProbeBody},
    status::RemovedExecutor,
};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/executors";

pub fn add(executor: &AddExecutorDraft) -> Call<ExecutorBody<'static>> {
    Call::post(ROUTE, executor)
}

pub fn list() -> Call<Page<ExecutorBody<'static>>> {
    Call::get(ROUTE)
}

pub fn show(name: &str) -> Call<ExecutorBody<'static>> {
    Call::get(path(ROUTE, &[name]))
}

pub fn check(name: &str) -> Call<ProbeBody<'static>> {
    Call::post_empty(path(ROUTE, &[name, "check"]))
}

pub fn remove(name: &str) -> Call<RemovedExecutor<'static>> {
    Call::delete(path(ROUTE, &[name]))
}
