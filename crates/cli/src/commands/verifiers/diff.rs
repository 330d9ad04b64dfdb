//! `jurat verifiers diff`.

use anyhow::bail;
use serde_json::{Value, json};

use super::show_diff;
use super::{CommandContext, version_path};
use crate::{
    args::DiffVersionsArgs,
    client::{ApiCall, ApiClient},
    failure::CliFailure,
    output::OutputFormat,
};

pub(super) async fn run(context: &CommandContext, args: &DiffVersionsArgs) -> anyhow::Result<u8> {
    let (before, after) = context.with_client(async |client| both(client, args).await).await?;
    let (from, to) = (&before["version"], &after["version"]);
    let text = match context.out.format {
        OutputFormat::Json => {
            let changed = show_diff::changed(&before, &after);
            json!({
                "verifier_id": after["verifier_id"],
                "name": after["name"],
                "from": from,
                "to": to,
                "changed": changed,
            })
            .to_string()
        }
        OutputFormat::Text => show_diff::text(context.out, &before, &after),
    };
    context.out.data(&text)?;
    if from == to {
        context.out.note("both are the same version; choose another with `--from` or `--to`");
    }
    Ok(0)
}

/// The two versions. Without a later one it is the current one, without an earlier one the one
/// before.
async fn both(client: &ApiClient, args: &DiffVersionsArgs) -> anyhow::Result<(Value, Value)> {
    let version = async |number: Option<u32>| {
        let reply = client.send(ApiCall::get(version_path(&args.verifier, number))).await?;
        anyhow::Ok(reply.success()?.value)
    };
    let after = version(args.to).await?;
    let Some(to) = after["version"].as_u64().and_then(|it| u32::try_from(it).ok()) else {
        bail!("the server did not return the version number")
    };
    let from = match args.from {
        Some(from) => from,
        None if to == 1 => {
            let text = format!(
                "`{}` has no version before version 1; choose a later one with `--to`",
                args.verifier
            );
            return Err(CliFailure::usage(text));
        }
        None => to - 1,
    };
    Ok((version(Some(from)).await?, after))
}
