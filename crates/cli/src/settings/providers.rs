//! The providers of judges: sections of the file whose names the operator chooses.

mod read;

use std::fmt::Write as _;

use jurat_core::verifier::ModelRef;
use jurat_engine::{BUILTIN_PROVIDER, ProviderSettings};

pub(super) use self::read::read;
use super::value;

/// The table of the file that holds a section for each provider.
pub(super) const TABLE: &str = "providers";
/// The model name for the price of every model without a price of its own.
pub(crate) const ANY_MODEL: &str = "*";

const PRICES: &str = "prices";
const INPUT_PRICE: &str = "input_usd_per_million";
const OUTPUT_PRICE: &str = "output_usd_per_million";

/// One key of a section.
#[derive(Debug)]
pub(crate) struct ProviderSetting {
    /// The name in the section.
    pub(crate) name: &'static str,
    /// The default, in words.
    pub(crate) default: &'static str,
    /// The requirement on a value.
    pub(crate) expects: &'static str,
    /// The purpose of the setting, in one sentence.
    pub(crate) about: &'static str,
    /// The value in the example file.
    pub(crate) example: &'static str,
}

/// The settings of a provider, in display order. The settings of a price have their own table.
pub(crate) static PROVIDER_SETTINGS: &[ProviderSetting] = &[
    ProviderSetting {
        name: "kind",
        default: "`anthropic` for the provider of that name, else `openai`",
        expects: "`anthropic` or `openai`",
        about: "API of the provider.",
        example: "\"openai\"",
    },
    ProviderSetting {
        name: "base_url",
        default: "the vendor's own for `anthropic` and `openai`; required for other providers",
        expects: "a URL like http://127.0.0.1:11434/v1",
        about: "Base URL of the API; it can be on this machine or in a private network.",
        example: "\"http://127.0.0.1:11434/v1\"",
    },
    ProviderSetting {
        name: "key_env",
        default: "`ANTHROPIC_API_KEY` and `OPENAI_API_KEY` for those two; no key for others",
        expects: "the name of an environment variable",
        about: "Environment variable of the server with the provider's API key.",
        example: "\"LOCAL_API_KEY\"",
    },
    ProviderSetting {
        name: "concurrency",
        default: "8",
        expects: "a whole number from 1 to 10000",
        about: "Maximum number of concurrent requests to the provider from this node; further ones wait.",
        example: "8",
    },
    ProviderSetting {
        name: "timeout_ms",
        default: "60000",
        expects: "a whole number from 100 to 600000",
        about: "Timeout of one request to the provider, in milliseconds.",
        example: "60000",
    },
    ProviderSetting {
        name: "max_output_tokens",
        default: "2048",
        expects: "a whole number from 64 to 1000000",
        about: "Maximum number of output tokens of a judge.",
        example: "2048",
    },
    ProviderSetting {
        name: "models",
        default: "any model",
        expects: "a list of names",
        about: "Models that verifiers can use; others are refused.",
        example: "[\"llama3.3\"]",
    },
];

/// The keys of a price, below `[providers.NAME.prices."MODEL"]`.
pub(crate) static PRICE_SETTINGS: &[ProviderSetting] = &[
    ProviderSetting {
        name: INPUT_PRICE,
        default: "none; required",
        expects: "an amount like \"1.25\", in quotes",
        about: "Price of a million input tokens, in US dollars.",
        example: "\"1.25\"",
    },
    ProviderSetting {
        name: OUTPUT_PRICE,
        default: "none; required",
        expects: "an amount like \"10.00\", in quotes",
        about: "Price of a million output tokens, in US dollars.",
        example: "\"10.00\"",
    },
];

/// One section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderSection {
    pub(crate) name: String,
    pub(crate) settings: ProviderSettings,
    /// The line on which the section begins.
    pub(crate) line: usize,
}

impl ProviderSection {
    /// The URL without its password.
    pub(crate) fn shown_url(&self) -> String {
        value::without_password(&self.settings.base_url)
    }
}

/// Faults for the judges in a setting whose providers are not set up.
pub(super) fn unknown_judges(
    setting: &str,
    models: &str,
    providers: &[ProviderSection],
) -> Vec<String> {
    let models = value::listed(models).filter_map(|model| model.parse::<ModelRef>().ok());
    let objection = |model: ModelRef| {
        let provider = providers.iter().find(|it| it.name == model.provider);
        let allowed = provider.map(|it| it.settings.models.as_ref());
        match allowed {
            _ if model.provider == BUILTIN_PROVIDER => None,
            None => Some(format!(
                "`{setting}` names the judge `{model}`, but there is no section `[{TABLE}.{}]`",
                model.provider
            )),
            Some(Some(models)) if !models.contains(&model.model) => Some(format!(
                "`{setting}` names the judge `{model}`, which is not among the `models` of its provider"
            )),
            Some(_) => None,
        }
    };
    models.filter_map(objection).collect()
}

/// The sections of the example file, commented out: even an empty section would set up a provider.
pub(super) fn example() -> String {
    let mut text = String::from(
        "\n# Providers of judges. `[providers.anthropic]` and `[providers.openai]` can stay empty: their\n\
         # keys are read from ANTHROPIC_API_KEY and OPENAI_API_KEY. A provider with another name needs\n\
         # a `base_url`, and has an OpenAI-compatible API unless `kind` says otherwise.\n\
         # [providers.local]\n",
    );
    for setting in PROVIDER_SETTINGS {
        let _ = write!(text, "\n# {}\n# {} = {}\n", setting.about, setting.name, setting.example);
    }
    text.push_str(
        "\n# Price of a model; \"*\" is for every model without its own price. A model without a price is\n\
         # free for all accounts.\n\
         # [providers.local.prices.\"*\"]\n",
    );
    for setting in PRICE_SETTINGS {
        let _ = write!(text, "\n# {}\n# {} = {}\n", setting.about, setting.name, setting.example);
    }
    text
}

/// The text about providers in `jurat help settings`.
pub(super) fn topic() -> String {
    let mut text = String::from(
        "\nProviders of judges can only be set in the file, each in its own section:\n",
    );
    for (section, settings) in
        [("NAME", PROVIDER_SETTINGS), ("NAME.prices.\"MODEL\"", PRICE_SETTINGS)]
    {
        let _ = write!(text, "\n  [{TABLE}.{section}]\n");
        for setting in settings {
            let (name, about, default) = (setting.name, setting.about, setting.default);
            let _ = write!(text, "    {name}\n      {about}\n      default: {default}\n");
        }
    }
    text
}
