//! The commands. Each makes a request, sends it, and prints what came.

mod consensus;
mod executors;
mod gate;
mod node;
mod request;
mod rounds;
mod runtime;
mod serve;
mod sessions;

use clap::CommandFactory as _;
use serde_json::Value;

pub(crate) use self::consensus::ask;
use crate::{
    args::{Cli, Command, LogFormat},
    client::{Call, Client, Reply},
    config::Config,
    demo, logging,
    output::Output,
};

#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) out: Output,
}

/// Runs a command and returns its exit code.
pub(crate) async fn run(context: &Context, command: Command) -> anyhow::Result<u8> {
    if !matches!(command, Command::Serve(_) | Command::Runtime(_) | Command::Completions { .. }) {
        logging::start(&context.config, logging::OF_A_COMMAND, LogFormat::Text)?;
    }
    match command {
        Command::Demo => Box::pin(demo::run(context)).await,
        Command::Serve(args) => Box::pin(serve::run(context, args)).await,
        Command::Runtime(args) => Box::pin(runtime::run(context, args)).await,
        Command::Executors(command) => Box::pin(executors::run(context, command)).await,
        Command::Sessions(command) => Box::pin(sessions::run(context, command)).await,
        Command::Delegate(args) => Box::pin(consensus::delegate(context, &args)).await,
        Command::Validate(args) => Box::pin(consensus::validate(context, &args)).await,
        Command::Factcheck(args) => Box::pin(consensus::factcheck(context, &args)).await,
        Command::Rounds(command) => Box::pin(rounds::run(context, command)).await,
        Command::Node => node::run(context),
        Command::OpenApi => {
            context.out.data(jurat_server::openapi().trim_end())?;
            Ok(0)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "jurat", &mut script);
            context.out.data(&String::from_utf8_lossy(&script))?;
            Ok(0)
        }
    }
}

impl Context {
    /// Sends one request and returns the reply, unless it is a problem.
    async fn send(&self, call: Call) -> anyhow::Result<Reply> {
        let client = Box::pin(Client::connect(&self.config, self.out)).await?;
        let reply = client.send(call).await;
        client.close().await;
        Ok(reply?.well()?)
    }

    /// Says how to see more of a list, or how to begin one.
    fn note_page(&self, body: &Value, when_empty: &str) {
        if body["items"].as_array().is_none_or(Vec::is_empty) {
            self.out.note(when_empty);
        }
        if let Some(cursor) = body["next_cursor"].as_str() {
            self.out.note(&format!("there are more: go on with `--cursor {cursor}`"));
        }
    }
}

/// The items of a page.
fn items(body: &Value) -> &[Value] {
    body["items"].as_array().map_or(&[], Vec::as_slice)
}
