//! The request for every subject, and its translation for an executor.

use anyhow::Result;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use jurat_core::canonical::{canonical, digest};
use serde_json::{Value, json};

const POLICY: &str = "vp.schema_only.v1";

/// `POST /api/v3/validate`: a claim of typical size under the policy that is cheapest to check.
pub fn body(replicas: usize) -> Bytes {
    let request = json!({
        "claim": {
            "output": {
                "answer": "The proposal carries three material risks, of which the second is the gravest.",
                "confidence": 0.91,
                "risks": ["currency", "a supplier that may fail", "a licence that ends next year"],
            },
            "output_schema": {
                "type": "object",
                "required": ["answer", "confidence"],
                "properties": {
                    "answer": { "type": "string" },
                    "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
                    "risks": { "type": "array", "items": { "type": "string" } },
                },
            },
        },
        "policy": { "policy_id": POLICY, "policy_params": {} },
        "consensus": { "replicas": replicas, "aggregation": "majority" },
    });
    Bytes::from(request.to_string())
}

/// The bearer token, if the subject has one.
pub fn headers(key: &str) -> Result<Vec<(HeaderName, HeaderValue)>> {
    if key.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {key}"))?)])
}

/// The body of `POST /verify` for such a request.
pub fn to_verify(request: &Value, number: u64) -> Bytes {
    let claim = &request["claim"];
    let params = &request["policy"]["policy_params"];
    let mut hashed = POLICY.as_bytes().to_vec();
    hashed.extend(canonical(params));
    let call = json!({
        "candidate": {
            "candidate_id": format!("cand-{number}"),
            "execution_id": format!("exec-{number}"),
            "output": claim["output"],
            "evidence_inline": [],
            "evidence_refs": [],
        },
        "output_schema": claim["output_schema"],
        "policy": {
            "policy_id": POLICY,
            "policy_version": "1",
            "policy_hash": digest(&hashed),
            "policy_params": params,
        },
    });
    Bytes::from(call.to_string())
}
