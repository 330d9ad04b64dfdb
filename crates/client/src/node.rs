//! Operations on a server as a whole.

use jurat_wire::api::{
    doctor::{CheckedEntries, CheckupBody},
    nodes::{InviteNodeDraft, JoinNodeDraft, NodeBody, NodeInvitationBody, PeerBody},
    prune::{PruneDraft, PrunedBody},
    status::ServerStatus,
};

use crate::call::Call;

pub fn health() -> Call<ServerStatus> {
    Call::get("/health")
}

pub fn doctor() -> Call<CheckupBody<'static>> {
    Call::get("/v1/doctor")
}

/// The recorded decisions to check: the newest ones, or those after a cursor.
#[derive(Debug, Clone, Default)]
pub struct EntryRange {
    pub newest: Option<u64>,
    pub cursor: Option<String>,
    pub limit: u32,
}

pub fn doctor_entries(range: &EntryRange) -> Call<CheckedEntries<'static>> {
    Call::get("/v1/doctor/entries")
        .query("newest", range.newest)
        .query("cursor", range.cursor.as_ref())
        .query("limit", Some(range.limit))
}

/// This node among others.
pub fn show() -> Call<NodeBody<'static>> {
    Call::get("/v1/node")
}

/// Writes an invitation for another node.
pub fn invite(invitation: &InviteNodeDraft) -> Call<NodeInvitationBody<'static>> {
    Call::post("/v1/node/invitations", invitation)
}

/// Takes an invitation of another node.
pub fn join(invitation: &JoinNodeDraft) -> Call<PeerBody<'static>> {
    Call::post("/v1/node/join", invitation)
}

pub fn prune(dry_run: bool) -> Call<PrunedBody> {
    Call::post("/v1/prune", &PruneDraft { dry_run: Some(dry_run) })
}
