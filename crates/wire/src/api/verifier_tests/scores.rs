//! Reads the scores of a measurement, which replies contain as a document.

use serde::Deserialize;
use serde_json::Value;

/// The scores of a test or an attack; fields that belong only to the other are empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MeasurementScores {
    /// Number of cases.
    pub n: u32,
    pub judged: u32,
    pub inconclusive: u32,
    pub correct: u32,
    pub true_pass: u32,
    pub true_fail: u32,
    pub false_pass: u32,
    pub false_fail: u32,
    pub accuracy: Option<MeasuredRate>,
    pub false_pass_rate: Option<MeasuredRate>,
    pub false_fail_rate: Option<MeasuredRate>,
    pub inconclusive_rate: Option<MeasuredRate>,
    /// Agreement with the labels beyond chance.
    pub kappa: Option<f64>,
    /// Number of attacks that succeeded.
    pub succeeded: u32,
    pub success_rate: Option<MeasuredRate>,
    pub families: Vec<FamilyScores>,
}

impl MeasurementScores {
    /// Reads the member `figures` of a reply.
    pub fn read(figures: &Value) -> Self {
        Self::deserialize(figures).unwrap_or_default()
    }
}

/// A share of cases, with its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MeasuredRate {
    pub count: u32,
    pub n: u32,
    /// None if there are no cases.
    pub value: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// The scores of one attack family.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FamilyScores {
    pub family: String,
    pub inconclusive: u32,
    pub success_rate: MeasuredRate,
}
