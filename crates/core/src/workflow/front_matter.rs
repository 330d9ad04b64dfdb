//! The front matter of a body: YAML between two lines of `---` at its start.

use serde_json::{Map, Value};

/// The maximum size of front matter, in bytes.
const MOST_BYTES: usize = 16 * 1024;

/// The members of the front matter. Unknown members are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrontMatter {
    pub name: Option<String>,
    pub description: Option<String>,
    pub outcome: Option<String>,
    pub tags: Option<FrontMatterTags>,
}

/// A list, or one text with commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontMatterTags {
    List(Vec<String>),
    Text(String),
}

impl FrontMatterTags {
    /// The tags as a list.
    pub fn into_list(self) -> Vec<String> {
        match self {
            Self::List(tags) => tags,
            Self::Text(text) => {
                let tags = text.split(',').map(|tag| tag.trim().to_owned());
                tags.filter(|tag| !tag.is_empty()).collect()
            }
        }
    }
}

/// Why the front matter cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontMatterError {
    #[error("begins with front matter that is larger than {MOST_BYTES} bytes")]
    TooLarge,
    #[error("begins with front matter that is not YAML with string values: {0}")]
    Unreadable(String),
}

/// Reads the front matter; empty if the body has none.
pub fn read(body: &str) -> Result<FrontMatter, FrontMatterError> {
    let Some((yaml, _)) = split(body) else { return Ok(FrontMatter::default()) };
    if yaml.len() > MOST_BYTES {
        return Err(FrontMatterError::TooLarge);
    }
    if yaml.trim().is_empty() {
        return Ok(FrontMatter::default());
    }
    let members: Map<String, Value> =
        serde_saphyr::from_str(yaml).map_err(|error| unreadable(&error.to_string()))?;
    Ok(FrontMatter {
        name: text(&members, "name")?,
        description: text(&members, "description")?,
        outcome: text(&members, "outcome")?,
        tags: tags(&members)?,
    })
}

fn unreadable(error: &str) -> FrontMatterError {
    let line = error.lines().next().unwrap_or_default();
    FrontMatterError::Unreadable(line.chars().take(200).collect())
}

/// An optional text.
fn text(members: &Map<String, Value>, name: &str) -> Result<Option<String>, FrontMatterError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(unreadable(&format!("`{name}` is not a string"))),
    }
}

fn tags(members: &Map<String, Value>) -> Result<Option<FrontMatterTags>, FrontMatterError> {
    let Some(Value::Array(items)) = members.get("tags") else {
        return Ok(text(members, "tags")?.map(FrontMatterTags::Text));
    };
    let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
    let texts: Option<Vec<String>> = texts.collect();
    texts
        .map(|tags| Some(FrontMatterTags::List(tags)))
        .ok_or_else(|| unreadable("`tags` are not strings"))
}

/// Splits a body into its front matter and the rest.
pub fn split(body: &str) -> Option<(&str, &str)> {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    let rest = body.strip_prefix("---")?;
    let rest = rest.trim_start_matches([' ', '\t']);
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut from = 0;
    for line in rest.split_inclusive('\n') {
        let end = from + line.len();
        if line.trim_end() == "---" {
            return Some((&rest[..from], &rest[end..]));
        }
        from = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_describes_its_body() {
        let body = "---\nname: Report\ndescription: >\n  Two\n  lines.\ntags: [a, b]\nother: 1\n---\n# Do\n";
        let read = read(body).unwrap();
        assert_eq!(read.name.as_deref(), Some("Report"));
        assert_eq!(read.description.as_deref(), Some("Two lines.\n"));
        assert_eq!(
            read.tags.map(FrontMatterTags::into_list),
            Some(vec!["a".to_owned(), "b".to_owned()])
        );
        assert_eq!(read.outcome, None);
        assert_eq!(split(body).map(|(_, rest)| rest), Some("# Do\n"));
    }

    #[test]
    fn a_body_without_front_matter_has_no_members() {
        for body in ["", "# Do", "--- no\n---\n", "---\nname: never closed\n", "text\n---\n---\n"] {
            assert_eq!(read(body), Ok(FrontMatter::default()), "{body}");
        }
        assert_eq!(read("---\r\nname: A\r\n---\r\nx").unwrap().name.as_deref(), Some("A"));
        let tags = read("---\ntags: a, b ,\n---\n").unwrap().tags.map(FrontMatterTags::into_list);
        assert_eq!(tags, Some(vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn invalid_or_oversized_yaml_is_refused() {
        assert!(matches!(read("---\nname: [\n---\n"), Err(FrontMatterError::Unreadable(_))));
        assert!(matches!(read("---\nname: {a: b}\n---\n"), Err(FrontMatterError::Unreadable(_))));
        let large = format!("---\nname: {}\n---\n", "a".repeat(MOST_BYTES));
        assert_eq!(read(&large), Err(FrontMatterError::TooLarge));
        let bomb = "---\na: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g]\n---\n";
        assert!(matches!(read(bomb), Err(FrontMatterError::Unreadable(_))));
    }
}
