//! `jurat verifiers revoke` and `delete`, which ask a person for confirmation, but not a script.

use jurat_client::verifiers;
use jurat_core::verifier::{VerifierRef, VerifierSelector};

use super::CommandContext;
use crate::{
    args::RemoveVerifierArgs, commands::shared::confirm::is_wanted, failure::CliFailure,
    output::table::said,
};

pub(super) async fn revoke(
    context: &CommandContext,
    args: &RemoveVerifierArgs,
) -> anyhow::Result<u8> {
    let question =
        format!("Revoke {}? This cannot be undone, and its name stays taken.", args.verifier);
    if !is_wanted(args.yes, &question)? {
        context.out.note("nothing was revoked");
        return Ok(0);
    }
    let reply = context.send(verifiers::revoke(&args.verifier)).await?;
    context.out.confirm(&reply, || format!("Revoked {}", said(&reply.value.name)))?;
    Ok(0)
}

pub(super) async fn delete(
    context: &CommandContext,
    args: &RemoveVerifierArgs,
) -> anyhow::Result<u8> {
    let is_id = VerifierRef::parse(&args.verifier)
        .is_ok_and(|it| matches!(it.which, VerifierSelector::Id(_)) && it.version.is_none());
    if !is_id {
        return Err(CliFailure::usage(
            "`delete` takes the id of a verifier, to prevent mistakes; `jurat verifiers show NAME` prints it",
        ));
    }
    let question = format!(
        "Delete the verifier {} and all its versions and runs? This cannot be undone.",
        args.verifier
    );
    if !is_wanted(args.yes, &question)? {
        context.out.note("nothing was deleted");
        return Ok(0);
    }
    let reply = context.send(verifiers::delete(&args.verifier)).await?;
    let done = || format!("Permanently deleted {}", said(&reply.value.name));
    context.out.confirm(&reply, done)?;
    Ok(0)
}
