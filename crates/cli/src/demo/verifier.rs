//! The verifier of the demo: deployed once, run twice, judged by rules without any model.

use serde_json::{Value, json};

use super::title;
use crate::{
    client::{Call, Client},
    output::{Format, Output, verifier_run},
};

const ROUTE: &str = "/v1/verifiers";
/// The one that the guides use.
const VERIFIER: &str = include_str!("../../../../docs/examples/names-its-source.json");
const RESPONSES: [&str; 2] =
    ["The bridge opened in 1932, says the city archive.", "Everybody knows when it opened."];

/// What was deployed and what was judged.
pub(super) async fn play(out: Output, client: &Client) -> anyhow::Result<Value> {
    title(out, "\n3. Does the response name its source?  (a verifier, judged by rules)")?;
    let deployed = client.send(Call::post_written(ROUTE, VERIFIER.into())).await?.well()?.value;
    let mut runs = Vec::new();
    for response in RESPONSES {
        let body = json!({ "inputs": { "response": response } });
        let call = Call::post(format!("{ROUTE}/names-its-source/runs"), body);
        let run = client.send(call).await?.well()?.value;
        if out.format == Format::Text {
            out.text(&format!("“{response}”\n{}", verifier_run::result(out, &run)))?;
        }
        runs.push(run);
    }
    Ok(json!({ "deployed": deployed, "runs": runs }))
}
