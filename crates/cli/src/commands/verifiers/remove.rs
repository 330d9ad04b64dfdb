//! `jurat verifiers revoke` and `delete`: they ask a person, and trust a script.

use jurat_core::verifier::{VerifierRef, Which};

use super::{Context, ROUTE};
use crate::{
    args::RemoveVerifier,
    client::{Call, path},
    commands::confirm::is_wanted,
    failure::Failure,
    output::table::said,
};

pub(super) async fn revoke(context: &Context, args: &RemoveVerifier) -> anyhow::Result<u8> {
    let question =
        format!("Revoke {}? This cannot be undone, and its name stays taken.", args.verifier);
    if !is_wanted(args.yes, &question)? {
        context.out.note("nothing was revoked");
        return Ok(0);
    }
    let reply = context.send(Call::delete(path(ROUTE, &[&args.verifier]))).await?;
    context.out.confirm(&reply, || format!("Revoked {}", said(&reply.value["name"])))?;
    Ok(0)
}

pub(super) async fn delete(context: &Context, args: &RemoveVerifier) -> anyhow::Result<u8> {
    let is_id = VerifierRef::parse(&args.verifier)
        .is_ok_and(|it| matches!(it.which, Which::Id(_)) && it.version.is_none());
    if !is_id {
        return Err(Failure::usage(
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
    let reply = context.send(Call::delete(path(ROUTE, &[&args.verifier, "permanent"]))).await?;
    let done = || format!("Permanently deleted {}", said(&reply.value["name"]));
    context.out.confirm(&reply, done)?;
    Ok(0)
}
