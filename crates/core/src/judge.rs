//! Judges: one question about one candidate, how it is put, and what the answer amounts to.

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

/// The longest text of one field.
pub const FIELD_TEXT_CHARS: usize = 200_000;
/// What a finding about the image has in place of the name of a field; no field is named so.
pub const IMAGE_FIELD: &str = "the image";

/// What a judge is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub criterion: String,
    pub contract: InputContract,
    /// In the order in which they were declared.
    pub fields: Vec<String>,
    /// Those that the judge sees; the one that is being measured is left out.
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
    /// SHA-256 of its bytes, in hex.
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
    /// What a judge decides.
    JudgeVerdict {
        Met => "met",
        NotMet => "not_met",
        /// The candidate does not let anybody tell.
        CannotConfirm => "cannot_confirm",
        /// The candidate supports both.
        Conflicting => "conflicting",
    }
);

words!(
    /// What a passage says about the criterion.
    FindingStance { Supports => "supports", Violates => "violates" }
);

/// A passage of the candidate that the judge points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeFinding {
    pub field: String,
    /// Word for word from the field; of an image, what is seen.
    pub quote: String,
    pub says: FindingStance,
}

/// What a judge said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgment {
    pub verdict: JudgeVerdict,
    pub reasoning: String,
    pub findings: Vec<JudgeFinding>,
    /// Characters that nobody sees and that were taken out before the judge read the inputs.
    pub stripped: Vec<StrippedCharacters>,
    /// The digest of what the judge wrote down before it saw the candidate.
    pub commitment: Option<String>,
    /// Remarks, such as an example that could not be shown.
    pub notes: Vec<String>,
}

impl Question {
    /// Whether the inputs are short enough for a judge: they are never cut, because a verdict about
    /// a part would be none about the whole.
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

/// The longest inputs together: beside an image there is less room.
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
