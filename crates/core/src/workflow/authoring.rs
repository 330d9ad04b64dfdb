//! What an author could still do for a workflow that was saved.

use super::{Binding, checks};

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Saved<'a> {
    pub outcome: &'a str,
    pub body: &'a str,
    pub bindings: &'a [Binding],
}

/// Notes in whole sentences; none when there is nothing to say.
pub fn notes(saved: &Saved<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if saved.outcome.trim().is_empty() {
        notes.push(
            "No outcome is stated: say what is measurably better when the workflow was followed."
                .to_owned(),
        );
    }
    let checks = checks::read(saved.body);
    match &checks {
        Err(error) => notes.push(format!("The body {error}.")),
        Ok(None) if saved.bindings.is_empty() => notes.push(
            "Nothing is checked: bind a verifier, or put a block of checks into the body."
                .to_owned(),
        ),
        Ok(_) => {}
    }
    for binding in saved.bindings {
        let is_mentioned =
            saved.body.contains(&binding.verifier_id) || saved.body.contains(&binding.name);
        if !is_mentioned {
            notes.push(format!(
                "The verifier `{}` is bound, and the body does not say when to run it.",
                binding.name
            ));
        }
    }
    notes
}

/// What to do next.
pub fn next_step(saved: &Saved<'_>) -> &'static str {
    if saved.bindings.is_empty() && !matches!(checks::read(saved.body), Ok(Some(_))) {
        "Deploy a verifier for the result that matters and bind it, or add a block of checks."
    } else {
        "Try it on a real output with `jurat workflows run-checks`, then grant it to others."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_is_told_what_is_missing() {
        let binding = Binding { name: "cites".into(), verifier_id: "id-1".into(), version: None };
        let bindings = [binding];
        let bare = Saved { outcome: "", body: "# Do", bindings: &[] };
        assert_eq!(notes(&bare).len(), 2);
        let unsaid = Saved { outcome: "less", body: "# Do", bindings: &bindings };
        assert_eq!(notes(&unsaid).len(), 1);
        let whole = Saved { outcome: "less", body: "Run cites.", bindings: &bindings };
        assert_eq!(notes(&whole), Vec::<String>::new());
        let broken = Saved { outcome: "less", body: "```checks\n{}\n```", bindings: &[] };
        assert!(notes(&broken)[0].contains("block of checks"));
        assert!(next_step(&bare).starts_with("Deploy"));
        assert!(next_step(&whole).starts_with("Try"));
    }
}
