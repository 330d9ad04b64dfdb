//! What a contract says about evidence that travels inline.

use serde_json::Value;

use crate::candidate::{Evidence, InlineEvidence};

/// What inline evidence may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineTerms {
    /// The longest content of one item, in bytes.
    pub most_bytes: u64,
    /// Media types without parameters.
    pub mimes: Vec<String>,
    /// Whether images, sound and films may be hidden in text.
    pub may_hold_media: bool,
}

/// How media begin when they are written as text: as an address, or in Base64.
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
    /// What is wrong with the evidence of a candidate, if anything is.
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
        if self.most_bytes < u64::try_from(content.len()).unwrap_or(u64::MAX) {
            return Some(format!("must have at most {} bytes", self.most_bytes));
        }
        if plain == "application/json" && serde_json::from_str::<Value>(content).is_err() {
            return Some("is no JSON although its media type says so".to_owned());
        }
        let is_media = MEDIA.iter().any(|mark| content.contains(mark));
        (is_media && !self.may_hold_media)
            .then(|| "must not hold images, sound or films; refer to them".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::ArtifactRef;

    fn terms() -> InlineTerms {
        let mimes = ["application/json", "text/plain"].map(str::to_owned).to_vec();
        InlineTerms { most_bytes: 40, mimes, may_hold_media: false }
    }

    fn fault(mime: &str, content: &str) -> Option<String> {
        let item = InlineEvidence { mime: mime.to_owned(), content: content.to_owned() };
        terms().fault(&Evidence { inline: vec![item], refs: Vec::new() })
    }

    #[test]
    fn inline_evidence_keeps_to_the_contract() {
        assert_eq!(fault("text/plain; charset=utf-8", "trace:attempt-1"), None);
        assert_eq!(fault("Application/JSON", r#"{"a":1}"#), None);
        for (mime, content, part) in [
            ("text/html", "<p>", "media types"),
            ("text/plain", &"x".repeat(41), "at most 40 bytes"),
            ("application/json", "{", "no JSON"),
            ("text/plain", "see data:image/png;base64,AA", "must not hold images"),
            ("text/plain", "iVBORw0KGgoAAAANSUhEUg", "must not hold images"),
        ] {
            let fault = fault(mime, content).unwrap();
            assert!(fault.starts_with("`evidence_inline.0` ") && fault.contains(part), "{fault}");
        }
    }

    #[test]
    fn a_reference_says_by_which_digest_it_is_known() {
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
