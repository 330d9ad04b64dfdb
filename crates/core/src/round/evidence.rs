//! Decides how fetched evidence changes a verdict.

mod inline;

use std::str::FromStr;

use serde_json::{Value, json};

pub use self::inline::InlineTerms;

use super::{
    candidate::{ArtifactRef, InlineEvidence},
    job::words,
    replica::{AnswerContent, Label, ReplicaAnswer, ReplicaVote},
};
use crate::{
    policy::{Evaluation, EvaluationStatus},
    reason,
};

/// How many references of one candidate are fetched; further ones count as unreachable.
pub const MOST_REFS: usize = 32;

/// Marks the inline evidence that holds the findings.
const KIND: &str = "evidence_check";

words!(
    /// The result of fetching a reference.
    EvidenceStatus {
        /// It exists, and has the declared digest.
        Seen => "seen",
        Unreachable => "unreachable",
        Timeout => "timeout",
        Denied => "denied",
        /// It exists, but has another digest.
        Mismatch => "mismatch",
    }
);

impl EvidenceStatus {
    /// The reason code; `None` for evidence that was seen.
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

/// A reference and the result of fetching it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceFinding {
    pub uri: String,
    /// The declared digest.
    pub digest: String,
    pub found: EvidenceStatus,
}

impl EvidenceFinding {
    /// The finding for a reference.
    pub fn new(reference: &ArtifactRef, found: EvidenceStatus) -> Self {
        Self { uri: reference.uri.clone(), digest: reference.digest.clone(), found }
    }
}

/// How the findings change a verdict.
struct EvidenceRuling {
    /// `None` if they do not change it.
    status: Option<EvaluationStatus>,
    reason_codes: Vec<u16>,
    notes: Vec<String>,
}

/// Evidence with another digest fails the candidate. Evidence that could not be fetched makes the
/// verdict inconclusive.
fn ruling(findings: &[EvidenceFinding]) -> EvidenceRuling {
    let missed = || findings.iter().filter(|finding| finding.found != EvidenceStatus::Seen);
    let mut reason_codes: Vec<u16> = missed().filter_map(|it| it.found.reason_code()).collect();
    reason_codes.sort_unstable();
    reason_codes.dedup();
    let status = if reason_codes.contains(&reason::EVIDENCE_DIGEST_MISMATCH) {
        Some(EvaluationStatus::Failed)
    } else if reason_codes.is_empty() {
        None
    } else {
        Some(EvaluationStatus::Inconclusive)
    };
    let note = |it: &EvidenceFinding| {
        format!("The evidence `{}` {}.", plain(&it.digest), it.found.words())
    };
    EvidenceRuling { status, reason_codes, notes: missed().map(note).collect() }
}

/// A foreign text in a note, without characters that some clients read as markup.
fn plain(text: &str) -> String {
    let letters = text.chars().take(80).filter(|letter| !letter.is_control());
    letters.map(|letter| if matches!(letter, '[' | ']' | '`') { ' ' } else { letter }).collect()
}

/// The evaluation after the evidence was checked.
pub fn amend(mut evaluation: Evaluation, findings: &[EvidenceFinding]) -> Evaluation {
    let EvidenceRuling { status, reason_codes, notes } = ruling(findings);
    let Some(status) = status else { return evaluation };
    if status == EvaluationStatus::Inconclusive {
        evaluation.score = 0.0;
    }
    if evaluation.status != status && status == EvaluationStatus::Failed {
        evaluation.score = 1.0;
    }
    evaluation.status = status;
    add(&mut evaluation.reason_codes, &reason_codes);
    evaluation.notes.extend(notes);
    evaluation
}

/// The answer of a replica after the evidence was checked. An answer without a verdict stays one.
/// The findings and the original verdict are kept with the answer.
pub fn amend_answer(answer: ReplicaAnswer, findings: &[EvidenceFinding]) -> ReplicaAnswer {
    let (label, mut said) = match answer {
        ReplicaAnswer::Vote(ReplicaVote { label, said })
        | ReplicaAnswer::Abstained { label, said } => (label, said),
        ReplicaAnswer::Nothing { .. } => return answer,
    };
    let record = record(label, &said, findings);
    let EvidenceRuling { status, reason_codes, notes } = ruling(findings);
    said.evidence.inline.push(record);
    add(&mut said.reason_codes, &reason_codes);
    said.notes.extend(notes);
    let is_abstention = matches!(label, Label::Retry | Label::NeedsSpec);
    match status {
        None if is_abstention => ReplicaAnswer::Abstained { label, said },
        None | Some(EvaluationStatus::Passed) => ReplicaAnswer::Vote(ReplicaVote { label, said }),
        Some(EvaluationStatus::Failed) => {
            ReplicaAnswer::Vote(ReplicaVote { label: Label::Invalid, said })
        }
        Some(EvaluationStatus::Inconclusive) => ReplicaAnswer::Abstained {
            label: if is_abstention { label } else { Label::Retry },
            said,
        },
    }
}

fn add(codes: &mut Vec<u16>, others: &[u16]) {
    let missing: Vec<u16> = others.iter().copied().filter(|code| !codes.contains(code)).collect();
    codes.extend(missing);
}

/// The original verdict of a replica, and the findings that followed.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceCheck {
    pub label: Label,
    pub reason_codes: Vec<u16>,
    pub findings: Vec<EvidenceFinding>,
}

impl EvidenceCheck {
    /// Digests of the evidence that the replica could see. A replica that could not reach some
    /// evidence does not name it.
    pub fn available(&self) -> Vec<String> {
        let is_missing = |code: &u16| {
            let unseen =
                [EvidenceStatus::Unreachable, EvidenceStatus::Timeout, EvidenceStatus::Denied];
            unseen.iter().any(|found| found.reason_code() == Some(*code))
        };
        if self.reason_codes.iter().any(is_missing) {
            return Vec::new();
        }
        // Evidence found at one address may be missing at another.
        let is_missed = |digest: &str| {
            let missed = self.findings.iter().filter(|it| it.found != EvidenceStatus::Seen);
            missed.into_iter().any(|it| it.digest.eq_ignore_ascii_case(digest))
        };
        let seen = self.findings.iter().filter(|it| it.found == EvidenceStatus::Seen);
        seen.filter(|it| !is_missed(&it.digest)).map(|it| it.digest.clone()).collect()
    }
}

fn record(label: Label, said: &AnswerContent, findings: &[EvidenceFinding]) -> InlineEvidence {
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

/// Reads back the findings that [`amend_answer`] stored.
pub fn evidence_check(said: &AnswerContent) -> Option<EvidenceCheck> {
    said.evidence.inline.iter().find_map(|item| {
        let document: Value = serde_json::from_str(&item.content).ok()?;
        if document.get("kind")?.as_str()? != KIND {
            return None;
        }
        let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let finding = |value: &Value| {
            let found = EvidenceStatus::from_str(&text(value, "found")?).ok()?;
            Some(EvidenceFinding {
                uri: text(value, "uri")?,
                digest: text(value, "digest")?,
                found,
            })
        };
        let before = document.get("before")?;
        let codes = before.get("reason_codes")?.as_array()?.iter();
        Some(EvidenceCheck {
            label: Label::from_str(&text(before, "verdict")?).ok()?,
            reason_codes: codes.filter_map(|it| u16::try_from(it.as_u64()?).ok()).collect(),
            findings: document.get("findings")?.as_array()?.iter().filter_map(finding).collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(found: &[EvidenceStatus]) -> Vec<EvidenceFinding> {
        let finding = |found: &EvidenceStatus| EvidenceFinding {
            uri: "https://example.com/a".to_owned(),
            digest: "sha256:00".to_owned(),
            found: *found,
        };
        found.iter().map(finding).collect()
    }

    fn valid() -> ReplicaAnswer {
        ReplicaAnswer::Vote(ReplicaVote { label: Label::Valid, said: AnswerContent::default() })
    }

    #[test]
    fn evidence_that_matches_changes_no_verdict() {
        let amended =
            amend_answer(valid(), &findings(&[EvidenceStatus::Seen, EvidenceStatus::Seen]));
        assert_eq!(amended.label(), Label::Valid);
        assert!(amended.content().unwrap().reason_codes.is_empty());
        assert_eq!(evidence_check(amended.content().unwrap()).unwrap().findings.len(), 2);
    }

    #[test]
    fn unreachable_evidence_makes_the_verdict_inconclusive() {
        let invalid = ReplicaAnswer::Vote(ReplicaVote {
            label: Label::Invalid,
            said: AnswerContent::default(),
        });
        for answer in [valid(), invalid] {
            let before = answer.label();
            let amended =
                amend_answer(answer, &findings(&[EvidenceStatus::Seen, EvidenceStatus::Timeout]));
            assert_eq!(amended.label(), Label::Retry);
            assert_eq!(amended.content().unwrap().reason_codes, [201]);
            assert_eq!(evidence_check(amended.content().unwrap()).unwrap().label, before);
        }
    }

    #[test]
    fn mismatched_evidence_fails_even_if_other_evidence_is_missing() {
        let amended =
            amend_answer(valid(), &findings(&[EvidenceStatus::Mismatch, EvidenceStatus::Denied]));
        assert_eq!(amended.label(), Label::Invalid);
        assert_eq!(amended.content().unwrap().reason_codes, [202, 203]);
    }

    #[test]
    fn a_missing_answer_stays_without_a_verdict_whatever_the_evidence() {
        let silent = ReplicaAnswer::nothing(crate::round::replica::FailureCode::Timeout, "late");
        assert_eq!(amend_answer(silent.clone(), &findings(&[EvidenceStatus::Mismatch])), silent);
    }
}
