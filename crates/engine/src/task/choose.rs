//! Who proposes and who verifies: distinct, as independent as the panel allows, and never the same
//! for both.

use std::collections::BTreeSet;

use jurat_core::{
    task::{Exhausted, Need, Proposal, Role, Task, needs},
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
    pub kind: WorkerKind,
}

/// Who works. This node comes last, and votes only where others are too few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerKind {
    Executor,
    Node,
    /// This node, where the panel is large enough: it votes when too many of them are gone.
    Spare,
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

/// Who does next what is needed; nobody, when nobody is left or nobody is needed.
///
/// Those who began it before come first, then those who are least like the others. This node comes
/// last.
pub(super) fn choose<'a>(task: &Task, need: &Need, workers: &'a [Worker]) -> Option<Choice<'a>> {
    match need {
        Need::Proposals { without, only, .. } => {
            let used = keys_of(workers, without.iter());
            let free =
                free(workers, without).filter(|it| it.proposes && is_meant(it, only.as_ref()));
            let free = free.filter(|it| leaves_a_quorum(task, it, workers));
            let worker = free.min_by_key(|it| {
                let is_begun = task.resumable(Role::Propose, &it.name, None).is_some();
                (!is_begun, used.contains(it.independence.as_str()))
            })?;
            let begun = task.resumable(Role::Propose, &worker.name, None).map(str::to_owned);
            Some(Choice { worker, role: Role::Propose, candidate: None, pool_keys: 0, begun })
        }
        Need::Verdicts { candidate, without, keys, count, only } => {
            let proposal = task.proposal(candidate)?;
            let has_spare = needs_spare(*count, without, workers);
            let may = |it: &&Worker| it.verifies && (has_spare || it.kind != WorkerKind::Spare);
            let authors = keys_of(workers, proposal.proposers.iter());
            let begun = |it: &Worker| {
                task.resumable(Role::Verify, &it.name, Some(candidate)).map(str::to_owned)
            };
            let free = free(workers, without).filter(may).filter(|it| is_meant(it, only.as_ref()));
            let worker = free.min_by_key(|it| {
                let is_like_others = keys.contains(&it.independence);
                let is_like_author = authors.contains(it.independence.as_str());
                (it.kind, begun(it).is_none(), is_like_others, is_like_author)
            })?;
            Some(Choice {
                worker,
                role: Role::Verify,
                candidate: Some(candidate.clone()),
                pool_keys: pool_keys(task, proposal, workers.iter().filter(may)),
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

/// Whether nobody else alone may do it.
fn is_meant(worker: &Worker, only: Option<&Vec<String>>) -> bool {
    only.is_none_or(|only| only.contains(&worker.name))
}

/// Whether fewer can be asked for a verdict now than are still needed, but for this node.
fn needs_spare(count: u32, without: &[String], workers: &[Worker]) -> bool {
    let others = free(workers, without).filter(|it| it.verifies && it.kind != WorkerKind::Spare);
    others.count() < usize::try_from(count).unwrap_or(usize::MAX)
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
    let is_voter = |it: &&Worker| {
        it.verifies && it.kind != WorkerKind::Spare && !authors.contains(it.name.as_str())
    };
    let voters = workers.iter().filter(is_voter);
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
fn pool_keys<'a>(
    task: &Task,
    proposal: &Proposal,
    workers: impl Iterator<Item = &'a Worker>,
) -> u32 {
    let could = |it: &&Worker| {
        it.is_ready
            && !proposal.proposers.contains(&it.name)
            && !task.equivocators.contains(&it.name)
    };
    let keys: BTreeSet<&str> = workers.filter(could).map(|it| it.independence.as_str()).collect();
    u32::try_from(keys.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use jurat_core::task::{Claim, Command, Event, Weigher, decide};
    use jurat_wire::executor::TaskContract;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn worker(name: &str, independence: &str) -> Worker {
        Worker {
            name: name.to_owned(),
            independence: independence.to_owned(),
            proposes: true,
            verifies: true,
            is_ready: true,
            kind: WorkerKind::Executor,
        }
    }

    /// A task with one candidate, which `a` proposed.
    fn proposed() -> Task {
        let mut contract = TaskContract::sample("t", 1_000);
        contract.assignment.verify.max_verifiers = 3;
        contract.acceptance.quorum_threshold = 2;
        contract.assignment.claim.max_concurrency.verify = 3;
        let mut task = Task::created("t", contract.terms(), NOW);
        let claim = claim(Role::Propose, "a", None);
        command(&mut task, &Command::Claim { token: 1, claim });
        let (candidate, digest) = ("c".to_owned(), "sha256:01".to_owned());
        let (evidence, round_id) = (Vec::new(), String::new());
        let propose = Command::Propose { token: 1, candidate, digest, evidence, round_id };
        command(&mut task, &propose);
        task
    }

    fn command(task: &mut Task, command: &Command) -> Vec<Event> {
        let events = decide(task, command, NOW, &Weigher::new()).unwrap();
        for event in &events {
            task.apply(event, NOW);
        }
        events
    }

    fn claim(role: Role, holder: &str, candidate: Option<&str>) -> Claim {
        Claim {
            role,
            holder: holder.to_owned(),
            node: "n".to_owned(),
            independence: format!("model of {holder}"),
            pool_keys: 3,
            execution_id: format!("exec of {holder}"),
            candidate: candidate.map(str::to_owned),
            until: NOW.plus_millis(1_000),
        }
    }

    fn chosen(task: &Task, workers: &[Worker]) -> Option<String> {
        let need = needs(task, NOW).into_iter().next()?;
        choose(task, &need, workers).map(|choice| choice.worker.name.clone())
    }

    #[test]
    fn whoever_proposed_does_not_verify() {
        let task = proposed();
        assert_eq!(chosen(&task, &[worker("a", "x")]), None);
        assert!(exhausted(&task, NOW, &[worker("a", "x")]).verifiers);
        assert_eq!(chosen(&task, &[worker("a", "x"), worker("b", "x")]), Some("b".to_owned()));
    }

    #[test]
    fn others_than_the_author_and_each_other_come_first() {
        let mut task = proposed();
        let like_author = [worker("a", "x"), worker("b", "x"), worker("c", "y"), worker("d", "z")];
        assert_eq!(chosen(&task, &like_author), Some("c".to_owned()));
        let mut taken = claim(Role::Verify, "c", Some("c"));
        "y".clone_into(&mut taken.independence);
        command(&mut task, &Command::Claim { token: 2, claim: taken });
        let like_voter = [worker("a", "x"), worker("b", "y"), worker("c", "y"), worker("d", "z")];
        assert_eq!(chosen(&task, &like_voter), Some("d".to_owned()));
    }

    #[test]
    fn those_who_rest_are_asked_by_nobody_and_the_node_comes_last() {
        let task = proposed();
        let resting = Worker { is_ready: false, ..worker("b", "y") };
        let node = Worker { kind: WorkerKind::Node, proposes: false, ..worker("node", "n") };
        assert_eq!(chosen(&task, &[node.clone(), resting.clone()]), Some("node".to_owned()));
        let workers = [node, resting, worker("c", "x")];
        assert_eq!(chosen(&task, &workers), Some("c".to_owned()));
    }

    #[test]
    fn a_spare_node_votes_only_when_fewer_are_left_than_are_needed() {
        let task = proposed();
        let spare = Worker { kind: WorkerKind::Spare, proposes: false, ..worker("node", "n") };
        let (b, c) = (worker("b", "y"), worker("c", "y"));
        let need = needs(&task, NOW).into_iter().next().unwrap();
        let enough = [spare.clone(), b.clone(), c];
        let choice = choose(&task, &need, &enough).unwrap();
        // Its key is none that the others could have had.
        assert_eq!((choice.worker.name.as_str(), choice.pool_keys), ("b", 1));
        let too_few = [spare.clone(), b];
        let choice = choose(&task, &need, &too_few).unwrap();
        assert_eq!((choice.worker.name.as_str(), choice.pool_keys), ("b", 2));
        assert_eq!(chosen(&task, std::slice::from_ref(&spare)), Some("node".to_owned()));
        assert!(!exhausted(&task, NOW, &[spare]).verifiers);
    }

    #[test]
    fn what_was_begun_is_asked_for_again_under_its_name() {
        let mut task = proposed();
        let claim = claim(Role::Verify, "d", Some("c"));
        command(&mut task, &Command::Claim { token: 2, claim });
        let reason = jurat_core::task::Release::GivenUp { detail: "the node ends".to_owned() };
        command(&mut task, &Command::Release { token: 2, reason });
        let workers = [worker("b", "y"), worker("d", "z")];
        let need = needs(&task, NOW).into_iter().next().unwrap();
        let choice = choose(&task, &need, &workers).unwrap();
        assert_eq!(
            (choice.worker.name.as_str(), choice.begun.as_deref()),
            ("d", Some("exec of d"))
        );
    }
}
