//! Stories of tasks, from case files: timed commands and their results.
//!
//! A step is a line `TIME COMMAND => OUTCOME`. The outcome lists the events with their
//! distinguishing members, and after a bar the phase, if it changed; or `refused` with the refusal;
//! or an answer.
#![expect(clippy::panic, reason = "a story that cannot be read is a mistake of its writer")]

use std::collections::BTreeSet;

use jurat_core::task::{
    ExploreEnd, Forfeit, LeaseRelease, TaskEvent, TaskPhase, TaskRefusal, TaskTerms, VoteGap,
};
use serde_json::Value;

use super::{
    driven::{Driven, terms},
    script,
};
use crate::cases;

/// The terms of a story: the usual ones, with its changes. A dot leads into the budget.
fn terms_of(file: &toml::Table) -> TaskTerms {
    let mut document = serde_json::to_value(terms()).unwrap();
    let told = file.get("terms").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    for (name, value) in told {
        let value = serde_json::to_value(value).unwrap();
        let place = match name.strip_prefix("budget_") {
            Some(inner) => document["budget"].get_mut(inner),
            None => document.get_mut(&name),
        };
        *place.unwrap_or_else(|| panic!("`{name}` is no term")) = value;
    }
    serde_json::from_value(document).unwrap()
}

fn begun(file: &toml::Table) -> Driven {
    cases::refuse_others(file, &["terms", "known", "steps", "expect"]);
    let mut driven = Driven::new(terms_of(file));
    for (executor, weight) in
        file.get("known").and_then(toml::Value::as_table).into_iter().flatten()
    {
        driven.known.insert(executor.clone(), weight.as_float().unwrap());
    }
    driven
}

/// The members that distinguish an event from others of its name.
fn mark(event: &TaskEvent) -> Option<String> {
    let millis = |at: &jurat_core::time::Timestamp| at.millis().to_string();
    match event {
        TaskEvent::Released { reason, .. } => Some(why(reason).to_owned()),
        TaskEvent::ExploreClosed { why } => Some(why.to_string()),
        TaskEvent::VoteForfeited { why, .. } => Some(why.to_string()),
        TaskEvent::Undecided { why, .. } => Some(why.to_string()),
        TaskEvent::VerificationRepeated { why, at, .. } => Some(format!("{why}@{}", millis(at))),
        TaskEvent::VotingExtended { wanted, .. } => Some(wanted.to_string()),
        TaskEvent::RetryScheduled { at } => Some(format!("@{}", millis(at))),
        TaskEvent::RevealOpened { until, .. } | TaskEvent::Renewed { until, .. } => {
            Some(format!("@{}", millis(until)))
        }
        TaskEvent::Charged { role, reuse: false } | TaskEvent::Refunded { role, reuse: false } => {
            Some(role.to_string())
        }
        TaskEvent::Charged { role, reuse: true } | TaskEvent::Refunded { role, reuse: true } => {
            Some(format!("{role}+reuse"))
        }
        TaskEvent::Settled { is_bad, .. } => Some(if *is_bad { "bad" } else { "good" }.to_owned()),
        TaskEvent::Created { .. }
        | TaskEvent::Claimed { .. }
        | TaskEvent::Proposed { .. }
        | TaskEvent::Reused { .. }
        | TaskEvent::EvidenceSeen { .. }
        | TaskEvent::VoteCommitted { .. }
        | TaskEvent::VoteRevealed { .. }
        | TaskEvent::Equivocated { .. }
        | TaskEvent::Committed { .. }
        | TaskEvent::Rejected { .. }
        | TaskEvent::Finalized { .. }
        | TaskEvent::Complained { .. }
        | TaskEvent::EpochEnded { .. }
        | TaskEvent::Failed { .. }
        | TaskEvent::Expired { .. }
        | TaskEvent::Cancelled { .. } => None,
    }
}

fn why(release: &LeaseRelease) -> &'static str {
    match release {
        LeaseRelease::LeaseRanOut => "lease_ran_out",
        LeaseRelease::Failed { .. } => "failed",
        LeaseRelease::GivenUp { .. } => "given_up",
        LeaseRelease::NodeFailed { .. } => "node_failed",
    }
}

fn refusal(refusal: &TaskRefusal) -> &'static str {
    match refusal {
        TaskRefusal::Over(_) => "over",
        TaskRefusal::NotHeld(_) => "not_held",
        TaskRefusal::OldToken { .. } => "old_token",
        TaskRefusal::OwnCandidate(_) => "own_candidate",
        TaskRefusal::VotesAlready(_) => "votes_already",
        TaskRefusal::Equivocator(_) => "equivocator",
        TaskRefusal::TooMany(_) => "too_many",
        TaskRefusal::Budget(_) => "budget",
        TaskRefusal::NoCandidate(_) => "no_candidate",
        TaskRefusal::IdTaken(_) => "id_taken",
        TaskRefusal::NoVote(_) => "no_vote",
        TaskRefusal::NotRevealing(_) => "not_revealing",
        TaskRefusal::NoProof(_) => "no_proof",
        TaskRefusal::NoReuse(_) => "no_reuse",
        TaskRefusal::NoWindow { why: "there is no decision yet", .. } => "no_decision",
        TaskRefusal::NoWindow { why: "it was already disputed", .. } => "complained_already",
        TaskRefusal::NoWindow { .. } => "no_window",
        TaskRefusal::NoEpoch(_) => "no_epoch",
        TaskRefusal::TooEarly => "too_early",
    }
}

const REFUSALS: [&str; 19] = [
    "over",
    "not_held",
    "old_token",
    "own_candidate",
    "votes_already",
    "equivocator",
    "too_many",
    "budget",
    "no_candidate",
    "id_taken",
    "no_vote",
    "not_revealing",
    "no_proof",
    "no_reuse",
    "no_decision",
    "complained_already",
    "no_window",
    "no_epoch",
    "too_early",
];

/// The result of a step, in the words of the story.
fn outcome(driven: &mut Driven, words: &[&str]) -> String {
    let before = driven.task.phase;
    match script::perform(driven, words) {
        script::Done::Answer(answer) => answer,
        script::Done::Told(Err(why)) => {
            // A refusal can be shown to a user: it contains no markup.
            assert!(!why.to_string().contains(['[', ']']), "{why}");
            format!("refused {}", refusal(&why))
        }
        script::Done::Told(Ok(events)) => {
            let mut told: Vec<String> = events
                .iter()
                .map(|it| {
                    mark(it).map_or(it.name().to_owned(), |mark| format!("{}:{mark}", it.name()))
                })
                .collect();
            if driven.task.phase != before {
                told.push(format!("| {}", driven.task.phase));
            }
            if told.is_empty() { "nothing".to_owned() } else { told.join(" ") }
        }
    }
}

/// The steps with their results.
fn told(file: &toml::Table) -> (Vec<String>, Driven) {
    let mut driven = begun(file);
    let mut lines = Vec::new();
    for line in file["steps"].as_str().unwrap().lines() {
        let (said, _) = line.split_once("=>").unwrap_or((line, ""));
        let words: Vec<&str> = said.split_whitespace().collect();
        let (time, words) = words.split_first().unwrap();
        driven.now = time.parse().unwrap();
        let found = outcome(&mut driven, words);
        assert_eq!(driven.replayed(), driven.task, "the events make another task: {line}");
        let written = serde_json::to_string(&driven.task).unwrap();
        assert_eq!(serde_json::from_str::<jurat_core::task::Task>(&written).unwrap(), driven.task);
        lines.push(format!("{} => {found}", said.trim_end()));
    }
    (lines, driven)
}

/// The final state of the task.
fn standing(driven: &Driven) -> toml::Table {
    let mut found = toml::Table::new();
    found.insert("phase".to_owned(), driven.task.phase.as_str().into());
    let end = serde_json::to_value(&driven.task.end).unwrap();
    if let Some(reason) = end.get("reason").and_then(Value::as_str) {
        found.insert("reason".to_owned(), reason.into());
    }
    if let Some(candidate) = &driven.task.decided {
        found.insert("decided".to_owned(), candidate.as_str().into());
    }
    let spent = driven.task.spent;
    let units = format!("{} {} {}", spent.explore, spent.verify, spent.finalize);
    found.insert("spent".to_owned(), units.into());
    found
}

#[test]
fn every_task_story_ends_as_written() {
    cases::check("tasks", 50, |file| {
        let (lines, driven) = told(file);
        let mut found = standing(&driven);
        // The whole story is shown if a step has another result.
        if lines != file["steps"].as_str().unwrap().lines().collect::<Vec<_>>() {
            found.insert("steps".to_owned(), lines.join("\n").into());
        }
        found
    });
}

#[test]
fn every_task_event_occurs_in_some_story() {
    let mut seen = BTreeSet::from(["TASK_CREATED".to_owned()]);
    for (_, file) in cases::read("tasks") {
        let (lines, _) = told(&file);
        for line in lines {
            let (_, outcome) = line.split_once("=> ").unwrap();
            for word in outcome.split_whitespace() {
                seen.extend(word.split(['@', ':']).map(str::to_owned));
            }
        }
    }
    let phases = TaskPhase::ALL.iter().map(|it| it.as_str());
    let stops = ExploreEnd::ALL.iter().map(|it| it.as_str());
    let gaps = VoteGap::ALL.iter().map(|it| it.as_str());
    let forfeits = Forfeit::ALL.iter().map(|it| it.as_str());
    let releases = ["lease_ran_out", "failed", "given_up"];
    let words = phases.chain(stops).chain(gaps).chain(forfeits).chain(releases);
    let missing: Vec<&str> = words
        .chain(TaskEvent::NAMES)
        .chain(REFUSALS)
        .filter(|word| !seen.contains(*word))
        .collect();
    assert!(missing.is_empty(), "no story tells of {missing:?}");
}
