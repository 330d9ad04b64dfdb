//! Defines decisions that may be used again, and computes how similar two inputs are: the cosine
//! of the angle between their word counts.

mod record;

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

pub use self::record::{
    Knowledge, KnowledgeDigests, KnowledgeFilter, KnowledgeKey, KnowledgePosition, KnowledgeRecord,
    KnowledgeScope,
};

/// The maximum number of words counted in one input, so that a comparison is cheap.
const MOST_WORDS: usize = 256;
const LONGEST_WORD: usize = 40;

/// How often each word occurs in a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WordCounts(BTreeMap<String, u32>);

impl WordCounts {
    /// Counts the words of all texts, numbers and member names in a document.
    pub fn of(document: &Value) -> Self {
        let mut words = Self::default();
        words.count_all(document);
        words
    }

    /// Reads what `Display` wrote; unreadable parts are skipped.
    pub fn parse(text: &str) -> Self {
        let pair = |part: &str| {
            let (word, count) = part.rsplit_once(':')?;
            Some((word.to_owned(), count.parse().ok()?))
        };
        Self(text.split(' ').filter_map(pair).take(MOST_WORDS).collect())
    }

    /// From 0, no word in common, to 1, the same words equally often.
    pub fn similarity(&self, other: &Self) -> f64 {
        let dot: f64 = self
            .0
            .iter()
            .filter_map(|(word, count)| Some(f64::from(*count) * f64::from(*other.0.get(word)?)))
            .sum();
        let length = |words: &Self| -> f64 {
            words.0.values().map(|count| f64::from(*count).powi(2)).sum::<f64>().sqrt()
        };
        let lengths = length(self) * length(other);
        if lengths > 0.0 { (dot / lengths).clamp(0.0, 1.0) } else { 0.0 }
    }

    fn count_all(&mut self, document: &Value) {
        match document {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => self.count(&number.to_string()),
            Value::String(text) => self.count(text),
            Value::Array(items) => items.iter().for_each(|item| self.count_all(item)),
            Value::Object(members) => {
                for (name, value) in members {
                    self.count(name);
                    self.count_all(value);
                }
            }
        }
    }

    fn count(&mut self, text: &str) {
        for word in text.split(|symbol: char| !symbol.is_alphanumeric()) {
            if word.is_empty() || LONGEST_WORD < word.len() {
                continue;
            }
            let word = word.to_lowercase();
            let is_full = MOST_WORDS <= self.0.len() && !self.0.contains_key(&word);
            if !is_full {
                *self.0.entry(word).or_default() += 1;
            }
        }
    }
}

impl fmt::Display for WordCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> =
            self.0.iter().map(|(word, count)| format!("{word}:{count}")).collect();
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(text: &str) -> WordCounts {
        WordCounts::of(&json!(text))
    }

    #[test]
    fn equal_words_are_similar_and_others_are_not() {
        let first = words("Summarize the key risks of the plan");
        assert!(
            (first.similarity(&words("of the plan, THE key risks: summarize!")) - 1.0).abs() < 1e-9
        );
        let like = first.similarity(&words("Summarize the key risks of the merger"));
        assert!((0.8..1.0).contains(&like), "{like}");
        assert!(first.similarity(&words("Translate a poem")).abs() < 1e-9);
        assert!(words("").similarity(&words("")).abs() < 1e-9);
    }

    #[test]
    fn stored_word_counts_read_back() {
        let first = WordCounts::of(&json!({"prompt": "is 7 more than 3.5?", "list": ["a", "a"]}));
        assert_eq!(WordCounts::parse(&first.to_string()), first);
        assert_eq!(first.to_string(), "3:1 5:1 7:1 a:2 is:1 list:1 more:1 prompt:1 than:1");
    }

    #[test]
    fn the_words_of_a_long_text_are_limited() {
        let many: Vec<String> = (0..5_000).map(|number| format!("word{number}")).collect();
        assert_eq!(words(&many.join(" ")).0.len(), MOST_WORDS);
    }
}
