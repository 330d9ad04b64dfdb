//! Chooses proposers and voters: distinct, as independent as the roster allows, and never the same
//! for both.

use std::collections::BTreeSet;

use jurat_core::{
    task::{ExhaustedRoles, Proposal, Task, TaskNeed, TaskRole, needs},
    time::Timestamp,
};

/// A worker on the roster of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskWorker {
    pub name: String,
    /// Its independence key, such as its model.
    pub independence: String,
    pub proposes: bool,
    pub votes: bool,
    /// Whether it can be asked now: it is healthy and declares what the task needs.
    pub is_ready: bool,
    pub kind: TaskWorkerKind,
}

/// The kind of a worker. This node comes last, and votes only if there are too few others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskWorkerKind {
    Executor,
    Node,
    /// This node, if the roster is large enough: it votes if too many others are gone.
    Spare,
}

/// Work for a chosen worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WorkerChoice<'a> {
    pub(crate) worker: &'a TaskWorker,
    pub(crate) role: TaskRole,
    pub(crate) candidate: Option<String>,
    /// How many independence keys exist among all who could do it.
    pub(crate) pool_keys: u32,
    /// The execution id under which it was started before.
    pub(crate) earlier_execution: Option<String>,
}

/// The next worker for some work; `None` if nobody is left or needed.
///
/// Workers that started it before come first, then those that share least with the others. This
/// node comes last.
pub(crate) fn choose_worker<'a>(
    task: &Task,
    need: &TaskNeed,
    workers: &'a [TaskWorker],
) -> Option<WorkerChoice<'a>> {
    match need {
        TaskNeed::Proposals { without, only, .. } => {
            let used = keys_of(workers, without.iter());
            let free = available(workers, without)
                .filter(|it| it.proposes && is_eligible(it, only.as_ref()));
            let free = free.filter(|it| leaves_a_quorum(task, it, workers));
            let worker = free.min_by_key(|it| {
                let is_begun = task.resumable(TaskRole::Propose, &it.name, None).is_some();
                (!is_begun, used.contains(it.independence.as_str()))
            })?;
            let begun = task.resumable(TaskRole::Propose, &worker.name, None).map(str::to_owned);
            Some(WorkerChoice {
                worker,
                role: TaskRole::Propose,
                candidate: None,
                pool_keys: 0,
                earlier_execution: begun,
            })
        }
        TaskNeed::Verdicts { candidate, without, keys, count, only } => {
            let proposal = task.proposal(candidate)?;
            let has_spare = needs_spare(*count, without, workers);
            let may =
                |it: &&TaskWorker| it.votes && (has_spare || it.kind != TaskWorkerKind::Spare);
            let authors = keys_of(workers, proposal.proposers.iter());
            let begun = |it: &TaskWorker| {
                task.resumable(TaskRole::Verify, &it.name, Some(candidate)).map(str::to_owned)
            };
            let free =
                available(workers, without).filter(may).filter(|it| is_eligible(it, only.as_ref()));
            let worker = free.min_by_key(|it| {
                let is_like_others = keys.contains(&it.independence);
                let is_like_author = authors.contains(it.independence.as_str());
                (it.kind, begun(it).is_none(), is_like_others, is_like_author)
            })?;
            Some(WorkerChoice {
                worker,
                role: TaskRole::Verify,
                candidate: Some(candidate.clone()),
                pool_keys: pool_keys(task, proposal, workers.iter().filter(may)),
                earlier_execution: begun(worker),
            })
        }
        TaskNeed::Reveals { .. } | TaskNeed::Final { .. } => None,
    }
}

/// The roles that nobody is left for. Workers that cannot be asked now count as gone: a retry after
/// a pause finds them healthy, or ends.
pub(crate) fn exhausted(task: &Task, now: Timestamp, workers: &[TaskWorker]) -> ExhaustedRoles {
    let mut exhausted = ExhaustedRoles::default();
    for need in needs(task, now) {
        let is_nobody = choose_worker(task, &need, workers).is_none();
        match need {
            TaskNeed::Proposals { .. } => exhausted.proposers = is_nobody,
            TaskNeed::Verdicts { .. } => exhausted.verifiers = is_nobody,
            TaskNeed::Reveals { .. } | TaskNeed::Final { .. } => {}
        }
    }
    exhausted
}

fn available<'a>(
    workers: &'a [TaskWorker],
    without: &[String],
) -> impl Iterator<Item = &'a TaskWorker> {
    workers.iter().filter(|it| it.is_ready && !without.contains(&it.name))
}

/// Whether the work is not reserved for others.
fn is_eligible(worker: &TaskWorker, only: Option<&Vec<String>>) -> bool {
    only.is_none_or(|only| only.contains(&worker.name))
}

/// Whether fewer voters than needed can be asked now, besides this node.
fn needs_spare(count: u32, without: &[String], workers: &[TaskWorker]) -> bool {
    let others =
        available(workers, without).filter(|it| it.votes && it.kind != TaskWorkerKind::Spare);
    others.count() < usize::try_from(count).unwrap_or(usize::MAX)
}

/// Whether enough voters remain if this one proposes as well, and all propose the same. The first
/// may always propose: a roster that is too small for that is not accepted.
fn leaves_a_quorum(task: &Task, worker: &TaskWorker, workers: &[TaskWorker]) -> bool {
    let proposing = task.claims.values().filter(|it| it.role == TaskRole::Propose);
    let mut authors: BTreeSet<&str> = proposing.map(|it| it.holder.as_str()).collect();
    authors.extend(task.proposed.iter().map(String::as_str));
    if authors.is_empty() {
        return true;
    }
    authors.insert(&worker.name);
    let is_voter = |it: &&TaskWorker| {
        it.votes && it.kind != TaskWorkerKind::Spare && !authors.contains(it.name.as_str())
    };
    let voters = workers.iter().filter(is_voter);
    usize::try_from(task.terms.quorum).is_ok_and(|quorum| quorum <= voters.count())
}

/// The independence keys of the named workers.
fn keys_of<'a, 'n>(
    workers: &'a [TaskWorker],
    names: impl Iterator<Item = &'n String>,
) -> BTreeSet<&'a str> {
    let names: BTreeSet<&String> = names.collect();
    let named = workers.iter().filter(|it| names.contains(&it.name));
    named.map(|it| it.independence.as_str()).collect()
}

/// How many independence keys exist among all who could vote on a candidate, had nobody voted yet.
fn pool_keys<'a>(
    task: &Task,
    proposal: &Proposal,
    workers: impl Iterator<Item = &'a TaskWorker>,
) -> u32 {
    let could = |it: &&TaskWorker| {
        it.is_ready
            && !proposal.proposers.contains(&it.name)
            && !task.equivocators.contains(&it.name)
    };
    let keys: BTreeSet<&str> = workers.filter(could).map(|it| it.independence.as_str()).collect();
    u32::try_from(keys.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use jurat_core::task::{TaskCommand, TaskEvent, TaskLease, VoterReliability, decide};
    use jurat_wire::executor::TaskContract;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn worker(name: &str, independence: &str) -> TaskWorker {
        TaskWorker {
            name: name.to_owned(),
            independence: independence.to_owned(),
            proposes: true,
            votes: true,
            is_ready: true,
            kind: TaskWorkerKind::Executor,
        }
    }

    /// A task with one candidate, which `a` proposed.
    fn proposed() -> Task {
        let mut contract = TaskContract::sample("t", 1_000);
        contract.assignment.verify.max_verifiers = 3;
        contract.acceptance.quorum_threshold = 2;
        contract.assignment.claim.max_concurrency.verify = 3;
        let mut task = Task::created("t", contract.terms(), NOW);
        let claim = claim(TaskRole::Propose, "a", None);
        command(&mut task, &TaskCommand::TakeLease { token: 1, claim });
        let (candidate, digest) = ("c".to_owned(), "sha256:01".to_owned());
        let (evidence, round_id) = (Vec::new(), String::new());
        let propose = TaskCommand::Propose { token: 1, candidate, digest, evidence, round_id };
        command(&mut task, &propose);
        task
    }

    fn command(task: &mut Task, command: &TaskCommand) -> Vec<TaskEvent> {
        let events = decide(task, command, NOW, &VoterReliability::new()).unwrap();
        for event in &events {
            task.apply(event, NOW);
        }
        events
    }

    fn claim(role: TaskRole, holder: &str, candidate: Option<&str>) -> TaskLease {
        TaskLease {
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

    fn chosen(task: &Task, workers: &[TaskWorker]) -> Option<String> {
        let need = needs(task, NOW).into_iter().next()?;
        choose_worker(task, &need, workers).map(|choice| choice.worker.name.clone())
    }

    #[test]
    fn a_proposer_does_not_vote() {
        let task = proposed();
        assert_eq!(chosen(&task, &[worker("a", "x")]), None);
        assert!(exhausted(&task, NOW, &[worker("a", "x")]).verifiers);
        assert_eq!(chosen(&task, &[worker("a", "x"), worker("b", "x")]), Some("b".to_owned()));
    }

    #[test]
    fn independent_voters_come_first() {
        let mut task = proposed();
        let like_author = [worker("a", "x"), worker("b", "x"), worker("c", "y"), worker("d", "z")];
        assert_eq!(chosen(&task, &like_author), Some("c".to_owned()));
        let mut taken = claim(TaskRole::Verify, "c", Some("c"));
        "y".clone_into(&mut taken.independence);
        command(&mut task, &TaskCommand::TakeLease { token: 2, claim: taken });
        let like_voter = [worker("a", "x"), worker("b", "y"), worker("c", "y"), worker("d", "z")];
        assert_eq!(chosen(&task, &like_voter), Some("d".to_owned()));
    }

    #[test]
    fn paused_workers_are_not_asked_and_the_node_comes_last() {
        let task = proposed();
        let resting = TaskWorker { is_ready: false, ..worker("b", "y") };
        let node =
            TaskWorker { kind: TaskWorkerKind::Node, proposes: false, ..worker("node", "n") };
        assert_eq!(chosen(&task, &[node.clone(), resting.clone()]), Some("node".to_owned()));
        let workers = [node, resting, worker("c", "x")];
        assert_eq!(chosen(&task, &workers), Some("c".to_owned()));
    }

    #[test]
    fn a_spare_node_votes_only_if_too_few_are_left() {
        let task = proposed();
        let spare =
            TaskWorker { kind: TaskWorkerKind::Spare, proposes: false, ..worker("node", "n") };
        let (b, c) = (worker("b", "y"), worker("c", "y"));
        let need = needs(&task, NOW).into_iter().next().unwrap();
        let enough = [spare.clone(), b.clone(), c];
        let choice = choose_worker(&task, &need, &enough).unwrap();
        // Its key is not one that the others could have had.
        assert_eq!((choice.worker.name.as_str(), choice.pool_keys), ("b", 1));
        let too_few = [spare.clone(), b];
        let choice = choose_worker(&task, &need, &too_few).unwrap();
        assert_eq!((choice.worker.name.as_str(), choice.pool_keys), ("b", 2));
        assert_eq!(chosen(&task, std::slice::from_ref(&spare)), Some("node".to_owned()));
        assert!(!exhausted(&task, NOW, &[spare]).verifiers);
    }

    #[test]
    fn interrupted_work_resumes_under_its_execution_id() {
        let mut task = proposed();
        let claim = claim(TaskRole::Verify, "d", Some("c"));
        command(&mut task, &TaskCommand::TakeLease { token: 2, claim });
        let reason = jurat_core::task::LeaseRelease::GivenUp { detail: "the node ends".to_owned() };
        command(&mut task, &TaskCommand::Release { token: 2, reason });
        let workers = [worker("b", "y"), worker("d", "z")];
        let need = needs(&task, NOW).into_iter().next().unwrap();
        let choice = choose_worker(&task, &need, &workers).unwrap();
        assert_eq!(
            (choice.worker.name.as_str(), choice.earlier_execution.as_deref()),
            ("d", Some("exec of d"))
        );
    }
}
