//! The place of the runtime among the subjects.

use anyhow::{Result, bail};

/// Who is measured and what stands in a right answer, the baseline first.
///
/// `("runtime", "\"passed\":true")` joins the list when [`serve`] serves.
pub(crate) const SUBJECTS: [(&str, &str); 1] = [("echo", "cand-1")];

/// Serves the runtime's router on a free port, says `announce(port, "")`, and returns when
/// `until_parent_goes` does. The warm-up puts the schema into its cache.
#[expect(clippy::unused_async, reason = "the server that comes here is asynchronous")]
pub(crate) async fn serve() -> Result<()> {
    bail!("the runtime is not part of this measurement yet")
}
