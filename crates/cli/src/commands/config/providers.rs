//! The judge providers in `jurat config show`, with the source of each key but never the key.

use comfy_table::Cell;
use jurat_core::{account::ledger::usd, judge::Price};
use serde_json::{Value, json};

use crate::{
    config::variable,
    output::{Output, table::table},
    settings::{
        Settings,
        providers::{PRICE_SETTINGS, PROVIDER_SETTINGS, ProviderSection, ProviderSetting},
    },
};

/// A table with a row for each provider; `None` without providers.
pub(super) fn shown(out: Output, settings: &Settings) -> Option<String> {
    let providers = settings.providers();
    if providers.is_empty() {
        return None;
    }
    let rows = providers.iter().map(|provider| {
        let models = provider.settings.models.iter().flatten().cloned().collect::<Vec<_>>();
        let models = if models.is_empty() { "any".to_owned() } else { models.join(", ") };
        vec![
            Cell::new(&provider.name),
            Cell::new(provider.settings.kind.as_str()),
            Cell::new(provider.shown_url()),
            Cell::new(key(provider)),
            Cell::new(models),
            Cell::new(prices(provider)),
            Cell::new(file_and_line(settings, provider)),
        ]
    });
    let header = ["provider", "kind", "url", "key", "models", "price per million", "from"];
    Some(table(out, &header, rows.collect()))
}

/// The source of the key, and whether it is set; never the key.
fn key(provider: &ProviderSection) -> String {
    match &provider.settings.key_env {
        None => "none".to_owned(),
        Some(name) if variable(name).is_some() => format!("{name}, set"),
        Some(name) => format!("{name}, not set"),
    }
}

fn prices(provider: &ProviderSection) -> String {
    let prices = &provider.settings.prices;
    if prices.is_empty() {
        return "none".to_owned();
    }
    let said = prices.iter().map(|(model, price)| {
        let [input, output] = amounts(*price);
        format!("{model}: {input} in, {output} out")
    });
    said.collect::<Vec<_>>().join("; ")
}

/// The prices of a million input tokens and a million output tokens.
fn amounts(price: Price) -> [String; 2] {
    [price.input_micros_per_million, price.output_micros_per_million]
        .map(|micros| usd(i64::try_from(micros).unwrap_or(i64::MAX)))
}

fn file_and_line(settings: &Settings, provider: &ProviderSection) -> String {
    let file = settings.file().map(|file| file.display().to_string()).unwrap_or_default();
    format!("{file}:{}", provider.line)
}

pub(super) fn bodies(settings: &Settings) -> Vec<Value> {
    let body = |provider: &ProviderSection| {
        let its = &provider.settings;
        let prices = its.prices.iter().map(|(model, price)| {
            let [input, output] = amounts(*price);
            json!({
                "model": model,
                "input_usd_per_million": input,
                "output_usd_per_million": output,
            })
        });
        json!({
            "name": provider.name,
            "kind": its.kind.as_str(),
            "base_url": provider.shown_url(),
            "key_env": its.key_env,
            "key_is_set": its.key_env.as_deref().map(|name| variable(name).is_some()),
            "concurrency": its.concurrency,
            "timeout_ms": its.timeout.as_millis(),
            "max_output_tokens": its.max_output_tokens,
            "models": its.models,
            "prices": prices.collect::<Vec<_>>(),
            "origin": { "kind": "file", "path": settings.file(), "line": provider.line },
        })
    };
    settings.providers().iter().map(body).collect()
}

/// Descriptions of the settings of a section.
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
