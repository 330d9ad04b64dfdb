//! Checks that an operation has one name: its id in the API is a public method of the engine.

use std::{collections::BTreeSet, path::Path};

use anyhow::Result;

use super::Violation;
use crate::tree::{self, SourceFile};

const RESOURCES: &str = "crates/server/src/resources/";
const ENGINE: &str = "crates/engine/src/";

/// An operation whose id is not the name of a method.
struct NameException {
    id: &'static str,
    /// The method that answers instead; none if the engine is not asked.
    method: Option<&'static str>,
    reason: &'static str,
}

const fn by(id: &'static str, method: &'static str, reason: &'static str) -> NameException {
    NameException { id, method: Some(method), reason }
}

const fn alone(id: &'static str, reason: &'static str) -> NameException {
    NameException { id, method: None, reason }
}

const JOB: &str = "the kind of the job says what the round does";
const ANSWER: &str = "one method takes every answer, as a value";
const CHANGE: &str = "one method makes every change of a template, as a value";
const AGENT_RUN: &str = "the id is the peer's word; ours tells agent runs from verifier runs";
const VERIFIER_RUN: &str =
    "the id is the registry's word; ours tells verifier runs from agent runs";
const PURPOSE: &str = "one method logs in and registers, by its purpose";
const INSTRUCTIONS: &str = "the instructions are a text of the server about the workflow";
const MEASURE: &str = "a test and an attack are measurements, by their cases";
const SHIM: &str = "it translates another system's request to an operation of version 3";
const DIRECTORY: &str = "it shows the sessions in the form of another system";
const PROFILES: &str = "a profile is a model in the form of OpenAI's API";
const PROTOCOL: &str =
    "the Agent2Agent protocol has words of its own; `a2a/` translates them to operations on rounds";
const PURCHASE: &str = "one method sells every kind of round";
const TEXT: &str = "it is a text or a file of the server";

const EXCEPTIONS: &[NameException] = &[
    by("delegate", "round_begin", JOB),
    by("delegate_v2", "round_begin", JOB),
    by("validate", "round_begin", JOB),
    by("validate_v2", "round_begin", JOB),
    by("factcheck", "round_begin", JOB),
    by("verify", "round_begin", JOB),
    by("invitation_accept", "invitation_answer", ANSWER),
    by("invitation_cancel", "invitation_answer", ANSWER),
    by("invitation_decline", "invitation_answer", ANSWER),
    by("share_accept", "share_answer", ANSWER),
    by("share_block", "share_answer", ANSWER),
    by("share_decline", "share_answer", ANSWER),
    by("team_transfer", "team_invite", "an offer of ownership is an invitation"),
    by("template_archive", "template_change", CHANGE),
    by("template_delete", "template_change", CHANGE),
    by("template_delete_version", "template_change", CHANGE),
    by("template_deprecate", "template_change", CHANGE),
    by("template_unarchive", "template_change", CHANGE),
    by("template_unpublish", "template_change", CHANGE),
    by("task_run_cancel", "agent_run_cancel", AGENT_RUN),
    by("task_run_events", "agent_run_events", AGENT_RUN),
    by("task_run_get", "agent_run_get", AGENT_RUN),
    by("task_run_kickoff", "agent_run_kickoff", AGENT_RUN),
    by("task_run_list", "agent_run_list", AGENT_RUN),
    by("task_run_result", "agent_run_get", AGENT_RUN),
    by("task_run_retry", "agent_run_retry", AGENT_RUN),
    by("task_run_submit", "agent_run_submit", AGENT_RUN),
    by("run_get", "verifier_run_get", VERIFIER_RUN),
    by("run_list", "verifier_run_list", VERIFIER_RUN),
    by("login", "login_begin", PURPOSE),
    by("register", "login_begin", PURPOSE),
    by("register_verify", "login_verify", PURPOSE),
    by("verifier_attack", "verifier_measure", MEASURE),
    by("verifier_test", "verifier_measure", MEASURE),
    by("workflow_version_get", "workflow_get", "a version is part of the reference"),
    by("workflow_audit", "workflow_get", INSTRUCTIONS),
    by("workflow_optimize", "workflow_get", INSTRUCTIONS),
    by("workflow_optimize_description", "workflow_get", INSTRUCTIONS),
    by("workflow_teach", "workflow_get", INSTRUCTIONS),
    by("device_page_answer", "device_answer_by", "the page sends what `device_answer` takes"),
    by("chat_complete", "round_begin", SHIM),
    by("model_list", "profiles", PROFILES),
    by("model_show", "profiles", PROFILES),
    by("peer_create", "session_directory", DIRECTORY),
    by("peer_miners", "session_directory", DIRECTORY),
    by("peer_session", "session_directory", DIRECTORY),
    by("peer_sessions", "session_directory", DIRECTORY),
    by("peer_status", "session_directory", DIRECTORY),
    by("peer_task", "round_list", "a round is a task of another system"),
    by("peer_task_list", "round_list", "a round is a task of another system"),
    alone("peer_chat", SHIM),
    alone("peer_chat_in", SHIM),
    alone("peer_completion", SHIM),
    alone("peer_completion_in", SHIM),
    alone("peer_delegate", SHIM),
    alone("peer_factcheck", SHIM),
    alone("peer_validate", SHIM),
    alone("a2a_send", PROTOCOL),
    alone("a2a_stream", PROTOCOL),
    alone("a2a_tasks", PROTOCOL),
    alone("a2a_task", PROTOCOL),
    alone("a2a_cancel", PROTOCOL),
    alone("a2a_subscribe", PROTOCOL),
    alone("a2a_subscribe_by_get", PROTOCOL),
    alone("a2a_extended_card", PROTOCOL),
    alone("a2a", PROTOCOL),
    by("delegate_paid", "purchase", PURCHASE),
    by("validate_paid", "purchase", PURCHASE),
    by("factcheck_paid", "purchase", PURCHASE),
    by("delegate_paid_v2", "purchase", PURCHASE),
    by("validate_paid_v2", "purchase", PURCHASE),
    alone("a2a_push_list", PROTOCOL),
    alone("a2a_push_create", PROTOCOL),
    alone("a2a_push_get", PROTOCOL),
    alone("a2a_push_delete", PROTOCOL),
    alone("agent_card", TEXT),
    alone("agent_registration_show", TEXT),
    alone("audit_prompt", TEXT),
    alone("design_prompt", TEXT),
    alone("client_config", TEXT),
    alone("device_page", TEXT),
    alone("docs", TEXT),
    alone("docs_file", TEXT),
    alone("front", TEXT),
    alone("openapi", TEXT),
    alone("protected_resource", TEXT),
    alone("capabilities_show", "it lists what the built-in policies can do"),
    alone("health", "it tells only that the process runs"),
    alone("mcp", "it translates messages to the other operations"),
];

pub(super) fn check(root: &Path, files: &[SourceFile]) -> Result<Vec<Violation>> {
    let texts = |folder: &str| -> Result<Vec<(String, String)>> {
        let found = files.iter().filter(|it| it.is_rust_of_ours() && it.path.starts_with(folder));
        found.map(|it| Ok((it.path.clone(), tree::read(&root.join(&it.path))?))).collect()
    };
    let methods: BTreeSet<String> =
        texts(ENGINE)?.iter().flat_map(|(_, text)| public_methods(text)).collect();
    Ok(differing(&texts(RESOURCES)?, &methods, EXCEPTIONS))
}

/// The operations whose id is no method that their file calls, and the exceptions without a use.
fn differing(
    sources: &[(String, String)],
    methods: &BTreeSet<String>,
    exceptions: &[NameException],
) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for (path, text) in sources {
        for (id, line) in declared(text) {
            known.insert(id);
            let exception = exceptions.iter().find(|it| it.id == id);
            let asks = |method: &str| methods.contains(method) && calls(text, method);
            let problem = match exception {
                None if asks(id) => continue,
                None => format!(
                    "the operation `{id}` calls no method `{id}` of the engine: give both one name, or add an exception with a reason to xtask/src/tidy/operations.rs"
                ),
                Some(it) if asks(id) => format!(
                    "the exception for `{id}` ({}) is not needed: it has the name of its method",
                    it.reason
                ),
                Some(NameException { method: Some(method), reason, .. }) if !asks(method) => {
                    format!("the operation `{id}` calls no method `{method}`, although {reason}")
                }
                Some(_) => continue,
            };
            found.push(Violation::new(path.as_str(), line, problem));
        }
    }
    let unused = exceptions.iter().filter(|it| !known.contains(it.id));
    found.extend(unused.map(|it| {
        let text = format!("there is no operation `{}`: remove its exception", it.id);
        Violation::new("xtask/src/tidy/operations.rs", 1, text)
    }));
    found
}

/// The ids that a file declares, with their lines: the second argument of `Operation::get(path, "id", …)`.
fn declared(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices("Operation::") {
        let rest = &text[start + "Operation::".len()..];
        let Some((method, arguments)) = rest.split_once('(') else { continue };
        if !["get", "post", "put", "patch", "delete"].contains(&method) {
            continue;
        }
        let id = arguments.split_once(',').and_then(|(_, rest)| rest.split('"').nth(1));
        if let Some(id) = id {
            found.push((id, text[..start].lines().count().max(1)));
        }
    }
    found
}

fn public_methods(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let rest = rest.strip_prefix("const ").unwrap_or(rest);
        let rest = rest.strip_prefix("async ").unwrap_or(rest).strip_prefix("fn ")?;
        let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_')?;
        Some(rest[..end].to_owned())
    })
}

/// Whether the text calls a method of this name, on one line or on the next.
fn calls(text: &str, method: &str) -> bool {
    text.contains(&format!(".{method}("))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &str = "//! A.\n\nfn list_operation() -> Operation {\n    Operation::get(\n        \"/v1/things\",\n        \"thing_list\",\n        list,\n    )\n}\n\nasync fn list() {\n    engine.thing_list(&caller).await\n}\n";

    #[track_caller]
    fn check(text: &str, methods: &[&str], exceptions: &[NameException], expected: &[&str]) {
        let sources = [("a.rs".to_owned(), text.to_owned())];
        let methods = methods.iter().map(|it| (*it).to_owned()).collect();
        let found: Vec<String> =
            differing(&sources, &methods, exceptions).iter().map(Violation::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn an_operation_has_the_name_of_the_method_that_it_calls() {
        check(DECLARED, &["thing_list"], &[], &[]);
        let expected = ["a.rs:4: the operation `thing_list` calls no method `thing_list`"];
        check(DECLARED, &["things"], &[], &expected);
        check(
            &DECLARED.replace("engine.thing_list", "engine.things"),
            &["thing_list"],
            &[],
            &expected,
        );
    }

    #[test]
    fn an_exception_must_be_true_and_needed() {
        let other = DECLARED.replace("engine.thing_list", "engine.things");
        check(&other, &["things"], &[by("thing_list", "things", "x")], &[]);
        check(
            &other,
            &["things"],
            &[by("thing_list", "stuff", "x")],
            &["a.rs:4: the operation `thing_list` calls no method `stuff`, although x"],
        );
        check(
            DECLARED,
            &["thing_list"],
            &[alone("thing_list", "x"), alone("gone", "x")],
            &[
                "a.rs:4: the exception for `thing_list` (x) is not needed",
                "xtask/src/tidy/operations.rs:1: there is no operation `gone`",
            ],
        );
    }

    #[test]
    fn public_methods_are_read_in_all_their_forms() {
        let text = "    pub async fn a(&self) {\n    pub const fn b() {\n    pub(crate) fn c() {\n    pub fn d<T>(x: T) {\n";
        assert_eq!(public_methods(text).collect::<Vec<_>>(), ["a", "b", "d"]);
    }
}
