//! The images that a judge sees: the candidate's, fetched once for a round, and those of examples.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use jurat_core::{
    judge::Image,
    replica::{Failure, FailureCode},
    verifier::InputError,
};
use jurat_guard::public::{FetchError, UrlRefused};
use tokio::{sync::OnceCell, time::Instant};
use url::Url;

use super::JudgeTask;
use crate::Engine;

/// How many examples are shown with their images; others of an image contract are left out.
pub(super) const MOST_EXAMPLE_IMAGES: usize = 4;

/// An image that whoever needs it first fetches for all.
#[derive(Debug)]
pub(crate) struct SharedImage {
    url: String,
    fetched: OnceCell<Result<Image, Failure>>,
}

impl SharedImage {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), fetched: OnceCell::new() }
    }
}

#[derive(Debug, Default)]
pub(super) struct Pictures {
    pub(super) image: Option<Image>,
    /// One for each example.
    pub(super) examples: Vec<Option<Image>>,
    /// What to say about examples that are not shown.
    pub(super) notes: Vec<String>,
}

impl Engine {
    /// Whether an address may be given as that of an image.
    pub fn media_url_check(&self, text: &str) -> Result<Url, UrlRefused> {
        match self.inner.bench.media() {
            Some(client) => client.check(text),
            None => jurat_guard::public::check_media_url(text),
        }
    }

    /// The same for the field of a request that may have one.
    pub(crate) fn check_media_url(&self, field: &str, url: Option<&str>) -> Result<(), InputError> {
        let checked = url.map(|url| self.media_url_check(url)).transpose();
        checked
            .map(drop)
            .map_err(|refused| InputError { field: field.to_owned(), problem: refused.to_string() })
    }

    pub(super) async fn pictures(&self, task: &JudgeTask) -> Result<Pictures, Failure> {
        if !task.question.contract.has_image() {
            return Ok(Pictures::default());
        }
        let Some(shared) = &task.image else {
            let detail = "the round has no image although its contract needs one";
            return Err(Failure::new(FailureCode::Internal, detail));
        };
        let left = || task.deadline.saturating_duration_since(Instant::now());
        let image = shared.fetched.get_or_init(|| self.picture(&shared.url, left()));
        let (image, examples) = tokio::join!(image, self.example_pictures(task));
        let image = Some(image.clone()?);
        let shown = |example: &Option<Image>| example.is_some();
        let hidden = examples.len() - examples.iter().filter(|it| shown(it)).count();
        let mut notes = Vec::new();
        if 0 < hidden {
            notes
                .push(format!("{hidden} examples were not shown: their images were not available"));
        }
        Ok(Pictures { image, examples, notes })
    }

    async fn example_pictures(&self, task: &JudgeTask) -> Vec<Option<Image>> {
        let left = task.deadline.saturating_duration_since(Instant::now());
        let fetched = task.question.examples.iter().enumerate().map(|(at, example)| async move {
            let url = example.media_url.as_deref().filter(|_| at < MOST_EXAMPLE_IMAGES)?;
            if let Some(known) = self.inner.bench.pictures.get(url) {
                return Some(known);
            }
            let image = self.picture(url, left).await.ok()?;
            self.inner.bench.pictures.insert(url.to_owned(), image.clone());
            Some(image)
        });
        join_all(fetched).await
    }

    async fn picture(&self, url: &str, timeout: Duration) -> Result<Image, Failure> {
        let failed = |text: String| Failure::new(FailureCode::MediaUnavailable, text);
        let Some(client) = self.inner.bench.media() else {
            let error = FetchError::Unavailable { detail: String::new() };
            return Err(failed(error.to_string()));
        };
        match client.image(url, timeout).await {
            Ok(fetched) => Ok(Image {
                mime: fetched.mime.to_owned(),
                bytes: Arc::from(fetched.bytes().as_ref()),
            }),
            Err(error) => {
                // The caller does not learn this: it would tell him about our network.
                tracing::warn!(cause = %error.detail(), "could not fetch an image");
                Err(failed(error.to_string()))
            }
        }
    }
}
