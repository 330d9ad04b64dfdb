//! The same round in the words of each surface.

use anyhow::Result;
use bytes::Bytes;
use http::header::{ACCEPT, HeaderName, HeaderValue};
use jurat_bench_load::{Method, RequestVariation, RunningRole, Target};
use jurat_bench_round::request::{body, headers};
use serde_json::{Value, json};

/// The replicas of every round; the tier `safe`, which chats select as a model, has as many.
pub(crate) const REPLICAS: usize = 3;
/// The load generator writes a number of its own here, because a message is sent only once.
const NUMBER: &str = "0000000000000000";
/// The newest revision, in which every message is self-contained.
const MCP_REVISION: &str = "2026-07-28";
const PROMPT: &str = "Count the ships in the harbour, and leave out those that only pass by.";

/// A job, and the surfaces on which it is measured, the baseline first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeasuredJob {
    Validate,
    Delegate,
}

/// A way to ask for the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeasuredSurface {
    Rest,
    /// With an idempotency key, which A2A has in every message.
    RestOnce,
    Mcp,
    A2aRpc,
    A2aHttp,
    OpenAi,
}

impl MeasuredJob {
    pub(crate) const ALL: [Self; 2] = [Self::Validate, Self::Delegate];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Delegate => "delegate",
        }
    }

    pub(crate) const fn surfaces(self) -> &'static [MeasuredSurface] {
        use MeasuredSurface::{A2aHttp, A2aRpc, Mcp, OpenAi, Rest, RestOnce};
        match self {
            Self::Validate => &[Rest, RestOnce, Mcp, A2aRpc, A2aHttp],
            Self::Delegate => &[Rest, RestOnce, Mcp, A2aRpc, A2aHttp, OpenAi],
        }
    }

    /// The body on `/api/v3`.
    fn request(self) -> Result<Value> {
        Ok(match self {
            Self::Validate => serde_json::from_slice(&body(REPLICAS))?,
            // The job that a chat becomes.
            Self::Delegate => json!({
                "objective": PROMPT,
                "input": { "prompt": PROMPT, "messages": messages() },
                "policy": { "tier": "safe" },
            }),
        })
    }
}

impl MeasuredSurface {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::RestOnce => "rest-idempotent",
            Self::Mcp => "mcp",
            Self::A2aRpc => "a2a-rpc",
            Self::A2aHttp => "a2a-http",
            Self::OpenAi => "openai",
        }
    }

    /// The request for the job to a server.
    pub(crate) fn target(self, job: MeasuredJob, server: &RunningRole) -> Result<Target> {
        let body = self.body(job)?;
        let mut sent = headers(&server.note)?;
        sent.extend(self.headers(job));
        Ok(Target {
            address: server.address,
            method: Method::POST,
            path: self.path(job),
            headers: sent,
            vary: self.vary(&body),
            body: Bytes::from(body),
            marker: r#""outcome":"agreed""#.to_owned(),
        })
    }

    fn path(self, job: MeasuredJob) -> String {
        match self {
            Self::Rest | Self::RestOnce => format!("/api/v3/{}", job.name()),
            Self::Mcp => "/mcp".to_owned(),
            Self::A2aRpc => "/a2a".to_owned(),
            Self::A2aHttp => "/a2a/v1/message:send".to_owned(),
            Self::OpenAi => "/v1/chat/completions".to_owned(),
        }
    }

    fn headers(self, job: MeasuredJob) -> Vec<(HeaderName, HeaderValue)> {
        let text = |name, value| (HeaderName::from_static(name), HeaderValue::from_static(value));
        match self {
            Self::Rest | Self::RestOnce | Self::OpenAi => Vec::new(),
            Self::Mcp => vec![
                (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
                text("mcp-protocol-version", MCP_REVISION),
                text("mcp-method", "tools/call"),
                text("mcp-name", job.name()),
            ],
            Self::A2aRpc | Self::A2aHttp => vec![text("a2a-version", "1.0")],
        }
    }

    fn vary(self, body: &str) -> RequestVariation {
        match self {
            Self::Rest | Self::Mcp | Self::OpenAi => RequestVariation::Nothing,
            Self::RestOnce => {
                RequestVariation::Header { name: HeaderName::from_static("idempotency-key") }
            }
            Self::A2aRpc | Self::A2aHttp => RequestVariation::zeros_of(body),
        }
    }

    fn body(self, job: MeasuredJob) -> Result<String> {
        let mut request = job.request()?;
        let body = match self {
            Self::Rest | Self::RestOnce => request,
            Self::Mcp => {
                let meta = json!({
                    "io.modelcontextprotocol/protocolVersion": MCP_REVISION,
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                let params = json!({ "name": job.name(), "arguments": request, "_meta": meta });
                json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
            }
            Self::A2aRpc | Self::A2aHttp => {
                request["skill"] = json!(job.name());
                let parts = json!([{ "data": request }]);
                let message = json!({ "messageId": NUMBER, "role": "ROLE_USER", "parts": parts });
                let params = json!({ "message": message });
                if self == Self::A2aHttp {
                    params
                } else {
                    json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params })
                }
            }
            Self::OpenAi => json!({ "model": "jurat/safe", "messages": messages() }),
        };
        Ok(body.to_string())
    }
}

fn messages() -> Value {
    json!([{ "role": "user", "content": PROMPT }])
}
