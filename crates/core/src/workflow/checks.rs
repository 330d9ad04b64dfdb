//! Reads the checks in a body: a fenced block marked `checks`, which holds the parameters of the
//! policy `vp.checks.v1`.

use serde_json::Value;

use crate::strict_json;

/// Why the block of checks cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChecksError {
    #[error("has more than one block of checks; put all checks into one")]
    Several,
    #[error("has a block of checks that is never closed")]
    Open,
    #[error("has a block of checks that is not valid JSON: {0}")]
    Unreadable(String),
    #[error("has a block of checks that is not an object with a list `checks`")]
    Form,
}

/// The parameters of `vp.checks.v1` in a body, if it has any.
pub fn read(body: &str) -> Result<Option<Value>, ChecksError> {
    let Some(text) = block(body)? else { return Ok(None) };
    let read = strict_json::parse(text.as_bytes());
    let document = read.map_err(|error| ChecksError::Unreadable(error.to_string()))?;
    // A bare list is short for an object with the list in it.
    let params =
        if document.is_array() { serde_json::json!({ "checks": document }) } else { document };
    let has_checks = params.get("checks").is_some_and(Value::is_array);
    if has_checks { Ok(Some(params)) } else { Err(ChecksError::Form) }
}

fn block(body: &str) -> Result<Option<String>, ChecksError> {
    let mut found: Option<String> = None;
    let mut lines = body.lines();
    while let Some(line) = lines.next() {
        let Some((fence, word)) = fence(line) else { continue };
        let is_checks = word == "checks";
        let mut text = String::new();
        let is_closed = lines.by_ref().any(|line| {
            let is_end = line.trim().starts_with(fence)
                && line.trim().trim_matches(fence_mark(fence)).is_empty();
            if !is_end {
                text.push_str(line);
                text.push('\n');
            }
            is_end
        });
        match (is_checks, is_closed) {
            (false, _) => {}
            (true, false) => return Err(ChecksError::Open),
            (true, true) if found.is_some() => return Err(ChecksError::Several),
            (true, true) => found = Some(text),
        }
    }
    Ok(found)
}

/// The fence of a block, and the first word after it.
fn fence(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(' ');
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let marks = &line[..line.len() - rest.len()];
    let word = rest.split_whitespace().next().unwrap_or_default();
    (marks.len() >= 3).then_some((marks, word))
}

fn fence_mark(fence: &str) -> char {
    fence.chars().next().unwrap_or('`')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_block_of_checks_is_found_among_others() {
        let body = "# Do\n```json\n{\"no\": 1}\n```\n````md\n```checks\nnot this\n```\n````\n\n\
                    ```checks\n{\"checks\": [{\"id\": \"a\"}]}\n```\nrest\n";
        assert_eq!(read(body), Ok(Some(json!({"checks": [{"id": "a"}]}))));
        assert_eq!(read("~~~checks\n[]\n~~~"), Ok(Some(json!({"checks": []}))));
        assert_eq!(read("# Do\n```\nchecks\n```\n"), Ok(None));
        assert_eq!(read(""), Ok(None));
    }

    #[test]
    fn a_broken_block_is_distinguished_from_a_missing_one() {
        assert_eq!(read("```checks\n{}\n```"), Err(ChecksError::Form));
        assert_eq!(read("```checks\n{\"checks\": []}\n"), Err(ChecksError::Open));
        assert!(matches!(read("```checks\n{\n```"), Err(ChecksError::Unreadable(_))));
        let twice = "```checks\n[]\n```\n```checks\n[]\n```";
        assert_eq!(read(twice), Err(ChecksError::Several));
    }
}
