//! The `policy` of a request: an object or one word.

use std::collections::BTreeSet;

use jurat_core::{executor::session::Tier, policy::PolicyBinding};
use serde_json::{Value, json};
use utoipa::openapi::{RefOr, schema::Schema};

use super::kit::{
    faults::RequestFaults,
    json::short,
    request::{
        DraftField, FieldFault, FieldPath, Hidden, RequestField, SchemaParts, add_component,
        component, named, noted, object, one_of, request, text,
        unknown::FieldShape,
        values,
        values::{NotBlank, Whole, number, text_of},
    },
    words,
};
use crate::problem::Problem;

/// The policy of a request, before defaults are applied.
#[derive(Debug, Clone, Default)]
pub struct PolicyRequest {
    pub tier: Option<Tier>,
    pub labels: BTreeSet<String>,
    pub task_type: Option<String>,
    pub binding: Option<PolicyBinding>,
    pub timeout_ms: Option<u64>,
}

request! {
    /// The policy of a request: the deciding rules and the required sessions.
    pub strict struct PolicyObject, draft PolicyObjectDraft {
        /// The deciding policy, such as `vp.schema_only.v1`; the kind of job has a default.
        policy_id: Option<NotBlank>,
        /// The parameters of the policy; defaults to `{}`. Needs `policy_id`.
        policy_params: Option<PolicyParams>,
        /// Defaults to `1`. Needs `policy_id`.
        policy_version: Option<String>,
        /// Must be the correct hash; computed if left out. Needs `policy_id`.
        policy_hash: Option<String>,
        /// Delegate only: the task type that the executors are asked for; defaults to `delegate`.
        task_type: Option<NotBlank>;
        ..routing: PolicyRouting
    }

    /// The sessions required for a fact check.
    pub strict struct FactcheckPolicy, draft FactcheckPolicyDraft {
        policy_id: Hidden<NotBlank>,
        policy_params: Hidden<PolicyParams>,
        policy_version: Hidden<String>,
        policy_hash: Hidden<String>,
        task_type: Hidden<NotBlank>;
        ..routing: PolicyRouting
    }

    /// The sessions that a request is routed to, and how long they may take.
    pub open struct PolicyRouting, draft PolicyRoutingDraft {
        /// Lowest tier of sessions to route to; also sets the number of replicas: 1, 3 or 5.
        tier: Option<RequiredTier>,
        /// Labels that every session routed to must have.
        labels: Option<Vec<String>>,
        /// As in `execution`, which takes precedence.
        timeout_ms: Option<TimeoutMs>,
        /// As in `execution`, which takes precedence.
        timeout: Option<Seconds>,
    }
}

/// A deadline in milliseconds.
pub type TimeoutMs = Whole<1, 600_000>;

values! {
    /// The parameters of a policy.
    pub struct PolicyParams(Value): object() => params;

    /// A tier that a request can require.
    pub struct RequiredTier(Tier as String) like words::Tier => tier;

    /// A deadline in seconds, converted to milliseconds.
    pub struct Seconds(u64 as f64): number().minimum(Some(0.001)).maximum(Some(600)) => seconds;
}

/// The policy of a request: a policy id, a tier, or an object with both.
#[derive(Debug)]
pub enum PolicyChoice {
    /// The id of a policy, which contains a dot.
    Id(String),
    /// The lowest tier of sessions.
    Tier(Tier),
    /// An object with any of the fields.
    Object(Box<PolicyObject>),
}

impl RequestField for PolicyChoice {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        match value.as_str() {
            Some(id) if id.contains('.') => Some(Self::Id(id.to_owned())),
            Some(_) => noted(tier(value), at, faults).map(Self::Tier),
            None => Box::read(value, at, faults).map(Self::Object),
        }
    }

    fn describe() -> RefOr<Schema> {
        component::<Self>()
    }

    fn describe_parts(parts: &mut SchemaParts) {
        add_component::<Self>(parts);
    }

    fn shape() -> FieldShape {
        PolicyObject::shape()
    }
}

/// An object can say everything that a word can.
impl DraftField for PolicyChoice {
    type Draft = PolicyObjectDraft;
}

named!(
    PolicyChoice:
        one_of("A tier, the id of a policy (a string with a dot), or both in an object.")
            .item(component::<words::Tier>())
            .item(text().pattern(Some(r"\.")))
            .item(component::<PolicyObject>()),
    with words::Tier, PolicyObject
);

/// The policy of a fact check, which has its own schema.
#[derive(Debug)]
pub struct FactcheckPolicyChoice(pub PolicyChoice);

impl RequestField for FactcheckPolicyChoice {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        if value.is_string() {
            return PolicyChoice::read(value, at, faults).map(Self);
        }
        let policy = FactcheckPolicy::read(value, at, faults)?;
        Some(Self(PolicyChoice::Object(Box::new(PolicyObject {
            policy_id: policy.policy_id.0,
            policy_params: policy.policy_params.0,
            policy_version: policy.policy_version.0,
            policy_hash: policy.policy_hash.0,
            task_type: policy.task_type.0,
            routing: policy.routing,
        }))))
    }

    fn describe() -> RefOr<Schema> {
        component::<Self>()
    }

    fn describe_parts(parts: &mut SchemaParts) {
        add_component::<Self>(parts);
    }

    fn shape() -> FieldShape {
        FactcheckPolicy::shape()
    }
}

impl DraftField for FactcheckPolicyChoice {
    type Draft = FactcheckPolicyDraft;
}

named!(
    FactcheckPolicyChoice:
        one_of("A tier, alone or in an object.")
            .item(component::<words::Tier>())
            .item(component::<FactcheckPolicy>()),
    with words::Tier, FactcheckPolicy
);

impl PolicyChoice {
    /// Converts the policy and checks the rules across its fields.
    pub(super) fn checked(self, at: &FieldPath<'_>) -> Result<PolicyRequest, Problem> {
        let plain = PolicyRequest::default();
        match self {
            Self::Id(id) => {
                Ok(PolicyRequest { binding: Some(PolicyBinding::new(&id, json!({}))), ..plain })
            }
            Self::Tier(tier) => Ok(PolicyRequest { tier: Some(tier), ..plain }),
            Self::Object(policy) => policy.checked(at),
        }
    }
}

impl PolicyObject {
    fn checked(self, at: &FieldPath<'_>) -> Result<PolicyRequest, Problem> {
        let PolicyRouting { tier, labels, timeout_ms, timeout } = self.routing;
        let binding = match self.policy_id {
            None => {
                let orphans = [
                    ("policy_params", self.policy_params.is_some()),
                    ("policy_hash", self.policy_hash.is_some()),
                    ("policy_version", self.policy_version.is_some()),
                ];
                if let Some((orphan, _)) = orphans.into_iter().find(|(_, is_given)| *is_given) {
                    return Err(at.member(orphan).wrong("needs `policy_id` as well"));
                }
                None
            }
            Some(NotBlank(id)) => {
                let params = self.policy_params.map_or_else(|| json!({}), |params| params.0);
                let mut binding = PolicyBinding::new(&id, params);
                binding.policy_version = self.policy_version.unwrap_or(binding.policy_version);
                binding.policy_hash = self.policy_hash.unwrap_or(binding.policy_hash);
                Some(binding)
            }
        };
        Ok(PolicyRequest {
            tier: tier.map(|tier| tier.0),
            labels: labels.unwrap_or_default().into_iter().collect(),
            task_type: self.task_type.map(|it| it.0),
            binding,
            timeout_ms: deadline_ms(timeout_ms, timeout),
        })
    }
}

/// The deadline in milliseconds; `timeout_ms` takes precedence.
pub(super) fn deadline_ms(timeout_ms: Option<TimeoutMs>, timeout: Option<Seconds>) -> Option<u64> {
    timeout_ms.map(|it| it.0).or(timeout.map(|it| it.0))
}

fn params(value: &Value) -> Result<Value, FieldFault> {
    if value.is_object() { Ok(value.clone()) } else { Err("must be an object".into()) }
}

fn tier(value: &Value) -> Result<Tier, FieldFault> {
    let word = text_of(value)?;
    if word == "adaptive" {
        let reason = "`adaptive` is not supported; use fast, safe or oracle";
        return Err(FieldFault::Unsupported(reason.into()));
    }
    word.parse()
        .map_err(|()| format!("must be one of fast, safe, oracle, not `{}`", short(word)).into())
}

fn seconds(value: &Value) -> Result<u64, FieldFault> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range"
    )]
    match value.as_f64() {
        Some(seconds) if (0.001..=600.0).contains(&seconds) => Ok((seconds * 1000.0) as u64),
        _ => Err("must be seconds from 0.001 to 600".into()),
    }
}
