//! The commands. Each makes a request, sends it, and prints what came.

mod account;
mod agent_events;
mod auth;
mod backup;
mod config;
mod confirm;
mod consensus;
mod doctor;
mod executors;
mod gate;
mod input;
mod junit;
mod keys;
mod knowledge;
mod mcp;
mod node;
mod pages;
mod people;
mod prune;
mod request;
mod rounds;
mod runs;
mod runtime;
mod serve;
mod sessions;
mod tasks;
mod templates;
mod verifiers;
mod workflows;

use clap::CommandFactory as _;
use jurat_core::account::full_name;
use serde_json::Value;

pub(crate) use self::consensus::ask;
use crate::{
    args::{Cli, Command, ConfigCommand, EXIT_CODES},
    client::{Call, Client, Reply},
    config::Config,
    demo, logging,
    output::Output,
    settings,
};

#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) out: Output,
}

/// Does what needs no settings, and so works however wrong they are.
pub(crate) fn without_settings(out: Output, command: &Command) -> Option<anyhow::Result<u8>> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a new command needs settings")]
    let text = match command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "jurat", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
        Command::ExitCodes => EXIT_CODES.to_owned(),
        Command::Settings => settings::topic(),
        Command::OpenApi => jurat_server::openapi().to_owned(),
        Command::Config(ConfigCommand::Example) => settings::example(),
        Command::Config(ConfigCommand::Check { file: Some(file) }) => {
            return Some(config::check_file(out, file));
        }
        _ => return None,
    };
    Some(out.data(&text).map(|()| 0).map_err(Into::into))
}

/// Runs a command and returns its exit code.
pub(crate) async fn run(context: &Context, command: Command) -> anyhow::Result<u8> {
    if !command.is_server() {
        logging::start(&context.config, logging::OF_A_COMMAND)?;
    }
    match command {
        Command::Demo => Box::pin(demo::run(context)).await,
        Command::Serve(args) => Box::pin(serve::run(context, &args)).await,
        Command::Runtime(args) => Box::pin(runtime::run(context, args)).await,
        Command::Executors(command) => Box::pin(executors::run(context, command)).await,
        Command::Sessions(command) => Box::pin(sessions::run(context, command)).await,
        Command::Delegate(args) => Box::pin(consensus::delegate(context, &args)).await,
        Command::Validate(args) => Box::pin(consensus::validate(context, &args)).await,
        Command::Factcheck(args) => Box::pin(consensus::factcheck(context, &args)).await,
        Command::Task(command) => Box::pin(tasks::run(context, command)).await,
        Command::AgentEvents(command) => Box::pin(agent_events::run(context, command)).await,
        Command::Run(command) => Box::pin(runs::run(context, command)).await,
        Command::Knowledge(command) => Box::pin(knowledge::run(context, command)).await,
        Command::Rounds(command) => Box::pin(rounds::run(context, command)).await,
        Command::Verifiers(command) => Box::pin(verifiers::run(context, command)).await,
        Command::Templates(command) => Box::pin(templates::run(context, command)).await,
        Command::Design => {
            let call = Call::get("/v1/design/workflow-prompt".to_owned());
            Box::pin(templates::instructions(context, call)).await
        }
        Command::Workflows(command) => Box::pin(workflows::run(context, command)).await,
        Command::Auth(command) => Box::pin(auth::run(context, command)).await,
        Command::Me(command) => Box::pin(people::me(context, command)).await,
        Command::Teams(command) => Box::pin(people::teams(context, command)).await,
        Command::Shares(command) => Box::pin(people::shares(context, command)).await,
        Command::Invitations(command) => Box::pin(people::invitations(context, command)).await,
        Command::Whoami => Box::pin(account::whoami(context)).await,
        Command::Usage => Box::pin(account::usage(context)).await,
        Command::Admin(command) => Box::pin(account::admin(context, command)).await,
        Command::Keys(command) => Box::pin(keys::run(context, command)).await,
        Command::Backup(args) => Box::pin(backup::run(context, args)).await,
        Command::Restore(args) => Box::pin(backup::restore(context, args)).await,
        Command::Mcp => Box::pin(mcp::run(context)).await,
        Command::Node => node::run(context),
        Command::Prune(args) => Box::pin(prune::run(context, &args)).await,
        Command::Doctor(args) => Box::pin(doctor::run(context, &args)).await,
        Command::Config(ConfigCommand::Check { .. }) => config::checked(context),
        Command::Config(ConfigCommand::Show) => config::show(context),
        Command::Config(ConfigCommand::Example)
        | Command::ExitCodes
        | Command::Settings
        | Command::OpenApi
        | Command::Completions { .. } => Ok(0),
    }
}

impl Context {
    /// Sends one request and returns the reply, unless it is a problem.
    async fn send(&self, call: Call) -> anyhow::Result<Reply> {
        self.with_client(async |client| Ok(client.send(call).await?.well()?)).await
    }

    /// The same without a key.
    async fn send_anonymously(&self, call: Call) -> anyhow::Result<Reply> {
        let mut client = Box::pin(Client::connect(&self.config, self.out)).await?;
        client.forget_key();
        let reply = client.send(call).await;
        client.close().await;
        Ok(reply?.well()?)
    }

    /// Does something with one client, and lets go of it afterwards.
    async fn with_client<T>(
        &self,
        ask: impl AsyncFnOnce(&Client) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let client = Box::pin(Client::connect(&self.config, self.out)).await?;
        let result = ask(&client).await;
        client.close().await;
        result
    }
}

/// The items of a page.
/// What a thing in a list is called: a bare name would mean one's own.
fn called(item: &Value, field: &str) -> Value {
    match (item["owner"].as_str(), item[field].as_str()) {
        (Some(owner), Some(name)) => Value::String(full_name(owner, name)),
        _ => item[field].clone(),
    }
}

fn items(body: &Value) -> &[Value] {
    body["items"].as_array().map_or(&[], Vec::as_slice)
}
