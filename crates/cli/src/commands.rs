//! The commands. Each builds a call, sends it, and prints the reply.

pub(crate) mod account;
pub(crate) mod agent_events;
pub(crate) mod agent_runs;
mod auth;
pub(crate) mod backup;
pub(crate) mod config;
pub(crate) mod consensus;
mod demo;
pub(crate) mod doctor;
pub(crate) mod executors;
pub(crate) mod keys;
pub(crate) mod knowledge;
mod mcp;
pub(crate) mod node;
pub(crate) mod people;
pub(crate) mod prune;
pub(crate) mod rounds;
mod runtime;
pub(crate) mod serve;
mod sessions;
mod shared;
pub(crate) mod tasks;
pub(crate) mod templates;
pub(crate) mod verifiers;
pub(crate) mod webhooks;
pub(crate) mod workflows;

use clap::CommandFactory as _;
use jurat_core::account::full_name;
use jurat_wire::api::kit::time::Time;
use serde::de::DeserializeOwned;

pub(crate) use self::consensus::ask;
use crate::{
    args::{Cli, CliCommand, ConfigCommand, EXIT_CODES},
    client::{ApiClient, Call, Reply},
    config::CliConfig,
    failure::{self, PrintedUnread, sentence},
    logging,
    output::{Output, OutputFormat},
    settings,
};

#[derive(Clone)]
pub(crate) struct CommandContext {
    pub(crate) config: CliConfig,
    pub(crate) out: Output,
}

/// Runs a command that needs no settings, so it works even if the settings are wrong.
pub(crate) fn without_settings(out: Output, command: &CliCommand) -> Option<anyhow::Result<u8>> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a new command needs settings")]
    let text = match command {
        CliCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "jurat", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
        CliCommand::ExitCodes => EXIT_CODES.to_owned(),
        CliCommand::Settings => settings::topic(),
        CliCommand::OpenApi => jurat_server::openapi().to_owned(),
        CliCommand::Config(ConfigCommand::Example) => settings::example(),
        CliCommand::Config(ConfigCommand::Check { file: Some(file) }) => {
            return Some(config::check_file(out, file));
        }
        _ => return None,
    };
    Some(out.data(&text).map(|()| 0).map_err(Into::into))
}

/// Runs a command and returns its exit code.
pub(crate) async fn run(context: &CommandContext, command: CliCommand) -> anyhow::Result<u8> {
    if !command.is_server() {
        logging::start(&context.config, logging::OF_A_COMMAND)?;
    }
    match command {
        CliCommand::Demo => Box::pin(demo::run(context)).await,
        CliCommand::Serve(args) => Box::pin(serve::run(context, &args)).await,
        CliCommand::Runtime(args) => Box::pin(runtime::run(context, args)).await,
        CliCommand::Executors(command) => Box::pin(executors::run(context, command)).await,
        CliCommand::Sessions(command) => Box::pin(sessions::run(context, command)).await,
        CliCommand::Delegate(args) => Box::pin(consensus::delegate(context, &args)).await,
        CliCommand::Validate(args) => Box::pin(consensus::validate(context, &args)).await,
        CliCommand::Factcheck(args) => Box::pin(consensus::factcheck(context, &args)).await,
        CliCommand::Task(command) => Box::pin(tasks::run(context, command)).await,
        CliCommand::AgentEvents(command) => Box::pin(agent_events::run(context, command)).await,
        CliCommand::Webhooks(command) => Box::pin(webhooks::run(context, command)).await,
        CliCommand::Run(command) => Box::pin(agent_runs::run(context, command)).await,
        CliCommand::Knowledge(command) => Box::pin(knowledge::run(context, command)).await,
        CliCommand::Rounds(command) => Box::pin(rounds::run(context, command)).await,
        CliCommand::Verifiers(command) => Box::pin(verifiers::run(context, command)).await,
        CliCommand::Templates(command) => Box::pin(templates::run(context, command)).await,
        CliCommand::Design => {
            Box::pin(templates::instructions(context, jurat_client::templates::design())).await
        }
        CliCommand::Workflows(command) => Box::pin(workflows::run(context, command)).await,
        CliCommand::Auth(command) => Box::pin(auth::run(context, command)).await,
        CliCommand::Me(command) => Box::pin(people::run_me(context, command)).await,
        CliCommand::Teams(command) => Box::pin(people::run_teams(context, command)).await,
        CliCommand::Shares(command) => Box::pin(people::run_shares(context, command)).await,
        CliCommand::Invitations(command) => {
            Box::pin(people::run_invitations(context, command)).await
        }
        CliCommand::Whoami => Box::pin(account::whoami(context)).await,
        CliCommand::Usage => Box::pin(account::usage(context)).await,
        CliCommand::Admin(command) => Box::pin(account::admin(context, command)).await,
        CliCommand::Keys(command) => Box::pin(keys::run(context, command)).await,
        CliCommand::Backup(args) => Box::pin(backup::run(context, args)).await,
        CliCommand::Restore(args) => Box::pin(backup::restore(context, args)).await,
        CliCommand::Mcp => Box::pin(mcp::run(context)).await,
        CliCommand::Node(args) => Box::pin(node::run(context, args.command)).await,
        CliCommand::Prune(args) => Box::pin(prune::run(context, &args)).await,
        CliCommand::Doctor(args) => Box::pin(doctor::run(context, &args)).await,
        CliCommand::Config(ConfigCommand::Check { .. }) => config::checked(context),
        CliCommand::Config(ConfigCommand::Show) => config::show(context),
        CliCommand::Config(ConfigCommand::Example)
        | CliCommand::ExitCodes
        | CliCommand::Settings
        | CliCommand::OpenApi
        | CliCommand::Completions { .. } => Ok(0),
    }
}

impl CommandContext {
    /// Sends one call and returns its reply.
    async fn send<R: DeserializeOwned>(&self, call: Call<R>) -> anyhow::Result<Reply<R>> {
        let is_read = call.is_read();
        let reply = self.send_to_decide(call).await;
        if is_read { self.or_print_unread(reply) } else { reply }
    }

    /// Sends one call whose reply decides the exit code, so that an unread reply is a failure.
    async fn send_to_decide<R: DeserializeOwned>(&self, call: Call<R>) -> anyhow::Result<Reply<R>> {
        self.with_client(async |client| Ok(client.send(call).await?)).await
    }

    /// With `--json`, prints a reply that this version cannot read. For a command that only shows
    /// the reply, nothing else is left to do.
    fn or_print_unread<T>(&self, reply: anyhow::Result<T>) -> anyhow::Result<T> {
        let error = match reply {
            Err(error) if self.out.format == OutputFormat::Json => error,
            Ok(_) | Err(_) => return reply,
        };
        let Some(bytes) = failure::unread_body(&error) else { return Err(error) };
        self.out.warn(&sentence(&error));
        self.out.body(bytes, |_| String::new())?;
        Err(PrintedUnread.into())
    }

    /// Sends one call without a key and returns its reply.
    async fn send_anonymously<R: DeserializeOwned>(
        &self,
        call: Call<R>,
    ) -> anyhow::Result<Reply<R>> {
        let mut client = Box::pin(ApiClient::connect(&self.config, self.out)).await?;
        client.forget_key();
        let reply = client.send(call).await;
        client.close().await;
        Ok(reply?)
    }

    /// Makes calls with one client, and closes it afterwards.
    async fn with_client<T>(
        &self,
        ask: impl AsyncFnOnce(&ApiClient) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let client = Box::pin(ApiClient::connect(&self.config, self.out)).await?;
        let result = ask(&client).await;
        client.close().await;
        result
    }
}

/// The name of a list entry, with its owner unless the caller owns it.
fn called(owner: Option<&str>, name: &str) -> String {
    owner.map_or_else(|| name.to_owned(), |owner| full_name(owner, name))
}

/// A time in UTC for people, to the second.
fn to_the_second(time: Time) -> String {
    let text = jurat_wire::api::kit::time::text(time.0);
    let (day, clock) = text.split_once('T').unwrap_or((&text, ""));
    format!("{day} {}", clock.split(['.', 'Z']).next().unwrap_or_default())
}
