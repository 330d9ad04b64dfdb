//! Verifiers: stored, versioned semantic checks of one owner, and the shape of their inputs.

pub mod attack;
pub mod calibration;
mod config;
mod draft;
mod reference;
pub mod run;
pub mod system;

use std::str::FromStr;

pub(crate) use self::reference::is_uuid;
pub use self::{
    config::{Effort, InputError, JudgeSettings, ModelRef, VerifierConfig, VerifierExample},
    draft::VerifierDraft,
    reference::{SYSTEM_PREFIX, VerifierRef, VerifierRefError, VerifierSelector},
};
use crate::{id::AccountId, round::job::words, time::Timestamp};

words!(
    /// The shape of what a judge reads.
    InputContract {
        /// Named text fields only.
        Text => "text",
        /// Named text fields and one image.
        TextImage => "text_image",
        /// One image, and no text.
        Image => "image",
    }
);

impl InputContract {
    pub const fn has_text(self) -> bool {
        matches!(self, Self::Text | Self::TextImage)
    }

    pub const fn has_image(self) -> bool {
        matches!(self, Self::TextImage | Self::Image)
    }
}

words!(
    /// Whether a verifier can be used.
    VerifierStanding {
        Active => "active",
        /// Deactivated for ever; its name stays taken.
        Revoked => "revoked",
    }
);

/// The longest name.
pub const NAME_CHARS: usize = 128;
pub const DESCRIPTION_CHARS: usize = 1_024;
pub const CRITERION_CHARS: usize = 20_000;
pub const MOST_EXAMPLES: usize = 50;
/// Of all examples together.
pub const EXAMPLES_CHARS: usize = 200_000;
pub const MOST_FIELDS: usize = 32;
pub const FIELD_CHARS: usize = 64;
pub const URL_CHARS: usize = 2_048;

/// What a judge is asked to write beside its verdict, in every version alike.
pub const REASONING_FIELD: &str =
    "Why the criterion is met or not met, in a few sentences that point to the inputs.";

/// Whether a text is a name of a verifier: lowercase letters, digits and hyphens.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= NAME_CHARS
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Whether a text is a name of an input field: letters, digits, hyphens and underscores.
pub fn is_field(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= FIELD_CHARS
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// A verifier as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verifier {
    pub account: AccountId,
    /// A UUID.
    pub id: String,
    pub name: String,
    pub description: String,
    pub current_version: u32,
    /// Must be given to deploy the next version; drawn anew with each.
    pub version_token: String,
    pub standing: VerifierStanding,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One version of a verifier. It never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifierVersion {
    pub verifier: Verifier,
    pub version: u32,
    /// As it was when the version was deployed.
    pub description: String,
    pub config: VerifierConfig,
    /// SHA-256 of the canonical JSON of the configuration, in hex.
    pub config_hash: String,
    pub deployed_at: Timestamp,
}
