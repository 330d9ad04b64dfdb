//! All runs that a query finds, as JSON lines, read from the store page by page.

use std::io;

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::IntoResponse as _,
};
use bytes::Bytes;
use futures::stream;
use jurat_core::{
    account::caller::Caller,
    verifier::{
        VerifierRef,
        run::{VerifierRun, VerifierRunFilter},
    },
};
use jurat_engine::Engine;
use jurat_wire::api::verifier_runs;

use crate::request::{
    encode::{self, HandlerResult},
    page::LARGEST_LIMIT,
};

const LINES: &str = "application/x-ndjson";

/// Whether the client wants JSON lines. A client that accepts JSON too gets a page.
pub(super) fn is_wanted(accept: Option<&HeaderValue>) -> bool {
    let accept = accept.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let takes = |mime: &str| accept.split(',').any(|part| part.trim().starts_with(mime));
    takes(LINES) && !takes("application/json")
}

struct VerifierRunExport {
    engine: Engine,
    caller: Caller,
    verifier: Option<VerifierRef>,
    filter: VerifierRunFilter,
    /// Runs that were read but not sent yet.
    page: Vec<VerifierRun>,
}

/// Reads the first page before the reply begins, so that an invalid request gets a problem.
pub(super) async fn reply(
    engine: Engine,
    caller: Caller,
    verifier: Option<VerifierRef>,
    mut filter: VerifierRunFilter,
) -> HandlerResult {
    filter.limit = LARGEST_LIMIT;
    let page = engine.verifier_run_list(&caller, verifier.as_ref(), filter.clone()).await?;
    let export = VerifierRunExport { engine, caller, verifier, filter, page };
    let lines = stream::try_unfold(export, |mut export| async move {
        if export.page.is_empty() {
            return Ok(None);
        }
        let text = text_of(&export.page);
        export.next_page().await?;
        Ok::<_, io::Error>(Some((text, export)))
    });
    let mut response = Body::from_stream(lines).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
    Ok(response)
}

impl VerifierRunExport {
    async fn next_page(&mut self) -> io::Result<()> {
        let is_last = self.page.len() < usize::try_from(LARGEST_LIMIT).unwrap_or(usize::MAX);
        self.filter.before = self.page.last().map(|run| run.ticket.id.clone());
        self.page.clear();
        if !is_last {
            let (verifier, filter) = (self.verifier.as_ref(), self.filter.clone());
            let page = self.engine.verifier_run_list(&self.caller, verifier, filter).await;
            // The error breaks the connection, so that no client takes a partial export for the
            // whole.
            self.page = page.map_err(|error| {
                let problem = encode::engine_problem(&error);
                io::Error::other(problem.detail)
            })?;
        }
        Ok(())
    }
}

fn text_of(page: &[VerifierRun]) -> Bytes {
    let mut text = String::new();
    for run in page {
        // A run holds text and numbers, so it always serializes.
        text.push_str(&serde_json::json!(verifier_runs::line(run)).to_string());
        text.push('\n');
    }
    Bytes::from(text)
}
