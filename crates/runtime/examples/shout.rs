//! A whole executor: it answers with the prompt in capital letters.

use std::sync::Arc;

use async_trait::async_trait;
use jurat_runtime::{
    Capabilities, Evidence, Execute, Execution, Executor, ExecutorError, Options, serve,
};
use serde_json::json;

struct Shout;

#[async_trait]
impl Executor for Shout {
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
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8787").await?;
    let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    serve(listener, Arc::new(Shout), Options::default(), shutdown).await?;
    Ok(())
}
