//! The error object of the OpenAI shape, with our code in it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{api::kit::words::ErrorCode, problem::ProblemBody};

/// An error, as OpenAI's clients read it.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ChatErrorReply<'a> {
    pub error: ChatErrorBody<'a>,
}

/// The error itself.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ChatError)]
pub struct ChatErrorBody<'a> {
    /// The error in words.
    pub message: Cow<'a, str>,
    /// The class of the error, such as `invalid_request_error`.
    pub r#type: Cow<'a, str>,
    /// Path of the faulty member, if there is one.
    #[schema(required = true)]
    pub param: Option<Cow<'a, str>>,
    #[schema(value_type = ErrorCode)]
    pub code: Cow<'a, str>,
    /// The problem, as every other route sends it.
    pub jurat: Box<ProblemBody<'a>>,
}

impl<'a> From<ProblemBody<'a>> for ChatErrorReply<'a> {
    fn from(problem: ProblemBody<'a>) -> Self {
        Self {
            error: ChatErrorBody {
                message: problem.detail.clone(),
                r#type: Cow::Borrowed(class(problem.status)),
                param: problem.field.clone(),
                code: problem.code.clone(),
                jurat: Box::new(problem),
            },
        }
    }
}

/// The class by which OpenAI groups errors.
const fn class(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "insufficient_quota",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}
