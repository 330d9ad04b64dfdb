//! Who proposes and who verifies: distinct, as independent as the panel allows, and never the same
//! for both.

use std::collections::BTreeSet;

use jurat_core::{
    task::{Exhausted, Need, Proposal, Role, Task, Weigher, needs},
    time::Timestamp,
};

/// Somebody of the panel of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    pub name: String,
    /// What it has in common with others, such as a model.
    pub independence: String,
    pub proposes: bool,
    pub verifies: bool,
    /// Whether it can be asked now: it is well, and it declares what the task needs.
    pub is_ready: bool,
    /// Whether it is this node, which votes where others are too few.
    pub is_node: bool,
    /// How often it is right, as far as that is known.
    pub reliability: f64,
}

/// Work for somebody.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice<'a> {
    pub(super) worker: &'a Worker,
    pub(super) role: Role,
    pub(super) candidate: Option<String>,
    /// How many different keys there are among all who could do it.
    pub(super) pool_keys: u32,
    /// The execution under which it was begun before.
    pub(super) begun: Option<String>,
}

/// How often each is right.
pub(super) fn known(workers: &[Worker]) -> Weigher {
    workers.iter().map(|it| (it.name.clone(), it.reliability)).collect()
}

/// Who does next what is needed; nobody, when nobody is left or nobody is needed.
///
/// Those who began it before come first, then those who are least like the others. This node comes
/// last.
pub(super) fn choose<'a>(task: &Task, need: &Need, workers: &'a [Worker]) -> Option<Choice<'a>> {
    match need {
        Need::Proposals { without, .. } => {
            let used = keys_of(workers, without.iter());
            let free = free(workers, without).filter(|it| it.proposes);
            let free = free.filter(|it| leaves_a_quorum(task, it, workers));
            let worker = free.min_by_key(|it| {
                let is_begun = task.resumable(Role::Propose, &it.name, None).is_some();
                (!is_begun, used.contains(it.independence.as_str()))
            })?;
            let begun = task.resumable(Role::Propose, &worker.name, None).map(str::to_owned);
            Some(Choice { worker, role: Role::Propose, candidate: None, pool_keys: 0, begun })
        }
        Need::Verdicts { candidate, without, keys, .. } => {
            let proposal = task.proposal(candidate)?;
            let authors = keys_of(workers, proposal.proposers.iter());
            let begun = |it: &Worker| {
                task.resumable(Role::Verify, &it.name, Some(candidate)).map(str::to_owned)
            };
            let free = free(workers, without).filter(|it| it.verifies);
            let worker = free.min_by_key(|it| {
                let is_like_others = keys.contains(&it.independence);
                let is_like_author = authors.contains(it.independence.as_str());
                (it.is_node, begun(it).is_none(), is_like_others, is_like_author)
            })?;
            Some(Choice {
                worker,
                role: Role::Verify,
                candidate: Some(candidate.clone()),
                pool_keys: pool_keys(task, proposal, workers),
                begun: begun(worker),
            })
        }
        Need::Reveals { .. } | Need::Final { .. } => None,
    }
}

/// What there is nobody left for. Those who cannot be asked now count as gone: what is tried again
/// after a pause finds them well, or ends.
pub(super) fn exhausted(task: &Task, now: Timestamp, workers: &[Worker]) -> Exhausted {
    let mut exhausted = Exhausted::default();
    for need in needs(task, now) {
        let is_nobody = choose(task, &need, workers).is_none();
        match need {
            Need::Proposals { .. } => exhausted.proposers = is_nobody,
            Need::Verdicts { .. } => exhausted.verifiers = is_nobody,
            Need::Reveals { .. } | Need::Final { .. } => {}
        }
    }
    exhausted
}

fn free<'a>(workers: &'a [Worker], without: &[String]) -> impl Iterator<Item = &'a Worker> {
    workers.iter().filter(|it| it.is_ready && !without.contains(&it.name))
}

/// Whether enough are left to verify when this one proposes as well, and all propose the same. The
/// first may always propose: a panel that is too small for that is not taken.
fn leaves_a_quorum(task: &Task, worker: &Worker, workers: &[Worker]) -> bool {
    let proposing = task.claims.values().filter(|it| it.role == Role::Propose);
    let mut authors: BTreeSet<&str> = proposing.map(|it| it.holder.as_str()).collect();
    authors.extend(task.proposed.iter().map(String::as_str));
    if authors.is_empty() {
        return true;
    }
    authors.insert(&worker.name);
    let voters = workers.iter().filter(|it| it.verifies && !authors.contains(it.name.as_str()));
    usize::try_from(task.terms.quorum).is_ok_and(|quorum| quorum <= voters.count())
}

/// What those of a name have in common with others.
fn keys_of<'a, 'n>(
    workers: &'a [Worker],
    names: impl Iterator<Item = &'n String>,
) -> BTreeSet<&'a str> {
    let names: BTreeSet<&String> = names.collect();
    let named = workers.iter().filter(|it| names.contains(&it.name));
    named.map(|it| it.independence.as_str()).collect()
}

/// How many different keys there are among all who could verify a candidate, had nobody yet.
fn pool_keys(task: &Task, proposal: &Proposal, workers: &[Worker]) -> u32 {
    let could = |it: &&Worker| {
        it.verifies
            && it.is_ready
            && !proposal.proposers.contains(&it.name)
            && !task.equivocators.contains(&it.name)
    };
    let keys: BTreeSet<&str> =
        workers.iter().filter(could).map(|it| it.independence.as_str()).collect();
    u32::try_from(keys.len()).unwrap_or(u32::MAX)
}
