//! `/v1/api-keys`.

use jurat_wire::api::keys::{CreateKeyDraft, CreatedKey, ListedKey, RotateKeyDraft};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/api-keys";

pub fn create(key: &CreateKeyDraft) -> Call<CreatedKey> {
    Call::post(ROUTE, key)
}

/// The keys of the caller's account; an admin can name another account.
pub fn list(account: Option<&str>) -> Call<Page<ListedKey>> {
    Call::get(ROUTE).query("account", account)
}

pub fn rotate(key: &str, account: Option<&str>, grace_seconds: Option<u64>) -> Call<CreatedKey> {
    Call::post(path(ROUTE, &[key, "rotate"]), &RotateKeyDraft { grace_seconds })
        .query("account", account)
}

pub fn revoke(key: &str, account: Option<&str>) -> Call<()> {
    Call::delete(path(ROUTE, &[key])).query("account", account)
}
