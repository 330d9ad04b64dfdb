//! The rules of WattSwarm's own policies, selected by their fixed hashes.

use serde_json::Value;

use super::{
    CROSSCHECK, CrosscheckParams, Evaluation, EvaluationStatus, OutputThresholds, SCHEMA_ONLY,
    SCHEMA_THRESHOLDS, schema_thresholds::compact_len,
};
use crate::{reason, schema::Schema};

/// The hash by which WattSwarm knows its policy. It does not cover the parameters.
pub(super) fn fixed_hash(policy_id: &str) -> Option<&'static str> {
    match policy_id {
        SCHEMA_ONLY => Some("a52d250d216f425973eb5a13c392d4dbc172357181b683e86caa4a5c64db94a7"),
        SCHEMA_THRESHOLDS => {
            Some("052312b5f56ed81a7c6f693d5d24fde5dc42825ecc61c6f77bccf07c444c4edf")
        }
        CROSSCHECK => Some("236ef6d386d272715034acda035ae212c85a87dd6a09958e781c5d0b6880846d"),
        _ => None,
    }
}

pub(super) fn schema_only(output: &Value, schema: &Schema) -> Evaluation {
    if schema.matches_as_wattswarm(output) {
        verdict(EvaluationStatus::Passed, 1.0, vec![reason::SCHEMA_OK])
    } else {
        verdict(EvaluationStatus::Failed, 0.0, vec![reason::SCHEMA_INVALID])
    }
}

pub(super) fn schema_thresholds(
    limits: &OutputThresholds,
    output: &Value,
    schema: &Schema,
) -> Evaluation {
    let mut codes = vec![schema_code(output, schema)];
    let confidence = output.get("confidence").and_then(Value::as_f64).unwrap_or(0.0);
    if limits.min_confidence.is_some_and(|least| confidence < least) {
        codes.push(reason::CONFIDENCE_TOO_LOW);
    }
    if limits.max_len.is_some_and(|most| most < compact_len(output)) {
        codes.push(reason::OUTPUT_TOO_LARGE);
    }
    if codes == [reason::SCHEMA_OK] {
        verdict(EvaluationStatus::Passed, 1.0, codes)
    } else {
        verdict(EvaluationStatus::Failed, 0.2, codes)
    }
}

pub(super) fn crosscheck(
    against: &CrosscheckParams,
    output: &Value,
    schema: &Schema,
) -> Evaluation {
    let mut codes = vec![schema_code(output, schema)];
    let summary = output.get("check_summary").and_then(Value::as_str);
    if summary.is_none_or(|summary| summary.trim().is_empty()) {
        codes.push(reason::CHECK_SUMMARY_MISSING);
    }
    let score = if codes == [reason::SCHEMA_OK] { 0.9 } else { 0.3 };
    if against.min_score.is_some_and(|least| score < least) {
        codes.push(reason::SCORE_TOO_LOW);
    }
    let status = if codes == [reason::SCHEMA_OK] {
        EvaluationStatus::Passed
    } else {
        EvaluationStatus::Failed
    };
    verdict(status, score, codes)
}

fn verdict(status: EvaluationStatus, score: f64, reason_codes: Vec<u16>) -> Evaluation {
    Evaluation { status, score, reason_codes, notes: Vec::new() }
}

fn schema_code(output: &Value, schema: &Schema) -> u16 {
    if schema.matches_as_wattswarm(output) { reason::SCHEMA_OK } else { reason::SCHEMA_INVALID }
}
