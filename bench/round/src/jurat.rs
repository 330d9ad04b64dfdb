//! The place of the real server among the subjects.

use anyhow::{Result, bail};

/// Who is measured, the baseline first; `jurat` joins the list when [`serve`] serves.
pub(crate) const SUBJECTS: [&str; 1] = ["bare"];

/// Starts the server on a free port with a fresh store, registers an executor and a session for
/// each address, and then says `announce(port, key)`: the key is sent as a bearer token.
///
/// It returns when `until_parent_goes` does.
#[expect(clippy::unused_async, reason = "the server that comes here is asynchronous")]
pub(crate) async fn serve(executors: Vec<String>) -> Result<()> {
    bail!("the server is not part of this measurement yet; it would ask {executors:?}")
}
