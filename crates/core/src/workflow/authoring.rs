//! Remarks for the author of a workflow, and the text that screening judges see.

use std::collections::BTreeSet;

use super::checks;

/// A workflow as its author wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthoringDraft<'a> {
    pub description: &'a str,
    pub outcome: &'a str,
    pub body: &'a str,
    /// The verifiers that it binds: the name of each, and its reference.
    pub bindings: Vec<(&'a str, &'a str)>,
    /// The paths of its files.
    pub files: Vec<&'a str>,
}

/// The maximum number of remarks.
const MOST_NOTES: usize = 50;

/// Points that an author should look at. None of them prevents saving.
pub fn notes(draft: &AuthoringDraft<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if draft.outcome.trim().is_empty() {
        notes.push("There is no outcome: describe in one sentence the observable result of the work. A template cannot be published without one.".to_owned());
    }
    if draft.description.trim().is_empty() {
        notes.push("There is no description: agents use it to choose a workflow.".to_owned());
    }
    match checks::read(draft.body) {
        Err(error) => notes.push(format!("The body {}.", without_brackets(&error.to_string()))),
        Ok(None) if draft.bindings.is_empty() => notes.push("Nothing is checked: bind a verifier for each judgment the body asks for, or add a block of checks.".to_owned()),
        Ok(_) => {}
    }
    about_verifiers(draft, &mut notes);
    about_files(draft, &mut notes);
    notes.truncate(MOST_NOTES);
    notes
}

/// The suggested next step.
pub fn next_step(draft: &AuthoringDraft<'_>) -> &'static str {
    if draft.bindings.is_empty() && !matches!(checks::read(draft.body), Ok(Some(_))) {
        "Deploy a verifier for the result that matters and bind it, or add a block of checks."
    } else {
        "Try it on a real output with `jurat workflows run-checks`, then grant it to others."
    }
}

/// Removes square brackets, which some clients read as markup.
fn without_brackets(text: &str) -> String {
    text.chars().filter(|c| !"[]".contains(*c)).collect()
}

fn about_verifiers(draft: &AuthoringDraft<'_>, notes: &mut Vec<String>) {
    let bound: BTreeSet<&str> = draft.bindings.iter().map(|(_, id)| *id).collect();
    for id in ids(draft.body) {
        if !bound.contains(id.as_str()) {
            notes.push(format!("The body names `{id}`, which is not among the bound verifiers: people you share the workflow with cannot run it."));
        }
    }
    for (name, id) in &draft.bindings {
        if !draft.body.contains(name) && !draft.body.contains(id) {
            notes.push(format!("The verifier `{name}` is bound, but the body mentions neither its name nor its id: nothing will run it."));
        }
    }
}

fn about_files(draft: &AuthoringDraft<'_>, notes: &mut Vec<String>) {
    let there: BTreeSet<&str> = draft.files.iter().copied().collect();
    let mut missing = BTreeSet::new();
    for target in links(draft.body) {
        if !there.contains(target) && missing.insert(target) {
            let target: String = without_brackets(target).chars().take(120).collect();
            notes.push(format!("The body points to the file `{target}`, which is not attached."));
        }
    }
    for path in &draft.files {
        let name = path.rsplit('/').next().unwrap_or(path);
        if !draft.body.contains(name) {
            let path = without_brackets(path);
            notes.push(format!("The file `{path}` is attached, but the body does not mention it."));
        }
    }
}

/// The UUIDs in a text, in lower case, each once.
pub fn ids(text: &str) -> BTreeSet<String> {
    const LENGTH: usize = 36;
    let bytes = text.as_bytes();
    let is_part =
        |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    let is_id = |from: usize| {
        (from..from + LENGTH).all(|at| match at - from {
            8 | 13 | 18 | 23 => bytes[at] == b'-',
            _ => bytes[at].is_ascii_hexdigit(),
        })
    };
    let mut found = BTreeSet::new();
    let mut at = 0;
    while at + LENGTH <= bytes.len() {
        let is_start = at == 0 || !is_part(at - 1);
        if is_start && is_id(at) && !is_part(at + LENGTH) {
            found.insert(text[at..at + LENGTH].to_ascii_lowercase());
            at += LENGTH;
        } else {
            at += 1;
        }
    }
    found
}

/// The targets of Markdown links to files next to the body.
fn links(body: &str) -> impl Iterator<Item = &str> {
    body.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ', '\n', '#']).next()?.trim();
        let target = target.strip_prefix("./").unwrap_or(target);
        let is_file = !target.is_empty()
            && !target.contains("://")
            && !target.starts_with(['/', '<', '@'])
            && !target.starts_with("mailto:");
        is_file.then_some(target)
    })
}

/// The maximum length of the text that a screening judge sees.
pub const SCREENED_CHARS: usize = 150_000;

/// The text that a screening judge sees, and the parts that were cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreeningText {
    pub content: String,
    pub cut: Vec<String>,
}

/// Joins everything that readers of the workflow would run into one text. The most important parts
/// come first; parts that do not fit are cut and named.
pub fn screening_text(parts: &[(String, &str)]) -> ScreeningText {
    let mut content = String::new();
    let mut left = SCREENED_CHARS;
    let mut cut = Vec::new();
    for (name, text) in parts {
        if text.trim().is_empty() {
            continue;
        }
        let length = text.chars().count();
        if left < length {
            cut.push(name.clone());
        }
        let kept: String = text.chars().take(left).collect();
        if !kept.is_empty() {
            content.push_str("=== ");
            content.push_str(name);
            content.push_str(" ===\n");
            content.push_str(&kept);
            content.push_str("\n\n");
        }
        left = left.saturating_sub(length);
    }
    ScreeningText { content, cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0198c1f0-0000-7000-8000-000000000001";
    const OTHER: &str = "0198c1f0-0000-7000-8000-000000000002";

    fn draft<'a>(
        body: &'a str,
        bindings: &[(&'a str, &'a str)],
        files: &[&'a str],
    ) -> AuthoringDraft<'a> {
        let (bindings, files) = (bindings.to_vec(), files.to_vec());
        AuthoringDraft { description: "d", outcome: "o", body, bindings, files }
    }

    #[test]
    fn an_author_is_told_what_is_missing() {
        let bare = AuthoringDraft { outcome: " ", description: "", ..draft("# Do", &[], &[]) };
        let found = notes(&bare);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("no outcome") && found[1].contains("no description"));
        assert!(found[2].contains("Nothing is checked"), "{found:?}");
        assert!(next_step(&bare).starts_with("Deploy"));
        let broken = notes(&draft("```checks\n{ \"checks\": [ }\n```", &[], &[]));
        assert!(broken[0].contains("block of checks"), "{broken:?}");
        assert!(!broken[0].contains(['[', ']']), "{broken:?}");
        let checked = draft("```checks\n[]\n```", &[], &[]);
        assert_eq!(notes(&checked), Vec::<String>::new());
        let bound = draft("Run cites.", &[("cites", ID)], &[]);
        assert_eq!(notes(&bound), Vec::<String>::new());
        assert!(next_step(&bound).starts_with("Try"));
    }

    #[test]
    fn verifiers_and_files_must_be_named_on_both_sides() {
        let bindings = [("cites", ID), ("tone", OTHER)];
        let body = format!(
            "Run {ID}@2, then read [this](./a/b.md#x) and [that](c.md) or [x](https://e.org/y)."
        );
        let found = notes(&draft(&body, &bindings, &["a/b.md", "left.md"]));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("`tone` is bound"));
        assert!(found[1].contains("`c.md`, which is not attached"));
        assert!(found[2].contains("`left.md` is attached"));
        let other = format!("Run `{OTHER}`.");
        let unbound = notes(&draft(&other, &bindings[..1], &[]));
        assert!(unbound[0].contains(OTHER), "{unbound:?}");
        assert!(found.iter().all(|note| !note.contains(['[', ']'])));
    }

    #[test]
    fn an_id_inside_a_longer_word_is_not_an_id() {
        assert!(ids(&format!("x{ID} {ID}0 {ID}-a")).is_empty());
        let upper = ID.to_uppercase();
        assert_eq!(ids(&format!("({upper}) ä{ID}ä")), BTreeSet::from([ID.to_owned()]));
    }

    #[test]
    fn parts_that_do_not_fit_are_cut_and_named() {
        let long = "ä".repeat(SCREENED_CHARS - 1);
        let parts = [
            ("body".to_owned(), long.as_str()),
            ("a.md".to_owned(), "xy"),
            ("b.md".to_owned(), "z"),
            ("c.md".to_owned(), " "),
        ];
        let seen = screening_text(&parts);
        assert_eq!(seen.cut, ["a.md", "b.md"]);
        assert!(seen.content.ends_with("=== a.md ===\nx\n\n"));
        assert!(screening_text(&parts[1..]).cut.is_empty());
    }
}
