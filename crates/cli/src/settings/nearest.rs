//! Finds what a misspelt name was meant to be.

use super::ALL;

/// The part of a name that may be wrong before it is taken for another: one letter in so many.
const LETTERS_FOR_A_SLIP: usize = 5;
const PREFIX: &str = "JURAT_";
/// It names the file with settings, and so is none itself.
const CONFIG: &str = "JURAT_CONFIG";
/// What Kubernetes sets for a service that is called `jurat`.
const OF_KUBERNETES: [&str; 2] = ["JURAT_SERVICE_", "JURAT_PORT"];

/// The setting whose name is most like this one.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let (table, last) = parts(name);
    let is_table = ALL.iter().any(|setting| parts(setting.name).0 == table);
    // A name without its table, or in a wrong one, is often meant; a table nobody knows is not.
    let elsewhere = ALL.iter().map(|setting| setting.name).find(|known| parts(known).1 == last);
    let elsewhere = elsewhere.filter(|_| table.is_empty() || is_table);
    closest(name, ALL.iter().map(|setting| setting.name)).or(elsewhere)
}

/// What to say of an environment variable that looks like a setting and is none.
pub(crate) fn unknown_variable(name: &str) -> Option<String> {
    let known = || ALL.iter().map(|setting| setting.variable).chain([CONFIG]);
    let is_foreign = OF_KUBERNETES.iter().any(|start| name.starts_with(start));
    if !name.starts_with(PREFIX) || is_foreign || known().any(|known| known == name) {
        return None;
    }
    let shown = crate::output::shortened(name, 60);
    Some(match closest(name, known()) {
        Some(meant) => format!("the variable {shown} is not a setting; did you mean {meant}?"),
        None => format!("the variable {shown} is not a setting, and Jurat ignores it"),
    })
}

/// The name with the fewest letters to change, if they are few.
pub(super) fn closest(
    name: &str,
    known: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    known
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|(distance, known)| *distance <= known.len() / LETTERS_FOR_A_SLIP)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

fn parts(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or(("", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_intended_name_is_suggested() {
        for (given, expected) in [
            ("server.listn", Some("server.listen")),
            ("listen", Some("server.listen")),
            ("server.rounds", Some("limits.rounds")),
            ("limits.calls_per_exec", Some("limits.calls_per_executor")),
            ("limit.rounds", Some("limits.rounds")),
            ("database.listen", None),
            ("servants.live", None),
            ("zzz", None),
        ] {
            assert_eq!(nearest(given), expected, "for {given}");
        }
    }

    #[test]
    fn a_misspelt_variable_is_distinguished_from_foreign_ones() {
        let found = unknown_variable("JURAT_LISTN").unwrap();
        assert_eq!(found, "the variable JURAT_LISTN is not a setting; did you mean JURAT_LISTEN?");
        let found = unknown_variable("JURAT_MODEL_TOKEN").unwrap();
        assert!(found.ends_with("and Jurat ignores it"), "{found}");
        let others = ["JURAT_LISTEN", "JURAT_CONFIG", "PATH", "JURAT_PORT_5872_TCP_ADDR"];
        assert!(others.iter().all(|name| unknown_variable(name).is_none()));
    }
}
