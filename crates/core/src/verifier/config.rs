//! The configuration of one version: the judge's instructions, and the inputs that a run must give.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde_json::{Map, Value, json};

use super::InputContract;
use crate::{
    canonical::{canonical, sha256_hex},
    judge::is_blank,
    round::job::words,
};

words!(
    /// How much effort a judge should spend, for models that accept such a hint.
    Effort { Low => "low", Medium => "medium", High => "high", Xhigh => "xhigh" }
);

/// A judge: `provider/model`. The model may contain slashes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelRef {
    pub provider: String,
    pub model: String,
}

impl FromStr for ModelRef {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (provider, model) = text.split_once('/').ok_or(())?;
        let is_provider = !provider.is_empty()
            && provider.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let is_model = !model.is_empty() && model.chars().all(|c| c.is_ascii_graphic());
        if !is_provider || !is_model || 200 < text.len() {
            return Err(());
        }
        Ok(Self { provider: provider.to_owned(), model: model.to_owned() })
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// The judge and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeSettings {
    pub model: ModelRef,
    pub effort: Option<Effort>,
    /// Whether the judge writes down its expectations before it sees the candidate.
    pub commit_first: bool,
}

/// A labelled example, which the judge sees as a demonstration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierExample {
    pub inputs: BTreeMap<String, String>,
    pub media_url: Option<String>,
    pub passed: bool,
    pub reasoning: Option<String>,
}

/// The configuration of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierConfig {
    pub criterion: String,
    pub contract: InputContract,
    /// In the order of their declaration; empty if the contract is an image alone.
    pub fields: Vec<String>,
    pub examples: Vec<VerifierExample>,
    pub judge: JudgeSettings,
}

/// Why inputs do not fit a contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct InputError {
    pub field: String,
    pub problem: String,
}

impl VerifierConfig {
    /// The document that is hashed and stored.
    pub fn document(&self) -> Value {
        let mut judge = Map::new();
        judge.insert("model".to_owned(), json!(self.judge.model.to_string()));
        if let Some(effort) = self.judge.effort {
            judge.insert("reasoning_effort".to_owned(), json!(effort.as_str()));
        }
        if self.judge.commit_first {
            judge.insert("commit_first".to_owned(), json!(true));
        }
        json!({
            "criterion": self.criterion,
            "input_contract": self.contract.as_str(),
            "input_fields": self.fields,
            "few_shot_examples": self.examples.iter().map(VerifierExample::document).collect::<Vec<_>>(),
            "judge_model_config": judge,
        })
    }

    /// The SHA-256 of the canonical JSON of the document, in hex.
    pub fn hash(&self) -> String {
        sha256_hex(&canonical(&self.document()))
    }

    /// Reads a document that [`VerifierConfig::document`] wrote; `None` if it is not one.
    pub fn read(document: &Value) -> Option<Self> {
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        let list = |name: &str| document.get(name).and_then(Value::as_array);
        let judge = document.get("judge_model_config")?;
        let effort = judge.get("reasoning_effort").map(|effort| effort.as_str()?.parse().ok());
        Some(Self {
            criterion: text("criterion")?.to_owned(),
            contract: text("input_contract")?.parse().ok()?,
            fields: list("input_fields")?.iter().map(owned).collect::<Option<_>>()?,
            examples: list("few_shot_examples")?
                .iter()
                .map(VerifierExample::read)
                .collect::<Option<_>>()?,
            judge: JudgeSettings {
                model: judge.get("model")?.as_str()?.parse().ok()?,
                effort: match effort {
                    None => None,
                    Some(effort) => Some(effort?),
                },
                commit_first: judge.get("commit_first").and_then(Value::as_bool).unwrap_or(false),
            },
        })
    }

    /// Checks that a run gives exactly the declared inputs.
    pub fn check_inputs(
        &self,
        inputs: &BTreeMap<String, String>,
        media_url: Option<&str>,
    ) -> Result<(), InputError> {
        check_inputs(self.contract, &self.fields, inputs, media_url)
    }
}

/// Checks that the inputs are exactly those that a contract with these fields declares.
pub(super) fn check_inputs(
    contract: InputContract,
    fields: &[String],
    inputs: &BTreeMap<String, String>,
    media_url: Option<&str>,
) -> Result<(), InputError> {
    let wrong = |field: &str, problem: String| Err(InputError { field: field.to_owned(), problem });
    if let Some(missing) = fields.iter().find(|field| !inputs.contains_key(*field)) {
        let declared = fields.join(", ");
        let problem = format!("lacks the field `{missing}`; give exactly these: {declared}");
        return wrong("inputs", problem);
    }
    if let Some(extra) = inputs.keys().find(|field| !fields.contains(*field)) {
        let extra: String = extra.chars().take(60).collect();
        let declared = if fields.is_empty() {
            "the contract `image` takes no text fields".to_owned()
        } else {
            format!("give exactly these: {}", fields.join(", "))
        };
        return wrong(
            "inputs",
            format!("has the field `{extra}`, which is not declared; {declared}"),
        );
    }
    if let Some((field, _)) = inputs.iter().find(|(_, text)| is_blank(text)) {
        return wrong(
            &format!("inputs.{field}"),
            "must not be blank; invisible characters do not count".to_owned(),
        );
    }
    match (contract.has_image(), media_url) {
        (true, None) => {
            wrong("media_url", format!("is required: the contract `{contract}` has an image"))
        }
        (false, Some(_)) => {
            wrong("media_url", "must be left out: the contract `text` has no image".to_owned())
        }
        (true, Some(_)) | (false, None) => Ok(()),
    }
}

impl VerifierExample {
    /// The JSON of the example.
    pub fn document(&self) -> Value {
        json!({
            "inputs": self.inputs,
            "media_url": self.media_url,
            "passed": self.passed,
            "reasoning": self.reasoning,
        })
    }

    fn read(document: &Value) -> Option<Self> {
        let inputs = document.get("inputs")?.as_object()?;
        let inputs = inputs.iter().map(|(name, text)| Some((name.clone(), owned(text)?)));
        let optional = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            inputs: inputs.collect::<Option<_>>()?,
            media_url: optional("media_url"),
            passed: document.get("passed")?.as_bool()?,
            reasoning: optional("reasoning"),
        })
    }
}

fn owned(text: &Value) -> Option<String> {
    text.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> VerifierConfig {
        let example = VerifierExample {
            inputs: BTreeMap::from([("response".to_owned(), "a".to_owned())]),
            media_url: None,
            passed: true,
            reasoning: None,
        };
        VerifierConfig {
            criterion: "c".to_owned(),
            contract: InputContract::Text,
            fields: vec!["response".to_owned()],
            examples: vec![example],
            judge: JudgeSettings {
                model: "openai/org/gpt".parse().unwrap(),
                effort: Some(Effort::High),
                commit_first: true,
            },
        }
    }

    fn given(fields: &[&str]) -> BTreeMap<String, String> {
        fields.iter().map(|field| ((*field).to_owned(), "x".to_owned())).collect()
    }

    #[test]
    fn a_document_reads_back_and_every_change_changes_its_hash() {
        let config = config();
        assert_eq!(VerifierConfig::read(&config.document()), Some(config.clone()));
        let sharper = VerifierConfig { criterion: "d".to_owned(), ..config.clone() };
        assert_ne!(sharper.hash(), config.hash());
        let mut relabelled = config.clone();
        relabelled.examples[0].passed = false;
        assert_ne!(relabelled.hash(), config.hash());
        assert_eq!(config.hash().len(), 64);
    }

    #[test]
    fn a_run_must_give_exactly_the_declared_fields() {
        let config = config();
        let refusal = |fields: &[&str], media: Option<&str>| {
            config.check_inputs(&given(fields), media).unwrap_err().to_string()
        };
        assert_eq!(config.check_inputs(&given(&["response"]), None), Ok(()));
        assert_eq!(
            refusal(&[], None),
            "`inputs` lacks the field `response`; give exactly these: response"
        );
        assert!(refusal(&["response", "more"], None).contains("`more`, which is not declared"));
        assert!(refusal(&["response"], Some("https://x/y.png")).contains("must be left out"));
        for text in [" ", "\u{200b}\u{feff}", "\u{e0041} \u{2800}"] {
            let blank = BTreeMap::from([("response".to_owned(), text.to_owned())]);
            let refused = config.check_inputs(&blank, None).unwrap_err();
            assert_eq!(refused.field, "inputs.response", "{text:?}");
        }
        let image =
            VerifierConfig { contract: InputContract::Image, fields: vec![], ..config.clone() };
        assert_eq!(image.check_inputs(&given(&[]), None).unwrap_err().field, "media_url");
        assert_eq!(image.check_inputs(&given(&[]), Some("https://x/y.png")), Ok(()));
    }

    #[test]
    fn a_judge_is_a_provider_and_a_model() {
        for text in ["gpt", "/m", "p/", "P/m", "p/m m", ""] {
            assert!(text.parse::<ModelRef>().is_err(), "{text}");
        }
        assert_eq!("p/a/b".parse::<ModelRef>().unwrap().to_string(), "p/a/b");
    }
}
