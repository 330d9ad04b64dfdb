//! Workflows: private, versioned runbooks that name the verifiers they depend on.

pub mod authoring;
pub mod checks;
pub mod draft;
pub mod file;
pub mod front_matter;
mod reference;
pub mod search;
pub mod share;
pub mod template;

use std::str::FromStr;

pub use self::{
    file::{ContentKind, FileContent, FileEntry, NewFile},
    reference::{Slug, WorkflowRef, WorkflowRefError, WorkflowSelector},
};
use crate::{
    id::AccountId,
    round::job::words,
    time::Timestamp,
    verifier::{VerifierRef, VerifierSelector},
};

words!(
    /// What somebody may do with a workflow, from less to more.
    AccessRole {
        /// Read it, and run its verifiers.
        View => "view",
        /// Save new versions, and see and tune its verifiers.
        Edit => "edit",
        /// Share it with others.
        Admin => "admin",
        /// Everything; it is theirs.
        Owner => "owner",
    }
);

words!(
    /// What somebody may do with a verifier.
    VerifierRole {
        /// Run it.
        Exec => "exec",
        /// See it whole, measure it and deploy its next version.
        Tune => "tune",
        Owner => "owner",
    }
);

words!(
    /// How a version came to be, as its author says.
    VersionSource {
        Manual => "manual",
        Teach => "teach",
        Optimization => "optimization",
        DescriptionOptimization => "description_optimization",
        Audit => "audit",
        /// It was copied from a template.
        Fork => "fork",
    }
);

words!(
    /// Whose workflows, or templates, are meant.
    OwnershipFilter { Mine => "mine", All => "all", SharedWithMe => "shared-with-me" }
);

impl AccessRole {
    /// What comes with the role for the verifiers that the workflow names.
    pub const fn on_verifiers(self) -> VerifierRole {
        match self {
            Self::View => VerifierRole::Exec,
            Self::Edit | Self::Admin => VerifierRole::Tune,
            Self::Owner => VerifierRole::Owner,
        }
    }
}

pub const NAME_CHARS: usize = 128;
pub const DESCRIPTION_CHARS: usize = 1_024;
pub const OUTCOME_CHARS: usize = 1_024;
pub const BODY_BYTES: usize = 512 * 1024;
pub const MOST_TAGS: usize = 32;
pub const TAG_CHARS: usize = 64;
pub const MOST_BINDINGS: usize = 64;
/// The most grants of one workflow.
pub const MOST_GRANTS: u32 = 500;
/// The most grants that one account makes in a day, so that nobody's list is flooded.
pub const GRANTS_A_DAY: u32 = 200;
/// The most workflows of one owner that wait for one person to accept them.
pub const MOST_WAITING: u32 = 25;

/// A workflow as a list shows it, with what its current version says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// Whose it is.
    pub account: AccountId,
    /// A UUID.
    pub id: String,
    pub slug: String,
    pub name: String,
    pub description: String,
    pub outcome: String,
    pub tags: Vec<String>,
    pub current_version: u32,
    /// Must be given to save the next version; drawn anew with each.
    pub version_token: String,
    /// The template that it was forked from.
    pub parent: Option<ForkOrigin>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub archived_at: Option<Timestamp>,
}

/// The version of a template that a workflow was forked from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkOrigin {
    pub template_id: String,
    pub version: u32,
}

/// A workflow that somebody reaches, and how far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachableWorkflow {
    pub workflow: Workflow,
    pub role: AccessRole,
    /// The first version that is seen; zero for all.
    pub floor: u32,
    /// Who shares it with them; `None` for an owner.
    pub shared: Option<ShareOrigin>,
}

/// Whose something is that somebody else reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareOrigin {
    /// `@handle`, or the id of an account that has none.
    pub owner: String,
    /// Whether it was accepted, or comes through a team.
    pub is_accepted: bool,
}

impl ReachableWorkflow {
    pub const fn sees(&self, version: u32) -> bool {
        self.floor <= version
    }
}

/// One version of a workflow. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowVersion {
    pub version: u32,
    pub name: String,
    pub description: String,
    pub outcome: String,
    pub tags: Vec<String>,
    /// Markdown, as it was sent.
    pub body: String,
    pub source: VersionSource,
    pub bindings: Vec<VerifierBinding>,
    pub files: Vec<FileEntry>,
    pub created_by: AccountId,
    pub created_at: Timestamp,
}

/// A verifier that a workflow names, under a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierBinding {
    pub name: String,
    pub verifier_id: String,
    /// The pinned version; `None` for the current one.
    pub version: Option<u32>,
}

/// A binding as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBinding {
    pub name: String,
    pub verifier: VerifierRef,
}

impl NewBinding {
    /// Says what is wrong with it.
    pub fn check(&self) -> Result<(), &'static str> {
        match self.verifier.which {
            VerifierSelector::System(_) => Err("names a platform verifier, which needs no binding"),
            VerifierSelector::Id(_) | VerifierSelector::Name(_) | VerifierSelector::Of { .. } => {
                Ok(())
            }
        }
    }
}

/// Whether a text is a name of a binding: that of a verifier that begins with no hyphen.
pub fn is_binding_name(text: &str) -> bool {
    crate::verifier::is_name(text) && !text.starts_with('-')
}

/// Whether a text can be a tag. What would not stand alone in a list of tags cannot.
pub fn is_tag(text: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '"' | '\\' | ',' | '[' | ']');
    !text.trim().is_empty()
        && text.trim() == text
        && text.chars().count() <= TAG_CHARS
        && text.chars().all(is_plain)
}

/// Somebody who may use a workflow that is not theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantLine {
    /// Whether the grantee is a team, through which its members have it.
    pub is_team: bool,
    /// The name by which it was granted, so that no name turns into another.
    pub granted_to: String,
    pub role: AccessRole,
    /// The first version that is shared; zero for the whole history.
    pub floor: u32,
    /// What people know the one by who granted it.
    pub granted_by: String,
    pub granted_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_in_order() {
        assert!(
            AccessRole::View < AccessRole::Edit
                && AccessRole::Edit < AccessRole::Admin
                && AccessRole::Admin < AccessRole::Owner
        );
        assert!(
            VerifierRole::Exec < VerifierRole::Tune && VerifierRole::Tune < VerifierRole::Owner
        );
    }

    #[test]
    fn a_tag_stands_alone_in_a_list() {
        for tag in ["sre", "post mortem", "größe", "a/b"] {
            assert!(is_tag(tag), "{tag}");
        }
        for text in ["", " ", " a", "a,b", "a\"b", "a\\b", "a\nb", &"a".repeat(65)] {
            assert!(!is_tag(text), "{text}");
        }
    }
}
