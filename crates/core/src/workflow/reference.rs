//! Parses the names of workflows: an id, a slug derived from the name, or `@owner/slug`.

use std::fmt;

use unicode_normalization::UnicodeNormalization as _;

use super::NAME_CHARS;
use crate::{
    account::{self, AccountName},
    verifier::is_uuid,
};

/// The name of a workflow in URLs: lower-case letters, digits and hyphens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slug(String);

impl Slug {
    /// The slug of a name; `None` if no character of the name remains.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut slug = String::new();
        for c in name.nfkd() {
            if c.is_ascii_alphanumeric() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.ends_with('-') && !slug.is_empty() && !is_mark(c) {
                slug.push('-');
            }
        }
        slug.truncate(NAME_CHARS);
        let slug = slug.trim_end_matches('-');
        // A slug that looks like an id would be ambiguous.
        (!slug.is_empty() && !is_uuid(slug)).then(|| Self(slug.to_owned()))
    }

    /// The slug with a number appended.
    #[must_use]
    pub fn numbered(&self, number: u32) -> Self {
        let end = format!("-{number}");
        let stem: String = self.0.chars().take(NAME_CHARS.saturating_sub(end.len())).collect();
        Self(format!("{}{end}", stem.trim_end_matches('-')))
    }

    /// The text of the slug.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the character is a combining mark, such as the accent of a decomposed `é`.
const fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// The workflow that a reference selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowSelector {
    /// A UUID in lower case.
    Id(String),
    /// One of the caller's own workflows.
    Slug(Slug),
    /// A workflow of another owner, or one of the caller's own by its full name.
    Of { owner: AccountName, slug: Slug },
}

/// A workflow, with the pinned version if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowRef {
    pub which: WorkflowSelector,
    pub version: Option<u32>,
    /// The reference as it was given, for messages.
    pub given: String,
}

/// Why a text is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowRefError {
    #[error("must be the id, slug or name of a workflow, or `@owner/slug`")]
    Form,
    #[error("pins a version with `@`, which must be a whole number, 1 or more")]
    Version,
}

impl WorkflowRef {
    /// Parses an id, a slug, a name or `@owner/slug`, each with an optional `@version` or
    /// `@vversion`.
    pub fn parse(text: &str) -> Result<Self, WorkflowRefError> {
        let (name, version) = match text.rsplit_once('@') {
            // The `@` before an owner is not a version.
            None => (text, None),
            Some(("", _)) if text.contains('/') => (text, None),
            Some((name, pin)) => (name, Some(pinned(pin)?)),
        };
        let of_owner = account::owned(name);
        let bare = of_owner.as_ref().map_or(name, |(_, name)| name);
        if bare.chars().count() > NAME_CHARS {
            return Err(WorkflowRefError::Form);
        }
        let which = if let Some((owner, name)) = of_owner {
            Slug::of_name(name).map(|slug| WorkflowSelector::Of { owner, slug })
        } else if is_uuid(name) {
            Some(WorkflowSelector::Id(name.to_ascii_lowercase()))
        } else if name.starts_with('@') {
            None
        } else {
            Slug::of_name(name).map(WorkflowSelector::Slug)
        };
        let given = name.to_owned();
        which.map(|which| Self { which, version, given }).ok_or(WorkflowRefError::Form)
    }
}

impl fmt::Display for WorkflowRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.given)?;
        match self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}

fn pinned(text: &str) -> Result<u32, WorkflowRefError> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let is_plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    let version = if is_plain { text.parse().ok() } else { None };
    version.ok_or(WorkflowRefError::Version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0198c1f0-0000-7000-8000-000000000001";

    #[test]
    fn a_name_makes_its_slug() {
        let slug = |name| Slug::of_name(name).map(|slug| slug.to_string());
        assert_eq!(slug("Incident Postmortem"), Some("incident-postmortem".into()));
        assert_eq!(slug("  a -- b! "), Some("a-b".into()));
        assert_eq!(slug("Crème brûlée"), Some("creme-brulee".into()));
        assert_eq!(slug("already-a-slug-2"), Some("already-a-slug-2".into()));
        assert_eq!(slug("!!!"), None);
        assert_eq!(slug(ID), None);
        assert_eq!(slug(&"a".repeat(300)).map(|it| it.len()), Some(NAME_CHARS));
    }

    #[test]
    fn a_numbered_slug_is_a_slug() {
        let slug = Slug::of_name("report").unwrap();
        assert_eq!(slug.numbered(2).as_str(), "report-2");
        let long = Slug::of_name(&"a".repeat(300)).unwrap().numbered(12);
        assert_eq!(long.as_str().len(), NAME_CHARS);
        assert!(long.as_str().ends_with("-12"));
    }

    #[test]
    fn references_name_an_id_or_a_slug_and_may_pin_a_version() {
        let read = |text: &str| WorkflowRef::parse(text).map(|it| it.to_string());
        let which = |text: &str| WorkflowRef::parse(text).unwrap().which;
        assert_eq!(which(&ID.to_uppercase()), WorkflowSelector::Id(ID.to_owned()));
        assert_eq!(which("My Report"), which("my-report"));
        assert_eq!(read("My Report").as_deref(), Ok("My Report"));
        assert_eq!(read("report@3").as_deref(), Ok("report@3"));
        assert_eq!(read("report@v3").as_deref(), Ok("report@3"));
        assert_eq!(read("@ann/report").as_deref(), Ok("@ann/report"));
        assert_eq!(read("@ann/report@v3").as_deref(), Ok("@ann/report@3"));
        assert_eq!(
            which("@Ann/My Report"),
            WorkflowSelector::Of {
                owner: AccountName::Handle("ann".to_owned()),
                slug: Slug::of_name("my-report").unwrap(),
            }
        );
        for text in ["", "!", "@a/report", "@ann/!", &"a".repeat(129)] {
            assert_eq!(read(text), Err(WorkflowRefError::Form), "{text}");
        }
        for text in ["a@", "a@0", "a@v", "a@x", "@ann"] {
            assert_eq!(read(text), Err(WorkflowRefError::Version), "{text}");
        }
    }
}
