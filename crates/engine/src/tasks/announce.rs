//! Turns the events of a task into agent events for the executors concerned.
//!
//! Nothing about a vote is announced, and before a decision is final only the id of a candidate: an
//! executor that is still to propose or vote must not know the others' answers.

use std::collections::BTreeSet;

use jurat_core::{
    task::{LeaseRelease, Task, TaskEvent, TaskLease, TaskRole, agent_event::AgentEventType},
    time::Timestamp,
};
use serde_json::{Map, Value, json};

use super::TaskRoster;

/// A task, and the events about to be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskUpdate<'a> {
    /// Before the events.
    pub(super) task: &'a Task,
    /// How many events it has had.
    pub(super) seq: u64,
    pub(super) task_type: &'a str,
    pub(super) roster: &'a TaskRoster,
    pub(super) events: &'a [TaskEvent],
    pub(super) at: Timestamp,
    /// The output that becomes final, if one does.
    pub(super) output: Option<&'a Value>,
}

/// An event for one executor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Announcement {
    pub(super) executor: String,
    pub(super) event_type: AgentEventType,
    pub(super) payload: Value,
    pub(super) cause: AnnouncementCause,
}

/// The epoch and the number of the event that caused an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnnouncementCause {
    pub(super) epoch: u64,
    pub(super) seq: u64,
}

impl Announcement {
    /// Equal for the same cause, whichever node announces it.
    pub(super) fn dedupe_key(&self, task: &str) -> String {
        let AnnouncementCause { epoch, seq } = self.cause;
        format!("task:{task}:{epoch}:{seq}:{}", self.executor)
    }
}

/// Whether an event is announced at all; the most frequent ones are not.
pub(super) fn is_announced(event: &TaskEvent) -> bool {
    !matches!(
        event,
        TaskEvent::Created { .. }
            | TaskEvent::Renewed { .. }
            | TaskEvent::Charged { .. }
            | TaskEvent::Refunded { .. }
            | TaskEvent::EvidenceSeen { .. }
            | TaskEvent::VoteCommitted { .. }
            | TaskEvent::VoteRevealed { .. }
    )
}

/// The announcements for subscribed executors, in the order of the events.
pub(super) fn announce(told: &TaskUpdate<'_>, listening: &BTreeSet<String>) -> Vec<Announcement> {
    let mut task = told.task.clone();
    let mut announced = Vec::new();
    for (seq, event) in (told.seq + 1..).zip(told.events) {
        let notice = notice(&task, event, told);
        let cause = AnnouncementCause { epoch: task.epoch, seq };
        task.apply(event, told.at);
        let Some(notice) = notice else { continue };
        for executor in notice.to.into_iter().filter(|it| listening.contains(it)) {
            let payload = payload(told, &task.id, cause, &notice.says);
            announced.push(Announcement { executor, event_type: notice.kind, payload, cause });
        }
    }
    announced
}

fn payload(told: &TaskUpdate<'_>, task: &str, cause: AnnouncementCause, says: &Value) -> Value {
    let mut members = Map::from_iter([
        ("task_id".to_owned(), json!(task)),
        ("task_type".to_owned(), json!(told.task_type)),
        ("epoch".to_owned(), json!(cause.epoch)),
        ("seq".to_owned(), json!(cause.seq)),
    ]);
    let said = says.as_object().into_iter().flatten();
    // Members that do not apply are left out.
    let said = said.filter(|(_, value)| !value.is_null());
    members.extend(said.map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(members)
}

/// A notice and its recipients.
struct TaskNotice {
    kind: AgentEventType,
    to: BTreeSet<String>,
    says: Value,
}

impl TaskNotice {
    fn new(kind: AgentEventType, to: BTreeSet<String>, says: Value) -> Self {
        Self { kind, to, says }
    }
}

fn notice(task: &Task, event: &TaskEvent, told: &TaskUpdate<'_>) -> Option<TaskNotice> {
    let panel = told.roster;
    Some(match event {
        TaskEvent::Claimed { claim, .. } => of_lease(claim)?,
        TaskEvent::Released { token, reason } => of_release(task.claims.get(token)?, reason)?,
        TaskEvent::Proposed { token, candidate, .. } => {
            of_proposal(task, *token, candidate, panel)?
        }
        TaskEvent::Reused { candidate, .. } => {
            let says = json!({
                "event_kind": "candidate_proposed", "candidate_id": candidate, "is_reused": true,
            });
            TaskNotice::new(AgentEventType::TaskResultReceived, voters(task, panel, None), says)
        }
        TaskEvent::Committed { candidate } => of_votes(task, candidate, "committed", panel)?,
        TaskEvent::Rejected { candidate } => of_votes(task, candidate, "rejected", panel)?,
        TaskEvent::Undecided { candidate, .. } => of_votes(task, candidate, "undecided", panel)?,
        TaskEvent::VerificationRepeated { candidate, at, .. } => {
            of_retry(TaskRole::Verify, *at, voters(task, panel, Some(candidate)))
        }
        TaskEvent::RetryScheduled { at } => {
            of_retry(TaskRole::Propose, *at, panel.proposers.iter().cloned().collect())
        }
        TaskEvent::Finalized { candidate, settles_at, .. } => {
            let digest = task.proposal(candidate).map(|it| &it.digest);
            let says = json!({
                "event_kind": "decision_finalized", "candidate_id": candidate,
                "output": told.output, "output_digest": digest, "settles_at": settles_at.millis(),
            });
            TaskNotice::new(AgentEventType::TaskResultReceived, roster_members(panel), says)
        }
        TaskEvent::Settled { epoch, candidate, is_bad } => {
            let says = json!({
                "event_kind": "task_settled", "epoch": epoch, "candidate_id": candidate,
                "is_bad": is_bad,
            });
            TaskNotice::new(AgentEventType::TaskSettledReceived, roster_members(panel), says)
        }
        TaskEvent::Failed { reason } => of_end("failed", reason, panel),
        TaskEvent::Expired { reason } => of_end("expired", reason, panel),
        TaskEvent::Cancelled { reason } => of_end("cancelled", reason, panel),
        TaskEvent::Created { .. }
        | TaskEvent::Renewed { .. }
        | TaskEvent::Charged { .. }
        | TaskEvent::Refunded { .. }
        | TaskEvent::ExploreClosed { .. }
        | TaskEvent::EvidenceSeen { .. }
        | TaskEvent::VoteCommitted { .. }
        | TaskEvent::RevealOpened { .. }
        | TaskEvent::VoteRevealed { .. }
        | TaskEvent::VoteForfeited { .. }
        | TaskEvent::Equivocated { .. }
        | TaskEvent::VotingExtended { .. }
        | TaskEvent::Complained { .. }
        | TaskEvent::EpochEnded { .. } => return None,
    })
}

/// A candidate that is known already was announced before.
fn of_proposal(task: &Task, token: u64, candidate: &str, panel: &TaskRoster) -> Option<TaskNotice> {
    let author = &task.claims.get(&token)?.holder;
    let mut to = roster_members(panel);
    to.remove(author);
    let says = json!({ "event_kind": "candidate_proposed", "candidate_id": candidate });
    let is_new = task.proposal(candidate).is_none();
    is_new.then(|| TaskNotice::new(AgentEventType::TaskResultReceived, to, says))
}

/// Only the holder of a lease is notified. The node itself makes decisions final.
fn of_lease(claim: &TaskLease) -> Option<TaskNotice> {
    let says = json!({
        "event_kind": "task_claimed",
        "role": claim.role.as_str(),
        "execution_id": claim.execution_id,
        "candidate_id": claim.candidate,
        "lease_until": claim.until.millis(),
    });
    let to = BTreeSet::from([claim.holder.clone()]);
    let is_told = claim.role != TaskRole::Finalize;
    is_told.then(|| TaskNotice::new(AgentEventType::TaskClaimReceived, to, says))
}

fn of_release(claim: &TaskLease, reason: &LeaseRelease) -> Option<TaskNotice> {
    if claim.role == TaskRole::Finalize {
        return None;
    }
    let (why, code, detail) = match reason {
        LeaseRelease::LeaseRanOut => ("lease_ran_out", None, None),
        LeaseRelease::Failed { code, detail } => ("failed", Some(code), Some(detail)),
        LeaseRelease::GivenUp { detail } => ("given_up", None, Some(detail)),
        // Executors do not learn about faults of the node.
        LeaseRelease::NodeFailed { .. } => ("node_failed", None, None),
    };
    let says = json!({
        "event_kind": "task_claim_decided",
        "decision": "released",
        "role": claim.role.as_str(),
        "execution_id": claim.execution_id,
        "candidate_id": claim.candidate,
        "why": why,
        "code": code,
        "detail": detail,
    });
    let to = BTreeSet::from([claim.holder.clone()]);
    Some(TaskNotice::new(AgentEventType::TaskClaimDecisionReceived, to, says))
}

/// The votes are revealed by now, so the proposers of the candidate learn the result.
fn of_votes(
    task: &Task,
    candidate: &str,
    decision: &str,
    panel: &TaskRoster,
) -> Option<TaskNotice> {
    let of_panel = roster_members(panel);
    let proposers = &task.proposal(candidate)?.proposers;
    let to = proposers.iter().filter(|it| of_panel.contains(*it)).cloned().collect();
    let says = json!({
        "event_kind": "task_completion_decided", "candidate_id": candidate, "decision": decision,
    });
    Some(TaskNotice::new(AgentEventType::TaskCompletionDecisionReceived, to, says))
}

/// The reason is left out: voters that are asked again must not know how others voted.
fn of_retry(role: TaskRole, at: Timestamp, to: BTreeSet<String>) -> TaskNotice {
    let says = json!({
        "event_kind": "task_retry_scheduled", "role": role.as_str(), "retry_at": at.millis(),
    });
    TaskNotice::new(AgentEventType::TaskResultReceived, to, says)
}

fn of_end(state: &str, reason: &str, panel: &TaskRoster) -> TaskNotice {
    let says = json!({ "event_kind": "task_error", "state": state, "reason": reason });
    TaskNotice::new(AgentEventType::TaskResultReceived, roster_members(panel), says)
}

fn roster_members(panel: &TaskRoster) -> BTreeSet<String> {
    panel.proposers.iter().chain(&panel.voters).cloned().collect()
}

/// The executors that may vote on a candidate.
fn voters(task: &Task, panel: &TaskRoster, candidate: Option<&str>) -> BTreeSet<String> {
    let proposal = candidate.and_then(|id| task.proposal(id));
    let is_author = |it: &String| proposal.is_some_and(|found| found.proposers.contains(it));
    panel.voters.iter().filter(|it| !is_author(it)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use jurat_core::task::{
        Ballot, ExhaustedRoles, TaskCommand, VoterReliability, commitment, decide,
    };
    use jurat_wire::executor::TaskContract;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    /// A task whose commands are announced as they are decided.
    struct AnnouncedTask {
        task: Task,
        seq: u64,
        roster: TaskRoster,
        listening: BTreeSet<String>,
    }

    impl AnnouncedTask {
        fn new() -> Self {
            let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
            let roster = TaskRoster {
                proposers: names(&["a", "b"]),
                voters: names(&["b", "c"]),
                profile: "default".to_owned(),
                has_node: false,
                has_spare: false,
                attempt: 1,
            };
            let task = Task::created("t", TaskContract::sample("t", 1_000).terms(), NOW);
            let listening = ["a", "b", "c", "stranger"].map(str::to_owned).into();
            Self { task, seq: 1, roster, listening }
        }

        fn hear(&mut self, command: &TaskCommand) -> Vec<Announcement> {
            let events = decide(&self.task, command, NOW, &VoterReliability::new()).unwrap();
            let told = TaskUpdate {
                task: &self.task,
                seq: self.seq,
                task_type: "swarm",
                roster: &self.roster,
                events: &events,
                at: NOW,
                output: Some(&json!("the output")),
            };
            let heard = announce(&told, &self.listening);
            for event in &events {
                self.task.apply(event, NOW);
            }
            self.seq += u64::try_from(events.len()).unwrap();
            heard
        }

        fn claim(&mut self, token: u64, role: TaskRole, holder: &str) -> Vec<Announcement> {
            let claim = TaskLease {
                role,
                holder: holder.to_owned(),
                node: "n".to_owned(),
                independence: holder.to_owned(),
                pool_keys: 2,
                execution_id: format!("exec-{token}"),
                candidate: (role != TaskRole::Propose).then(|| "cand".to_owned()),
                until: NOW.plus_millis(1_000),
            };
            self.hear(&TaskCommand::TakeLease { token, claim })
        }

        fn propose(&mut self, token: u64) -> Vec<Announcement> {
            self.hear(&TaskCommand::Propose {
                token,
                candidate: "cand".to_owned(),
                digest: "sha256:01".to_owned(),
                evidence: Vec::new(),
                round_id: "r".to_owned(),
            })
        }

        /// Has the candidate voted on, revealed and made final.
        fn vote(&mut self, voter: &str) -> Vec<Announcement> {
            self.claim(2, TaskRole::Verify, voter);
            let ballot = Ballot {
                status: jurat_core::policy::EvaluationStatus::Passed,
                score: 1.0,
                reason_codes: vec![100],
                verdict_digest: "sha256:secret".to_owned(),
                available: Vec::new(),
            };
            let commitment = commitment(self.task.vote_context("cand", voter), &ballot, "salt");
            let round_id = "r".to_owned();
            let commit = TaskCommand::CommitVote { token: 2, commitment, round_id };
            let sealed = self.hear(&commit);
            assert_eq!(sealed, [], "nobody hears of a vote that is sealed");
            let (candidate, salt) = ("cand".to_owned(), "salt".to_owned());
            let voter = voter.to_owned();
            self.hear(&TaskCommand::Reveal { candidate, voter, ballot, salt })
        }
    }

    /// The recipients of each announcement, with type and kind.
    fn heard<'a>(announced: &'a [Announcement]) -> Vec<(&'a str, &'a str, &'a str)> {
        let kind = |it: &'a Announcement| it.payload["event_kind"].as_str().unwrap();
        announced
            .iter()
            .map(|it| (it.executor.as_str(), it.event_type.as_str(), kind(it)))
            .collect()
    }

    #[test]
    fn executors_are_notified_of_what_they_may_know() {
        let mut story = AnnouncedTask::new();
        assert_eq!(
            heard(&story.claim(1, TaskRole::Propose, "a")),
            [("a", "task_claim_received", "task_claimed")]
        );
        let proposed = story.propose(1);
        assert_eq!(
            heard(&proposed),
            [
                ("b", "task_result_received", "candidate_proposed"),
                ("c", "task_result_received", "candidate_proposed"),
            ]
        );
        // Neither its author nor its content: others are still to vote.
        let text = proposed[0].payload.to_string();
        assert!(!text.contains("sha256") && !text.contains("output"), "{text}");
        let voted = story.vote("c");
        assert_eq!(
            heard(&voted),
            [("a", "task_completion_decision_received", "task_completion_decided")]
        );
        assert_eq!(voted[0].payload["decision"], "committed");
        story.claim(3, TaskRole::Finalize, "node");
        let last = story.hear(&TaskCommand::Finalize { token: 3 });
        let all = ["a", "b", "c"].map(|it| (it, "task_result_received", "decision_finalized"));
        assert_eq!(heard(&last), all);
        assert_eq!(last[0].payload["output"], "the output");
    }

    #[test]
    fn only_the_holder_is_notified_of_an_ended_lease() {
        let mut story = AnnouncedTask::new();
        story.claim(1, TaskRole::Propose, "a");
        let reason =
            LeaseRelease::Failed { code: "timeout".to_owned(), detail: "it was late".to_owned() };
        let released = story.hear(&TaskCommand::Release { token: 1, reason });
        assert_eq!(heard(&released), [("a", "task_claim_decision_received", "task_claim_decided")]);
        assert_eq!(released[0].payload["why"], "failed");
        assert_eq!(released[0].payload["execution_id"], "exec-1");
    }

    #[test]
    fn an_end_without_a_decision_is_announced_to_all_as_an_error() {
        let mut story = AnnouncedTask::new();
        let ended = story.hear(&TaskCommand::Cancel { reason: "enough".to_owned() });
        let all = ["a", "b", "c"].map(|it| (it, "task_result_received", "task_error"));
        assert_eq!(heard(&ended), all);
        assert_eq!(ended[0].payload["reason"], "enough");
    }

    #[test]
    fn proposers_are_notified_of_a_retry() {
        let mut story = AnnouncedTask::new();
        for (token, holder) in [(1, "a"), (2, "b")] {
            story.claim(token, TaskRole::Propose, holder);
            let reason = LeaseRelease::Failed { code: "x".to_owned(), detail: "y".to_owned() };
            story.hear(&TaskCommand::Release { token, reason });
        }
        let exhausted = ExhaustedRoles { proposers: true, verifiers: false };
        let ticked = story.hear(&TaskCommand::Tick { exhausted });
        let both = ["a", "b"].map(|it| (it, "task_result_received", "task_retry_scheduled"));
        assert_eq!(heard(&ticked), both);
    }

    #[test]
    fn only_subscribed_executors_are_notified() {
        let mut story = AnnouncedTask::new();
        story.listening = BTreeSet::from(["b".to_owned()]);
        assert_eq!(story.claim(1, TaskRole::Propose, "a"), []);
        assert_eq!(heard(&story.propose(1)), [("b", "task_result_received", "candidate_proposed")]);
    }

    #[test]
    fn the_same_cause_has_the_same_key() {
        let mut story = AnnouncedTask::new();
        let claimed = story.claim(1, TaskRole::Propose, "a");
        assert_eq!(claimed[0].dedupe_key("t"), "task:t:1:2:a");
    }
}
