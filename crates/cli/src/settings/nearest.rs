//! Finds the name that a misspelt name was meant to be.

use super::ALL;

/// One letter in this many may be wrong before a name no longer counts as similar.
const LETTERS_FOR_A_SLIP: usize = 5;
const PREFIX: &str = "JURAT_";
/// The variable that names the config file, and so is not a setting itself.
const CONFIG: &str = "JURAT_CONFIG";
/// Prefixes of the variables that Kubernetes sets for a service named `jurat`.
const OF_KUBERNETES: [&str; 2] = ["JURAT_SERVICE_", "JURAT_PORT"];

/// The setting with the most similar name.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let (table, last) = parts(name);
    let is_table = ALL.iter().any(|setting| parts(setting.name).0 == table);
    // A known name without its table, or in the wrong table, is a likely slip. A name in an unknown
    // table is not.
    let elsewhere = ALL.iter().map(|setting| setting.name).find(|known| parts(known).1 == last);
    let elsewhere = elsewhere.filter(|_| table.is_empty() || is_table);
    closest(name, ALL.iter().map(|setting| setting.name)).or(elsewhere)
}

/// The message about an environment variable that looks like a setting but is not.
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

/// The known name with the fewest letters to change, if there are only a few.
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
