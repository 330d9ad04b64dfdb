//! One version of a verifier, as people read it.

use comfy_table::Cell;
use serde_json::{Value, json};

use super::show_measurement::rate;
use crate::output::{
    Output, shortened,
    table::{cell, fields, paragraph, said, table, whole_text, word},
};

const WIDEST_INPUTS: usize = 200;
/// Enough of a hash to tell two versions apart.
const HASH_CHARS: usize = 12;

pub(crate) fn shown(out: Output, body: &Value) -> String {
    let version = if body["version"] == body["current_version"] {
        format!("{} (current)", body["version"])
    } else {
        format!("{} (current is {})", body["version"], body["current_version"])
    };
    let head = fields(&[
        ("name", said(&body["name"])),
        ("id", said(&body["verifier_id"])),
        ("version", version),
        ("status", said(&body["status"])),
        ("token", said(&body["version_token"])),
        ("about", whole_text(&body["description"])),
        ("contract", said(&body["input_contract"])),
        ("fields", said(&body["input_fields"])),
        ("judge", judge(&body["judge_model_config"])),
        ("config", whole_text(&body["config_hash"])),
        ("deployed", said(&body["deployed_at"])),
    ]);
    let mut parts = vec![head, format!("\n{}", paragraph(&body["criterion"]))];
    let examples = body["few_shot_examples"].as_array().map_or(&[][..], Vec::as_slice);
    if !examples.is_empty() {
        parts.push(format!("\n{}", examples_table(out, examples)));
    }
    parts.extend(measured(&body["measured"]));
    parts.join("\n")
}

pub(crate) fn short_hash(hash: &Value) -> Option<String> {
    hash.as_str().map(|hash| hash.chars().take(HASH_CHARS).collect())
}

fn judge(config: &Value) -> String {
    let mut text = said(&config["model"]);
    if let Some(effort) = config["reasoning_effort"].as_str() {
        text = format!("{text}, effort {}", shortened(effort, 20));
    }
    if config["commit_first"] == true {
        text.push_str(", commits to its own answer first");
    }
    text
}

fn examples_table(out: Output, examples: &[Value]) -> String {
    let rows = examples.iter().map(|example| {
        let label = if example["passed"] == true { "pass" } else { "fail" };
        let mut inputs = example["inputs"].clone();
        if let (Some(members), Some(url)) = (inputs.as_object_mut(), example["media_url"].as_str())
        {
            members.insert("media_url".to_owned(), json!(url));
        }
        let inputs = shortened(&inputs.to_string(), WIDEST_INPUTS);
        vec![word(&json!(label)), Cell::new(inputs), cell(&example["reasoning"])]
    });
    table(out, &["example", "inputs", "why"], rows.collect())
}

/// A line for each measurement there is.
pub(crate) fn measured(measured: &Value) -> Option<String> {
    let test = &measured["test"];
    let attack = &measured["attack"];
    let mut lines = Vec::new();
    if !test.is_null() {
        let figures = &test["figures"];
        lines.push(("accuracy", rate(&figures["accuracy"])));
        lines.push(("false passes", rate(&figures["false_pass_rate"])));
    }
    if !attack.is_null() {
        lines.push(("attacks", format!("{} succeed", rate(&attack["figures"]["success_rate"]))));
    }
    (!lines.is_empty()).then(|| format!("\n{}", fields(&lines)))
}
