//! Random schemas: nothing panics, verdicts match the validator, and the work limit holds.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use jsonschema::{Keyword, ValidationError};
use jurat_limits::schema::{LimitedSchema, SchemaMatch};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "ab", ""]).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..5).prop_map(Value::from),
        word().prop_map(Value::from),
    ]
}

fn instance() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn leaf() -> impl Strategy<Value = (String, Value)> {
    prop_oneof![
        prop::sample::select(vec!["string", "number", "object", "array", "null"])
            .prop_map(|kind| ("type".to_owned(), json!(kind))),
        prop::sample::select(vec!["^a", "b$", "^[ab]*$", "."])
            .prop_map(|pattern| ("pattern".to_owned(), json!(pattern))),
        (0_u32..4).prop_map(|most| ("maxItems".to_owned(), json!(most))),
        (-1_i64..3).prop_map(|least| ("minimum".to_owned(), json!(least))),
        word().prop_map(|name| ("required".to_owned(), json!([name]))),
        Just(("uniqueItems".to_owned(), json!(true))),
        scalar().prop_map(|value| ("const".to_owned(), value)),
        (0_u8..4).prop_map(|n| ("$ref".to_owned(), json!(format!("#/$defs/d{n}")))),
        Just(("$ref".to_owned(), json!("#"))),
        Just(("$dynamicRef".to_owned(), json!("#node"))),
    ]
}

fn applicator(
    inner: impl Strategy<Value = Value> + Clone + 'static,
) -> BoxedStrategy<(String, Value)> {
    let list = prop::collection::vec(inner.clone(), 1..3).prop_map(Value::from);
    let map = prop::collection::btree_map(word(), inner.clone(), 1..3)
        .prop_map(|members| Value::Object(members.into_iter().collect()));
    let with = |names: &[&'static str], held: BoxedStrategy<Value>| {
        (prop::sample::select(names.to_vec()), held)
            .prop_map(|(name, held)| (name.to_owned(), held))
            .boxed()
    };
    let one = [
        "not",
        "if",
        "then",
        "else",
        "additionalProperties",
        "propertyNames",
        "items",
        "contains",
        "unevaluatedItems",
        "unevaluatedProperties",
        "unevaluatedProperties",
    ];
    prop_oneof![
        with(&["allOf", "anyOf", "oneOf", "prefixItems"], list.boxed()),
        with(&["properties", "patternProperties", "dependentSchemas"], map.boxed()),
        with(&one, inner.boxed()),
    ]
    .boxed()
}

/// Every object schema carries a keyword that counts how often it is applied.
fn object(members: Vec<(String, Value)>) -> Value {
    let mut object: Map<String, Value> = members.into_iter().collect();
    object.insert("x-count".to_owned(), json!(true));
    Value::Object(object)
}

fn subschema() -> impl Strategy<Value = Value> + Clone {
    let leaf = prop::collection::vec(leaf(), 0..3).prop_map(object);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let members = prop_oneof![leaf_or(inner.clone()), applicator(inner)];
        prop::collection::vec(members, 0..4).prop_map(object)
    })
    .boxed()
}

fn leaf_or(inner: BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    prop_oneof![leaf().boxed(), applicator(inner)].boxed()
}

fn schema() -> impl Strategy<Value = Value> {
    (subschema(), prop::collection::vec(subschema(), 4), any::<bool>()).prop_map(
        |(mut root, defs, is_anchored)| {
            let mut named = Map::new();
            for (number, def) in defs.into_iter().enumerate() {
                named.insert(format!("d{number}"), def);
            }
            named.insert("node".to_owned(), json!({"$dynamicAnchor": "node", "x-count": true}));
            root["$defs"] = Value::Object(named);
            if is_anchored {
                // The validator then finds the name twice, and the path decides.
                root["$id"] = json!("https://example.com/root");
                root["$defs"]["inner"] = json!({"$id": "inner", "$dynamicAnchor": "node",
                    "x-count": true, "items": {"$dynamicRef": "#node", "x-count": true}});
            }
            root
        },
    )
}

struct Count(Arc<AtomicU64>);

impl<'i> Keyword<'i> for Count {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// How often the validator applies a subschema, and its verdict.
fn counted(schema: &Value, instance: &Value) -> (u64, bool) {
    let count = Arc::new(AtomicU64::new(0));
    let shared = Arc::clone(&count);
    let validator = jsonschema::options()
        .with_keyword("x-count", move |_, _, _| Ok(Box::new(Count(Arc::clone(&shared)))))
        .build(schema)
        .unwrap();
    let is_valid = validator.is_valid(instance);
    (count.load(Ordering::Relaxed), is_valid)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn verdicts_match_the_validator_and_the_work_limit_holds(
        schema in schema(),
        instances in prop::collection::vec(instance(), 4),
    ) {
        let Ok(compiled) = LimitedSchema::compile(&schema) else { return Ok(()) };
        for instance in instances {
            let Ok(said) = compiled.check(&instance) else { continue };
            let (applied, is_valid) = counted(&schema, &instance);
            prop_assert_eq!(said == SchemaMatch::Yes, is_valid);
            let bound = compiled.estimate(&instance).applications;
            prop_assert!(applied <= bound, "{} applied, bound {}", applied, bound);
        }
    }
}
