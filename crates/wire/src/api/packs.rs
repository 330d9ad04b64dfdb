//! Instructions for agents, in replies.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Instructions for an agent, in Markdown.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PromptPack)]
pub struct PackBody<'a> {
    /// The instructions.
    pub skill_md: Cow<'a, str>,
    /// Texts that the instructions refer to, by path.
    #[schema(value_type = BTreeMap<String, String>)]
    pub references: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// For a loop: maximum number of iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32)]
    pub max_iterations: Option<u32>,
    /// The workflow that the instructions are about, if any; `workflow_id` and `id` are aliases.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub skill_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub workflow_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub id: Option<Cow<'a, str>>,
}
