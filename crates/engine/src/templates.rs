//! Operations on templates: everybody may read what is live, and only owners change how it stands.

mod fork;
mod publish;
mod screen;

use jurat_core::{
    caller::{Caller, Scope},
    id::{self, AccountId},
    search::{self, MOST_CANDIDATES, Texts},
    template::{Template, TemplateFile, TemplateLine, TemplateRef, TemplateVersion, WhichTemplate},
};
use jurat_store::{
    Behalf, Change, ChangeRefused, Changed, Offered, TemplateAsked, TemplateChange,
    TemplateFileAsked, TemplateFilter, TemplateOffer, TemplateOfferRefused, TemplateWords,
};

pub use self::{
    fork::ForkOrder,
    publish::PublishOrder,
    screen::{SafetyCheck, ScreenRun, ScreenVerdict},
};
use crate::{
    Done, Engine, EngineError, Keyed, Leaves, executors::require, invitations, teams::user,
};

/// A version as somebody sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateView {
    pub found: TemplateVersion,
    pub is_owner: bool,
    /// Where it is, when it was looked for where it was.
    pub moved: Option<Moved>,
}

/// From one handle to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub from: String,
    pub to: String,
    /// The present name, with the version that was asked for.
    pub name: String,
}

/// A file with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileView {
    pub file: TemplateFile,
    pub content: Vec<u8>,
    pub moved: Option<Moved>,
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
        Ok(self.inner.store.sharing().template_list(&behalf(caller), &filter).await?)
    }

    /// The templates that fit a question best, best first and each with the reason; anybody may
    /// ask.
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
        let wanted = TemplateWords { viewer, is_mine, words, limit: MOST_CANDIDATES };
        let found = self.inner.store.sharing().template_search(&behalf(caller), &wanted).await?;
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
        let asked = TemplateAsked { which, version, viewer, now };
        let found = self.inner.store.sharing().template_get(&behalf(caller), &asked).await?;
        let found = found.ok_or_else(|| unknown(wanted))?;
        let is_owner = asked.viewer.as_ref() == Some(&found.template.account);
        let moved = moved(wanted, &found);
        Ok(TemplateView { found, is_owner, moved })
    }

    /// The bytes of a file of a version that the caller may see.
    pub async fn template_file(
        &self,
        caller: Option<&Caller>,
        wanted: &TemplateRef,
        path: &str,
    ) -> Result<FileView, EngineError> {
        let view = self.template_get(caller, wanted).await?;
        let asked = TemplateFileAsked {
            template: view.found.template.id,
            version: view.found.release.version,
            path: path.to_owned(),
            viewer: viewer(caller),
        };
        let found = self.inner.store.sharing().template_file(&behalf(caller), &asked).await?;
        let (file, content) = found.ok_or_else(|| EngineError::NotFound {
            what: "file",
            id: path.chars().take(200).collect(),
        })?;
        Ok(FileView { file, content, moved: view.moved })
    }

    /// Changes how a template of the caller stands.
    pub async fn template_change(
        &self,
        caller: &Caller,
        wanted: &TemplateRef,
        change: Change,
        keyed: Option<Keyed<Changed>>,
    ) -> Result<Done<Changed>, EngineError> {
        require(caller, Scope::WorkflowsWrite)?;
        let leaves = match change {
            Change::Deprecate(..) => Leaves::Rows,
            Change::Unarchive => Leaves::Note,
            // A template must be unpublished or archived before it is deleted.
            Change::Unpublish(_)
            | Change::Archive(_)
            | Change::DeleteVersion(_)
            | Change::Delete => Leaves::Less,
        };
        let change = TemplateChange {
            account: caller.account().clone(),
            which: wanted.which.clone(),
            change,
            at: self.inner.clock.now(),
        };
        let sharing = self.inner.store.sharing();
        let done = self.write_once(caller, keyed.as_ref(), leaves, async |once| {
            sharing.template_change(&Behalf::Account(caller.account().clone()), &change, once).await
        });
        done.await?.map_err(|refused| refusal(&refused, wanted))
    }

    /// Offers a template of the caller to somebody, who may accept it.
    pub async fn template_offer(
        &self,
        caller: &Caller,
        wanted: &TemplateRef,
        to: &str,
        keyed: Option<Keyed<Offered<Template>>>,
    ) -> Result<Done<Offered<Template>>, EngineError> {
        require(caller, Scope::WorkflowsWrite)?;
        let at = self.inner.clock.now();
        let offer = TemplateOffer {
            account: caller.account().clone(),
            which: wanted.which.clone(),
            to: user(to)?,
            invitation_id: id::uuid(at, self.inner.clock.bits()),
            at,
        };
        let sharing = self.inner.store.sharing();
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Note, async |once| {
            sharing.template_offer(&Behalf::Account(caller.account().clone()), &offer, once).await
        });
        let done = done.await?.map_err(|refused| match refused {
            TemplateOfferRefused::Unknown => unknown(wanted),
            TemplateOfferRefused::Invitation(refused) => invitations::refusal(&refused, to),
        })?;
        self.mail_offer(&done);
        Ok(done)
    }
}

fn texts((line, body): &(TemplateLine, String)) -> Texts<'_> {
    Texts {
        name: &line.summary.name,
        slug: &line.template.slug,
        tags: &line.summary.tags,
        description: &line.summary.description,
        outcome: &line.summary.outcome,
        body,
    }
}

/// Whose own templates are seen with the others. A key that may not read workflows sees what
/// everybody sees.
fn viewer(caller: Option<&Caller>) -> Option<AccountId> {
    caller.filter(|caller| caller.may(Scope::WorkflowsRead)).map(|caller| caller.account().clone())
}

fn behalf(caller: Option<&Caller>) -> Behalf {
    caller.map_or(Behalf::Platform, |caller| Behalf::Account(caller.account().clone()))
}

fn unknown(wanted: &TemplateRef) -> EngineError {
    EngineError::NotFound { what: "template", id: wanted.to_string() }
}

fn moved(wanted: &TemplateRef, found: &TemplateVersion) -> Option<Moved> {
    let WhichTemplate::Named { handle, slug } = &wanted.which else { return None };
    let template = &found.template;
    if *handle == template.handle && *slug == template.slug {
        return None;
    }
    let which =
        WhichTemplate::Named { handle: template.handle.clone(), slug: template.slug.clone() };
    let name = TemplateRef { which, version: wanted.version }.to_string();
    Some(Moved { from: handle.clone(), to: template.handle.clone(), name })
}

fn refusal(refused: &ChangeRefused, wanted: &TemplateRef) -> EngineError {
    match refused {
        ChangeRefused::Unknown => unknown(wanted),
        ChangeRefused::VersionUnknown => {
            EngineError::NotFound { what: "version of the template", id: wanted.to_string() }
        }
        ChangeRefused::StillPublished => EngineError::Conflict(
            "the version is published; unpublish it first, then delete it".to_owned(),
        ),
        ChangeRefused::Live => EngineError::Conflict(
            "the template has a published version; unpublish all versions or archive it first, then delete it"
                .to_owned(),
        ),
    }
}
