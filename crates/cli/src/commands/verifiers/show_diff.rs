//! What changed between two versions of a verifier, part by part.

use console::Style;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use crate::output::{Output, table::paragraph};

/// The parts of a version that can change.
const PARTS: [&str; 6] = [
    "description",
    "criterion",
    "input_contract",
    "input_fields",
    "few_shot_examples",
    "judge_model_config",
];
/// Unchanged lines that are shown around a change.
const AROUND: usize = 3;

/// The parts that differ, with both sides.
pub(crate) fn changed(before: &Value, after: &Value) -> Vec<Value> {
    differing(before, after)
        .map(|part| json!({ "part": part, "before": before[part], "after": after[part] }))
        .collect()
}

pub(crate) fn text(out: Output, before: &Value, after: &Value) -> String {
    let bold = Style::new().bold();
    let (from, to) = (&before["version"], &after["version"]);
    let name = paragraph(&after["name"]);
    let mut parts = vec![out.paint(&format!("{name}: version {from} → version {to}"), &bold)];
    for part in differing(before, after) {
        parts.push(format!("\n{}", out.paint(part, &bold)));
        parts.push(lines(out, &written(&before[part]), &written(&after[part])));
    }
    if parts.len() == 1 {
        parts.push("nothing differs".to_owned());
    }
    parts.join("\n")
}

fn differing(before: &Value, after: &Value) -> impl Iterator<Item = &'static str> {
    PARTS.into_iter().filter(|part| before[*part] != after[*part])
}

/// A part as lines; what others wrote cannot steer the terminal.
fn written(part: &Value) -> String {
    match part {
        Value::String(_) => paragraph(part),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().map(paragraph).collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            serde_json::to_string_pretty(part).unwrap_or_default()
        }
    }
}

fn lines(out: Output, before: &str, after: &str) -> String {
    // Without its end the last line would differ from one that goes on.
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

    #[test]
    fn only_what_changed_is_shown() {
        let before = json!({
            "name": "tone", "version": 1, "description": "d",
            "criterion": "Return passed=true when\nit is kind.", "input_fields": ["a"],
            "few_shot_examples": [], "judge_model_config": {"model": "builtin/rules"},
        });
        let mut after = before.clone();
        after["version"] = json!(2);
        after["criterion"] = json!("Return passed=true when\nit is kind and short.");
        after["input_fields"] = json!(["a", "b"]);
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
        let parts: Vec<Value> =
            changed(&before, &after).into_iter().map(|it| it["part"].clone()).collect();
        assert_eq!(parts, ["criterion", "input_fields"]);
        assert!(text(Output::plain(), &before, &before).ends_with("nothing differs"));
    }
}
