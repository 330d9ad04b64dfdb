//! Tasks and their events read back as they were written.

use jurat_core::{
    policy::EvaluationStatus,
    task::{LeaseRelease, Task, TaskCommand, TaskEvent, TaskRole, TaskTerms},
};
use serde_json::{Value, json};

use super::driven::{Driven, ballot, terms};

/// A task in the middle of its life, with every member set.
fn lived() -> Driven {
    let mut driven = Driven::new(TaskTerms { max_proposers: 3, da_quorum: 1, ..terms() });
    let lost = driven.claim(TaskRole::Propose, "a", None).unwrap();
    let token = driven.claim(TaskRole::Propose, "b", None).unwrap();
    driven.propose_with(token, "d1", &["sha256:e1".to_owned()]).unwrap();
    let reason = LeaseRelease::Failed { code: "timeout".to_owned(), detail: "too slow".to_owned() };
    driven.tell(&TaskCommand::Release { token: lost, reason }).unwrap();
    driven.claim(TaskRole::Propose, "c", None).unwrap();
    driven.now = 1_200;
    driven.tick(true, false);
    let token = driven.claim(TaskRole::Verify, "c", Some("c-d1")).unwrap();
    driven
        .vote(token, ballot(EvaluationStatus::Passed, 0.1 + 0.2), &["sha256:e1".to_owned()])
        .unwrap();
    driven.tick(false, true);
    driven.reveal("c-d1", "c").unwrap();
    driven
}

#[test]
fn a_task_and_its_events_are_read_as_they_were_written() {
    let driven = lived();
    let text = serde_json::to_string(&driven.task).unwrap();
    assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), driven.task);
    for (event, _) in &driven.events {
        let text = serde_json::to_string(event).unwrap();
        assert_eq!(serde_json::from_str::<TaskEvent>(&text).unwrap(), *event, "{text}");
    }
}

#[test]
fn an_event_names_its_kind_and_its_members() {
    let driven = lived();
    let written = |name: &str| -> Value {
        let (event, _) = driven.events.iter().find(|(event, _)| event.name() == name).unwrap();
        serde_json::to_value(event).unwrap()
    };
    let claimed = json!({
        "kind": "claimed",
        "token": 1,
        "claim": {
            "role": "propose",
            "holder": "a",
            "node": "node-1",
            "independence": "a",
            "pool_keys": 64,
            "execution_id": "exec-1",
            "candidate": null,
            "until": 1_000_000,
        },
    });
    assert_eq!(written("TASK_CLAIMED"), claimed);
    let released = json!({
        "kind": "released",
        "token": 1,
        "reason": { "why": "failed", "code": "timeout", "detail": "too slow" },
    });
    assert_eq!(written("TASK_CLAIM_RELEASED"), released);
    assert_eq!(written("CANDIDATE_PROPOSED")["round_id"], "round-2");
    assert_eq!(written("VOTE_COMMIT")["round_id"], "round-4");
    assert_eq!(written("VOTE_REVEAL")["ballot"]["status"], "passed");
    assert_eq!(written("TASK_CREATED")["terms"]["aggregation"], "QUORUM");
    assert_eq!(written("EXPLORE_CLOSED")["why"], "nobody_left");
}

#[test]
fn work_with_an_unknown_result_resumes_under_its_execution_id() {
    let driven = lived();
    // The lease of `c` expired while it proposed; `a` failed, and starts from the beginning.
    assert_eq!(driven.task.resumable(TaskRole::Propose, "c", None), Some("exec-3"));
    assert_eq!(driven.task.resumable(TaskRole::Propose, "a", None), None);
    assert_eq!(driven.task.resumable(TaskRole::Verify, "c", Some("c-d1")), None);
    assert_eq!(driven.task.failed_proposers.keys().collect::<Vec<_>>(), ["a"]);
}
