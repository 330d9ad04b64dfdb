//! Version 2 of the consensus API, as a translation to version 3 and back.

use serde_json::{Map, Value, json};

/// A v2 request is a v3 request with one replica, in the session it names.
pub fn up(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut() {
        // v2 knows no `consensus`; its routes ignore what they do not know.
        members.insert("consensus".to_owned(), json!({ "replicas": 1 }));
    }
    body
}

/// A v2 reply is what the one replica said. It loses information and invents none.
pub fn down(mut reply: Value) -> Value {
    let Some(replica) = reply.pointer("/replicas/0").cloned() else { return reply };
    let Some(members) = reply.as_object_mut() else { return reply };
    if members.contains_key("verdict") && members["verdict"].is_null() {
        members.insert("verdict".to_owned(), replica["verdict"].clone());
    }
    if members.contains_key("status") && members["output"].is_null() {
        members.insert("status".to_owned(), replica["status"].clone());
    }
    for name in ["evidence", "error", "session_id"] {
        members.insert(name.to_owned(), replica.get(name).cloned().unwrap_or_default());
    }
    members.retain(|name, _| name != "replicas" && name != "consensus");
    Value::Object(std::mem::take::<Map<String, Value>>(members))
}
