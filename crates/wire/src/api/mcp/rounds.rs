//! What the tools for rounds take.

use jurat_core::round::{RoundStatus, consensus::Outcome, job::JobKind};
use serde_json::Value;
use utoipa::ToSchema;

use super::arguments::{known_arguments, page_of};
use crate::{api::kit::words, problem::Problem};

const ROUND: &str = "round_id";

/// Arguments of tools for one round.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundArguments {
    /// The id of a round.
    #[schema(pattern = r"\S")]
    pub round_id: String,
}

/// Arguments of `list_rounds`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRoundsArguments {
    /// Only rounds of this kind.
    pub kind: Option<words::Kind>,
    /// Only rounds with this outcome.
    pub outcome: Option<words::Outcome>,
    /// Only rounds in this state.
    pub state: Option<words::RoundState>,
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// Which rounds to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundsOrder {
    pub kind: Option<JobKind>,
    pub outcome: Option<Outcome>,
    pub state: Option<RoundStatus>,
    pub limit: u32,
    pub cursor: Option<String>,
}

pub fn round(arguments: &Value) -> Result<&str, Problem> {
    known_arguments::<RoundArguments>(arguments)?.required_text(ROUND)
}

pub fn rounds(arguments: &Value) -> Result<RoundsOrder, Problem> {
    let fields = known_arguments::<ListRoundsArguments>(arguments)?;
    let (limit, cursor) = page_of(&fields)?;
    Ok(RoundsOrder {
        kind: fields.word("kind", &["delegate", "validate", "factcheck"])?,
        outcome: fields.word("outcome", &["agreed", "split", "abstained", "failed"])?,
        state: fields.word("state", &["open", "closed", "expired", "cancelled"])?,
        limit,
        cursor,
    })
}
