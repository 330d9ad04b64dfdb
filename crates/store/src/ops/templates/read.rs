//! Reads templates: every query checks who may see what.

use const_format::concatcp;
use std::collections::BTreeSet;

use jurat_core::{
    account::HANDLE_REST_MICROS,
    id::AccountId,
    time::Timestamp,
    verifier::VerifierVersion,
    workflow::template::{
        Template, TemplateContent, TemplateFile, TemplateFilter, TemplateLine, TemplateRelease,
        TemplateSelector, TemplateVersion, TemplateVersionSummary,
    },
};
use serde_json::Value;

use super::{PublishedVerifierLookup, TemplateFileLookup, TemplateLookup, TemplateWordSearch};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        search::{patterns, score},
        tx::{SqlArg, Tx, args},
    },
    ops::{
        rounds::AFTER_ALL,
        verifiers::rows::{COLUMNS as VERIFIER_COLUMNS, read_version},
    },
};

const TEMPLATE_COLUMNS: &str = "\
    templates.id, templates.account_id, templates.slug, templates.workflow_id, \
    coalesce(accounts.handle, '') as handle, templates.publishing_handle, \
    templates.latest_version, templates.created_at, templates.updated_at, \
    templates.archived_at, templates.archive_reason";

/// The newest published version; for the owner the newest of all if none is published.
macro_rules! newest {
    ($viewer:literal) => {
        const_format::concatcp!(
            "coalesce((select max(others.version) from template_versions as others \
             where others.template_id = templates.id and others.unpublished_at is null), \
             (select max(others.version) from template_versions as others \
             where others.template_id = templates.id and templates.account_id = ",
            $viewer,
            "))"
        )
    };
}

/// The templates that the viewer may see: their own, and published ones that are not archived.
macro_rules! visible {
    ($viewer:literal) => {
        const_format::concatcp!(
            "(templates.account_id = ",
            $viewer,
            " or (templates.archived_at is null and template_versions.unpublished_at is null))"
        )
    };
}

const FROM_TEMPLATES: &str = " from templates join accounts on accounts.id = templates.account_id \
    join template_versions on template_versions.template_id = templates.id ";

const RELEASE_COLUMNS: &str = "\
    , template_versions.version, template_versions.summary, template_versions.published_at, \
    template_versions.unpublished_at, template_versions.deprecated_at, \
    template_versions.deprecation_message";

const GET: &str = concatcp!(
    "select ",
    TEMPLATE_COLUMNS,
    RELEASE_COLUMNS,
    ", template_versions.document",
    FROM_TEMPLATES,
    "where templates.id = $1 and ",
    visible!("$2"),
    " and template_versions.version = coalesce(cast($3 as bigint), ",
    newest!("$2"),
    ")"
);
const LIST: &str = concatcp!(
    "select ",
    TEMPLATE_COLUMNS,
    RELEASE_COLUMNS,
    FROM_TEMPLATES,
    "where ",
    visible!("$1"),
    " and template_versions.version = ",
    newest!("$1"),
    " and (cast($2 as bigint) = 0 or templates.account_id = $1) \
     and (cast($3 as bigint) = 1 or templates.archived_at is null) \
     and (cast($4 as text) is null or template_versions.search_text like $4 escape '\\' \
     or template_versions.search_body like $4 escape '\\') \
     and templates.id < $5 order by templates.id desc limit $6"
);
/// The verifiers of a version that were revoked since.
const REVOKED: &str = "\
    select distinct verifiers.id from template_pins join verifiers \
    on verifiers.account_id = template_pins.account_id \
    and verifiers.id = template_pins.verifier_id where template_pins.template_id = $1 \
    and template_pins.version = $2 and verifiers.standing <> 'active'";
/// SQLite numbers parameters by appearance, so the viewer comes first.
const SEARCH: &str = concatcp!(
    "select * from (select cast($1 as text) as asked_by, ",
    TEMPLATE_COLUMNS,
    RELEASE_COLUMNS,
    ", template_versions.search_body, ",
    score!("template_versions"),
    " as score",
    FROM_TEMPLATES,
    "where ",
    visible!("$1"),
    " and template_versions.version = ",
    newest!("$1"),
    " and (cast($18 as bigint) = 0 or templates.account_id = $1) \
     and templates.archived_at is null) as found \
     where score > 0 order by score desc, id desc limit $19"
);
pub(super) const OWN: &str = concatcp!(
    "select ",
    TEMPLATE_COLUMNS,
    " from templates join accounts on accounts.id = templates.account_id \
     where templates.id = $1 and templates.account_id = $2"
);
pub(super) const BY_WORKFLOW: &str = concatcp!(
    "select ",
    TEMPLATE_COLUMNS,
    " from templates join accounts on accounts.id = templates.account_id \
     where templates.account_id = $1 and templates.workflow_id = $2"
);
pub(super) const BY_SLUG: &str = concatcp!(
    "select ",
    TEMPLATE_COLUMNS,
    " from templates join accounts on accounts.id = templates.account_id \
     where templates.account_id = $1 and templates.slug = $2"
);
/// The accounts that have the handle, had it recently, or published something under it.
macro_rules! of_handle {
    ($table:literal) => {
        const_format::concatcp!(
            "handles.account_id = ",
            $table,
            ".account_id where handles.handle = $1 and ",
            $table,
            ".slug = $2 and (handles.left_at is null or handles.is_stamped = 1 \
             or handles.left_at > $3)"
        )
    };
}
const NAMED: &str =
    concatcp!("select templates.id from templates join handles on ", of_handle!("templates"));
const MOVED: &str = concatcp!(
    "select template_moves.template_id as id from template_moves join handles on ",
    of_handle!("template_moves")
);
const FILES: &str = "\
    select path, sha256, size_bytes, is_executable, content_kind, purpose from template_files \
    where template_id = $1 and version = $2 order by path";
const FILE: &str = concatcp!(
    "select template_files.path, template_files.sha256, template_files.size_bytes, \
     template_files.is_executable, template_files.content_kind, template_files.purpose, \
     template_files.content from template_files \
     join templates on templates.id = template_files.template_id \
     join template_versions on template_versions.template_id = template_files.template_id \
     and template_versions.version = template_files.version \
     where template_files.template_id = $1 and template_files.version = $2 \
     and template_files.path = $3 and ",
    visible!("$4")
);
/// From versions of verifiers to the live versions of templates that were published with them.
const LIVE_PINS: &str = "\
    from template_pins join template_versions \
    on template_versions.template_id = template_pins.template_id \
    and template_versions.version = template_pins.version \
    and template_versions.unpublished_at is null \
    join templates on templates.id = template_pins.template_id \
    and templates.archived_at is null ";

/// The pins come first, so that a foreign verifier that is not published takes as long as a missing
/// one.
const PUBLISHED: &str = concatcp!(
    "select ",
    VERIFIER_COLUMNS,
    ", verifier_versions.version, verifier_versions.description as version_description, \
     verifier_versions.config, verifier_versions.config_hash, verifier_versions.deployed_at \
     from (select distinct template_pins.verifier_id, template_pins.verifier_version ",
    LIVE_PINS,
    "where template_pins.verifier_id = $1) as pinned cross join verifiers join verifier_versions \
     on verifier_versions.verifier_id = verifiers.id \
     and verifier_versions.account_id = verifiers.account_id \
     where verifiers.id = pinned.verifier_id and verifiers.standing = 'active' \
     and verifier_versions.version = pinned.verifier_version \
     and verifier_versions.version = coalesce(cast($2 as bigint), verifiers.current_version)"
);
/// The live versions of templates that were published with any version of a verifier.
pub(crate) const SERVING: &str = concatcp!(
    "select distinct accounts.handle, templates.slug, template_versions.version ",
    LIVE_PINS,
    "join accounts on accounts.id = templates.account_id where template_pins.verifier_id = $1 \
     order by accounts.handle, templates.slug, template_versions.version limit 20"
);

/// A template with its version, in the form in which a problem names it.
pub(crate) fn read_serving(cells: &dyn DbRow) -> Result<String> {
    let columns = RowReader::new(cells, "templates", "slug")?;
    let handle = columns.maybe_text("handle")?.unwrap_or_default();
    Ok(format!("@{handle}/{}@v{}", columns.text("slug")?, columns.number("version")?))
}

pub(super) fn read_template(cells: &dyn DbRow) -> Result<Template> {
    let columns = RowReader::new(cells, "templates", "id")?;
    Ok(Template {
        id: columns.text("id")?,
        account: columns.id("account_id", AccountId::parse)?,
        slug: columns.text("slug")?,
        workflow_id: columns.text("workflow_id")?,
        handle: columns.text("handle")?,
        publishing_handle: columns.text("publishing_handle")?,
        latest_version: columns.count("latest_version")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
        archived_at: columns.maybe_time("archived_at")?,
        archive_reason: columns.maybe_text("archive_reason")?,
    })
}

fn read_line(cells: &dyn DbRow) -> Result<TemplateLine> {
    let columns = RowReader::new(cells, "template_versions", "id")?;
    let summary: Value = columns.document("summary")?;
    Ok(TemplateLine {
        template: read_template(cells)?,
        release: TemplateRelease {
            version: columns.count("version")?,
            published_at: columns.time("published_at")?,
            unpublished_at: columns.maybe_time("unpublished_at")?,
            deprecated_at: columns.maybe_time("deprecated_at")?,
            deprecation_message: columns.maybe_text("deprecation_message")?,
        },
        summary: TemplateVersionSummary::read(&summary)
            .ok_or_else(|| columns.bad("summary", "it is none"))?,
    })
}

fn read_whole(cells: &dyn DbRow) -> Result<TemplateVersion> {
    let TemplateLine { template, release, summary } = read_line(cells)?;
    let columns = RowReader::new(cells, "template_versions", "id")?;
    let document: Value = columns.document("document")?;
    let content =
        TemplateContent::read(&document).ok_or_else(|| columns.bad("document", "it is none"))?;
    let (files, revoked) = (Vec::new(), BTreeSet::new());
    Ok(TemplateVersion { template, release, summary, content, files, revoked })
}

fn read_file(cells: &dyn DbRow) -> Result<TemplateFile> {
    let columns = RowReader::new(cells, "template_files", "path")?;
    Ok(TemplateFile {
        path: columns.text("path")?,
        sha256: columns.text("sha256")?,
        size_bytes: columns.count("size_bytes")?,
        is_executable: columns.number("is_executable")? != 0,
        content_kind: columns.text("content_kind")?,
        purpose: columns.text("purpose")?,
    })
}

fn read_id(cells: &dyn DbRow) -> Result<String> {
    RowReader::new(cells, "templates", "id")?.text("id")
}

/// The id of a template, regardless of who may see it: by its current name, or by an old one.
pub(super) async fn find(
    tx: &mut Tx<'_>,
    which: &TemplateSelector,
    now: Timestamp,
) -> Result<Option<String>> {
    let (handle, slug) = match which {
        TemplateSelector::Id(id) => return Ok(Some(id.clone())),
        TemplateSelector::Named { handle, slug } => (handle, slug),
    };
    let since = now.micros().saturating_sub(HANDLE_REST_MICROS);
    let found = tx.first(NAMED, args![handle, slug, since], read_id).await?;
    match found {
        Some(id) => Ok(Some(id)),
        None => tx.first(MOVED, args![handle, slug, since], read_id).await,
    }
}

pub(super) async fn get(
    tx: &mut Tx<'_>,
    asked: &TemplateLookup,
) -> Result<Option<TemplateVersion>> {
    let Some(id) = find(tx, &asked.which, asked.now).await? else { return Ok(None) };
    let args = args![&id, seen_by(asked.viewer.as_ref()), asked.version];
    let Some(mut found) = tx.first(GET, args, read_whole).await? else { return Ok(None) };
    let place = || args![&id, found.release.version];
    let files = tx.all(FILES, place(), read_file).await?;
    let revoked = tx.all(REVOKED, place(), read_id).await?;
    (found.files, found.revoked) = (files, revoked.into_iter().collect());
    Ok(Some(found))
}

fn seen_by(viewer: Option<&AccountId>) -> SqlArg {
    SqlArg::from(viewer.map(AccountId::as_str))
}

pub(super) async fn list(tx: &mut Tx<'_>, filter: &TemplateFilter) -> Result<Vec<TemplateLine>> {
    let pattern = filter.search.as_ref().map(|text| {
        let text = text.to_lowercase();
        let text = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        format!("%{text}%")
    });
    let args = args![
        seen_by(filter.viewer.as_ref()),
        filter.is_mine,
        filter.with_archived,
        pattern.as_deref(),
        filter.before.as_deref().unwrap_or(AFTER_ALL),
        filter.limit
    ];
    tx.all(LIST, args, read_line).await
}

/// The best matches, roughly best first, each with the words of its body.
pub(super) async fn search(
    tx: &mut Tx<'_>,
    wanted: &TemplateWordSearch,
) -> Result<Vec<(TemplateLine, String)>> {
    let read = |cells: &dyn DbRow| {
        let body = RowReader::new(cells, "template_versions", "id")?.text("search_body")?;
        Ok((read_line(cells)?, body))
    };
    let mut args = vec![seen_by(wanted.viewer.as_ref())];
    args.extend(patterns(&wanted.words));
    args.extend(args![wanted.is_mine, wanted.limit]);
    tx.all(SEARCH, args, read).await
}

pub(super) async fn file(
    tx: &mut Tx<'_>,
    asked: &TemplateFileLookup,
) -> Result<Option<(TemplateFile, Vec<u8>)>> {
    let read = |cells: &dyn DbRow| {
        let content = RowReader::new(cells, "template_files", "path")?.bytes("content")?;
        Ok((read_file(cells)?, content))
    };
    let TemplateFileLookup { template, version, path, viewer } = asked;
    tx.first(FILE, args![template, *version, path, seen_by(viewer.as_ref())], read).await
}

pub(super) async fn published(
    tx: &mut Tx<'_>,
    pair: &PublishedVerifierLookup,
) -> Result<Option<VerifierVersion>> {
    let args = args![&pair.verifier, pair.version];
    tx.first(PUBLISHED, args, read_version).await
}
