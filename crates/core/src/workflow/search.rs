//! Ranks workflows and templates by the words of a query, without a model.

use std::{cmp::Reverse, collections::BTreeSet};

/// The maximum number of results.
pub const MOST_HITS: usize = 10;
/// Further words of a query are ignored.
pub const MOST_WORDS: usize = 16;
/// How many of the store's hits are ranked.
pub const MOST_CANDIDATES: u32 = 50;
/// Longer words are indexed in pieces.
const WORD_CHARS: usize = 64;

/// The weight of a word in each field.
const WEIGHTS: [(&str, u32); 5] =
    [("name", 8), ("tags", 5), ("description", 3), ("outcome", 2), ("body", 1)];

/// The searched texts.
#[derive(Debug, Clone, Copy)]
pub struct SearchTexts<'a> {
    pub name: &'a str,
    pub slug: &'a str,
    pub tags: &'a [String],
    pub description: &'a str,
    pub outcome: &'a str,
    /// The body, or its words.
    pub body: &'a str,
}

/// The indexed form, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchIndex {
    /// Name and slug.
    pub name: String,
    /// All texts except the body.
    pub text: String,
    /// Every word of the body, once.
    pub body: String,
}

impl SearchTexts<'_> {
    /// The indexed form of the texts.
    pub fn index(&self) -> SearchIndex {
        let tags = self.tags.join("\n");
        let all = [self.name, self.slug, &tags, self.description, self.outcome];
        let body: Vec<String> = pieces(self.body).into_iter().collect();
        SearchIndex {
            name: [self.name, self.slug].join("\n").to_lowercase(),
            text: all.join("\n").to_lowercase(),
            body: body.join(" "),
        }
    }

    fn fields(&self) -> [String; WEIGHTS.len()] {
        let name = [self.name, self.slug].join(" ");
        let texts = [&name, &*self.tags.join(" "), self.description, self.outcome, self.body];
        texts.map(str::to_lowercase)
    }
}

fn is_between(c: char) -> bool {
    !c.is_alphanumeric()
}

/// The words of a text in lower case, long words in pieces.
fn pieces(text: &str) -> BTreeSet<String> {
    let mut pieces = BTreeSet::new();
    for word in text.split(is_between) {
        let word: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
        pieces.extend(word.chunks(WORD_CHARS).map(|piece| piece.iter().collect::<String>()));
    }
    pieces
}

/// The words of a query that count, in lower case, each once.
pub fn words(query: &str) -> Vec<String> {
    let query = query.to_lowercase();
    let mut words: Vec<String> = Vec::new();
    for word in query.split(is_between) {
        let word: String = word.chars().take(WORD_CHARS).collect();
        if !word.is_empty() && !words.contains(&word) && words.len() < MOST_WORDS {
            words.push(word);
        }
    }
    words
}

/// The best hits, best first, each with its reason. Ties keep their order.
pub fn best<T>(
    query: &str,
    found: Vec<T>,
    limit: usize,
    texts: impl for<'a> Fn(&'a T) -> SearchTexts<'a>,
) -> Vec<(T, String)> {
    let fits = |it: T| fit(query, &texts(&it)).map(|fit| (fit, it));
    let mut hits: Vec<(SearchMatch, T)> = found.into_iter().filter_map(fits).collect();
    hits.sort_by_key(|(fit, _)| Reverse(fit.score));
    let hits = hits.into_iter().take(limit.min(MOST_HITS));
    hits.map(|(fit, it)| (it, fit.reason)).collect()
}

/// How well something matches, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SearchMatch {
    score: u32,
    /// In words.
    reason: String,
}

/// How well the texts match a query; `None` if they contain none of its words.
fn fit(query: &str, texts: &SearchTexts<'_>) -> Option<SearchMatch> {
    let fields = texts.fields();
    let words = words(query);
    let mut score = 0;
    let mut matched: Vec<(&str, Vec<&str>)> = Vec::new();
    for ((field, weight), text) in WEIGHTS.into_iter().zip(&fields) {
        let mut found = Vec::new();
        for word in &words {
            let points = points(text, word);
            if points > 0 {
                score += weight * points;
                found.push(word.as_str());
            }
        }
        if !found.is_empty() {
            matched.push((field, found));
        }
    }
    if score == 0 {
        return None;
    }
    if fields[0].contains(query.to_lowercase().trim()) {
        score += 20;
    }
    let reason = matched.iter().map(|(field, words)| format!("{field}: {}", words.join(", ")));
    Some(SearchMatch { score, reason: reason.collect::<Vec<_>>().join("; ") })
}

/// A whole word scores three points, the start of a word two.
fn points(text: &str, word: &str) -> u32 {
    let mut best = 0;
    for part in text.split(is_between) {
        if part == word {
            return 3;
        }
        if part.starts_with(word) {
            best = 2;
        } else if part.contains(word) {
            best = best.max(1);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'a>(name: &'a str, description: &'a str, body: &'a str) -> SearchTexts<'a> {
        SearchTexts { name, slug: "", tags: &[], description, outcome: "", body }
    }

    fn found(query: &str, name: &str, description: &str) -> Option<SearchMatch> {
        let tags = ["sre".to_owned()];
        fit(query, &SearchTexts { tags: &tags, ..texts(name, description, "Ask the judges.") })
    }

    #[test]
    fn a_name_counts_more_than_a_description_and_that_more_than_a_body() {
        let by_name = found("incident", "Incident report", "").unwrap();
        let by_description = found("incident", "Report", "of an incident").unwrap();
        let by_body = found("judges", "Report", "").unwrap();
        assert!(by_name.score > by_description.score);
        assert!(by_description.score > by_body.score);
        assert_eq!(by_name.reason, "name: incident");
        assert_eq!(by_description.reason, "description: incident");
        assert_eq!(by_body.reason, "body: judges");
    }

    #[test]
    fn texts_without_any_of_the_words_are_not_found() {
        assert_eq!(found("cooking", "Incident report", "a postmortem"), None);
        assert_eq!(found("", "Incident report", ""), None);
        assert_eq!(found("!?", "Incident report", ""), None);
    }

    #[test]
    fn more_matching_words_rank_higher_and_are_named() {
        let both = found("sre incident", "Incident report", "").unwrap();
        let one = found("sre other", "Incident report", "").unwrap();
        assert!(both.score > one.score);
        assert_eq!(both.reason, "name: incident; tags: sre");
    }

    #[test]
    fn the_best_come_first_and_no_more_than_are_wanted() {
        let names = ["a poem about rain", "weekly report", "weekly sales report"];
        let all = |query: &str, limit| {
            best(query, names.to_vec(), limit, |name: &&str| texts(name, "", ""))
        };
        let order: Vec<&str> =
            all("weekly SALES report", 10).into_iter().map(|(it, _)| it).collect();
        assert_eq!(order, ["weekly sales report", "weekly report"]);
        assert_eq!(all("rai", 10)[0].0, "a poem about rain");
        assert_eq!(all("weekly", 1).len(), 1);
        assert!(all("", 10).is_empty());
    }

    #[test]
    fn every_word_of_a_body_is_indexed_once_in_lower_case() {
        let index = texts("Über", "", "Grün, GRÜN und rot; und rot.").index();
        assert_eq!(index.body, "grün rot und");
        assert_eq!(index.name, "über\n");
        let long = "ab".repeat(60);
        let kept = texts("", "", &long).index().body;
        assert!(kept.split(' ').all(|piece| piece.chars().count() <= WORD_CHARS), "{kept}");
        assert_eq!(words(&long).len(), 1);
        let many: Vec<String> = (0..99).map(|number| number.to_string()).collect();
        assert_eq!(words(&many.join(" ")).len(), MOST_WORDS);
    }
}
