//! What is sent to save and to search workflows.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_core::{
    code::ProblemCode,
    verifier::{InputError, VerifierRef},
    workflow::{
        FileContent, NewBinding, NewFile, OwnershipFilter, VersionSource, draft::WorkflowDraft,
    },
};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    api::kit::{
        choices::{WorkflowPath, WorkflowTag},
        fields::RequestFields,
        words,
    },
    problem::Problem,
};

/// A version to save: the first version of a new workflow, or the next one. Unknown fields are
/// ignored. Fields that are left out are taken from the front matter of the body, then from the
/// previous version.
#[derive(Debug, ToSchema)]
pub struct SaveWorkflowRequest {
    /// Name of the workflow; determines the slug of a new one.
    #[schema(
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$",
        max_length = 128
    )]
    pub name: Option<String>,
    /// What the workflow is for and when to use it.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 1024)]
    pub description: Option<String>,
    /// Markdown, with optional front matter.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 524_288)]
    pub body: String,
    /// The current `version_token`; null or left out for a new workflow, required afterwards.
    pub expected_version_token: Option<String>,
    /// The measurable result of following the workflow.
    #[schema(pattern = r"^([^\x00]*[^\s\x00][^\x00]*)?$", max_length = 1024)]
    pub outcome: Option<String>,
    /// Tags to find it by.
    #[schema(max_items = 32)]
    pub tags: Option<Vec<WorkflowTag>>,
    /// How the version was created.
    pub source: Option<words::WorkflowSource>,
    /// The verifiers that it depends on, as a complete list: empty to clear, left out to keep. Only
    /// the owner may change them.
    #[schema(max_items = 64)]
    pub verifiers: Option<Vec<BindingRequest>>,
    /// Image generators are not supported: empty or left out.
    #[schema(max_items = 0, value_type = Option<Vec<Value>>)]
    pub image_generators: Option<Vec<Value>>,
    /// The attached files, as a complete list: empty to clear, left out to keep.
    #[schema(max_items = 200)]
    pub files: Option<Vec<FileRequest>>,
    /// The id of the workflow, if its name is not enough to find it.
    pub workflow_id: Option<String>,
    /// Alias of `workflow_id`.
    pub skill_id: Option<String>,
    /// The slug of the workflow, if it differs from the one made from the name.
    #[schema(max_length = 128)]
    pub slug: Option<String>,
}

/// A verifier that a workflow names.
#[derive(Debug, ToSchema)]
pub struct BindingRequest {
    /// Name of the verifier within the workflow.
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{0,127}$")]
    pub name: String,
    /// The id or name of a verifier of the workflow's owner; append `@` and a version to pin one.
    #[schema(
        pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[a-z0-9-]{1,128})(@[1-9][0-9]{0,8})?$"
    )]
    pub verifier_id: String,
    /// The pinned version, if it is not appended with `@`.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// A file, with exactly one of `content`, `content_base64` and `sha256`.
#[derive(Debug, ToSchema)]
pub struct FileRequest {
    pub path: WorkflowPath,
    /// Text.
    pub content: Option<String>,
    /// Bytes in base64.
    #[schema(pattern = r"^\s*([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\s*$")]
    pub content_base64: Option<String>,
    /// The digest of content that is already stored.
    #[schema(pattern = "^[0-9a-fA-F]{64}$")]
    pub sha256: Option<String>,
    /// Unchanged if left out.
    pub executable: Option<bool>,
    /// Purpose of the file; unchanged if left out.
    #[schema(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", max_length = 256)]
    pub purpose: Option<String>,
}

/// Files to add, replace or delete; all others stay.
#[derive(Debug, ToSchema)]
pub struct PatchWorkflowFilesRequest {
    /// The current `version_token`.
    #[schema(pattern = r"\S")]
    pub expected_version_token: String,
    /// Files to add, replacing those with the same path.
    #[schema(max_items = 200)]
    pub files: Option<Vec<FileRequest>>,
    /// Paths of files to delete.
    #[schema(max_items = 200)]
    pub delete_paths: Option<Vec<WorkflowPath>>,
    /// How the version was created.
    pub source: Option<words::WorkflowSource>,
}

/// A search for workflows.
#[derive(Debug, ToSchema)]
pub struct SearchWorkflowsRequest {
    /// The words to search for.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 500)]
    pub query: String,
    /// Which workflows to include; defaults to `all`.
    pub filter: Option<words::WhoseWorkflows>,
    /// Maximum number of results; defaults to 10.
    #[schema(minimum = 1, maximum = 10)]
    pub limit: Option<u32>,
    /// Only workflows with this tag.
    pub tag: Option<String>,
}

const SOURCES: &[&str] =
    &["manual", "teach", "optimization", "description_optimization", "audit", "fork"];

/// The draft that a body asks for.
pub fn decode_save(body: &Value) -> Result<WorkflowDraft, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    if !body.objects("image_generators")?.is_empty() {
        let reason = "names image generators, which are not supported; leave it out";
        return Err(body.unsupported("image_generators", reason));
    }
    let text = |field: &str| body.text(field).map(|text| text.map(str::to_owned));
    let tags = match body.get("tags") {
        None => None,
        Some(_) => Some(body.texts("tags")?.into_iter().map(str::to_owned).collect()),
    };
    Ok(WorkflowDraft {
        id: workflow_id(&body)?,
        slug: text("slug")?,
        name: text("name")?,
        description: text("description")?,
        outcome: text("outcome")?,
        tags,
        body: body.required_text("body")?.to_owned(),
        source: body.word::<VersionSource>("source", SOURCES)?,
        expected_token: text("expected_version_token")?,
        bindings: listed(&body, "verifiers", binding)?,
        files: listed(&body, "files", file)?,
    })
}

fn workflow_id(body: &RequestFields<'_>) -> Result<Option<String>, Problem> {
    let (one, other) = (body.text("workflow_id")?, body.text("skill_id")?);
    match (one, other) {
        (Some(one), Some(other)) if one != other => {
            Err(body.wrong("skill_id", "contradicts `workflow_id`; leave one out"))
        }
        (one, other) => Ok(one.or(other).map(str::to_ascii_lowercase)),
    }
}

/// A list that is there, also when it is empty.
fn listed<T>(
    body: &RequestFields<'_>,
    name: &str,
    read: fn(&RequestFields<'_>) -> Result<T, Problem>,
) -> Result<Option<Vec<T>>, Problem> {
    match body.get(name) {
        None => Ok(None),
        Some(_) => body.objects(name)?.iter().map(read).collect::<Result<_, _>>().map(Some),
    }
}

fn binding(binding: &RequestFields<'_>) -> Result<NewBinding, Problem> {
    let name = binding.required_text("name")?.to_owned();
    let text = binding.required_text("verifier_id")?;
    let verifier = VerifierRef::parse(text)
        .map_err(|error| binding.wrong("verifier_id", &error.to_string()))?;
    let version = binding.whole("version", 1, u64::from(u32::MAX))?;
    let version = version.and_then(|version| u32::try_from(version).ok());
    match (verifier.version, version) {
        (Some(pin), Some(version)) if pin != version => {
            Err(binding.wrong("version", "contradicts the pin of `verifier_id`; leave one out"))
        }
        (pin, version) => {
            Ok(NewBinding { name, verifier: VerifierRef { version: pin.or(version), ..verifier } })
        }
    }
}

fn file(file: &RequestFields<'_>) -> Result<NewFile, Problem> {
    let texts = (file.text("content")?, file.text("content_base64")?, file.text("sha256")?);
    let content = match texts {
        (Some(text), None, None) => FileContent::Bytes(text.as_bytes().to_vec()),
        (None, Some(text), None) => {
            let bytes = STANDARD.decode(text.trim());
            FileContent::Bytes(
                bytes.map_err(|_| file.wrong("content_base64", "is not valid base64"))?,
            )
        }
        (None, None, Some(digest)) => FileContent::Known(digest.to_ascii_lowercase()),
        _ => {
            let reason = "needs exactly one of `content`, `content_base64` and `sha256`";
            return Err(file.wrong("path", reason));
        }
    };
    Ok(NewFile {
        path: file.required_text("path")?.to_owned(),
        content,
        is_executable: file.flag("executable")?,
        purpose: file.text("purpose")?.map(str::to_owned),
    })
}

/// A change of files alone.
#[derive(Debug)]
pub struct NewFilesPatch {
    pub files: Vec<NewFile>,
    pub delete_paths: Vec<String>,
    pub source: Option<VersionSource>,
    pub expected_token: String,
}

pub fn decode_patch(body: &Value) -> Result<NewFilesPatch, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    let patch = NewFilesPatch {
        expected_token: body.required_text("expected_version_token")?.to_owned(),
        files: listed(&body, "files", file)?.unwrap_or_default(),
        delete_paths: body.texts("delete_paths")?.into_iter().map(str::to_owned).collect(),
        source: body.word::<VersionSource>("source", SOURCES)?,
    };
    if patch.files.is_empty() && patch.delete_paths.is_empty() {
        return Err(
            body.wrong("files", "and `delete_paths` are both empty; name at least one path")
        );
    }
    Ok(patch)
}

/// What a search asks for.
#[derive(Debug)]
pub struct WorkflowSearchOrder {
    pub query: String,
    pub filter: OwnershipFilter,
    pub limit: u32,
    pub tag: Option<String>,
}

/// The most hits of a search.
const MOST_HITS: u64 = 10;
const QUERY_CHARS: usize = 500;

pub fn decode_search(body: &Value) -> Result<WorkflowSearchOrder, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    let query = body.required_text("query")?;
    if query.contains('\0') || query.chars().count() > QUERY_CHARS {
        let reason = format!("must have at most {QUERY_CHARS} characters and no NUL");
        return Err(body.wrong("query", &reason));
    }
    let limit = body.whole("limit", 1, MOST_HITS)?.unwrap_or(MOST_HITS);
    Ok(WorkflowSearchOrder {
        query: query.to_owned(),
        filter: body
            .word("filter", &["mine", "all", "shared-with-me"])?
            .unwrap_or(OwnershipFilter::All),
        limit: u32::try_from(limit).unwrap_or(1),
        tag: body.text("tag")?.map(str::to_owned),
    })
}

/// Whose workflows a list shows.
pub fn whose(text: Option<&str>) -> Result<OwnershipFilter, InputError> {
    let Some(text) = text else { return Ok(OwnershipFilter::All) };
    text.parse().map_err(|()| InputError {
        field: "filter".to_owned(),
        problem: "must be mine, all or shared-with-me".to_owned(),
    })
}
