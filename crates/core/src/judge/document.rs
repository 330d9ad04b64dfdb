//! The JSON of a judgment, stored as the output of a replica and in the verdict cache.

use serde_json::{Map, Value, json};

use super::{JudgeFinding, Judgment, StrippedCharacters};
use crate::verifier::run::REASONING;

impl Judgment {
    /// The JSON of the judgment.
    pub fn document(&self) -> Value {
        let mut members = Map::new();
        members.insert("verdict".to_owned(), json!(self.verdict.as_str()));
        members.insert(REASONING.to_owned(), json!(self.reasoning));
        let findings = self.findings.iter().map(JudgeFinding::document).collect::<Vec<_>>();
        members.insert("findings".to_owned(), json!(findings));
        if !self.stripped.is_empty() {
            let stripped =
                self.stripped.iter().map(StrippedCharacters::document).collect::<Vec<_>>();
            members.insert("stripped".to_owned(), json!(stripped));
        }
        if let Some(commitment) = &self.commitment {
            members.insert("commitment".to_owned(), json!(commitment));
        }
        if !self.notes.is_empty() {
            members.insert("notes".to_owned(), json!(self.notes));
        }
        Value::Object(members)
    }

    /// Reads a document that [`Judgment::document`] wrote; `None` if it is not one.
    pub fn from_document(document: &Value) -> Option<Self> {
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        Some(Self {
            verdict: text("verdict")?.parse().ok()?,
            reasoning: text(REASONING)?.to_owned(),
            findings: list(document, "findings", JudgeFinding::from_document)?,
            stripped: list(document, "stripped", StrippedCharacters::from_document)?,
            commitment: text("commitment").map(str::to_owned),
            notes: list(document, "notes", |note| note.as_str().map(str::to_owned))?,
        })
    }
}

/// Reads an optional list.
fn list<T>(document: &Value, name: &str, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    match document.get(name) {
        None => Some(Vec::new()),
        Some(list) => list.as_array()?.iter().map(read).collect(),
    }
}

impl JudgeFinding {
    fn document(&self) -> Value {
        json!({ "field": self.field, "quote": self.quote, "says": self.says.as_str() })
    }

    fn from_document(document: &Value) -> Option<Self> {
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        Some(Self {
            field: text("field")?.to_owned(),
            quote: text("quote")?.to_owned(),
            says: text("says")?.parse().ok()?,
        })
    }
}

impl StrippedCharacters {
    fn document(&self) -> Value {
        json!({ "field": self.field, "kind": self.kind.as_str(), "count": self.count })
    }

    fn from_document(document: &Value) -> Option<Self> {
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        Some(Self {
            field: text("field")?.to_owned(),
            kind: text("kind")?.parse().ok()?,
            count: usize::try_from(document.get("count")?.as_u64()?).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{FindingStance, InvisibleKind, JudgeVerdict};

    #[test]
    fn a_judgment_reads_back() {
        let bare = Judgment {
            verdict: JudgeVerdict::NotMet,
            reasoning: "r".to_owned(),
            findings: Vec::new(),
            stripped: Vec::new(),
            commitment: None,
            notes: Vec::new(),
        };
        let field = "response".to_owned();
        let full = Judgment {
            findings: vec![JudgeFinding {
                field: field.clone(),
                quote: "q".to_owned(),
                says: FindingStance::Violates,
            }],
            stripped: vec![StrippedCharacters { field, kind: InvisibleKind::Bidi, count: 2 }],
            commitment: Some("d".to_owned()),
            notes: vec!["n".to_owned()],
            ..bare.clone()
        };
        for judgment in [bare, full] {
            assert_eq!(Judgment::from_document(&judgment.document()), Some(judgment));
        }
        assert_eq!(Judgment::from_document(&json!({ "verdict": "met" })), None);
    }
}
