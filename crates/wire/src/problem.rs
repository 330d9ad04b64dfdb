//! The one error body of every HTTP surface: `application/problem+json`.

use jurat_core::code::Code;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub code: Code,
    pub detail: String,
    /// The field that is wrong, as a path such as `consensus.replicas`.
    pub field: Option<String>,
    /// Members that stand beside the usual ones.
    pub extras: Map<String, Value>,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), field: None, extras: Map::new() }
    }

    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.extras.insert(name.to_owned(), value);
        self
    }

    /// The body. Some clients read `error`, `message` and `hint`; they say the same.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "type": format!("urn:jurat:error:{}", self.code),
            "title": self.code.as_str(),
            "status": self.code.http_status(),
            "detail": self.detail,
            "code": self.code.as_str(),
            "error": self.code.as_str(),
            "message": self.detail,
            "hint": self.code.hint(),
        });
        if let Some(field) = &self.field {
            body["field"] = json!(field);
            body["errors"] = json!([{ "field": field, "reason": self.detail }]);
        }
        if let Some(members) = body.as_object_mut() {
            members.extend(self.extras.clone());
        }
        body
    }
}
