//! Hostile and friendly schemas: which are refused, with which code, and which still work.

mod random;

use std::net::TcpListener;

use jurat_limits::schema::{LimitedSchema, SchemaError, SchemaMatch, WorkLimitError};
use serde_json::{Value, json};

#[track_caller]
fn refused(schema: &Value) -> SchemaError {
    LimitedSchema::compile(schema).unwrap_err()
}

#[track_caller]
fn check_refused(schema: &Value, slug: &str, text: &str) {
    let error = refused(schema);
    assert_eq!(error.slug(), slug, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

#[track_caller]
fn check_matches(schema: &Value, instance: &Value, expect: bool) {
    let matches =
        LimitedSchema::compile(schema).unwrap().check(instance).unwrap() == SchemaMatch::Yes;
    assert_eq!(matches, expect, "{schema} on {instance}");
}

/// `[[…[innermost]…]]`
fn nested(levels: usize, innermost: Value) -> Value {
    (0..levels).fold(innermost, |inner, _| json!([inner]))
}

/// Each definition applies the next one twice.
fn doubling(keyword: &str, levels: usize) -> Value {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({keyword: [next, next]}));
    }
    defs.insert(format!("d{levels}"), json!({"type": "integer"}));
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

#[test]
fn a_schema_that_doubles_at_each_level_is_refused() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        check_refused(&doubling(keyword, 28), "schema_expansion", "more than 10000 subschemas");
    }
    check_matches(&doubling("allOf", 8), &json!(1), true);
}

#[test]
fn doubling_below_a_property_is_refused_too() {
    let mut schema = doubling("allOf", 28);
    schema["properties"] = json!({"a": {"$ref": "#/$defs/d0"}});
    schema.as_object_mut().unwrap().remove("$ref");
    check_refused(&schema, "schema_expansion", "`/properties/a`");
}

fn recursive_contains() -> Value {
    json!({
        "$ref": "#/$defs/n",
        "$defs": {"n": {"anyOf": [
            {"type": "array", "contains": {"$ref": "#/$defs/n"}},
            {"type": "array", "contains": {"$ref": "#/$defs/n"}, "minItems": 1},
            {"const": "y"},
        ]}},
    })
}

#[test]
fn recursion_that_doubles_with_the_depth_of_the_instance_is_not_followed_far() {
    let schema = LimitedSchema::compile(&recursive_contains()).unwrap();
    for levels in [1, 4, 12, 14, 16, 18] {
        let deep = nested(levels, json!("x"));
        match schema.check(&deep) {
            Ok(SchemaMatch::No(notes)) => assert!(notes.len() <= 5),
            other => assert_eq!(other, Err(WorkLimitError::Applications), "{levels}"),
        }
    }
    let refused = schema.check(&nested(40, json!("x")));
    assert_eq!(refused, Err(WorkLimitError::Applications));
    assert_eq!(schema.check(&nested(3, json!("y"))), Ok(SchemaMatch::Yes));
}

#[test]
fn nothing_outside_of_the_schema_is_read() {
    let canary = TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let address = canary.local_addr().unwrap();
    let remote = format!("http://{address}/x.json");
    let at_root = json!({"$ref": remote});
    check_refused(&at_root, "schema_remote_ref", "`/$ref` refers to `http://127.0.0.1:");
    for reference in [
        remote.as_str(),
        "file:///etc/hostname",
        "other.json",
        "//host/x",
        "urn:x:y",
        "https://a#/b",
    ] {
        for keyword in ["$ref", "$dynamicRef"] {
            let schema = json!({"properties": {"a": {"items": {keyword: reference}}}});
            let at = format!("`/properties/a/items/{keyword}` refers to `{reference}`");
            check_refused(&schema, "schema_remote_ref", &at);
        }
    }
    // A base URL elsewhere does not make it reachable.
    let based = json!({"$id": format!("http://{address}/"), "items": {"$ref": "x.json"}});
    check_refused(&based, "schema_remote_ref", "`/items/$ref`");
    let meta = json!({"$schema": format!("http://{address}/meta")});
    check_refused(&meta, "schema_unknown_draft", "use draft 4, 6, 7, 2019-09 or 2020-12");
    let meta = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    check_refused(&meta, "schema_remote_ref", "never fetched");

    let visit = canary.accept().map(|_| ()).map_err(|error| error.kind());
    assert_eq!(visit, Err(std::io::ErrorKind::WouldBlock), "somebody came to fetch");
}

#[test]
fn a_reference_that_leads_nowhere_is_named() {
    let schema = json!({"items": {"$ref": "#/$defs/missing"}});
    check_refused(&schema, "schema_dangling_ref", "`/items/$ref` refers to `#/$defs/missing`");
    check_refused(&json!({"$ref": "#nowhere"}), "schema_dangling_ref", "#nowhere");
}

#[test]
fn a_deep_schema_is_refused_before_anything_recurses() {
    // Built by hand and never dropped, because the macro and the drop are recursive.
    let deep = (0..5_000).fold(json!({}), |inner, _| {
        Value::Object(serde_json::Map::from_iter([("items".to_owned(), inner)]))
    });
    let deep = Box::leak(Box::new(deep));
    check_refused(deep, "schema_too_deep", "deeper than 64 at `/items/items/");
    let deep = (0..5_000).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    let deep = Box::leak(Box::new(Value::Object(serde_json::Map::from_iter([(
        "const".to_owned(),
        deep,
    )]))));
    check_refused(deep, "schema_too_deep", "deeper than 64");
    let allowed = (0..63).fold(json!({"type": "string"}), |inner, _| json!({"items": inner}));
    check_matches(&allowed, &nested(63, json!("x")), true);
    check_matches(&allowed, &nested(63, json!(1)), false);
}

#[test]
fn a_long_chain_of_references_is_refused() {
    let chain = |length: usize| {
        let mut defs = serde_json::Map::new();
        for link in 0..length {
            defs.insert(format!("d{link}"), json!({"$ref": format!("#/$defs/d{}", link + 1)}));
        }
        defs.insert(format!("d{length}"), json!({"type": "integer"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    };
    check_refused(&chain(10_000), "schema_too_large", "65536 bytes");
    check_refused(&chain(1_000), "schema_chain_too_long", "shorten the chain");
    check_matches(&chain(150), &json!(1), true);
    check_matches(&chain(150), &json!("1"), false);
    // Looking for unevaluated members follows the whole chain, at compile time too.
    let mut closed = chain(100);
    closed["unevaluatedProperties"] = json!(false);
    check_matches(&closed, &json!(1), true);
}

#[test]
fn a_cycle_that_never_looks_at_a_part_is_refused() {
    check_refused(&json!({"$ref": "#"}), "schema_cycle", "break the cycle");
    let two = json!({"$ref": "#/$defs/a", "$defs": {
        "a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}});
    check_refused(&two, "schema_cycle", "`/$defs/");
    let dynamic = json!({"$dynamicAnchor": "n", "anyOf": [{"$dynamicRef": "#n"}]});
    check_refused(&dynamic, "schema_cycle", "break the cycle");
    let recursive = json!({
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$recursiveAnchor": true, "if": {"$recursiveRef": "#"}});
    check_refused(&recursive, "schema_cycle", "break the cycle");
}

#[test]
fn patterns_that_could_take_long_are_refused() {
    for pattern in [r"^((?=a)a+)+(b|!!)$|^a+!$", r"(?<!x)y", r"(a)\1", "(", r"(?<n>a)\k<n>"] {
        let why = "`/properties/p/pattern` is refused: it is not a regular expression";
        let schema = json!({"properties": {"p": {"pattern": pattern}}});
        check_refused(&schema, "schema_pattern_refused", why);
        let schema = json!({"patternProperties": {pattern: true}});
        check_refused(&schema, "schema_pattern_refused", "at `/patternProperties/");
    }
    let counted = json!({"pattern": "^(((a{100}){100}){100})$"});
    check_refused(&counted, "schema_pattern_refused", "lower its repetition counts");
    let many: Vec<Value> =
        (0..50).map(|n| json!({"pattern": format!("^([a-z]{{1,60}}){{1,{}}}$", 20 + n)})).collect();
    check_refused(&json!({"anyOf": many}), "schema_pattern_refused", "with those of the other");
    let long = json!({"pattern": "a".repeat(513)});
    check_refused(&long, "schema_pattern_refused", "more than 512 bytes");
    let many: Vec<Value> = (0..51).map(|n| json!({"pattern": format!("a{n}")})).collect();
    check_refused(&json!({"anyOf": many}), "schema_too_many_patterns", "more than 50");
}

#[test]
fn patterns_that_backtrack_elsewhere_are_fast() {
    let schema = json!({"pattern": "^(a+)+$"});
    check_matches(&schema, &json!(format!("{}!", "a".repeat(10_000))), false);
    check_matches(&schema, &json!("a".repeat(10_000)), true);
    // As in JSON Schema, not as in Rust: `\d` is ASCII only, and `$` is the very end.
    check_matches(&json!({"pattern": r"^\d+$"}), &json!("٣"), false);
    check_matches(&json!({"pattern": r"^\d+$"}), &json!("12"), true);
}

#[test]
fn a_pattern_over_a_very_long_text_is_not_decided() {
    let schema = LimitedSchema::compile(&json!({"pattern": "^([ab]{1,200}){1,10}c$"})).unwrap();
    let refused = schema.check(&json!("ab".repeat(50_000)));
    assert_eq!(refused, Err(WorkLimitError::RegexSteps));
    assert_eq!(schema.check(&json!("abc")), Ok(SchemaMatch::Yes));
    // A pattern that is applied many times counts as often.
    let many = json!({"$defs": {"p": {"pattern": "^a+b?c?d?e?$"}},
        "allOf": vec![json!({"$ref": "#/$defs/p"}); 900]});
    let schema = LimitedSchema::compile(&many).unwrap();
    assert_eq!(schema.check(&json!("a".repeat(100_000))), Err(WorkLimitError::RegexSteps));
}

#[test]
fn large_schemas_are_refused() {
    let words: Vec<String> = (0..500_000).map(|n| format!("word-{n}")).collect();
    check_refused(&json!({"enum": words}), "schema_too_large", "65536 bytes");
    let numbers: Vec<u32> = (0..1_001).collect();
    check_refused(&json!({"items": {"enum": numbers}}), "schema_enum_too_large", "`/items/enum`");
    check_matches(&json!({"enum": &numbers[1..]}), &json!(1_000), true);
    check_refused(&json!({"title": "x".repeat(70_000)}), "schema_too_large", "65536 bytes");
    let many = vec![json!({"type": "null"}); 2_001];
    check_refused(&json!({"anyOf": many}), "schema_too_many_nodes", "2000 subschemas");
}

#[test]
fn a_large_instance_is_not_decided() {
    let schema =
        LimitedSchema::compile(&json!({"items": {"anyOf": [{"type": "null"}, true]}})).unwrap();
    let large = json!(vec![1; 600_000]);
    assert_eq!(schema.check(&large), Err(WorkLimitError::Applications));
    assert_eq!(schema.check(&nested(65, json!(1))), Err(WorkLimitError::TooDeep));
    // Uncounted items cannot hide in a part that no subschema looks at.
    let hidden = json!([vec![1; 900_000], vec![1; 200_000]]);
    assert_eq!(schema.check(&hidden), Err(WorkLimitError::Applications));
    assert!(!schema.estimate(&large).is_small());
    assert!(schema.estimate(&json!([1, 2, 3])).is_small());
}

#[test]
fn looking_for_unevaluated_members_counts_as_often_as_it_looks() {
    // Each level looks through everything below it again.
    let nested = |levels: usize| {
        (0..levels).fold(
            json!({"properties": {"a": true}}),
            |inner, _| json!({"anyOf": [inner], "unevaluatedProperties": true}),
        )
    };
    check_refused(&nested(20), "schema_expansion", "more than 10000 subschemas");
    check_matches(&nested(5), &json!({"a": 1, "b": 2}), true);
    // The same with members in between costs at compile time.
    let between = (0..14).fold(
        json!({"type": "string"}),
        |inner, _| json!({"anyOf": [{"properties": {"a": inner}}], "unevaluatedProperties": false}),
    );
    check_refused(&between, "schema_expansion", "would take too much work");
}

#[test]
fn resources_with_too_many_paths_to_them_are_refused() {
    // The validator compiles each resource again for every path that leads to it.
    let ladder = |rungs: usize| {
        let mut defs = serde_json::Map::new();
        for rung in 0..rungs {
            for side in ["left", "right"] {
                let next = |side: &str| json!({"$ref": format!("{side}-{}", rung + 1)});
                let mut resource = json!({"$id": format!("{side}-{rung}")});
                if rung + 1 < rungs {
                    resource["properties"] = json!({"l": next("left"), "r": next("right")});
                }
                defs.insert(format!("{side}-{rung}"), resource);
            }
        }
        json!({"$id": "https://example.com/root", "$ref": "left-0", "$defs": defs})
    };
    check_refused(&ladder(16), "schema_expansion", "fewer `$id`");
    check_matches(&ladder(6), &json!({"l": {"r": {"l": 1}}}), true);
}

#[test]
fn an_invalid_schema_names_its_fault() {
    check_refused(
        &json!({"properties": {"a": {"type": "text"}}}),
        "schema_invalid",
        "/properties/a",
    );
    check_refused(&json!({"minimum": "1"}), "schema_invalid", "`/minimum`");
    check_refused(&json!([1]), "schema_invalid", "not valid");
    check_refused(&json!("string"), "schema_invalid", "not valid");
}

#[test]
fn an_error_does_not_repeat_a_long_schema() {
    let name = "n".repeat(20_000);
    let schemas = [
        json!({"properties": {name.as_str(): {"$ref": format!("http://x/{name}")}}}),
        json!({"properties": {name.as_str(): {"pattern": "("}}}),
        json!({"properties": {name.as_str(): {"type": name}}}),
        json!({"properties": {name.as_str(): {"$ref": format!("#/properties/{name}")}}}),
        json!({"$schema": name}),
    ];
    for schema in schemas {
        let text = refused(&schema).to_string();
        assert!(text.len() < 700, "{text}");
    }
}

#[test]
fn data_in_a_schema_is_not_a_schema() {
    let outside = "http://example.com/outside.json";
    check_matches(&json!({"const": {"$ref": outside}}), &json!({"$ref": outside}), true);
    check_matches(&json!({"enum": [{"$ref": outside, "pattern": "("}]}), &json!(1), false);
    check_matches(
        &json!({"default": {"$ref": outside}, "examples": [{"$ref": "#/x"}]}),
        &json!(1),
        true,
    );
    let named = json!({"properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}}});
    check_matches(&named, &json!({"$ref": outside, "pattern": "("}), true);
    check_matches(&named, &json!({"$ref": 1}), false);
}

#[test]
fn references_within_the_document_work_in_every_form() {
    let string = json!({"type": "string"});
    let schemas = [
        json!({"items": {"$ref": "#/$defs/s"}, "$defs": {"s": string}}),
        json!({"items": {"$ref": "#s"}, "$defs": {"x": {"$anchor": "s", "type": "string"}}}),
        json!({"$id": "https://example.com/root.json", "items": {"$ref": "/s.json"},
            "$defs": {"s": {"$id": "s.json", "type": "string"}}}),
        json!({"$id": "https://example.com/root", "items": {"$ref": "https://example.com/root#/$defs/s"},
            "$defs": {"s": string}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#",
            "items": {"$ref": "#/definitions/s"}, "definitions": {"s": string}}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://example.com/r",
            "items": {"$ref": "#/definitions/s"}, "definitions": {"s": string}}),
        // A member that is not a keyword is still part of the document.
        json!({"items": {"$ref": "#/shared/s"}, "shared": {"s": string}}),
        json!({"items": {"$ref": "#/$defs/a~1b%25"}, "$defs": {"a/b%": string}}),
    ];
    for schema in schemas {
        check_matches(&schema, &json!(["a"]), true);
        check_matches(&schema, &json!([1]), false);
    }
}

#[test]
fn recursive_schemas_work() {
    let tree = json!({
        "$id": "https://example.com/tree", "$dynamicAnchor": "node", "type": "object",
        "properties": {"data": true, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
    });
    let strict = json!({
        "$id": "https://example.com/strict-tree", "$dynamicAnchor": "node",
        "$ref": "tree", "unevaluatedProperties": false, "$defs": {"tree": tree},
    });
    let good = json!({"children": [{"data": 1, "children": []}]});
    let unknown = json!({"children": [{"extra": 1}]});
    check_matches(&tree, &unknown, true);
    check_matches(&strict, &good, true);
    check_matches(&strict, &unknown, false);
    let old = json!({
        "$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true,
        "properties": {"next": {"$recursiveRef": "#"}}, "unevaluatedProperties": false});
    check_matches(&old, &json!({"next": {"next": {}}}), true);
    check_matches(&old, &json!({"next": {"other": {}}}), false);
}

/// Different lists that contain only lists, up to this many.
fn lists_of_lists(most: usize) -> Vec<Value> {
    let mut by_size: Vec<Vec<Value>> = vec![vec![json!([])]];
    while by_size.last().is_some_and(|last| last.len() < most) {
        let size = by_size.len();
        // A list of this size is a first item and the rest, which is a list itself.
        let made = (0..size).flat_map(|first| {
            let rests = &by_size[size - 1 - first];
            by_size[first].iter().flat_map(move |item| {
                rests.iter().map(move |rest| {
                    let mut list = vec![item.clone()];
                    list.extend(rest.as_array().unwrap().iter().cloned());
                    Value::Array(list)
                })
            })
        });
        let made = made.collect();
        by_size.push(made);
    }
    let mut lists = by_size.pop().unwrap();
    lists.truncate(most);
    lists
}

#[test]
fn hostile_items_do_not_slow_down_unique_items() {
    // All of them have the same hash in the validator, which then compares each with each.
    let mut items = lists_of_lists(60_000);
    let schema = LimitedSchema::compile(&json!({"uniqueItems": true})).unwrap();
    assert_eq!(schema.check(&json!(items)), Ok(SchemaMatch::Yes));
    items.push(items[7].clone());
    assert!(matches!(schema.check(&json!(items)), Ok(SchemaMatch::No(_))));
}

#[test]
fn repeated_items_are_named() {
    let schema =
        LimitedSchema::compile(&json!({"properties": {"a": {"uniqueItems": true}}})).unwrap();
    let said = schema.check(&json!({"a": [1, 2, 1.0]})).unwrap();
    let message = "at /a: two items of the list are equal".to_owned();
    assert_eq!(said, SchemaMatch::No(vec![message]));
    check_matches(&json!({"uniqueItems": false}), &json!([1, 1]), true);
    check_matches(&json!({"uniqueItems": true}), &json!({"a": 1}), true);
}
