//! `jurat backup` and `jurat restore`.

pub(crate) mod args;

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use jurat_engine::{Clock as _, SystemClock};
use jurat_store::{
    StoreLocation,
    backup::{self, BackupError, BackupProgress, BackupSource, Manifest, RestoreTarget},
};
use jurat_wire::api::kit::time;
use serde_json::json;

use super::CommandContext;
use crate::{
    args::{BackupArgs, BackupCommand, RestoreArgs},
    config::StoreChoice,
    failure::CliFailure,
    output::{OutputFormat, backup_progress::BackupBar, counted, table::fields},
    signals::ShutdownSignals,
    state::{StateError, StateFolder, store_name},
};

const IN_POSTGRESQL: &str = "PostgreSQL";

pub(super) async fn run(context: &CommandContext, args: BackupArgs) -> anyhow::Result<u8> {
    match (args.command, args.folder) {
        (Some(BackupCommand::Verify { folder }), _) => verify(context, folder).await,
        (None, Some(folder)) => write(context, folder).await,
        (None, None) => Err(CliFailure::usage("name the folder to write the backup to")),
    }
}

async fn write(context: &CommandContext, folder: PathBuf) -> anyhow::Result<u8> {
    local_only(context)?;
    let state_dir = context.config.state_dir.clone();
    let database = database_of_server(context)?;
    let to = folder.clone();
    let manifest = aside(context, move |watch| {
        let created_at = time::text(SystemClock.now());
        let source = BackupSource {
            database: &database,
            keys: &state_dir,
            program_version: env!("CARGO_PKG_VERSION"),
            created_at: &created_at,
        };
        backup::write(source, &to, watch)
    })
    .await?;
    said(context, &folder, &manifest, "backup")?;
    context.out.note(
        "the backup contains the keys of the node and the operator: protect it as you protect them",
    );
    Ok(0)
}

async fn verify(context: &CommandContext, folder: PathBuf) -> anyhow::Result<u8> {
    let from = folder.clone();
    let verified = aside(context, move |watch| backup::verify(&from, watch)).await?;
    said(context, &folder, &verified.manifest, "whole")?;
    Ok(0)
}

pub(super) async fn restore(context: &CommandContext, args: RestoreArgs) -> anyhow::Result<u8> {
    local_only(context)?;
    let database = match &context.config.store {
        StoreLocation::File(path) => path.clone(),
        StoreLocation::Memory | StoreLocation::Postgres { .. } => {
            return Err(not_for("restore", "pg_restore"));
        }
    };
    let state = StateFolder::open_saying(&context.config.state_dir, context.out)?;
    let dir = context.config.state_dir.clone();
    // Reported before the checks, which may take long.
    if let Some(server) = state.server() {
        return Err(StateError::Served { path: dir, pid: server.pid, url: server.url }.into());
    }
    backup::check_free(RestoreTarget { database: &database, keys: &dir })?;
    let location = context.config.store.clone();
    let from = args.folder.clone();
    let restored = aside(context, move |watch| {
        let verified = backup::verify(&from, watch)?;
        let lock = match state.lock(&location) {
            Ok(lock) => lock,
            Err(error) => return Ok(Err(error)),
        };
        verified.restore(RestoreTarget { database: &database, keys: &dir }, watch)?;
        drop(lock);
        Ok(Ok(verified.manifest))
    });
    let manifest = restored.await??;
    said(context, &args.folder, &manifest, "restored")?;
    for line in at_risk(&manifest) {
        context.out.note(&line);
    }
    Ok(0)
}

/// Warnings about lost data and repeated effects.
fn at_risk(manifest: &Manifest) -> Vec<String> {
    let moment = &manifest.created_at;
    let mut lines = vec![
        format!(
            "data loss: everything written after {moment} is missing, such as rounds, executors, sessions and keys, and keys revoked since then are valid again"
        ),
        format!(
            "duplicates: a retried request whose Idempotency-Key was first used after {moment} runs again"
        ),
    ];
    if 0 < manifest.open_rounds {
        lines.push(format!(
            "the next start of `jurat serve` marks {} as expired, which {} in progress",
            counted(manifest.open_rounds, "round"),
            were(manifest.open_rounds)
        ));
    }
    lines
}

const fn were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// Refuses a server address, because these commands work on local files.
fn local_only(context: &CommandContext) -> anyhow::Result<()> {
    if context.config.server.is_none() {
        return Ok(());
    }
    Err(CliFailure::usage(
        "backups use the files of a state folder, not a server; leave out `--server` and JURAT_SERVER, and run the command on the server's machine",
    ))
}

/// The database file of the running server, or the configured one if no server runs or the user
/// named a store.
fn database_of_server(context: &CommandContext) -> anyhow::Result<PathBuf> {
    let config = &context.config;
    if let Some(server) = StateFolder::existing(&config.state_dir).server()
        && config.store_chosen == StoreChoice::ByDefault
    {
        let postgres = StoreLocation::Postgres { url: String::new(), migrate_url: None };
        if server.store == store_name(&postgres) {
            return Err(not_for("backup", "pg_dump"));
        }
        return Ok(PathBuf::from(server.store));
    }
    match &config.store {
        StoreLocation::File(path) => Ok(path.clone()),
        StoreLocation::Memory | StoreLocation::Postgres { .. } => Err(not_for("backup", "pg_dump")),
    }
}

fn not_for(command: &str, tool: &str) -> anyhow::Error {
    CliFailure::usage(format!(
        "`jurat {command}` is for SQLite stores, and this one is in {IN_POSTGRESQL}; use {tool} as docs/guide/backup.md shows, and copy `node.key` and `admin.key` from the state folder"
    ))
}

/// Does the work on its own thread, shows its progress, and stops it on a signal.
async fn aside<T: Send + 'static>(
    context: &CommandContext,
    work: impl FnOnce(backup::BackupWatcher<'_>) -> Result<T, BackupError> + Send + 'static,
) -> anyhow::Result<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = ShutdownSignals::listen()?;
    let mut steps = BackupBar::new(context.out);
    let asked = Arc::clone(&stop);
    let mut working = tokio::task::spawn_blocking(move || {
        let done = work(&mut |progress: BackupProgress| {
            steps.show(progress);
            if asked.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        steps.finish();
        done
    });
    let done = tokio::select! {
        done = &mut working => done,
        () = signals.next() => {
            stop.store(true, Ordering::Relaxed);
            working.await
        }
    };
    Ok(done??)
}

fn said(
    context: &CommandContext,
    folder: &Path,
    manifest: &Manifest,
    word: &str,
) -> anyhow::Result<()> {
    match context.out.format {
        OutputFormat::Json => {
            let body = json!({ "status": word, "folder": folder, "manifest": manifest });
            context.out.data(&body.to_string())?;
        }
        OutputFormat::Text => {
            let label = if word == "whole" { "verified" } else { word };
            let newest = manifest.newest_round_id.clone().unwrap_or_else(|| "–".to_owned());
            context.out.data(&fields(&[
                (label, folder.display().to_string()),
                ("taken", manifest.created_at.clone()),
                ("version", manifest.program_version.clone()),
                ("schema", manifest.schema_version.to_string()),
                (
                    "rounds",
                    format!(
                        "{}, of which {} {} open",
                        manifest.rounds,
                        manifest.open_rounds,
                        were(manifest.open_rounds)
                    ),
                ),
                ("newest", newest),
                ("entries", manifest.entries.to_string()),
                ("size", indicatif::HumanBytes(manifest.size_bytes()).to_string()),
            ]))?;
        }
    }
    Ok(())
}
