//! The operator's settings for judges: their providers, prices and limits.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jurat_core::{judge::Price, verifier::ModelRef};
use jurat_guard::public::Range;

/// The price of all models of a provider without a price of their own.
pub(super) const ANY_MODEL: &str = "*";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// `POST {base_url}/v1/messages`
    Anthropic,
    /// `POST {base_url}/chat/completions`
    OpenAi,
}

impl ProviderKind {
    pub const ALL: &[Self] = &[Self::Anthropic, Self::OpenAi];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }
}

/// The settings of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    pub kind: ProviderKind,
    pub base_url: String,
    /// The environment variable that holds the key; `None` for a service without keys.
    pub key_env: Option<String>,
    /// Concurrent requests; more wait for a permit.
    pub concurrency: usize,
    /// The timeout of one request.
    pub timeout: Duration,
    pub max_output_tokens: u32,
    /// By model, or `*` for all others. Without any, all models are free; if some have a price,
    /// metered callers cannot name the others.
    pub prices: BTreeMap<String, Price>,
    /// The allowed models; `None` for any.
    pub models: Option<BTreeSet<String>>,
}

impl ProviderSettings {
    pub fn new(kind: ProviderKind, base_url: impl Into<String>) -> Self {
        Self {
            kind,
            base_url: base_url.into(),
            key_env: None,
            concurrency: 8,
            timeout: Duration::from_mins(1),
            max_output_tokens: 2_048,
            prices: BTreeMap::new(),
            models: None,
        }
    }

    pub(super) fn price(&self, model: &str) -> Price {
        self.own_price(model).unwrap_or_default()
    }

    /// Whether other models have a price and this one does not.
    pub(super) fn lacks_price(&self, model: &str) -> bool {
        !self.prices.is_empty() && self.own_price(model).is_none()
    }

    fn own_price(&self, model: &str) -> Option<Price> {
        self.prices.get(model).or_else(|| self.prices.get(ANY_MODEL)).copied()
    }
}

/// All settings for judges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgesConfig {
    /// By name, which is the part before the slash in `provider/model`.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// The judge of a verifier that names none.
    pub default_model: Option<ModelRef>,
    /// The judges of a run that asks for several.
    pub panel: Vec<ModelRef>,
    /// Added to the price of the providers.
    pub margin_percent: u32,
    /// How long a verdict is reused for the same question; `None` for never.
    pub cache_for: Option<Duration>,
    /// The maximum number of cached verdicts, of all accounts together.
    pub cache_most: u32,
    /// Ranges that are not public but may serve images and evidence.
    pub media_allow: Vec<Range>,
}

impl JudgesConfig {
    /// Whether the operator configured this judge as default or in the panel, whatever it costs.
    pub(crate) fn keeps_ready(&self, model: &ModelRef) -> bool {
        self.default_model.as_ref() == Some(model) || self.panel.contains(model)
    }
}

impl Default for JudgesConfig {
    fn default() -> Self {
        Self {
            providers: BTreeMap::new(),
            default_model: None,
            panel: Vec::new(),
            margin_percent: 0,
            cache_for: None,
            cache_most: 100_000,
            media_allow: Vec::new(),
        }
    }
}
