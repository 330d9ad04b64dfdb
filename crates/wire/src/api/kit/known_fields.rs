//! The known fields of each request, read from the type that describes it.
//!
//! A field that is not known is refused by name, so that a misspelt or misplaced one never weakens
//! a request in silence. Where a surface must ignore it, the answer says so.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::fields::short;
use crate::api::{
    agent_events::SendAgentEventRequest,
    agent_runs::{AgentRunRequestBody, AgentRunSpecBody},
    consensus_request::{
        DelegateRequest, DelegateRequestV2, FactcheckRequest, ValidateRequest, ValidateRequestV2,
    },
    credits::GrantRequest,
    executors::AddExecutorRequest,
    keys::{CreateKeyRequest, RotateKeyRequest},
    logins::ApproveRequest,
    mcp::{
        people::{ListSharesArguments, ShareArguments},
        rounds::{ListRoundsArguments, RoundArguments},
        tasks::{
            GetRunArguments, GetTaskArguments, KnowledgeArguments, ListRunsArguments,
            ListTasksArguments, RunArguments, RunEventsArguments, TaskArguments,
            TaskEventsArguments, TaskSampleArguments,
        },
    },
    prune::PruneRequest,
    sessions::AddSessionRequest,
    shares::AnswerShareRequest,
    tasks::{CancelTaskRequest, FeedbackRequest, TaskContractBody, TaskOrder},
    verifier_tests::{AttackVerifierRequest, TestVerifierRequest},
};

/// A field that the decoder knows and the description leaves out, and the reason.
pub type UndescribedField = (&'static str, &'static str);

/// A request whose fields are all known.
pub trait DescribedRequest: ToSchema {
    const UNDESCRIBED: &'static [UndescribedField];

    fn known_fields() -> &'static KnownFields;
}

/// Declares which requests are held to their descriptions, and what these leave out.
macro_rules! requests {
    ($($request:ty: $undescribed:expr;)+) => {$(
        impl DescribedRequest for $request {
            const UNDESCRIBED: &'static [UndescribedField] = $undescribed;

            fn known_fields() -> &'static KnownFields {
                static KNOWN: LazyLock<KnownFields> = LazyLock::new(KnownFields::of::<$request>);
                &KNOWN
            }
        }
    )+};
}

const REFUSED: &str = "known only to be refused";
const ALIAS: &str = "another name of a field that is described";
const TERMS: &[UndescribedField] =
    &[("consensus.weight_by", REFUSED), ("consensus.target_confidence", REFUSED)];
const FACTCHECK: &[UndescribedField] = &[
    ("consensus.weight_by", REFUSED),
    ("consensus.target_confidence", REFUSED),
    ("policy.policy_id", REFUSED),
    ("policy.policy_params", REFUSED),
    ("policy.policy_hash", REFUSED),
    ("policy.policy_version", REFUSED),
    ("policy.task_type", "does nothing in a fact check"),
];
const EXECUTOR: &[UndescribedField] = &[
    ("remote", REFUSED),
    ("target_node", REFUSED),
    ("scope", REFUSED),
    ("agent_event_callback_base_url", ALIAS),
    ("session.executor", REFUSED),
    ("session.session_id", ALIAS),
];
const SPEC: &[UndescribedField] = &[("round_policy", REFUSED)];
const ORDER: &[UndescribedField] = &[("spec.round_policy", REFUSED), ("run_spec", ALIAS)];

requests! {
    DelegateRequest: TERMS;
    ValidateRequest: TERMS;
    FactcheckRequest: FACTCHECK;
    DelegateRequestV2: &[];
    ValidateRequestV2: &[];
    AddExecutorRequest: EXECUTOR;
    AddSessionRequest: &[("session_id", ALIAS)];
    CreateKeyRequest: &[];
    RotateKeyRequest: &[];
    PruneRequest: &[];
    RoundArguments: &[];
    ListRoundsArguments: &[];
    GrantRequest: &[];
    ApproveRequest: &[];
    TestVerifierRequest: &[];
    AttackVerifierRequest: &[];
    SendAgentEventRequest: &[];
    TaskContractBody: &[];
    TaskOrder: &[];
    FeedbackRequest: &[];
    CancelTaskRequest: &[];
    AgentRunSpecBody: SPEC;
    AgentRunRequestBody: ORDER;
    TaskArguments: &[];
    GetTaskArguments: &[];
    ListTasksArguments: &[];
    TaskEventsArguments: &[];
    TaskSampleArguments: &[];
    RunArguments: &[];
    GetRunArguments: &[];
    ListRunsArguments: &[];
    RunEventsArguments: &[];
    KnowledgeArguments: &[];
    AnswerShareRequest: &[];
    ListSharesArguments: &[];
    ShareArguments: &[];
}

/// How many unknown fields of one request are named.
const MOST: usize = 20;
/// How many places of a misplaced field are named.
const SUGGESTIONS: usize = 3;
/// Names are short, and a longer one is no slip of the pen.
const LONGEST: usize = 64;
/// Names that begin so are the caller's own.
const PRIVATE: &str = "x_";

/// The fields of a request.
#[derive(Debug)]
pub struct KnownFields(FieldShape);

#[derive(Debug, Clone, PartialEq, Eq)]
enum FieldShape {
    /// No object.
    Leaf,
    /// Whatever the caller likes.
    Free,
    Members(BTreeMap<String, FieldShape>),
    Items(Box<FieldShape>),
}

/// A field that is not known, and what is known beside it.
#[derive(Debug)]
pub struct UnknownField<'a> {
    /// From the object that was looked at.
    pub path: String,
    name: &'a str,
    beside: &'a BTreeMap<String, FieldShape>,
}

impl UnknownField<'_> {
    /// Whether the name is most likely a misspelt one.
    pub fn is_slip(&self) -> bool {
        closest(self.name, self.beside.keys().cloned()).is_some()
    }
}

/// How deep unknown fields are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchDepth {
    /// Among the members of the object itself.
    Top,
    All,
}

impl KnownFields {
    pub fn of<R: DescribedRequest>() -> Self {
        let mut parts = Vec::new();
        R::schemas(&mut parts);
        let parts = parts.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
        let whole = json!(R::schema());
        // The request itself is known whole, also where its surface ignores what is not.
        let mut shape = FieldShape::members(&whole, &parts);
        for (path, _) in R::UNDESCRIBED {
            shape.add(path);
        }
        Self(shape)
    }

    /// Whether the request itself has this field.
    pub fn has(&self, name: &str) -> bool {
        matches!(&self.0, FieldShape::Members(members) if members.contains_key(name))
    }

    /// The first unknown fields of a request.
    pub fn unknown_fields<'a>(
        &'a self,
        members: &'a Map<String, Value>,
        depth: SearchDepth,
    ) -> Vec<UnknownField<'a>> {
        let mut found = Vec::new();
        if let FieldShape::Members(known) = &self.0 {
            look(known, members, ("", depth), &mut found);
        }
        found
    }

    /// The request without its unknown fields.
    pub fn strip(&self, mut request: Value) -> Value {
        self.0.strip(&mut request);
        request
    }

    /// What to do about an unknown field, as the end of a sentence about it. `within` stands before
    /// every path that is named.
    pub fn advice(&self, stranger: &UnknownField<'_>, within: &str) -> String {
        let all = self.paths();
        let placed = |path: &str| {
            if within.is_empty() { path.to_owned() } else { format!("{within}.{path}") }
        };
        let last = |path: &str| path.rsplit('.').next().map(str::to_owned).unwrap_or_default();
        let places = all.iter().filter(|path| last(path) == stranger.name).take(SUGGESTIONS);
        let places: Vec<String> = places.map(|path| format!("`{}`", placed(path))).collect();
        if !places.is_empty() {
            return format!("; it belongs in {}", places.join(" or "));
        }
        let parent = stranger.path.rsplit_once('.').map(|(parent, _)| parent);
        let beside = stranger.beside.keys().map(|name| match parent {
            Some(parent) => format!("{parent}.{name}"),
            None => name.clone(),
        });
        if let Some(path) = closest(stranger.name, beside).or_else(|| closest(stranger.name, all)) {
            return format!("; did you mean `{}`?", placed(&path));
        }
        let names: Vec<&str> = stranger.beside.keys().map(String::as_str).collect();
        if names.is_empty() { String::new() } else { format!("; known are {}", names.join(", ")) }
    }

    /// The paths of all fields, the outer ones first; what stands in lists is left out.
    fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut level = vec![(String::new(), &self.0)];
        while !level.is_empty() {
            let mut next = Vec::new();
            for (path, shape) in level {
                let FieldShape::Members(members) = shape else { continue };
                for (name, inner) in members {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    found.push(path.clone());
                    next.push((path, inner));
                }
            }
            level = next;
        }
        found
    }
}

/// The path whose last name has the fewest letters to change, if they are few.
fn closest(name: &str, paths: impl IntoIterator<Item = String>) -> Option<String> {
    if LONGEST < name.len() {
        return None;
    }
    let distance = |path: &String| {
        let last = path.rsplit('.').next().unwrap_or(path);
        let distance = strsim::damerau_levenshtein(name, last);
        (distance <= last.len().div_ceil(4)).then_some(distance)
    };
    let near = paths.into_iter().filter_map(|path| distance(&path).map(|it| (it, path)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, path)| path)
}

fn look<'a>(
    known: &'a BTreeMap<String, FieldShape>,
    members: &'a Map<String, Value>,
    (path, depth): (&str, SearchDepth),
    found: &mut Vec<UnknownField<'a>>,
) {
    for (name, value) in members {
        if MOST <= found.len() {
            return;
        }
        let at = |name: &str| {
            if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
        };
        match known.get(name) {
            Some(shape) if depth == SearchDepth::All => look_within(shape, value, &at(name), found),
            Some(_) => {}
            None if name.starts_with(PRIVATE) => {}
            None => found.push(UnknownField { path: at(&short(name)), name, beside: known }),
        }
    }
}

fn look_within<'a>(
    shape: &'a FieldShape,
    value: &'a Value,
    path: &str,
    found: &mut Vec<UnknownField<'a>>,
) {
    match (shape, value) {
        (FieldShape::Members(known), Value::Object(members)) => {
            look(known, members, (path, SearchDepth::All), found);
        }
        (FieldShape::Items(shape), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                look_within(shape, item, &format!("{path}.{index}"), found);
            }
        }
        // What has the wrong type is for the decoder to say.
        (
            FieldShape::Leaf | FieldShape::Free | FieldShape::Members(_) | FieldShape::Items(_),
            _,
        ) => {}
    }
}

type SchemaParts = BTreeMap<String, Value>;

impl FieldShape {
    fn of(schema: &Value, parts: &SchemaParts) -> Self {
        if let Some(reference) = schema["$ref"].as_str() {
            let part = reference.rsplit('/').next().and_then(|name| parts.get(name));
            return part.map_or(Self::Free, |part| Self::of(part, parts));
        }
        let choices =
            ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|it| schema[it].as_array());
        let mut choices = choices.flatten().map(|choice| Self::of(choice, parts)).peekable();
        if choices.peek().is_some() {
            return choices.fold(Self::Leaf, Self::or);
        }
        let kinds = &schema["type"];
        let is = |kind: &str| {
            kinds == kind || kinds.as_array().is_some_and(|all| all.iter().any(|it| it == kind))
        };
        if is("array") {
            return Self::Items(Box::new(Self::of(&schema["items"], parts)));
        }
        if schema["additionalProperties"] == json!(false) {
            return Self::members(schema, parts);
        }
        if is("object") || schema.get("type").is_none() { Self::Free } else { Self::Leaf }
    }

    fn members(schema: &Value, parts: &SchemaParts) -> Self {
        let named = schema["properties"].as_object().into_iter().flatten();
        let member = |(name, schema): (&String, &Value)| (name.clone(), Self::of(schema, parts));
        Self::Members(named.map(member).collect())
    }

    /// A value that may have one shape or the other.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Leaf, shape) | (shape, Self::Leaf) => shape,
            (Self::Members(mut all), Self::Members(more)) => {
                for (name, shape) in more {
                    let shape = match all.remove(&name) {
                        Some(known) => known.or(shape),
                        None => shape,
                    };
                    all.insert(name, shape);
                }
                Self::Members(all)
            }
            (Self::Items(one), Self::Items(other)) => Self::Items(Box::new(one.or(*other))),
            (Self::Free | Self::Members(_) | Self::Items(_), _) => Self::Free,
        }
    }

    /// Adds a field that may be anything.
    fn add(&mut self, path: &str) {
        let Self::Members(members) = self else { return };
        match path.split_once('.') {
            None => {
                members.entry(path.to_owned()).or_insert(Self::Free);
            }
            Some((name, rest)) => {
                if let Some(shape) = members.get_mut(name) {
                    shape.add(rest);
                }
            }
        }
    }

    fn strip(&self, value: &mut Value) {
        match (self, value) {
            (Self::Members(known), Value::Object(members)) => {
                members.retain(|name, _| known.contains_key(name));
                for (name, value) in members {
                    if let Some(shape) = known.get(name) {
                        shape.strip(value);
                    }
                }
            }
            (Self::Items(shape), Value::Array(items)) => {
                for item in items {
                    shape.strip(item);
                }
            }
            (Self::Leaf | Self::Free | Self::Members(_) | Self::Items(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{consensus_request, kit::fields::RequestFields, tasks::decode_submit};
    use jurat_core::code::ProblemCode;

    fn refusal<R: DescribedRequest>(body: &Value) -> String {
        let fields = RequestFields::of_body(body, ProblemCode::ValidationError).unwrap();
        fields.keep_to::<R>().unwrap_err().detail
    }

    #[test]
    fn a_field_in_the_wrong_place_is_told_its_place() {
        for (body, said) in [
            (
                json!({ "replicas": 3 }),
                "`replicas` is not a known field; it belongs in `consensus.replicas`",
            ),
            (
                json!({ "policy": { "replicas": 3 } }),
                "`policy.replicas` is not a known field; it belongs in `consensus.replicas`",
            ),
            (
                json!({ "output_schema": {} }),
                "`output_schema` is not a known field; it belongs in `execution.output_schema`",
            ),
            (
                json!({ "consensus": { "tier": "safe" } }),
                "`consensus.tier` is not a known field; it belongs in `policy.tier`",
            ),
            (
                json!({ "timeout_ms": 5 }),
                "`timeout_ms` is not a known field; it belongs in `execution.timeout_ms` or `policy.timeout_ms`",
            ),
        ] {
            assert_eq!(refusal::<DelegateRequest>(&body), said);
        }
    }

    #[test]
    fn a_misspelt_field_is_told_the_nearest() {
        for (body, said) in [
            (
                json!({ "consensu": {} }),
                "`consensu` is not a known field; did you mean `consensus`?",
            ),
            (
                json!({ "consensus": { "replica": 3 } }),
                "`consensus.replica` is not a known field; did you mean `consensus.replicas`?",
            ),
            (
                json!({ "replica": 3 }),
                "`replica` is not a known field; did you mean `consensus.replicas`?",
            ),
            (
                json!({ "evidence_refs": [{ "url": "a" }] }),
                "`evidence_refs.0.url` is not a known field; did you mean `evidence_refs.0.uri`?",
            ),
        ] {
            assert_eq!(refusal::<ValidateRequest>(&body), said);
        }
        let far = refusal::<RotateKeyRequest>(&json!({ "colour": 1 }));
        assert_eq!(far, "`colour` is not a known field; known are grace_seconds");
    }

    #[test]
    fn what_is_free_and_what_is_the_callers_own_is_not_looked_at() {
        let anything = json!({ "replicas": 1, "a": { "b": [{ "c": 1 }] } });
        let body = json!({
            "objective": "a", "input": anything, "context": anything, "metadata": anything,
            "x_trace": anything, "tools": [anything], "workflow": anything, "actor": anything,
            "policy": { "policy_id": "a.b", "policy_params": anything, "x_mine": 1 },
            "execution": { "output_schema": anything, "x_mine": 1 },
            "consensus": { "replicas": 1, "x_mine": 1 },
        });
        consensus_request::delegate(&body).unwrap();
        consensus_request::validate(&json!({ "claim": anything, "x_": 1 })).unwrap();
    }

    #[test]
    fn a_long_name_and_many_names_are_named_in_bounds() {
        let many: Map<String, Value> =
            (0..100_000).map(|number| (format!("{number}{}", "a".repeat(200)), json!(1))).collect();
        let problem = decode_submit(&Value::Object(many)).unwrap_err();
        assert!(problem.detail.len() < 5_000, "{}", problem.detail.len());
    }
}
