//! Finding workflows and templates by words.

/// How much a word counts where it is found.
const WEIGHTS: [(&str, u32); 4] = [("name", 8), ("tags", 5), ("description", 3), ("outcome", 2)];
const MOST_WORDS: usize = 32;

/// The texts that are searched.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    pub name: &'a str,
    pub tags: &'a [String],
    pub description: &'a str,
    pub outcome: &'a str,
}

impl Texts<'_> {
    /// All of them in small letters, for the question whether a text stands in them.
    pub fn joined(&self, slug: &str) -> String {
        let tags = self.tags.join("\n");
        let all = [self.name, slug, &tags, self.description, self.outcome];
        all.join("\n").to_lowercase()
    }

    fn fields(&self) -> [String; 4] {
        let texts = [self.name, &self.tags.join(" "), self.description, self.outcome];
        texts.map(str::to_lowercase)
    }
}

/// Why something was found, and how well it fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    pub score: u32,
    /// In words.
    pub reason: String,
}

/// How well the texts fit a query; `None` when none of its words is in them.
pub fn fit(query: &str, texts: &Texts<'_>) -> Option<Match> {
    let fields = texts.fields();
    let query = query.to_lowercase();
    let words = words(&query);
    let mut score = 0;
    let mut places: Vec<(&str, Vec<&str>)> = Vec::new();
    for ((place, weight), text) in WEIGHTS.into_iter().zip(&fields) {
        let mut found = Vec::new();
        for word in &words {
            let points = points(text, word);
            if points > 0 {
                score += weight * points;
                found.push(*word);
            }
        }
        if !found.is_empty() {
            places.push((place, found));
        }
    }
    if score == 0 {
        return None;
    }
    if fields[0].contains(query.trim()) {
        score += 20;
    }
    let reason = places.iter().map(|(place, words)| format!("{place}: {}", words.join(", ")));
    Some(Match { score, reason: reason.collect::<Vec<_>>().join("; ") })
}

/// A whole word counts three times, the beginning of one twice.
fn points(text: &str, word: &str) -> u32 {
    let mut best = 0;
    for part in text.split(|c: char| !c.is_alphanumeric()) {
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

fn words(query: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    for word in query.split(|c: char| !c.is_alphanumeric()) {
        if !word.is_empty() && !words.contains(&word) && words.len() < MOST_WORDS {
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(query: &str, name: &str, description: &str) -> Option<Match> {
        fit(query, &Texts { name, tags: &["sre".to_owned()], description, outcome: "" })
    }

    #[test]
    fn a_name_counts_more_than_a_description() {
        let by_name = found("incident", "Incident report", "").unwrap();
        let by_description = found("incident", "Report", "of an incident").unwrap();
        assert!(by_name.score > by_description.score);
        assert_eq!(by_name.reason, "name: incident");
        assert_eq!(by_description.reason, "description: incident");
    }

    #[test]
    fn what_has_none_of_the_words_is_not_found() {
        assert_eq!(found("cooking", "Incident report", "a postmortem"), None);
        assert_eq!(found("", "Incident report", ""), None);
        assert_eq!(found("!?", "Incident report", ""), None);
    }

    #[test]
    fn more_words_count_more_and_are_named() {
        let both = found("sre incident", "Incident report", "").unwrap();
        let one = found("sre other", "Incident report", "").unwrap();
        assert!(both.score > one.score);
        assert_eq!(both.reason, "name: incident; tags: sre");
    }
}
