//! The fields of a new executor that belongs to another node.

use jurat_core::{
    code::ProblemCode,
    peer::{
        PeerId,
        scope::{NodeScope, RemoteTarget},
    },
};
use serde_json::Value;

use super::AddExecutorRequest;
use crate::{
    api::{
        kit::{
            json::short,
            request::{self, FieldFault, FieldPath, text, values, values::text_of},
        },
        nodes::NODE_ID,
    },
    problem::Problem,
};

const SCOPE: &str = "^(global|(region|group):[A-Za-z0-9._-]{1,64}|node:[0-9A-Fa-f]{64})$";

values! {
    /// The identity of another node.
    pub struct TargetNode(PeerId as String): text().pattern(Some(NODE_ID)) => target_node;

    /// The nodes among which a remote executor is looked for.
    pub struct TargetScope(NodeScope as String): text().pattern(Some(SCOPE)) => target_scope;
}

/// The node of the executor; `None` if it is called directly.
pub(super) fn remote_target(new: &AddExecutorRequest) -> Result<Option<RemoteTarget>, Problem> {
    let node = new.target_node.as_ref().map(|it| it.0.clone());
    let scope = new.scope.as_ref().map(|it| it.0.clone());
    if new.remote != Some(true) {
        let given = [("target_node", node.is_some()), ("scope", scope.is_some())];
        return match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(request::wrong(name, "needs `remote`, which must be `true`")),
            None => Ok(None),
        };
    }
    refuse_direct_fields(new)?;
    let Some(node) = node else {
        let reason = "is missing: jobs cannot be sent to any node of a scope yet; name the node that has the executor";
        let at = FieldPath::body(ProblemCode::ValidationError);
        return Err(at.member("target_node").unsupported(reason));
    };
    if matches!(&scope, Some(NodeScope::Node(other)) if *other != node) {
        let reason = "contradicts `target_node`: it names another node";
        return Err(request::wrong("scope", reason));
    }
    Ok(Some(RemoteTarget { node: Some(node), scope }))
}

/// Only the executor's own node calls it, so what this server would need for that is refused.
fn refuse_direct_fields(new: &AddExecutorRequest) -> Result<(), Problem> {
    let token = "cannot be used with `remote`: the executor's own node has its token";
    let events = "cannot be used with `remote`: executors of other nodes receive no events";
    let given = [
        ("token_env", new.token_env.is_some(), token),
        ("agent_events_url", new.agent_events_url.is_some(), events),
        ("agent_event_callback_base_url", new.agent_event_callback_base_url.0.is_some(), events),
    ];
    match given.into_iter().find(|(_, is_given, _)| *is_given) {
        Some((name, _, reason)) => Err(request::wrong(name, reason)),
        None => Ok(()),
    }
}

fn target_node(value: &Value) -> Result<PeerId, FieldFault> {
    let text = text_of(value)?;
    PeerId::parse(text).map_err(|_| {
        let text = short(text);
        format!("must be the public key of a node, 64 hexadecimal digits, not `{text}`").into()
    })
}

fn target_scope(value: &Value) -> Result<NodeScope, FieldFault> {
    let text = text_of(value)?;
    text.parse().map_err(|_| {
        let text = short(text);
        format!(
            "must be `global`, `region:<name>`, `group:<name>` or `node:<public key>`, not `{text}`"
        )
        .into()
    })
}

#[cfg(test)]
mod tests {
    use jurat_core::time::Timestamp;
    use serde_json::json;

    use super::{super::decode_add, *};

    fn target(more: &Value) -> Result<Option<RemoteTarget>, Problem> {
        let mut body = json!({ "name": "a", "url": "http://127.0.0.1:1" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        decode_add(&body, Timestamp::from_micros(0)).map(|order| order.executor.remote)
    }

    #[test]
    fn a_remote_executor_names_its_node() {
        let node = "ab".repeat(32);
        let remote = |scope| {
            let node = Some(PeerId::of_key(&[0xab; 32]));
            Ok(Some(RemoteTarget { node, scope }))
        };
        assert_eq!(target(&json!({})), Ok(None));
        assert_eq!(target(&json!({ "remote": false })), Ok(None));
        assert_eq!(target(&json!({ "remote": true, "target_node": node })), remote(None));
        let scoped = |scope: &str| json!({ "remote": true, "target_node": node, "scope": scope });
        assert_eq!(target(&scoped("global")), remote(Some(NodeScope::Global)));
        let own = NodeScope::Node(PeerId::of_key(&[0xab; 32]));
        assert_eq!(target(&scoped(&own.to_string())), remote(Some(own)));
    }

    #[test]
    fn fields_that_do_not_fit_each_other_are_refused_by_name() {
        let (node, other) = ("ab".repeat(32), "cd".repeat(32));
        let full = |name: &str, value: &str| {
            let mut body = json!({ "remote": true, "target_node": node });
            body[name] = json!(value);
            body
        };
        let events = "agent_event_callback_base_url";
        for (body, field) in [
            (json!({ "target_node": node }), "target_node"),
            (json!({ "remote": false, "target_node": node }), "target_node"),
            (json!({ "scope": "global" }), "scope"),
            (full("target_node", "ab"), "target_node"),
            (full("scope", "zone:eu"), "scope"),
            (full("scope", &format!("node:{other}")), "scope"),
            (full("token_env", "TOKEN"), "token_env"),
            (full("agent_events_url", "http://127.0.0.1:1"), "agent_events_url"),
            (full(events, "http://127.0.0.1:1"), events),
        ] {
            let problem = target(&body).unwrap_err();
            assert_eq!(problem.code, ProblemCode::ValidationError, "{body}");
            assert_eq!(problem.field.as_deref(), Some(field), "{body}: {problem:?}");
        }
        let problem = target(&json!({ "remote": true, "scope": "global" })).unwrap_err();
        assert_eq!(problem.code, ProblemCode::NotSupported);
        assert_eq!(problem.field.as_deref(), Some("target_node"));
    }
}
