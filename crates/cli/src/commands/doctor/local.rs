//! What is checked on this machine: the settings, the state folder, the keys and the room there is.

use std::path::Path;

use jurat_core::checkup::Finding;
use jurat_store::Location;

use super::{
    disk,
    files::{Holds, access},
    or_well,
};
use crate::{
    config::Config,
    settings::{Origin, Privacy},
    state::{ADMIN_KEY, NODE_KEY, State, StateError},
};

/// They were read without a fault, or this would not run.
pub(super) fn settings(config: &Config) -> Vec<Finding> {
    let Some(file) = config.settings.file() else {
        return vec![Finding::ok("settings", "there is no file with settings")];
    };
    let is_secret = config.settings.iter().any(|it| {
        let from_file = matches!(it.origin, Origin::File { .. });
        let value = it.value.as_deref().unwrap_or_default();
        from_file && it.setting.privacy != Privacy::Open && it.setting.shown(value) != value
    });
    let found = access("settings", file, if is_secret { Holds::Secret } else { Holds::Public });
    or_well(found, "settings", format!("`{}` is in order", file.display()))
}

pub(super) fn machine(config: &Config) -> Vec<Finding> {
    let folder = &config.state_dir;
    if !folder.exists() {
        return vec![Finding::warning(
            "state",
            format!("there is no folder `{}` yet", folder.display()),
            "The first start of `jurat serve` makes it; `--state-dir` names another.",
        )];
    }
    let mut findings = Vec::new();
    let mut found = access("state", folder, Holds::Data);
    if let Location::File(store) = &config.store {
        found.extend(access("state", store, Holds::Data));
    }
    let text = format!("`{}` and the store in it are for their owner only", folder.display());
    findings.extend(or_well(found, "state", text));
    findings.extend(keys(config));
    findings.extend(disk::space(folder));
    if let Location::File(store) = &config.store
        && let Some(other) = store.parent().filter(|it| *it != folder && it.is_dir())
    {
        findings.extend(disk::space(other));
    }
    let server = State::existing(folder).server().map(|server| server.pid);
    let connections = u64::try_from(config.inbound.max_connections).unwrap_or(u64::MAX);
    findings.push(disk::open_files(server, connections));
    findings
}

fn keys(config: &Config) -> Vec<Finding> {
    let folder = &config.state_dir;
    let mut found = Vec::new();
    for name in [ADMIN_KEY, NODE_KEY] {
        found.extend(access("keys", &folder.join(name), Holds::Secret));
    }
    let node = match State::existing(folder).existing_node_key() {
        Ok(key) => Finding::ok("keys", format!("the node signs with the key `{}`", key.id())),
        Err(StateError::NoNodeKey { path }) if has_store(&config.store) => Finding::problem(
            "keys",
            format!("there is no `{}`, and there was one", path.display()),
            "Put it back from a backup; the next start draws another, which executors do not know.",
        ),
        Err(StateError::NoNodeKey { path }) => Finding::warning(
            "keys",
            format!("there is no `{}` yet", path.display()),
            "The first start of `jurat serve` writes it.",
        ),
        Err(error) => Finding::problem("keys", error.to_string(), "Put it back from a backup."),
    };
    let mut findings = or_well(found, "keys", "the key files are for their owner only");
    findings.push(node);
    findings
}

/// Whether a store was used from here before.
fn has_store(store: &Location) -> bool {
    match store {
        Location::File(path) => path.exists(),
        Location::Memory | Location::Postgres { .. } => false,
    }
}

/// Why the store is not looked into: a check-up makes neither a store nor a key.
pub(super) fn unopened(config: &Config) -> Option<Finding> {
    let state = State::existing(&config.state_dir);
    if config.server.is_some() || state.server().is_some() {
        return None;
    }
    if matches!(&config.store, Location::File(path) if !path.exists()) {
        let text = "there is no store yet, and nothing in it to check";
        let advice = "The first start of `jurat serve` makes it; `--store` names another.";
        return Some(Finding::warning("store", text, advice));
    }
    let is_missing = |name: &&str| !Path::new(&config.state_dir).join(name).exists();
    let missing = [ADMIN_KEY, NODE_KEY].into_iter().find(is_missing)?;
    Some(Finding::warning(
        "store",
        format!("it was not looked into, because that would draw a new `{missing}`"),
        "Put the file back, or start `jurat serve` to draw one, and run this again.",
    ))
}
