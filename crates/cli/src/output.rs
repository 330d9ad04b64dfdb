//! Prints data on standard output, and everything else on standard error.

pub(crate) mod backup_progress;
pub(crate) mod plain;
pub(crate) mod progress;
pub(crate) mod table;

use serde_json::Value;
use std::{
    fmt,
    io::{self, IsTerminal as _, Write as _},
};

use console::{Style, Term};

use self::plain::{escape, is_plain, visible, visible_in, wrapped};
use crate::{
    args::GlobalArgs,
    client::Reply,
    config::{ColourMode, LogFormat},
    logging,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) format: OutputFormat,
    pub(crate) chatter: Verbosity,
    pub(crate) colours: ColourMode,
    /// The width of the terminal, if it is known.
    pub(crate) width: Option<u16>,
    /// The width of the terminal on standard error, if it is known.
    pub(crate) error_width: Option<u16>,
    /// The format of standard error.
    pub(crate) log: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Normal,
    Quiet,
}

impl Output {
    pub(crate) fn new(global: &GlobalArgs, colours: ColourMode) -> Self {
        Self {
            format: if global.json { OutputFormat::Json } else { OutputFormat::Text },
            chatter: if global.quiet { Verbosity::Quiet } else { Verbosity::Normal },
            colours,
            width: width(&Term::stdout(), io::stdout().is_terminal()),
            error_width: width(&Term::stderr(), io::stderr().is_terminal()),
            log: LogFormat::Text,
        }
    }

    /// For a file: without colours, and as wide as needed.
    pub(crate) const fn plain() -> Self {
        Self {
            format: OutputFormat::Text,
            chatter: Verbosity::Quiet,
            colours: ColourMode::Off,
            width: None,
            error_width: None,
            log: LogFormat::Text,
        }
    }

    /// The output of a program that logs in this format.
    pub(crate) fn logging(self, log: LogFormat) -> Self {
        Self { log, ..self }
    }

    /// Prints an error, with advice below it.
    pub(crate) fn error(self, text: &str, advice: &[String]) {
        match self.log {
            LogFormat::Json => logging::error_line(text, advice),
            LogFormat::Text => {
                self.beside(&format!("error: {text}"));
                for line in advice {
                    self.beside(&format!("  {line}"));
                }
            }
        }
    }

    /// Prints data for programs unchanged.
    pub(crate) fn data(self, text: &str) -> io::Result<()> {
        self.bytes(text.trim_end_matches('\n').as_bytes())
    }

    /// Prints text for people: wrapped to fit the terminal, with control characters made visible.
    pub(crate) fn text(self, text: &str) -> io::Result<()> {
        self.data(&wrapped(&visible_in(self.colours, text), self.width))
    }

    /// Prints a user's document: unchanged to a file, with visible control characters on a
    /// terminal.
    pub(crate) fn document(self, text: &str) -> io::Result<()> {
        if io::stdout().is_terminal() { self.data(&visible(text)) } else { self.data(text) }
    }

    /// Prints the body of a reply unchanged, or text for people.
    pub(crate) fn reply<R>(
        self,
        reply: &Reply<R>,
        text: impl FnOnce(Self) -> String,
    ) -> io::Result<()> {
        self.body(&reply.bytes, text)
    }

    /// Prints a body unchanged, or text for people.
    pub(crate) fn body(self, bytes: &[u8], text: impl FnOnce(Self) -> String) -> io::Result<()> {
        match self.format {
            // A reply without a body has nothing to print.
            OutputFormat::Json if bytes.is_empty() => Ok(()),
            OutputFormat::Json => self.bytes(bytes),
            OutputFormat::Text => self.text(&text(self)),
        }
    }

    /// Prints a body unchanged, or a sentence for people, unless they asked for silence.
    pub(crate) fn confirm<R>(
        self,
        reply: &Reply<R>,
        text: impl FnOnce() -> String,
    ) -> io::Result<()> {
        match (self.format, self.chatter) {
            (OutputFormat::Text, Verbosity::Quiet) => Ok(()),
            (OutputFormat::Text, Verbosity::Normal) | (OutputFormat::Json, _) => {
                self.reply(reply, |_| text())
            }
        }
    }

    /// Prints a JSON document of this program, or a sentence for people.
    pub(crate) fn data_or(self, body: &Value, text: impl FnOnce() -> String) -> io::Result<()> {
        match (self.format, self.chatter) {
            (OutputFormat::Json, _) => self.data(&body.to_string()),
            (OutputFormat::Text, Verbosity::Quiet) => Ok(()),
            (OutputFormat::Text, Verbosity::Normal) => self.text(&text()),
        }
    }

    #[expect(clippy::unused_self, reason = "only an output prints")]
    fn bytes(self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.write_all(b"\n")?;
        out.flush()
    }

    /// Prints a note on standard error, unless the user asked for silence.
    pub(crate) fn note(self, text: &str) {
        match (self.chatter, self.log) {
            (Verbosity::Quiet, _) => {}
            (Verbosity::Normal, LogFormat::Text) => self.beside(text),
            (Verbosity::Normal, LogFormat::Json) => logging::always(text),
        }
    }

    /// Prints a warning, even if the user asked for silence.
    pub(crate) fn warn(self, text: &str) {
        self.beside(&format!("warning: {text}"));
    }

    fn beside(self, text: &str) {
        complain(&wrapped(&visible(text), self.error_width));
    }

    pub(crate) fn paint(self, text: &str, style: &Style) -> String {
        let is_on = self.colours == ColourMode::On;
        style.clone().force_styling(is_on).apply_to(text).to_string()
    }
}

/// A number with its noun, in the plural unless the number is 1.
pub(crate) fn counted<N: Copy + fmt::Display + From<u8> + PartialEq>(
    number: N,
    one: &str,
) -> String {
    if number == N::from(1) { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// The width of a terminal, if it is known: a terminal that does not know its width reports 0.
fn width(terminal: &Term, is_terminal: bool) -> Option<u16> {
    let (_, columns) = terminal.size_checked().filter(|_| is_terminal)?;
    Some(columns).filter(|columns| *columns > 0)
}

/// Writes a line to standard error. A failure to write it cannot be reported.
pub(crate) fn complain(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Text on one line of at most `most` characters, with control characters made visible. It is cut
/// between words if possible.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut was_space = false;
    for symbol in text.chars() {
        // Each run of whitespace becomes one space.
        let is_space = symbol.is_whitespace();
        if is_space {
            if !was_space {
                line.push(' ');
            }
        } else if is_plain(symbol) {
            line.push(symbol);
        } else {
            escape(&mut line, symbol);
        }
        was_space = is_space;
    }
    let line = line.trim();
    let Some((end, _)) = line.char_indices().nth(most) else { return line.to_owned() };
    let last = line[..end].char_indices().next_back().map_or(0, |(last, _)| last);
    let kept = &line[..last];
    // Cuts within a word if a cut between words would keep less than half of the text.
    let words = kept.rfind(' ').filter(|space| kept.len() / 2 <= *space);
    let is_whole = line[last..].starts_with(' ');
    let kept = words.filter(|_| !is_whole).map_or(kept, |space| &kept[..space]);
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_control_the_terminal() {
        assert_eq!(shortened("a\u{1b}[31m\nb\u{9b}c", 40), "a\\u{1b}[31m b\\u{9b}c");
        assert_eq!(shortened("\u{202e}live\u{2069}", 40), "\\u{202e}live\\u{2069}");
        assert_eq!(shortened("one two three", 8), "one two…");
        assert_eq!(shortened("one two three", 10), "one two…");
        assert_eq!(shortened("one two three", 13), "one two three");
        assert_eq!(shortened("abcdefghijkl x", 8), "abcdefg…");
        assert_eq!(shortened("  ", 8), "");
    }
}
