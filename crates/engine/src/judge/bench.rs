//! The providers as this node knows them: where they are, how busy they are, what they refuse.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use jurat_core::{judge::Image, verifier::ModelRef};
use jurat_guard::public::PublicClient;
use moka::sync::Cache;

use super::{
    BUILTIN, RULES,
    calls::Calls,
    protocol::Without,
    settings::{Judges, ProviderKind, ProviderSettings},
};
use crate::Secrets;

/// Models whose refusals are remembered.
const MOST_MODELS: u64 = 1_000;
/// Images of examples that are kept, and for how long.
const PICTURE_BYTES: u64 = 64 * 1024 * 1024;
const PICTURES_FOR: Duration = Duration::from_mins(10);

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// All that the judges of a node share.
pub(crate) struct Bench {
    pub(super) judges: Judges,
    desks: BTreeMap<String, Desk>,
    /// What a model's side refused, so that it is not sent again.
    refused: Cache<String, Without>,
    media: OnceLock<Option<PublicClient>>,
    /// The images of examples, by address.
    pub(super) pictures: Cache<String, Image>,
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("judges", &self.judges).finish_non_exhaustive()
    }
}

/// One provider's place on the bench.
#[derive(Debug)]
struct Desk {
    uri: Option<Uri>,
    calls: Arc<Calls>,
}

/// A provider that can be asked.
#[derive(Debug)]
pub(super) struct Provider<'a> {
    pub(super) name: &'a str,
    pub(super) settings: &'a ProviderSettings,
    pub(super) uri: &'a Uri,
    pub(super) headers: HeaderMap,
    pub(super) calls: &'a Arc<Calls>,
}

/// Why a judge cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeUnknown {
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
    #[error("the only built-in judge is `{BUILTIN}/{RULES}`")]
    Builtin,
    #[error("there is no default judge; the operator sets one with `judges.default_model`")]
    NoDefault,
}

impl Bench {
    pub(crate) fn new(judges: Judges) -> Self {
        let desk = |settings: &ProviderSettings| Desk {
            uri: address(settings),
            calls: Arc::new(Calls::new(settings.concurrency)),
        };
        let desks = judges
            .providers
            .iter()
            .map(|(name, settings)| (name.clone(), desk(settings)))
            .collect();
        let pictures = Cache::builder()
            .max_capacity(PICTURE_BYTES)
            .weigher(|_: &String, image: &Image| {
                u32::try_from(image.bytes.len()).unwrap_or(u32::MAX)
            })
            .time_to_live(PICTURES_FOR)
            .build();
        Self { judges, desks, refused: Cache::new(MOST_MODELS), media: OnceLock::new(), pictures }
    }

    pub(super) fn provider(
        &self,
        model: &ModelRef,
        secrets: &Secrets,
    ) -> Result<Provider<'_>, JudgeUnknown> {
        let found = self.judges.providers.get_key_value(&model.provider);
        let (Some((name, settings)), Some(desk)) = (found, self.desks.get(&model.provider)) else {
            let known = self.judges.providers.keys().map(String::as_str).chain([BUILTIN]);
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(JudgeUnknown::Provider { provider: model.provider.clone(), known });
        };
        if let Some(models) = &settings.models
            && !models.contains(&model.model)
        {
            let known = models.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let (provider, model) = (name.clone(), model.model.clone());
            return Err(JudgeUnknown::Model { provider, model, known });
        }
        let uri = desk.uri.as_ref();
        let uri = uri.ok_or_else(|| JudgeUnknown::Address { provider: name.clone() })?;
        let headers = headers(name, settings, secrets)?;
        Ok(Provider { name, settings, uri, headers, calls: &desk.calls })
    }

    /// What is not sent to a model any more.
    pub(super) fn without(&self, model: &ModelRef) -> Without {
        self.refused.get(&model.to_string()).unwrap_or_default()
    }

    pub(super) fn learn(&self, model: &ModelRef, without: Without) {
        self.refused.insert(model.to_string(), without);
    }

    /// The client for what callers and executors name; `None` on a machine whose TLS set-up is
    /// broken.
    pub(crate) fn media(&self) -> Option<&PublicClient> {
        let client = || match PublicClient::new(&self.judges.media_allow) {
            Ok(client) => Some(client),
            Err(error) => {
                tracing::error!(error = %error, "cannot fetch images and evidence");
                None
            }
        };
        self.media.get_or_init(client).as_ref()
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
    secrets: &Secrets,
) -> Result<HeaderMap, JudgeUnknown> {
    let mut headers = HeaderMap::new();
    if settings.kind == ProviderKind::Anthropic {
        headers.insert(ANTHROPIC_VERSION, HeaderValue::from_static("2023-06-01"));
    }
    let Some(variable) = &settings.key_env else { return Ok(headers) };
    let missing = || JudgeUnknown::Key { provider: name.to_owned(), variable: variable.clone() };
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
