//! Removes invisible characters from a text, because they can hide instructions from people.

use std::{collections::BTreeMap, str::FromStr};

use crate::round::job::words;

words!(
    /// A kind of characters that are removed.
    InvisibleKind {
        /// Joiners, fillers, variation selectors, tags and the like.
        ZeroWidth => "zero_width",
        /// Characters that change the direction of writing.
        Bidi => "bidi",
        PrivateUse => "private_use",
        /// Control characters other than tabs and line ends.
        Control => "control",
    }
);

/// The characters of one kind that were removed from a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrippedCharacters {
    pub field: String,
    pub kind: InvisibleKind,
    pub count: usize,
}

/// Returns the text without invisible characters, and the number of each kind that it had.
///
/// Every line end becomes `\n`, so that no line can hide behind a line end that others ignore.
pub(super) fn clean(text: &str) -> (String, BTreeMap<InvisibleKind, usize>) {
    let mut kept = String::with_capacity(text.len());
    let mut counts = BTreeMap::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' => {
                characters.next_if_eq(&'\n');
                kept.push('\n');
            }
            '\u{85}' | '\u{2028}' | '\u{2029}' => kept.push('\n'),
            _ => match kind(character) {
                Some(kind) => *counts.entry(kind).or_insert(0) += 1,
                None => kept.push(character),
            },
        }
    }
    (kept, counts)
}

/// Whether the text has no visible character, so that a judge would see nothing.
pub fn is_blank(text: &str) -> bool {
    // The Braille pattern without dots is not a space in Unicode, but it looks like one.
    clean(text).0.chars().all(|c| c.is_whitespace() || c == '\u{2800}')
}

/// Returns the cleaned inputs, and what was removed from them.
pub(super) fn clean_all(
    inputs: &BTreeMap<String, String>,
) -> (BTreeMap<&str, String>, Vec<StrippedCharacters>) {
    let mut stripped = Vec::new();
    let cleaned = inputs.iter().map(|(field, text)| {
        let (kept, counts) = clean(text);
        let found = counts.into_iter().map(|(kind, count)| StrippedCharacters {
            field: field.clone(),
            kind,
            count,
        });
        stripped.extend(found);
        (field.as_str(), kept)
    });
    (cleaned.collect(), stripped)
}

const fn kind(character: char) -> Option<InvisibleKind> {
    match character {
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some(InvisibleKind::Bidi)
        }
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => Some(InvisibleKind::ZeroWidth),
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}' => {
            Some(InvisibleKind::PrivateUse)
        }
        '\t' | '\n' => None,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Some(InvisibleKind::Control),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_removed_and_counted() {
        let (kept, counts) = clean("p\u{200b}a\u{202e}ss\u{e000} \u{e0041}\u{1b}[0m é 漢\t😀");
        assert_eq!(kept, "pass [0m é 漢\t😀");
        let counts: Vec<_> = counts.into_iter().collect();
        assert_eq!(
            counts,
            [
                (InvisibleKind::ZeroWidth, 2),
                (InvisibleKind::Bidi, 1),
                (InvisibleKind::PrivateUse, 1),
                (InvisibleKind::Control, 1)
            ]
        );
    }

    #[test]
    fn a_text_without_visible_characters_is_blank() {
        for text in ["", " \n", "\u{200b}", "\u{feff} \u{202e}\u{e000}", "\u{2800}", "\u{3164}"] {
            assert!(is_blank(text), "{text:?}");
        }
        assert!(!is_blank("\u{200b}."));
    }

    #[test]
    fn every_line_end_becomes_the_same() {
        let (kept, counts) = clean("a\r\nb\rc\u{2028}d\u{85}e\n\rf");
        assert_eq!((kept.as_str(), counts.len()), ("a\nb\nc\nd\ne\n\nf", 0));
    }
}
