//! The images that a judge sees: the candidate's, fetched once for a round, and those of examples.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use jurat_core::{
    judge::JudgeImage,
    round::replica::{FailureCode, ReplicaFailure},
    verifier::InputError,
};
use jurat_guard::public::{FetchError, UrlRefusal};
use tokio::{sync::OnceCell, time::Instant};
use url::Url;

use super::JudgeQuestion;
use crate::Engine;

/// How many examples are shown with their images; further ones are left out.
pub(super) const MOST_EXAMPLE_IMAGES: usize = 4;

/// An image that the first replica in need fetches for all.
#[derive(Debug)]
pub(crate) struct SharedImage {
    url: String,
    fetched: OnceCell<Result<JudgeImage, ReplicaFailure>>,
}

impl SharedImage {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), fetched: OnceCell::new() }
    }
}

#[derive(Debug, Default)]
pub(super) struct JudgeImages {
    pub(super) image: Option<JudgeImage>,
    /// One entry for each example.
    pub(super) examples: Vec<Option<JudgeImage>>,
    /// Remarks on examples that are not shown.
    pub(super) notes: Vec<String>,
}

impl Engine {
    /// Checks that an address may be used for an image.
    pub fn media_url_check(&self, text: &str) -> Result<Url, UrlRefusal> {
        match self.inner.judge_providers.media_client() {
            Some(client) => client.check(text),
            None => jurat_guard::public::check_media_url(text),
        }
    }

    /// Like [`Engine::media_url_check`], for an optional field of a request.
    pub(crate) fn check_media_url(&self, field: &str, url: Option<&str>) -> Result<(), InputError> {
        let checked = url.map(|url| self.media_url_check(url)).transpose();
        checked
            .map(drop)
            .map_err(|refused| InputError { field: field.to_owned(), problem: refused.to_string() })
    }

    pub(super) async fn judge_images(
        &self,
        task: &JudgeQuestion,
    ) -> Result<JudgeImages, ReplicaFailure> {
        if !task.question.contract.has_image() {
            return Ok(JudgeImages::default());
        }
        let Some(shared) = &task.image else {
            let detail = "the round has no image although its contract needs one";
            return Err(ReplicaFailure::new(FailureCode::Internal, detail));
        };
        let left = || task.deadline.saturating_duration_since(Instant::now());
        let image = shared.fetched.get_or_init(|| self.fetch_image(&shared.url, left()));
        let (image, examples) = tokio::join!(image, self.example_images(task));
        let image = Some(image.clone()?);
        let shown = |example: &Option<JudgeImage>| example.is_some();
        let hidden = examples.len() - examples.iter().filter(|it| shown(it)).count();
        let mut notes = Vec::new();
        if 0 < hidden {
            notes
                .push(format!("{hidden} examples were not shown: their images were not available"));
        }
        Ok(JudgeImages { image, examples, notes })
    }

    async fn example_images(&self, task: &JudgeQuestion) -> Vec<Option<JudgeImage>> {
        let left = task.deadline.saturating_duration_since(Instant::now());
        let fetched = task.question.examples.iter().enumerate().map(|(at, example)| async move {
            let url = example.media_url.as_deref().filter(|_| at < MOST_EXAMPLE_IMAGES)?;
            if let Some(known) = self.inner.judge_providers.example_images.get(url) {
                return Some(known);
            }
            let image = self.fetch_image(url, left).await.ok()?;
            self.inner.judge_providers.example_images.insert(url.to_owned(), image.clone());
            Some(image)
        });
        join_all(fetched).await
    }

    async fn fetch_image(
        &self,
        url: &str,
        timeout: Duration,
    ) -> Result<JudgeImage, ReplicaFailure> {
        let failed = |text: String| ReplicaFailure::new(FailureCode::MediaUnavailable, text);
        let Some(client) = self.inner.judge_providers.media_client() else {
            let error = FetchError::Unavailable { detail: String::new() };
            return Err(failed(error.to_string()));
        };
        match client.image(url, timeout).await {
            Ok(fetched) => Ok(JudgeImage {
                mime: fetched.mime.to_owned(),
                bytes: Arc::from(fetched.bytes().as_ref()),
            }),
            Err(error) => {
                // The caller does not learn this: it would reveal our network.
                tracing::warn!(cause = %error.detail(), "could not fetch an image");
                Err(failed(error.to_string()))
            }
        }
    }
}
