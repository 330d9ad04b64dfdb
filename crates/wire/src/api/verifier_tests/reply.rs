//! Measurements as replies and events show them.

use std::{borrow::Cow, collections::BTreeMap};

use jurat_core::{account::ledger::usd, time::Timestamp, verifier::run::VerifierRunError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::kit::time::Time;

/// A measurement of a version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = MeasurementReport)]
pub struct ReportBody<'a> {
    pub measurement_id: Cow<'a, str>,
    pub verifier_id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub version: u32,
    /// `test` or `attack`.
    pub purpose: Cow<'a, str>,
    pub judges: Cow<'a, [String]>,
    pub replicas: u8,
    /// The attack families tried; empty for a test.
    #[schema(value_type = Vec<String>)]
    pub families: Vec<Cow<'static, str>>,
    /// Whether the version and its runs show this measurement from now on: only if its own judge
    /// alone was measured, on all attack families and with no case left out.
    pub shown: bool,
    /// Two measurements with the same digest used the same cases.
    pub data_digest: Cow<'a, str>,
    /// The judges' scores: those of a test, or of attacks `n`, `inconclusive`, `succeeded`,
    /// `success_rate` and `families`, which counts the same by family.
    #[schema(value_type = Object)]
    pub figures: Value,
    /// How likely each judge is to be right, if the cases allow an estimate.
    pub reliability: Cow<'a, BTreeMap<String, f64>>,
    pub cases: Vec<CaseBody<'a>>,
    /// Changes since the previous version; null if there is nothing to compare with.
    #[schema(required = true)]
    pub compared: Option<ComparedBody<'a>>,
    pub cost_usd: String,
    #[schema(value_type = Time)]
    pub measured_at: Time,
}

/// A case and the judges' verdict on it.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = MeasuredCase)]
pub struct CaseBody<'a> {
    pub id: Cow<'a, str>,
    pub inputs: Cow<'a, BTreeMap<String, String>>,
    #[schema(required = true)]
    pub media_url: Option<Cow<'a, str>>,
    /// Family of an attack; null for a test.
    #[schema(required = true)]
    pub family: Option<Cow<'a, str>>,
    /// Whether it should pass.
    pub expected: bool,
    /// Whether it passed; null if there is no verdict.
    #[schema(required = true)]
    pub got: Option<bool>,
    #[schema(required = true)]
    pub reasoning: Option<Cow<'a, str>>,
    /// Why there is no verdict; null if there is one.
    #[schema(required = true)]
    pub error: Option<CaseError<'a>>,
    /// Null if the case was not judged.
    #[schema(required = true)]
    pub verifier_run_id: Option<Cow<'a, str>>,
    pub cost_usd: String,
}

/// Why a case has no verdict.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct CaseError<'a> {
    pub code: Cow<'a, str>,
    pub message: Cow<'a, str>,
}

impl<'a> CaseError<'a> {
    /// The error of a case without a verdict.
    pub fn of(error: &'a (VerifierRunError, String)) -> Self {
        Self { code: Cow::Borrowed(error.0.as_str()), message: Cow::Borrowed(&error.1) }
    }
}

/// Changes since the previous version, on the same cases.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = MeasurementComparison)]
pub struct ComparedBody<'a> {
    pub with_version: u32,
    pub flips: Vec<FlipBody<'a>>,
    /// Whether more cases are wrong than with the previous version.
    pub is_worse: bool,
    /// Probability of such a difference if both versions are equally good.
    pub p_value: f64,
}

/// A case whose verdict changed.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = VerdictFlip)]
pub struct FlipBody<'a> {
    pub id: Cow<'a, str>,
    pub expected: bool,
    #[schema(required = true)]
    pub before: Option<bool>,
    #[schema(required = true)]
    pub after: Option<bool>,
}

impl ReportBody<'_> {
    /// The time of a measurement, as the report shows it.
    pub fn measured_at(at: Timestamp) -> Time {
        Time(at)
    }

    /// A cost in millionths of a credit, as the report shows it.
    pub fn cost(micros: i64) -> String {
        usd(micros)
    }
}

/// The event of a judged case.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = MeasuredCaseEvent)]
pub struct CaseEvent<'a> {
    /// Position of the case, from 0.
    pub index: usize,
    pub total: usize,
    pub case: CaseBody<'a>,
}
