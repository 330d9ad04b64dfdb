//! Texts of callers in our messages: short, on one line, and with the name they may have meant.

use std::fmt::{self, Write as _};

/// The text on one line, cut after this many characters.
pub fn short(text: &str, most_chars: usize) -> String {
    let cut = text.chars().nth(most_chars).map_or("", |_| "…");
    let first = text.chars().take(most_chars);
    let visible = first.map(|letter| if letter.is_control() { ' ' } else { letter });
    visible.collect::<String>() + cut
}

/// Like `short`, without square brackets, which some clients read as markup.
pub fn plain(text: &str, most_chars: usize) -> String {
    short(text, most_chars).replace('[', "(").replace(']', ")")
}

/// The first characters of anything that can be displayed; the rest is not even formatted.
pub(crate) fn cut(text: &impl fmt::Display, max_chars: usize) -> String {
    let mut cut = CutWriter { text: String::new(), left: max_chars };
    if write!(cut, "{text}").is_err() {
        cut.text.push('…');
    }
    cut.text
}

/// The known names that resemble an unknown one, as a clause of a message.
pub fn did_you_mean(name: &str, known: &[&str]) -> String {
    const MOST: usize = 3;
    // Names are short, so a long one is not a typo.
    if 100 < name.len() {
        return String::new();
    }
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), *known))
        .filter(|(distance, known)| *distance <= 1 + known.len() / 3)
        .collect();
    near.sort_unstable();
    let near: Vec<String> = near.iter().take(MOST).map(|(_, name)| format!("`{name}`")).collect();
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

struct CutWriter {
    text: String,
    left: usize,
}

impl fmt::Write for CutWriter {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        for character in piece.chars() {
            if self.left == 0 {
                return Err(fmt::Error);
            }
            self.text.push(character);
            self.left -= 1;
        }
        Ok(())
    }
}
