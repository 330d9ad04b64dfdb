//! Workflows: private, versioned runbooks that name the verifiers they depend on.

use std::str::FromStr;

use crate::job::words;

words!(
    /// What somebody may do with a workflow, from less to more.
    Role {
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

impl Role {
    /// What comes with the role for the verifiers that the workflow names.
    pub const fn on_verifiers(self) -> VerifierRole {
        match self {
            Self::View => VerifierRole::Exec,
            Self::Edit | Self::Admin => VerifierRole::Tune,
            Self::Owner => VerifierRole::Owner,
        }
    }
}
