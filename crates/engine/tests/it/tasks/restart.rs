//! Work that falls due while no node runs is done by the next one.

use jurat_core::{
    policy::EvaluationStatus,
    round::candidate::Evidence,
    task::{
        Ballot, Forfeit, TaskCandidateRow, TaskCommand, TaskEvent, TaskKey, TaskLease, TaskPhase,
        TaskRole, VoterReliability, commitment, decide,
    },
};
use jurat_engine::{Clock as _, SoleNode};
use jurat_store::{
    Behalf, StoreLocation, TaskAppend, TaskAppendExtras, TaskBallotRow, WriteOutcome,
};
use jurat_testkit::{
    app::{TestApp, admin_caller},
    fake_executor::{FakeExecutor, says_valid, status},
};
use jurat_wire::executor::TaskContract;
use serde_json::{Value, json};

use super::{able, asked, contract, ended, events, order, submit, wait_until};

/// Stories that start on one node, which then disappears, and end on another one.
macro_rules! on_a_file {
    ($($story:ident as $name:ident),* $(,)?) => {
        $(#[tokio::test]
        async fn $name() {
            let folder = tempfile::tempdir().unwrap();
            $story(&StoreLocation::File(folder.path().join("jurat.db"))).await;
        })*
    };
}

on_a_file!(
    expired as a_contract_that_ended_while_no_node_ran_expires,
    retried as a_retry_that_fell_due_while_no_node_ran_is_made_and_says_which_it_is,
    revealed as votes_that_nobody_revealed_are_revealed_by_the_next_node,
    forfeited as votes_whose_time_ended_while_no_node_ran_are_forfeited_and_given_anew,
    expired_in_secret as a_contract_that_ended_before_votes_were_revealed_expires,
);

/// The next node, this long after the previous one.
async fn next_node(location: &StoreLocation, millis: i64) -> TestApp {
    let app = TestApp::with_store(location).await;
    app.clock.advance_ms(millis);
    app.start(SoleNode::Yes).await;
    app
}

pub(crate) async fn expired(location: &StoreLocation) {
    let first = TestApp::with_store(location).await;
    let [fake] = first.executors([able()]).await;
    submit(&first, order(contract(&first, "t1"), &["s1"])).await.unwrap();
    first.engine.shutdown().await;
    let second = next_node(location, 700_000).await;
    let record = ended(&second, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Expired, "{:?}", events(&second, "t1").await);
    assert_eq!(record.reason.as_deref(), Some("its contract expired"));
    assert_eq!(asked(&fake, "execute"), 0);
    second.engine.shutdown().await;
}

pub(crate) async fn retried(location: &StoreLocation) {
    let first = TestApp::with_store(location).await;
    first.start(SoleNode::Yes).await;
    let [fake] = first.executors([status(500).task_types(&["swarm"])]).await;
    let mut task = contract(&first, "t1");
    task.assignment.explore.backoff_ms = Some(30_000);
    submit(&first, order(task, &["s1"])).await.unwrap();
    wait_until(&first, "t1", |it| it.state.retry_at.is_some()).await;
    first.engine.shutdown().await;
    fake.set(able());
    let second = next_node(location, 60_000).await;
    let record = ended(&second, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&second, "t1").await);
    let calls = fake.calls();
    let executed = calls.iter().filter(|call| call.endpoint() == "execute");
    let attempts: Vec<&Value> = executed.map(|call| &call.body["attempt_id"]).collect();
    assert_eq!(attempts.first().unwrap(), &"attempt-1");
    assert_eq!(attempts.last().unwrap(), &"attempt-2");
    second.engine.shutdown().await;
}

/// A task of which a dead node had written everything except the reveals: `s1` proposed, and `s2`
/// voted for it.
async fn left_before_the_reveal(
    location: &StoreLocation,
    change: impl Fn(&mut TaskContract),
) -> [FakeExecutor; 2] {
    let app = TestApp::with_store(location).await;
    let fakes = app.executors([able(), says_valid().task_types(&["other"])]).await;
    let mut task = order(contract(&app, "t1"), &["s1"]);
    task.verifiers = vec!["s2".to_owned()];
    change(&mut task.contract);
    submit(&app, task).await.unwrap();
    let (now, output) = (app.clock.now(), json!({ "answer": "42", "confidence": 0.9 }));
    let digest = jurat_core::canonical::digest_json(&output);
    let claim = |role, holder: &str, candidate: Option<&str>| TaskLease {
        role,
        holder: holder.to_owned(),
        node: "gone".to_owned(),
        independence: holder.to_owned(),
        pool_keys: 1,
        execution_id: format!("exec-{holder}"),
        candidate: candidate.map(str::to_owned),
        until: now.plus_millis(300),
    };
    let candidate = TaskCandidateRow {
        id: "c1".to_owned(),
        execution_id: "exec-s1".to_owned(),
        executor: "s1".to_owned(),
        round: None,
        output,
        evidence: Evidence::default(),
        digest: digest.clone(),
        created_at: now,
    };
    write(
        &app,
        TaskCommand::TakeLease { token: 1, claim: claim(TaskRole::Propose, "s1", None) },
        None,
    )
    .await;
    let propose = TaskCommand::Propose {
        token: 1,
        candidate: "c1".to_owned(),
        digest,
        evidence: Vec::new(),
        round_id: String::new(),
    };
    let with = TaskAppendExtras { candidate: Some(candidate), ..TaskAppendExtras::default() };
    write(&app, propose, Some(with)).await;
    let claim = claim(TaskRole::Verify, "s2", Some("c1"));
    write(&app, TaskCommand::TakeLease { token: 2, claim }, None).await;
    vote(&app).await;
    app.engine.shutdown().await;
    fakes
}

/// The secret vote of `s2` in the store.
async fn vote(app: &TestApp) {
    let ballot = Ballot {
        status: EvaluationStatus::Passed,
        score: 1.0,
        reason_codes: Vec::new(),
        verdict_digest: "sha256:verdict".to_owned(),
        available: Vec::new(),
    };
    let state = app.engine.task_show(&admin_caller(), "t1").await.unwrap().state;
    let salt = "salt".to_owned();
    let sealed = TaskBallotRow {
        candidate: "c1".to_owned(),
        turn: state.vote_context("c1", "s2").turn,
        voter: "s2".to_owned(),
        ballot: ballot.clone(),
        salt: salt.clone(),
        round: None,
        created_at: app.clock.now(),
    };
    let commitment = commitment(state.vote_context("c1", "s2"), &ballot, &salt);
    let commit = TaskCommand::CommitVote { token: 2, commitment, round_id: String::new() };
    let with = TaskAppendExtras { ballot: Some(sealed), ..TaskAppendExtras::default() };
    write(app, commit, Some(with)).await;
}

/// Writes the events of a command, as the driver of a task does.
async fn write(app: &TestApp, command: TaskCommand, with: Option<TaskAppendExtras>) {
    let (now, caller) = (app.clock.now(), admin_caller());
    let record = app.engine.task_show(&caller, "t1").await.unwrap();
    let mut state = record.state;
    let events = decide(&state, &command, now, &VoterReliability::new()).unwrap();
    for event in &events {
        state.apply(event, now);
    }
    let append = TaskAppend {
        task: TaskKey { account: caller.account().clone(), id: "t1".to_owned() },
        expected_seq: record.seq,
        // A node must look again if the working one is gone.
        due_at: state.wakes_at().map(|at| at.min(now.plus_millis(300))),
        events,
        state,
        at: now,
        with: with.unwrap_or_default(),
    };
    let behalf = Behalf::Account(caller.account().clone());
    let written = app.store.tasks().append(&behalf, &append, None).await.unwrap();
    assert_eq!(written, WriteOutcome::Done(()));
}

pub(crate) async fn revealed(location: &StoreLocation) {
    let [_proposer, verifier] = left_before_the_reveal(location, |_| {}).await;
    let second = next_node(location, 1_000).await;
    let record = ended(&second, "t1").await;
    let story = events(&second, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{story:?}");
    assert!(story.iter().any(|it| matches!(it, TaskEvent::VoteRevealed { .. })), "{story:?}");
    assert_eq!(asked(&verifier, "verify"), 0);
    second.engine.shutdown().await;
}

pub(crate) async fn forfeited(location: &StoreLocation) {
    let [proposer, verifier] = left_before_the_reveal(location, |_| {}).await;
    let second = next_node(location, 20_000).await;
    wait_until(&second, "t1", |it| it.state.proposals[0].retry_at.is_some()).await;
    second.clock.advance_ms(1_000);
    let record = ended(&second, "t1").await;
    let story = events(&second, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{story:?}");
    let is_late =
        |it: &TaskEvent| matches!(it, TaskEvent::VoteForfeited { why: Forfeit::Late, .. });
    assert_eq!(story.iter().filter(|it| is_late(it)).count(), 1, "{story:?}");
    // The proposal is kept, and the vote is repeated.
    assert_eq!((asked(&proposer, "execute"), asked(&verifier, "verify")), (0, 1));
    second.engine.shutdown().await;
}

pub(crate) async fn expired_in_secret(location: &StoreLocation) {
    let sooner = |task: &mut TaskContract| task.expiry_ms -= 595_000;
    let [_proposer, verifier] = left_before_the_reveal(location, sooner).await;
    let second = next_node(location, 6_000).await;
    let record = ended(&second, "t1").await;
    let story = events(&second, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Expired, "{story:?}");
    assert_eq!(record.reason.as_deref(), Some("its contract expired"));
    let is_told =
        |it: &TaskEvent| matches!(it, TaskEvent::VoteRevealed { .. } | TaskEvent::Finalized { .. });
    assert!(!story.iter().any(is_told), "{story:?}");
    assert_eq!(asked(&verifier, "verify"), 0);
    second.engine.shutdown().await;
}
