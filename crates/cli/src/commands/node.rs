//! `jurat node`.

use serde_json::json;

use super::Context;
use crate::{
    failure::Failure,
    output::{Format, table::fields},
    state::State,
};

/// What the signatures of requests to executors name as their algorithm.
const ALGORITHM: &str = "ed25519";

pub(super) fn run(context: &Context) -> anyhow::Result<u8> {
    if context.config.server.is_some() {
        return Err(Failure::usage(
            "`jurat node` reads the key from a state folder and cannot ask a server; leave out `--server` and JURAT_SERVER, and run the command on the server's machine",
        ));
    }
    let key = State::existing(&context.config.state_dir).existing_node_key()?;
    // Signatures name the key by itself.
    let (key_id, public_key) = (key.id(), key.id());
    match context.out.format {
        Format::Json => {
            let body =
                json!({ "key_id": key_id, "public_key": public_key, "algorithm": ALGORITHM });
            context.out.data(&body.to_string())?;
        }
        Format::Text => context.out.data(&fields(&[
            ("key id", key_id.to_owned()),
            ("public key", public_key.to_owned()),
            ("algorithm", ALGORITHM.to_owned()),
        ]))?,
    }
    Ok(0)
}
