//! Verifiers: stored, versioned semantic checks of one owner, and the shape of their inputs.

pub mod attack;
pub mod calibration;
mod config;
mod draft;
mod reference;
pub mod registry;
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
    /// The shape of the inputs of a judge.
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
    /// Whether the contract has text fields.
    pub const fn has_text(self) -> bool {
        matches!(self, Self::Text | Self::TextImage)
    }

    /// Whether the contract has an image.
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

/// The maximum length of a name, in characters.
pub const NAME_CHARS: usize = 128;
/// The maximum length of a description, in characters.
pub const DESCRIPTION_CHARS: usize = 1_024;
/// The maximum length of a criterion, in characters.
pub const CRITERION_CHARS: usize = 20_000;
/// The maximum number of examples.
pub const MOST_EXAMPLES: usize = 50;
/// The maximum length of all examples together, in characters.
pub const EXAMPLES_CHARS: usize = 200_000;
/// The maximum number of input fields.
pub const MOST_FIELDS: usize = 32;
/// The maximum length of a field name, in characters.
pub const FIELD_CHARS: usize = 64;
/// The maximum length of an image address, in characters.
pub const URL_CHARS: usize = 2_048;

/// The explanation that every judge is asked to write with its verdict.
pub const REASONING_FIELD: &str =
    "Why the criterion is met or not met, in a few sentences that point to the inputs.";

/// Whether the text is a valid verifier name: lower-case letters, digits and hyphens.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= NAME_CHARS
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Whether the text is a valid field name: letters, digits, hyphens and underscores.
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
    /// Required to deploy the next version; every version has a new one.
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
    /// The SHA-256 of the canonical JSON of the configuration, in hex.
    pub config_hash: String,
    pub deployed_at: Timestamp,
}
