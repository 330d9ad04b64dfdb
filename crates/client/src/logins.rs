//! Registration, login, and programs that wait for approval.

use jurat_wire::api::logins::{
    ApproveDraft, CodeDraft, CodeSent, DeviceAnswered, LoginKeyBody, VerifyCodeDraft,
};

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
    Call::post(format!("/v1/{}", entrance.as_str()), &CodeDraft { email: email.to_owned() })
}

/// Exchanges the code for a key.
pub fn verify_code(entrance: Entrance, email: &str, code: &str) -> Call<LoginKeyBody> {
    let body = VerifyCodeDraft { email: email.to_owned(), code: code.to_owned() };
    Call::post(format!("/v1/{}/verify", entrance.as_str()), &body)
}

/// Approves or denies the program that shows this code.
pub fn answer_device(user_code: &str, approve: bool) -> Call<DeviceAnswered> {
    let body = ApproveDraft { user_code: user_code.to_owned(), approve: Some(approve) };
    Call::post("/v1/auth/approve", &body)
}
