//! `jurat node`.

use serde_json::json;

use super::CommandContext;
use crate::{
    failure::CliFailure,
    output::{OutputFormat, table::fields},
    state::StateFolder,
};

/// The algorithm that is named in the signatures of requests to executors.
const ALGORITHM: &str = "ed25519";

pub(super) fn run(context: &CommandContext) -> anyhow::Result<u8> {
    if context.config.server.is_some() {
        return Err(CliFailure::usage(
            "`jurat node` reads the key from a state folder and cannot ask a server; leave out `--server` and JURAT_SERVER, and run the command on the server's machine",
        ));
    }
    let key = StateFolder::existing(&context.config.state_dir).existing_node_key()?;
    // Signatures name the key by the public key itself.
    let (key_id, public_key) = (key.id(), key.id());
    match context.out.format {
        OutputFormat::Json => {
            let body =
                json!({ "key_id": key_id, "public_key": public_key, "algorithm": ALGORITHM });
            context.out.data(&body.to_string())?;
        }
        OutputFormat::Text => context.out.data(&fields(&[
            ("key id", key_id.to_owned()),
            ("public key", public_key.to_owned()),
            ("algorithm", ALGORITHM.to_owned()),
        ]))?,
    }
    Ok(0)
}
