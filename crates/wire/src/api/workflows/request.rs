//! Requests to save and to search workflows.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_core::{
    code::ProblemCode,
    verifier::{InputError, VerifierRef},
    workflow::{
        FileContent, NewBinding, NewFile, OwnershipFilter, VersionSource, draft::WorkflowDraft,
    },
};
use serde_json::Value;
use utoipa::openapi::schema::ArrayBuilder;

use crate::{
    api::kit::{
        request::{
            self, FieldFault, FieldPath, ListOf, RequestField, request, text, values,
            values::{
                Count, NotBlank, PLAIN, VersionNumber, any_text, filled, filled_text, list_of,
                text_of, texts,
            },
        },
        words,
    },
    problem::Problem,
};

request! {
    /// A version to save: the first version of a new workflow, or the next one. Unknown fields are
    /// ignored. Fields that are left out are taken from the front matter of the body, then from the
    /// previous version.
    pub open struct SaveWorkflowRequest, draft SaveWorkflowDraft {
        /// Name of the workflow; determines the slug of a new one.
        name: Option<WorkflowName>,
        /// What the workflow is for and when to use it.
        description: Option<WorkflowDescription>,
        /// Markdown, with optional front matter.
        body: WorkflowText,
        /// The current `version_token`; null or left out for a new workflow, required afterwards.
        expected_version_token: Option<String>,
        /// The measurable result of following the workflow.
        outcome: Option<WorkflowOutcome>,
        /// Tags to find it by.
        tags: Option<TagList>,
        /// How the version was created.
        source: Option<words::WorkflowSource>,
        /// The verifiers that it depends on, as a complete list: empty to clear, left out to keep. Only
        /// the owner may change them.
        verifiers: Option<ListOf<BindingRequest, 0, 64>>,
        /// Image generators are not supported: empty or left out.
        image_generators: Option<NoGenerators>,
        /// The attached files, as a complete list: empty to clear, left out to keep.
        files: Option<ListOf<FileRequest, 0, 200>>,
        /// The id of the workflow, if its name is not enough to find it.
        workflow_id: Option<String>,
        /// Alias of `workflow_id`.
        skill_id: Option<String>,
        /// The slug of the workflow, if it differs from the one made from the name.
        slug: Option<GivenSlug>,
    }

    /// A verifier that a workflow names.
    pub open struct BindingRequest, draft BindingDraft {
        /// Name of the verifier within the workflow.
        name: BindingName,
        /// The id or name of a verifier of the workflow's owner; append `@` and a version to pin one.
        verifier_id: NamedVerifier,
        /// The pinned version, if it is not appended with `@`.
        version: Option<VersionNumber>,
    }

    /// A file, with exactly one of `content`, `content_base64` and `sha256`.
    pub open struct FileRequest, draft FileDraft {
        path: WorkflowPath,
        /// Text.
        content: Option<String>,
        /// Bytes in base64.
        content_base64: Option<Base64Bytes>,
        /// The digest of content that is already stored.
        sha256: Option<KnownDigest>,
        /// Unchanged if left out.
        executable: Option<bool>,
        /// Purpose of the file; unchanged if left out.
        purpose: Option<FilePurpose>,
    }

    /// Files to add, replace or delete; all others stay.
    pub open struct PatchWorkflowFilesRequest, draft PatchWorkflowFilesDraft {
        /// The current `version_token`.
        expected_version_token: NotBlank,
        /// Files to add, replacing those with the same path.
        files: Option<ListOf<FileRequest, 0, 200>>,
        /// Paths of files to delete.
        delete_paths: Option<PathList>,
        /// How the version was created.
        source: Option<words::WorkflowSource>,
    }

    /// A search for workflows.
    pub open struct SearchWorkflowsRequest, draft SearchWorkflowsDraft {
        /// The words to search for.
        query: WorkflowSearchText,
        /// Which workflows to include; defaults to `all`.
        filter: Option<words::WhoseWorkflows>,
        /// Maximum number of results; defaults to 10.
        limit: Option<Count<1, MOST_HITS>>,
        /// Only workflows with this tag.
        tag: Option<String>,
    }
}

/// Pattern of one line of text: no control characters, and not blank.
const ONE_LINE: &str = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";
/// Pattern of a tag: no quotes, commas, backslashes, brackets or control characters, and no space
/// at either end.
const TAG: &str = r#"^[^\s\x00-\x1f\x7f-\x9f",\\\[\]]([^\x00-\x1f\x7f-\x9f",\\\[\]]*[^\s\x00-\x1f\x7f-\x9f",\\\[\]])?$"#;
/// Pattern of a path: parts separated by `/`, none of which is empty, `.` or `..`.
const PATH: &str = r"^([^./\\\x00-\x1f\x7f-\x9f][^/\\\x00-\x1f\x7f-\x9f]*|\.[^./\\\x00-\x1f\x7f-\x9f][^/\\\x00-\x1f\x7f-\x9f]*|\.\.[^/\\\x00-\x1f\x7f-\x9f]+)(/([^./\\\x00-\x1f\x7f-\x9f][^/\\\x00-\x1f\x7f-\x9f]*|\.[^./\\\x00-\x1f\x7f-\x9f][^/\\\x00-\x1f\x7f-\x9f]*|\.\.[^/\\\x00-\x1f\x7f-\x9f]+))*$";
/// Pattern of a reference to a verifier: an id or a name, with an optional version.
const VERIFIER: &str =
    "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[a-z0-9-]{1,128})(@[1-9][0-9]{0,8})?$";
const BASE64: &str = r"^\s*([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\s*$";
const MOST_HITS: u32 = 10;
const QUERY_CHARS: usize = 500;

// The draft enforces the other limits that these schemas describe, for requests and front matter
// alike.
values! {
    /// The name of a workflow.
    pub struct WorkflowName(String): text().pattern(Some(ONE_LINE)).max_length(Some(128)) => any_text;

    /// The purpose of a workflow.
    pub struct WorkflowDescription(String):
        text().pattern(Some(PLAIN)).max_length(Some(1024)) => any_text;

    /// The text of a workflow.
    pub struct WorkflowText(String): text().pattern(Some(PLAIN)).max_length(Some(524_288)) => filled;

    /// The result of following a workflow.
    pub struct WorkflowOutcome(String):
        text().pattern(Some(r"^([^\x00]*[^\s\x00][^\x00]*)?$")).max_length(Some(1024)) => any_text;

    /// A tag to find the workflow by.
    pub(crate) named struct WorkflowTag(String):
        text()
            .pattern(Some(TAG))
            .max_length(Some(64))
            .description(Some("A tag to find the workflow by."))
        => any_text;

    /// Tags to find a workflow by.
    pub struct TagList(Vec<String>):
        list_of::<WorkflowTag>().max_items(Some(32)) => texts, with WorkflowTag;

    /// Image generators, which are not supported.
    pub struct NoGenerators(()):
        ArrayBuilder::new().items(<Value as RequestField>::describe()).max_items(Some(0)) => no_generators;

    /// A slug that the caller chose instead of one made from the name.
    pub struct GivenSlug(String): text().max_length(Some(128)) => any_text;

    /// The name of a verifier within a workflow.
    pub struct BindingName(String): text().pattern(Some("^[a-z0-9][a-z0-9-]{0,127}$")) => filled;

    /// A verifier that a workflow names.
    pub struct NamedVerifier(VerifierRef as String): text().pattern(Some(VERIFIER)) => verifier;

    /// The path of a file attached to a workflow.
    pub named struct WorkflowPath(String):
        text()
            .pattern(Some(PATH))
            .max_length(Some(512))
            .description(Some("A relative path, with `/` between its parts and no `.` or `..` part."))
        => filled;

    /// Paths of files.
    pub struct PathList(Vec<String>):
        list_of::<WorkflowPath>().max_items(Some(200)) => texts, with WorkflowPath;

    /// Bytes in base64.
    pub struct Base64Bytes(Vec<u8> as String): text().pattern(Some(BASE64)) => base64;

    /// The digest of content that is already stored.
    pub struct KnownDigest(String): text().pattern(Some("^[0-9a-fA-F]{64}$")) => any_text;

    /// The purpose of a file.
    pub struct FilePurpose(String):
        text().pattern(Some(r"^[^\x00-\x1f\x7f-\x9f]*$")).max_length(Some(256)) => any_text;

    /// A search query for workflows.
    pub struct WorkflowSearchText(String):
        text().pattern(Some(PLAIN)).max_length(Some(QUERY_CHARS)) => query;
}

/// Reads a version to save.
pub fn decode_save(body: &Value) -> Result<WorkflowDraft, Problem> {
    let request: SaveWorkflowRequest = request::read(body, ProblemCode::ValidationError)?;
    let bindings = request.verifiers.map(|list| all("verifiers", list.0, BindingRequest::binding));
    let files = request.files.map(|list| all("files", list.0, FileRequest::file));
    Ok(WorkflowDraft {
        id: workflow_id(request.workflow_id, request.skill_id)?,
        slug: request.slug.map(|slug| slug.0),
        name: request.name.map(|name| name.0),
        description: request.description.map(|description| description.0),
        outcome: request.outcome.map(|outcome| outcome.0),
        tags: request.tags.map(|tags| tags.0),
        body: request.body.0,
        source: request.source.map(|source| source.0),
        expected_token: request.expected_version_token,
        bindings: bindings.transpose()?,
        files: files.transpose()?,
    })
}

fn workflow_id(one: Option<String>, other: Option<String>) -> Result<Option<String>, Problem> {
    if one.is_some() && other.is_some() && one != other {
        return Err(request::wrong("skill_id", "contradicts `workflow_id`; leave one out"));
    }
    Ok(one.or(other).map(|id| id.to_ascii_lowercase()))
}

/// Converts the items of a list; a problem names the path of the item.
fn all<T, U>(
    name: &str,
    items: Vec<T>,
    convert: fn(T, &FieldPath<'_>) -> Result<U, Problem>,
) -> Result<Vec<U>, Problem> {
    let body = FieldPath::body(ProblemCode::ValidationError);
    let list = body.member(name);
    let item = |(index, item): (usize, T)| convert(item, &list.member(&index.to_string()));
    items.into_iter().enumerate().map(item).collect()
}

impl BindingRequest {
    fn binding(self, at: &FieldPath<'_>) -> Result<NewBinding, Problem> {
        let (name, verifier) = (self.name.0, self.verifier_id.0);
        match (verifier.version, self.version.map(|version| version.0)) {
            (Some(pin), Some(version)) if pin != version => {
                let reason = "contradicts the pin of `verifier_id`; leave one out";
                Err(at.member("version").wrong(reason))
            }
            (pin, version) => {
                let verifier = VerifierRef { version: pin.or(version), ..verifier };
                Ok(NewBinding { name, verifier })
            }
        }
    }
}

impl FileRequest {
    fn file(self, at: &FieldPath<'_>) -> Result<NewFile, Problem> {
        let content = match (self.content, self.content_base64, self.sha256) {
            (Some(text), None, None) => FileContent::Bytes(text.into_bytes()),
            (None, Some(bytes), None) => FileContent::Bytes(bytes.0),
            (None, None, Some(digest)) => FileContent::Known(digest.0.to_ascii_lowercase()),
            _ => {
                let reason = "needs exactly one of `content`, `content_base64` and `sha256`";
                return Err(at.member("path").wrong(reason));
            }
        };
        Ok(NewFile {
            path: self.path.0,
            content,
            is_executable: self.executable,
            purpose: self.purpose.map(|purpose| purpose.0),
        })
    }
}

fn no_generators(value: &Value) -> Result<(), FieldFault> {
    match value.as_array().map(Vec::len) {
        Some(0) => Ok(()),
        Some(_) => {
            let reason = "names image generators, which are not supported; leave it out";
            Err(FieldFault::Unsupported(reason.into()))
        }
        None => Err("must be a list".into()),
    }
}

fn verifier(value: &Value) -> Result<VerifierRef, FieldFault> {
    VerifierRef::parse(filled_text(value)?).map_err(|error| error.to_string().into())
}

fn base64(value: &Value) -> Result<Vec<u8>, FieldFault> {
    STANDARD.decode(text_of(value)?.trim()).map_err(|_| "is not valid base64".into())
}

fn query(value: &Value) -> Result<String, FieldFault> {
    let query = filled_text(value)?;
    if query.contains('\0') || QUERY_CHARS < query.chars().count() {
        return Err(format!("must have at most {QUERY_CHARS} characters and no NUL").into());
    }
    Ok(query.to_owned())
}

/// A decoded change of files.
#[derive(Debug)]
pub struct NewFilesPatch {
    pub files: Vec<NewFile>,
    pub delete_paths: Vec<String>,
    pub source: Option<VersionSource>,
    pub expected_token: String,
}

/// Reads a change of files.
pub fn decode_patch(body: &Value) -> Result<NewFilesPatch, Problem> {
    let request: PatchWorkflowFilesRequest = request::read(body, ProblemCode::ValidationError)?;
    let files = request.files.map(|list| list.0).unwrap_or_default();
    let patch = NewFilesPatch {
        expected_token: request.expected_version_token.0,
        files: all("files", files, FileRequest::file)?,
        delete_paths: request.delete_paths.map(|paths| paths.0).unwrap_or_default(),
        source: request.source.map(|source| source.0),
    };
    if patch.files.is_empty() && patch.delete_paths.is_empty() {
        let reason = "and `delete_paths` are both empty; name at least one path";
        return Err(request::wrong("files", reason));
    }
    Ok(patch)
}

/// A decoded search for workflows.
#[derive(Debug)]
pub struct WorkflowSearchOrder {
    pub query: String,
    pub filter: OwnershipFilter,
    pub limit: u32,
    pub tag: Option<String>,
}

/// Reads a search for workflows.
pub fn decode_search(body: &Value) -> Result<WorkflowSearchOrder, Problem> {
    let request: SearchWorkflowsRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(WorkflowSearchOrder {
        query: request.query.0,
        filter: request.filter.map_or(OwnershipFilter::All, |filter| filter.0),
        limit: request.limit.map_or(MOST_HITS, |limit| limit.0),
        tag: request.tag,
    })
}

/// Reads whose workflows to list; defaults to all.
pub fn whose(text: Option<&str>) -> Result<OwnershipFilter, InputError> {
    let Some(text) = text else { return Ok(OwnershipFilter::All) };
    text.parse().map_err(|()| InputError {
        field: "filter".to_owned(),
        problem: "must be mine, all or shared-with-me".to_owned(),
    })
}
