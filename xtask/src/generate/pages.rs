//! Generates the tables of codes.

use std::fmt::Write as _;

use jurat_core::{code::ProblemCode, metric, reason};

/// The first line of each page.
pub(super) const NOTICE: &str = "<!-- Written by `just generate`. Do not edit. -->\n\n";

pub(super) fn reason_codes() -> String {
    let mut text = format!(
        "{NOTICE}# Reason codes\n\n\
         A policy says with reason codes why it decided as it did.\n\
         Codes below 1000 are those of the executor contract; codes from 1000 on are Jurat's own.\n\
         Codes 200, 201 and 202 make a verdict inconclusive when the executor states no status.\n\n\
         | code | name | meaning |\n|---:|---|---|\n"
    );
    for (code, name, meaning) in reason::ALL {
        row(&mut text, &[&code.to_string(), &quoted(&name.to_lowercase()), meaning]);
    }
    text
}

pub(super) fn error_codes() -> String {
    let mut text = format!(
        "{NOTICE}# Error codes\n\n\
         Every error has a stable code, in the member `code` of the body.\n\
         The exit code is that of the command line when a command ends in the error.\n\n\
         | code | HTTP status | exit code | what to try |\n|---|---:|---:|---|\n"
    );
    for code in ProblemCode::ALL {
        let link = format!("[`{code}`](errors/{code}.md)");
        row(
            &mut text,
            &[&link, &code.http_status().to_string(), &code.exit_code().to_string(), code.hint()],
        );
    }
    text
}

pub(super) fn exit_codes() -> String {
    let mut text = format!(
        "{NOTICE}# Exit codes\n\n\
         | exit code | meaning | error codes |\n|---:|---|---|\n"
    );
    let meanings = [
        (0, "Success."),
        (
            1,
            "An error; for `jurat executors check` also an unhealthy executor, for `jurat doctor` a problem, for `jurat verifiers run` a judge without a verdict, and for `jurat task run-real` a task without a decision.",
        ),
        (2, "Wrong usage: correct a flag, a file or a field first."),
        (
            11,
            "Only with `--gate`: the answer is negative, a task failed, or a measurement misses its threshold.",
        ),
        (
            12,
            "Only with `--gate`: inconclusive, no consensus, confidence below `--min-confidence`, or a task without a decision.",
        ),
        (130, "A second signal stopped `jurat serve` before its rounds had ended."),
    ];
    for (exit, meaning) in meanings {
        let codes: Vec<String> = ProblemCode::ALL
            .iter()
            .filter(|code| code.exit_code() == exit)
            .map(|code| format!("[`{code}`](errors/{code}.md)"))
            .collect();
        row(&mut text, &[&exit.to_string(), meaning, &codes.join(", ")]);
    }
    text
}

pub(super) fn metrics() -> String {
    let mut text = format!(
        "{NOTICE}# Metrics\n\n\
         `GET /metrics` shows these figures of one node, in the text format of Prometheus or, for who asks for it in `Accept`, in that of OpenMetrics.\n\
         It needs a key with the scope `metrics:read` or `admin`.\n\
         Counters begin at zero when the node starts, and a figure appears with the first event that it counts.\n\
         Every label has a bounded set of values: routes are templates, executors are those that are registered, providers those of the configuration, and nothing of a claim, a key or an account is in a label.\n\
         [The guide](../guide/observability.md) says how to scrape them, and has a dashboard and alerts.\n\n\
         | metric | type | labels | meaning |\n|---|---|---|---|\n"
    );
    for it in metric::ALL {
        let samples: Vec<String> = it.samples().iter().map(|name| quoted(name)).collect();
        let labels: Vec<String> = it.labels.iter().map(|label| quoted(label)).collect();
        row(&mut text, &[&samples.join("<br>"), it.shape.as_str(), &labels.join(", "), it.help]);
    }
    text
}

pub(super) fn quoted(text: &str) -> String {
    format!("`{text}`")
}

pub(super) fn row(text: &mut String, cells: &[&str]) {
    // A bar would end the cell. Writing to a string cannot fail.
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_row_with_its_numbers() {
        let text = error_codes();
        for code in ProblemCode::ALL {
            let start = format!(
                "| [`{code}`](errors/{code}.md) | {} | {} | ",
                code.http_status(),
                code.exit_code()
            );
            assert!(text.lines().any(|line| line.starts_with(&start)), "{start}");
        }
        assert_eq!(exit_codes().matches("](errors/").count(), ProblemCode::ALL.len());
    }
}
