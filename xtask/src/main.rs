//! House checks and generated documents: `cargo xtask tidy`, `generate` and `migration`.

mod generate;
mod migration;
mod tidy;
mod tree;

use std::{path::Path, process::ExitCode};

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask tidy                          checks the rules of the house
       cargo xtask generate [--check] [--cli P]  writes docs/reference, or says what is stale;
                                                 with --cli also cli.md, config.md and openapi.json,
                                                 from the program P
       cargo xtask migration NAME                makes a pair of migrations";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is the one place that prints")]
fn main() -> ExitCode {
    match run() {
        Ok(report) => {
            for line in &report.lines {
                println!("{line}");
            }
            if report.is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The output of a command.
#[derive(Debug)]
struct CommandReport {
    lines: Vec<String>,
    is_good: bool,
}

fn run() -> Result<CommandReport> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["tidy"] => tidy::run(root),
        ["generate", options @ ..] => {
            generate::run(root, &generate::GenerateOptions::parse(options)?)
        }
        ["migration", name] => migration::run(root, name),
        _ => bail!("no such command\n{USAGE}"),
    }
}
