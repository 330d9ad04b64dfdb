//! Push notifications: where to tell that a task has ended.

use jurat_core::webhook::{NewPush, Push, PushProof};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{error::A2aError, members::Members};

/// The longest name that a caller can give, as for the ids of messages.
const LONGEST_ID: usize = 200;
const LONGEST_URL: usize = 2_000;
/// The longest token: a text that its receiver recognises.
const LONGEST_TOKEN: usize = 1_000;
/// The longest credentials, which may be a signed token.
const LONGEST_PROOF: usize = 4_000;

/// Where to tell that a task has ended, as a caller asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushRequest {
    pub id: Option<String>,
    pub url: String,
    /// Its context is filled in when the task is known.
    proof: PushProof,
}

impl PushRequest {
    /// The same for a task in this context.
    pub fn within(self, context_id: String) -> NewPush {
        let proof = PushProof { context_id, ..self.proof };
        NewPush { name: self.id, url: self.url, proof }
    }
}

/// Reads a configuration; `path` is empty if it is the whole request.
pub fn push_request(given: &Value, path: &str) -> Result<PushRequest, A2aError> {
    let members = Members::of(given, path)?;
    let text = |name: &str, most: usize| {
        let found = members.text(name)?;
        if found.is_some_and(|text| most < text.len()) {
            return Err(members.wrong(name, &format!("must have at most {most} bytes")));
        }
        Ok(found.map(str::to_owned))
    };
    let token = text("token", LONGEST_TOKEN)?;
    if !token.as_deref().is_none_or(is_header_text) {
        return Err(members.wrong("token", "must have only visible ASCII characters"));
    }
    Ok(PushRequest {
        id: text("id", LONGEST_ID)?,
        url: text("url", LONGEST_URL)?.ok_or_else(|| members.wrong("url", "is required"))?,
        proof: PushProof {
            context_id: String::new(),
            token,
            authorization: authorization(&members)?,
        },
    })
}

/// The value of the header that the receiver expects.
fn authorization(members: &Members<'_>) -> Result<Option<String>, A2aError> {
    const NAME: &str = "authentication";
    let Some(given) = members.get(NAME) else { return Ok(None) };
    let path = members.path_of(NAME);
    let given = Members::of(given, &path)?;
    let scheme = given.required_text("scheme")?;
    let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_scheme || LONGEST_ID < scheme.len() {
        return Err(given.wrong("scheme", "must be the name of a scheme, such as `Bearer`"));
    }
    let Some(credentials) = given.text("credentials")? else { return Ok(Some(scheme.to_owned())) };
    if !is_header_text(credentials) || LONGEST_PROOF < credentials.len() {
        let reason = format!("must be at most {LONGEST_PROOF} visible ASCII characters");
        return Err(given.wrong("credentials", &reason));
    }
    Ok(Some(format!("{scheme} {credentials}")))
}

fn is_header_text(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// The task and the configuration that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushKey {
    pub task_id: String,
    pub id: String,
}

/// Reads the parameters of `GetTaskPushNotificationConfig` and `DeleteTaskPushNotificationConfig`.
pub fn push_key(params: &Value) -> Result<PushKey, A2aError> {
    let members = Members::of(params, "")?;
    let id = members.required_text("id")?.to_owned();
    Ok(PushKey { task_id: members.required_text("taskId")?.to_owned(), id })
}

/// Reads the task of a request about configurations.
pub fn task_of_push(params: &Value) -> Result<String, A2aError> {
    Members::of(params, "")?.required_text("taskId").map(str::to_owned)
}

/// Where to send the news of a task. Unknown fields are ignored.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it only describes the request")]
pub struct A2aPushRequest {
    /// Chosen by the caller; another configuration with the same id replaces this one. Without an
    /// id, the server makes one of the URL.
    #[schema(min_length = 1, max_length = 200)]
    id: Option<String>,
    /// A public address with TLS.
    #[schema(min_length = 1, max_length = 2_000)]
    url: String,
    /// A text that notifications carry in the header `X-A2A-Notification-Token`.
    #[schema(max_length = 1_000, pattern = "^[ -~]*$")]
    token: Option<String>,
    authentication: Option<A2aPushAuthentication>,
}

/// How notifications authenticate themselves, in the header `Authorization`.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it only describes the request")]
pub struct A2aPushAuthentication {
    /// Such as `Bearer`.
    #[schema(min_length = 1, max_length = 200, pattern = "^[A-Za-z0-9-]+$")]
    scheme: String,
    #[schema(max_length = 4_000, pattern = "^[ -~]*$")]
    credentials: Option<String>,
}

/// A configuration, without its token and its credentials.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct A2aPushConfig {
    pub id: String,
    pub task_id: String,
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = A2aPushScheme)]
    pub authentication: Option<A2aPushScheme>,
}

/// How notifications authenticate themselves, without their credentials.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct A2aPushScheme {
    /// Such as `Bearer`.
    pub scheme: String,
}

impl A2aPushConfig {
    pub fn of(push: Push, task_id: String) -> Self {
        let Push { webhook, auth_scheme } = push;
        Self {
            id: webhook.description.unwrap_or_default(),
            task_id,
            url: webhook.url,
            authentication: auth_scheme.map(|scheme| A2aPushScheme { scheme }),
        }
    }
}

/// The configurations of a task.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct A2aPushConfigList {
    pub configs: Vec<A2aPushConfig>,
    /// Empty: a list has one page.
    pub next_page_token: String,
}

/// The reply to a removal: an empty object.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct A2aPushRemoved {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_says_where_and_with_what_proof() {
        let given = json!({
            "id": "mine", "url": "https://example.com/news", "token": "sesame", "other": 1,
            "authentication": { "scheme": "Bearer", "credentials": "xyzzy" },
        });
        let push = push_request(&given, "").unwrap().within("ctx_1".to_owned());
        assert_eq!(push.name(), "mine");
        assert_eq!(push.url, "https://example.com/news");
        assert_eq!(push.proof.context_id, "ctx_1");
        assert_eq!(push.proof.token.as_deref(), Some("sesame"));
        assert_eq!(push.proof.authorization.as_deref(), Some("Bearer xyzzy"));
    }

    #[test]
    fn a_wrong_configuration_is_refused_with_its_field() {
        let refused = |change: Value| {
            let mut given = json!({ "url": "https://example.com/news" });
            for (name, value) in change.as_object().unwrap() {
                given[name] = value.clone();
            }
            push_request(&given, "configuration").unwrap_err().problem.field.unwrap()
        };
        for (change, field) in [
            (json!({ "url": "" }), "configuration.url"),
            (json!({ "url": 7 }), "configuration.url"),
            (json!({ "id": "x".repeat(201) }), "configuration.id"),
            (json!({ "token": "line\nbreak" }), "configuration.token"),
            (json!({ "token": "x".repeat(1_001) }), "configuration.token"),
            (json!({ "authentication": "Bearer" }), "configuration.authentication"),
            (json!({ "authentication": {} }), "configuration.authentication.scheme"),
            (
                json!({ "authentication": { "scheme": "a b" } }),
                "configuration.authentication.scheme",
            ),
            (
                json!({ "authentication": { "scheme": "Bearer", "credentials": "\r\nx: y" } }),
                "configuration.authentication.credentials",
            ),
        ] {
            assert_eq!(refused(change), field);
        }
    }
}
