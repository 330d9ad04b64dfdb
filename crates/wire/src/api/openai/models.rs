//! The list of models: every consensus profile.

use std::borrow::Cow;

use jurat_core::round::profile::{ConsensusProfile, ConsensusProfiles, ProfileAuthor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// All models.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ChatModelList<'a> {
    /// `list`.
    pub object: Cow<'a, str>,
    pub data: Vec<ChatModel<'a>>,
}

/// A model, which is a consensus profile.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ChatModel<'a> {
    /// The name for `model` of a request.
    #[schema(example = "jurat/safe")]
    pub id: String,
    /// `model`.
    pub object: Cow<'a, str>,
    /// Seconds since 1970; 0, because a profile has no date.
    pub created: i64,
    /// `jurat` for a built-in profile, `operator` for one from the settings.
    pub owned_by: Cow<'a, str>,
    pub jurat: ChatModelTerms<'a>,
}

/// The terms of a model.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ChatModelTerms<'a> {
    /// The purpose of the profile, or its terms.
    pub about: Cow<'a, str>,
    /// The members of a delegate request that the profile sets.
    #[schema(value_type = Value)]
    pub request: Cow<'a, Map<String, Value>>,
}

impl<'a> From<&'a ConsensusProfiles> for ChatModelList<'a> {
    fn from(profiles: &'a ConsensusProfiles) -> Self {
        let data = profiles.iter().map(ChatModel::from).collect();
        Self { object: Cow::Borrowed("list"), data }
    }
}

impl<'a> From<&'a ConsensusProfile> for ChatModel<'a> {
    fn from(profile: &'a ConsensusProfile) -> Self {
        Self {
            id: profile.model(),
            object: Cow::Borrowed("model"),
            created: 0,
            owned_by: Cow::Borrowed(match profile.author {
                ProfileAuthor::BuiltIn => "jurat",
                ProfileAuthor::Operator => "operator",
            }),
            jurat: ChatModelTerms {
                about: match &profile.about {
                    Some(about) => Cow::Borrowed(about),
                    None => Cow::Owned(profile.terms()),
                },
                request: Cow::Borrowed(&profile.request),
            },
        }
    }
}
