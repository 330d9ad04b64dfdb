//! What was found where evidence refers to, and what that makes of a verdict.

mod inline;

use std::str::FromStr;

use serde_json::{Value, json};

pub use self::inline::InlineTerms;

use crate::{
    candidate::{ArtifactRef, InlineEvidence},
    job::words,
    policy::{Evaluation, Status},
    reason,
    replica::{Answer, Label, Said, Vote},
};

/// References of one candidate that are looked at; further ones count as not reached.
pub const MOST_REFS: usize = 32;

/// How the evidence that holds findings is marked.
const KIND: &str = "evidence_check";

words!(
    /// What a look at a reference came to.
    Found {
        /// It is there, and is what was declared.
        Seen => "seen",
        Unreachable => "unreachable",
        Timeout => "timeout",
        Denied => "denied",
        /// It is there, and is something else.
        Mismatch => "mismatch",
    }
);

impl Found {
    /// The reason code; none for what was seen.
    pub const fn reason_code(self) -> Option<u16> {
        match self {
            Self::Seen => None,
            Self::Unreachable => Some(reason::EVIDENCE_UNREACHABLE),
            Self::Timeout => Some(reason::EVIDENCE_TIMEOUT),
            Self::Denied => Some(reason::EVIDENCE_AUTH_DENIED),
            Self::Mismatch => Some(reason::EVIDENCE_DIGEST_MISMATCH),
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Seen => "matches its declaration",
            Self::Unreachable => "could not be reached",
            Self::Timeout => "did not arrive in time",
            Self::Denied => "denied access",
            Self::Mismatch => "does not match its declaration",
        }
    }
}

/// One reference and what was found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub uri: String,
    /// As it was declared.
    pub digest: String,
    pub found: Found,
}

impl Finding {
    pub fn new(reference: &ArtifactRef, found: Found) -> Self {
        Self { uri: reference.uri.clone(), digest: reference.digest.clone(), found }
    }
}

/// What findings say of a verdict, whatever it is.
struct Ruling {
    /// `None` when there is nothing to say against it.
    status: Option<Status>,
    reason_codes: Vec<u16>,
    notes: Vec<String>,
}

/// Evidence that is something else is a failure. Evidence that nobody could look at decides
/// nothing, and lets nothing be decided.
fn ruling(findings: &[Finding]) -> Ruling {
    let missed = || findings.iter().filter(|finding| finding.found != Found::Seen);
    let mut reason_codes: Vec<u16> = missed().filter_map(|it| it.found.reason_code()).collect();
    reason_codes.sort_unstable();
    reason_codes.dedup();
    let status = if reason_codes.contains(&reason::EVIDENCE_DIGEST_MISMATCH) {
        Some(Status::Failed)
    } else if reason_codes.is_empty() {
        None
    } else {
        Some(Status::Inconclusive)
    };
    let note = |it: &Finding| format!("The evidence `{}` {}.", plain(&it.digest), it.found.words());
    Ruling { status, reason_codes, notes: missed().map(note).collect() }
}

/// A text of somebody else's in a note, without what some clients take for markup.
fn plain(text: &str) -> String {
    let letters = text.chars().take(80).filter(|letter| !letter.is_control());
    letters.map(|letter| if matches!(letter, '[' | ']' | '`') { ' ' } else { letter }).collect()
}

/// What a verdict is after a look at the evidence.
pub fn amend(mut evaluation: Evaluation, findings: &[Finding]) -> Evaluation {
    let Ruling { status, reason_codes, notes } = ruling(findings);
    let Some(status) = status else { return evaluation };
    if status == Status::Inconclusive {
        evaluation.score = 0.0;
    }
    if evaluation.status != status && status == Status::Failed {
        evaluation.score = 1.0;
    }
    evaluation.status = status;
    add(&mut evaluation.reason_codes, &reason_codes);
    evaluation.notes.extend(notes);
    evaluation
}

/// What the answer of a verifier is after a look at the evidence. One without a verdict stays so.
/// The findings, and what was said before them, are kept with the answer.
pub fn amend_answer(answer: Answer, findings: &[Finding]) -> Answer {
    let (label, mut said) = match answer {
        Answer::Vote(Vote { label, said }) | Answer::Abstained { label, said } => (label, said),
        Answer::Nothing { .. } => return answer,
    };
    let record = record(label, &said, findings);
    let Ruling { status, reason_codes, notes } = ruling(findings);
    said.evidence.inline.push(record);
    add(&mut said.reason_codes, &reason_codes);
    said.notes.extend(notes);
    let is_abstention = matches!(label, Label::Retry | Label::NeedsSpec);
    match status {
        None if is_abstention => Answer::Abstained { label, said },
        None | Some(Status::Passed) => Answer::Vote(Vote { label, said }),
        Some(Status::Failed) => Answer::Vote(Vote { label: Label::Invalid, said }),
        Some(Status::Inconclusive) => {
            Answer::Abstained { label: if is_abstention { label } else { Label::Retry }, said }
        }
    }
}

fn add(codes: &mut Vec<u16>, others: &[u16]) {
    let missing: Vec<u16> = others.iter().copied().filter(|code| !codes.contains(code)).collect();
    codes.extend(missing);
}

/// What a verifier had said, and what was found then.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub label: Label,
    pub reason_codes: Vec<u16>,
    pub findings: Vec<Finding>,
}

impl Checked {
    /// Digests of what was there for the verifier. One that could not reach something itself does
    /// not say what.
    pub fn available(&self) -> Vec<String> {
        let is_missing = |code: &u16| {
            let unseen = [Found::Unreachable, Found::Timeout, Found::Denied];
            unseen.iter().any(|found| found.reason_code() == Some(*code))
        };
        if self.reason_codes.iter().any(is_missing) {
            return Vec::new();
        }
        // What is at one address of two is missing at the other.
        let is_missed = |digest: &str| {
            let missed = self.findings.iter().filter(|it| it.found != Found::Seen);
            missed.into_iter().any(|it| it.digest.eq_ignore_ascii_case(digest))
        };
        let seen = self.findings.iter().filter(|it| it.found == Found::Seen);
        seen.filter(|it| !is_missed(&it.digest)).map(|it| it.digest.clone()).collect()
    }
}

fn record(label: Label, said: &Said, findings: &[Finding]) -> InlineEvidence {
    let findings: Vec<Value> = findings
        .iter()
        .map(|it| json!({ "uri": it.uri, "digest": it.digest, "found": it.found.as_str() }))
        .collect();
    let document = json!({
        "kind": KIND,
        "before": { "verdict": label.as_str(), "reason_codes": said.reason_codes },
        "findings": findings,
    });
    InlineEvidence { mime: "application/json".to_owned(), content: document.to_string() }
}

/// Reads back what [`amend_answer`] kept.
pub fn checked(said: &Said) -> Option<Checked> {
    said.evidence.inline.iter().find_map(|item| {
        let document: Value = serde_json::from_str(&item.content).ok()?;
        if document.get("kind")?.as_str()? != KIND {
            return None;
        }
        let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let finding = |value: &Value| {
            let found = Found::from_str(&text(value, "found")?).ok()?;
            Some(Finding { uri: text(value, "uri")?, digest: text(value, "digest")?, found })
        };
        let before = document.get("before")?;
        let codes = before.get("reason_codes")?.as_array()?.iter();
        Some(Checked {
            label: Label::from_str(&text(before, "verdict")?).ok()?,
            reason_codes: codes.filter_map(|it| u16::try_from(it.as_u64()?).ok()).collect(),
            findings: document.get("findings")?.as_array()?.iter().filter_map(finding).collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(found: &[Found]) -> Vec<Finding> {
        let finding = |found: &Found| Finding {
            uri: "https://example.com/a".to_owned(),
            digest: "sha256:00".to_owned(),
            found: *found,
        };
        found.iter().map(finding).collect()
    }

    fn valid() -> Answer {
        Answer::Vote(Vote { label: Label::Valid, said: Said::default() })
    }

    #[test]
    fn evidence_that_is_there_changes_no_verdict() {
        let amended = amend_answer(valid(), &findings(&[Found::Seen, Found::Seen]));
        assert_eq!(amended.label(), Label::Valid);
        assert!(amended.said().unwrap().reason_codes.is_empty());
        assert_eq!(checked(amended.said().unwrap()).unwrap().findings.len(), 2);
    }

    #[test]
    fn evidence_that_nobody_could_look_at_lets_nothing_be_decided() {
        let invalid = Answer::Vote(Vote { label: Label::Invalid, said: Said::default() });
        for answer in [valid(), invalid] {
            let before = answer.label();
            let amended = amend_answer(answer, &findings(&[Found::Seen, Found::Timeout]));
            assert_eq!(amended.label(), Label::Retry);
            assert_eq!(amended.said().unwrap().reason_codes, [201]);
            assert_eq!(checked(amended.said().unwrap()).unwrap().label, before);
        }
    }

    #[test]
    fn evidence_that_is_something_else_fails_also_when_other_evidence_is_missing() {
        let amended = amend_answer(valid(), &findings(&[Found::Mismatch, Found::Denied]));
        assert_eq!(amended.label(), Label::Invalid);
        assert_eq!(amended.said().unwrap().reason_codes, [202, 203]);
    }

    #[test]
    fn who_did_not_answer_has_no_verdict_whatever_the_evidence_is() {
        let silent = Answer::nothing(crate::replica::FailureCode::Timeout, "late");
        assert_eq!(amend_answer(silent.clone(), &findings(&[Found::Mismatch])), silent);
    }
}
