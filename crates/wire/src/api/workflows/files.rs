//! Files of workflows as replies show them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_core::workflow::{ContentKind, FileEntry};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::kit::words;

/// The largest content of bytes that stands in a reply; larger ones are fetched raw.
const INLINE_BYTES: u64 = 256 * 1024;

/// A file attached to a workflow.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowFile)]
pub struct WorkflowFileBody<'a> {
    path: &'a str,
    /// The SHA-256 of its content, in hex.
    sha256: &'a str,
    size_bytes: u64,
    executable: bool,
    content_kind: words::FileKind,
    /// Purpose of the file; null if none was given.
    #[schema(required = true)]
    purpose: Option<&'a str>,
    /// Whether MCP tools can return its content.
    fetchable_over_mcp: bool,
    /// Always false: execution is not gated.
    execution_gated: bool,
}

/// A file with its content, or why the content is missing.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowFileContent)]
pub struct WorkflowFileEnvelope<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    sha256: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64)]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    executable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = words::FileKind)]
    content_kind: Option<words::FileKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    purpose: Option<&'a str>,
    /// Text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    content: Option<&'a str>,
    /// Bytes in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    content_base64: Option<String>,
    /// Why there is no content: `not_found`, `binary_too_large_for_inline` (fetch it with
    /// `format=raw`) or `batch_response_cap_exceeded` (fetch it separately).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    error: Option<&'static str>,
}

/// Several files.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowFiles)]
pub struct WorkflowFilesBody<'a> {
    pub files: Vec<WorkflowFileEnvelope<'a>>,
}

pub fn manifest(file: &FileEntry) -> WorkflowFileBody<'_> {
    WorkflowFileBody {
        path: &file.path,
        sha256: &file.sha256,
        size_bytes: file.size_bytes,
        executable: file.is_executable,
        content_kind: words::FileKind(file.kind),
        purpose: purpose(file),
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

/// Whether there is room for a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InlineRoom {
    Fits,
    /// Those before it fill the reply.
    Full,
}

/// A file with its content, where it stands in a reply.
pub fn envelope<'a>(
    file: &'a FileEntry,
    content: &'a [u8],
    room: InlineRoom,
) -> WorkflowFileEnvelope<'a> {
    let mut envelope = WorkflowFileEnvelope {
        sha256: Some(&file.sha256),
        size_bytes: Some(file.size_bytes),
        executable: Some(file.is_executable),
        content_kind: Some(words::FileKind(file.kind)),
        purpose: purpose(file),
        ..missing(&file.path)
    };
    envelope.error = None;
    match std::str::from_utf8(content) {
        _ if room == InlineRoom::Full => envelope.error = Some("batch_response_cap_exceeded"),
        Ok(text) if file.kind == ContentKind::Text => envelope.content = Some(text),
        _ if is_inline(file) => envelope.content_base64 = Some(STANDARD.encode(content)),
        _ => envelope.error = Some("binary_too_large_for_inline"),
    }
    envelope
}

/// A path that is not there.
pub fn missing(path: &str) -> WorkflowFileEnvelope<'_> {
    WorkflowFileEnvelope {
        path,
        sha256: None,
        size_bytes: None,
        executable: None,
        content_kind: None,
        purpose: None,
        content: None,
        content_base64: None,
        error: Some("not_found"),
    }
}
