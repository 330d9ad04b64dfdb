//! `vp.schema_only.v1`: the output matches the schema.

use serde_json::Value;

use super::{Evaluation, Policy, PolicyRules, params, params::BindError};
use crate::{
    reason,
    schema::{Schema, SchemaMatch},
};

pub(super) fn bind(rules: PolicyRules, given: &Value) -> Result<Policy, BindError> {
    if rules == PolicyRules::Jurat {
        params::members(given, &[])?;
    }
    Ok(Policy::SchemaOnly { rules })
}

pub(super) fn evaluate(output: &Value, schema: &Schema) -> Evaluation {
    unmatched(output, schema).unwrap_or_else(|| Evaluation::passed(Vec::new()))
}

/// The evaluation of an output that does not match or cannot be checked; `None` if it matches.
pub(super) fn unmatched(output: &Value, schema: &Schema) -> Option<Evaluation> {
    match schema.check(output) {
        Ok(SchemaMatch::Yes) => None,
        Ok(SchemaMatch::No(notes)) => Some(Evaluation::failed(vec![reason::SCHEMA_INVALID], notes)),
        Err(refused) => {
            Some(Evaluation::inconclusive(reason::EVALUATION_REFUSED, refused.to_string()))
        }
    }
}
