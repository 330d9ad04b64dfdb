//! Judges: one question about one candidate, and the meaning of the answer.

mod clean;
mod commitment;
mod digest;
mod document;
mod history;
mod price;
pub(crate) mod prompt;
mod read;
mod rules;

use std::{collections::BTreeMap, fmt, str::FromStr, sync::Arc};

pub use self::{
    clean::{InvisibleKind, StrippedCharacters, is_blank},
    commitment::{Commitment, commit_prompt, read_commitment},
    digest::{PromptIdentity, digest},
    history::{UsageHistory, UsageSample},
    price::{Price, Tokens},
    prompt::{MessageRole, PROMPT_VERSION, Prompt, PromptMaterials, PromptMessage, mark, prompt},
    read::{JudgmentError, answer_schema, read},
    rules::{CriterionRules, RulesError, check_rules},
};
use crate::{
    canonical::sha256_hex,
    round::job::words,
    verifier::{InputContract, InputError, VerifierExample},
};

/// The maximum length of one field.
pub const FIELD_TEXT_CHARS: usize = 200_000;
/// The field name of a finding about the image; no declared field can have it.
pub const IMAGE_FIELD: &str = "the image";

/// A question to a judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub criterion: String,
    pub contract: InputContract,
    /// In the order of their declaration.
    pub fields: Vec<String>,
    /// The examples that the judge sees; during a measurement the measured example is left out.
    pub examples: Vec<VerifierExample>,
    pub inputs: BTreeMap<String, String>,
}

/// An image that a judge sees.
#[derive(Clone, PartialEq, Eq)]
pub struct JudgeImage {
    pub mime: String,
    pub bytes: Arc<[u8]>,
}

impl JudgeImage {
    /// The SHA-256 of its bytes, in hex.
    pub fn digest(&self) -> String {
        sha256_hex(&self.bytes)
    }
}

impl fmt::Debug for JudgeImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {} bytes)", self.mime, self.bytes.len())
    }
}

words!(
    /// The verdict of a judge.
    JudgeVerdict {
        Met => "met",
        NotMet => "not_met",
        /// The candidate does not allow a decision.
        CannotConfirm => "cannot_confirm",
        /// The candidate supports both verdicts.
        Conflicting => "conflicting",
    }
);

words!(
    /// Whether a passage supports or violates the criterion.
    FindingStance { Supports => "supports", Violates => "violates" }
);

/// A passage of the candidate that the judge cites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeFinding {
    pub field: String,
    /// Quoted literally from the field; for an image, a description of what is visible.
    pub quote: String,
    pub says: FindingStance,
}

/// The answer of a judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgment {
    pub verdict: JudgeVerdict,
    pub reasoning: String,
    pub findings: Vec<JudgeFinding>,
    /// Invisible characters that were removed before the judge read the inputs.
    pub stripped: Vec<StrippedCharacters>,
    /// The digest of the expectations that the judge wrote down before it saw the candidate.
    pub commitment: Option<String>,
    /// Remarks, such as an example that could not be shown.
    pub notes: Vec<String>,
}

impl Question {
    /// Checks that the inputs are short enough for a judge. They are never cut, because a verdict
    /// about a part is not a verdict about the whole.
    pub fn check_length(
        contract: InputContract,
        inputs: &BTreeMap<String, String>,
    ) -> Result<(), InputError> {
        for (field, text) in inputs {
            if FIELD_TEXT_CHARS < text.len() && FIELD_TEXT_CHARS < text.chars().count() {
                let problem = format!("must have at most {FIELD_TEXT_CHARS} characters");
                return Err(InputError { field: format!("inputs.{field}"), problem });
            }
        }
        let most = most_chars(contract);
        let bytes: usize = inputs.values().map(String::len).sum();
        if most < bytes && most < inputs.values().map(|text| text.chars().count()).sum() {
            let problem = format!("must have at most {most} characters together");
            return Err(InputError { field: "inputs".to_owned(), problem });
        }
        Ok(())
    }
}

/// The maximum length of all inputs together; an image leaves less room for text.
const fn most_chars(contract: InputContract) -> usize {
    match contract {
        InputContract::Text => 400_000,
        InputContract::TextImage => 200_000,
        InputContract::Image => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_that_are_too_long_are_refused_and_never_cut() {
        let given = |lengths: &[usize]| -> BTreeMap<String, String> {
            lengths.iter().enumerate().map(|(at, n)| (format!("f{at}"), "é".repeat(*n))).collect()
        };
        let check = |contract, lengths: &[usize]| {
            Question::check_length(contract, &given(lengths)).map_err(|error| error.to_string())
        };
        assert_eq!(check(InputContract::Text, &[200_000, 200_000]), Ok(()));
        let error = check(InputContract::Text, &[1, 200_001]).unwrap_err();
        assert_eq!(error, "`inputs.f1` must have at most 200000 characters");
        let error = check(InputContract::TextImage, &[100_001, 100_000]).unwrap_err();
        assert_eq!(error, "`inputs` must have at most 200000 characters together");
    }
}
