//! The anchors of headings, as the usual viewers of Markdown make them.

use std::collections::BTreeSet;

/// The anchor of a heading.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
    kept.map(|it| if it == ' ' { '-' } else { it }).collect::<String>().to_lowercase()
}

/// The links within a page that lead nowhere, and the headings that have the same anchor.
pub(super) fn faults(page: &str) -> Vec<String> {
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    let mut is_code = false;
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if is_code || heading.len() == line.len() {
            continue;
        }
        let anchor = anchor(heading.trim());
        if !known.insert(anchor.clone()) {
            found.push(format!("two headings have the anchor `{anchor}`"));
        }
    }
    for (_, rest) in page.match_indices("](#").map(|(at, it)| page.split_at(at + it.len())) {
        let target = rest.split(')').next().unwrap_or_default();
        if !known.contains(target) {
            found.push(format!("there is no heading `#{target}`"));
        }
    }
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_keeps_letters_digits_and_hyphens() {
        assert_eq!(anchor("`POST /v1/verifiers/{ref}/tests`"), "post-v1verifiersreftests");
        assert_eq!(anchor("Agent events"), "agent-events");
        assert_eq!(anchor("Object `ConsensusTerms`"), "object-consensusterms");
    }

    #[test]
    fn a_link_without_a_heading_and_a_repeated_heading_are_named() {
        assert_eq!(faults("# A b\n\n[x](#a-b) [y](other.md#z)\n"), [] as [&str; 0]);
        assert_eq!(faults("# A\n\n[x](#b)\n"), ["there is no heading `#b`"]);
        assert_eq!(faults("# A\n## `a`\n"), ["two headings have the anchor `a`"]);
        assert_eq!(faults("# A\n```sh\n# A\n```\n"), [] as [&str; 0]);
    }
}
