//! Selects the sessions of a round: distinct, live, capable, and as independent as the pool allows.

use std::collections::BTreeSet;

use super::job::{Job, PoolEntry};
use crate::{
    canonical::sha256_hex,
    executor::{Capabilities, Independence, session::Session},
};

/// A session with the current state of its executor.
#[derive(Debug, Clone)]
pub struct EligibleSession<'a> {
    pub session: &'a Session,
    pub host: &'a str,
    /// The capabilities of the executor, or why it cannot be used now.
    pub standing: Result<&'a Capabilities, String>,
    pub reliability: f64,
}

impl EligibleSession<'_> {
    /// The properties that this session may share with others.
    pub fn independence(&self) -> Independence {
        let (family, model) = match &self.standing {
            Ok(capabilities) => {
                (capabilities.provider_family.as_str(), capabilities.model_id.as_str())
            }
            Err(_) => ("unknown", "unknown"),
        };
        Independence {
            provider_family: family.to_owned(),
            model_id: model.to_owned(),
            host: self.host.to_owned(),
            executor: self.session.executor.clone(),
        }
    }
}

/// Why no selection is possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    #[error("there is no session `{0}`")]
    Unknown(String),
    #[error("there is no executor `{0}`")]
    NoExecutor(String),
    #[error(
        "executor `{executor}` is reached through its sessions only, and none of them has the profile `{profile}`; use {}, or ask the operator to add one: `jurat sessions add ID --executor {executor} --profile {profile}`",
        quoted(profiles)
    )]
    NoSession { executor: String, profile: String, profiles: Vec<String> },
    #[error(
        "executor `{executor}` has no session and therefore no price; ask the operator to add one: `jurat sessions add ID --executor {executor} --profile {profile} --price-micros N`"
    )]
    Unpriced { executor: String, profile: String },
    #[error(
        "the judge `{judge}` has no price; metered accounts may name {} of its provider",
        quoted(priced)
    )]
    UnpricedJudge { judge: String, priced: Vec<String> },
    #[error("the session `{0}` is in the pool twice")]
    Twice(String),
    #[error("no session has the label or profile `{0}`")]
    Empty(String),
    #[error("the pool has {} and {} asked for", sessions(*have), replicas_were(*want))]
    TooSmall { have: usize, want: usize },
    #[error("{} asked for and {} can answer now", replicas_were(*want), sessions(*have))]
    Unavailable { have: usize, want: usize, problems: Vec<SelectProblem> },
}

fn sessions(count: usize) -> String {
    if count == 1 { "1 session".to_owned() } else { format!("{count} sessions") }
}

fn replicas_were(count: usize) -> String {
    if count == 1 { "1 replica was".to_owned() } else { format!("{count} replicas were") }
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
}

/// The fault of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectProblem {
    pub session_id: String,
    pub problem: String,
}

/// The selected sessions, by their index among the eligible ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// One session for each replica.
    pub seats: Vec<ChosenSession>,
    /// Sessions to ask if one of the chosen ones fails.
    pub spares: Vec<usize>,
}

/// The session that takes a seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenSession {
    /// The index of the session among the eligible ones.
    pub index: usize,
    /// Why it cannot be asked. No other session was left for the seat, which has failed from the
    /// start.
    pub problem: Option<String>,
}

/// Selects the sessions of a job. The same inputs give the same selection on every machine.
///
/// Sessions that cannot be asked are skipped while there are others. If too few others are left,
/// the remaining seats fail from the start, as long as the rest can still form a majority.
pub fn select(
    job: &Job,
    eligible: &[EligibleSession<'_>],
    seed: u64,
) -> Result<Selection, SelectError> {
    let want = usize::from(job.terms.replicas);
    let is_routed = job.terms.pool.is_empty();
    let candidates: Vec<usize> =
        if is_routed { (0..eligible.len()).collect() } else { pooled(&job.terms.pool, eligible)? };
    if !is_routed && candidates.len() < want {
        return Err(SelectError::TooSmall { have: candidates.len(), want });
    }
    let mut able = Vec::new();
    let mut failed = Vec::new();
    let mut problems = Vec::new();
    for index in &candidates {
        let entry = &eligible[*index];
        let misfit = if is_routed { misfit(job, entry.session) } else { None };
        let obstacle = obstacle(job, entry);
        if misfit.is_none() && obstacle.is_none() {
            able.push(*index);
            continue;
        }
        if misfit.is_none() {
            failed.push(ChosenSession { index: *index, problem: obstacle.clone() });
        }
        if let Some(problem) = misfit.or(obstacle) {
            problems.push(SelectProblem { session_id: entry.session.id.clone(), problem });
        }
    }
    let is_majority = want < 2 * able.len();
    if !is_majority || able.len() + failed.len() < want {
        return Err(SelectError::Unavailable { have: able.len(), want, problems });
    }
    let mut asked = spread(job, eligible, &able, seed);
    let mut spares = asked.split_off(want.min(asked.len()));
    spares.truncate(job.terms.spares.map_or(want, usize::from));
    if is_routed {
        // The caller gave no order, and the order of the installation must not matter.
        failed.sort_by_key(|seat| &eligible[seat.index].session.id);
    }
    failed.truncate(want - asked.len());
    let asked = asked.into_iter().map(|index| ChosenSession { index, problem: None });
    let mut seats: Vec<ChosenSession> = asked.chain(failed).collect();
    if !is_routed {
        // The caller gave an order, which the replicas keep.
        seats.sort_by_key(|seat| candidates.iter().position(|other| *other == seat.index));
    }
    Ok(Selection { seats, spares })
}

/// The spare to ask next: its executor has not failed, and it shares least with the replicas that
/// count. Ties go to the first, since spares are in the order of choice.
pub fn next_spare(
    spares: &[&Independence],
    counted: &[&Independence],
    failed: &[&Independence],
) -> Option<usize> {
    let has_failed = |key: &Independence| failed.iter().any(|it| it.executor == key.executor);
    (0..spares.len()).min_by_key(|slot| (has_failed(spares[*slot]), shared(spares[*slot], counted)))
}

/// Why a session that the caller did not name does not fit this job.
fn misfit(job: &Job, session: &Session) -> Option<String> {
    if let (Some(wanted), Some(has)) = (job.tier, session.tier)
        && has < wanted
    {
        return Some(format!(
            "its tier `{}` is below the requested tier `{}`",
            has.as_str(),
            wanted.as_str()
        ));
    }
    let missing = job.labels.difference(&session.labels).next()?;
    Some(format!("it does not have the label `{missing}`"))
}

fn pooled(pool: &[PoolEntry], eligible: &[EligibleSession<'_>]) -> Result<Vec<usize>, SelectError> {
    let mut chosen: Vec<usize> = Vec::new();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for entry in pool {
        let matching: Vec<usize> = (0..eligible.len())
            .filter(|index| {
                let session = eligible[*index].session;
                match entry {
                    PoolEntry::Session(id) => session.id == *id,
                    PoolEntry::Label(label) => session.labels.contains(label),
                    PoolEntry::Profile(profile) => session.profile == *profile,
                    PoolEntry::Executor { name, profile } => {
                        session.executor == *name && session.profile == *profile
                    }
                }
            })
            .take(if matches!(entry, PoolEntry::Executor { .. }) { 1 } else { usize::MAX })
            .collect();
        match entry {
            PoolEntry::Session(id) if matching.is_empty() => {
                return Err(SelectError::Unknown(id.clone()));
            }
            PoolEntry::Session(id) if !named.insert(id) => {
                return Err(SelectError::Twice(id.clone()));
            }
            PoolEntry::Label(name) | PoolEntry::Profile(name) if matching.is_empty() => {
                return Err(SelectError::Empty(name.clone()));
            }
            PoolEntry::Executor { name, .. } if matching.is_empty() => {
                return Err(SelectError::NoExecutor(name.clone()));
            }
            PoolEntry::Session(_)
            | PoolEntry::Label(_)
            | PoolEntry::Profile(_)
            | PoolEntry::Executor { .. } => {}
        }
        chosen.extend(
            matching.into_iter().filter(|index| !chosen.contains(index)).collect::<Vec<_>>(),
        );
    }
    Ok(chosen)
}

/// Why a session cannot take this job now.
fn obstacle(job: &Job, entry: &EligibleSession<'_>) -> Option<String> {
    let capabilities = match &entry.standing {
        Ok(capabilities) => capabilities,
        Err(problem) => return Some(problem.clone()),
    };
    let session = entry.session;
    if let Some(wanted) = job.work.task_type() {
        let task_type = session.task_type(wanted);
        if !capabilities.takes_task_type(task_type) {
            return Some(format!(
                "executor `{}` does not declare the task type `{task_type}`; map it with `jurat sessions add --task-type {wanted}=NAME`",
                session.executor
            ));
        }
        if !capabilities.has_profile(&session.profile) {
            return Some(format!(
                "executor `{}` does not declare the profile `{}`",
                session.executor, session.profile
            ));
        }
    }
    None
}

/// Why a session that takes the job cannot decide it: its executor does not declare the mode. Such a
/// session abstains without being asked.
pub fn missing_mode(job: &Job, entry: &EligibleSession<'_>) -> Option<String> {
    let (mode, task_type) = (job.work.mode()?, job.work.task_type()?);
    let task_type = entry.session.task_type(task_type);
    let capabilities = entry.standing.as_ref().ok()?;
    if capabilities.declares_mode(task_type, mode) {
        return None;
    }
    Some(format!(
        "executor `{}` does not declare the mode `{mode}`; an executor that does lists `{task_type}:{mode}` in its task types",
        entry.session.executor
    ))
}

/// Repeatedly takes the session that shares least with those already taken. Those that would
/// abstain come last.
fn spread(job: &Job, eligible: &[EligibleSession<'_>], able: &[usize], seed: u64) -> Vec<usize> {
    let keys: Vec<Independence> =
        able.iter().map(|index| eligible[*index].independence()).collect();
    let draws: Vec<String> = able
        .iter()
        .map(|index| sha256_hex(format!("{seed}|{}", eligible[*index].session.id).as_bytes()))
        .collect();
    let abstains: Vec<bool> =
        able.iter().map(|index| missing_mode(job, &eligible[*index]).is_some()).collect();
    let mut taken: Vec<usize> = Vec::new();
    while taken.len() < able.len() {
        let next = (0..able.len()).filter(|slot| !taken.contains(slot)).min_by(|left, right| {
            let taken: Vec<&Independence> = taken.iter().map(|slot| &keys[*slot]).collect();
            abstains[*left]
                .cmp(&abstains[*right])
                .then_with(|| shared(&keys[*left], &taken).cmp(&shared(&keys[*right], &taken)))
                .then_with(|| {
                    worth(&eligible[able[*right]]).total_cmp(&worth(&eligible[able[*left]]))
                })
                .then_with(|| draws[*left].cmp(&draws[*right]))
        });
        let Some(next) = next else { break };
        taken.push(next);
    }
    taken.into_iter().map(|slot| able[slot]).collect()
}

/// How often a session repeats an executor, a provider, a model or a host of those taken.
fn shared(key: &Independence, taken: &[&Independence]) -> [usize; 4] {
    let count =
        |same: &dyn Fn(&Independence) -> bool| taken.iter().filter(|other| same(other)).count();
    [
        count(&|other| other.executor == key.executor),
        count(&|other| other.provider_family == key.provider_family),
        count(&|other| other.model_id == key.model_id),
        count(&|other| other.host == key.host),
    ]
}

/// Reliability per cost; a free session counts as one micro-credit.
#[expect(clippy::cast_precision_loss, reason = "an order, not a sum of money")]
fn worth(entry: &EligibleSession<'_>) -> f64 {
    entry.reliability / entry.session.price_micros.max(1) as f64
}
