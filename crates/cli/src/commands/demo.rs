//! `jurat demo`: five executors, a server, two rounds and a verifier, in one process that leaves
//! nothing behind.

mod verifier;

use std::sync::Arc;

use anyhow::Context as _;
use console::Style;
use jurat_client::{executors, rounds as api_rounds};
use jurat_engine::{AccountSettings, EngineLimits, JudgesConfig, SoleNode, WebhookSettings};
use jurat_runtime::{
    ExecutorOptions,
    engines::{EchoExecutor, EchoMode},
};
use jurat_server::ServerOptions;
use jurat_store::StoreLocation;
use jurat_wire::api::{
    consensus_request::{
        DelegateDraft, ExecutionDraft, JobFieldsDraft, RoundFieldsDraft, ValidateDraft,
    },
    executors::AddExecutorDraft,
    kit::terms::ConsensusTermsDraft,
    openai::profile::built_in,
};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};

use super::{
    CommandContext, ask,
    rounds::show::{self, RoundView},
};
use crate::{
    client::ApiClient,
    config,
    node::{self, EngineSettings},
    output::{Output, OutputFormat},
    state::StateFolder,
};

/// Name, provider, model and behaviour. Different providers count as independent votes.
const CAST: [(&str, &str, &str, EchoMode); 5] = [
    ("honest-1", "acorn", "acorn-1", EchoMode::Honest),
    ("honest-2", "birch", "birch-2", EchoMode::Honest),
    ("honest-3", "cedar", "cedar-3", EchoMode::Honest),
    ("liar", "dogwood", "dogwood-4", EchoMode::Lie),
    ("sleeper", "elm", "elm-5", EchoMode::Hang),
];

/// The sleeper never answers, so this is how long the first round takes.
const TIMEOUT_MS: u64 = 2_000;
const LOOPBACK: &str = "127.0.0.1:0";

pub(crate) async fn run(context: &CommandContext) -> anyhow::Result<u8> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut tasks = JoinSet::new();
    let result = play(context.out, folder.path(), &mut tasks).await;
    tasks.shutdown().await;
    folder.close().context("the temporary folder could not be removed")?;
    result
}

async fn play(
    out: Output,
    folder: &std::path::Path,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<u8> {
    let state = StateFolder::open(folder)?;
    let store = StoreLocation::File(folder.join("demo.db"));
    let settings = EngineSettings {
        limits: EngineLimits::default(),
        judges: JudgesConfig::default(),
        accounts: AccountSettings::default(),
        profiles: built_in(),
        webhooks: WebhookSettings::default(),
        payments: None,
        peers: None,
    };
    let engine = Box::pin(node::engine(&state, &store, settings)).await?;
    engine.start(SoleNode::Yes).await?;
    let listener = TcpListener::bind(LOOPBACK).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let server = jurat_server::serve(
        listener,
        engine.clone(),
        ServerOptions::default(),
        std::future::pending(),
    );
    tasks.spawn(async { drop(server.await) });

    let client = ApiClient::http(&url, &state.admin_key()?.reveal())?;
    out.note("Starting five executors: three honest, one that lies, one that never answers.");
    register(&client, tasks).await?;
    let result = rounds(out, &client).await;
    engine.shutdown().await;
    result
}

/// Starts the executors and registers them over HTTP, as a user would.
async fn register(client: &ApiClient, tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
    for (name, family, model, mode) in CAST {
        let listener = TcpListener::bind(LOOPBACK).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let executor = Arc::new(EchoExecutor::new(family, model, mode));
        let never = std::future::pending();
        let serving = jurat_runtime::serve(listener, executor, ExecutorOptions::default(), never);
        tasks.spawn(async { drop(serving.await) });
        let executor =
            AddExecutorDraft { name: name.to_owned(), url, ..AddExecutorDraft::default() };
        client.send(executors::add(&executor)).await?;
    }
    Ok(())
}

async fn rounds(out: Output, client: &ApiClient) -> anyhow::Result<u8> {
    let timeout_ms = Some(TIMEOUT_MS);
    let execution = Some(ExecutionDraft { timeout_ms, ..ExecutionDraft::default() });
    let validate = ValidateDraft {
        claim: json!("12 * 12 = 144"),
        job: JobFieldsDraft { execution, ..JobFieldsDraft::default() },
        round: terms(5, None),
        ..ValidateDraft::default()
    };
    let pool = ["honest-1", "honest-2", "liar"].map(str::to_owned);
    let delegate = DelegateDraft {
        objective: "Say what a jurat is".to_owned(),
        round: terms(3, Some(pool.into())),
        ..DelegateDraft::default()
    };
    title(out, "\n1. Is it true that 12 * 12 = 144?  (validate, five replicas)")?;
    let first = ask(client, out, api_rounds::validate(&validate)).await?;
    show(out, &RoundView::from(&first.value))?;
    title(out, "\n2. Say what a jurat is.  (delegate, three replicas, one of them the liar)")?;
    let second = ask(client, out, api_rounds::delegate(&delegate)).await?;
    show(out, &RoundView::from(&second.value))?;
    let verifier = verifier::play(out, client).await?;
    match out.format {
        OutputFormat::Text => out.data(&next(&config::program()))?,
        OutputFormat::Json => {
            let (first, second) = (first.document(), second.document());
            let body = json!({ "validate": first, "delegate": second, "verifier": verifier });
            out.data(&body.to_string())?;
        }
    }
    Ok(0)
}

fn terms(replicas: u64, session_pool: Option<Vec<String>>) -> RoundFieldsDraft {
    let replicas = Some(replicas);
    let consensus =
        ConsensusTermsDraft { replicas, session_pool, ..ConsensusTermsDraft::default() };
    RoundFieldsDraft { consensus: Some(consensus), session_id: None }
}

/// The commands to try next. They call the program as it was started, because it may not be on the
/// `PATH`.
fn next(program: &str) -> String {
    format!(
        "
Try it yourself:
  {program} serve
  {program} runtime --listen 127.0.0.1:8787 --engine echo --model-id one
  {program} runtime --listen 127.0.0.1:8788 --engine echo --model-id two
  {program} runtime --listen 127.0.0.1:8789 --engine echo --model-id three --mode lie
  {program} executors add one http://127.0.0.1:8787
  {program} executors add two http://127.0.0.1:8788
  {program} executors add three http://127.0.0.1:8789
  {program} validate --claim '12 * 12 = 144' --replicas 3
  {program} validate --help

How to write your own executor: docs/guide/executors.md
How to write a verifier: docs/guide/verifiers.md"
    )
}

fn title(out: Output, text: &str) -> std::io::Result<()> {
    match out.format {
        OutputFormat::Text => out.text(&out.paint(text, &Style::new().bold())),
        OutputFormat::Json => Ok(()),
    }
}

fn show(out: Output, round: &RoundView<'_>) -> std::io::Result<()> {
    match out.format {
        OutputFormat::Text => out.text(&show::reply(out, round)),
        OutputFormat::Json => Ok(()),
    }
}
