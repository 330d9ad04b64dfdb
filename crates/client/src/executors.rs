//! `/v1/executors`.

use jurat_wire::api::{
    executors::{ExecutorBody, ProbeBody},
    status::RemovedExecutor,
};
use serde_json::{Value, json};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/executors";

pub fn add(executor: &Value) -> Call<ExecutorBody<'static>> {
    Call::post(ROUTE, executor)
}

pub fn list() -> Call<Page<ExecutorBody<'static>>> {
    Call::get(ROUTE)
}

pub fn show(name: &str) -> Call<ExecutorBody<'static>> {
    Call::get(path(ROUTE, &[name]))
}

pub fn check(name: &str) -> Call<ProbeBody<'static>> {
    Call::post(path(ROUTE, &[name, "check"]), &json!({}))
}

pub fn remove(name: &str) -> Call<RemovedExecutor<'static>> {
    Call::delete(path(ROUTE, &[name]))
}
