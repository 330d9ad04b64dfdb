//! A requested version of a workflow, and the check that it is valid.

use std::collections::BTreeSet;

use super::{
    BODY_BYTES, DESCRIPTION_CHARS, FileContent, MOST_BINDINGS, MOST_TAGS, NAME_CHARS, NewBinding,
    NewFile, OUTCOME_CHARS, Slug, TAG_CHARS, VersionSource,
    file::{MOST_FILES, check_path},
    front_matter::{self, FrontMatterTags},
    is_binding_name, is_tag,
};
use crate::verifier::InputError;

/// The version to save. Absent members come from the front matter of the body, then from the
/// previous version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowDraft {
    pub id: Option<String>,
    pub slug: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub outcome: Option<String>,
    pub tags: Option<Vec<String>>,
    pub body: String,
    pub source: Option<VersionSource>,
    /// The token of the current version; absent for a new workflow.
    pub expected_token: Option<String>,
    pub bindings: Option<Vec<NewBinding>>,
    pub files: Option<Vec<NewFile>>,
}

impl WorkflowDraft {
    /// The draft, completed from its front matter.
    pub fn completed(mut self) -> Result<Self, InputError> {
        within("body", &self.body, None)?;
        let found = front_matter::read(&self.body);
        let found = found.map_err(|error| wrong("body", error.to_string()))?;
        let plain = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.name = self.name.or(found.name.map(plain));
        self.description = self.description.or(found.description.map(plain));
        self.outcome = self.outcome.or(found.outcome.map(plain));
        self.tags = self.tags.or(found.tags.map(FrontMatterTags::into_list));
        self.check()?;
        Ok(self)
    }

    /// The name of the workflow in URLs: as given, or derived from its name.
    pub fn slug(&self) -> Result<Slug, InputError> {
        let (field, text) = match (&self.slug, &self.name) {
            (Some(slug), _) => ("slug", slug),
            (None, Some(name)) => ("name", name),
            (None, None) => return Err(wrong("name", "is required".to_owned())),
        };
        // `search` is a URL next to those of the workflows.
        let slug = Slug::of_name(text).filter(|slug| slug.as_str() != "search");
        slug.ok_or_else(|| {
            let problem = "gives no slug: it needs a letter from a to z or a digit, must not look like an id, and must not be `search`";
            let other = if field == "name" { "; add a `slug`" } else { "" };
            wrong(field, format!("{problem}{other}"))
        })
    }

    fn check(&self) -> Result<(), InputError> {
        if let Some(name) = &self.name {
            within("name", name, Some(NAME_CHARS))?;
            if name.chars().any(char::is_control) {
                return Err(wrong(
                    "name",
                    "must be one line without control characters".to_owned(),
                ));
            }
        }
        if let Some(description) = &self.description {
            within("description", description, Some(DESCRIPTION_CHARS))?;
        }
        if let Some(outcome) = self.outcome.as_ref().filter(|outcome| !outcome.is_empty()) {
            within("outcome", outcome, Some(OUTCOME_CHARS))?;
        }
        if self.body.len() > BODY_BYTES {
            return Err(wrong("body", format!("must have at most {BODY_BYTES} bytes")));
        }
        check_tags(self.tags.as_deref().unwrap_or_default())?;
        check_bindings(self.bindings.as_deref().unwrap_or_default())?;
        check_files(self.files.as_deref().unwrap_or_default())
    }
}

fn check_tags(tags: &[String]) -> Result<(), InputError> {
    if MOST_TAGS < tags.len() {
        return Err(wrong("tags", format!("must have at most {MOST_TAGS} tags")));
    }
    let mut seen = BTreeSet::new();
    for tag in tags {
        let short: String = tag.chars().take(60).collect();
        if !is_tag(tag) {
            return Err(wrong(
                "tags",
                format!(
                    "has `{short}`; a tag has 1 to {TAG_CHARS} characters, no quotes, commas or brackets, and no leading or trailing space"
                ),
            ));
        }
        if !seen.insert(tag) {
            return Err(wrong("tags", format!("has `{short}` twice")));
        }
    }
    Ok(())
}

fn check_bindings(bindings: &[NewBinding]) -> Result<(), InputError> {
    if MOST_BINDINGS < bindings.len() {
        return Err(wrong("verifiers", format!("must have at most {MOST_BINDINGS} bindings")));
    }
    let mut seen = BTreeSet::new();
    for (index, binding) in bindings.iter().enumerate() {
        let name = format!("verifiers.{index}.name");
        if !is_binding_name(&binding.name) {
            let problem = "must have 1 to 128 lowercase letters, digits and hyphens, and not begin with a hyphen";
            return Err(InputError { field: name, problem: problem.to_owned() });
        }
        if !seen.insert(&binding.name) {
            return Err(InputError { field: name, problem: "appears twice".to_owned() });
        }
        binding.check().map_err(|problem| InputError {
            field: format!("verifiers.{index}.verifier_id"),
            problem: problem.to_owned(),
        })?;
    }
    Ok(())
}

/// Checks that the files can exist side by side.
pub fn check_files(files: &[NewFile]) -> Result<(), InputError> {
    if MOST_FILES < files.len() {
        return Err(wrong("files", format!("must have at most {MOST_FILES} files")));
    }
    let mut seen = BTreeSet::new();
    for (index, file) in files.iter().enumerate() {
        file.check().map_err(|(field, error)| InputError {
            field: format!("files.{index}.{field}"),
            problem: error.to_string(),
        })?;
        if !seen.insert(&file.path) {
            let field = format!("files.{index}.path");
            return Err(InputError { field, problem: "appears twice".to_owned() });
        }
    }
    Ok(())
}

/// The file name under which clients know the body of a workflow.
pub const BODY_FILE: &str = "SKILL.md";

/// Takes the body out of the files to save, if it is among them.
pub fn patched_body(files: &mut Vec<NewFile>) -> Result<Option<String>, InputError> {
    let Some(index) = files.iter().position(|file| file.path == BODY_FILE) else {
        return Ok(None);
    };
    let refused = |problem: &str| InputError {
        field: format!("files.{index}.content"),
        problem: problem.to_owned(),
    };
    let file = files.remove(index);
    let FileContent::Bytes(bytes) = file.content else {
        return Err(refused("is the body of the workflow; send its full content"));
    };
    let body = String::from_utf8(bytes)
        .map_err(|_| refused("is the body of the workflow, which must be text in UTF-8"))?;
    if body.trim().is_empty() {
        return Err(refused("is the body of the workflow, which must not be blank"));
    }
    if body.len() > BODY_BYTES {
        return Err(refused(&format!(
            "is the body of the workflow, which must have at most {BODY_BYTES} bytes"
        )));
    }
    Ok(Some(body))
}

/// Checks that the paths can be deleted while the files are saved.
pub fn check_deletions(files: &[NewFile], paths: &[String]) -> Result<(), InputError> {
    if MOST_FILES < paths.len() {
        return Err(wrong("delete_paths", format!("must have at most {MOST_FILES} paths")));
    }
    for (index, path) in paths.iter().enumerate() {
        let refused =
            |problem: String| InputError { field: format!("delete_paths.{index}"), problem };
        check_path(path).map_err(|error| refused(error.to_string()))?;
        if path == BODY_FILE {
            return Err(refused("is the body of the workflow; replace it instead".to_owned()));
        }
        if files.iter().any(|file| file.path == *path) || paths[..index].contains(path) {
            return Err(refused("appears twice".to_owned()));
        }
    }
    Ok(())
}

fn within(field: &'static str, text: &str, most: Option<usize>) -> Result<(), InputError> {
    if text.trim().is_empty() {
        return Err(wrong(field, "must not be blank".to_owned()));
    }
    if text.contains('\0') {
        return Err(wrong(field, "contains a NUL character".to_owned()));
    }
    match most {
        Some(most) if text.chars().count() > most => {
            Err(wrong(field, format!("must have at most {most} characters")))
        }
        _ => Ok(()),
    }
}

fn wrong(field: &str, problem: String) -> InputError {
    InputError { field: field.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(body: &str) -> WorkflowDraft {
        WorkflowDraft {
            id: None,
            slug: None,
            name: None,
            description: None,
            outcome: None,
            tags: None,
            body: body.to_owned(),
            source: None,
            expected_token: None,
            bindings: None,
            files: None,
        }
    }

    #[test]
    fn front_matter_fills_absent_members() {
        let body = "---\nname: My  Report\ndescription: |\n  one\n  two\ntags: [a]\n---\n# Do";
        let filled = draft(body).completed().unwrap();
        assert_eq!(filled.name.as_deref(), Some("My Report"));
        assert_eq!(filled.description.as_deref(), Some("one two"));
        assert_eq!(filled.tags, Some(vec!["a".to_owned()]));
        assert_eq!(filled.slug().unwrap().as_str(), "my-report");
        let given = WorkflowDraft { name: Some("Other".to_owned()), ..draft(body) };
        assert_eq!(given.completed().unwrap().name.as_deref(), Some("Other"));
    }

    #[test]
    fn a_fault_is_named_by_its_field() {
        let field = |draft: WorkflowDraft| draft.completed().unwrap_err().field;
        assert_eq!(field(draft(" ")), "body");
        assert_eq!(field(draft("a\0b")), "body");
        assert_eq!(field(draft("---\nname: [\n---\n")), "body");
        let tags = Some(vec!["a".to_owned(), "a".to_owned()]);
        assert_eq!(field(WorkflowDraft { tags, ..draft("x") }), "tags");
        let name = Some("a".repeat(129));
        assert_eq!(field(WorkflowDraft { name, ..draft("x") }), "name");
        let name = Some("a\nb".to_owned());
        assert_eq!(field(WorkflowDraft { name, ..draft("x") }), "name");
        let name = Some("日本語".to_owned());
        let foreign = WorkflowDraft { name, ..draft("x") };
        assert!(foreign.slug().unwrap_err().problem.contains("add a `slug`"));
        let slug = Some("nihongo".to_owned());
        assert_eq!(WorkflowDraft { slug, ..foreign }.slug().unwrap().as_str(), "nihongo");
        assert_eq!(draft("x").slug().unwrap_err().field, "name");
        let slug = Some("!".to_owned());
        assert_eq!(WorkflowDraft { slug, ..draft("x") }.slug().unwrap_err().field, "slug");
    }
}
