//! The settings as text: a sample file, and a help topic.

use std::fmt::Write as _;

use super::{ALL, Setting, SettingKind, profiles, providers};

/// A file with every setting, each commented out.
pub(crate) fn example() -> String {
    let mut text = String::from(
        "# Settings of Jurat. Save this file as `jurat.toml` in the state folder, or pass it with `--config`.\n\
         # The environment overrides this file, and flags override both.\n\
         # `jurat config check FILE` checks the file.\n",
    );
    let mut section = "";
    for setting in ALL {
        let (of, name) = setting.name.split_once('.').unwrap_or(("", setting.name));
        if of != section {
            let _ = write!(text, "\n[{of}]\n");
            section = of;
        }
        let _ = write!(text, "\n# {}\n# {name} = {}\n", setting.about, literal(setting));
    }
    text.push_str(&providers::example());
    text.push_str(&profiles::example());
    text
}

/// The default as it would be in the file, or the example.
fn literal(setting: &Setting) -> String {
    let value = setting.default.unwrap_or(setting.example);
    match setting.kind {
        SettingKind::Count { .. } | SettingKind::Share | SettingKind::Amount => value.to_owned(),
        SettingKind::Text
        | SettingKind::Folder
        | SettingKind::Listen
        | SettingKind::Sockets
        | SettingKind::Name
        | SettingKind::NodeScopes
        | SettingKind::Url
        | SettingKind::Urls
        | SettingKind::EvmAddress
        | SettingKind::Hosts
        | SettingKind::Store
        | SettingKind::Postgres
        | SettingKind::Filter
        | SettingKind::Variable
        | SettingKind::Model
        | SettingKind::Models
        | SettingKind::Ranges
        | SettingKind::Account
        | SettingKind::AgentRegistrations
        | SettingKind::Word(_)
        | SettingKind::Words(_) => format!("\"{value}\""),
    }
}

/// The text of `jurat help settings`.
pub(crate) fn topic() -> String {
    let mut text = String::from(
        "Settings come from a config file, the environment and flags; later ones win.\n\
         The file is TOML. `--config FILE` or JURAT_CONFIG names it; the default is `jurat.toml` in \
         the state folder.\n\
         `jurat config show` prints every value and its source.\n",
    );
    for setting in ALL {
        let _ = write!(
            text,
            "\n  {}\n      {}\n      {}",
            setting.name, setting.about, setting.variable
        );
        if let Some(flag) = setting.flag {
            let _ = write!(text, ", {flag}");
        }
        let _ = match setting.default {
            Some(default) => writeln!(text, "; default: {default}"),
            None => writeln!(text, "; no default"),
        };
    }
    text.push_str(&providers::topic());
    text.push_str(&profiles::topic());
    text
}
