//! Makes untrusted text safe for a terminal, and breaks lines between words.

use std::{borrow::Cow, fmt::Write as _};

use textwrap::{Options, WordSeparator, WordSplitter, wrap};

use crate::config::ColourMode;

/// The longest title of a field whose values form a column.
const WIDEST_TITLE: usize = 24;

/// Whether a character shows as itself. Other characters move the cursor, reverse the direction of
/// the text or are invisible, and could disguise the text.
pub(crate) fn is_plain(symbol: char) -> bool {
    !symbol.is_control()
        && !matches!(symbol,
            // Marks, embeddings, overrides and isolates of bidirectional text.
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Separators of lines and paragraphs.
            | '\u{2028}' | '\u{2029}'
            // Zero-width characters. Joiners are not listed, because scripts and emoji need them.
            | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Text with every hidden character escaped, such as `\u{202e}`. Line breaks and tabs stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    kept(text, |symbol| matches!(symbol, '\n' | '\t'))
}

/// Like `visible`, for text with our own colours, in which everything else is already visible.
pub(super) fn visible_in(colours: ColourMode, text: &str) -> Cow<'_, str> {
    let is_ours = |symbol| symbol == '\u{1b}' && colours == ColourMode::On;
    kept(text, |symbol| matches!(symbol, '\n' | '\t') || is_ours(symbol))
}

fn kept(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(|symbol| is_plain(symbol) || is_kept(symbol)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    // The line ending of other systems counts as a line ending here too.
    for symbol in text.replace("\r\n", "\n").chars() {
        if is_plain(symbol) || is_kept(symbol) {
            shown.push(symbol);
        } else {
            escape(&mut shown, symbol);
        }
    }
    Cow::Owned(shown)
}

pub(super) fn escape(text: &mut String, symbol: char) {
    let _ = write!(text, "{}", symbol.escape_unicode());
}

/// Breaks long lines between words. A word, such as an id, stays whole.
pub(super) fn wrapped(text: &str, width: Option<u16>) -> Cow<'_, str> {
    let Some(width) = width.map(usize::from) else { return Cow::Borrowed(text) };
    let is_long = |line: &str| width < textwrap::core::display_width(line);
    if !text.lines().any(is_long) {
        return Cow::Borrowed(text);
    }
    let lines = text.lines().map(|line| {
        if !is_long(line) {
            return line.to_owned();
        }
        let indent = " ".repeat(indent(line).min(width / 2));
        let options = Options::new(width)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .subsequent_indent(&indent);
        wrap(line, options).join("\n")
    });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// The indent of the rest of a broken line: below the value of a field, or a little to the right.
fn indent(line: &str) -> usize {
    let start = line.len() - line.trim_start().len();
    let title = line[start..].find("  ").filter(|length| *length <= WIDEST_TITLE);
    let value = title.and_then(|length| {
        let rest = &line[start + length..];
        rest.find(|symbol| symbol != ' ').map(|spaces| start + length + spaces)
    });
    value.map_or(start + 2, |value| textwrap::core::display_width(&line[..value]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown() {
        let text = "pay \u{202e}001\u{202c} \u{1b}[2Jx\u{200b}y\u{2028}z\u{e0041}\rw";
        let shown = "pay \\u{202e}001\\u{202c} \\u{1b}[2Jx\\u{200b}y\\u{2028}z\\u{e0041}\\u{d}w";
        assert_eq!(visible(text), shown);
        // Characters that scripts and emoji need stay.
        let text = "שלום\tмир\n👩\u{200d}🔬 می\u{200c}خواهم é";
        assert_eq!(visible(text), text);
        assert_eq!(visible("a\r\nb"), "a\nb");
        assert_eq!(visible_in(ColourMode::On, "\u{1b}[1mx\u{1b}[0m"), "\u{1b}[1mx\u{1b}[0m");
        assert_eq!(visible_in(ColourMode::Off, "\u{1b}[1m"), "\\u{1b}[1m");
    }

    #[test]
    fn a_long_line_breaks_between_words() {
        let line = "receipt  one two three four five";
        assert_eq!(wrapped(line, Some(20)), "receipt  one two\n         three four\n         five");
        assert_eq!(wrapped("alpha beta gamma", Some(12)), "alpha beta\n  gamma");
        // A broken id could not be copied.
        let id = format!("id  {}", "x".repeat(30));
        assert_eq!(wrapped(&id, Some(20)), format!("id\n    {}", "x".repeat(30)));
        assert_eq!(wrapped(line, None), line);
        assert_eq!(wrapped(line, Some(80)), line);
    }
}
