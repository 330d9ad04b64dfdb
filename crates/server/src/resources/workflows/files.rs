//! The files of a workflow: one, several, raw, and changes to them.

use axum::{
    Extension,
    extract::{FromRequestParts, Query, State},
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::Response,
};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    workflow::{
        WorkflowRef,
        operation::{WorkflowFileBytes, WorkflowSaveResult},
    },
};
use jurat_engine::{Engine, EngineError, NewFilePatch};
use jurat_wire::{
    api::workflows::{
        self, InlineRoom, PatchWorkflowFilesRequest, PatchedWorkflow, WorkflowFileEnvelope,
        WorkflowFilesBody,
    },
    problem::Problem,
};
use serde_json::{Value, json};

use crate::{
    mcp::schema,
    operation::{Operation, TextAuthor, Tool, parameters},
    request::{
        decode::{LargeJson, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::wrong,
    },
    resources::{
        WORKFLOWS,
        workflows::{WORKFLOW, WORKFLOW_NAMES, examples},
    },
};

/// Maximum number of files in one reply.
const MOST_PATHS: usize = 100;

/// Maximum number of content bytes in one reply.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// The requested files, and their format.
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

pub(super) fn read_operation() -> Operation {
    let text = "An attached file by its `path`, or several by `paths`, which are returned as a list `files`. Text is returned as text and binary content as base64; binary content above 256 KiB needs `format=raw`. With `sha256`, the file is found only if its content matches.";
    Operation::get("/v1/workflows/{ref}/files", "workflow_files", read).also("/v1/workflows/{ref}/{slug}/files").aliased("/v1/workflows", "/v1/skills", "_of_skill").tag(WORKFLOWS).summary("Read workflow files").text(text).in_path([WORKFLOW])
        .scope(Scope::WorkflowsRead)
        .with(parameters::of_files())
        .with([parameters::version("The version of the files; defaults to the current one.")])
        .answers::<FileOrFiles>(
            200,
            "The file, or the files.",
            json!({
                "path": "short.md", "sha256": examples::DIGEST, "size_bytes": 7, "executable": false,
                "content_kind": "text", "content": "# Short",
            }),
        )
        .or_as("application/octet-stream", "The bytes, with `format=raw`.").refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(Tool::reads("get_skill_file", "Read a workflow file", "Returns one attached file of a workflow.").also("get_workflow_file").path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.").needs("path").query(&["version"]).answers(schema::output::<WorkflowFileEnvelope<'_>>).ignores_unknown().author(TextAuthor::Others))
        .tool(Tool::reads("get_skill_files", "Read workflow files", "Returns several attached files of a workflow.").also("get_workflow_files").path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.").needs("paths").query(&["version"]).answers(schema::output::<WorkflowFilesBody<'_>>).ignores_unknown().author(TextAuthor::Others))
}

async fn read(
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

/// Several files by their paths, with their contents as far as these fit into a reply.
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

/// The raw bytes, as a download that browsers do not display.
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

pub(super) fn patch_operation() -> Operation {
    let text = "Adds a version that differs only in the named files; `executable` and `purpose` are unchanged if left out.";
    Operation::patch("/v1/workflows/{ref}/files", "workflow_patch_files", patch).aliased("/v1/workflows", "/v1/skills", "_of_skill").tag(WORKFLOWS).summary("Change workflow files").text(text).in_path([WORKFLOW])
        .scope(Scope::WorkflowsWrite)
        .takes::<PatchWorkflowFilesRequest>([(
            "plain",
            json!({
                "expected_version_token": examples::TOKEN,
                "files": [{ "path": "long.md", "content": "# Long" }],
                "delete_paths": ["short.md"],
            }),
        )])
        .answers::<PatchedWorkflow<'_>>(
            200,
            "The saved version.",
            examples::ids(json!({
                "slug": "incident-postmortem", "name": "Incident postmortem", "version": 2,
                "version_token": examples::TOKEN, "changed": ["long.md"], "deleted": ["short.md"],
                "carried_forward": 0,
                "authoring_notes": [
                    "Nothing is checked: bind a verifier for each judgment the body asks for, or add a block of checks.",
                    "The file `long.md` is attached, but the body does not mention it.",
                ],
            })),
        )
        .idempotent()
        .refuses([ProblemCode::Conflict]).refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

async fn patch(
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

/// One file, or a list of them.
struct FileOrFiles;

impl utoipa::PartialSchema for FileOrFiles {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::ToSchema as _;
        let of = |name| utoipa::openapi::Ref::from_schema_name(name);
        let one = utoipa::openapi::schema::OneOfBuilder::new()
            .item(of(WorkflowFileEnvelope::name()))
            .item(of(jurat_wire::api::workflows::WorkflowFilesBody::name()))
            .build();
        utoipa::openapi::RefOr::T(utoipa::openapi::Schema::OneOf(one))
    }
}

impl utoipa::ToSchema for FileOrFiles {
    fn name() -> std::borrow::Cow<'static, str> {
        std::borrow::Cow::Borrowed("WorkflowFileOrFiles")
    }

    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        crate::operation::add::<WorkflowFileEnvelope<'_>>(schemas);
        crate::operation::add::<jurat_wire::api::workflows::WorkflowFilesBody<'_>>(schemas);
    }
}
