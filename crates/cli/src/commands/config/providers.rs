//! The providers of judges in `jurat config show`: never a key, only where it would be read.

use comfy_table::Cell;
use jurat_core::ledger::usd;
use serde_json::{Value, json};

use crate::{
    config::variable,
    output::{Output, table::table},
    settings::{
        Settings,
        providers::{PRICE_SETTINGS, PROVIDER_SETTINGS, Provider, ProviderSetting},
    },
};

/// A row for each provider; nothing where there is none.
pub(super) fn shown(out: Output, settings: &Settings) -> Option<String> {
    let providers = settings.providers();
    if providers.is_empty() {
        return None;
    }
    let rows = providers.iter().map(|provider| {
        let models = provider.models.as_ref().map_or("any".to_owned(), |models| models.join(", "));
        vec![
            Cell::new(&provider.name),
            Cell::new(provider.kind.as_str()),
            Cell::new(provider.shown_url()),
            Cell::new(key(provider)),
            Cell::new(models),
            Cell::new(prices(provider)),
            Cell::new(place(settings, provider)),
        ]
    });
    let header = ["provider", "kind", "address", "key", "models", "price a million", "from"];
    Some(table(out, &header, rows.collect()))
}

/// Where the key is read from, and whether it is there; never the key.
fn key(provider: &Provider) -> String {
    match &provider.key_env {
        None => "none".to_owned(),
        Some(name) if variable(name).is_some() => format!("{name}, set"),
        Some(name) => format!("{name}, not set"),
    }
}

fn prices(provider: &Provider) -> String {
    if provider.prices.is_empty() {
        return "none".to_owned();
    }
    let said = provider.prices.iter().map(|(model, price)| {
        format!("{model}: {} in, {} out", usd(price.input), usd(price.output))
    });
    said.collect::<Vec<_>>().join("; ")
}

fn place(settings: &Settings, provider: &Provider) -> String {
    let file = settings.file().map(|file| file.display().to_string()).unwrap_or_default();
    format!("{file}:{}", provider.line)
}

pub(super) fn bodies(settings: &Settings) -> Vec<Value> {
    let body = |provider: &Provider| {
        let prices = provider.prices.iter().map(|(model, price)| {
            json!({
                "model": model,
                "input_usd_per_million": usd(price.input),
                "output_usd_per_million": usd(price.output),
            })
        });
        json!({
            "name": provider.name,
            "kind": provider.kind.as_str(),
            "base_url": provider.shown_url(),
            "key_env": provider.key_env,
            "key_is_set": provider.key_env.as_deref().map(|name| variable(name).is_some()),
            "concurrency": provider.concurrency,
            "timeout_ms": provider.timeout_ms,
            "max_output_tokens": provider.max_output_tokens,
            "models": provider.models,
            "prices": prices.collect::<Vec<_>>(),
            "origin": { "kind": "file", "path": settings.file(), "line": provider.line },
        })
    };
    settings.providers().iter().map(body).collect()
}

/// What a section may hold.
pub(super) fn described() -> Vec<Value> {
    let describe = |section: &'static str| {
        move |setting: &ProviderSetting| {
            json!({
                "section": section,
                "name": setting.name,
                "default": setting.default,
                "expects": setting.expects,
                "about": setting.about,
            })
        }
    };
    let own = PROVIDER_SETTINGS.iter().map(describe("providers.NAME"));
    own.chain(PRICE_SETTINGS.iter().map(describe("providers.NAME.prices.\"MODEL\""))).collect()
}
