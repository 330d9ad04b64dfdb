//! The metrics as a table for people, or as JSON, with the targets.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use crate::measure::{LoadPhase, OverloadResult, SUBJECTS};

/// The metrics of a phase, in the order of `TITLES`.
type PhaseMetrics = [f64; 9];

const TITLES: [&str; 9] = [
    "offered/s",
    "good/s",
    "shed/s",
    "failed/s",
    "late/s",
    "p50 ms",
    "p99 ms",
    "memory MiB",
    "CPU",
];
const NAMES: [&str; 9] =
    ["offered", "good", "shed", "failed", "late", "p50_ms", "p99_ms", "memory_mib", "cpu"];

/// One row of the table: medians over the passes.
struct ReportLine {
    subject: &'static str,
    name: String,
    figures: PhaseMetrics,
}

#[expect(clippy::print_stdout, reason = "the report is what the program is for")]
pub(crate) fn print(rounds: &[OverloadResult], is_json: bool) {
    let capacity = median(rounds.iter().map(|round| round.capacity).collect());
    let per_cpu = median(rounds.iter().map(|round| round.per_cpu).collect());
    let lines = lines(rounds);
    if is_json {
        println!("{}", to_json(capacity, &lines));
        return;
    }
    println!(
        "Capacity: {capacity:.0} rounds/s in a closed loop over 32 connections, {per_cpu:.0} in a second of the processor.\n"
    );
    println!("{}\n", to_table(&lines));
    for (text, value) in aims(capacity, &lines) {
        println!("- {text}: {value:.2}");
    }
}

fn lines(rounds: &[OverloadResult]) -> Vec<ReportLine> {
    let Some(first) = rounds.first() else { return Vec::new() };
    let line = |(place, phase): (usize, &LoadPhase)| {
        let all: Vec<PhaseMetrics> =
            rounds.iter().map(|round| metrics(&round.phases[place])).collect();
        let figures =
            std::array::from_fn(|figure| median(all.iter().map(|turn| turn[figure]).collect()));
        ReportLine { subject: phase.subject, name: phase.name.clone(), figures }
    };
    first.phases.iter().enumerate().map(line).collect()
}

#[expect(clippy::cast_precision_loss, reason = "mebibytes need no more than 52 bits")]
fn metrics(phase: &LoadPhase) -> PhaseMetrics {
    let outcome = &phase.outcome;
    [
        phase.offered,
        outcome.good_per_second(),
        outcome.per_second(outcome.shed),
        outcome.per_second(outcome.failed),
        outcome.per_second(outcome.late),
        outcome.percentile_us(0.5) / 1_000.0,
        outcome.percentile_us(0.99) / 1_000.0,
        phase.resident as f64 / (1_024.0 * 1_024.0),
        phase.cpu,
    ]
}

/// The targets of the server, for each subject.
fn aims(capacity: f64, lines: &[ReportLine]) -> Vec<(String, f64)> {
    let mut aims = Vec::new();
    for subject in SUBJECTS {
        let own: Vec<&PhaseMetrics> =
            lines.iter().filter(|line| line.subject == subject).map(|line| &line.figures).collect();
        let [part, whole, more, stalled] = own[..] else { continue };
        aims.push((
            format!("{subject}: good at 5× over capacity (aim 0.90 or more)"),
            more[1] / capacity,
        ));
        aims.push((
            format!("{subject}: p99 at 5× over p99 at 0.7× (aim 2 or less)"),
            more[6] / part[6],
        ));
        aims.push((
            format!("{subject}: memory after 5× over memory after 1× (aim about 1)"),
            more[7] / whole[7],
        ));
        aims.push((
            format!("{subject}: p99 beside stalled over p99 without (aim 2 or less)"),
            stalled[6] / part[6],
        ));
    }
    aims
}

fn to_table(lines: &[ReportLine]) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["load", "server"].into_iter().chain(TITLES));
    for line in lines {
        let cells =
            line.figures.map(|figure| format!("{figure:.*}", usize::from(figure < 1_000.0)));
        let names = [line.name.clone(), line.subject.to_owned()];
        table.add_row(names.into_iter().chain(cells));
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

fn to_json(capacity: f64, lines: &[ReportLine]) -> Value {
    let phases: Vec<Value> = lines
        .iter()
        .map(|line| {
            let mut phase = json!({ "load": line.name, "subject": line.subject });
            for (name, figure) in NAMES.iter().zip(line.figures) {
                phase[*name] = json!(figure);
            }
            phase
        })
        .collect();
    let aims: Vec<Value> = aims(capacity, lines)
        .into_iter()
        .map(|(aim, value)| json!({ "aim": aim, "value": value }))
        .collect();
    json!({ "capacity": capacity, "phases": phases, "aims": aims })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
