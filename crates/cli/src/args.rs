//! The command line: what can be said, and the help that explains it.

mod account;
mod agent_events;
mod backup;
mod config;
mod doctor;
mod executors;
mod keys;
mod knowledge;
mod measure;
mod people;
mod prune;
mod request;
mod rounds;
mod runs;
mod serve;
mod tasks;
mod templates;
mod verifiers;
mod workflows;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::settings::{Given, LISTEN, LOG_FORMAT, MIGRATE_URL, SERVER, STATE_DIR, STORE, topic};

pub(crate) use self::{
    account::{Admin, Grant, Transfers},
    agent_events::{AgentEvents, ListAgentEvents, SendAgentEvent},
    backup::{Backup, BackupCommand, Restore},
    config::ConfigCommand,
    doctor::Doctor,
    executors::{AddExecutor, AddSession, Executors, SessionArgs, Sessions},
    keys::{CreateKey, Keys, ListKeys, NamedKey, RotateKey},
    knowledge::{ExportKnowledge, Knowledge},
    measure::{AttackVerifier, MeasureArgs, TestVerifier},
    people::{
        Approve, Auth, Invitations, ListInvitations, ListShares, MailCode, Me, Membership, Shares,
        TeamFilter, Teams,
    },
    prune::Prune,
    request::{Api, Delegate, Factcheck, PolicyArgs, RequestArgs, Validate},
    rounds::{ListArgs, ListRounds, Rounds},
    runs::{ListTaskRuns, NamedRun, RunWorker, SubmitRun, TaskRuns},
    serve::{Compat, EngineName, Runtime, Serve},
    tasks::{Complain, ListTasks, NamedTask, OrderArgs, RunTask, SubmitTask, TaskEvents, Tasks},
    templates::{
        ForkTemplate, GetTemplate, GetTemplateFile, ListTemplates, NumberedTemplate,
        PublishTemplate, RemoveTemplate, RemoveTemplateVersion, SearchTemplates, Templates,
    },
    verifiers::{
        DeployVerifier, DiffVersions, InputArgs, JudgeArgs, ListRuns, ListVerifiers, ListVersions,
        NamedVersion, RemoveVerifier, RunVerifier, Runs, RunsCommand, Verifiers,
    },
    workflows::{
        DeleteWorkflow, DeleteWorkflowVersion, GetWorkflow, GrantWorkflow, ListWorkflows,
        NamedWorkflow, PublishWorkflow, PutFile, RevokeWorkflowGrant, RmFile, RunChecks,
        SearchWorkflows, TransferWorkflow, Workflows,
    },
};

const AFTER_HELP: &str = "\
Examples:
  jurat demo
  jurat serve
  jurat runtime --listen 127.0.0.1:8787 --engine echo
  jurat executors add my-runtime http://127.0.0.1:8787
  jurat validate --claim '12 * 12 = 144' --replicas 3
  jurat verifiers run claims-cite-source --inputs-file inputs.json

Commands speak to the server of the state folder when one runs; without one they do the work
themselves, under the folder's lock.

Topics: jurat help settings, jurat help exit-codes";

const AFTER_LONG_HELP: &str = "\
Examples:
  jurat demo
  jurat serve
  jurat runtime --listen 127.0.0.1:8787 --engine echo
  jurat executors add my-runtime http://127.0.0.1:8787
  jurat validate --claim '12 * 12 = 144' --replicas 3
  jurat verifiers run claims-cite-source --inputs-file inputs.json

Commands speak to the server of the state folder when one runs; without one they do the work
themselves, under the folder's lock.

The key is read from the variable JURAT_KEY, from `client.key` of the file with settings, or from
`admin.key` in the state folder; never from the command line, where others could read it.

`jurat help settings` says what can be set by file, environment and flags, and `jurat help
exit-codes` what the exit codes mean.

Environment:
  JURAT_CONFIG  the file with settings
  JURAT_KEY     the API key
  JURAT_LOG     what is logged on standard error, such as `debug` or `warn,jurat=info`
  NO_COLOR      no colours when it is set";

/// The topic `exit-codes` of the help.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0   done, whatever the verdict
  1   an error; for `executors check` and `doctor` also: something is not well;
      for `verifiers run` also: the judge gave no verdict;
      for `task run-real` also: the task ended without a decision
  2   wrong usage: a flag, a file or a field that must be corrected first
  11  only with --gate: the answer is negative, a task failed, or a measurement misses its
      threshold
  12  only with --gate: inconclusive, no consensus, less sure than --min-confidence asks for, or a
      task without a decision
  130 `serve` was ended by a second signal before its rounds had ended

A gate stops a pipeline:
  jurat validate --claim '2 + 2 = 4' --gate || echo stopped with $?";

/// Answers that were checked, with how sure they are.
///
/// Jurat runs a job on 1, 3 or 5 independent executors, checks every answer under a policy, and
/// returns one answer with agreement, confidence and what each replica said.
#[derive(Debug, Parser)]
#[command(name = "jurat", version, after_help = AFTER_HELP, after_long_help = AFTER_LONG_HELP)]
#[command(max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes. What a flag does not say, a variable or the file may.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// File with settings [env: `JURAT_CONFIG`] [default: `jurat.toml` in the state folder, if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Folder with the store, the keys and the lock [env: `JURAT_STATE_DIR`] [default: ./.jurat]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_dir: Option<String>,
    /// A file name in the state folder, a path, or postgres://…; by default that of the server
    /// that runs in the state folder, else `jurat.db` [env: `JURAT_STORE`]
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Speaks to this server instead of the one of the state folder [env: `JURAT_SERVER`]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Prints the body of the API as it came
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Prints nothing but data and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

impl Cli {
    /// The settings that stand on the command line.
    pub(crate) fn given(&self) -> Given<'_> {
        let mut own = vec![(&LOG_FORMAT, self.command.log_format())];
        if let Command::Serve(args) = &self.command {
            own.push((&LISTEN, args.listen.as_deref()));
            own.push((&MIGRATE_URL, args.migrate_url.as_deref()));
        }
        let global = [
            (&STATE_DIR, self.global.state_dir.as_deref()),
            (&STORE, self.global.store.as_deref()),
            (&SERVER, self.global.server.as_deref()),
        ];
        let flags = global.into_iter().chain(own);
        Given {
            file: self.global.config.as_deref(),
            flags: flags.filter_map(|(setting, text)| Some((setting, text?))).collect(),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows it all: five executors, one liar, one that hangs, two rounds, a verifier
    #[command(
        after_help = "Examples:\n  jurat demo\n  jurat demo --json\n\nLeaves nothing behind."
    )]
    Demo,
    /// Starts the server
    Serve(Serve),
    /// Starts an executor: a test one, a local program, or a model
    Runtime(Runtime),
    /// Registers, lists and checks executors
    #[command(subcommand)]
    Executors(Executors),
    /// Adds, lists and removes sessions: named lanes to executors
    #[command(subcommand)]
    Sessions(Sessions),
    /// Has a job done by several executors and returns what they agree on
    Delegate(Delegate),
    /// Has a claim or an output judged by several executors
    Validate(Validate),
    /// Has a claim checked for its truth by several executors
    Factcheck(Factcheck),
    /// Lists and shows the rounds that were walked
    #[command(subcommand)]
    Rounds(Rounds),
    /// Submits, follows and lists tasks: jobs under a contract, proposed, verified and voted on
    #[command(subcommand, visible_alias = "tasks")]
    Task(Tasks),
    /// Lists what executors are told of tasks, and sends them events
    #[command(subcommand)]
    AgentEvents(AgentEvents),
    /// Submits, follows and works on runs of several agents
    #[command(subcommand)]
    Run(TaskRuns),
    /// Prints what is remembered of decisions
    #[command(subcommand)]
    Knowledge(Knowledge),
    /// Deploys, runs and measures verifiers: versioned checks that a judge decides
    #[command(subcommand)]
    Verifiers(Verifiers),
    /// Saves, shares and checks workflows: runbooks that name their verifiers
    #[command(subcommand, visible_alias = "skills")]
    Workflows(Workflows),
    /// Publishes, reads and forks templates: workflows with their checks for everybody
    #[command(subcommand)]
    Templates(Templates),
    /// Prints instructions for an agent that designs a workflow
    #[command(after_help = "Examples:\n  jurat design\n  jurat design --json")]
    Design,
    /// Makes, lists, revokes and rotates API keys
    #[command(subcommand)]
    Keys(Keys),
    /// Registers, logs in, and lets programs in
    #[command(subcommand)]
    Auth(Auth),
    /// Shows who you are, and changes your handle
    #[command(subcommand)]
    Me(Me),
    /// Makes teams, and invites people to them
    #[command(subcommand)]
    Teams(Teams),
    /// Lists and answers what others share with you
    #[command(subcommand)]
    Shares(Shares),
    /// Lists and answers invitations
    #[command(subcommand)]
    Invitations(Invitations),
    /// Says which account and key commands speak for
    #[command(after_help = "Examples:\n  jurat whoami\n  jurat whoami --json")]
    Whoami,
    /// Shows the credit of your account and what it has used
    #[command(after_help = "Examples:\n  jurat usage\n  jurat usage --json")]
    Usage,
    /// Gives credit, suspends accounts, and lists them
    #[command(subcommand)]
    Admin(Admin),
    /// Writes a backup of the store and the keys, while the server may run
    Backup(Backup),
    /// Puts a backup into a state folder that has no store
    Restore(Restore),
    /// Offers the operations to models as tools (MCP), on standard input and output
    #[command(
        after_help = "Examples:\n  jurat mcp\n  jurat --server https://jurat.example.com mcp\n\nA client of the Model Context Protocol starts it: one message a line comes in, and one message a\nline goes out, until the input ends. A running server has the same tools at /mcp."
    )]
    Mcp,
    /// Prints the public key by which executors know the requests of this node
    #[command(
        after_help = "Examples:\n  jurat node\n  jurat --state-dir /var/lib/jurat node --json\n\nReads `node.key` of the state folder; no server has to run."
    )]
    Node,
    /// Prints the OpenAPI document of the HTTP API
    #[command(
        name = "openapi",
        after_help = "Examples:\n  jurat openapi > openapi.json\n\nA running server has the same document at /openapi.json, and a page to read it at /docs."
    )]
    OpenApi,
    /// Removes what is old: answers kept under idempotency keys, texts of rounds, events
    Prune(Prune),
    /// Says what is wrong with the installation, and what to do about it
    Doctor(Doctor),
    /// Shows and checks the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// What the exit codes mean
    #[command(hide = true, about = EXIT_CODES, help_template = "{about}\n")]
    ExitCodes,
    /// What can be set, and how
    #[command(hide = true, about = topic(), help_template = "{about}\n")]
    Settings,
    /// Prints a completion script for a shell
    #[command(
        after_help = "Examples:\n  jurat completions bash > ~/.local/share/bash-completion/completions/jurat\n  jurat completions zsh > ~/.zfunc/_jurat"
    )]
    Completions { shell: clap_complete::Shell },
}

impl Command {
    /// Whether it logs until it is stopped.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Runtime(_) | Self::Run(TaskRuns::Worker(_)))
    }

    /// The flag `--log-format`.
    pub(crate) fn log_format(&self) -> Option<&str> {
        if let Self::Serve(Serve { log_format, .. }) | Self::Runtime(Runtime { log_format, .. }) =
            self
        {
            return log_format.as_deref();
        }
        if let Self::Run(TaskRuns::Worker(worker)) = self {
            return worker.log_format.as_deref();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The words of each program in a line, as a shell would split them.
    fn programs(line: &str) -> Vec<Vec<String>> {
        let mut programs = vec![vec![String::new()]];
        let mut is_quoted = false;
        for symbol in line.chars() {
            let words = programs.last_mut().unwrap();
            match symbol {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                '|' | '>' if !is_quoted => programs.push(vec![String::new()]),
                _ => words.last_mut().unwrap().push(symbol),
            }
        }
        for words in &mut programs {
            words.retain(|word| !word.is_empty());
            let is_setting = |word: &String| word.starts_with("JURAT_") && word.contains('=');
            let settings = words.iter().take_while(|word| is_setting(word)).count();
            words.drain(..settings);
        }
        programs
    }

    fn helps(command: &clap::Command) -> Vec<String> {
        let own = [command.get_after_help(), command.get_after_long_help()];
        let own = own.into_iter().flatten().map(ToString::to_string);
        own.chain(command.get_subcommands().flat_map(helps)).collect()
    }

    #[test]
    fn every_example_can_be_typed_as_it_is() {
        let helps = helps(&Cli::command());
        let lines = helps.iter().flat_map(|help| help.lines());
        let examples: Vec<Vec<String>> = lines
            .filter(|line| line.starts_with("  "))
            .flat_map(programs)
            .filter(|words| words.first().is_some_and(|word| word == "jurat"))
            .collect();
        assert!(examples.len() > 30, "only {} examples were found", examples.len());
        for example in examples {
            let parsed = Cli::try_parse_from(&example);
            assert!(parsed.is_ok(), "{example:?}: {}", parsed.unwrap_err());
        }
    }
}
