//! The command list of `jurat --help`, in groups.

use std::fmt::Write as _;

use clap::{Subcommand as _, builder::Styles};

use super::CliCommand;

/// Headings with their commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Ask", &["delegate", "validate", "factcheck", "rounds"]),
    ("Build checks", &["verifiers", "workflows", "design"]),
    ("Tasks and runs", &["task", "run", "agent-events", "knowledge"]),
    ("Share", &["templates", "shares", "teams", "invitations"]),
    (
        "Run a server",
        &["serve", "executors", "sessions", "runtime", "backup", "restore", "prune", "node"],
    ),
    ("Accounts", &["auth", "me", "whoami", "keys", "webhooks", "usage", "admin"]),
    ("Tools", &["demo", "doctor", "config", "mcp", "openapi", "completions", "help"]),
];

/// Width of the longest command name.
const NAME_WIDTH: usize = "agent-events".len();

/// The default template of clap with our own list of commands, because clap cannot group them.
pub(super) fn help_template() -> String {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let help = clap::Command::new("help").about("Print this message or the help of a command");
    let commands = CliCommand::augment_subcommands(clap::Command::new("jurat")).subcommand(help);
    let mut list = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(list, "{header}{title}:{header:#}");
        for command in names.iter().filter_map(|name| commands.find_subcommand(name)) {
            let (name, about) = (command.get_name(), about(command));
            let _ = writeln!(list, "  {literal}{name:NAME_WIDTH$}{literal:#}  {about}");
        }
        list.push('\n');
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n\
         {list}{header}Options:{header:#}\n{{options}}{{after-help}}"
    )
}

fn about(command: &clap::Command) -> String {
    let mut about = command.get_about().map(ToString::to_string).unwrap_or_default();
    for alias in command.get_visible_aliases() {
        let _ = write!(about, " [alias: {alias}]");
    }
    about
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let commands = Cli::command();
        let visible = commands.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(clap::Command::get_name).chain(["help"]).collect();
        let names = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        let mut grouped: Vec<&str> = names.collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn every_line_of_the_list_fits_a_terminal() {
        let help = Cli::command().render_help().to_string();
        let list = help.lines().take_while(|line| *line != "Options:");
        let lines: Vec<&str> = list.filter(|line| line.starts_with("  ")).collect();
        assert!(lines.len() > 30, "{help}");
        for line in lines {
            assert!(line.chars().count() <= 80, "{line}");
            assert_ne!(line.get(NAME_WIDTH + 4..).unwrap_or_default(), "", "{line}");
        }
    }
}
