//! The files of a workflow: one, several, raw, and changes to them.

use axum::{
    Extension,
    extract::{FromRequestParts, Query, State},
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::Response,
};
use jurat_core::{
    account::caller::Caller,
    code::ProblemCode,
    workflow::{
        WorkflowRef,
        operation::{WorkflowFileBytes, WorkflowSaveResult},
    },
};
use jurat_engine::{Engine, EngineError, NewFilePatch};
use jurat_wire::{
    api::workflows::{self, InlineRoom, WorkflowFilesBody},
    problem::Problem,
};
use serde_json::{Value, json};

use crate::request::page::wrong;
use crate::request::{
    decode::{LargeJson, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

/// The most files of one reply.
const MOST_PATHS: usize = 100;
/// The most bytes of contents in one reply.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Which files are asked for, and how.
#[derive(Debug, Default)]
pub(crate) struct FilesQuery {
    path: Option<String>,
    paths: Vec<String>,
    is_raw: bool,
    sha256: Option<String>,
    version: Option<u32>,
}

impl<S: Send + Sync> FromRequestParts<S> for FilesQuery {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let query = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Ok(Query(given)) = query else {
            return Err(encode::problem(&wrong("query", "cannot be read")));
        };
        Self::read(given).map_err(|problem| encode::problem(&problem))
    }
}

impl FilesQuery {
    fn read(given: Vec<(String, String)>) -> Result<Self, Problem> {
        let mut query = Self::default();
        let once = |slot: &mut Option<String>, name: &str, value: String| match slot.replace(value)
        {
            None => Ok(()),
            Some(_) => Err(wrong(name, "is repeated; leave one out")),
        };
        for (name, value) in given {
            match (name.as_str(), value.as_str()) {
                ("path", _) => once(&mut query.path, "path", value)?,
                ("sha256", _) => once(&mut query.sha256, "sha256", value)?,
                ("paths", _) => query.paths.push(value),
                ("format", "raw" | "json") => query.is_raw = value == "raw",
                ("format", _) => return Err(wrong("format", "must be json or raw")),
                ("version", text) => {
                    let version = text.parse().ok().filter(|version| 0 < *version);
                    let reason = "must be a whole number, 1 or more";
                    query.version = Some(version.ok_or_else(|| wrong("version", reason))?);
                }
                _ => return Err(wrong(&name, "is not a known parameter")),
            }
        }
        query.checked()
    }

    fn checked(self) -> Result<Self, Problem> {
        match (&self.path, self.paths.len()) {
            (Some(_), 0) | (None, 1..=MOST_PATHS) if !self.is_raw || self.path.is_some() => {
                Ok(self)
            }
            (None, 0) => Err(wrong("path", "is required, or `paths` once per file")),
            (Some(_), 1..) => Err(wrong("paths", "contradicts `path`; leave one out")),
            (None, _) if self.is_raw => Err(wrong("format", "`raw` needs one `path`")),
            _ => Err(wrong("paths", &format!("must be at most {MOST_PATHS}"))),
        }
    }
}

pub(crate) async fn read(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: FilesQuery,
) -> HandlerResult {
    let wanted = workflows::pinned(workflows::reference(&text)?, query.version)?;
    let Some(path) = query.path else {
        return Ok(encode::ok(&envelopes(&engine, &caller, &wanted, query.paths).await?));
    };
    let file = single(&engine, &caller, &wanted, path).await?;
    if query.sha256.as_ref().is_some_and(|digest| *digest != file.entry.sha256) {
        let detail = "the file's content does not match the digest";
        return Err(Problem::new(ProblemCode::NotFound, detail).into());
    }
    if query.is_raw {
        return Ok(raw(file));
    }
    Ok(encode::ok(&workflows::envelope(&file.entry, &file.content, InlineRoom::Fits)))
}

/// One file.
pub(crate) async fn single(
    engine: &Engine,
    caller: &Caller,
    wanted: &WorkflowRef,
    path: String,
) -> Result<WorkflowFileBytes, EngineError> {
    let mut found = engine.workflow_files(caller, wanted, vec![path]).await?;
    found.pop().ok_or(EngineError::Bug("a file that was found is not there"))
}

/// Several files by their paths, as far as they fit into a reply.
pub(crate) async fn envelopes(
    engine: &Engine,
    caller: &Caller,
    wanted: &WorkflowRef,
    mut paths: Vec<String>,
) -> Result<Value, EngineError> {
    paths.sort();
    paths.dedup();
    let found = engine.workflow_files_found(caller, wanted, paths.clone()).await?;
    let mut bytes = 0;
    let files = paths.iter().map(|path| match found.iter().find(|it| it.entry.path == *path) {
        None => workflows::missing(path),
        Some(file) => {
            bytes += file.content.len();
            let room = if bytes <= MOST_BYTES { InlineRoom::Fits } else { InlineRoom::Full };
            workflows::envelope(&file.entry, &file.content, room)
        }
    });
    Ok(json!(WorkflowFilesBody { files: files.collect() }))
}

/// The bytes as they are, to be kept and not to be shown.
fn raw(file: WorkflowFileBytes) -> Response {
    let mut response = encode::content("application/octet-stream", file.content.into());
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    if let Ok(digest) = HeaderValue::from_str(&format!("\"{}\"", file.entry.sha256)) {
        headers.insert(header::ETAG, digest);
    }
    response
}

pub(crate) async fn patch(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(text): PathText,
    LargeJson(body): LargeJson,
) -> HandlerResult {
    let asked = workflows::reference(&text)?;
    let new = workflows::decode_patch(&body)?;
    let patch = NewFilePatch {
        files: new.files,
        delete_paths: new.delete_paths,
        source: new.source,
        expected_token: Some(new.expected_token),
    };
    let keyed = idempotency.write_for("workflow_patch_files", &body, StatusCode::OK, patched);
    let done = engine.workflow_patch_files(&caller, &asked, patch, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&patched(it))))
}

fn patched(it: &WorkflowSaveResult) -> Value {
    let content = (it.body.as_str(), it.bindings.as_slice(), it.files.as_slice());
    json!(workflows::patched(&it.workflow, content, (&it.changed, &it.deleted)))
}
