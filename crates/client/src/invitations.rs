//! `/v1/invitations`.

use jurat_wire::api::invitations::{InvitationBody, InvitationResolved};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/invitations";

/// How to end an invitation: the invited user accepts or declines, and the inviter cancels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvitationReply {
    Accept,
    Decline,
    Cancel,
}

pub fn list(filter: Option<&str>, state: Option<&str>) -> Call<Page<InvitationBody<'static>>> {
    Call::get(ROUTE).query("filter", filter).query("state", state)
}

pub fn answer(id: &str, answer: InvitationReply) -> Call<InvitationResolved<'static>> {
    let verb = match answer {
        InvitationReply::Accept => "accept",
        InvitationReply::Decline => "decline",
        InvitationReply::Cancel => "cancel",
    };
    Call::post_empty(path(ROUTE, &[id, verb]))
}
