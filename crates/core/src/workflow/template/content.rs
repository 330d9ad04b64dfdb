//! The content of a template version: the summary for lists, and the part that only the version
//! shows.

use serde_json::{Value, json};

use super::{DesignState, SafetyStatus};
use crate::verifier::VerifierConfig;

/// The part of a version that lists and searches show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateVersionSummary {
    pub name: String,
    pub description: String,
    pub outcome: String,
    pub tags: Vec<String>,
    pub safety: TemplateSafety,
    pub design: DesignChecks,
}

/// The body, and the verifiers as they were when the version was published.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateContent {
    pub body: String,
    pub release_notes: Option<String>,
    pub workflow_version: u32,
    pub snapshots: Vec<VerifierSnapshot>,
}

/// The result of screening the version before it was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSafety {
    pub status: SafetyStatus,
    pub advisory_run_id: Option<String>,
    pub advisory_reasoning: Option<String>,
}

/// A judge's view of the design.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesignChecks {
    /// It aims at one observable result.
    pub outcome: DesignState,
    /// It can be followed, even if something goes wrong.
    pub runnable: DesignState,
    /// It checks itself, and states its purpose.
    pub well_formed: DesignState,
    pub criteria: Vec<DesignCriterion>,
    pub guidance: Option<String>,
}

/// One criterion of the design, with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesignCriterion {
    pub criterion: String,
    pub passed: bool,
    pub reason: String,
}

/// A verifier as it was when the version was published.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifierSnapshot {
    /// The name under which the workflow binds it.
    pub name: String,
    pub verifier_id: String,
    pub verifier_name: String,
    pub description: String,
    pub version: u32,
    pub config: VerifierConfig,
    pub config_hash: String,
}

/// The points of `system:workflow-design-qa`, in its order, each with the part that it belongs to.
const POINTS: [(&str, DesignPart); 5] = [
    ("The outcome is one observable result.", DesignPart::Outcome),
    ("The steps lead to it and can be done in order.", DesignPart::Runnable),
    ("Each check says what a pass and a fail look like.", DesignPart::WellFormed),
    ("It says what to do when a check or a step fails.", DesignPart::Runnable),
    ("The name and description match what the body does.", DesignPart::WellFormed),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DesignPart {
    Outcome,
    Runnable,
    WellFormed,
}

impl DesignChecks {
    /// The design was not judged, for this reason.
    pub fn not_checked(why: &str) -> Self {
        Self {
            outcome: DesignState::NotChecked,
            runnable: DesignState::NotChecked,
            well_formed: DesignState::NotChecked,
            criteria: Vec::new(),
            guidance: Some(format!("The design was not checked: {why}")),
        }
    }

    /// Turns a verdict into the state of each part. The judge names the points that fail; if it
    /// names none, all of them are in doubt.
    pub fn judged(passed: bool, reasoning: &str) -> Self {
        let failed = if passed { Vec::new() } else { points(reasoning) };
        let holds = |point: usize| passed || !(failed.is_empty() || failed.contains(&point));
        let of = |part: DesignPart| {
            let is_met = (1..).zip(POINTS).all(|(point, (_, of))| of != part || holds(point));
            if is_met { DesignState::Met } else { DesignState::NotMet }
        };
        let reason = |holds: bool| if holds { String::new() } else { plain(reasoning) };
        let criteria = (1..).zip(POINTS).map(|(point, (criterion, _))| DesignCriterion {
            criterion: criterion.to_owned(),
            passed: holds(point),
            reason: reason(holds(point)),
        });
        Self {
            outcome: of(DesignPart::Outcome),
            runnable: of(DesignPart::Runnable),
            well_formed: of(DesignPart::WellFormed),
            criteria: criteria.collect(),
            guidance: (!passed).then(|| plain(reasoning)),
        }
    }
}

/// The text of a judge without characters that clients read as markup.
fn plain(text: &str) -> String {
    let plain = |c| match c {
        '[' => '(',
        ']' => ')',
        other => other,
    };
    text.chars().take(4_000).map(plain).collect()
}

/// The numbers after the word "point" in a reasoning, as in `Points 3 and 4: …`.
fn points(reasoning: &str) -> Vec<usize> {
    let lower = reasoning.to_lowercase();
    let mut found = Vec::new();
    for rest in lower.split("point").skip(1) {
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        let numbers = rest.split_inclusive(|c: char| !c.is_ascii_digit());
        for part in numbers.take(12) {
            let digits: String = part.chars().filter(char::is_ascii_digit).collect();
            let separator = part.trim_matches(|c: char| c.is_ascii_digit());
            if let Ok(number) = digits.parse::<usize>()
                && (1..=POINTS.len()).contains(&number)
            {
                found.push(number);
            }
            // A list of points continues over commas, spaces and "and"; a colon or a full stop ends
            // it.
            if !["", " ", ",", "a", "n", "d", "&"].contains(&separator) {
                break;
            }
        }
    }
    found
}

impl TemplateVersionSummary {
    /// The JSON of the summary.
    pub fn document(&self) -> Value {
        let DesignChecks { outcome, runnable, well_formed, criteria, guidance } = &self.design;
        let criteria: Vec<Value> = criteria
            .iter()
            .map(
                |it| json!({ "criterion": it.criterion, "passed": it.passed, "reason": it.reason }),
            )
            .collect();
        json!({
            "name": self.name,
            "description": self.description,
            "outcome": self.outcome,
            "tags": self.tags,
            "safety": {
                "status": self.safety.status.as_str(),
                "advisory_run_id": self.safety.advisory_run_id,
                "advisory_reasoning": self.safety.advisory_reasoning,
            },
            "design": {
                "outcome": outcome.as_str(),
                "runnable": runnable.as_str(),
                "well_formed": well_formed.as_str(),
                "criteria": criteria,
                "guidance": guidance,
            },
        })
    }

    /// Reads a document that [`TemplateVersionSummary::document`] wrote; `None` if it is not one.
    pub fn read(document: &Value) -> Option<Self> {
        let (safety, design) = (document.get("safety")?, document.get("design")?);
        let state = |name: &str| design.get(name)?.as_str()?.parse::<DesignState>().ok();
        let criteria = design.get("criteria")?.as_array()?.iter().map(|it| {
            Some(DesignCriterion {
                criterion: text(it, "criterion")?,
                passed: it.get("passed")?.as_bool()?,
                reason: text(it, "reason")?,
            })
        });
        Some(Self {
            name: text(document, "name")?,
            description: text(document, "description")?,
            outcome: text(document, "outcome")?,
            tags: texts(document, "tags")?,
            safety: TemplateSafety {
                status: safety.get("status")?.as_str()?.parse().ok()?,
                advisory_run_id: text(safety, "advisory_run_id"),
                advisory_reasoning: text(safety, "advisory_reasoning"),
            },
            design: DesignChecks {
                outcome: state("outcome")?,
                runnable: state("runnable")?,
                well_formed: state("well_formed")?,
                criteria: criteria.collect::<Option<_>>()?,
                guidance: text(design, "guidance"),
            },
        })
    }
}

impl TemplateContent {
    /// The JSON of the content.
    pub fn document(&self) -> Value {
        let snapshots: Vec<Value> = self
            .snapshots
            .iter()
            .map(|it| {
                json!({
                    "name": it.name,
                    "verifier_id": it.verifier_id,
                    "verifier_name": it.verifier_name,
                    "description": it.description,
                    "version": it.version,
                    "config": it.config.document(),
                    "config_hash": it.config_hash,
                })
            })
            .collect();
        json!({
            "body": self.body,
            "release_notes": self.release_notes,
            "workflow_version": self.workflow_version,
            "snapshots": snapshots,
        })
    }

    /// Reads a document that [`TemplateContent::document`] wrote; `None` if it is not one.
    pub fn read(document: &Value) -> Option<Self> {
        let snapshots = document.get("snapshots")?.as_array()?.iter().map(|it| {
            Some(VerifierSnapshot {
                name: text(it, "name")?,
                verifier_id: text(it, "verifier_id")?,
                verifier_name: text(it, "verifier_name")?,
                description: text(it, "description")?,
                version: whole(it, "version")?,
                config: VerifierConfig::read(it.get("config")?)?,
                config_hash: text(it, "config_hash")?,
            })
        });
        Some(Self {
            body: text(document, "body")?,
            release_notes: text(document, "release_notes"),
            workflow_version: whole(document, "workflow_version")?,
            snapshots: snapshots.collect::<Option<_>>()?,
        })
    }
}

fn text(document: &Value, name: &str) -> Option<String> {
    document.get(name)?.as_str().map(str::to_owned)
}

fn texts(document: &Value, name: &str) -> Option<Vec<String>> {
    document.get(name)?.as_array()?.iter().map(|it| it.as_str().map(str::to_owned)).collect()
}

fn whole(document: &Value, name: &str) -> Option<u32> {
    document.get(name)?.as_u64().and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_reads_back() {
        let summary = TemplateVersionSummary {
            name: "n".to_owned(),
            description: "d".to_owned(),
            outcome: "o".to_owned(),
            tags: vec!["a".to_owned()],
            safety: TemplateSafety {
                status: SafetyStatus::Flagged,
                advisory_run_id: Some("r".to_owned()),
                advisory_reasoning: None,
            },
            design: DesignChecks::judged(false, "Point 1: it is no result."),
        };
        assert_eq!(TemplateVersionSummary::read(&summary.document()), Some(summary));
        assert_eq!(TemplateVersionSummary::read(&json!({})), None);
    }

    #[test]
    fn the_points_that_a_judge_names_are_not_met() {
        use DesignState::{Met, NotMet};
        let states = |reasoning: &str| {
            let checks = DesignChecks::judged(false, reasoning);
            (checks.outcome, checks.runnable, checks.well_formed)
        };
        assert_eq!(states("Point 1: no result."), (NotMet, Met, Met));
        assert_eq!(states("Points 3 and 4: never counted in 5 rows."), (Met, NotMet, NotMet));
        assert_eq!(states("Point 2 fails; all other points hold."), (Met, NotMet, Met));
        assert_eq!(states("It is bad."), (NotMet, NotMet, NotMet));
        let fine = DesignChecks::judged(true, "All points hold.");
        assert!(fine.criteria.iter().all(|it| it.passed) && fine.guidance.is_none());
        assert!(!DesignChecks::judged(false, "a [b]").guidance.unwrap().contains('['));
    }
}
