//! Pages from the program's own output: its help and its OpenAPI document.

use std::{fmt::Write as _, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::pages::NOTICE;

/// Deeper than any command, so that a program that answers every name with help cannot loop for
/// ever.
const DEEPEST: usize = 4;

pub(super) fn page(program: &Path) -> Result<String> {
    let mut text = format!("{NOTICE}# Command line\n");
    add(&mut text, program, &mut Vec::new())?;
    Ok(text)
}

fn add(text: &mut String, program: &Path, command: &mut Vec<String>) -> Result<()> {
    let help = help(program, command)?;
    let title = ["jurat"].into_iter().chain(command.iter().map(String::as_str)).collect::<Vec<_>>();
    let _ = write!(text, "\n## `{}`\n\n```text\n{}\n```\n", title.join(" "), help.trim_end());
    if command.len() < DEEPEST {
        for name in subcommands(&help) {
            command.push(name);
            add(text, program, command)?;
            command.pop();
        }
    }
    Ok(())
}

/// How deep the OpenAPI document is written line by line: each operation and each schema has a
/// line.
const LINES_DEEP: usize = 3;

/// The program's OpenAPI document, with a line for each operation and each schema, so that a
/// difference shows what changed.
pub(super) fn openapi(program: &Path) -> Result<String> {
    let text = ask(program, &["openapi".to_owned()])?;
    let document: Value = serde_json::from_str(&text).context("the document is not JSON")?;
    let mut lines = String::new();
    write_lines(&mut lines, &document, 0);
    lines.push('\n');
    Ok(lines)
}

fn write_lines(text: &mut String, value: &Value, depth: usize) {
    let members = value.as_object().filter(|members| depth < LINES_DEEP && !members.is_empty());
    let Some(members) = members else {
        let _ = write!(text, "{value}");
        return;
    };
    let (inner, outer) = ("  ".repeat(depth + 1), "  ".repeat(depth));
    text.push('{');
    for (index, (name, member)) in members.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\n{inner}{}: ", Value::from(name.as_str()));
        write_lines(text, member, depth + 1);
    }
    let _ = write!(text, "\n{outer}}}");
}

fn help(program: &Path, command: &[String]) -> Result<String> {
    let text = ask(program, &[command, &["--help".to_owned()]].concat())?;
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    Ok(lines.join("\n"))
}

fn ask(program: &Path, args: &[String]) -> Result<String> {
    let output = Command::new(program)
        .args(args)
        // The environment of whoever generates the page must not change it.
        .env_clear()
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .output()
        .with_context(|| {
            format!("cannot run {}; `cargo build` or the tests make it", program.display())
        })?;
    if !output.status.success() {
        bail!("`{}` failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("what the program prints is not UTF-8")
}

/// The names of the commands between the usage and the options, under one heading or in groups,
/// without `help`.
fn subcommands(help: &str) -> Vec<String> {
    let lists = help.lines().skip_while(|line| !line.starts_with("Usage:")).skip(1);
    lists
        .take_while(|line| *line != "Options:")
        // A longer indent continues the line above.
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help" && !name.starts_with(['<', '[']))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn the_page_has_the_help_of_every_command() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("jurat");
        let script = "#!/bin/sh\ncase $1 in\n\
                      serve) echo 'Start the server';;\n\
                      *) printf 'Usage: jurat\\n\\nCommands:\\n  serve  Start\\n';;\nesac\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let page = page(&program).unwrap();
        assert!(page.contains("# Command line\n"), "{page}");
        assert!(page.contains("## `jurat serve`\n\n```text\nStart the server\n```"), "{page}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = page(Path::new("/nowhere/jurat")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot run /nowhere/jurat; `cargo build` or the tests make it"
        );
    }

    #[test]
    fn subcommands_are_read_from_the_help() {
        let help = "Usage: jurat\n\nServer:\n  serve  Start\n         the server\n\nTools:\n  demo   \
                    Run it\n  help   Print this\n\nOptions:\n  -h, --help  Print help\n\n\
                    Examples:\n  jurat serve\n";
        assert_eq!(subcommands(help), ["serve", "demo"]);
        let help = "Usage: jurat backup <FOLDER>\n       jurat backup <COMMAND>\n\nCommands:\n  \
                    verify  Check\n\nArguments:\n  <FOLDER>  Where\n  [FILE]  What\n\nOptions:\n";
        assert_eq!(subcommands(help), ["verify"]);
        assert_eq!(subcommands("Usage: jurat serve\n"), [] as [&str; 0]);
    }
}
