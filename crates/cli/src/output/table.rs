//! Tables and lists of fields.

use comfy_table::{
    Attribute, Cell, Color, ContentArrangement, LineStyle, Table, TableStyle,
    presets::UTF8_HORIZONTAL_ONLY,
};
use serde_json::Value;

use super::{Output, shortened};
use crate::config::Colours;

const WIDEST_CELL: usize = 60;
/// A line above, below and under the header; none between the rows.
const STYLE: TableStyle = UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none());

pub(crate) fn table(out: Output, header: &[&str], rows: Vec<Vec<Cell>>) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    match out.colours {
        Colours::On => table.enforce_styling(),
        Colours::Off => table.force_no_tty(),
    };
    table.set_header(header.iter().map(|title| Cell::new(title).add_attribute(Attribute::Bold)));
    table.add_rows(rows);
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// A cell with a value that came from elsewhere.
pub(crate) fn cell(value: &Value) -> Cell {
    Cell::new(said(value))
}

/// A cell with a word that is good, bad or neither.
pub(crate) fn word(value: &Value) -> Cell {
    let text = said(value);
    match colour(&text) {
        Some(colour) => Cell::new(text).fg(colour),
        None => Cell::new(text),
    }
}

pub(crate) fn colour(word: &str) -> Option<Color> {
    match word {
        "VALID" | "TRUE" | "OK" | "up" | "agreed" => Some(Color::Green),
        "INVALID" | "FALSE" | "INVALID_OUTPUT" | "ERROR" | "down" | "failed" => Some(Color::Red),
        "TIMEOUT" | "RETRY" | "NEEDS_SPEC" | "UNSURE" | "CANCELLED" | "NO_CONSENSUS" | "split"
        | "abstained" | "resting" | "unchecked" | "expired" | "open" => Some(Color::Yellow),
        _ => None,
    }
}

/// A value in a few words; a dash for nothing.
pub(crate) fn said(value: &Value) -> String {
    let text = match value {
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

/// One line for each field.
pub(crate) fn fields(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{name:width$}  {value}")).collect();
    lines.join("\n")
}
