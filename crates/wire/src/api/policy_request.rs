//! The `policy` of a request: an object, or one word.

use std::collections::BTreeSet;

use jurat_core::{executor::session::Tier, policy::PolicyBinding};
use serde_json::{Value, json};
use utoipa::{
    ToSchema,
    openapi::schema::{Object, ObjectBuilder, SchemaType, Type},
};

use super::kit::{
    fields::{RequestFields, short},
    words,
};
use crate::problem::Problem;

/// What a request says about policy, before defaults.
#[derive(Debug, Clone, Default)]
pub struct PolicyRequest {
    pub tier: Option<Tier>,
    pub labels: BTreeSet<String>,
    pub task_type: Option<String>,
    pub binding: Option<PolicyBinding>,
    pub timeout_ms: Option<u64>,
}

/// The policy of a request: the deciding rules and the required sessions.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyObject {
    /// Lowest tier of sessions to route to; also sets the number of replicas: 1, 3 or 5.
    pub tier: Option<words::Tier>,
    /// Labels that every session routed to must have.
    pub labels: Option<Vec<String>>,
    /// The deciding policy, such as `vp.schema_only.v1`.
    #[schema(pattern = r"\S")]
    pub policy_id: Option<String>,
    /// Needs `policy_id`.
    #[schema(schema_with = params)]
    pub policy_params: Option<Value>,
    /// Needs `policy_id`.
    pub policy_version: Option<String>,
    /// Needs `policy_id`; must be the correct hash.
    pub policy_hash: Option<String>,
    /// Delegate only: the task type that the executors are asked for.
    #[schema(pattern = r"\S")]
    pub task_type: Option<String>,
    /// As in `execution`, which takes precedence.
    #[schema(minimum = 1, maximum = 600_000)]
    pub timeout_ms: Option<u64>,
    /// As in `execution`, which takes precedence.
    #[schema(minimum = 0.001, maximum = 600)]
    pub timeout: Option<f64>,
}

/// The sessions required for a fact check.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FactcheckPolicy {
    /// Lowest tier of sessions to route to; also sets the number of replicas: 1, 3 or 5.
    pub tier: Option<words::Tier>,
    /// Labels that every session routed to must have.
    pub labels: Option<Vec<String>>,
    /// As in `execution`, which takes precedence.
    #[schema(minimum = 1, maximum = 600_000)]
    pub timeout_ms: Option<u64>,
    /// As in `execution`, which takes precedence.
    #[schema(minimum = 0.001, maximum = 600)]
    pub timeout: Option<f64>,
}

fn params() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some("The parameters of the policy. Needs `policy_id`."))
        .build()
}

pub fn decode(body: &RequestFields<'_>) -> Result<PolicyRequest, Problem> {
    match body.get("policy") {
        None => Ok(PolicyRequest::default()),
        Some(Value::String(word)) if word.contains('.') => {
            let binding = Some(PolicyBinding::new(word, json!({})));
            Ok(PolicyRequest { binding, ..PolicyRequest::default() })
        }
        Some(Value::String(word)) => {
            Ok(PolicyRequest { tier: tier(body, "policy", word)?, ..PolicyRequest::default() })
        }
        Some(_) => match body.object("policy")? {
            Some(policy) => decode_object(&policy),
            None => Ok(PolicyRequest::default()),
        },
    }
}

fn decode_object(policy: &RequestFields<'_>) -> Result<PolicyRequest, Problem> {
    let tier = match policy.text("tier")? {
        Some(word) => tier(policy, "tier", word)?,
        None => None,
    };
    let task_type = match policy.get("task_type") {
        None => None,
        Some(_) => Some(policy.required_text("task_type")?.to_owned()),
    };
    Ok(PolicyRequest {
        tier,
        labels: policy.texts("labels")?.into_iter().map(str::to_owned).collect(),
        task_type,
        binding: binding(policy)?,
        timeout_ms: timeout(policy)?,
    })
}

fn binding(policy: &RequestFields<'_>) -> Result<Option<PolicyBinding>, Problem> {
    if policy.get("policy_id").is_none() {
        let orphan = ["policy_params", "policy_hash", "policy_version"]
            .into_iter()
            .find(|name| policy.get(name).is_some());
        return match orphan {
            None => Ok(None),
            Some(name) => Err(policy.wrong(name, "needs `policy_id` as well")),
        };
    }
    let policy_id = policy.required_text("policy_id")?;
    let params = policy.get("policy_params").cloned().unwrap_or_else(|| json!({}));
    if !params.is_object() {
        return Err(policy.wrong("policy_params", "must be an object"));
    }
    let mut binding = PolicyBinding::new(policy_id, params);
    if let Some(version) = policy.text("policy_version")? {
        version.clone_into(&mut binding.policy_version);
    }
    if let Some(hash) = policy.text("policy_hash")? {
        hash.clone_into(&mut binding.policy_hash);
    }
    Ok(Some(binding))
}

fn tier(fields: &RequestFields<'_>, name: &str, word: &str) -> Result<Option<Tier>, Problem> {
    if word == "adaptive" {
        return Err(
            fields.unsupported(name, "`adaptive` is not supported; use fast, safe or oracle")
        );
    }
    word.parse().map(Some).map_err(|()| {
        let reason = format!("must be one of fast, safe, oracle, not `{}`", short(word));
        fields.wrong(name, &reason)
    })
}

/// The deadline in milliseconds, from `timeout_ms` or from `timeout` in seconds.
pub fn timeout(fields: &RequestFields<'_>) -> Result<Option<u64>, Problem> {
    const LONGEST_MS: u64 = 600_000;
    let given = fields.whole("timeout_ms", 1, LONGEST_MS)?;
    let Some(value) = fields.get("timeout") else { return Ok(given) };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range"
    )]
    match value.as_f64() {
        Some(seconds) if (0.001..=600.0).contains(&seconds) => {
            Ok(given.or(Some((seconds * 1000.0) as u64)))
        }
        _ => Err(fields.wrong("timeout", "must be seconds from 0.001 to 600")),
    }
}
