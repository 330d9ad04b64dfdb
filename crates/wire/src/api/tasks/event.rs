//! Events of a task.

use std::borrow::Cow;

use jurat_core::{task::TaskEvent, time::Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, schema::Schema},
};

use crate::api::kit::{
    time::{self, Time},
    words::one_of,
};

/// Name of a task's event in a stream.
pub const TASK_EVENT: &str = "task_event";
/// Name of the last event of a stream.
pub const TASK: &str = "final";

/// Members of an event that are times. Stored documents contain them as numbers.
const MOMENTS: [&str; 4] = ["until", "at", "settles_at", "expires_at"];

/// An event of a task.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TaskEvent)]
pub struct TaskEventBody<'a> {
    pub task_id: Cow<'a, str>,
    /// From 1, without gaps.
    pub seq: u64,
    pub r#type: TaskEventName,
    pub at: Time,
    /// Data of an event of this type.
    #[schema(value_type = Object)]
    pub data: Value,
}

/// The name of an event. It is text, because a client may receive names of later versions.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(transparent)]
pub struct TaskEventName(pub Cow<'static, str>);

impl PartialSchema for TaskEventName {
    fn schema() -> RefOr<Schema> {
        one_of("What happened.", TaskEvent::NAMES.into_iter())
    }
}

impl ToSchema for TaskEventName {
    fn name() -> Cow<'static, str> {
        "TaskEventType".into()
    }
}

/// An event of a task.
pub fn event_body<'a>(
    task_id: &'a str,
    seq: u64,
    event: &TaskEvent,
    at: Timestamp,
) -> TaskEventBody<'a> {
    let mut data = json!(event);
    if let Some(members) = data.as_object_mut() {
        members.remove("kind");
        readable(members);
    }
    TaskEventBody {
        task_id: Cow::Borrowed(task_id),
        seq,
        r#type: TaskEventName(Cow::Borrowed(event.name())),
        at: Time(at),
        data,
    }
}

/// Writes times as text, as in all replies.
fn readable(members: &mut Map<String, Value>) {
    for (name, value) in members {
        if let Value::Object(inner) = value {
            readable(inner);
        } else if MOMENTS.contains(&name.as_str())
            && let Some(micros) = value.as_i64()
        {
            *value = time::value(Timestamp::from_micros(micros));
        }
    }
}
