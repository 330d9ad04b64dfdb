//! Generates the pages of `docs/reference` that follow from the code.

mod cli;
mod config;
mod http_api;
mod pages;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use crate::CommandReport;

const FOLDER: &str = "docs/reference";

/// What to do with the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GenerateMode {
    Write,
    Check,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GenerateOptions {
    mode: GenerateMode,
    /// The program whose help becomes `cli.md`, whose settings become `config.md`, and whose
    /// OpenAPI document becomes `openapi.json`.
    cli: Option<PathBuf>,
}

impl GenerateOptions {
    pub(crate) fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self { mode: GenerateMode::Write, cli: None };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match *arg {
                "--check" => options.mode = GenerateMode::Check,
                "--cli" => {
                    let program = rest.next().context("--cli needs the path of a program")?;
                    options.cli = Some(program.into());
                }
                other => bail!("`{other}` is no option of generate: use --check or --cli PATH"),
            }
        }
        Ok(options)
    }
}

pub(crate) fn run(root: &Path, options: &GenerateOptions) -> Result<CommandReport> {
    let mut pages = vec![
        ("reason-codes.md", pages::reason_codes()),
        ("error-codes.md", pages::error_codes()),
        ("exit-codes.md", pages::exit_codes()),
        ("metrics.md", pages::metrics()),
    ];
    if let Some(program) = &options.cli {
        pages.push(("cli.md", cli::page(program)?));
        let document = cli::openapi(program)?;
        pages.push(("http-api.md", http_api::page(root, &document)?));
        pages.push(("openapi.json", document));
        pages.push(("config.md", config::page(program)?));
    }
    let mut lines = Vec::new();
    for (name, text) in pages {
        let path = format!("{FOLDER}/{name}");
        if fs::read_to_string(root.join(&path)).is_ok_and(|current| current == text) {
            continue;
        }
        match options.mode {
            GenerateMode::Check => {
                lines.push(format!("{path}:1: stale; `just generate` writes it anew"));
            }
            GenerateMode::Write => {
                fs::create_dir_all(root.join(FOLDER))?;
                fs::write(root.join(&path), text)
                    .with_context(|| format!("cannot write {path}"))?;
                lines.push(format!("wrote {path}"));
            }
        }
    }
    let is_good = options.mode == GenerateMode::Write || lines.is_empty();
    Ok(CommandReport { lines, is_good })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_page_is_reported_until_it_is_written() {
        let root = tempfile::tempdir().unwrap();
        let check = GenerateOptions::parse(&["--check"]).unwrap();
        let before = run(root.path(), &check).unwrap();
        assert!(!before.is_good);
        assert_eq!(before.lines.len(), 4);

        run(root.path(), &GenerateOptions::parse(&[]).unwrap()).unwrap();
        let after = run(root.path(), &check).unwrap();
        assert!(after.is_good, "{:?}", after.lines);
    }

    #[test]
    fn an_unknown_option_is_named() {
        let error = GenerateOptions::parse(&["--verify"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`--verify` is no option of generate: use --check or --cli PATH"
        );
    }
}
