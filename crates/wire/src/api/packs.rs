//! Instructions for agents as replies have them.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// Instructions for an agent, in markdown.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PromptPack)]
pub struct PackBody<'a> {
    /// What to follow.
    pub skill_md: &'a str,
    /// Texts that it refers to, by path.
    #[schema(value_type = BTreeMap<String, String>)]
    pub references: &'a BTreeMap<&'static str, &'static str>,
    /// For a loop: how often it goes around at the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32)]
    pub max_iterations: Option<u32>,
    /// The workflow that it is about, where it is about one; `workflow_id` and `id` are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub skill_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub workflow_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub id: Option<&'a str>,
}
