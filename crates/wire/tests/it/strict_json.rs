//! Compares the strict JSON reader with the ordinary one.

use jurat_wire::strict_json;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn any_value() -> impl Strategy<Value = Value> {
    let whole = -9_007_199_254_740_991_i64..=9_007_199_254_740_991;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        whole.prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        let members = prop::collection::btree_map(any::<String>(), inner.clone(), 0..8);
        prop_oneof![
            prop::collection::vec(inner, 0..8).prop_map(Value::Array),
            members.prop_map(|all| Value::Object(all.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn what_serde_writes_reads_back(value in any_value()) {
        for text in [serde_json::to_string(&value), serde_json::to_string_pretty(&value)] {
            prop_assert_eq!(strict_json::parse(text.unwrap().as_bytes()), Ok(value.clone()));
        }
    }

    #[test]
    fn what_the_ordinary_reader_refuses_is_refused(text in "[\\[\\]{}:,\"a0-9.eE+\\- \\\\u]{0,24}") {
        if serde_json::from_str::<Value>(&text).is_err() {
            prop_assert!(strict_json::parse(text.as_bytes()).is_err());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
        let _ = strict_json::parse(&bytes);
    }
}
