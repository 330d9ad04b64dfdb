//! The request for both subjects.

use bytes::Bytes;
use jurat_core::canonical::digest;
use serde_json::{Value, json};

/// `POST /verify` with an output of typical size, which passes the schema and the policy.
pub(crate) fn body() -> Bytes {
    let policy = "vp.schema_only.v1";
    let request = json!({
        "candidate": {
            "candidate_id": "cand-1",
            "execution_id": "exec-1",
            "output": output(),
            "evidence_inline": [{ "mime": "text/plain", "content": "trace:attempt-1" }],
            "evidence_refs": [],
        },
        "output_schema": schema(),
        "policy": {
            "policy_id": policy,
            "policy_version": "1",
            "policy_hash": digest(format!("{policy}{{}}").as_bytes()),
            "policy_params": {},
        },
    });
    Bytes::from(request.to_string())
}

fn output() -> Value {
    let risk = |name: &str, weight: f64| json!({ "name": name, "weight": weight, "open": true });
    json!({
        "answer": "The proposal carries three material risks, of which the second is the gravest.",
        "confidence": 0.91,
        "risks": [risk("currency", 0.2), risk("supplier", 0.7), risk("licence", 0.4)],
    })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["answer", "confidence", "risks"],
        "properties": {
            "answer": { "type": "string", "minLength": 1, "maxLength": 4000 },
            "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            "risks": {
                "type": "array",
                "maxItems": 20,
                "items": {
                    "type": "object",
                    "required": ["name", "weight"],
                    "properties": {
                        "name": { "type": "string", "pattern": "^[a-z]+$" },
                        "weight": { "type": "number", "minimum": 0 },
                        "open": { "type": "boolean" },
                    },
                    "additionalProperties": false,
                },
            },
        },
    })
}
