//! HTTP message signatures (RFC 9421) of requests to executors: the text that a node signs and an
//! executor verifies, and the headers. The cryptography itself is in the code of each side.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};

/// Header with the digest of the body (RFC 9530).
pub const CONTENT_DIGEST: &str = "content-digest";
/// Header that lists the components that a signature covers.
pub const SIGNATURE_INPUT: &str = "signature-input";
/// Header with the signature.
pub const SIGNATURE: &str = "signature";
/// Header with the id of an agent event; the event's signature covers it.
pub const EVENT_ID: &str = "x-jurat-event";

/// Components that every signature covers.
pub const ALWAYS_COVERED: [&str; 4] = ["@method", "@authority", "@path", CONTENT_DIGEST];

/// Method of every signed request.
const METHOD: &str = "POST";
/// Label of the signature in both signature headers.
const LABEL: &str = "sig1";

/// The value of `Content-Digest`.
pub fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)))
}

/// The value of `Signature`.
pub fn signature_header(signature: &[u8]) -> String {
    format!("{LABEL}=:{}:", STANDARD.encode(signature))
}

/// Reads the value of `Signature`.
pub fn read_signature(value: &str) -> Option<Vec<u8>> {
    let encoded = value.strip_prefix(LABEL)?.strip_prefix("=:")?.strip_suffix(':')?;
    STANDARD.decode(encoded).ok()
}

/// The components that a signature covers, and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureInput {
    /// The names of the covered components, in order.
    pub components: Vec<String>,
    /// Time of signing, in seconds since 1970.
    pub created_s: i64,
    /// Public key of the signer, in hex.
    pub key_id: String,
    /// Components and parameters exactly as they are signed.
    params: String,
}

impl SignatureInput {
    /// Covers [`ALWAYS_COVERED`] and these headers.
    pub fn new(headers: &[&str], created_s: i64, key_id: &str) -> Self {
        let components: Vec<String> =
            ALWAYS_COVERED.iter().chain(headers).map(|name| (*name).to_owned()).collect();
        let quoted: Vec<String> = components.iter().map(|name| format!("\"{name}\"")).collect();
        let params = format!(
            "({});created={created_s};keyid=\"{key_id}\";alg=\"ed25519\"",
            quoted.join(" ")
        );
        Self { components, created_s, key_id: key_id.to_owned(), params }
    }

    /// Reads the value of `Signature-Input`.
    pub fn read(value: &str) -> Option<Self> {
        let params = value.strip_prefix(LABEL)?.strip_prefix('=')?;
        let (components, rest) = params.strip_prefix('(')?.split_once(')')?;
        let components = components.split(' ').map(|it| it.trim_matches('"').to_owned());
        let parameter =
            |name: &str| rest.split(';').find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
        Some(Self {
            components: components.collect(),
            created_s: parameter("created")?.parse().ok()?,
            key_id: parameter("keyid")?.trim_matches('"').to_owned(),
            params: params.to_owned(),
        })
    }

    /// The value of `Signature-Input`.
    pub fn header(&self) -> String {
        format!("{LABEL}={}", self.params)
    }

    /// The text to sign. `value` returns the authority, the path or a header of the request.
    pub fn base<E>(&self, value: impl Fn(&str) -> Result<String, E>) -> Result<String, E> {
        let mut base = String::new();
        for name in &self.components {
            let value = if name == "@method" { METHOD.to_owned() } else { value(name)? };
            base.extend(["\"", name, "\": ", &value, "\n"]);
        }
        base.extend(["\"@signature-params\": ", &self.params]);
        Ok(base)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const INPUT: &str = "sig1=(\"@method\" \"@authority\" \"@path\" \"content-digest\" \"x-jurat-event\");created=1700000000;keyid=\"ab\";alg=\"ed25519\"";

    fn base(input: &SignatureInput) -> String {
        let value = |name: &str| match name {
            "@authority" => "localhost:1".to_owned(),
            "@path" => "/verify".to_owned(),
            CONTENT_DIGEST => content_digest(b"{}"),
            other => format!("value of {other}"),
        };
        let Ok(base) = input.base(|name| Ok::<_, Infallible>(value(name)));
        base
    }

    #[test]
    fn the_signed_text_lists_the_components_and_the_parameters() {
        let input = SignatureInput::new(&[EVENT_ID], 1_700_000_000, "ab");
        assert_eq!(input.header(), INPUT);
        let expected = format!(
            "\"@method\": POST\n\"@authority\": localhost:1\n\"@path\": /verify\n\"content-digest\": sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:\n\"x-jurat-event\": value of x-jurat-event\n\"@signature-params\": {}",
            &INPUT["sig1=".len()..]
        );
        assert_eq!(base(&input), expected);
    }

    #[test]
    fn the_reader_rebuilds_the_text_of_the_writer() {
        let written = SignatureInput::new(&[EVENT_ID], 1_700_000_000, "ab");
        let read = SignatureInput::read(&written.header()).unwrap();
        assert_eq!(read, written);
        assert_eq!(base(&read), base(&written));
    }

    #[test]
    fn parameters_are_signed_as_they_were_sent() {
        let sent = "sig1=(\"@path\" \"@method\");keyid=\"cd\";created=5";
        let read = SignatureInput::read(sent).unwrap();
        assert_eq!((read.created_s, read.key_id.as_str()), (5, "cd"));
        assert_eq!(read.header(), sent);
        let base = base(&read);
        assert!(base.starts_with("\"@path\": /verify\n\"@method\": POST\n"), "{base}");
    }

    #[test]
    fn unreadable_headers_are_refused() {
        for text in ["", "sig2=(\"@path\");created=1;keyid=\"a\"", "sig1=\"@path\"", "sig1=()"] {
            assert_eq!(SignatureInput::read(text), None, "{text}");
        }
        assert_eq!(read_signature(&signature_header(b"abc")), Some(b"abc".to_vec()));
        for text in ["sig1=:not base64:", "sig1=YWJj", "sig2=:YWJj:"] {
            assert_eq!(read_signature(text), None, "{text}");
        }
    }
}
