//! A requested version of a verifier, and the check that it is valid.

use std::collections::BTreeSet;

use super::{
    CRITERION_CHARS, DESCRIPTION_CHARS, EXAMPLES_CHARS, FIELD_CHARS, InputContract, MOST_EXAMPLES,
    MOST_FIELDS, NAME_CHARS, URL_CHARS,
    config::{
        Effort, InputError, JudgeSettings, ModelRef, VerifierConfig, VerifierExample, check_inputs,
    },
    is_field, is_name,
    reference::is_uuid,
};
use crate::judge::is_blank;

/// The version to deploy: the first of a new verifier, or the next of an existing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierDraft {
    pub name: String,
    pub description: String,
    pub criterion: String,
    pub contract: InputContract,
    pub fields: Vec<String>,
    pub examples: Vec<VerifierExample>,
    /// If absent, the default judge of the installation.
    pub model: Option<ModelRef>,
    pub effort: Option<Effort>,
    pub commit_first: bool,
    /// The token of the current version; absent for a new verifier.
    pub expected_token: Option<String>,
}

impl VerifierDraft {
    /// Checks the limits, and that the examples fit the contract.
    pub fn check(&self) -> Result<(), InputError> {
        self.check_name()?;
        within("description", &self.description, DESCRIPTION_CHARS)?;
        within("criterion", &self.criterion, CRITERION_CHARS)?;
        self.check_fields()?;
        if MOST_EXAMPLES < self.examples.len() {
            let problem = format!("must have at most {MOST_EXAMPLES} examples");
            return wrong("few_shot_examples", problem);
        }
        let texts = self.examples.iter().flat_map(|it| it.inputs.values().chain(&it.reasoning));
        let count: usize = texts.map(|text| text.chars().count()).sum();
        if EXAMPLES_CHARS < count {
            let problem = format!(
                "must have at most {EXAMPLES_CHARS} characters in total, and has {count}: the judge reads them every time"
            );
            return wrong("few_shot_examples", problem);
        }
        for (index, example) in self.examples.iter().enumerate() {
            self.check_example(example).map_err(|error| InputError {
                field: format!("few_shot_examples.{index}.{}", error.field),
                ..error
            })?;
        }
        Ok(())
    }

    /// The configuration of the version, with this model as its judge.
    pub fn into_config(self, model: ModelRef) -> VerifierConfig {
        VerifierConfig {
            criterion: self.criterion,
            contract: self.contract,
            fields: self.fields,
            examples: self.examples,
            judge: JudgeSettings { model, effort: self.effort, commit_first: self.commit_first },
        }
    }

    fn check_name(&self) -> Result<(), InputError> {
        if !is_name(&self.name) {
            let problem =
                format!("must have 1 to {NAME_CHARS} lowercase letters, digits and hyphens");
            return wrong("name", problem);
        }
        if is_uuid(&self.name) {
            let problem = "must not look like a verifier id";
            return wrong("name", problem.to_owned());
        }
        Ok(())
    }

    fn check_fields(&self) -> Result<(), InputError> {
        let refuse = |problem: String| wrong("input_fields", problem);
        let contract = self.contract;
        if contract.has_text() && self.fields.is_empty() {
            return refuse(format!(
                "contradicts `input_contract` `{contract}`, which needs at least one named field"
            ));
        }
        if !contract.has_text() && !self.fields.is_empty() {
            return refuse(format!(
                "contradicts `input_contract` `{contract}`, which has no text fields; leave them out"
            ));
        }
        if MOST_FIELDS < self.fields.len() {
            return refuse(format!("must have at most {MOST_FIELDS} names"));
        }
        let mut seen = BTreeSet::new();
        for field in &self.fields {
            let short: String = field.chars().take(60).collect();
            if !is_field(field) {
                return refuse(format!(
                    "has `{short}`; a name has 1 to {FIELD_CHARS} letters, digits, hyphens and underscores"
                ));
            }
            if contract.has_image() && field == "media_url" {
                return refuse("has `media_url`, which is the name of the image".to_owned());
            }
            if !seen.insert(field) {
                return refuse(format!("has `{short}` twice"));
            }
        }
        Ok(())
    }

    fn check_example(&self, example: &VerifierExample) -> Result<(), InputError> {
        let media_url = example.media_url.as_deref();
        check_inputs(self.contract, &self.fields, &example.inputs, media_url)?;
        let is_address = |url: &str| {
            url.len() <= URL_CHARS && (url.starts_with("https://") || url.starts_with("http://"))
        };
        if media_url.is_some_and(|url| !is_address(url)) {
            let problem = format!(
                "must begin with https:// or http:// and have at most {URL_CHARS} characters"
            );
            return wrong("media_url", problem);
        }
        Ok(())
    }
}

fn within(field: &str, text: &str, most: usize) -> Result<(), InputError> {
    if is_blank(text) {
        return wrong(field, "must not be blank".to_owned());
    }
    if text.contains('\0') {
        return wrong(field, "must not contain a NUL character".to_owned());
    }
    let count = text.chars().count();
    if most < count {
        return wrong(field, format!("must have at most {most} characters, and has {count}"));
    }
    Ok(())
}

fn wrong(field: &str, problem: String) -> Result<(), InputError> {
    Err(InputError { field: field.to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn draft() -> VerifierDraft {
        VerifierDraft {
            name: "claims-cite-source".to_owned(),
            description: "d".to_owned(),
            criterion: "c".to_owned(),
            contract: InputContract::Text,
            fields: vec!["response".to_owned(), "source".to_owned()],
            examples: vec![],
            model: None,
            effort: None,
            commit_first: false,
            expected_token: None,
        }
    }

    fn example(fields: &[&str], media_url: Option<&str>) -> VerifierExample {
        let inputs = fields.iter().map(|field| ((*field).to_owned(), "x".to_owned()));
        VerifierExample {
            inputs: inputs.collect::<BTreeMap<_, _>>(),
            media_url: media_url.map(str::to_owned),
            passed: true,
            reasoning: None,
        }
    }

    #[track_caller]
    fn refused(draft: &VerifierDraft, field: &str) {
        assert_eq!(draft.check().unwrap_err().field, field, "{draft:?}");
    }

    #[test]
    fn the_longest_texts_fit_and_one_more_character_does_not() {
        let full = VerifierDraft {
            name: "n".repeat(NAME_CHARS),
            description: "é".repeat(DESCRIPTION_CHARS),
            criterion: "é".repeat(CRITERION_CHARS),
            ..draft()
        };
        assert_eq!(full.check(), Ok(()));
        refused(&VerifierDraft { name: format!("{}n", full.name), ..full.clone() }, "name");
        let description = format!("{}é", full.description);
        refused(&VerifierDraft { description, ..full.clone() }, "description");
        let criterion = format!("{}é", full.criterion);
        refused(&VerifierDraft { criterion, ..full }, "criterion");
    }

    #[test]
    fn a_name_is_plain_and_not_an_id() {
        for name in ["", "Name", "a_b", "a b", "system:a", "0198c1f0-0000-7000-8000-000000000001"] {
            refused(&VerifierDraft { name: name.to_owned(), ..draft() }, "name");
        }
    }

    #[test]
    fn fields_fit_the_contract_and_are_plain_and_distinct() {
        let fields = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for names in [&[][..], &["a", "a"], &["a b"], &[""], &["é"]] {
            refused(&VerifierDraft { fields: fields(names), ..draft() }, "input_fields");
        }
        let many: Vec<String> = (0..=MOST_FIELDS).map(|number| format!("f{number}")).collect();
        refused(&VerifierDraft { fields: many, ..draft() }, "input_fields");
        let image = VerifierDraft { contract: InputContract::Image, ..draft() };
        refused(&image, "input_fields");
        assert_eq!(VerifierDraft { fields: vec![], ..image }.check(), Ok(()));
    }

    #[test]
    fn each_example_fits_the_contract() {
        let with = |example: VerifierExample| VerifierDraft { examples: vec![example], ..draft() };
        assert_eq!(with(example(&["response", "source"], None)).check(), Ok(()));
        refused(&with(example(&["response"], None)), "few_shot_examples.0.inputs");
        let seen = example(&["response", "source"], Some("https://x/y.png"));
        refused(&with(seen.clone()), "few_shot_examples.0.media_url");
        let both = VerifierDraft { contract: InputContract::TextImage, ..with(seen) };
        assert_eq!(both.check(), Ok(()));
        let local = example(&["response", "source"], Some("file:///etc/passwd"));
        let both = VerifierDraft { contract: InputContract::TextImage, ..with(local) };
        refused(&both, "few_shot_examples.0.media_url");
        let mut long = example(&["response", "source"], None);
        long.inputs.insert("source".to_owned(), "é".repeat(EXAMPLES_CHARS - 1));
        assert_eq!(with(long.clone()).check(), Ok(()));
        long.reasoning = Some("x".to_owned());
        refused(&with(long), "few_shot_examples");
        let many = vec![example(&["response", "source"], None); MOST_EXAMPLES + 1];
        refused(&VerifierDraft { examples: many, ..draft() }, "few_shot_examples");
    }
}
