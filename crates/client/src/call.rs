//! A request to the API, with the type of its reply.

use std::{fmt, marker::PhantomData, time::Duration};

use bytes::Bytes;
use http::Method;
use jurat_wire::api::kit::page::PageBody;
use serde::Serialize;
use serde_json::json;

/// Default timeout of a reply: longer than any round may take.
const LONGEST_ROUND: Duration = Duration::from_secs(630);

/// A page of a list.
pub type Page<T> = PageBody<'static, T>;

/// A request whose successful reply is an `R`.
pub struct Call<R> {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Bytes>,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Timeout of the whole reply.
    pub(crate) within: Duration,
    reply: PhantomData<fn() -> R>,
}

impl<R> Call<R> {
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), None)
    }

    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path.into(), None)
    }

    /// Sends a draft of a request, or a user's document.
    pub fn post(path: impl Into<String>, body: &impl Serialize) -> Self {
        Self::new(Method::POST, path.into(), Some(written(body)))
    }

    /// Sends a request without fields.
    pub fn post_empty(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path.into(), Some(Bytes::from_static(b"{}")))
    }

    pub fn patch(path: impl Into<String>, body: &impl Serialize) -> Self {
        Self::new(Method::PATCH, path.into(), Some(written(body)))
    }

    pub fn put(path: impl Into<String>, body: &impl Serialize) -> Self {
        Self::new(Method::PUT, path.into(), Some(written(body)))
    }

    /// Sends JSON bytes unchanged.
    pub fn post_bytes(path: impl Into<String>, body: Bytes) -> Self {
        Self::new(Method::POST, path.into(), Some(body))
    }

    fn new(method: Method, path: String, body: Option<Bytes>) -> Self {
        let headers = Vec::new();
        Self { method, path, body, headers, within: LONGEST_ROUND, reply: PhantomData }
    }

    /// Adds a body to a method that rarely has one, such as `DELETE`.
    #[must_use]
    pub fn with_body(self, body: &impl Serialize) -> Self {
        Self { body: Some(written(body)), ..self }
    }

    /// Whether the call only reads: sending it changes nothing on the server.
    pub fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    /// Sets the timeout of the reply.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// Adds a header, if there is a value for it.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.headers.extend(value.map(|value| (name, value.to_owned())));
        self
    }

    /// Adds the idempotency key, if there is one: the write is then safe to retry.
    #[must_use]
    pub fn idempotency_key(self, key: Option<&str>) -> Self {
        self.header("idempotency-key", key)
    }

    /// Adds a query parameter, if there is a value for it.
    #[must_use]
    pub fn query(mut self, name: &str, value: Option<impl fmt::Display>) -> Self {
        let Some(value) = value else { return self };
        let before = if self.path.contains('?') { '&' } else { '?' };
        let mut pair = url::form_urlencoded::Serializer::new(String::new());
        let pair = pair.append_pair(name, &value.to_string()).finish();
        self.path.push(before);
        self.path.push_str(&pair);
        self
    }

    /// Asks for one page of a list.
    #[must_use]
    pub fn page(self, limit: Option<u32>, cursor: Option<&str>) -> Self {
        self.query("limit", limit).query("cursor", cursor)
    }

    /// The same request, with the reply read as another type.
    pub fn reading<S>(self) -> Call<S> {
        let Self { method, path, body, headers, within, reply: _ } = self;
        Call { method, path, body, headers, within, reply: PhantomData }
    }
}

impl<R> Clone for Call<R> {
    fn clone(&self) -> Self {
        Self {
            method: self.method.clone(),
            path: self.path.clone(),
            body: self.body.clone(),
            headers: self.headers.clone(),
            within: self.within,
            reply: PhantomData,
        }
    }
}

impl<R> fmt::Debug for Call<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Leaves out the body and the headers, which may hold secrets.
        write!(out, "{} {}", self.method, self.path)
    }
}

fn written(body: &impl Serialize) -> Bytes {
    Bytes::from(json!(body).to_string())
}

/// The base path with further parts, which come from a user and are percent-encoded.
pub(crate) fn path(base: &str, parts: &[&str]) -> String {
    let Ok(mut url) = url::Url::parse("http://localhost") else { return base.to_owned() };
    url.set_path(base);
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.extend(parts);
    }
    url.path().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_input_stays_within_its_part_of_the_url() {
        assert_eq!(path("/v1/rounds", &["a/b ?c"]), "/v1/rounds/a%2Fb%20%3Fc");
        assert_eq!(path("/v1/executors", &["x", "check"]), "/v1/executors/x/check");
        let call = Call::<()>::get("/v1/rounds").query("kind", Some("a&b"));
        assert_eq!(call.page(Some(2), None).path, "/v1/rounds?kind=a%26b&limit=2");
        assert_eq!(Call::<()>::get("/v1/rounds").page(None, None).path, "/v1/rounds");
    }
}
