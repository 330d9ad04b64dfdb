//! `jurat verifiers diff`.

use jurat_client::verifiers;
use jurat_wire::api::verifiers::VerifierBody;
use serde_json::json;

use super::CommandContext;
use super::show_diff;
use crate::{args::DiffVersionsArgs, client::ApiClient, failure::CliFailure, output::OutputFormat};

pub(super) async fn run(context: &CommandContext, args: &DiffVersionsArgs) -> anyhow::Result<u8> {
    let Versions { before, after } =
        context.with_client(async |client| both(client, args).await).await?;
    let (from, to) = (before.version, after.version);
    let text = match context.out.format {
        OutputFormat::Json => {
            let changed = show_diff::changed(&before, &after);
            json!({
                "verifier_id": after.verifier_id,
                "name": after.name,
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

/// Two versions of a verifier.
struct Versions {
    before: VerifierBody<'static>,
    after: VerifierBody<'static>,
}

/// The two versions: by default the current one and the one before it.
async fn both(client: &ApiClient, args: &DiffVersionsArgs) -> anyhow::Result<Versions> {
    let version = async |number: Option<u32>| {
        anyhow::Ok(client.send(verifiers::show(&args.verifier, number)).await?.value)
    };
    let after = version(args.to).await?;
    let to = after.version;
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
    Ok(Versions { before: version(Some(from)).await?, after })
}
