//! Ranks texts by how many words of a question they have, and where.

use std::collections::BTreeSet;

/// The most that a search returns.
pub const MOST_HITS: usize = 10;

/// Something that was found: its place in what was searched, and the words that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub index: usize,
    pub words: Vec<String>,
}

/// The best of the texts, best first. Each has parts, of which the earlier ones weigh more.
pub fn search(query: &str, texts: &[Vec<&str>], limit: usize) -> Vec<Hit> {
    let wanted = words(query);
    let mut scored: Vec<(u32, Hit)> = Vec::new();
    for (index, parts) in texts.iter().enumerate() {
        let mut score: u32 = 0;
        let mut found = BTreeSet::new();
        for (weight, part) in (1..=4).rev().chain(std::iter::repeat(1)).zip(parts) {
            let there = words(part);
            for word in &wanted {
                if there.contains(word) {
                    score += 4 * weight;
                    found.insert(word.clone());
                } else if there.iter().any(|it| it.starts_with(word.as_str())) {
                    score += weight;
                    found.insert(word.clone());
                }
            }
        }
        if 0 < score {
            // Several words count more than one word in several places.
            let breadth = u32::try_from(found.len()).unwrap_or(u32::MAX);
            let score = score.saturating_mul(breadth);
            scored.push((score, Hit { index, words: found.into_iter().collect() }));
        }
    }
    scored.sort_by(|(a, one), (b, other)| b.cmp(a).then(one.index.cmp(&other.index)));
    scored.into_iter().map(|(_, hit)| hit).take(limit.min(MOST_HITS)).collect()
}

fn words(text: &str) -> BTreeSet<String> {
    let split = text.split(|c: char| !c.is_alphanumeric());
    split.filter(|word| !word.is_empty()).map(str::to_lowercase).take(2_000).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_more_of_the_words_comes_first() {
        let texts = vec![
            vec!["weekly report", "numbers"],
            vec!["sales report", "Weekly sales numbers"],
            vec!["poem", "about rain"],
        ];
        let found = search("weekly SALES report", &texts, 10);
        let order: Vec<usize> = found.iter().map(|hit| hit.index).collect();
        assert_eq!(order, [1, 0]);
        assert_eq!(found[0].words, ["report", "sales", "weekly"]);
        assert_eq!(search("rai", &texts, 10)[0].index, 2);
        assert!(search("", &texts, 10).is_empty());
        assert_eq!(search("weekly", &texts, 1).len(), 1);
    }
}
