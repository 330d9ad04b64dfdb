//! The changes between two versions of a verifier, part by part.

use console::Style;
use jurat_wire::api::verifiers::VerifierBody;
use serde::Serialize;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use crate::output::{Output, table::paragraph};

/// Number of unchanged lines that are shown around a change.
const AROUND: usize = 3;

/// A part that differs between two versions.
#[derive(Debug, Serialize)]
pub(crate) struct ChangedPart {
    part: &'static str,
    before: Value,
    after: Value,
}

/// The parts that differ, with both sides.
pub(crate) fn changed(before: &VerifierBody<'_>, after: &VerifierBody<'_>) -> Vec<ChangedPart> {
    let both = parts(before).into_iter().zip(parts(after));
    both.filter(|((_, before), (_, after))| before != after)
        .map(|((part, before), (_, after))| ChangedPart { part, before, after })
        .collect()
}

pub(crate) fn text(out: Output, before: &VerifierBody<'_>, after: &VerifierBody<'_>) -> String {
    let bold = Style::new().bold();
    let (from, to) = (before.version, after.version);
    let name = paragraph(&after.name);
    let mut parts = vec![out.paint(&format!("{name}: version {from} → version {to}"), &bold)];
    for ChangedPart { part, before, after } in changed(before, after) {
        parts.push(format!("\n{}", out.paint(part, &bold)));
        parts.push(lines(out, &written(&before), &written(&after)));
    }
    if parts.len() == 1 {
        parts.push("nothing differs".to_owned());
    }
    parts.join("\n")
}

/// The parts of a version that can change, as the API names them.
fn parts(version: &VerifierBody<'_>) -> [(&'static str, Value); 6] {
    [
        ("description", json!(version.description)),
        ("criterion", json!(version.criterion)),
        ("input_contract", json!(version.input_contract)),
        ("input_fields", json!(version.input_fields)),
        ("few_shot_examples", json!(version.few_shot_examples)),
        ("judge_model_config", json!(version.judge_model_config)),
    ]
}

/// A part as lines, with control characters made visible.
fn written(part: &Value) -> String {
    match part {
        Value::String(text) => paragraph(text),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let texts = items.iter().filter_map(Value::as_str);
            texts.map(paragraph).collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            serde_json::to_string_pretty(part).unwrap_or_default()
        }
    }
}

fn lines(out: Output, before: &str, after: &str) -> String {
    // Without a line break, the last line would differ from the same line before other lines.
    let (before, after) = (format!("{before}\n"), format!("{after}\n"));
    let diff = TextDiff::from_lines(&before, &after);
    let mut text = Vec::new();
    for (at, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if at > 0 {
            text.push("  ⋯".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = change.value().trim_end_matches('\n');
            text.push(match change.tag() {
                ChangeTag::Equal => format!("  {line}"),
                ChangeTag::Delete => out.paint(&format!("- {line}"), &Style::new().red()),
                ChangeTag::Insert => out.paint(&format!("+ {line}"), &Style::new().green()),
            });
        }
    }
    text.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::rounds::show::samples::read;

    fn verifier(members: Value) -> VerifierBody<'static> {
        let at = "2026-11-16T00:00:00Z";
        let whole = json!({
            "verifier_id": "v", "name": "tone", "description": "d", "version": 1,
            "current_version": 2, "status": "active", "version_token": "t", "criterion": "",
            "input_contract": "text", "input_fields": [], "few_shot_examples": [],
            "judge_model_config": {"model": "builtin/rules", "commit_first": false},
            "reasoning_field_description": "", "config_hash": "h", "created_at": at,
            "updated_at": at, "deployed_at": at, "measured": null,
        });
        read(whole, members)
    }

    #[test]
    fn only_what_changed_is_shown() {
        let before = verifier(json!({
            "name": "tone", "version": 1,
            "criterion": "Return passed=true when\nit is kind.", "input_fields": ["a"],
        }));
        let after = verifier(json!({
            "name": "tone", "version": 2,
            "criterion": "Return passed=true when\nit is kind and short.",
            "input_fields": ["a", "b"],
        }));
        let shown = text(Output::plain(), &before, &after);
        insta::assert_snapshot!(shown, @r"
        tone: version 1 → version 2

        criterion
          Return passed=true when
        - it is kind.
        + it is kind and short.

        input_fields
          a
        + b
        ");
        let parts: Vec<&str> =
            changed(&before, &after).into_iter().map(|changed| changed.part).collect();
        assert_eq!(parts, ["criterion", "input_fields"]);
        assert!(text(Output::plain(), &before, &before).ends_with("nothing differs"));
    }
}
