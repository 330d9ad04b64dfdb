//! `jurat workflows publish`, `put-file` and `rm-file`.

use std::path::Path;

use jurat_client::workflows;
use serde_json::{Map, Value, json};

use super::{CommandContext, folder};
use crate::{
    args::{PublishWorkflowArgs, PutFileArgs, RemoveFileArgs},
    failure::CliFailure,
    output::table::{said, whole_text},
};

pub(super) async fn publish(
    context: &CommandContext,
    args: &PublishWorkflowArgs,
) -> anyhow::Result<u8> {
    let call = workflows::save(&body(args)?);
    let reply = context.send(call.idempotency_key(args.idempotency_key.as_deref())).await?;
    context.out.confirm(&reply, || {
        let it = &reply.value;
        format!(
            "Saved {} v{} (workflow_id={}, version_token={})",
            said(&it.name),
            it.version,
            said(&it.workflow_id),
            said(&it.version_token)
        )
    })?;
    for note in &reply.value.authoring_notes {
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
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    set("expected_version_token", json!(args.expected_version_token));
    if is_folder {
        let found = folder::read(&args.file)?;
        set("body", json!(found.body));
        set("files", json!(found.files));
    } else {
        set("body", json!(folder::text(&args.file)?));
    }
    if args.clear_files {
        set("files", json!([]));
    }
    if args.clear_verifiers {
        set("verifiers", json!([]));
    }
    if !args.verifier.is_empty() {
        let bound = args.verifier.iter();
        let bound = bound.map(|(name, id)| json!({ "name": name, "verifier_id": id }));
        set("verifiers", json!(bound.collect::<Vec<_>>()));
    }
    if !args.tag.is_empty() {
        set("tags", json!(args.tag));
    }
    for (name, value) in [
        ("name", &args.name),
        ("description", &args.description),
        ("outcome", &args.outcome),
        ("source", &args.source),
        ("workflow_id", &args.workflow_id),
    ] {
        if let Some(value) = value {
            set(name, json!(value));
        }
    }
    Ok(Value::Object(body))
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
    if let Some(members) = entry.as_object_mut() {
        if args.executable {
            members.insert("executable".to_owned(), json!(true));
        }
        if let Some(purpose) = &args.purpose {
            members.insert("purpose".to_owned(), json!(purpose));
        }
    }
    let change = FilesChange {
        workflow: &args.named.workflow,
        member: ("files", json!([entry])),
        token: args.expected_version_token.as_deref(),
    };
    patch(context, change).await
}

pub(super) async fn rm_file(context: &CommandContext, args: &RemoveFileArgs) -> anyhow::Result<u8> {
    let change = FilesChange {
        workflow: &args.named.workflow,
        member: ("delete_paths", json!([args.path])),
        token: args.expected_version_token.as_deref(),
    };
    patch(context, change).await
}

/// A change of individual files.
struct FilesChange<'a> {
    workflow: &'a str,
    /// The member of the request that describes the change.
    member: (&'static str, Value),
    /// The token of the version to change; `None` for the current version.
    token: Option<&'a str>,
}

async fn patch(context: &CommandContext, change: FilesChange<'_>) -> anyhow::Result<u8> {
    let FilesChange { workflow, member: (name, value), token } = change;
    let reply = context
        .with_client(async |client| {
            let token = if let Some(token) = token {
                token.to_owned()
            } else {
                let found = client.send(workflows::show(workflow, None)).await?;
                found.value.version_token.into_owned()
            };
            let body = json!({ name: value, "expected_version_token": token });
            Ok(client.send(workflows::patch_files(workflow, &body)).await?)
        })
        .await?;
    context.out.confirm(&reply, || {
        let it = &reply.value;
        format!(
            "Saved {} v{} (version_token={})",
            said(&it.name),
            it.version,
            said(&it.version_token)
        )
    })?;
    Ok(0)
}
