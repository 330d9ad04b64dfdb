//! The providers as this node knows them: their addresses, permits, and refused request parts.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use jurat_core::{judge::JudgeImage, verifier::ModelRef};
use jurat_guard::public::PublicClient;
use moka::sync::Cache;

use super::{
    BUILTIN_PROVIDER, RULES_MODEL,
    config::{JudgesConfig, ProviderKind, ProviderSettings},
    permits::ProviderPermits,
    protocol::OmittedParts,
};
use crate::SecretLookup;

/// How many models have their refusals cached.
const REFUSALS_REMEMBERED: u64 = 1_000;
/// The size of the cache of example images, and how long they are kept.
const IMAGE_CACHE_BYTES: u64 = 64 * 1024 * 1024;
const IMAGES_FRESH_FOR: Duration = Duration::from_mins(10);

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// The state that the judges of a node share.
pub(crate) struct JudgeProviders {
    pub(super) config: JudgesConfig,
    states: BTreeMap<String, ProviderState>,
    /// Parts that a provider refused, so that they are not sent again.
    omitted: Cache<String, OmittedParts>,
    media_client: OnceLock<Option<PublicClient>>,
    /// The images of examples, by address.
    pub(super) example_images: Cache<String, JudgeImage>,
}

impl fmt::Debug for JudgeProviders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JudgeProviders").field("judges", &self.config).finish_non_exhaustive()
    }
}

/// The state of one provider.
#[derive(Debug)]
struct ProviderState {
    uri: Option<Uri>,
    permits: Arc<ProviderPermits>,
}

/// A provider that can be asked.
#[derive(Debug)]
pub(super) struct ReadyProvider<'a> {
    pub(super) name: &'a str,
    pub(super) settings: &'a ProviderSettings,
    pub(super) uri: &'a Uri,
    pub(super) headers: HeaderMap,
    pub(super) permits: &'a Arc<ProviderPermits>,
}

/// Why a judge cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeUnavailable {
    #[error("the provider `{provider}` is not configured; configured: {known}")]
    Provider { provider: String, known: String },
    #[error(
        "the provider `{provider}` is not configured for the model `{model}`; configured: {known}"
    )]
    Model { provider: String, model: String, known: String },
    #[error(
        "the provider `{provider}` needs its key in the environment variable `{variable}`, which is not set"
    )]
    Key { provider: String, variable: String },
    #[error("the address of the provider `{provider}` cannot be used")]
    Address { provider: String },
    #[error("the only built-in judge is `{BUILTIN_PROVIDER}/{RULES_MODEL}`")]
    Builtin,
    #[error("there is no default judge; the operator sets one with `judges.default_model`")]
    NoDefault,
}

impl JudgeProviders {
    pub(crate) fn new(config: JudgesConfig) -> Self {
        let state = |settings: &ProviderSettings| ProviderState {
            uri: address(settings),
            permits: Arc::new(ProviderPermits::new(settings.concurrency)),
        };
        let states = config
            .providers
            .iter()
            .map(|(name, settings)| (name.clone(), state(settings)))
            .collect();
        let example_images = Cache::builder()
            .max_capacity(IMAGE_CACHE_BYTES)
            .weigher(|_: &String, image: &JudgeImage| {
                u32::try_from(image.bytes.len()).unwrap_or(u32::MAX)
            })
            .time_to_live(IMAGES_FRESH_FOR)
            .build();
        Self {
            config,
            states,
            omitted: Cache::new(REFUSALS_REMEMBERED),
            media_client: OnceLock::new(),
            example_images,
        }
    }

    pub(super) fn provider(
        &self,
        model: &ModelRef,
        secrets: &SecretLookup,
    ) -> Result<ReadyProvider<'_>, JudgeUnavailable> {
        let found = self.config.providers.get_key_value(&model.provider);
        let (Some((name, settings)), Some(state)) = (found, self.states.get(&model.provider))
        else {
            let known = self.config.providers.keys().map(String::as_str).chain([BUILTIN_PROVIDER]);
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(JudgeUnavailable::Provider { provider: model.provider.clone(), known });
        };
        if let Some(models) = &settings.models
            && !models.contains(&model.model)
        {
            let known = models.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let (provider, model) = (name.clone(), model.model.clone());
            return Err(JudgeUnavailable::Model { provider, model, known });
        }
        let uri = state.uri.as_ref();
        let uri = uri.ok_or_else(|| JudgeUnavailable::Address { provider: name.clone() })?;
        let headers = headers(name, settings, secrets)?;
        Ok(ReadyProvider { name, settings, uri, headers, permits: &state.permits })
    }

    /// The parts that are no longer sent to a model.
    pub(super) fn omitted_parts(&self, model: &ModelRef) -> OmittedParts {
        self.omitted.get(&model.to_string()).unwrap_or_default()
    }

    pub(super) fn omit(&self, model: &ModelRef, without: OmittedParts) {
        self.omitted.insert(model.to_string(), without);
    }

    /// The client for addresses of callers and executors; `None` if the TLS setup of the machine is
    /// broken.
    pub(crate) fn media_client(&self) -> Option<&PublicClient> {
        let client = || match PublicClient::new(&self.config.media_allow) {
            Ok(client) => Some(client),
            Err(error) => {
                tracing::error!(error = %error, "cannot fetch images and evidence");
                None
            }
        };
        self.media_client.get_or_init(client).as_ref()
    }
}

fn address(settings: &ProviderSettings) -> Option<Uri> {
    let path = match settings.kind {
        ProviderKind::Anthropic => "/v1/messages",
        ProviderKind::OpenAi => "/chat/completions",
    };
    Uri::try_from(format!("{}{path}", settings.base_url.trim_end_matches('/'))).ok()
}

fn headers(
    name: &str,
    settings: &ProviderSettings,
    secrets: &SecretLookup,
) -> Result<HeaderMap, JudgeUnavailable> {
    let mut headers = HeaderMap::new();
    if settings.kind == ProviderKind::Anthropic {
        headers.insert(ANTHROPIC_VERSION, HeaderValue::from_static("2023-06-01"));
    }
    let Some(variable) = &settings.key_env else { return Ok(headers) };
    let missing =
        || JudgeUnavailable::Key { provider: name.to_owned(), variable: variable.clone() };
    let key = secrets(variable).filter(|key| !key.trim().is_empty()).ok_or_else(missing)?;
    let (header, text) = match settings.kind {
        ProviderKind::Anthropic => (API_KEY, key.trim().to_owned()),
        ProviderKind::OpenAi => (header::AUTHORIZATION, format!("Bearer {}", key.trim())),
    };
    let mut value = HeaderValue::try_from(text).map_err(|_| missing())?;
    value.set_sensitive(true);
    headers.insert(header, value);
    Ok(headers)
}
