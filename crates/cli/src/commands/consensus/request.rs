//! Builds the body of a request from a file and from flags, which override the file.

use std::{io, path::Path};

use jurat_wire::strict_json;
use serde_json::{Map, Value, json};

use crate::commands::shared::input;
use crate::{
    args::{ApiVersionArg, PolicyArgs, RequestArgs},
    failure::CliFailure,
};

#[derive(Debug)]
pub(crate) struct RequestDraft {
    members: Map<String, Value>,
}

impl RequestDraft {
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

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.members.insert(name.to_owned(), value);
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Sets a member of a block such as `consensus`, and creates the block if it is missing.
    pub(crate) fn set_in(&mut self, block: &str, name: &str, value: Value) -> anyhow::Result<()> {
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
                members.insert(name.to_owned(), value);
                Ok(())
            }
            None => Err(CliFailure::usage(format!("`{block}` in the file must be an object"))),
        }
    }

    pub(crate) fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.set(name, json!(value));
        }
    }

    pub(crate) fn json(&mut self, name: &str, value: Option<&str>) -> anyhow::Result<()> {
        if let Some(text) = value {
            self.set(name, parsed(name, text)?);
        }
        Ok(())
    }

    /// A claim is text, or JSON if it looks like JSON.
    pub(crate) fn claim(&mut self, value: Option<&str>) -> anyhow::Result<()> {
        let Some(text) = value else { return Ok(()) };
        let looks_like_json = text.trim_start().starts_with(['{', '[', '"']);
        let value = match strict_json::parse(text.as_bytes()) {
            Ok(value) if looks_like_json => value,
            // Plain text may begin with a quotation mark or a bracket, but hardly with a brace.
            Err(error) if text.trim_start().starts_with('{') => {
                return Err(CliFailure::usage(format!("`--claim` is not JSON: {error}")));
            }
            Ok(_) | Err(_) => json!(text),
        };
        self.set("claim", value);
        Ok(())
    }

    pub(crate) fn schema(&mut self, value: Option<&str>) -> anyhow::Result<()> {
        let Some(text) = value else { return Ok(()) };
        let is_schema = text.trim_start().starts_with('{') || matches!(text, "true" | "false");
        let schema = if is_schema {
            parsed("schema", text)?
        } else {
            let bytes = read(Path::new(text)).map_err(|error| {
                CliFailure::usage(format!("`--schema {text}` cannot be read: {error}"))
            })?;
            strict_json::parse(&bytes).map_err(|error| {
                CliFailure::usage(format!("`--schema {text}` is not JSON: {error}"))
            })?
        };
        self.set_in("execution", "output_schema", schema)
    }

    pub(crate) fn policy(&mut self, args: &PolicyArgs) -> anyhow::Result<()> {
        if let Some(policy) = &args.policy {
            self.set_in("policy", "policy_id", json!(policy))?;
        }
        if let Some(params) = &args.params {
            self.set_in("policy", "policy_params", parsed("params", params)?)?;
        }
        Ok(())
    }

    /// Sets the fields that all three requests have.
    pub(crate) fn common(&mut self, args: &RequestArgs) -> anyhow::Result<()> {
        self.json("context", args.context.as_deref())?;
        if let Some(tier) = &args.tier {
            self.set_in("policy", "tier", json!(tier))?;
        }
        if !args.label.is_empty() {
            self.set_in("policy", "labels", json!(args.label))?;
        }
        if let Some(timeout) = args.timeout_ms {
            self.set_in("execution", "timeout_ms", json!(timeout))?;
        }
        match args.api {
            ApiVersionArg::V2 => self.one_replica(args),
            ApiVersionArg::V3 => self.terms(args),
        }
    }

    fn terms(&mut self, args: &RequestArgs) -> anyhow::Result<()> {
        if let Some(replicas) = args.replicas {
            self.set_in("consensus", "replicas", json!(replicas))?;
        }
        if !args.session.is_empty() {
            self.set_in("consensus", "session_pool", json!(args.session))?;
        }
        if let Some(spares) = args.spares {
            self.set_in("consensus", "spares", json!(spares))?;
        }
        if let Some(word) = &args.disagreement_policy {
            self.set_in("consensus", "disagreement_policy", json!(word))?;
        }
        for (name, word) in
            [("aggregation", &args.aggregation), ("timeout_policy", &args.timeout_policy)]
        {
            if let Some(word) = word {
                self.set_in("consensus", name, json!(word))?;
            }
        }
        if let Some(text) = &args.equivalence {
            self.set_in("consensus", "equivalence", equivalence(text)?)?;
        }
        if let Some(share) = args.min_agreement {
            self.set_in("consensus", "min_agreement", json!(share))?;
        }
        if args.early_stop {
            self.set_in("consensus", "early_stop", json!(true))?;
        }
        Ok(())
    }

    /// v2 has one replica and no `consensus`; it would silently ignore flags that ask for more.
    fn one_replica(&mut self, args: &RequestArgs) -> anyhow::Result<()> {
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
        if let Some((flag, _)) = flags.iter().find(|(_, is_given)| *is_given) {
            let text = format!("v2 asks one session and has no `{flag}`; use `--api v3`");
            return Err(CliFailure::usage(text));
        }
        if let Some(session) = args.session.first() {
            self.set("session_id", json!(session));
        }
        Ok(())
    }

    pub(crate) fn body(self) -> Value {
        Value::Object(self.members)
    }
}

/// The equivalence: a single word, or a JSON object with parameters.
fn equivalence(text: &str) -> anyhow::Result<Value> {
    if text.trim_start().starts_with('{') { parsed("equivalence", text) } else { Ok(json!(text)) }
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
            let mut draft = RequestDraft::new(None).unwrap();
            draft.claim(Some(text)).unwrap();
            assert_eq!(draft.body()["claim"], expected, "for {text}");
        }
        let error =
            RequestDraft::new(None).unwrap().claim(Some("{\"a\": ")).unwrap_err().to_string();
        assert!(error.starts_with("`--claim` is not JSON"), "{error}");
    }

    #[test]
    fn flags_add_to_a_policy_of_one_word() {
        for (word, expected) in [
            ("safe", json!({"tier": "safe", "policy_params": {"a": 1}})),
            ("vp.x.v1", json!({"policy_id": "vp.x.v1", "policy_params": {"a": 1}})),
        ] {
            let mut draft = RequestDraft::new(None).unwrap();
            draft.set("policy", json!(word));
            let args = PolicyArgs { policy: None, params: Some("{\"a\": 1}".to_owned()) };
            draft.policy(&args).unwrap();
            assert_eq!(draft.body()["policy"], expected);
        }
    }
}
