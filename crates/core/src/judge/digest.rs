//! Computes the digest of everything that determines a prompt; a cached verdict is found by it.

use serde_json::json;

use super::{JudgeImage, PROMPT_VERSION, Question};
use crate::{
    canonical::{canonical, sha256_hex},
    verifier::{Effort, ModelRef, VerifierExample},
};

/// Everything that determines a prompt, except the random mark of a call.
#[derive(Debug, Clone, Copy)]
pub struct PromptIdentity<'a> {
    pub question: &'a Question,
    pub image: Option<&'a JudgeImage>,
    pub example_images: &'a [Option<JudgeImage>],
    pub model: &'a ModelRef,
    /// The address of the model, because another model of the same name is another judge.
    pub address: &'a str,
    pub effort: Option<Effort>,
    pub commit_first: bool,
}

/// The SHA-256 of the canonical JSON of the identity, in hex.
pub fn digest(asked: &PromptIdentity<'_>) -> String {
    let question = asked.question;
    let examples: Vec<_> = question.examples.iter().map(VerifierExample::document).collect();
    let example_images: Vec<_> =
        asked.example_images.iter().map(|image| image.as_ref().map(JudgeImage::digest)).collect();
    let document = json!({
        "prompt_version": PROMPT_VERSION,
        "judge": {
            "model": asked.model.to_string(),
            "address": asked.address,
            "reasoning_effort": asked.effort.map(Effort::as_str),
            "commit_first": asked.commit_first,
        },
        "criterion": question.criterion,
        "input_contract": question.contract.as_str(),
        "input_fields": question.fields,
        "examples": examples,
        "example_images": example_images,
        "inputs": question.inputs,
        "image": asked.image.map(JudgeImage::digest),
    });
    sha256_hex(&canonical(&document))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::verifier::InputContract;

    #[test]
    fn everything_that_determines_the_prompt_changes_the_digest() {
        let example = VerifierExample {
            inputs: BTreeMap::from([("a".to_owned(), "x".to_owned())]),
            media_url: None,
            passed: true,
            reasoning: None,
        };
        let question = Question {
            criterion: "c".to_owned(),
            contract: InputContract::Text,
            fields: vec!["a".to_owned(), "b".to_owned()],
            examples: vec![example.clone()],
            inputs: BTreeMap::from([("a".to_owned(), "x".to_owned())]),
        };
        let model: ModelRef = "p/m".parse().unwrap();
        let image = JudgeImage { mime: "image/png".to_owned(), bytes: [1_u8].into() };
        let base = PromptIdentity {
            question: &question,
            image: None,
            example_images: &[],
            model: &model,
            address: "http://a",
            effort: None,
            commit_first: false,
        };
        let other = |change: &dyn Fn(&mut Question)| {
            let mut question = question.clone();
            change(&mut question);
            digest(&PromptIdentity { question: &question, ..base })
        };
        let model_2: ModelRef = "p/n".parse().unwrap();
        let digests = [
            digest(&base),
            digest(&PromptIdentity { image: Some(&image), ..base }),
            digest(&PromptIdentity { example_images: &[Some(image.clone())], ..base }),
            digest(&PromptIdentity { model: &model_2, ..base }),
            digest(&PromptIdentity { address: "http://b", ..base }),
            digest(&PromptIdentity { effort: Some(Effort::Low), ..base }),
            digest(&PromptIdentity { commit_first: true, ..base }),
            other(&|question| question.criterion.push('!')),
            other(&|question| question.contract = InputContract::TextImage),
            other(&|question| question.fields.reverse()),
            other(&|question| question.examples.clear()),
            other(&|question| question.examples[0].passed = false),
            other(&|question| question.examples[0].reasoning = Some("r".to_owned())),
            other(&|question| question.inputs.get_mut("a").unwrap().push('y')),
        ];
        let distinct: BTreeSet<_> = digests.iter().collect();
        assert_eq!(distinct.len(), digests.len());
        assert_eq!(digest(&base), digests[0]);
    }
}
