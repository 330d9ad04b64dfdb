//! Formats one version of a verifier for people.

use comfy_table::Cell;
use jurat_wire::api::{
    verifier_tests::MeasurementScores,
    verifiers::{ExampleBody, JudgeModelConfig, NewestMeasurements, VerifierBody},
};
use serde_json::json;

use super::show_measurement::rate;
use crate::output::{
    Output, shortened,
    table::{cell, fields, paragraph, said, table, whole_text, word},
};

const WIDEST_INPUTS: usize = 200;
/// Enough of a hash to tell two versions apart.
const HASH_CHARS: usize = 12;

pub(crate) fn shown(out: Output, verifier: &VerifierBody<'_>) -> String {
    let version = if verifier.version == verifier.current_version {
        format!("{} (current)", verifier.version)
    } else {
        format!("{} (current is {})", verifier.version, verifier.current_version)
    };
    let head = fields(&[
        ("name", said(&verifier.name)),
        ("id", said(&verifier.verifier_id)),
        ("version", version),
        ("status", said(&verifier.status)),
        ("token", said(&verifier.version_token)),
        ("about", whole_text(&verifier.description)),
        ("contract", said(&verifier.input_contract)),
        ("fields", said(&verifier.input_fields)),
        ("judge", judge(&verifier.judge_model_config)),
        ("config", whole_text(&verifier.config_hash)),
        ("deployed", said(&verifier.deployed_at)),
    ]);
    let mut parts = vec![head, format!("\n{}", paragraph(&verifier.criterion))];
    if !verifier.few_shot_examples.is_empty() {
        parts.push(format!("\n{}", examples_table(out, &verifier.few_shot_examples)));
    }
    parts.extend(verifier.measured.as_ref().and_then(measured));
    parts.join("\n")
}

pub(crate) fn short_hash(hash: &str) -> String {
    hash.chars().take(HASH_CHARS).collect()
}

fn judge(config: &JudgeModelConfig) -> String {
    let mut text = said(&config.model);
    if let Some(effort) = config.reasoning_effort {
        text = format!("{text}, effort {}", shortened(effort.0.as_str(), 20));
    }
    if config.commit_first {
        text.push_str(", commits to its own answer first");
    }
    text
}

fn examples_table(out: Output, examples: &[ExampleBody<'_>]) -> String {
    let rows = examples.iter().map(|example| {
        let label = if example.passed { "pass" } else { "fail" };
        let mut inputs = example.inputs.clone().into_owned();
        if let Some(url) = &example.media_url {
            inputs.insert("media_url".to_owned(), url.clone().into_owned());
        }
        let inputs = shortened(&json!(inputs).to_string(), WIDEST_INPUTS);
        vec![word(label), Cell::new(inputs), cell(&example.reasoning)]
    });
    table(out, &["example", "inputs", "why"], rows.collect())
}

/// A line for each measurement.
pub(crate) fn measured(measured: &NewestMeasurements<'_>) -> Option<String> {
    let mut lines = Vec::new();
    if let Some(test) = &measured.test {
        let scores = MeasurementScores::read(&test.figures);
        lines.push(("accuracy", rate(scores.accuracy)));
        lines.push(("false passes", rate(scores.false_pass_rate)));
    }
    if let Some(attack) = &measured.attack {
        let scores = MeasurementScores::read(&attack.figures);
        lines.push(("attacks", format!("{} succeed", rate(scores.success_rate))));
    }
    (!lines.is_empty()).then(|| format!("\n{}", fields(&lines)))
}
