//! A whole executor: it answers with the prompt in capital letters.
#![expect(clippy::print_stdout, reason = "whoever starts it waits for the line")]

use std::sync::Arc;

use async_trait::async_trait;
use jurat_runtime::{
    Capabilities, Evidence, Execute, Execution, ExecutorError, ExecutorOptions, ExecutorService,
    serve,
};
use serde_json::json;

struct Shout;

#[async_trait]
impl ExecutorService for Shout {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            task_types: vec!["delegate".to_owned()],
            profiles: vec!["default".to_owned()],
            provider_family: "shout".to_owned(),
            model_id: "shout-1".to_owned(),
            policies: vec![],
        }
    }

    async fn execute(&self, request: &Execute) -> Result<Execution, ExecutorError> {
        let prompt = request.inputs["prompt"].as_str().unwrap_or_default();
        let output = json!({"answer": prompt.to_uppercase()});
        Ok(Execution { output, evidence: Evidence::default() })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).unwrap_or_else(|| "8787".to_owned());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    serve(listener, Arc::new(Shout), ExecutorOptions::default(), shutdown).await?;
    Ok(())
}
