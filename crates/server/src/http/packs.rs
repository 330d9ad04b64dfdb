//! `/v1/design` and `/v1/audit`: instructions for agents.

use axum::extract::State;
use jurat_engine::{Engine, Pack, PackKind, packed};
use jurat_wire::api::packs::PackBody;

use crate::encode::{self, Answer};

pub(super) async fn design(State(_): State<Engine>) -> Answer {
    Ok(encode::ok(&body(&packed(PackKind::Design, None, None), None)))
}

pub(super) async fn audit(State(_): State<Engine>) -> Answer {
    Ok(encode::ok(&body(&packed(PackKind::Audit, None, None), None)))
}

/// A pack, and the workflow that it is about.
pub(crate) fn body<'a>(pack: &'a Pack, workflow: Option<&'a str>) -> PackBody<'a> {
    PackBody {
        skill_md: &pack.text,
        references: &pack.references,
        max_iterations: pack.max_iterations,
        skill_id: workflow,
        workflow_id: workflow,
        id: workflow,
    }
}
