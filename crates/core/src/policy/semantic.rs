//! `vp.semantic.v1`: a verifier of the registry decides, through its judge.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    BindError, Policy,
    params::{FETCH_EVIDENCE, is_pointer, members, toggle},
};
use crate::{
    canonical::canonical,
    verifier::{InputError, MOST_FIELDS, VerifierConfig, VerifierRef},
};

/// The parameters of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SemanticParams {
    pub verifier: VerifierRef,
    /// JSON Pointers to the input fields in the candidate; a field without one is the member of the
    /// same name.
    inputs: BTreeMap<String, String>,
    /// A JSON Pointer to the address of the image in the candidate.
    media_url: Option<String>,
    /// Overrides the setting of the verifier.
    pub commit_first: Option<bool>,
    /// Whether the verdict cache is skipped.
    pub is_fresh: bool,
    /// The calibration example that the judge does not see.
    pub leave_out: Option<usize>,
    /// The text length to hold credit for if the candidate does not exist yet.
    pub max_chars: Option<usize>,
    /// Whether the candidate's references are fetched. The judge does not see them.
    fetch_evidence: bool,
}

/// The parts of a candidate that a judge sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeInputs {
    pub inputs: BTreeMap<String, String>,
    pub media_url: Option<String>,
}

const MEDIA_URL: &str = "media_url";
/// The maximum length of all texts of a candidate together.
const MOST_CHARS: usize = 400_000;

pub(super) fn bind(params: &Value) -> Result<Policy, BindError> {
    let known =
        ["verifier", "inputs", MEDIA_URL, "commit_first", "fresh", "leave_out", "max_chars"];
    let empty = Map::new();
    let members = members(params, &known)?.unwrap_or(&empty);
    let unnamed = || {
        let problem = "is required: the id or name of a verifier, or `system:` and a name";
        BindError::params("policy_params.verifier", problem)
    };
    let verifier = members.get("verifier").and_then(Value::as_str).ok_or_else(unnamed)?;
    let verifier = VerifierRef::parse(verifier)
        .map_err(|error| BindError::params("policy_params.verifier", error.to_string()))?;
    Ok(Policy::Semantic(SemanticParams {
        verifier,
        inputs: inputs(members)?,
        media_url: members.get(MEDIA_URL).map(|value| pointer(MEDIA_URL, value)).transpose()?,
        commit_first: toggle(members, "commit_first")?,
        is_fresh: toggle(members, "fresh")?.unwrap_or(false),
        leave_out: leave_out(members)?,
        max_chars: max_chars(members)?,
        fetch_evidence: toggle(members, FETCH_EVIDENCE)?.unwrap_or(false),
    }))
}

impl SemanticParams {
    /// The parameters with the resolved verifier and version, as they are hashed.
    pub fn pinned(&self, verifier_id: &str, version: u32) -> Value {
        let mut params = Map::new();
        params.insert("verifier".to_owned(), json!(format!("{verifier_id}@{version}")));
        if !self.inputs.is_empty() {
            params.insert("inputs".to_owned(), json!(self.inputs));
        }
        if let Some(pointer) = &self.media_url {
            params.insert(MEDIA_URL.to_owned(), json!(pointer));
        }
        if let Some(commit_first) = self.commit_first {
            params.insert("commit_first".to_owned(), json!(commit_first));
        }
        if self.is_fresh {
            params.insert("fresh".to_owned(), json!(true));
        }
        if let Some(index) = self.leave_out {
            params.insert("leave_out".to_owned(), json!(index));
        }
        if let Some(chars) = self.max_chars {
            params.insert("max_chars".to_owned(), json!(chars));
        }
        if self.fetch_evidence {
            params.insert(FETCH_EVIDENCE.to_owned(), json!(true));
        }
        Value::Object(params)
    }

    /// Checks that the parameters fit the verifier, before there is a candidate.
    pub fn check(&self, config: &VerifierConfig) -> Result<(), InputError> {
        if let Some(extra) = self.inputs.keys().find(|field| !config.fields.contains(*field)) {
            return Err(wrong(
                format!("policy_params.inputs.{extra}"),
                format!(
                    "is not an input field of the verifier; the fields are: {}",
                    config.fields.join(", ")
                ),
            ));
        }
        if self.media_url.is_some() && !config.contract.has_image() {
            let problem = "must be left out: the contract `text` has no image".to_owned();
            return Err(wrong("policy_params.media_url".to_owned(), problem));
        }
        let examples = config.examples.len();
        if self.leave_out.is_some_and(|index| examples <= index) {
            let problem = format!(
                "must be the position of an example, counted from 0; the verifier has {examples} examples"
            );
            return Err(wrong("policy_params.leave_out".to_owned(), problem));
        }
        Ok(())
    }

    /// The parts of a candidate that the judge sees, if the candidate has them.
    pub fn read(&self, output: &Value, config: &VerifierConfig) -> Result<JudgeInputs, InputError> {
        self.check(config)?;
        let mut inputs = BTreeMap::new();
        for field in &config.fields {
            let (pointer, is_alone) = match self.inputs.get(field) {
                Some(pointer) => (pointer.clone(), false),
                None => (format!("/{field}"), config.fields.len() == 1),
            };
            let found = match output.pointer(&pointer) {
                // If the verifier has one field, a candidate that is a text is that field.
                None if is_alone && output.is_string() => Some(output),
                found => found,
            };
            let Some(value) = found.filter(|value| !value.is_null()) else {
                let problem = format!("points to `{pointer}`, which the candidate does not have");
                return Err(wrong(format!("policy_params.inputs.{field}"), problem));
            };
            inputs.insert(field.clone(), text(value));
        }
        let media_url = self.media(output, config)?;
        config.check_inputs(&inputs, media_url.as_deref())?;
        Ok(JudgeInputs { inputs, media_url })
    }

    fn media(&self, output: &Value, config: &VerifierConfig) -> Result<Option<String>, InputError> {
        if !config.contract.has_image() {
            return Ok(None);
        }
        let pointer = self.media_url.as_deref().unwrap_or("/media_url");
        match output.pointer(pointer) {
            Some(Value::String(url)) => Ok(Some(url.clone())),
            Some(_) | None => Err(wrong(
                "policy_params.media_url".to_owned(),
                format!("points to `{pointer}`, which is not a string in the candidate"),
            )),
        }
    }
}

fn wrong(field: String, problem: String) -> InputError {
    InputError { field, problem }
}

/// Values other than texts are shown to the judge as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            String::from_utf8_lossy(&canonical(value)).into_owned()
        }
    }
}

fn inputs(members: &Map<String, Value>) -> Result<BTreeMap<String, String>, BindError> {
    match members.get("inputs") {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(inputs)) if inputs.len() <= MOST_FIELDS => inputs
            .iter()
            .map(|(field, value)| Ok((field.clone(), pointer(&format!("inputs.{field}"), value)?)))
            .collect(),
        Some(_) => Err(BindError::params(
            "policy_params.inputs",
            format!("must be an object of at most {MOST_FIELDS} fields and JSON Pointers"),
        )),
    }
}

fn pointer(name: &str, value: &Value) -> Result<String, BindError> {
    let problem = "must be a JSON Pointer into the candidate, such as `/answer`";
    let wrong = || BindError::params(format!("policy_params.{name}"), problem);
    value.as_str().filter(|text| is_pointer(text)).map(str::to_owned).ok_or_else(wrong)
}

fn leave_out(members: &Map<String, Value>) -> Result<Option<usize>, BindError> {
    match members.get("leave_out") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let index = value.as_u64().and_then(|index| usize::try_from(index).ok());
            let problem = "must be the position of a calibration example, counted from 0";
            index.map(Some).ok_or_else(|| BindError::params("policy_params.leave_out", problem))
        }
    }
}

fn max_chars(members: &Map<String, Value>) -> Result<Option<usize>, BindError> {
    match members.get("max_chars") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let chars = value.as_u64().and_then(|chars| usize::try_from(chars).ok());
            let chars = chars.filter(|chars| (1..=MOST_CHARS).contains(chars));
            let problem = format!("must be a whole number from 1 to {MOST_CHARS}");
            chars.map(Some).ok_or_else(|| BindError::params("policy_params.max_chars", problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::{InputContract, JudgeSettings};

    fn config(fields: &[&str], contract: InputContract) -> VerifierConfig {
        VerifierConfig {
            criterion: "c".to_owned(),
            contract,
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            examples: Vec::new(),
            judge: JudgeSettings {
                model: "builtin/rules".parse().unwrap(),
                effort: None,
                commit_first: false,
            },
        }
    }

    fn semantic_params(params: &Value) -> SemanticParams {
        match bind(params) {
            Ok(Policy::Semantic(semantic)) => semantic,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fields_are_found_by_pointer_or_by_their_name() {
        let semantic =
            semantic_params(&json!({ "verifier": "v", "inputs": { "source": "/in/text" } }));
        let output = json!({ "response": "yes", "in": { "text": ["a", 1] } });
        let read = semantic.read(&output, &config(&["response", "source"], InputContract::Text));
        let inputs = read.unwrap().inputs;
        assert_eq!(inputs["response"], "yes");
        assert_eq!(inputs["source"], r#"["a",1]"#);
    }

    #[test]
    fn a_text_is_the_only_field() {
        let one = config(&["response"], InputContract::Text);
        let semantic = semantic_params(&json!({ "verifier": "v" }));
        assert_eq!(semantic.read(&json!("hello"), &one).unwrap().inputs["response"], "hello");
        let two = config(&["response", "source"], InputContract::Text);
        let refused = semantic.read(&json!("hello"), &two).unwrap_err();
        assert_eq!(refused.field, "policy_params.inputs.response");
    }

    #[test]
    fn an_image_is_found_if_the_contract_asks_for_one() {
        let image = config(&[], InputContract::Image);
        let semantic = semantic_params(&json!({ "verifier": "v" }));
        let read = semantic.read(&json!({ "media_url": "https://x/y.png" }), &image).unwrap();
        assert_eq!(read.media_url.as_deref(), Some("https://x/y.png"));
        let refused = semantic.read(&json!({}), &image).unwrap_err();
        assert_eq!(refused.field, "policy_params.media_url");
    }

    #[test]
    fn parameters_that_do_not_fit_the_verifier_are_named_before_there_is_a_candidate() {
        let text = config(&["response"], InputContract::Text);
        for (params, field) in [
            (json!({ "verifier": "v", "inputs": { "more": "/a" } }), "policy_params.inputs.more"),
            (json!({ "verifier": "v", "media_url": "/a" }), "policy_params.media_url"),
        ] {
            assert_eq!(semantic_params(&params).check(&text).unwrap_err().field, field);
        }
        assert_eq!(semantic_params(&json!({ "verifier": "v" })).check(&text), Ok(()));
    }

    #[test]
    fn the_pinned_parameters_name_the_version_and_bind_again() {
        let given = json!({ "verifier": "v", "fresh": true, "leave_out": 2, "max_chars": 9 });
        let pinned = semantic_params(&given).pinned("system:qa", 1);
        let mut expected = given;
        expected["verifier"] = json!("system:qa@1");
        assert_eq!(pinned, expected);
        assert_eq!(semantic_params(&pinned).verifier, VerifierRef::parse("system:qa@1").unwrap());
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (params, field) in [
            (json!({}), "verifier"),
            (json!({ "verifier": 7 }), "verifier"),
            (json!({ "verifier": "A b" }), "verifier"),
            (json!({ "verifier": "v", "inputs": [] }), "inputs"),
            (json!({ "verifier": "v", "inputs": { "a": "x" } }), "inputs.a"),
            (json!({ "verifier": "v", "media_url": "x" }), "media_url"),
            (json!({ "verifier": "v", "fresh": "yes" }), "fresh"),
            (json!({ "verifier": "v", "leave_out": -1 }), "leave_out"),
            (json!({ "verifier": "v", "max_chars": 0 }), "max_chars"),
            (json!({ "verifier": "v", "max_chars": 400_001 }), "max_chars"),
            (json!({ "verifier": "v", "more": 1 }), "more"),
        ] {
            let BindError::Params { field: found, .. } = bind(&params).unwrap_err() else {
                panic!("{params}")
            };
            assert_eq!(found, format!("policy_params.{field}"), "{params}");
        }
    }
}
