//! Builds the body of a request from a file and from flags, which override the file.

use std::{io, path::Path};

use jurat_wire::{
    api::{
        consensus_request::{ExecutionDraft, JobFieldsDraft, RoundFieldsDraft},
        kit::terms::ConsensusTermsDraft,
        policy_request::{PolicyObjectDraft, PolicyRoutingDraft},
    },
    strict_json,
};
use serde_json::{Map, Value, json};

use crate::commands::shared::{given, input};
use crate::{
    args::{ApiVersionArg, PolicyArgs, RequestArgs},
    failure::CliFailure,
};

/// Fields whose members are overridden one by one. Any other field is overridden as a whole.
const BLOCKS: [&str; 3] = ["policy", "consensus", "execution"];

/// The request as a document, because a part of it may come from a user's file.
#[derive(Debug)]
pub(crate) struct RequestDocument {
    members: Map<String, Value>,
}

impl RequestDocument {
    /// Starts with the members of the file, if there is one.
    pub(crate) fn new(file: Option<&Path>) -> anyhow::Result<Self> {
        let Some(file) = file else { return Ok(Self { members: Map::new() }) };
        let name = file.display();
        let bytes = read(file).map_err(|error| {
            CliFailure::usage(format!("`--file {name}` cannot be read: {error}"))
        })?;
        let value = strict_json::parse(&bytes)
            .map_err(|error| CliFailure::usage(format!("`--file {name}` is not JSON: {error}")))?;
        match value {
            Value::Object(members) => Ok(Self { members }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                Err(CliFailure::usage(format!("`--file {name}` must contain a JSON object")))
            }
        }
    }

    /// Overrides the fields that the flags set.
    pub(crate) fn override_with(&mut self, flags: Map<String, Value>) -> anyhow::Result<()> {
        for (name, value) in flags {
            match (BLOCKS.contains(&name.as_str()), value) {
                (true, Value::Object(block)) => {
                    for (member, value) in block {
                        self.set_in(&name, member, value)?;
                    }
                }
                (_, value) => drop(self.members.insert(name, value)),
            }
        }
        Ok(())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Sets a member of a block such as `consensus`, and creates the block if it is missing.
    fn set_in(&mut self, block: &str, name: String, value: Value) -> anyhow::Result<()> {
        let entry = self.members.entry(block).or_insert_with(|| json!({}));
        if block == "policy"
            && let Value::String(word) = entry
        {
            // A single word is short for an object, which flags can extend.
            let member = if word.contains('.') { "policy_id" } else { "tier" };
            *entry = json!({ member: word });
        }
        if entry.is_null() {
            *entry = json!({});
        }
        match entry.as_object_mut() {
            Some(members) => {
                members.insert(name, value);
                Ok(())
            }
            None => Err(CliFailure::usage(format!("`{block}` in the file must be an object"))),
        }
    }

    pub(crate) fn body(self) -> Value {
        Value::Object(self.members)
    }
}

/// A claim is text, or JSON if it looks like JSON.
pub(crate) fn claim(value: Option<&str>) -> anyhow::Result<Value> {
    let Some(text) = value else { return Ok(Value::Null) };
    let looks_like_json = text.trim_start().starts_with(['{', '[', '"']);
    match strict_json::parse(text.as_bytes()) {
        Ok(value) if looks_like_json => Ok(value),
        // Plain text may begin with a quotation mark or a bracket, but hardly with a brace.
        Err(error) if text.trim_start().starts_with('{') => {
            Err(CliFailure::usage(format!("`--claim` is not JSON: {error}")))
        }
        Ok(_) | Err(_) => Ok(json!(text)),
    }
}

/// The policy that candidates are checked under.
pub(crate) fn policy(
    args: &PolicyArgs,
    request: &RequestArgs,
    task_type: Option<&str>,
) -> anyhow::Result<PolicyObjectDraft> {
    Ok(PolicyObjectDraft {
        policy_id: args.policy.clone(),
        policy_params: flag("params", args.params.as_deref())?,
        policy_version: None,
        policy_hash: None,
        task_type: task_type.map(str::to_owned),
        routing: routing(request),
    })
}

pub(crate) fn routing(args: &RequestArgs) -> PolicyRoutingDraft {
    PolicyRoutingDraft {
        tier: args.tier.clone(),
        labels: given(&args.label),
        timeout_ms: None,
        timeout: None,
    }
}

/// The fields of every job.
pub(crate) fn job(args: &RequestArgs, schema: Option<&str>) -> anyhow::Result<JobFieldsDraft> {
    let execution = ExecutionDraft {
        timeout_ms: args.timeout_ms,
        output_schema: output_schema(schema)?,
        ..ExecutionDraft::default()
    };
    Ok(JobFieldsDraft {
        context: flag("context", args.context.as_deref())?,
        execution: Some(execution),
        ..JobFieldsDraft::default()
    })
}

fn output_schema(value: Option<&str>) -> anyhow::Result<Option<Value>> {
    let Some(text) = value else { return Ok(None) };
    let is_schema = text.trim_start().starts_with('{') || matches!(text, "true" | "false");
    if is_schema {
        return parsed("schema", text).map(Some);
    }
    let bytes = read(Path::new(text))
        .map_err(|error| CliFailure::usage(format!("`--schema {text}` cannot be read: {error}")))?;
    let schema = strict_json::parse(&bytes)
        .map_err(|error| CliFailure::usage(format!("`--schema {text}` is not JSON: {error}")))?;
    Ok(Some(schema))
}

/// The terms of the round.
pub(crate) fn round(args: &RequestArgs) -> anyhow::Result<RoundFieldsDraft> {
    if args.api == ApiVersionArg::V2 {
        refuse_terms(args)?;
        return Ok(RoundFieldsDraft { consensus: None, session_id: args.session.first().cloned() });
    }
    let consensus = ConsensusTermsDraft {
        replicas: args.replicas,
        session_pool: given(&args.session),
        spares: args.spares,
        aggregation: args.aggregation.clone(),
        disagreement_policy: args.disagreement_policy.clone(),
        min_agreement: args.min_agreement,
        timeout_policy: args.timeout_policy.clone(),
        equivalence: args.equivalence.as_deref().map(equivalence).transpose()?,
        early_stop: args.early_stop.then_some(true),
        ..ConsensusTermsDraft::default()
    };
    Ok(RoundFieldsDraft { consensus: Some(consensus), session_id: None })
}

/// v2 has one replica and no `consensus`; it would silently ignore flags that ask for more.
fn refuse_terms(args: &RequestArgs) -> anyhow::Result<()> {
    let flags = [
        ("--replicas", args.replicas.is_some_and(|replicas| replicas != 1)),
        ("--session", 1 < args.session.len()),
        ("--spares", args.spares.is_some_and(|spares| spares != 0)),
        ("--disagreement-policy", args.disagreement_policy.is_some()),
        ("--aggregation", args.aggregation.is_some()),
        ("--equivalence", args.equivalence.is_some()),
        ("--timeout-policy", args.timeout_policy.is_some()),
        ("--min-agreement", args.min_agreement.is_some()),
        ("--early-stop", args.early_stop),
    ];
    match flags.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(CliFailure::usage(format!(
            "v2 asks one session and has no `{flag}`; use `--api v3`"
        ))),
        None => Ok(()),
    }
}

/// The equivalence: a single word, or a JSON object with parameters.
fn equivalence(text: &str) -> anyhow::Result<Value> {
    if text.trim_start().starts_with('{') { parsed("equivalence", text) } else { Ok(json!(text)) }
}

/// The JSON value of a flag, if it is given.
pub(crate) fn flag(name: &str, text: Option<&str>) -> anyhow::Result<Option<Value>> {
    text.map(|text| parsed(name, text)).transpose()
}

fn parsed(flag: &str, text: &str) -> anyhow::Result<Value> {
    strict_json::parse(text.as_bytes())
        .map_err(|error| CliFailure::usage(format!("`--{flag}` is not JSON: {error}")))
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    input::read(file, input::LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_text_unless_it_is_json() {
        for (text, expected) in [
            ("2 + 2 = 4", json!("2 + 2 = 4")),
            ("42", json!("42")),
            ("{\"output\": 1}", json!({"output": 1})),
            ("[1, 2]", json!([1, 2])),
            ("[sic] it is so", json!("[sic] it is so")),
            ("\"quoted\"", json!("quoted")),
        ] {
            assert_eq!(claim(Some(text)).unwrap(), expected, "for {text}");
        }
        let error = claim(Some("{\"a\": ")).unwrap_err().to_string();
        assert!(error.starts_with("`--claim` is not JSON"), "{error}");
    }

    fn overridden(file: Value, flags: Value) -> Value {
        let (Value::Object(members), Value::Object(flags)) = (file, flags) else { panic!() };
        let mut document = RequestDocument { members };
        document.override_with(flags).unwrap();
        document.body()
    }

    #[test]
    fn flags_add_to_a_policy_of_one_word() {
        for (word, expected) in [
            ("safe", json!({"tier": "safe", "policy_params": {"a": 1}})),
            ("vp.x.v1", json!({"policy_id": "vp.x.v1", "policy_params": {"a": 1}})),
        ] {
            let flags = json!({ "policy": { "policy_params": {"a": 1} } });
            assert_eq!(overridden(json!({ "policy": word }), flags)["policy"], expected);
        }
    }

    #[test]
    fn flags_override_the_members_of_a_block_and_other_fields_as_a_whole() {
        let file = json!({
            "context": {"a": 1}, "consensus": {"replicas": 3, "spares": 1}, "policy": null,
        });
        let flags = json!({
            "context": {"b": 2}, "consensus": {"replicas": 5}, "execution": {}, "policy": {"tier": "safe"},
        });
        let expected = json!({
            "context": {"b": 2}, "consensus": {"replicas": 5, "spares": 1}, "policy": {"tier": "safe"},
        });
        assert_eq!(overridden(file, flags), expected);
    }
}
