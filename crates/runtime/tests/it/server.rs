//! An executor on a port of its own, and a client for it.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::net::TcpListener;

use jurat_core::canonical;
use jurat_runtime::{ExecutorOptions, ExecutorService, serve};

#[derive(Debug, Clone)]
pub(crate) struct Server {
    address: SocketAddr,
    http: reqwest::Client,
    token: Option<&'static str>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) json: Value,
}

impl Server {
    pub(crate) async fn start(executor: impl ExecutorService, options: ExecutorOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = serve(listener, Arc::new(executor), options, std::future::pending());
        background(async move { server.await.unwrap() });
        Self::at(address)
    }

    /// An executor that was started elsewhere.
    pub(crate) fn at(address: SocketAddr) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the client of a test is no client of Jurat")]
        let http = reqwest::Client::new();
        Self { address, http, token: None }
    }

    pub(crate) fn with_token(&self, token: &'static str) -> Self {
        Self { token: Some(token), ..self.clone() }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.http.get(self.url(path))).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_text(path, body.to_string()).await
    }

    pub(crate) async fn post_text(&self, path: &str, body: impl Into<reqwest::Body>) -> Reply {
        let request = self.http.post(self.url(path)).header("content-type", "application/json");
        self.send(request.body(body)).await
    }

    /// Posts with additional headers.
    pub(crate) async fn post_with(
        &self,
        path: &str,
        body: &str,
        headers: &[(&'static str, String)],
    ) -> Reply {
        let mut request = self.http.post(self.url(path)).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        self.send(request.body(body.to_owned())).await
    }

    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(crate) async fn post_as(&self, path: &str, kind: &str, body: &str) -> Reply {
        let request = self.http.post(self.url(path)).header("content-type", kind);
        self.send(request.body(body.to_owned())).await
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    async fn send(&self, mut request: reqwest::RequestBuilder) -> Reply {
        if let Some(token) = self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body = response.bytes().await.unwrap();
        Reply { status, json: serde_json::from_slice(&body).unwrap() }
    }
}

#[expect(clippy::disallowed_methods, reason = "ends with the test's own runtime")]
pub(crate) fn background(future: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(future));
}

pub(crate) fn execute_request(execution_id: &str, task_type: &str, inputs: &Value) -> Value {
    json!({
        "task_id": "task-1", "execution_id": execution_id, "task_type": task_type,
        "inputs": inputs, "profile": "default", "task_contract": {"output_schema": {}},
        "stage": "explore", "attempt_id": "attempt-1", "seed_bundle": null,
    })
}

pub(crate) fn verify_request(
    output: &Value,
    schema: &Value,
    policy: &str,
    params: &Value,
) -> Value {
    let mut preimage = policy.as_bytes().to_vec();
    preimage.extend(canonical::canonical(params));
    json!({
        "candidate": {
            "candidate_id": "cand-1", "execution_id": "exec-1", "output": output,
            "evidence_inline": [], "evidence_refs": [],
        },
        "output_schema": schema,
        "policy": {
            "policy_id": policy, "policy_version": "1",
            "policy_hash": canonical::digest(&preimage), "policy_params": params,
        },
    })
}

/// The hash that the contract prescribes, computed independently of the code under test.
pub(crate) fn expected_hash(request: &Value, response: &Value) -> String {
    let text = format!(
        r#"{{"candidate_id":{},"execution_id":{},"model_id":{},"passed":{},"policy_hash":{},"provider_family":{},"reason_codes":{},"score":{}}}"#,
        request["candidate"]["candidate_id"],
        request["candidate"]["execution_id"],
        response["model_id"],
        response["passed"],
        request["policy"]["policy_hash"],
        response["provider_family"],
        response["reason_codes"],
        response["score"],
    );
    canonical::digest(text.as_bytes())
}
