//! The limits of a contract on inline evidence.

use serde_json::Value;

use crate::round::candidate::{Evidence, InlineEvidence};

/// The limits on inline evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineTerms {
    /// The maximum size of one item, in bytes.
    pub most_bytes: u64,
    /// The maximum size of a quoted snippet; every item counts as one.
    pub snippet_bytes: u64,
    pub snippet_tokens: u64,
    /// Media types without parameters.
    pub mimes: Vec<String>,
    /// Whether text may embed images, audio and video.
    pub may_hold_media: bool,
}

/// How many bytes count as one token. No single model's tokenizer would be right for all models.
const BYTES_PER_TOKEN: u64 = 4;

/// Prefixes of media embedded in text, as a data URL or in Base64.
const MEDIA: &[&str] = &[
    "data:image/",
    "data:video/",
    "data:audio/",
    "iVBORw0KGgo",
    "R0lGODlh",
    "R0lGODdh",
    "/9j/4AAQSkZJRg",
    "UklGR",
];

impl InlineTerms {
    /// The first fault of a candidate's evidence, if there is one.
    pub fn fault(&self, evidence: &Evidence) -> Option<String> {
        let inline = evidence.inline.iter().enumerate().find_map(|(index, item)| {
            self.fault_of(item).map(|fault| format!("`evidence_inline.{index}` {fault}"))
        });
        inline.or_else(|| {
            let blank = evidence.refs.iter().position(|it| it.digest.trim().is_empty())?;
            Some(format!("`evidence_refs.{blank}.digest` must not be blank"))
        })
    }

    fn fault_of(&self, item: &InlineEvidence) -> Option<String> {
        let InlineEvidence { mime, content } = item;
        let plain = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !self.mimes.contains(&plain) {
            return Some(format!("must have one of the media types {}", self.mimes.join(", ")));
        }
        if let Some(fault) = self.too_long(u64::try_from(content.len()).unwrap_or(u64::MAX)) {
            return Some(fault);
        }
        if plain == "application/json" && serde_json::from_str::<Value>(content).is_err() {
            return Some("is not JSON although its media type says so".to_owned());
        }
        let is_media = MEDIA.iter().any(|mark| content.contains(mark));
        (is_media && !self.may_hold_media)
            .then(|| "must not contain images, audio or video; refer to them instead".to_owned())
    }

    /// The fault of an item of this size, if it is too long.
    fn too_long(&self, bytes: u64) -> Option<String> {
        let inline = (self.most_bytes, "max_inline_evidence_bytes");
        let (most, name) = inline.min((self.snippet_bytes, "max_snippet_bytes"));
        if most < bytes {
            return Some(format!(
                "must have at most {most} bytes (`evidence_policy.{name}`), and has {bytes}; refer to longer evidence instead"
            ));
        }
        let (most, tokens) = (self.snippet_tokens, bytes.div_ceil(BYTES_PER_TOKEN));
        (most < tokens).then(|| {
            format!(
                "must have at most {most} tokens (`evidence_policy.max_snippet_tokens`, a token is {BYTES_PER_TOKEN} bytes), and has {tokens}; refer to longer evidence instead"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::candidate::ArtifactRef;

    fn terms() -> InlineTerms {
        let mimes = ["application/json", "text/plain"].map(str::to_owned).to_vec();
        InlineTerms {
            most_bytes: 40,
            snippet_bytes: 40,
            snippet_tokens: 10,
            mimes,
            may_hold_media: false,
        }
    }

    fn fault(mime: &str, content: &str) -> Option<String> {
        let item = InlineEvidence { mime: mime.to_owned(), content: content.to_owned() };
        terms().fault(&Evidence { inline: vec![item], refs: Vec::new() })
    }

    #[test]
    fn inline_evidence_must_respect_the_contract() {
        assert_eq!(fault("text/plain; charset=utf-8", "trace:attempt-1"), None);
        assert_eq!(fault("Application/JSON", r#"{"a":1}"#), None);
        for (mime, content, part) in [
            ("text/html", "<p>", "media types"),
            ("text/plain", &"x".repeat(41), "at most 40 bytes"),
            ("application/json", "{", "is not JSON"),
            ("text/plain", "see data:image/png;base64,AA", "must not contain images"),
            ("text/plain", "iVBORw0KGgoAAAANSUhEUg", "must not contain images"),
        ] {
            let fault = fault(mime, content).unwrap();
            assert!(fault.starts_with("`evidence_inline.0` ") && fault.contains(part), "{fault}");
        }
    }

    #[test]
    fn a_snippet_is_limited_in_bytes_and_tokens() {
        let check = |terms: InlineTerms, (bytes, expected): (usize, Option<&str>)| {
            let item = |content: String| InlineEvidence { mime: "text/plain".to_owned(), content };
            let inline = vec![item("short".to_owned()), item("x".repeat(bytes))];
            let fault = terms.fault(&Evidence { inline, refs: Vec::new() });
            let expected = expected.map(|it| {
                format!(
                    "`evidence_inline.1` must have at most {it}; refer to longer evidence instead"
                )
            });
            assert_eq!(fault, expected, "{bytes} bytes");
        };
        for case in [
            (20, None),
            (21, Some("20 bytes (`evidence_policy.max_snippet_bytes`), and has 21")),
            // The message names the narrowest limit, so an item that respects it is accepted.
            (41, Some("20 bytes (`evidence_policy.max_snippet_bytes`), and has 41")),
        ] {
            check(InlineTerms { snippet_bytes: 20, ..terms() }, case);
        }
        let few = "3 tokens (`evidence_policy.max_snippet_tokens`, a token is 4 bytes), and has 4";
        for case in [(12, None), (13, Some(few)), (16, Some(few))] {
            check(InlineTerms { snippet_tokens: 3, ..terms() }, case);
        }
    }

    #[test]
    fn a_reference_needs_a_digest() {
        let reference = ArtifactRef {
            uri: "https://example.com".to_owned(),
            digest: " ".to_owned(),
            size_bytes: 1,
            mime: "text/plain".to_owned(),
            created_at: 1,
            producer: "p".to_owned(),
        };
        let evidence = Evidence { inline: Vec::new(), refs: vec![reference] };
        let fault = terms().fault(&evidence).unwrap();
        assert_eq!(fault, "`evidence_refs.0.digest` must not be blank");
    }
}
