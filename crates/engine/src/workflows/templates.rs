//! Operations on templates: everybody may read live ones, and only owners change their state.

mod fork;
mod publish;
mod screen;

use jurat_core::{
    account::caller::{Caller, Scope},
    id,
    workflow::{
        operation::OfferOutcome,
        search::{self, MOST_CANDIDATES, SearchTexts},
        template::{
            ChangedTemplate, Template, TemplateChangeKind, TemplateFile, TemplateFilter,
            TemplateLine, TemplateRef, TemplateSelector, TemplateVersion,
        },
    },
};
use jurat_store::{
    Behalf, TemplateChange, TemplateChangeRefusal, TemplateFileLookup, TemplateLookup,
    TemplateOffer, TemplateOfferRefusal, TemplateWordSearch,
};

pub use self::{
    fork::ForkOrder,
    publish::PublishOrder,
    screen::{SafetyReport, ScreenResult, ScreenVerdict},
};
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves,
    access::{behalf_of_viewer, require_scope, viewer},
    accounts::{invitations, teams::parse_user},
};

/// A version as a reader sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateView {
    pub found: TemplateVersion,
    pub is_owner: bool,
    /// The new name, if it was looked up under an old one.
    pub moved: Option<TemplateMove>,
}

/// A move from one handle to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateMove {
    pub from: String,
    pub to: String,
    /// The current name, with the requested version.
    pub name: String,
}

/// A file with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFileView {
    pub file: TemplateFile,
    pub content: Vec<u8>,
    pub moved: Option<TemplateMove>,
}

impl Engine {
    /// Templates that the caller may see, newest first; anybody may ask.
    pub async fn template_list(
        &self,
        caller: Option<&Caller>,
        filter: TemplateFilter,
    ) -> Result<Vec<TemplateLine>, EngineError> {
        let viewer = viewer(caller);
        if filter.is_mine && viewer.is_none() {
            return Ok(Vec::new());
        }
        let filter = TemplateFilter { viewer, ..filter };
        Ok(self.inner.store.templates().list(&behalf_of_viewer(caller), &filter).await?)
    }

    /// The templates that match a query best, best first and each with the reason; anybody may ask.
    pub async fn template_search(
        &self,
        caller: Option<&Caller>,
        query: &str,
        is_mine: bool,
        limit: usize,
    ) -> Result<Vec<(TemplateLine, String)>, EngineError> {
        let viewer = viewer(caller);
        if is_mine && viewer.is_none() {
            return Ok(Vec::new());
        }
        let words = search::words(query);
        let wanted = TemplateWordSearch { viewer, is_mine, words, limit: MOST_CANDIDATES };
        let found = self.inner.store.templates().search(&behalf_of_viewer(caller), &wanted).await?;
        let hits = search::best(query, found, limit, texts);
        Ok(hits.into_iter().map(|((line, _), reason)| (line, reason)).collect())
    }

    /// A version that the caller may see; anybody may ask.
    pub async fn template_get(
        &self,
        caller: Option<&Caller>,
        wanted: &TemplateRef,
    ) -> Result<TemplateView, EngineError> {
        let TemplateRef { which, version } = wanted.clone();
        let (viewer, now) = (viewer(caller), self.inner.clock.now());
        let asked = TemplateLookup { which, version, viewer, now };
        let found = self.inner.store.templates().get(&behalf_of_viewer(caller), &asked).await?;
        let found = found.ok_or_else(|| unknown_template(wanted))?;
        let is_owner = asked.viewer.as_ref() == Some(&found.template.account);
        let moved = template_move(wanted, &found);
        Ok(TemplateView { found, is_owner, moved })
    }

    /// The content of a file of a version that the caller may see.
    pub async fn template_file(
        &self,
        caller: Option<&Caller>,
        wanted: &TemplateRef,
        path: &str,
    ) -> Result<TemplateFileView, EngineError> {
        let view = self.template_get(caller, wanted).await?;
        let asked = TemplateFileLookup {
            template: view.found.template.id,
            version: view.found.release.version,
            path: path.to_owned(),
            viewer: viewer(caller),
        };
        let found = self.inner.store.templates().file(&behalf_of_viewer(caller), &asked).await?;
        let (file, content) = found.ok_or_else(|| EngineError::NotFound {
            what: "file",
            id: path.chars().take(200).collect(),
        })?;
        Ok(TemplateFileView { file, content, moved: view.moved })
    }

    /// Changes the state of one of the caller's templates.
    pub async fn template_change(
        &self,
        caller: &Caller,
        wanted: &TemplateRef,
        change: TemplateChangeKind,
        keyed: Option<IdempotentWrite<ChangedTemplate>>,
    ) -> Result<IdempotentOutcome<ChangedTemplate>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        let leaves = match change {
            TemplateChangeKind::Deprecate(..) => Leaves::Rows,
            TemplateChangeKind::Unarchive => Leaves::Note,
            // A template must be unpublished or archived before it is deleted.
            TemplateChangeKind::Unpublish(_)
            | TemplateChangeKind::Archive(_)
            | TemplateChangeKind::DeleteVersion(_)
            | TemplateChangeKind::Delete => Leaves::Less,
        };
        let change = TemplateChange {
            account: caller.account().clone(),
            which: wanted.which.clone(),
            change,
            at: self.inner.clock.now(),
        };
        let templates = self.inner.store.templates();
        let done = self.write_idempotent(caller, keyed.as_ref(), leaves, async |once| {
            templates.change(&Behalf::Account(caller.account().clone()), &change, once).await
        });
        done.await?.map_err(|refused| refusal(&refused, wanted))
    }

    /// Offers ownership of one of the caller's templates.
    pub async fn template_transfer(
        &self,
        caller: &Caller,
        wanted: &TemplateRef,
        to: &str,
        keyed: Option<IdempotentWrite<OfferOutcome<Template>>>,
    ) -> Result<IdempotentOutcome<OfferOutcome<Template>>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        let at = self.inner.clock.now();
        let offer = TemplateOffer {
            account: caller.account().clone(),
            which: wanted.which.clone(),
            to: parse_user(to)?,
            invitation_id: id::uuid(at, self.inner.clock.bits()),
            at,
        };
        let templates = self.inner.store.templates();
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Note, async |once| {
            templates.offer(&Behalf::Account(caller.account().clone()), &offer, once).await
        });
        let done = done.await?.map_err(|refused| match refused {
            TemplateOfferRefusal::Unknown => unknown_template(wanted),
            TemplateOfferRefusal::Invitation(refused) => invitations::offer_refusal(&refused, to),
        })?;
        self.mail_offer(&done);
        Ok(done)
    }
}

fn texts((line, body): &(TemplateLine, String)) -> SearchTexts<'_> {
    SearchTexts {
        name: &line.summary.name,
        slug: &line.template.slug,
        tags: &line.summary.tags,
        description: &line.summary.description,
        outcome: &line.summary.outcome,
        body,
    }
}

fn unknown_template(wanted: &TemplateRef) -> EngineError {
    EngineError::NotFound { what: "template", id: wanted.to_string() }
}

fn template_move(wanted: &TemplateRef, found: &TemplateVersion) -> Option<TemplateMove> {
    let TemplateSelector::Named { handle, slug } = &wanted.which else { return None };
    let template = &found.template;
    if *handle == template.handle && *slug == template.slug {
        return None;
    }
    let which =
        TemplateSelector::Named { handle: template.handle.clone(), slug: template.slug.clone() };
    let name = TemplateRef { which, version: wanted.version }.to_string();
    Some(TemplateMove { from: handle.clone(), to: template.handle.clone(), name })
}

fn refusal(refused: &TemplateChangeRefusal, wanted: &TemplateRef) -> EngineError {
    match refused {
        TemplateChangeRefusal::Unknown => unknown_template(wanted),
        TemplateChangeRefusal::VersionUnknown => {
            EngineError::NotFound { what: "version of the template", id: wanted.to_string() }
        }
        TemplateChangeRefusal::StillPublished => EngineError::Conflict(
            "the version is published; unpublish it first, then delete it".to_owned(),
        ),
        TemplateChangeRefusal::Live => EngineError::Conflict(
            "the template has a published version; unpublish all versions or archive it first, then delete it"
                .to_owned(),
        ),
    }
}
