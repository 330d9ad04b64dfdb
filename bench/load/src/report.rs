//! The metrics as a table for people, or as JSON.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Value, json};

use crate::compare::{LoadComparison, METRICS, Ratio};
use crate::options::LoadOptions;

const TITLES: [&str; 5] =
    ["requests/s", "p50 µs", "p99 µs", "CPU µs/request", "peers' CPU µs/request"];

/// Prints the comparison in the requested form.
#[expect(clippy::print_stdout, reason = "the report is what the program is for")]
pub fn print(comparison: &LoadComparison, options: &LoadOptions) {
    if options.json {
        println!("{}", to_json(comparison));
    } else {
        println!("{}", to_table(comparison));
    }
}

/// Medians over the passes, followed by the ratios with their range.
pub fn to_table(comparison: &LoadComparison) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(std::iter::once("").chain(TITLES));
    for measured in &comparison.subjects {
        let figures = measured.medians().map(|figure| format!("{figure:.1}"));
        table.add_row(std::iter::once(measured.name.clone()).chain(figures));
    }
    for (name, baseline, ratios) in ratios(comparison) {
        let cells = ratios.map(|ratio| ratio.map_or_else(|| "–".to_owned(), write_ratio));
        table.add_row(std::iter::once(format!("{name} / {baseline}")).chain(cells));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

pub fn to_json(comparison: &LoadComparison) -> Value {
    let subjects = comparison.subjects.iter().map(|measured| {
        let turns: Vec<Value> =
            measured.turns.iter().map(|turn| named(turn.map(Value::from))).collect();
        json!({
            "name": measured.name,
            "median": named(measured.medians().map(Value::from)),
            "turns": turns,
        })
    });
    let ratios = ratios(comparison).map(|(name, baseline, ratios)| {
        let ratios = ratios.map(|ratio| {
            ratio.map_or(
                Value::Null,
                |Ratio { median, least, most }| json!({ "median": median, "least": least, "most": most }),
            )
        });
        json!({ "subject": name, "baseline": baseline, "ratio": named(ratios) })
    });
    json!({
        "connections": comparison.plan.connections,
        "subjects": subjects.collect::<Vec<_>>(),
        "ratios": ratios.collect::<Vec<_>>(),
    })
}

fn ratios(comparison: &LoadComparison) -> impl Iterator<Item = (&str, &str, [Option<Ratio>; 5])> {
    let (baseline, others) = match comparison.subjects.split_first() {
        Some((baseline, others)) => (Some(baseline), others),
        None => (None, comparison.subjects.as_slice()),
    };
    others.iter().filter_map(move |measured| {
        let baseline = baseline?;
        Some((measured.name.as_str(), baseline.name.as_str(), measured.over(baseline)))
    })
}

fn write_ratio(ratio: Ratio) -> String {
    format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.least, ratio.most)
}

fn named(values: [Value; 5]) -> Value {
    Value::Object(METRICS.iter().map(|&name| name.to_owned()).zip(values).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::compare::SubjectMetrics;
    use crate::load::{LoadPlan, LoadStop};

    #[test]
    fn the_second_subject_is_shown_with_its_ratio_to_the_first() {
        let stop = LoadStop::After(Duration::from_secs(1));
        let measured =
            |name: &str, value| SubjectMetrics { name: name.to_owned(), turns: vec![[value; 5]] };
        let comparison = LoadComparison {
            plan: LoadPlan { connections: 4, warm_up: 1, stop },
            subjects: vec![measured("bare", 2.0), measured("jurat", 3.0)],
        };
        let table = to_table(&comparison);
        assert!(table.contains("jurat / bare") && table.contains("1.50 (1.50–1.50)"), "{table}");
        let json = to_json(&comparison);
        assert_eq!(json["ratios"][0]["ratio"]["p99_us"]["median"], 1.5);
        assert_eq!(json["subjects"][1]["turns"][0]["p50_us"], 3.0);
    }
}
