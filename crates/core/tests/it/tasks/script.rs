//! The language of the task stories.
#![expect(clippy::panic, reason = "a story that cannot be read is a mistake of its writer")]

use std::collections::BTreeMap;

use jurat_core::{
    policy::EvaluationStatus,
    task::{
        Ballot, LeaseRelease, TaskCommand, TaskEvent, TaskLease, TaskNeed, TaskRefusal, TaskRole,
        needs,
    },
};

use super::driven::{Driven, at, ballot};

/// The result of a step.
pub(super) enum Done {
    Told(Result<Vec<TaskEvent>, TaskRefusal>),
    Answer(String),
}

/// A step: its words in order, and those of the form `name=value`.
struct Step<'a> {
    words: Vec<&'a str>,
    options: BTreeMap<&'a str, &'a str>,
}

impl<'a> Step<'a> {
    fn new(words: &[&'a str]) -> Self {
        let options = words.iter().filter_map(|word| word.split_once('=')).collect();
        let words = words.iter().copied().filter(|word| !word.contains('=')).collect();
        Self { words, options }
    }

    fn word(&self, at: usize) -> &'a str {
        self.words.get(at).unwrap_or_else(|| panic!("a word is missing: {:?}", self.words))
    }

    fn number<T: std::str::FromStr>(&self, at: usize) -> T {
        self.word(at).parse().ok().unwrap_or_else(|| panic!("no number: {:?}", self.words))
    }

    fn list(&self, name: &str) -> Vec<String> {
        let given = self.options.get(name).copied().unwrap_or_default();
        given.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
}

fn status(word: &str) -> EvaluationStatus {
    match word {
        "passed" => EvaluationStatus::Passed,
        "failed" => EvaluationStatus::Failed,
        "inconclusive" => EvaluationStatus::Inconclusive,
        other => panic!("`{other}` is not a verdict"),
    }
}

/// Performs a step.
pub(super) fn perform(driven: &mut Driven, words: &[&str]) -> Done {
    let step = Step::new(words);
    match step.word(0) {
        "needs" => {
            let found = needs(&driven.task, at(driven.now));
            let shown: Vec<String> = found.iter().map(shown).collect();
            Done::Answer(if shown.is_empty() { "nothing".to_owned() } else { shown.join("; ") })
        }
        "wakes" => {
            let wakes = driven.task.wakes_at().map(|at| at.millis().to_string());
            Done::Answer(wakes.unwrap_or_else(|| "never".to_owned()))
        }
        "resumes" => {
            let candidate = step.words.get(3).copied();
            let role = step.word(1).parse().unwrap();
            let found = driven.task.resumable(role, step.word(2), candidate);
            Done::Answer(found.unwrap_or("nothing").to_owned())
        }
        "vote" => {
            let score = step.options.get("score").map_or(0.9, |it| it.parse().unwrap());
            let ballot = ballot(status(step.word(2)), score);
            Done::Told(driven.vote(step.number(1), ballot, &step.list("saw")))
        }
        _ => {
            let command = command(driven, &step);
            Done::Told(driven.tell(&command))
        }
    }
}

fn shown(need: &TaskNeed) -> String {
    match need {
        TaskNeed::Proposals { count, without, only } => {
            format!("{count} proposals without {}{}", joined(without), alone(only.as_deref()))
        }
        TaskNeed::Verdicts { candidate, count, without, keys, only } => {
            let (without, keys, only) = (joined(without), joined(keys), alone(only.as_deref()));
            format!("{count} verdicts on {candidate} without {without} other than {keys}{only}")
        }
        TaskNeed::Reveals { candidate, voters } => {
            format!("reveals on {candidate} by {}", voters.join(","))
        }
        TaskNeed::Final { candidate } => format!("{candidate} made final"),
    }
}

fn alone(only: Option<&[String]>) -> String {
    only.map(|names| format!(" only by {}", names.join(","))).unwrap_or_default()
}

fn joined(names: &[String]) -> String {
    if names.is_empty() { "any".to_owned() } else { names.join(",") }
}

fn command(driven: &Driven, step: &Step<'_>) -> TaskCommand {
    match step.word(0) {
        "claim" => claim(driven, step),
        "renew" => {
            let until = step.options.get("until").map(|it| it.parse().unwrap());
            let until = at(until.unwrap_or(driven.now + driven.task.terms.lease_ms));
            TaskCommand::Renew { token: step.number(1), until }
        }
        "release" => TaskCommand::Release { token: step.number(1), reason: release(step.word(2)) },
        "propose" => {
            let digest = step.word(2).to_owned();
            let id = step.options.get("id").map(|it| (*it).to_owned());
            TaskCommand::Propose {
                token: step.number(1),
                candidate: id.unwrap_or_else(|| format!("c-{digest}")),
                digest,
                evidence: step.list("evidence"),
                round_id: "round".to_owned(),
            }
        }
        "reuse" => {
            let digest = step.word(2).to_owned();
            TaskCommand::Reuse {
                source: step.word(1).to_owned(),
                candidate: format!("c-{digest}"),
                digest,
                evidence: step.list("evidence"),
                proposers: step.list("by"),
            }
        }
        "reveal" => reveal(driven, step),
        "accuse" => TaskCommand::Accuse {
            candidate: step.word(1).to_owned(),
            voter: step.word(2).to_owned(),
            turn: step.number(3),
            verdicts: (format!("sha256:{}", step.word(4)), format!("sha256:{}", step.word(5))),
        },
        "finalize" => TaskCommand::Finalize { token: step.number(1) },
        "complain" => TaskCommand::Complain {
            epoch: step.number(1),
            reason: "it is wrong".to_owned(),
            signed: None,
        },
        "next_epoch" => TaskCommand::NextEpoch,
        "cancel" => TaskCommand::Cancel { reason: "the caller changed their mind".to_owned() },
        "tick" => TaskCommand::Tick {
            exhausted: jurat_core::task::ExhaustedRoles {
                proposers: step.words.contains(&"no_proposers"),
                verifiers: step.words.contains(&"no_verifiers"),
            },
        },
        other => panic!("`{other}` is no step"),
    }
}

fn claim(driven: &Driven, step: &Step<'_>) -> TaskCommand {
    let role: TaskRole = step.word(1).parse().unwrap();
    let (holder, candidate) = (step.word(2), step.words.get(3).copied());
    let options = &step.options;
    let base = driven.claim_of(role, holder, candidate);
    let token = options.get("token").map(|it| it.parse().unwrap());
    let claim = TaskLease {
        independence: options.get("key").map_or(base.independence, |it| (*it).to_owned()),
        pool_keys: options.get("keys").map_or(base.pool_keys, |it| it.parse().unwrap()),
        until: options.get("until").map_or(base.until, |it| at(it.parse().unwrap())),
        ..base
    };
    TaskCommand::TakeLease { token: token.unwrap_or(driven.task.last_token + 1), claim }
}

fn release(word: &str) -> LeaseRelease {
    let detail = "it was so".to_owned();
    match word {
        "failed" => LeaseRelease::Failed { code: "unavailable".to_owned(), detail },
        "given_up" => LeaseRelease::GivenUp { detail },
        "node_failed" => LeaseRelease::NodeFailed { code: "store_unavailable".to_owned(), detail },
        other => panic!("`{other}` is no reason"),
    }
}

/// Reveals the secret vote, unless the step says what to reveal instead.
fn reveal(driven: &Driven, step: &Step<'_>) -> TaskCommand {
    let (candidate, voter) = (step.word(1).to_owned(), step.word(2).to_owned());
    let secret = driven.secret.get(&(candidate.clone(), voter.clone())).cloned();
    let (secret, salt) =
        secret.unwrap_or_else(|| (ballot(EvaluationStatus::Passed, 0.9), String::new()));
    let shown = step.options.get("as").map(|it| ballot(status(it), 0.9));
    let score = step.options.get("score").map(|it| it.parse().unwrap());
    let shown = shown.unwrap_or(secret);
    let ballot = Ballot { score: score.unwrap_or(shown.score), ..shown };
    TaskCommand::Reveal { candidate, voter, ballot, salt }
}
