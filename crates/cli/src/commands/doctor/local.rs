//! Checks this machine: the settings, the state folder, the keys and the free space.

use jurat_core::checkup::CheckupFinding;
use jurat_store::StoreLocation;

use super::{
    disk,
    files::{FileSensitivity, access},
    or_healthy, store,
};
use crate::{
    config::{CliConfig, unknown_variables},
    failure::sentence,
    settings::{SettingOrigin, SettingPrivacy},
    state::{ADMIN_KEY, NODE_KEY, NODE_KEY_ADVICE, StateError, StateFolder},
};

/// Checks the config file and the variables. Invalid settings stop the command before this.
pub(super) fn settings(config: &CliConfig) -> Vec<CheckupFinding> {
    let mut findings = file(config);
    let advice = "Correct its name, or remove it; `jurat help settings` lists all settings.";
    let unknown = unknown_variables().into_iter();
    findings.extend(unknown.map(|text| CheckupFinding::warning("settings", text, advice)));
    if let Some(account) = &config.peers.loopback_account {
        findings.push(CheckupFinding::warning(
            "loopback",
            format!("programs on this machine need no key and act for `{account}`"),
            "Remove `auth.loopback_account` unless every program and user of this machine may do so.",
        ));
    }
    findings
}

fn file(config: &CliConfig) -> Vec<CheckupFinding> {
    let Some(file) = config.settings.file() else {
        return vec![CheckupFinding::ok("settings", "there is no config file")];
    };
    let is_secret = config.settings.iter().any(|it| {
        let from_file = matches!(it.origin, SettingOrigin::File { .. });
        let value = it.value.as_deref().unwrap_or_default();
        from_file && it.setting.privacy != SettingPrivacy::Open && it.setting.shown(value) != value
    });
    let found = access(
        "settings",
        file,
        if is_secret { FileSensitivity::Secret } else { FileSensitivity::Public },
    );
    or_healthy(found, "settings", format!("`{}` is valid", file.display()))
}

pub(super) fn machine(config: &CliConfig) -> Vec<CheckupFinding> {
    let folder = &config.state_dir;
    if !folder.exists() {
        return vec![CheckupFinding::warning(
            "state",
            format!("the folder `{}` does not exist yet", folder.display()),
            "The first start of `jurat serve` creates it; `--state-dir` names another.",
        )];
    }
    let mut findings = Vec::new();
    let mut found = access("state", folder, FileSensitivity::Data);
    if let StoreLocation::File(store) = &config.store {
        found.extend(access("state", store, FileSensitivity::Data));
    }
    let text = format!("only the owner can access `{}` and its store", folder.display());
    findings.extend(or_healthy(found, "state", text));
    findings.extend(keys(config));
    findings.extend(disk::space(folder));
    if let StoreLocation::File(store) = &config.store
        && let Some(other) = store.parent().filter(|it| *it != folder && it.is_dir())
    {
        findings.extend(disk::space(other));
    }
    let server = StateFolder::existing(folder).server();
    findings.extend(server.as_ref().and_then(store::of_server));
    let server = server.map(|server| server.pid);
    let connections = u64::try_from(config.inbound.max_connections).unwrap_or(u64::MAX);
    findings.push(disk::open_files(server, connections));
    findings
}

fn keys(config: &CliConfig) -> Vec<CheckupFinding> {
    let folder = &config.state_dir;
    let mut found = Vec::new();
    for name in [ADMIN_KEY, NODE_KEY] {
        found.extend(access("keys", &folder.join(name), FileSensitivity::Secret));
    }
    let node = match StateFolder::existing(folder).existing_node_key() {
        Ok(key) => {
            CheckupFinding::ok("keys", format!("the node signs with the key `{}`", key.id()))
        }
        Err(StateError::NoNodeKey { path }) if store::is_there(&config.store) => {
            CheckupFinding::problem(
                "keys",
                format!("`{}` is missing", path.display()),
                "Restore it from a backup; otherwise the next start creates a new key, which executors do not know.",
            )
        }
        Err(StateError::NoNodeKey { path }) => CheckupFinding::warning(
            "keys",
            format!("`{}` does not exist yet", path.display()),
            "The first start of `jurat serve` writes it.",
        ),
        Err(StateError::NodeKey { path }) => CheckupFinding::problem(
            "keys",
            format!("`{}` does not contain a key", path.display()),
            format!("To fix it: {NODE_KEY_ADVICE}."),
        ),
        Err(error) => CheckupFinding::problem(
            "keys",
            sentence(&error.into()),
            "Run this command as the server's user.",
        ),
    };
    if let Err(StateError::NothingToSend { path }) =
        StateFolder::existing(folder).existing_admin_key()
    {
        found.push(CheckupFinding::problem(
            "keys",
            format!("`{}` does not contain a key", path.display()),
            "Restore it from a backup, or remove it so that the next start of `jurat serve` writes a new one. Until then, commands need JURAT_KEY.",
        ));
    }
    let mut findings = or_healthy(found, "keys", "only the owner can access the key files");
    findings.push(node);
    findings
}
