//! `jurat workflows publish`, `put-file` and `rm-file`.

use std::path::Path;

use serde_json::{Value, json};

use super::{CommandContext, ROUTE, folder};
use crate::{
    args::{PublishWorkflowArgs, PutFileArgs, RemoveFileArgs},
    client::{ApiCall, path},
    failure::CliFailure,
    output::table::{said, whole_text},
};

pub(super) async fn publish(
    context: &CommandContext,
    args: &PublishWorkflowArgs,
) -> anyhow::Result<u8> {
    let call =
        ApiCall::post(ROUTE, body(args)?).with("idempotency-key", args.idempotency_key.as_deref());
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || {
        let it = &reply.value;
        format!(
            "Saved {} v{} (workflow_id={}, version_token={})",
            said(&it["name"]),
            said(&it["version"]),
            said(&it["workflow_id"]),
            said(&it["version_token"])
        )
    })?;
    for note in reply.value["authoring_notes"].as_array().into_iter().flatten() {
        context.out.note(&whole_text(note));
    }
    Ok(0)
}

fn body(args: &PublishWorkflowArgs) -> anyhow::Result<Value> {
    let is_folder = args.file.is_dir();
    if is_folder && args.clear_files {
        let text =
            "`--clear-files` contradicts a folder, whose files are sent; use one or the other";
        return Err(CliFailure::usage(text));
    }
    let mut body = json!({ "expected_version_token": args.expected_version_token });
    if is_folder {
        let found = folder::read(&args.file)?;
        body["body"] = json!(found.body);
        body["files"] = json!(found.files);
    } else {
        body["body"] = json!(folder::text(&args.file)?);
    }
    if args.clear_files {
        body["files"] = json!([]);
    }
    if args.clear_verifiers {
        body["verifiers"] = json!([]);
    }
    if !args.verifier.is_empty() {
        let bound = args.verifier.iter();
        let bound = bound.map(|(name, id)| json!({ "name": name, "verifier_id": id }));
        body["verifiers"] = json!(bound.collect::<Vec<_>>());
    }
    if !args.tag.is_empty() {
        body["tags"] = json!(args.tag);
    }
    for (name, value) in [
        ("name", &args.name),
        ("description", &args.description),
        ("outcome", &args.outcome),
        ("source", &args.source),
        ("workflow_id", &args.workflow_id),
    ] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    Ok(body)
}

pub(super) async fn put_file(context: &CommandContext, args: &PutFileArgs) -> anyhow::Result<u8> {
    let name = match (&args.path, args.file.file_name()) {
        (Some(path), _) => path.clone(),
        (None, Some(name)) if args.file != Path::new("-") => name.to_string_lossy().into_owned(),
        (None, _) => {
            return Err(CliFailure::usage("add `--path`, the path of the file in the workflow"));
        }
    };
    let mut entry = folder::entry(&name, &args.file)?;
    if args.executable {
        entry["executable"] = json!(true);
    }
    if let Some(purpose) = &args.purpose {
        entry["purpose"] = json!(purpose);
    }
    let body = json!({ "files": [entry] });
    patch(context, &args.named.workflow, body, args.expected_version_token.as_deref()).await
}

pub(super) async fn rm_file(context: &CommandContext, args: &RemoveFileArgs) -> anyhow::Result<u8> {
    let body = json!({ "delete_paths": [args.path] });
    patch(context, &args.named.workflow, body, args.expected_version_token.as_deref()).await
}

/// Without a token the version that is current now is changed.
async fn patch(
    context: &CommandContext,
    workflow: &str,
    mut body: Value,
    token: Option<&str>,
) -> anyhow::Result<u8> {
    let reply = context
        .with_client(async |client| {
            let token = if let Some(token) = token {
                json!(token)
            } else {
                let found = client.send(ApiCall::get(path(ROUTE, &[workflow]))).await?.success()?;
                found.value["version_token"].clone()
            };
            body["expected_version_token"] = token;
            let call = ApiCall::patch(path(ROUTE, &[workflow, "files"]), body);
            Ok(client.send(call).await?.success()?)
        })
        .await?;
    context.out.confirm(&reply, || {
        let it = &reply.value;
        format!(
            "Saved {} v{} (version_token={})",
            said(&it["name"]),
            said(&it["version"]),
            said(&it["version_token"])
        )
    })?;
    Ok(0)
}
