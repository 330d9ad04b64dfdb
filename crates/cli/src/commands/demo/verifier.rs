//! The verifier of the demo: deployed once, run twice, judged by rules without any model.

use serde_json::{Value, json};

use super::title;
use crate::{
    client::{ApiCall, ApiClient},
    commands::verifiers::show_run,
    output::{Output, OutputFormat},
};

const ROUTE: &str = "/v1/verifiers";
/// The one that the guides use.
const VERIFIER: &str = include_str!("../../../../../docs/examples/names-its-source.json");
const RESPONSES: [&str; 2] =
    ["The bridge opened in 1932, says the city archive.", "Everybody knows when it opened."];

/// What was deployed and what was judged.
pub(super) async fn play(out: Output, client: &ApiClient) -> anyhow::Result<Value> {
    title(out, "\n3. Does the response name its source?  (a verifier, judged by rules)")?;
    let deployed =
        client.send(ApiCall::post_written(ROUTE, VERIFIER.into())).await?.success()?.value;
    let mut runs = Vec::new();
    for response in RESPONSES {
        let body = json!({ "inputs": { "response": response } });
        let call = ApiCall::post(format!("{ROUTE}/names-its-source/runs"), body);
        let run = client.send(call).await?.success()?.value;
        if out.format == OutputFormat::Text {
            out.text(&format!("“{response}”\n{}", show_run::result(out, &run)))?;
        }
        runs.push(run);
    }
    Ok(json!({ "deployed": deployed, "runs": runs }))
}
