//! Reading a declared request: paths, order and texts of faults, and its schema.

use jurat_core::code::ProblemCode;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use utoipa::PartialSchema as _;

use super::{
    FieldFault, Hidden, RequestBody, read, read_all, refuse_slips, request, text, values,
    values::{Count, NotBlank, PlainText, Whole, text_of},
};
use crate::api::{
    agent_events::SendAgentEventRequest,
    agent_runs::AgentRunSpecBody,
    consensus_request::{DelegateRequest, FactcheckRequest, ValidateRequest},
    executors::AddExecutorRequest,
    keys::CreateKeyRequest,
    tasks::TaskOrder,
    workflows::SaveWorkflowRequest,
};

const CODE: ProblemCode = ProblemCode::ValidationError;

request! {
    /// A parcel.
    /// It is sent.
    strict struct Parcel {
        /// Who gets it.
        to | recipient: NotBlank,
        weight: Whole<1, 100>,
        size as "Size": Option<Size>,
        stamps: Option<Vec<Stamp>>,
        note: Option<Value>,
        colour: Hidden<Colour>;
        ..care: Care
    }

    /// How it is handled.
    open struct Care {
        /// How often it may be dropped.
        drops: Option<Count<0, 3>>,
    }

    /// Its size.
    strict struct Size {
        depth: Whole<1, 9>,
    }

    /// A stamp.
    open struct Stamp {
        value: PlainText<5>,
    }
}

values! {
    /// A colour, which is always refused.
    struct Colour(()): text() => colour;
}

fn colour(value: &Value) -> Result<(), FieldFault> {
    text_of(value)?;
    Err(FieldFault::Unsupported("is not supported".into()))
}

fn faults(body: &Value) -> Vec<String> {
    let faults = read_all::<Parcel>(body, CODE).map(drop).unwrap_err();
    faults
        .into_iter()
        .inspect(|it| {
            let field = it.field.as_deref().unwrap_or_default();
            assert!(field.is_empty() || it.detail.starts_with(&format!("`{field}` ")), "{it:?}");
        })
        .map(|it| it.detail)
        .collect()
}

#[test]
fn every_fault_has_its_exact_path_in_the_order_of_the_fields() {
    let body = json!({
        "weight": 101, "Size": { "depth": 0, "width": 1 }, "colour": "red", "drops": 4,
        "stamps": [{ "value": "a" }, 1, { "value": " " }, { "value": "abcdef" }, { "value": null }],
    });
    assert_eq!(
        faults(&body),
        [
            "`Size.width` is not a known field; known are depth",
            "`to` is required",
            "`weight` must be a whole number from 1 to 100",
            "`Size.depth` must be a whole number from 1 to 9",
            "`stamps.1` must be an object, not a number",
            "`stamps.2.value` must not be blank",
            "`stamps.3.value` must have at most 5 characters",
            "`stamps.4.value` is required",
            "`colour` is not supported",
            "`drops` must be a whole number from 0 to 3",
        ]
    );
    let first = read::<Parcel>(&json!({ "to": 1 }), CODE).map(drop).unwrap_err();
    assert_eq!(first.detail, "`to` must be a string, not a number");
    assert_eq!(faults(&json!([])), ["the body must be an object, not a list"]);
}

#[test]
fn null_is_left_out_and_a_whole_number_may_be_written_with_a_point() {
    let body = json!({
        "to": "ann", "weight": 3.0, "Size": null, "drops": null, "note": { "a": null },
        "stamps": [{ "value": "a", "other": 1 }],
    });
    let parcel: Parcel = read(&body, CODE).unwrap();
    assert_eq!((parcel.to.0.as_str(), parcel.weight.0), ("ann", 3));
    assert!(parcel.size.is_none() && parcel.care.drops.is_none());
    assert_eq!(parcel.note, Some(json!({ "a": null })));
    assert!(parcel.colour.0.is_none());
    let stamps = parcel.stamps.unwrap_or_default();
    assert_eq!(stamps.iter().map(|stamp| stamp.value.0.as_str()).collect::<Vec<_>>(), ["a"]);
    let sized = json!({ "to": "ann", "weight": 1, "Size": { "depth": 2 } });
    assert_eq!(read::<Parcel>(&sized, CODE).unwrap().size.map(|size| size.depth.0), Some(2));
}

#[test]
fn an_alias_is_read_and_never_beside_its_name() {
    let parcel: Parcel = read(&json!({ "recipient": "ann", "weight": 1 }), CODE).unwrap();
    assert_eq!(parcel.to.0, "ann");
    assert_eq!(
        faults(&json!({ "recipient": 1, "weight": 1 })),
        ["`recipient` must be a string, not a number"]
    );
    assert_eq!(
        faults(&json!({ "to": "ann", "recipient": "bob", "weight": 1 })),
        ["`recipient` means the same as `to`; leave one out"]
    );
}

#[test]
fn a_slip_is_refused_and_a_stranger_ignored() {
    refuse_slips::<CreateKeyRequest>(&json!({ "colour": 1 }), CODE).unwrap();
    let slip = refuse_slips::<CreateKeyRequest>(&json!({ "scope": ["admin"] }), CODE).unwrap_err();
    assert_eq!(slip.detail, "`scope` is not a known field; did you mean `scopes`?");
}

#[test]
fn the_schema_follows_the_declaration() {
    let schema = json!(Parcel::schema());
    assert_eq!(
        schema,
        json!({
            "type": "object",
            "description": "A parcel.\nIt is sent.",
            "additionalProperties": false,
            "required": ["to", "weight"],
            "properties": {
                "to": { "type": "string", "pattern": "\\S", "description": "Who gets it." },
                "weight": { "type": "integer", "format": "int64", "minimum": 1, "maximum": 100 },
                "Size": { "oneOf": [
                    { "$ref": "#/components/schemas/Size" },
                    { "type": "null" },
                ] },
                "stamps": {
                    "type": ["array", "null"],
                    "items": { "$ref": "#/components/schemas/Stamp" },
                },
                "note": {},
                "drops": {
                    "type": ["integer", "null"], "format": "int32", "minimum": 0, "maximum": 3,
                    "description": "How often it may be dropped.",
                },
            },
        })
    );
}

/// A JSON value of any shape, with known and unknown field names.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z./: \u{0}-\u{3}]{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        prop::sample::select(vec![
            "to",
            "weight",
            "Size",
            "stamps",
            "claim",
            "output",
            "policy",
            "consensus",
            "contract",
            "budget",
            "agents",
            "session",
            "session_id",
            "equivalence",
            "files",
            "verifiers",
            "evidence_refs",
            "execution",
            "agent_envelope",
        ])
        .prop_map(str::to_owned),
        ".{0,6}",
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..6)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

/// Checks that each fault begins with the name of its field, or is about the body.
fn names_its_fields<R: RequestBody>(body: &Value) {
    let Err(faults) = read_all::<R>(body, CODE) else { return };
    assert!(!faults.is_empty());
    for fault in faults {
        match &fault.field {
            Some(field) => assert!(fault.detail.starts_with(&format!("`{field}` ")), "{fault:?}"),
            None => assert!(fault.detail.starts_with("the body "), "{fault:?}"),
        }
    }
}

proptest! {
    #[test]
    fn no_json_value_breaks_a_reader(body in any_json()) {
        names_its_fields::<Parcel>(&body);
        names_its_fields::<DelegateRequest>(&body);
        names_its_fields::<ValidateRequest>(&body);
        names_its_fields::<FactcheckRequest>(&body);
        names_its_fields::<AddExecutorRequest>(&body);
        names_its_fields::<SendAgentEventRequest>(&body);
        names_its_fields::<TaskOrder>(&body);
        names_its_fields::<AgentRunSpecBody>(&body);
        names_its_fields::<SaveWorkflowRequest>(&body);
    }
}
