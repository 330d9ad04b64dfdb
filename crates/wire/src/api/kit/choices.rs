//! Fields that take several shapes, as the API describes them; the decoders say what each means.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, Schema, Type, empty},
    },
};

use super::{
    terms::{BucketsEquivalence, FieldsEquivalence, NumericEquivalence},
    words::{Tier, one_of},
};
use crate::api::{
    policy_request::{FactcheckPolicy, PolicyObject},
    sessions::SessionOfExecutor,
};

/// Text that is not blank.
pub(crate) const NOT_BLANK: &str = r"\S";
/// A name that can stand in a URL and on a command line.
pub(crate) const NAME: &str = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$";

/// A provider and a model, which may have slashes of its own.
pub(crate) const MODEL: &str = "^[a-z0-9-]+/[!-~]+$";

/// An executor, or a judge by its provider and model.
pub(crate) const VERIFIER: &str =
    "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,63}|judge:[a-z0-9-]{1,64}/[!-~]{1,128})$";
/// `@handle`, the id of an account, or an e-mail address.
const PERSON: &str = r"^\s*(@?[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]|acct_[A-Za-z0-9]{1,40}|[^\s@]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*)\s*$";
/// No quotes, commas, brackets or control characters, and no space at its ends.
const TAG: &str = r#"^[^\s\x00-\x1f\x7f-\x9f",\\\[\]]([^\x00-\x1f\x7f-\x9f",\\\[\]]*[^\s\x00-\x1f\x7f-\x9f",\\\[\]])?$"#;
/// Parts with `/` between them, of which none is empty, `.` or `..`.
const PATH: &str = r"^([^./\\\x00-\x1f\x7f-\x9f][^/\\\x00-\x1f\x7f-\x9f]*|\.[^./\\\x00-\x1f\x7f-\x9f][^/\\\x00-\x1f\x7f-\x9f]*|\.\.[^/\\\x00-\x1f\x7f-\x9f]+)(/([^./\\\x00-\x1f\x7f-\x9f][^/\\\x00-\x1f\x7f-\x9f]*|\.[^./\\\x00-\x1f\x7f-\x9f][^/\\\x00-\x1f\x7f-\x9f]*|\.\.[^/\\\x00-\x1f\x7f-\x9f]+))*$";

/// A type that stands for a schema, with the types that the schema refers to.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident($($part:ty),*) = $schema:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                RefOr::T($schema.build().into())
            }
        }

        impl ToSchema for $name {
            fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
                let parts: &[AddSchemas] = &[$(part::<$part>),*];
                for add in parts {
                    add(schemas);
                }
            }
        }
    )+};
}

choices! {
    /// A session that takes part: its id, a label or a profile.
    SessionRef() = of("A session id, `label:…` or `profile:…`.")
        .item(text().min_length(Some(1)))
        .item(integer());

    /// What a reply is told by from others.
    MessageId() = of("Identifies the request that a response belongs to; a message without an id gets no response.")
        .item(text())
        .item(integer());

    /// The id of a new session.
    NewSessionId() = of("The id of a session.")
        .item(text().pattern(Some(NAME)))
        .item(integer().minimum(Some(0)));

    /// What decides a candidate.
    PolicyChoice(Tier, PolicyObject) = of("A tier, the id of a policy (a string with a dot), or both in an object.")
        .item(to::<Tier>())
        .item(text().pattern(Some(r"\.")))
        .item(to::<PolicyObject>());

    /// The policy of a fact check, which has a schema of its own.
    FactcheckPolicyChoice(Tier, FactcheckPolicy) = of("A tier, alone or in an object.")
        .item(to::<Tier>())
        .item(to::<FactcheckPolicy>());

    /// The candidate of validate.
    Claim() = of("The candidate's output. An object with `output` is a full candidate: its `output` is judged, and its `output_schema`, `evidence_inline` and `evidence_refs` are used.")
        .item(text().pattern(Some(NOT_BLANK)))
        .item(object())
        .item(ArrayBuilder::new().items(RefOr::T(empty())))
        .item(ObjectBuilder::new().schema_type(Type::Number))
        .item(ObjectBuilder::new().schema_type(Type::Boolean));

    /// The claim of a fact check.
    FactClaim() = of("The claim as text, or an object with the text in `text` or `claim`.")
        .item(text().pattern(Some(NOT_BLANK)))
        .item(object());

    /// A session that comes with an executor, or whether one does.
    SessionChoice(SessionOfExecutor) = of("The session to add with the executor, or a boolean for whether to add one.")
        .item(ObjectBuilder::new().schema_type(Type::Boolean))
        .item(to::<SessionOfExecutor>());

    /// When two outputs of delegate say the same.
    EquivalenceChoice(FieldsEquivalence, NumericEquivalence, BucketsEquivalence) = of("When two outputs count as equal.")
        .item(one_of("A relation without parameters.", ["canonical", "text", "unordered"].into_iter()))
        .item(to::<FieldsEquivalence>())
        .item(to::<NumericEquivalence>())
        .item(to::<BucketsEquivalence>());

    /// The name of a text field that a judge reads.
    InputFieldName() = text().pattern(Some("^[A-Za-z0-9_-]{1,64}$")).description(Some("The name of a text field that a judge reads."));

    /// Somebody who is named.
    Person() = text().pattern(Some(PERSON)).description(Some("The e-mail address of a user, the handle of a user or team (with or without `@`), or an account id."));

    /// A tag to find the workflow by.
    WorkflowTag() = text().pattern(Some(TAG)).max_length(Some(64)).description(Some("A tag to find the workflow by."));

    /// Where a file lies beside the body of a workflow.
    WorkflowPath() = text().pattern(Some(PATH)).max_length(Some(512)).description(Some("A relative path, with `/` between its parts and no `.` or `..` part."));

    /// A judge.
    JudgeModel() = text().pattern(Some(MODEL)).max_length(Some(200)).description(Some("`provider/model`."));

    /// Number of sessions to call.
    Replicas() = integer().enum_values(Some([1, 3, 5])).description(Some("Number of sessions to call."));

    /// What a reply is to hold beyond the usual.
    Include() = text().enum_values(Some(["traces"])).description(Some("`traces` adds inline evidence to the replicas."));

    /// The name of an executor.
    ExecutorName() = text().pattern(Some(NAME)).description(Some("The name of an executor."));

    /// Why there may be no one value, though there are some.
    TieCause() = text().enum_values(Some(["QUORUM_NULL", "TIE"])).description(Some("Why there is no single value."));

    /// Why there may be no value.
    NullCause() = text().enum_values(Some(["EMPTY", "QUORUM_NULL"])).description(Some("Why there is no value."));

    /// The name of somebody who verifies.
    VerifierName() = text().pattern(Some(VERIFIER)).description(Some("The name of an executor, or `judge:provider/model` for a judge of this node."));

    /// What a task is about.
    TaskInputs() = of("The input of the task; executors receive it as `inputs`.")
        .item(object())
        .item(text())
        .item(ArrayBuilder::new().items(RefOr::T(empty())))
        .item(ObjectBuilder::new().schema_type(Type::Number))
        .item(ObjectBuilder::new().schema_type(Type::Boolean));

    /// What an event says.
    EventPayload() = of("The content of the event: at most 65536 bytes, including the envelope.")
        .item(object())
        .item(text())
        .item(ArrayBuilder::new().items(RefOr::T(empty())))
        .item(ObjectBuilder::new().schema_type(Type::Number))
        .item(ObjectBuilder::new().schema_type(Type::Boolean));

    /// How work on a task is given out.
    AssignmentMode() = text().enum_values(Some(["CLAIM", "open"])).description(Some("Executors claim the work; both values mean the same."));

    /// Whether a task goes on after its decision.
    TaskMode() = text().enum_values(Some(["ONE_SHOT", "CONTINUOUS"])).description(Some("Whether the task ends with its decision or continues with the next epoch. `CONTINUOUS` needs the budget mode `EPOCH_RENEW`."));

    /// For how long a budget lasts.
    BudgetMode() = text().enum_values(Some(["LIFETIME", "EPOCH_RENEW"])).description(Some("Whether the budget covers the whole task or each epoch."));

    /// How feedback is allowed.
    FeedbackMode() = text().enum_values(Some(["CAPABILITY"])).description(Some("Feedback by the holder of the key."));

    /// What must be so.
    Always() = ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true])).description(Some("Must be true."));

    /// A JSON Schema.
    JsonSchema() = of("A JSON Schema; draft 2020-12 unless `$schema` names another.")
        .item(object())
        .item(ObjectBuilder::new().schema_type(Type::Boolean));
}

/// Adds a type and what it refers to.
type AddSchemas = fn(&mut Vec<(String, RefOr<Schema>)>);

fn part<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

fn of(text: &str) -> OneOfBuilder {
    OneOfBuilder::new().description(Some(text))
}

fn to<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn integer() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer)
}

fn object() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object)
}
