//! The known arguments of each tool that has a declaration of its own.

use std::sync::LazyLock;

use serde_json::json;
use utoipa::ToSchema;

use super::request::unknown::{FieldShape, KnownFields};
use crate::api::mcp::{
    people::{ListSharesArguments, ShareArguments},
    rounds::{ListRoundsArguments, RoundArguments},
    tasks::{
        GetRunArguments, GetTaskArguments, KnowledgeArguments, ListRunsArguments,
        ListTasksArguments, RunArguments, RunEventsArguments, TaskArguments, TaskEventsArguments,
        TaskSampleArguments,
    },
};

/// Arguments that are all known.
pub trait DescribedRequest: ToSchema {
    /// The names of the arguments.
    fn known_fields() -> &'static KnownFields;
}

macro_rules! arguments {
    ($($arguments:ty,)+) => {$(
        impl DescribedRequest for $arguments {
            fn known_fields() -> &'static KnownFields {
                static KNOWN: LazyLock<KnownFields> = LazyLock::new(known_of::<$arguments>);
                &KNOWN
            }
        }
    )+};
}

arguments! {
    RoundArguments,
    ListRoundsArguments,
    TaskArguments,
    GetTaskArguments,
    ListTasksArguments,
    TaskEventsArguments,
    TaskSampleArguments,
    RunArguments,
    GetRunArguments,
    ListRunsArguments,
    RunEventsArguments,
    KnowledgeArguments,
    ListSharesArguments,
    ShareArguments,
}

fn known_of<R: DescribedRequest>() -> KnownFields {
    let schema = json!(R::schema());
    let names = schema["properties"].as_object().into_iter().flatten();
    let members = names.map(|(name, _)| (name.clone(), FieldShape::Leaf)).collect();
    KnownFields::from(FieldShape::Members(members))
}
