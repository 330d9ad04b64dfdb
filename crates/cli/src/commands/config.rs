//! `jurat config`.

mod providers;

use std::path::Path;

use comfy_table::Cell;
use serde_json::{Value, json};

use super::Context;
use crate::{
    config::unknown_variables,
    failure::Failure,
    output::{Chatter, Format, Output, counted, table::table},
    settings::{self, Kind, Origin, Resolved},
};

pub(super) fn show(context: &Context) -> anyhow::Result<u8> {
    let settings = &context.config.settings;
    let text = match context.out.format {
        Format::Json => {
            let items: Vec<Value> = settings.iter().map(body).collect();
            json!({
                "file": settings.file(),
                "items": items,
                "providers": providers::bodies(settings),
                "provider_settings": providers::described(),
            })
            .to_string()
        }
        Format::Text => {
            let rows = settings.iter().map(|resolved| {
                let value = shown(resolved).unwrap_or_else(|| "–".to_owned());
                vec![
                    Cell::new(resolved.setting.name),
                    Cell::new(value),
                    Cell::new(resolved.origin.said()),
                ]
            });
            let flat = table(context.out, &["setting", "value", "from"], rows.collect());
            [Some(flat), providers::shown(context.out, settings)]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("\n")
        }
    };
    context.out.data(&text)?;
    note_unknown(context.out);
    if settings.file().is_none() {
        context.out.note("no config file was read; `jurat config example` prints a sample");
    }
    Ok(0)
}

fn shown(resolved: &Resolved) -> Option<String> {
    resolved.value.as_deref().map(|value| resolved.setting.shown(value))
}

/// A setting with all that is known of it.
fn body(resolved: &Resolved) -> Value {
    let setting = resolved.setting;
    let typed = |text: Option<String>| match (setting.kind, text) {
        (_, None) => Value::Null,
        (Kind::Count { .. }, Some(text)) => json!(text.parse::<u64>().ok()),
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

fn origin(origin: &Origin) -> Value {
    match origin {
        Origin::Default => json!({ "kind": "default" }),
        Origin::File { path, line } => json!({ "kind": "file", "path": path, "line": line }),
        Origin::Environment(variable) => json!({ "kind": "environment", "variable": variable }),
        Origin::Flag(flag) => json!({ "kind": "flag", "flag": flag }),
    }
}

/// Checks a file that need not be the one in use.
pub(super) fn check_file(out: Output, file: &Path) -> anyhow::Result<u8> {
    let found = settings::read_file(file).map_err(|faults| Failure::usage(faults.join("\n")))?;
    in_order(out, Some(file), (found.values.len(), found.providers.len()))
}

/// The settings in use were read without a fault, or this would not run.
pub(super) fn checked(context: &Context) -> anyhow::Result<u8> {
    let settings = &context.config.settings;
    let from_file = settings.iter().filter(|it| matches!(it.origin, Origin::File { .. })).count();
    note_unknown(context.out);
    in_order(context.out, settings.file(), (from_file, settings.providers().len()))
}

/// A misspelt variable would be ignored in silence.
fn note_unknown(out: Output) {
    for text in unknown_variables() {
        out.note(&format!("warning: {text}"));
    }
}

fn in_order(
    out: Output,
    file: Option<&Path>,
    (count, providers): (usize, usize),
) -> anyhow::Result<u8> {
    if (out.format, out.chatter) == (Format::Text, Chatter::Quiet) {
        return Ok(0);
    }
    let text = match (out.format, file) {
        (Format::Json, file) => {
            json!({ "ok": true, "file": file, "settings": count, "providers": providers })
                .to_string()
        }
        (Format::Text, None) => "no config file; the environment is valid".to_owned(),
        (Format::Text, Some(file)) => {
            let settings = counted(count, "setting");
            let also = match providers {
                0 => String::new(),
                some => format!(" and {}", counted(some, "provider")),
            };
            format!("`{}` is valid: {settings}{also}", file.display())
        }
    };
    out.data(&text)?;
    Ok(0)
}
