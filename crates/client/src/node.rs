//! Operations on a server as a whole.

use jurat_wire::api::{
    doctor::{CheckedEntries, CheckupBody},
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

pub fn prune(dry_run: bool) -> Call<PrunedBody> {
    Call::post("/v1/prune", &PruneDraft { dry_run: Some(dry_run) })
}
