//! JSON documents that parsers read differently, and whether we accept them.

/// A document: a value, and the text around the whole.
#[derive(Debug, Clone)]
pub struct JsonDocument {
    pub name: &'static str,
    pub is_read: bool,
    value: Vec<u8>,
    before: &'static [u8],
    after: &'static [u8],
}

impl JsonDocument {
    /// The document with its value between two pieces of JSON.
    pub fn within(&self, head: &str, tail: &str) -> Vec<u8> {
        [self.before, head.as_bytes(), &self.value, tail.as_bytes(), self.after].concat()
    }
}

/// The table. Every reader of outside JSON must agree with it.
pub fn documents() -> Vec<JsonDocument> {
    [with_one_reading(), with_more_or_none(), deep(), around()].concat()
}

fn with_one_reading() -> Vec<JsonDocument> {
    let read = |name, value: &str| document(name, value.as_bytes(), true);
    vec![
        read("a word", r#""x""#),
        read("an empty object", "{}"),
        read("minus zero", "-0"),
        read("one as a float", "1.0"),
        read("one with an exponent", "10e-1"),
        read("a tenth", "0.1"),
        read("the largest safe integer", "9007199254740991"),
        read("the smallest safe integer", "-9007199254740991"),
        read("a large float", "1e308"),
        read("a tiny float", "1e-400"),
        read("an escaped NUL", r#""\u0000""#),
        read("an escaped slash", r#""\/""#),
        read("an override of the direction", "\"\u{202e}txt\""),
        read("a pair of surrogates", r#""\ud83d\ude00""#),
        read("letters beyond the plane", "\"\u{1f600}\""),
        read("a name without letters", r#"{"": 1}"#),
        read("names that differ in case", r#"{"a": 1, "A": 2}"#),
        read("a name in two normal forms", "{\"\u{e9}\": 1, \"e\u{301}\": 2}"),
        read("a prototype", r#"{"__proto__": {}}"#),
    ]
}

fn with_more_or_none() -> Vec<JsonDocument> {
    let refused = |name, value: &str| document(name, value.as_bytes(), false);
    vec![
        refused("the same name twice", r#"{"a": 1, "a": 2}"#),
        refused("the same member twice", r#"{"a": 1, "a": 1}"#),
        refused("the same name twice, once escaped", r#"{"a": 1, "\u0061": 2}"#),
        refused("the same name twice, deep down", r#"[[[[{"x": {"a": 1, "a": 2}}]]]]"#),
        refused("the first unsafe integer", "9007199254740992"),
        refused("the first unsafe negative integer", "-9007199254740992"),
        refused("a long integer", "123456789012345678901234567890"),
        refused("a float beyond all", "1e999"),
        refused("not a number", "NaN"),
        refused("infinity", "Infinity"),
        refused("a leading zero", "01"),
        refused("a leading plus", "+1"),
        refused("a bare point", "1."),
        refused("a number in base sixteen", "0x10"),
        refused("half a pair of surrogates", r#""\ud800""#),
        refused("a raw control character", "\"a\u{1}b\""),
        refused("an unknown escape", r#""\x41""#),
        refused("single quotes", "'x'"),
        refused("a trailing comma", "[1,]"),
        refused("a comment", "1 /* one */"),
        refused("a bare word", "x"),
        refused("nothing", ""),
        document("bytes that are not UTF-8", b"\"\xff\"", false),
        document("an overlong slash", b"\"\xc0\xaf\"", false),
        document("a raw NUL", b"\"a\0b\"", false),
    ]
}

fn deep() -> Vec<JsonDocument> {
    let deep = |levels: usize| [vec![b'['; levels], vec![b']'; levels]].concat();
    vec![
        document("forty levels", &deep(40), true),
        document("two hundred levels", &deep(200), false),
        document("a hundred thousand levels", &deep(100_000), false),
    ]
}

fn around() -> Vec<JsonDocument> {
    let around = |name, before: &'static [u8], after: &'static [u8], is_read| JsonDocument {
        name,
        is_read,
        value: b"1".to_vec(),
        before,
        after,
    };
    vec![
        around("spaces around", b" \t\r\n", b" \n", true),
        around("a byte order mark", b"\xef\xbb\xbf", b"", false),
        around("a second document", b"", b" {}", false),
        around("rubbish behind", b"", b"x", false),
        around("a NUL behind", b"", b"\0", false),
        around("a space that is none of JSON's", b"\xc2\xa0", b"", false),
    ]
}

fn document(name: &'static str, value: &[u8], is_read: bool) -> JsonDocument {
    JsonDocument { name, is_read, value: value.to_vec(), before: b"", after: b"" }
}
