//! Workflows: private, versioned runbooks that name the verifiers they depend on.

pub mod authoring;
pub mod checks;
pub mod draft;
pub mod file;
pub mod front_matter;
pub mod operation;
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
    /// A role on a workflow, from the fewest rights to the most.
    AccessRole {
        /// Read it, and run its verifiers.
        View => "view",
        /// Save new versions, and read and tune its verifiers.
        Edit => "edit",
        /// Share it with others.
        Admin => "admin",
        /// Everything, including transferring and deleting it.
        Owner => "owner",
    }
);

words!(
    /// A role on a verifier.
    VerifierRole {
        /// Run it.
        Exec => "exec",
        /// Read all of it, measure it and deploy its next version.
        Tune => "tune",
        Owner => "owner",
    }
);

words!(
    /// The origin of a version, as its author states it.
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
    /// Selects workflows or templates by their owner.
    OwnershipFilter { Mine => "mine", All => "all", SharedWithMe => "shared-with-me" }
);

impl AccessRole {
    /// The role on the verifiers of the workflow that this role includes.
    pub const fn on_verifiers(self) -> VerifierRole {
        match self {
            Self::View => VerifierRole::Exec,
            Self::Edit | Self::Admin => VerifierRole::Tune,
            Self::Owner => VerifierRole::Owner,
        }
    }
}

/// The maximum length of a name, in characters.
pub const NAME_CHARS: usize = 128;
/// The maximum length of a description, in characters.
pub const DESCRIPTION_CHARS: usize = 1_024;
/// The maximum length of an outcome, in characters.
pub const OUTCOME_CHARS: usize = 1_024;
/// The maximum size of a body, in bytes.
pub const BODY_BYTES: usize = 512 * 1024;
/// The maximum number of tags.
pub const MOST_TAGS: usize = 32;
/// The maximum length of a tag, in characters.
pub const TAG_CHARS: usize = 64;
/// The maximum number of verifiers that a workflow binds.
pub const MOST_BINDINGS: usize = 64;
/// The maximum number of grants on one workflow.
pub const MOST_GRANTS: u32 = 500;
/// The maximum number of grants that one account makes in a day, so that nobody's list is flooded.
pub const GRANTS_A_DAY: u32 = 200;
/// The maximum number of one owner's workflows that wait for one person to accept them.
pub const MOST_WAITING: u32 = 25;

/// A workflow as a list shows it, with the texts of its current version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// The owner.
    pub account: AccountId,
    /// A UUID.
    pub id: String,
    pub slug: String,
    pub name: String,
    pub description: String,
    pub outcome: String,
    pub tags: Vec<String>,
    pub current_version: u32,
    /// Required to save the next version; every version has a new one.
    pub version_token: String,
    /// The template that it was forked from.
    pub parent: Option<ForkOrigin>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub archived_at: Option<Timestamp>,
}

/// The template version that a workflow was forked from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkOrigin {
    pub template_id: String,
    pub version: u32,
}

/// A workflow that an account can reach, with its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachableWorkflow {
    pub workflow: Workflow,
    pub role: AccessRole,
    /// The first visible version; zero for all.
    pub floor: u32,
    /// The owner who shares it; `None` if the account owns it.
    pub shared: Option<ShareOrigin>,
}

/// The owner of a shared object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareOrigin {
    /// `@handle`, or the id of an account without a handle.
    pub owner: String,
    /// Whether it was accepted, or comes through a team.
    pub is_accepted: bool,
}

impl ReachableWorkflow {
    /// Whether the account can see the version.
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

/// A verifier that a workflow uses, under a name of the workflow's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierBinding {
    pub name: String,
    pub verifier_id: String,
    /// The pinned version; `None` for the current one.
    pub version: Option<u32>,
}

/// A requested binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBinding {
    pub name: String,
    pub verifier: VerifierRef,
}

impl NewBinding {
    /// Checks that the binding can be saved.
    pub fn check(&self) -> Result<(), &'static str> {
        match self.verifier.which {
            VerifierSelector::System(_) => Err("names a platform verifier, which needs no binding"),
            VerifierSelector::Id(_) | VerifierSelector::Name(_) | VerifierSelector::Of { .. } => {
                Ok(())
            }
        }
    }
}

/// Whether the text is a valid binding name: a verifier name that does not start with a hyphen.
pub fn is_binding_name(text: &str) -> bool {
    crate::verifier::is_name(text) && !text.starts_with('-')
}

/// Whether the text can be a tag. Characters that separate tags in a list are not allowed.
pub fn is_tag(text: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '"' | '\\' | ',' | '[' | ']');
    !text.trim().is_empty()
        && text.trim() == text
        && text.chars().count() <= TAG_CHARS
        && text.chars().all(is_plain)
}

/// A grant on a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantLine {
    /// Whether the grantee is a team, whose members all get the role.
    pub is_team: bool,
    /// The name used in the grant, so that one name never turns into another.
    pub granted_to: String,
    pub role: AccessRole,
    /// The first shared version; zero for the whole history.
    pub floor: u32,
    /// The public name of the account that made the grant.
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
    fn a_tag_contains_no_list_separators() {
        for tag in ["sre", "post mortem", "größe", "a/b"] {
            assert!(is_tag(tag), "{tag}");
        }
        for text in ["", " ", " a", "a,b", "a\"b", "a\\b", "a\nb", &"a".repeat(65)] {
            assert!(!is_tag(text), "{text}");
        }
    }
}
