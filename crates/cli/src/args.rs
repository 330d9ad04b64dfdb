//! The command line: its commands and flags, and their help.

mod groups;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::settings::{
    CommandLineSettings, LISTEN, LOG_FORMAT, MIGRATE_URL, NODE_LISTEN, SERVER, STATE_DIR, STORE,
    topic,
};

pub(crate) use crate::commands::{
    account::args::{AdminCommand, CreditGrantArgs, TransfersArgs},
    agent_events::args::{AgentEventsCommand, ListAgentEventsArgs, SendAgentEventArgs},
    agent_runs::args::{
        AgentRunNameArgs, AgentRunWorkerArgs, AgentRunsCommand, ListAgentRunsArgs,
        SubmitAgentRunArgs,
    },
    backup::args::{BackupArgs, BackupCommand, RestoreArgs},
    config::args::ConfigCommand,
    consensus::args::{
        ApiVersionArg, DelegateArgs, FactcheckArgs, PolicyArgs, RequestArgs, ValidateArgs,
    },
    doctor::args::DoctorArgs,
    executors::args::{AddExecutorArgs, ExecutorsCommand, SessionArgs, SessionsCommand},
    keys::args::{CreateKeyArgs, KeyNameArgs, KeysCommand, ListKeysArgs, RotateKeyArgs},
    knowledge::args::{ExportKnowledgeArgs, KnowledgeCommand},
    node::args::{
        InviteNodeArgs, JoinNodeArgs, NodeArgs, NodeCommand, PeerTermsArgs, TrustNodeArgs,
    },
    people::args::{
        ApproveArgs, AuthCommand, InvitationsCommand, ListInvitationsArgs, ListSharesArgs,
        MailCodeArgs, MeCommand, MembershipArgs, SharesCommand, TeamFilterArg, TeamsCommand,
    },
    prune::args::PruneArgs,
    rounds::args::{ListArgs, ListRoundsArgs, RoundsCommand},
    serve::args::{CompatArg, EngineNameArg, RuntimeArgs, ServeArgs},
    tasks::args::{
        ComplainArgs, ListTasksArgs, RunTaskArgs, SubmitTaskArgs, TaskEventsArgs, TaskNameArgs,
        TaskOrderArgs, TasksCommand,
    },
    templates::args::{
        ForkTemplateArgs, GetTemplateArgs, GetTemplateFileArgs, ListTemplatesArgs,
        PublishTemplateArgs, RemoveTemplateArgs, RemoveTemplateVersionArgs, SearchTemplatesArgs,
        TemplateVersionArgs, TemplatesCommand,
    },
    verifiers::{
        args::{
            DeployVerifierArgs, DiffVersionsArgs, ListVerifierRunsArgs, ListVerifiersArgs,
            ListVersionsArgs, RemoveVerifierArgs, RunVerifierArgs, VerifierInputArgs,
            VerifierRunsArgs, VerifierRunsCommand, VerifierVersionArgs, VerifiersCommand,
        },
        measure_args::{AttackVerifierArgs, MeasureArgs, TestVerifierArgs},
    },
    webhooks::args::{AddWebhookArgs, WebhookDeliveriesArgs, WebhooksCommand},
    workflows::args::{
        DeleteWorkflowArgs, DeleteWorkflowVersionArgs, GetWorkflowArgs, GrantWorkflowArgs,
        ListWorkflowsArgs, PublishWorkflowArgs, PutFileArgs, RemoveFileArgs,
        RevokeWorkflowGrantArgs, RunChecksArgs, SearchWorkflowsArgs, TransferWorkflowArgs,
        WorkflowNameArgs, WorkflowsCommand,
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

Commands use the server of the state folder if one is running. Otherwise they do the work themselves
and lock the folder meanwhile.

Topics: jurat help settings, jurat help exit-codes";

const AFTER_LONG_HELP: &str = "\
Examples:
  jurat demo
  jurat serve
  jurat runtime --listen 127.0.0.1:8787 --engine echo
  jurat executors add my-runtime http://127.0.0.1:8787
  jurat validate --claim '12 * 12 = 144' --replicas 3
  jurat verifiers run claims-cite-source --inputs-file inputs.json

Commands use the server of the state folder if one is running. Otherwise they do the work themselves
and lock the folder meanwhile.

The API key comes from the variable JURAT_KEY, from `client.key` in the config file, or from
`admin.key` in the state folder. It is never a flag, because other users could read it.

`jurat help settings` lists the settings and how to set them by file, environment and flags.
`jurat help exit-codes` explains the exit codes.

Environment:
  JURAT_CONFIG  config file
  JURAT_KEY     API key
  JURAT_LOG     log filter for standard error, such as `debug` or `warn,jurat=info`
  NO_COLOR      turns colours off if set";

/// Help topic `exit-codes`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0   success, whatever the verdict
  1   an error; for `executors check` also an unhealthy executor, for `doctor` a problem, for
      `verifiers run` a judge without a verdict, for `task run-real` a task without a decision,
      for `node statement` books that do not agree
  2   wrong usage: correct a flag, a file or a field first
  11  only with --gate: the answer is negative, a task failed, or a measurement misses its
      threshold
  12  only with --gate: inconclusive, no consensus, confidence below --min-confidence, or a task
      without a decision
  130 a second signal stopped `serve` before its rounds had ended

A gate stops a pipeline:
  jurat validate --claim '2 + 2 = 4' --gate || echo stopped with $?";

/// Checked answers, each with an estimated confidence.
///
/// Jurat runs a job on 1, 3 or 5 independent executors, checks every answer under a policy, and
/// returns one answer with its agreement, its confidence and the answer of each replica.
#[derive(Debug, Parser)]
#[command(name = "jurat", version, after_help = AFTER_HELP, after_long_help = AFTER_LONG_HELP)]
#[command(help_template = groups::help_template())]
#[command(max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// Flags of every command. Variables and the config file supply the values that no flag gives.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Config file [env: `JURAT_CONFIG`] [default: `jurat.toml` in the state folder, if present]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Folder with the store, the keys and the lock [env: `JURAT_STATE_DIR`] [default: ./.jurat]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_dir: Option<String>,
    /// Store: a file name in the state folder, a path, or postgres://… [env: `JURAT_STORE`]
    /// [default: that of the server running in the state folder, else `jurat.db`]
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Use this server instead of the one of the state folder [env: `JURAT_SERVER`]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Print the API's JSON body unchanged
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only data and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

impl Cli {
    /// The settings given on the command line.
    pub(crate) fn given(&self) -> CommandLineSettings<'_> {
        let mut own = vec![(&LOG_FORMAT, self.command.log_format())];
        if let CliCommand::Serve(args) = &self.command {
            own.push((&LISTEN, args.listen.as_deref()));
            own.push((&NODE_LISTEN, args.node_listen.as_deref()));
            own.push((&MIGRATE_URL, args.migrate_url.as_deref()));
        }
        let global = [
            (&STATE_DIR, self.global.state_dir.as_deref()),
            (&STORE, self.global.store.as_deref()),
            (&SERVER, self.global.server.as_deref()),
        ];
        let flags = global.into_iter().chain(own);
        CommandLineSettings {
            file: self.global.config.as_deref(),
            flags: flags.filter_map(|(setting, text)| Some((setting, text?))).collect(),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run the demo: five executors, two rounds and a verifier
    #[command(
        after_help = "Examples:\n  jurat demo\n  jurat demo --json\n\nOne executor lies and one never answers. The demo leaves nothing behind."
    )]
    Demo,
    /// Start the server
    Serve(ServeArgs),
    /// Start an executor: a test one, a local program or a model
    Runtime(RuntimeArgs),
    /// Register, list and check executors
    #[command(subcommand)]
    Executors(ExecutorsCommand),
    /// Add, list and remove sessions: named routes to executors
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Run a job on several executors and return their consensus
    Delegate(DelegateArgs),
    /// Have several executors judge a claim or an output
    Validate(ValidateArgs),
    /// Have several executors check whether a claim is true
    Factcheck(FactcheckArgs),
    /// List, show, cancel and erase rounds
    #[command(subcommand)]
    Rounds(RoundsCommand),
    /// Submit, follow and list tasks under a contract
    #[command(subcommand, visible_alias = "tasks")]
    Task(TasksCommand),
    /// List the events sent to executors, and send new ones
    #[command(subcommand)]
    AgentEvents(AgentEventsCommand),
    /// Send the events of the account to its own addresses
    #[command(subcommand)]
    Webhooks(WebhooksCommand),
    /// Submit, follow and work on runs of several agents
    #[command(subcommand)]
    Run(AgentRunsCommand),
    /// Export remembered decisions
    #[command(subcommand)]
    Knowledge(KnowledgeCommand),
    /// Deploy, run and measure verifiers: versioned checks by judges
    #[command(subcommand)]
    Verifiers(VerifiersCommand),
    /// Save, share and check workflows (runbooks)
    #[command(subcommand, visible_alias = "skills")]
    Workflows(WorkflowsCommand),
    /// Publish, read and fork templates: public workflows
    #[command(subcommand)]
    Templates(TemplatesCommand),
    /// Print instructions for an agent that designs a workflow
    #[command(after_help = "Examples:\n  jurat design\n  jurat design --json")]
    Design,
    /// Create, list, revoke and rotate API keys
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Register, log in and approve programs
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Show your account and change your handle
    #[command(subcommand)]
    Me(MeCommand),
    /// Create teams and manage their members
    #[command(subcommand)]
    Teams(TeamsCommand),
    /// List, accept and decline workflows shared with you
    #[command(subcommand)]
    Shares(SharesCommand),
    /// List, accept and decline invitations
    #[command(subcommand)]
    Invitations(InvitationsCommand),
    /// Show the account and the key in use
    #[command(after_help = "Examples:\n  jurat whoami\n  jurat whoami --json")]
    Whoami,
    /// Show the credit and the usage of your account
    #[command(after_help = "Examples:\n  jurat usage\n  jurat usage --json")]
    Usage,
    /// Grant credit, suspend accounts and list them
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Back up the store and the keys; the server can keep running
    Backup(BackupArgs),
    /// Restore a backup into a state folder without a store
    Restore(RestoreArgs),
    /// Serve MCP tools on standard input and output
    #[command(
        after_help = "Examples:\n  jurat mcp\n  jurat --server https://jurat.example.com mcp\n\nA Model Context Protocol client starts this command. It reads and writes one message per line until\nthe input ends. A running server has the same tools at /mcp."
    )]
    Mcp,
    /// Print the key of this node; trust other nodes and hire them
    Node(NodeArgs),
    /// Print the OpenAPI document of the HTTP API
    #[command(
        name = "openapi",
        after_help = "Examples:\n  jurat openapi > openapi.json\n\nA running server has the same document at /openapi.json, and a readable page at /docs."
    )]
    OpenApi,
    /// Delete expired replies, round texts and events
    Prune(PruneArgs),
    /// Diagnose the installation and suggest fixes
    Doctor(DoctorArgs),
    /// Show and check the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Explain the exit codes
    #[command(hide = true, about = EXIT_CODES, help_template = "{about}\n")]
    ExitCodes,
    /// List the settings and how to set them
    #[command(hide = true, about = topic(), help_template = "{about}\n")]
    Settings,
    /// Print a shell completion script
    #[command(
        after_help = "Examples:\n  jurat completions bash > ~/.local/share/bash-completion/completions/jurat\n  jurat completions zsh > ~/.zfunc/_jurat"
    )]
    Completions { shell: clap_complete::Shell },
}

impl CliCommand {
    /// Whether the command runs and logs until it is stopped.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Runtime(_) | Self::Run(AgentRunsCommand::Worker(_)))
    }

    /// The value of `--log-format`.
    pub(crate) fn log_format(&self) -> Option<&str> {
        if let Self::Serve(ServeArgs { log_format, .. })
        | Self::Runtime(RuntimeArgs { log_format, .. }) = self
        {
            return log_format.as_deref();
        }
        if let Self::Run(AgentRunsCommand::Worker(worker)) = self {
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
