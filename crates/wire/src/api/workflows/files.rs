//! Workflow files as replies show them.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_core::workflow::{ContentKind, FileEntry};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::kit::words;

/// Maximum size of a binary file whose content a reply includes, in bytes; larger files are fetched
/// raw.
const INLINE_BYTES: u64 = 256 * 1024;

/// A file attached to a workflow.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = WorkflowFile)]
pub struct WorkflowFileBody<'a> {
    pub path: Cow<'a, str>,
    /// The SHA-256 of its content, in hex.
    pub sha256: Cow<'a, str>,
    pub size_bytes: u64,
    pub executable: bool,
    pub content_kind: words::FileKind,
    /// Purpose of the file; null if none was given.
    #[schema(required = true)]
    pub purpose: Option<Cow<'a, str>>,
    /// Whether MCP tools can return its content.
    pub fetchable_over_mcp: bool,
    /// Always false: execution is not gated.
    pub execution_gated: bool,
}

/// A file with its content, or why the content is missing.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = WorkflowFileContent)]
pub struct WorkflowFileEnvelope<'a> {
    pub path: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub sha256: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64)]
    pub size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    pub executable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = words::FileKind)]
    pub content_kind: Option<words::FileKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub purpose: Option<Cow<'a, str>>,
    /// Text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub content: Option<Cow<'a, str>>,
    /// Bytes in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub content_base64: Option<String>,
    /// Why there is no content: `not_found`, `binary_too_large_for_inline` (fetch it with
    /// `format=raw`) or `batch_response_cap_exceeded` (fetch it separately).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub error: Option<Cow<'static, str>>,
}

/// Several files.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = WorkflowFiles)]
pub struct WorkflowFilesBody<'a> {
    pub files: Vec<WorkflowFileEnvelope<'a>>,
}

/// A file of a workflow, without its content.
pub fn manifest(file: &FileEntry) -> WorkflowFileBody<'_> {
    WorkflowFileBody {
        path: Cow::Borrowed(&file.path),
        sha256: Cow::Borrowed(&file.sha256),
        size_bytes: file.size_bytes,
        executable: file.is_executable,
        content_kind: words::FileKind(file.kind),
        purpose: purpose(file).map(Cow::Borrowed),
        fetchable_over_mcp: is_inline(file),
        execution_gated: false,
    }
}

fn purpose(file: &FileEntry) -> Option<&str> {
    (!file.purpose.is_empty()).then_some(file.purpose.as_str())
}

fn is_inline(file: &FileEntry) -> bool {
    file.kind == ContentKind::Text || file.size_bytes <= INLINE_BYTES
}

/// Whether a reply has room for the content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InlineRoom {
    Fits,
    /// The files before this one fill the reply.
    Full,
}

/// A file with its content, or the reason why the content is missing.
pub fn envelope<'a>(
    file: &'a FileEntry,
    content: &'a [u8],
    room: InlineRoom,
) -> WorkflowFileEnvelope<'a> {
    let mut envelope = WorkflowFileEnvelope {
        sha256: Some(Cow::Borrowed(&file.sha256)),
        size_bytes: Some(file.size_bytes),
        executable: Some(file.is_executable),
        content_kind: Some(words::FileKind(file.kind)),
        purpose: purpose(file).map(Cow::Borrowed),
        ..missing(&file.path)
    };
    envelope.error = None;
    match std::str::from_utf8(content) {
        _ if room == InlineRoom::Full => {
            envelope.error = Some("batch_response_cap_exceeded".into());
        }
        Ok(text) if file.kind == ContentKind::Text => envelope.content = Some(text.into()),
        _ if is_inline(file) => envelope.content_base64 = Some(STANDARD.encode(content)),
        _ => envelope.error = Some("binary_too_large_for_inline".into()),
    }
    envelope
}

/// The entry of a path that has no file.
pub fn missing(path: &str) -> WorkflowFileEnvelope<'_> {
    WorkflowFileEnvelope {
        path: Cow::Borrowed(path),
        sha256: None,
        size_bytes: None,
        executable: None,
        content_kind: None,
        purpose: None,
        content: None,
        content_base64: None,
        error: Some(Cow::Borrowed("not_found")),
    }
}
