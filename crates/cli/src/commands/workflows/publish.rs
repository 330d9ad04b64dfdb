//! `jurat workflows publish`, `put-file` and `rm-file`.

use std::path::Path;

use jurat_client::workflows;
use jurat_wire::api::workflows::{
    BindingDraft, FileDraft, PatchWorkflowFilesDraft, SaveWorkflowDraft,
};

use super::{CommandContext, folder};
use crate::{
    args::{PublishWorkflowArgs, PutFileArgs, RemoveFileArgs},
    commands::shared::given,
    failure::CliFailure,
    output::table::{said, whole_text},
};

pub(super) async fn publish(
    context: &CommandContext,
    args: &PublishWorkflowArgs,
) -> anyhow::Result<u8> {
    let call = workflows::save(&draft(args)?);
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

fn draft(args: &PublishWorkflowArgs) -> anyhow::Result<SaveWorkflowDraft> {
    let is_folder = args.file.is_dir();
    if is_folder && args.clear_files {
        let text =
            "`--clear-files` contradicts a folder, whose files are sent; use one or the other";
        return Err(CliFailure::usage(text));
    }
    let (body, files) = if is_folder {
        let found = folder::read(&args.file)?;
        (found.body, Some(found.files))
    } else {
        (folder::text(&args.file)?, args.clear_files.then(Vec::new))
    };
    let verifiers = args.verifier.iter().map(|(name, id)| BindingDraft {
        name: name.clone(),
        verifier_id: id.clone(),
        version: None,
    });
    let verifiers: Vec<BindingDraft> = verifiers.collect();
    Ok(SaveWorkflowDraft {
        name: args.name.clone(),
        description: args.description.clone(),
        body,
        expected_version_token: args.expected_version_token.clone(),
        outcome: args.outcome.clone(),
        tags: given(&args.tag),
        source: args.source.clone(),
        verifiers: (args.clear_verifiers || !verifiers.is_empty()).then_some(verifiers),
        files,
        workflow_id: args.workflow_id.clone(),
        ..SaveWorkflowDraft::default()
    })
}

pub(super) async fn put_file(context: &CommandContext, args: &PutFileArgs) -> anyhow::Result<u8> {
    let name = match (&args.path, args.file.file_name()) {
        (Some(path), _) => path.clone(),
        (None, Some(name)) if args.file != Path::new("-") => name.to_string_lossy().into_owned(),
        (None, _) => {
            return Err(CliFailure::usage("add `--path`, the path of the file in the workflow"));
        }
    };
    let file = FileDraft {
        executable: args.executable.then_some(true),
        purpose: args.purpose.clone(),
        ..folder::entry(&name, &args.file)?
    };
    let draft =
        PatchWorkflowFilesDraft { files: Some(vec![file]), ..PatchWorkflowFilesDraft::default() };
    let token = args.expected_version_token.as_deref();
    patch(context, &args.named.workflow, token, draft).await
}

pub(super) async fn rm_file(context: &CommandContext, args: &RemoveFileArgs) -> anyhow::Result<u8> {
    let draft = PatchWorkflowFilesDraft {
        delete_paths: Some(vec![args.path.clone()]),
        ..PatchWorkflowFilesDraft::default()
    };
    let token = args.expected_version_token.as_deref();
    patch(context, &args.named.workflow, token, draft).await
}

/// Changes individual files: of the version with this token, or of the current version.
async fn patch(
    context: &CommandContext,
    workflow: &str,
    token: Option<&str>,
    mut draft: PatchWorkflowFilesDraft,
) -> anyhow::Result<u8> {
    let reply = context
        .with_client(async |client| {
            draft.expected_version_token = if let Some(token) = token {
                token.to_owned()
            } else {
                let found = client.send(workflows::show(workflow, None)).await?;
                found.value.version_token.into_owned()
            };
            Ok(client.send(workflows::patch_files(workflow, &draft)).await?)
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
