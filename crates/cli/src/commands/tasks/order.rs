//! Builds a submission: a contract from a file or the sample, and the roster.

use std::path::Path;

use jurat_client::{node, tasks};
use jurat_core::time::Timestamp;
use jurat_engine::{Clock as _, SystemClock};
use jurat_wire::api::tasks::TaskBody;
use serde_json::{Map, Value, json};

use crate::{
    args::{RunTaskArgs, SubmitTaskArgs, TaskOrderArgs},
    client::{ApiClient, Call},
    commands::shared::input,
    failure::CliFailure,
};

pub(super) async fn of_submit(
    client: &ApiClient,
    args: &SubmitTaskArgs,
) -> anyhow::Result<Call<TaskBody<'static>>> {
    let file = args.contract.as_deref().or(args.order.file.as_deref());
    let Some(file) = file else {
        let text = "there is no contract: write a sample with `jurat task sample > contract.json`, and submit it with `jurat task submit contract.json`";
        return Err(CliFailure::usage(text));
    };
    call(client, read(file)?, &args.order).await
}

pub(super) async fn of_run(
    client: &ApiClient,
    args: &RunTaskArgs,
) -> anyhow::Result<Call<TaskBody<'static>>> {
    let body = match &args.order.file {
        Some(file) => read(file)?,
        None => sample(client, args.order.task_id.as_deref()).await?,
    };
    call(client, body, &args.order).await
}

fn read(file: &Path) -> anyhow::Result<Map<String, Value>> {
    input::object(&format!("`{}`", file.display()), file)
}

async fn sample(client: &ApiClient, task_id: Option<&str>) -> anyhow::Result<Map<String, Value>> {
    let reply = client.send(tasks::sample(task_id)).await?;
    let Value::Object(members) = reply.value else {
        anyhow::bail!("the sample contract is not an object");
    };
    Ok(members)
}

/// The time of the server, whose clock decides when a task expires. Without a server, it is the
/// time of this process.
async fn server_time(client: &ApiClient) -> anyhow::Result<Timestamp> {
    let reply = client.send(node::health()).await?;
    Ok(reply.date.unwrap_or_else(|| SystemClock.now()))
}

/// The submission: the file, which is a user's document, changed by the flags.
async fn call(
    client: &ApiClient,
    file: Map<String, Value>,
    args: &TaskOrderArgs,
) -> anyhow::Result<Call<TaskBody<'static>>> {
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
            let now = u64::try_from(server_time(client).await?.micros() / 1_000)?;
            let expiry_ms = now.saturating_add(seconds.saturating_mul(1_000));
            contract.insert("expiry_ms".to_owned(), json!(expiry_ms));
        }
    }
    let call = tasks::submit(&Value::Object(order));
    Ok(call.idempotency_key(args.idempotency_key.as_deref()))
}
