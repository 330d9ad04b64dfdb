//! The verifier of the demo: deployed once, run twice, judged by rules without any model.

use jurat_client::verifiers;
use jurat_wire::api::verifier_runs::RunVerifierDraft;
use serde_json::{Value, json};

use super::title;
use crate::{
    client::ApiClient,
    commands::verifiers::show_run,
    output::{Output, OutputFormat},
};

/// The verifier that the guides use.
const VERIFIER: &str = include_str!("../../../../../docs/examples/names-its-source.json");
const RESPONSES: [&str; 2] =
    ["The bridge opened in 1932, says the city archive.", "Everybody knows when it opened."];

/// Returns the deployed verifier and its runs.
pub(super) async fn play(out: Output, client: &ApiClient) -> anyhow::Result<Value> {
    title(out, "\n3. Does the response name its source?  (a verifier, judged by rules)")?;
    let deployed = client.send(verifiers::deploy_bytes(VERIFIER.into())).await?.document();
    let mut runs = Vec::new();
    for response in RESPONSES {
        let inputs = [("response".to_owned(), response.to_owned())].into();
        let draft = RunVerifierDraft { inputs: Some(inputs), ..RunVerifierDraft::default() };
        let run = client.send(verifiers::run("names-its-source", &draft)).await?;
        if out.format == OutputFormat::Text {
            out.text(&format!("“{response}”\n{}", show_run::result(out, &run.value)))?;
        }
        runs.push(run.document());
    }
    Ok(json!({ "deployed": deployed, "runs": runs }))
}
