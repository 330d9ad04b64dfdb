//! `/v1/shares`: workflows that other accounts share with the caller.

use jurat_wire::api::shares::ShareBody;

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/shares";

/// An answer to a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareReply {
    Accept,
    Decline,
    /// Declines this share and all other shares of its owner.
    Block,
}

pub fn list(state: Option<&str>) -> Call<Page<ShareBody<'static>>> {
    Call::get(ROUTE).query("state", state)
}

pub fn answer(id: &str, answer: ShareReply) -> Call<ShareBody<'static>> {
    let verb = match answer {
        ShareReply::Accept => "accept",
        ShareReply::Decline => "decline",
        ShareReply::Block => "block",
    };
    Call::post_empty(path(ROUTE, &[id, verb]))
}
