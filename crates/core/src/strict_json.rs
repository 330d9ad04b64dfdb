//! Reads JSON strictly: refuses any text that two parsers could read differently.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

/// How deeply objects and arrays may be nested.
pub const MAX_DEPTH: usize = 64;

/// The largest integer that every JSON parser reads exactly.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

/// From this size on, serde may return a float for an integer that does not fit 64 bits.
const FLOAT_SUSPECT: f64 = 9_223_372_036_854_775_808.0;

/// Why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrictErrorKind {
    NotUtf8,
    ByteOrderMark,
    /// Not JSON, or more than one document; with the parser's message.
    Syntax(String),
    DuplicateKey(String),
    TooDeep,
    /// More values than this limit.
    TooManyValues(usize),
    IntegerOutOfRange,
}

/// Why a text was refused, and at which position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrictError {
    pub kind: StrictErrorKind,
    /// A JSON Pointer to the value, if it is known; empty for the document itself.
    pub path: String,
    pub line: usize,
    pub column: usize,
}

impl std::error::Error for StrictError {}

impl fmt::Display for StrictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            StrictErrorKind::NotUtf8 => f.write_str("the text is not UTF-8; encode it as UTF-8")?,
            StrictErrorKind::ByteOrderMark => {
                f.write_str("the text starts with a byte order mark; leave it out")?;
            }
            StrictErrorKind::Syntax(problem) => write!(f, "not one JSON document: {problem}")?,
            StrictErrorKind::DuplicateKey(key) => {
                write!(f, "the key `{}` appears twice; leave one out", short(key))?;
            }
            StrictErrorKind::TooDeep => {
                write!(f, "nested deeper than {MAX_DEPTH} levels; flatten the document")?;
            }
            StrictErrorKind::TooManyValues(most) => {
                write!(f, "more than {most} values, including lists and objects; send fewer")?;
            }
            StrictErrorKind::IntegerOutOfRange => {
                write!(f, "a whole number beyond ±{MAX_INTEGER}; write it as a string")?;
            }
        }
        if !self.path.is_empty() {
            write!(f, " (at `{}`)", short(&self.path))?;
        }
        if self.line > 0 {
            write!(f, " (line {}, column {})", self.line, self.column)?;
        }
        Ok(())
    }
}

/// Reads one JSON document.
pub fn parse(bytes: &[u8]) -> Result<Value, StrictError> {
    read(bytes, MAX_INTEGER, usize::MAX)
}

/// Reads one JSON document of at most `most_values` values. A value takes far more memory than its
/// few bytes of text, so readers of foreign input limit both.
pub fn parse_within(bytes: &[u8], most_values: usize) -> Result<Value, StrictError> {
    read(bytes, MAX_INTEGER, most_values)
}

/// Reads one JSON document whose integers may have up to 64 bits, for a peer that reads them
/// exactly. Otherwise it is as strict as [`parse`].
pub fn parse_wide(bytes: &[u8]) -> Result<Value, StrictError> {
    parse_wide_within(bytes, usize::MAX)
}

/// Like [`parse_wide`], for a document of at most `most_values` values.
pub fn parse_wide_within(bytes: &[u8], most_values: usize) -> Result<Value, StrictError> {
    read(bytes, u64::MAX, most_values)
}

fn read(bytes: &[u8], largest: u64, most_values: usize) -> Result<Value, StrictError> {
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(StrictError::at(StrictErrorKind::ByteOrderMark, bytes, 0));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| StrictError::at(StrictErrorKind::NotUtf8, bytes, error.valid_up_to()))?;
    let findings = RefCell::new(ParseFindings::default());
    let mut reader = serde_json::Deserializer::from_str(text);
    let left = Cell::new(most_values);
    let limit = ValueLimit { most_values, left: &left };
    let seed =
        ValueVisitor { findings: &findings, limit, path: &ValuePath::Root, depth: 0, largest };
    let read = seed.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    let findings = findings.into_inner();
    let suspect = findings.suspect;
    let value = read.map_err(|error| findings.explain(&error))?;
    match suspect.then(|| long_integer(bytes)).flatten() {
        Some(at) => Err(StrictError::at(StrictErrorKind::IntegerOutOfRange, bytes, at)),
        None => Ok(value),
    }
}

impl StrictError {
    fn at(kind: StrictErrorKind, bytes: &[u8], offset: usize) -> Self {
        let before = bytes.get(..offset).unwrap_or(bytes);
        let line = before.split(|byte| *byte == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|byte| **byte != b'\n').count();
        Self { kind, path: String::new(), line, column }
    }
}

/// What the visitors report beyond serde's own error.
#[derive(Default)]
struct ParseFindings {
    refused: Option<StrictErrorKind>,
    path: Option<String>,
    /// A float was so large that it may have been written as an integer.
    suspect: bool,
}

impl ParseFindings {
    fn explain(self, error: &serde_json::Error) -> StrictError {
        let kind = self.refused.unwrap_or_else(|| StrictErrorKind::Syntax(problem(error)));
        let path = self.path.unwrap_or_default();
        StrictError { kind, path, line: error.line(), column: error.column() }
    }
}

/// The parser's message without its position, which has fields of its own.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

/// The path from the root to a value, kept on the stack so that it costs nothing until an error
/// needs it.
enum ValuePath<'a> {
    Root,
    Key(&'a ValuePath<'a>, &'a str),
    Index(&'a ValuePath<'a>, usize),
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(parent, key) => {
                write!(f, "{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
            }
            Self::Index(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

/// The maximum number of values, and how many are left.
#[derive(Clone, Copy)]
struct ValueLimit<'a> {
    most_values: usize,
    left: &'a Cell<usize>,
}

#[derive(Clone, Copy)]
struct ValueVisitor<'a> {
    findings: &'a RefCell<ParseFindings>,
    limit: ValueLimit<'a>,
    path: &'a ValuePath<'a>,
    depth: usize,
    /// The largest integer that is accepted.
    largest: u64,
}

impl<'a> ValueVisitor<'a> {
    fn child<'b>(self, path: &'b ValuePath<'b>) -> ValueVisitor<'b>
    where
        'a: 'b,
    {
        ValueVisitor { path, depth: self.depth + 1, ..self }
    }

    fn refuse<E: serde::de::Error>(self, kind: StrictErrorKind) -> E {
        let mut findings = self.findings.borrow_mut();
        findings.refused = Some(kind);
        findings.path = Some(self.path.to_string());
        E::custom("refused")
    }

    /// Stores the innermost path of an error that the parser found.
    fn note<E>(self, error: E) -> E {
        let mut findings = self.findings.borrow_mut();
        if findings.path.is_none() {
            findings.path = Some(self.path.to_string());
        }
        error
    }

    /// Counts a value before it is stored.
    fn count<E: serde::de::Error>(self) -> Result<(), E> {
        match self.limit.left.get().checked_sub(1) {
            Some(left) => {
                self.limit.left.set(left);
                Ok(())
            }
            None => Err(self.refuse(StrictErrorKind::TooManyValues(self.limit.most_values))),
        }
    }

    fn enter<E: serde::de::Error>(self) -> Result<(), E> {
        if self.depth < MAX_DEPTH { Ok(()) } else { Err(self.refuse(StrictErrorKind::TooDeep)) }
    }
}

impl<'de> DeserializeSeed<'de> for ValueVisitor<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        self.count()?;
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value <= self.largest {
            Ok(value.into())
        } else {
            Err(self.refuse(StrictErrorKind::IntegerOutOfRange))
        }
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() <= self.largest {
            Ok(value.into())
        } else {
            Err(self.refuse(StrictErrorKind::IntegerOutOfRange))
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        if value.abs() >= FLOAT_SUSPECT {
            self.findings.borrow_mut().suspect = true;
        }
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("the number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut list = Vec::new();
        loop {
            let path = ValuePath::Index(self.path, list.len());
            let child = self.child(&path);
            match items.next_element_seed(child).map_err(|error| child.note(error))? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>().map_err(|error| self.note(error))? {
            let value = {
                let path = ValuePath::Key(self.path, &key);
                let child = self.child(&path);
                members.next_value_seed(child).map_err(|error| child.note(error))?
            };
            match map.entry(key) {
                Entry::Vacant(free) => free.insert(value),
                Entry::Occupied(taken) => {
                    let key = taken.key().clone();
                    let path = ValuePath::Key(self.path, &key);
                    let kind = StrictErrorKind::DuplicateKey(key.clone());
                    return Err(self.child(&path).refuse(kind));
                }
            };
        }
        Ok(Value::Object(map))
    }
}

/// The start of an integer with too many digits, in a text that is known to be JSON.
fn long_integer(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at += string_length(&bytes[at..]),
            b'-' | b'0'..=b'9' => {
                let token = &bytes[at..];
                let length = token.iter().take_while(|b| is_number_part(**b)).count();
                let whole = token[..length].iter().all(|b| matches!(b, b'-' | b'0'..=b'9'));
                // A shorter integer fits 64 bits, and was checked as an integer.
                if whole && length > 18 {
                    return Some(at);
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

fn is_number_part(byte: u8) -> bool {
    matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
}

/// The length of the string literal at the start of the bytes, quotes included.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn short(text: &str) -> String {
    text.chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), expect, "for {text}");
    }

    #[test]
    fn an_ordinary_document_reads_as_with_any_parser() {
        let text =
            r#" {"a": [1, -2.5, 1e300, true, null], "b": {"c": "é😀", "d": "\ud83d\ude00"}} "#;
        let expect: Value = serde_json::from_str(text).unwrap();
        assert_eq!(parse(text.as_bytes()).unwrap(), expect);
        assert_eq!(parse(b"9007199254740991").unwrap(), json!(9_007_199_254_740_991_u64));
        assert_eq!(parse(b"-9007199254740991").unwrap(), json!(-9_007_199_254_740_991_i64));
        assert!(parse(b"12345678901234567890123.0").is_ok());
        assert!(
            parse(br#"{"123456789012345678901234567890": "123456789012345678901234567890"}"#)
                .is_ok()
        );
    }

    #[test]
    fn a_duplicate_key_is_named_with_its_path() {
        check(
            r#"{"a":[{"x/y":1,"x/y":2}]}"#,
            "the key `x/y` appears twice; leave one out (at `/a/0/x~1y`) (line 1, column 23)",
        );
        check(
            "{\"a\":1,\n \"\\u0061\":2}",
            "the key `a` appears twice; leave one out (at `/a`) (line 2, column 12)",
        );
    }

    #[test]
    fn integers_that_parsers_round_are_refused() {
        for text in [
            "9007199254740992",
            "-9007199254740992",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775809",
            "123456789012345678901234567890",
        ] {
            let error = parse(format!("[1, {text}]").as_bytes()).unwrap_err();
            assert_eq!(error.kind, StrictErrorKind::IntegerOutOfRange, "for {text}");
        }
        assert!(parse(b"1e999").is_err());
    }

    #[test]
    fn a_peer_that_reads_integers_exactly_may_send_64_bits() {
        for text in ["9007199254740993", "18446744073709551615", "-9223372036854775808"] {
            assert_eq!(parse_wide(text.as_bytes()).unwrap().to_string(), text);
        }
        for text in ["18446744073709551616", "-9223372036854775809"] {
            let error = parse_wide(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind, StrictErrorKind::IntegerOutOfRange, "for {text}");
        }
        let twice = br#"{"a": 9007199254740993, "a": 1}"#;
        assert!(matches!(parse_wide(twice).unwrap_err().kind, StrictErrorKind::DuplicateKey(_)));
    }

    #[test]
    fn the_maximum_depth_is_64() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(64).as_bytes()).is_ok());
        for depth in [65, 100_000] {
            assert_eq!(parse(nested(depth).as_bytes()).unwrap_err().kind, StrictErrorKind::TooDeep);
        }
    }

    #[test]
    fn values_are_counted_before_they_are_stored() {
        let text = br#"[{"": 0}, {}, [1, "x"], null]"#;
        assert!(parse_within(text, 8).is_ok());
        let error = parse_within(text, 7).unwrap_err();
        assert_eq!(error.kind, StrictErrorKind::TooManyValues(7));
        assert_eq!(
            error.to_string(),
            "more than 7 values, including lists and objects; send fewer (at `/3`) \
             (line 1, column 24)"
        );
    }

    #[test]
    fn anything_but_one_utf_8_document_is_refused() {
        assert_eq!(parse(b"\xEF\xBB\xBF{}").unwrap_err().kind, StrictErrorKind::ByteOrderMark);
        assert_eq!(parse(b"\"\xFF\"").unwrap_err().kind, StrictErrorKind::NotUtf8);
        for text in [
            "",
            "{} {}",
            "{\"a\":1,}",
            "NaN",
            "Infinity",
            "'a'",
            "01",
            r#""\ud800""#,
            r#""\udc00x""#,
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(matches!(error.kind, StrictErrorKind::Syntax(_)), "for {text}: {error:?}");
        }
        check(
            "{\"a\": [1, oops]}",
            "not one JSON document: expected value (at `/a/1`) (line 1, column 11)",
        );
    }
}
