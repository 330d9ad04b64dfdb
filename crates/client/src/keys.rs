//! `/v1/api-keys`.

use jurat_wire::api::keys::{CreatedKey, ListedKey};
use serde_json::{Value, json};

use crate::call::{Call, Page, members, path};

const ROUTE: &str = "/v1/api-keys";

pub fn create(key: &Value) -> Call<CreatedKey> {
    Call::post(ROUTE, key)
}

/// The keys of the caller's account; an admin can name another account.
pub fn list(account: Option<&str>) -> Call<Page<ListedKey>> {
    Call::get(ROUTE).query("account", account)
}

pub fn rotate(key: &str, account: Option<&str>, grace_seconds: Option<u64>) -> Call<CreatedKey> {
    let body = members([("grace_seconds", json!(grace_seconds))]);
    Call::post(path(ROUTE, &[key, "rotate"]), &body).query("account", account)
}

pub fn revoke(key: &str, account: Option<&str>) -> Call<()> {
    Call::delete(path(ROUTE, &[key])).query("account", account)
}
