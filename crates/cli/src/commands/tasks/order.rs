//! What is submitted: a contract from a file or the sample, and who is to work on it.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::ROUTE;
use crate::{
    args::{RunTaskArgs, SubmitTaskArgs, TaskOrderArgs},
    client::{ApiCall, ApiClient, query},
    commands::shared::input,
    failure::CliFailure,
};

/// For how long the sample of a contract is good. The server's clock counts.
const SAMPLE_MS: u64 = 600_000;

pub(super) fn sample(task_id: Option<&str>) -> ApiCall {
    let parameters = [("task_id", task_id.map(str::to_owned))];
    ApiCall::get(query(&format!("{ROUTE}/sample"), &parameters))
}

pub(super) async fn of_submit(
    client: &ApiClient,
    args: &SubmitTaskArgs,
) -> anyhow::Result<ApiCall> {
    let file = args.contract.as_deref().or(args.order.file.as_deref());
    let Some(file) = file else {
        let text = "there is no contract: write a sample with `jurat task sample > contract.json`, and submit it with `jurat task submit contract.json`";
        return Err(CliFailure::usage(text));
    };
    call(client, read(file)?, &args.order).await
}

pub(super) async fn of_run(client: &ApiClient, args: &RunTaskArgs) -> anyhow::Result<ApiCall> {
    let body = match &args.order.file {
        Some(file) => read(file)?,
        None => fetched(client, args.order.task_id.as_deref()).await?,
    };
    call(client, body, &args.order).await
}

fn read(file: &Path) -> anyhow::Result<Map<String, Value>> {
    input::object(&format!("`{}`", file.display()), file)
}

async fn fetched(client: &ApiClient, task_id: Option<&str>) -> anyhow::Result<Map<String, Value>> {
    let reply = client.send(sample(task_id)).await?.success()?;
    let Value::Object(members) = reply.value else {
        anyhow::bail!("the sample contract is not an object");
    };
    Ok(members)
}

/// The submission: what stands in the file, with what the flags say.
async fn call(
    client: &ApiClient,
    file: Map<String, Value>,
    args: &TaskOrderArgs,
) -> anyhow::Result<ApiCall> {
    let mut order = if file.contains_key("contract") {
        file
    } else {
        Map::from_iter([("contract".to_owned(), Value::Object(file))])
    };
    for (name, names) in [("executors", &args.executor), ("verifiers", &args.verifier)] {
        if !names.is_empty() {
            order.insert(name.to_owned(), json!(names));
        }
    }
    if let Some(profile) = &args.profile {
        order.insert("profile".to_owned(), json!(profile));
    }
    let contract = order.get_mut("contract").and_then(Value::as_object_mut);
    if let Some(contract) = contract {
        if let Some(id) = &args.task_id {
            contract.insert("task_id".to_owned(), json!(id));
        }
        if let Some(seconds) = args.expires_in {
            let sample = fetched(client, None).await?;
            let now = sample.get("expiry_ms").and_then(Value::as_u64);
            let now = now.and_then(|it| it.checked_sub(SAMPLE_MS));
            let now = now.context("the sample contract has no `expiry_ms`")?;
            let expiry_ms = now.saturating_add(seconds.saturating_mul(1_000));
            contract.insert("expiry_ms".to_owned(), json!(expiry_ms));
        }
    }
    Ok(ApiCall::post(ROUTE, Value::Object(order))
        .with("idempotency-key", args.idempotency_key.as_deref()))
}
