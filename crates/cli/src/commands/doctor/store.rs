//! Checks from outside whether the store exists, because opening the store would create it.

use std::{
    fs::Metadata,
    io::ErrorKind,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use jurat_core::checkup::CheckupFinding;
use jurat_store::StoreLocation;

use crate::{
    config::CliConfig,
    state::{ADMIN_KEY, NODE_KEY, ServerFile, StateError, StateFolder},
};

const GONE: &str = "Restore it from a backup, or name the right one with `--store`; starting the server now would create an empty one.";
const STOP: &str = "Everything that the server writes now is lost when it stops. Stop it, put the file back or restore a backup, and start it again.";

/// Whether the store is a file that exists and is not blank.
pub(super) fn is_there(store: &StoreLocation) -> bool {
    match store {
        StoreLocation::File(path) => path.exists() && !jurat_store::is_blank(path),
        StoreLocation::Memory | StoreLocation::Postgres { .. } => false,
    }
}

/// The reason not to open the store, if any: a check-up creates neither a store nor a key.
pub(super) fn unopened(config: &CliConfig) -> Option<CheckupFinding> {
    let state = StateFolder::existing(&config.state_dir);
    if config.server.is_some() || state.server().is_some() {
        return None;
    }
    let has = |name: &&str| Path::new(&config.state_dir).join(name).exists();
    if let StoreLocation::File(path) = &config.store
        && !is_there(&config.store)
    {
        return Some(absent(path, [ADMIN_KEY, NODE_KEY].iter().any(has)));
    }
    if let Some(missing) = [ADMIN_KEY, NODE_KEY].into_iter().find(|name| !has(name)) {
        return Some(CheckupFinding::warning(
            "store",
            format!("the store was not checked, because that would create a new `{missing}`"),
            "Put the file back, or start `jurat serve` to create one, and run this command again.",
        ));
    }
    let damaged = match (state.existing_admin_key(), state.existing_node_key()) {
        (Err(StateError::NothingToSend { .. }), _) => ADMIN_KEY,
        (_, Err(StateError::NodeKey { .. })) => NODE_KEY,
        _ => return None,
    };
    Some(CheckupFinding::warning(
        "store",
        format!("the store was not checked, because `{damaged}` does not contain a key"),
        "Fix the key first, and run this command again.",
    ))
}

fn absent(path: &Path, has_keys: bool) -> CheckupFinding {
    if has_keys {
        let name = path.display();
        let text = format!("the store `{name}` is missing or empty, but there are keys");
        return CheckupFinding::problem("store", text, GONE);
    }
    let text = "there is no store yet, so nothing to check";
    let advice = "The first start of `jurat serve` creates it; `--store` names another.";
    CheckupFinding::warning("store", text, advice)
}

/// The problem, if the file of the store is no longer the one that the server has open.
pub(super) fn of_server(server: &ServerFile) -> Option<CheckupFinding> {
    let path = PathBuf::from(&server.store);
    // The name of any other kind of store is not a path.
    if !path.is_absolute() {
        return None;
    }
    let (name, pid) = (path.display(), server.pid);
    let found = match std::fs::metadata(&path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let text = format!(
                "`{name}` is missing, and the server with pid {pid} writes to a deleted file"
            );
            return Some(CheckupFinding::problem("store", text, STOP));
        }
        Err(error) => {
            let text = format!("cannot read `{name}`: {error}");
            return Some(CheckupFinding::problem(
                "store",
                text,
                "Run this command as the server's user.",
            ));
        }
    };
    let open = open_files(pid)?;
    let is_open = open.iter().any(|file| (file.dev(), file.ino()) == (found.dev(), found.ino()));
    if is_open {
        return None;
    }
    let text = format!("`{name}` is not the file that the server with pid {pid} uses");
    Some(CheckupFinding::problem("store", text, STOP))
}

/// Metadata of the open files of a process, if the system reports them.
fn open_files(pid: u32) -> Option<Vec<Metadata>> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let open: Vec<Metadata> =
        entries.flatten().filter_map(|entry| std::fs::metadata(entry.path()).ok()).collect();
    if open.is_empty() { None } else { Some(open) }
}
