//! Reads the members of protocol objects. Unknown members are ignored, as the protocol requires.

use serde_json::{Map, Value};

use super::error::A2aError;

/// An object of the protocol, and its place in the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Members<'a> {
    of: &'a Map<String, Value>,
    path: &'a str,
}

impl<'a> Members<'a> {
    /// The members of an object. `path` is empty for the whole request.
    pub(super) fn of(value: &'a Value, path: &'a str) -> Result<Self, A2aError> {
        let named = if path.is_empty() { "params" } else { path };
        let of = value.as_object().ok_or_else(|| A2aError::wrong(named, "must be an object"))?;
        Ok(Self { of, path })
    }

    /// A member. The protocol accepts its name in camel case and in the form of its definition.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        let found = self.of.get(name).or_else(|| self.of.get(&snake_case(name)));
        found.filter(|value| !value.is_null())
    }

    pub(super) fn wrong(&self, name: &str, reason: &str) -> A2aError {
        A2aError::wrong(&self.path_of(name), reason)
    }

    pub(super) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A text; an empty one counts as left out.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, A2aError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(self.wrong(name, "must be a string")),
        }
    }

    pub(super) fn required_text(&self, name: &str) -> Result<&'a str, A2aError> {
        self.text(name)?.ok_or_else(|| self.wrong(name, "is required"))
    }

    /// An object that only its sender understands; another value counts as left out.
    pub(super) fn object(&self, name: &str) -> Map<String, Value> {
        self.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// A list of texts that only its sender understands; what is no text is left out.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let texts = self.get(name).and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, A2aError> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(name, "must be true or false")),
        }
    }

    /// A whole number from `least` to `most`.
    pub(super) fn number(
        &self,
        name: &str,
        least: u32,
        most: u32,
    ) -> Result<Option<u32>, A2aError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        match number {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong(name, &format!("must be a whole number from {least} to {most}"))),
        }
    }
}

/// The name of a member as the definition of the protocol writes it.
fn snake_case(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_have_two_spellings_and_unknown_ones_are_ignored() {
        let value = json!({ "context_id": "a", "pageSize": 5, "other": 1, "status": "" });
        let members = Members::of(&value, "").unwrap();
        assert_eq!(members.text("contextId"), Ok(Some("a")));
        assert_eq!(members.number("pageSize", 1, 100), Ok(Some(5)));
        assert_eq!(members.text("status"), Ok(None));
        for (name, least) in [("pageSize", 6), ("contextId", 0), ("other", 2)] {
            let error = members.number(name, least, 100).unwrap_err();
            assert_eq!(error.problem.field.as_deref(), Some(name));
        }
    }
}
