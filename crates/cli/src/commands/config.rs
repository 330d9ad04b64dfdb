//! `jurat config`.

pub(crate) mod args;
mod profiles;
mod providers;

use std::path::Path;

use comfy_table::Cell;
use serde_json::{Value, json};

use super::CommandContext;
use crate::{
    config::unknown_variables,
    failure::CliFailure,
    output::{Output, OutputFormat, Verbosity, counted, table::table},
    settings::{self, ResolvedSetting, SettingKind, SettingOrigin},
};

pub(super) fn show(context: &CommandContext) -> anyhow::Result<u8> {
    let settings = &context.config.settings;
    let text = match context.out.format {
        OutputFormat::Json => {
            let items: Vec<Value> = settings.iter().map(body).collect();
            json!({
                "file": settings.file(),
                "items": items,
                "providers": providers::bodies(settings),
                "provider_settings": providers::described(),
                "profiles": profiles::bodies(settings),
                "profile_settings": profiles::described(),
            })
            .to_string()
        }
        OutputFormat::Text => {
            let rows = settings.iter().map(|resolved| {
                let value = shown(resolved).unwrap_or_else(|| "–".to_owned());
                vec![
                    Cell::new(resolved.setting.name),
                    Cell::new(value),
                    Cell::new(resolved.origin.said()),
                ]
            });
            let flat = table(context.out, &["setting", "value", "from"], rows.collect());
            let providers = providers::shown(context.out, settings);
            let profiles = profiles::shown(context.out, settings);
            let tables = [Some(flat), providers, profiles].into_iter().flatten();
            tables.collect::<Vec<_>>().join("\n")
        }
    };
    context.out.data(&text)?;
    note_unknown(context.out);
    if settings.file().is_none() {
        context.out.note("no config file was read; `jurat config example` prints a sample");
    }
    Ok(0)
}

fn shown(resolved: &ResolvedSetting) -> Option<String> {
    resolved.value.as_deref().map(|value| resolved.setting.shown(value))
}

/// All details of a setting, as JSON.
fn body(resolved: &ResolvedSetting) -> Value {
    let setting = resolved.setting;
    let typed = |text: Option<String>| match (setting.kind, text) {
        (_, None) => Value::Null,
        (SettingKind::Count { .. }, Some(text)) => json!(text.parse::<u64>().ok()),
        (_, Some(text)) => json!(text),
    };
    json!({
        "name": setting.name,
        "value": typed(shown(resolved)),
        "origin": origin(&resolved.origin),
        "default": typed(setting.default.map(str::to_owned)),
        "variable": setting.variable,
        "flag": setting.flag,
        "expects": setting.expects(),
        "about": setting.about,
    })
}

fn origin(origin: &SettingOrigin) -> Value {
    match origin {
        SettingOrigin::Default => json!({ "kind": "default" }),
        SettingOrigin::File { path, line } => json!({ "kind": "file", "path": path, "line": line }),
        SettingOrigin::Environment(variable) => {
            json!({ "kind": "environment", "variable": variable })
        }
        SettingOrigin::Flag(flag) => json!({ "kind": "flag", "flag": flag }),
    }
}

/// Checks any config file, not only the one in use.
pub(super) fn check_file(out: Output, file: &Path) -> anyhow::Result<u8> {
    let found = settings::read_file(file).map_err(|faults| CliFailure::usage(faults.join("\n")))?;
    let counts = SettingCounts {
        settings: found.values.len(),
        providers: found.providers.len(),
        profiles: found.profiles.len(),
    };
    in_order(out, Some(file), counts)
}

/// Reports the settings in use as valid: invalid settings stop the command before this.
pub(super) fn checked(context: &CommandContext) -> anyhow::Result<u8> {
    let settings = &context.config.settings;
    let from_file =
        settings.iter().filter(|it| matches!(it.origin, SettingOrigin::File { .. })).count();
    note_unknown(context.out);
    let counts = SettingCounts {
        settings: from_file,
        providers: settings.providers().len(),
        profiles: settings.profiles().len(),
    };
    in_order(context.out, settings.file(), counts)
}

/// Warns about misspelt variables, which would otherwise be ignored silently.
fn note_unknown(out: Output) {
    for text in unknown_variables() {
        out.note(&format!("warning: {text}"));
    }
}

/// The numbers of settings, judge providers and consensus profiles in a file.
#[derive(Debug, Clone, Copy)]
struct SettingCounts {
    settings: usize,
    providers: usize,
    profiles: usize,
}

fn in_order(out: Output, file: Option<&Path>, counts: SettingCounts) -> anyhow::Result<u8> {
    let SettingCounts { settings, providers, profiles } = counts;
    if (out.format, out.chatter) == (OutputFormat::Text, Verbosity::Quiet) {
        return Ok(0);
    }
    let text = match (out.format, file) {
        (OutputFormat::Json, file) => {
            let counts = json!({
                "ok": true, "file": file, "settings": settings, "providers": providers,
                "profiles": profiles,
            });
            counts.to_string()
        }
        (OutputFormat::Text, None) => "no config file; the environment is valid".to_owned(),
        (OutputFormat::Text, Some(file)) => {
            let mut parts = vec![counted(settings, "setting")];
            let sections = [(providers, "provider"), (profiles, "profile")];
            let given = sections.into_iter().filter(|(count, _)| *count != 0);
            parts.extend(given.map(|(count, name)| counted(count, name)));
            format!("`{}` is valid: {}", file.display(), parts.join(" and "))
        }
    };
    out.data(&text)?;
    Ok(0)
}
