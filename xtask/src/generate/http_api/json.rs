//! Writes JSON for people: as many values on a line as fit.

use serde_json::Value;

const WIDTH: usize = 100;

pub(super) fn written(value: &Value) -> String {
    lines(value, WIDTH, 0).join("\n")
}

/// The lines of a value; one if it fits into the width, of which its name has taken a part.
fn lines(value: &Value, width: usize, taken: usize) -> Vec<String> {
    let line = on_one_line(value);
    if taken + line.chars().count() <= width {
        return vec![line];
    }
    let inner = width.saturating_sub(3);
    let (begin, end, parts) = match value {
        Value::Array(items) => ("[", "]", items.iter().map(|it| lines(it, inner, 0)).collect()),
        Value::Object(members) => {
            let parts = members.iter().map(|(name, member)| {
                let name = format!("{}: ", Value::from(name.as_str()));
                let mut part = lines(member, inner, name.chars().count());
                if let Some(first) = part.first_mut() {
                    first.insert_str(0, &name);
                }
                part
            });
            ("{", "}", parts.collect::<Vec<_>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return vec![line],
    };
    let mut all = vec![begin.to_owned()];
    all.extend(filled(parts, inner).into_iter().map(|line| format!("  {line}")));
    all.push(end.to_owned());
    all
}

/// The parts with commas between them: parts of one line share lines, others do not.
fn filled(parts: Vec<Vec<String>>, width: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let (last, mut is_open) = (parts.len().saturating_sub(1), false);
    for (index, mut part) in parts.into_iter().enumerate() {
        if let Some(end) = part.last_mut()
            && index != last
        {
            end.push(',');
        }
        let is_single = part.len() == 1;
        match (all.last_mut(), part.first()) {
            (Some(line), Some(more))
                if is_open && is_single && line.chars().count() + more.chars().count() < width =>
            {
                line.push(' ');
                line.push_str(more);
            }
            _ => all.append(&mut part),
        }
        is_open = is_single;
    }
    all
}

fn on_one_line(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(on_one_line).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if !members.is_empty() => {
            let one = |(name, member): (&String, &Value)| {
                format!("{}: {}", Value::from(name.as_str()), on_one_line(member))
            };
            let members: Vec<String> = members.iter().map(one).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_broken_only_if_it_is_longer_than_a_line() {
        assert_eq!(written(&json!({ "a": [1, 2], "b": {} })), r#"{ "a": [1, 2], "b": {} }"#);
        let long = "x".repeat(WIDTH - 12);
        let value = json!({ "a": long, "b": [true, null], "c": 1 });
        let expected = format!("{{\n  \"a\": \"{long}\",\n  \"b\": [true, null], \"c\": 1\n}}");
        assert_eq!(written(&value), expected);
        assert_eq!(serde_json::from_str::<Value>(&written(&value)).unwrap(), value);
    }

    #[test]
    fn a_long_part_has_lines_of_its_own() {
        let long = "x".repeat(WIDTH);
        let value = json!({ "a": 1, "b": { "c": long, "d": 2 }, "e": 3 });
        let expected = format!(
            "{{\n  \"a\": 1,\n  \"b\": {{\n    \"c\": \"{long}\",\n    \"d\": 2\n  }},\n  \"e\": 3\n}}"
        );
        assert_eq!(written(&value), expected);
    }
}
