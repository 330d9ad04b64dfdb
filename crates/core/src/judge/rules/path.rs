//! `JSONPath` (RFC 9535), restricted to paths whose work is linear in the size of the document.

use jsonpath_rust::{
    parser::{model::JpQuery, parse_json_path},
    query::js_path_process,
};
use serde_json::Value;

/// The maximum length of a path.
const PATH_BYTES: usize = 256;
/// The maximum number of alternatives, as in `$['a','b']`: each step could double the nodes found.
const MOST_COMMAS: usize = 4;

#[derive(Debug, Clone)]
pub(super) struct RulePath {
    query: JpQuery,
    text: String,
}

impl RulePath {
    /// Parses a path; the error completes a sentence about it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let count = |part: &str| text.matches(part).count();
        if PATH_BYTES < text.len() {
            return Err(format!("must have at most {PATH_BYTES} bytes"));
        }
        // Counts the text, including quoted names: that is simple, and errs on the safe side.
        if 1 < count("..") || 1 < count("?") || 1 < count("$") || MOST_COMMAS < count(",") {
            return Err(format!(
                "may have at most one `..`, one filter, one `$` and {MOST_COMMAS} commas"
            ));
        }
        // These functions compile patterns without a limit.
        if text.contains("match(") || text.contains("search(") {
            return Err(
                "must not use `match` or `search`; use `matches` beside the path".to_owned()
            );
        }
        match parse_json_path(text) {
            Ok(query) => Ok(Self { query, text: text.to_owned() }),
            Err(_) => Err("is not a JSONPath of RFC 9535, such as `$.items`".to_owned()),
        }
    }

    /// The nodes that the path finds.
    pub(super) fn find<'a>(&self, document: &'a Value) -> Vec<&'a Value> {
        let found = js_path_process(&self.query, document).unwrap_or_default();
        found.into_iter().map(|node| node.val).collect()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_finds_nodes() {
        let document = json!({"items": [{"price": 3, "name": "a"}, {"price": 5}], "b": null});
        let found = |path: &str| RulePath::parse(path).unwrap().find(&document).len();
        assert_eq!(found("$.items[*].price"), 2);
        assert_eq!(found("$..price"), 2);
        assert_eq!(found("$.items[?@.price > 4]"), 1);
        assert_eq!(found("$.items[-1:].price"), 1);
        assert_eq!(found("$['items','b']"), 2);
        assert_eq!(found("$.c"), 0);
    }

    #[test]
    fn a_path_that_could_explode_is_refused() {
        let many = format!("$.{}", "a".repeat(300));
        for path in [
            "",
            "items",
            "$.items[",
            "$..*..*",
            "$[?@.a][?@.b]",
            "$[?$.a == @.b]",
            "$[*,*][*,*][*,*][*,*][*,*]",
            "$[?match(@.a, '.*')]",
            &many,
        ] {
            assert!(RulePath::parse(path).is_err(), "{path}");
        }
    }
}
