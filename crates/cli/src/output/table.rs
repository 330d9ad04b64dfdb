//! Tables and lists of fields.

use comfy_table::{
    Attribute, Cell, Color, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle,
    Width, presets::UTF8_HORIZONTAL_ONLY,
};
use console::measure_text_width;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Output, plain::visible, shortened};
use crate::config::ColourMode;

/// Maximum length of a cell: more than people read, and little enough for a terminal.
const WIDEST_CELL: usize = 2_000;
/// Maximum width that a column reserves for a word.
const LONGEST_WORD: u16 = 32;
/// Columns whose values are copied into the next command, so they must not break.
const IDS: [&str; 12] = [
    "task", "round", "session", "executor", "name", "setting", "key", "provider", "run", "account",
    "id", "peer",
];
/// Columns that a narrow terminal leaves out, in this order.
const SPARE: [&str; 14] = [
    "state",
    "opened",
    "agreement",
    "last used",
    "expires",
    "limits",
    "verifier",
    "id",
    "cost",
    "took",
    "updated",
    "started",
    "created",
    "since",
];
/// Width around a column: a space on both sides, and one between two columns.
const AROUND: u16 = 3;
/// Lines around the header and below the table; none between the rows.
const STYLE: TableStyle = UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none());

pub(crate) fn table(out: Output, header: &[&str], rows: Vec<Vec<Cell>>) -> String {
    let words: Vec<u16> = longest_words(header, &rows);
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    match out.colours {
        ColourMode::On => table.enforce_styling(),
        ColourMode::Off => &mut table,
    };
    // The width is known already, and must not depend on the colours.
    table.force_no_tty();
    if let Some(width) = out.width {
        table.set_width(width);
    }
    table.set_header(header.iter().map(|title| Cell::new(title).add_attribute(Attribute::Bold)));
    table.add_rows(rows);
    let widths = table.column_max_content_widths();
    let left_out = left_out(out, header, &widths);
    let least = |index: usize, title: &str| {
        let column = if IDS.contains(&title) { &widths } else { &words };
        column.get(index).copied().unwrap_or_default()
    };
    let shown = header.iter().enumerate().filter(|(_, title)| !left_out.contains(title));
    let needed = shown.fold(0_u16, |sum, (index, title)| {
        sum.saturating_add(least(index, title)).saturating_add(AROUND)
    });
    if out.width.is_some_and(|width| width.saturating_add(1) < needed) {
        return records(header, &table);
    }
    for (index, (column, title)) in table.column_iter_mut().zip(header).enumerate() {
        if left_out.contains(title) {
            column.set_constraint(ColumnConstraint::Hidden);
        } else if IDS.contains(title) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        } else {
            // Includes the space on both sides.
            let least = Width::Fixed(least(index, title).saturating_add(2));
            column.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// The width of the longest word of each column, up to a limit: a longer word may be broken.
fn longest_words(header: &[&str], rows: &[Vec<Cell>]) -> Vec<u16> {
    let longest = |text: &str| {
        let widths = text.split_whitespace().map(measure_text_width);
        u16::try_from(widths.max().unwrap_or(0)).unwrap_or(u16::MAX).min(LONGEST_WORD)
    };
    let mut words: Vec<u16> = header.iter().map(|title| longest(title)).collect();
    for row in rows {
        for (word, cell) in words.iter_mut().zip(row) {
            *word = (*word).max(longest(&cell.content()));
        }
    }
    words
}

/// The rows as lists of fields, for a terminal that is too narrow for columns.
fn records(header: &[&str], table: &Table) -> String {
    let rows = table.row_iter().map(|row| {
        let cells = row.cell_iter().map(Cell::content);
        let pairs: Vec<(&str, String)> = header.iter().copied().zip(cells).collect();
        fields(&pairs.into_iter().filter(|(_, value)| !value.trim().is_empty()).collect::<Vec<_>>())
    });
    rows.collect::<Vec<_>>().join("\n\n")
}

/// The spare columns to leave out so that the rest fits, or all of them if it never does.
fn left_out<'a>(out: Output, header: &[&'a str], widths: &[u16]) -> Vec<&'a str> {
    let Some(available) = out.width else { return Vec::new() };
    let columns = || header.iter().zip(widths);
    let mut needed = columns().fold(0_u16, |sum, (_, width)| sum.saturating_add(width + AROUND));
    let mut gone = Vec::new();
    // Only a round has an outcome, which implies the state.
    let is_spare = |spare: &&str| *spare != "state" || header.contains(&"outcome");
    for spare in SPARE.iter().copied().filter(is_spare) {
        let Some((title, width)) = columns().find(|(title, _)| **title == spare) else { continue };
        // The last column needs no space after it.
        if available.saturating_add(1) < needed {
            needed = needed.saturating_sub(width + AROUND);
            gone.push(*title);
        }
    }
    gone
}

/// A cell with a value of a reply.
pub(crate) fn cell<T: Serialize + ?Sized>(value: &T) -> Cell {
    Cell::new(said(value))
}

/// A cell with a word, coloured if the word is good or bad.
pub(crate) fn word<T: Serialize + ?Sized>(value: &T) -> Cell {
    let text = said(value);
    match colour(&text) {
        Some(colour) => Cell::new(text).fg(colour),
        None => Cell::new(text),
    }
}

pub(crate) fn colour(word: &str) -> Option<Color> {
    match word {
        "VALID" | "TRUE" | "OK" | "up" | "live" | "agreed" | "ok" | "passed" | "pass"
        | "active" | "current" | "finalized" | "approved" => Some(Color::Green),
        "INVALID" | "FALSE" | "INVALID_OUTPUT" | "ERROR" | "down" | "revoked" | "failed"
        | "problem" | "fail" | "suspended" | "rejected" => Some(Color::Red),
        "TIMEOUT" | "RETRY" | "NEEDS_SPEC" | "UNSURE" | "CANCELLED" | "NO_CONSENSUS" | "split"
        | "abstained" | "resting" | "unchecked" | "expired" | "open" | "warning" | "error"
        | "running" | "cancelled" | "undecided" | "inconclusive" => Some(Color::Yellow),
        _ => None,
    }
}

/// A value on one line, as the API writes it; a dash for none.
pub(crate) fn said<T: Serialize + ?Sized>(value: &T) -> String {
    let value = json!(value);
    let text = match &value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    let text = shortened(&text, WIDEST_CELL);
    if text.is_empty() { "–".to_owned() } else { text }
}

/// A value on one line, at any length.
pub(crate) fn whole_text<T: Serialize + ?Sized>(value: &T) -> String {
    let value = json!(value);
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if value.is_null() { "–".to_owned() } else { shortened(&text, usize::MAX) }
}

/// Text with its line breaks, and with other control characters made visible.
pub(crate) fn paragraph(text: &str) -> String {
    visible(text).trim_end().to_owned()
}

/// One line for each field.
pub(crate) fn fields(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{name:width$}  {value}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::LogFormat,
        output::{OutputFormat, Verbosity},
    };

    const ID: &str = "rnd_01K9ZQ3V7M8X4T2B6N0C5D1E2F";

    fn rounds(width: Option<u16>, colours: ColourMode) -> String {
        let (format, chatter, log) = (OutputFormat::Text, Verbosity::Normal, LogFormat::Text);
        let out = Output { format, chatter, colours, width, error_width: None, log };
        let header = ["round", "state", "verdict", "outcome", "detail", "opened"];
        let detail = "a sentence that is long enough to need several lines";
        let values = [ID, "closed", "VALID", "agreed", detail, "2026-01-02 03:04:05"];
        table(out, &header, vec![values.iter().map(word).collect()])
    }

    #[test]
    fn an_id_can_be_copied_from_a_narrow_terminal() {
        let text = rounds(Some(80), ColourMode::Off);
        assert!(text.contains(ID), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        // The least important columns give way.
        assert!(text.contains("verdict") && text.contains("agreed"), "{text}");
        assert!(!text.contains("state") && !text.contains("opened"), "{text}");
    }

    #[test]
    fn a_table_that_fits_has_all_its_columns() {
        let whole = rounds(None, ColourMode::Off);
        let width = whole.lines().map(|line| line.chars().count()).max().unwrap();
        assert_eq!(rounds(u16::try_from(width).ok(), ColourMode::Off), whole);
        assert!(!rounds(u16::try_from(width - 1).ok(), ColourMode::Off).contains("state"));
    }

    #[test]
    fn colours_do_not_change_the_layout() {
        for width in [None, Some(80)] {
            let coloured = rounds(width, ColourMode::On);
            let plain = rounds(width, ColourMode::Off);
            assert_ne!(coloured, plain);
            let lines = coloured.lines().map(console::strip_ansi_codes);
            let lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
            assert_eq!(lines.join("\n"), plain);
        }
    }
}
