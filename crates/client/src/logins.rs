//! Registration, login, and programs that wait for approval.

use jurat_wire::api::logins::{CodeSent, DeviceAnswered, LoginKeyBody};
use serde_json::json;

use crate::call::Call;

/// How a user gets a key: by registering, or by logging in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrance {
    Register,
    Login,
}

impl Entrance {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Login => "login",
        }
    }
}

/// Requests a code by mail.
pub fn request_code(entrance: Entrance, email: &str) -> Call<CodeSent> {
    Call::post(format!("/v1/{}", entrance.as_str()), &json!({ "email": email }))
}

/// Exchanges the code for a key.
pub fn verify_code(entrance: Entrance, email: &str, code: &str) -> Call<LoginKeyBody> {
    let body = json!({ "email": email, "code": code });
    Call::post(format!("/v1/{}/verify", entrance.as_str()), &body)
}

/// Approves or denies the program that shows this code.
pub fn answer_device(user_code: &str, approve: bool) -> Call<DeviceAnswered> {
    Call::post("/v1/auth/approve", &json!({ "user_code": user_code, "approve": approve }))
}
