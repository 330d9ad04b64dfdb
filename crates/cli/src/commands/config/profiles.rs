//! The consensus profiles in `jurat config show`.

use comfy_table::Cell;
use serde_json::{Value, json};

use crate::{
    output::{Output, table::table},
    settings::{
        Settings,
        profiles::{PROFILE_SETTINGS, ProfileLine, ProfileSetting},
    },
};

/// A table with a row for each profile; `None` without profiles.
pub(super) fn shown(out: Output, settings: &Settings) -> Option<String> {
    let profiles = settings.profiles();
    if profiles.is_empty() {
        return None;
    }
    let file = settings.file().map(|file| file.display().to_string()).unwrap_or_default();
    let rows = profiles.iter().map(|ProfileLine { profile, line }| {
        let from = format!("{file}:{line}");
        vec![Cell::new(profile.model()), Cell::new(profile.terms()), Cell::new(from)]
    });
    Some(table(out, &["model", "terms", "from"], rows.collect()))
}

pub(super) fn bodies(settings: &Settings) -> Vec<Value> {
    let body = |ProfileLine { profile, line }: &ProfileLine| {
        json!({
            "name": profile.name,
            "model": profile.model(),
            "about": profile.about,
            "request": profile.request,
            "origin": { "kind": "file", "path": settings.file(), "line": line },
        })
    };
    settings.profiles().iter().map(body).collect()
}

/// Descriptions of the settings of a section.
pub(super) fn described() -> Vec<Value> {
    let describe = |it: &ProfileSetting| {
        json!({
            "section": "profiles.NAME",
            "name": it.name,
            "default": it.default,
            "about": it.about,
        })
    };
    PROFILE_SETTINGS.iter().map(describe).collect()
}
