//! One call of a worker, for a recorded lease.

use std::time::Duration;

use jurat_core::{
    round::candidate::{ArtifactRef, Candidate},
    task::{Proposal, TaskKey, TaskLease, TaskRole},
};

use super::worker_answer::WorkerAnswer;
use crate::{
    TaskCallFailure,
    tasks::{
        DriverContext, ProposeOrder, TaskSnapshot, TaskStorePort, VoteOrder, WorkerFailure,
        WorkerPort,
    },
};

/// How many times, and at which interval, a candidate is read before a voter is asked.
const CANDIDATE_TRIES: u32 = 5;
const CANDIDATE_PAUSE: Duration = Duration::from_millis(50);

/// Makes the call that a lease is for.
pub(crate) async fn call_worker<D: TaskStorePort, H: WorkerPort>(
    driver: &DriverContext<'_, D, H>,
    key: &TaskKey,
    filed: TaskSnapshot,
    claim: &TaskLease,
    within: Duration,
) -> WorkerAnswer {
    let (key, execution_id) = (key.clone(), claim.execution_id.clone());
    if claim.role == TaskRole::Propose {
        let executor = claim.holder.clone();
        let order = ProposeOrder { key, snapshot: filed, executor, execution_id, within };
        return match driver.workers.propose(order).await {
            Ok(made) => WorkerAnswer::Candidate(Box::new(made)),
            Err(failure) => WorkerAnswer::Nothing(failure),
        };
    }
    let id = claim.candidate.clone().unwrap_or_default();
    let finding = find_candidate(driver.store, &key, filed.task.proposal(&id));
    let Some(candidate) = finding.await else {
        let detail = "the candidate could not be read".to_owned();
        let code = TaskCallFailure::CandidateUnreadable;
        return WorkerAnswer::Nothing(WorkerFailure { code, detail });
    };
    let verifier = claim.holder.clone();
    let order =
        VoteOrder { key, snapshot: filed, voter: verifier, execution_id, candidate, within };
    match driver.workers.vote(order).await {
        Ok(verdict) => WorkerAnswer::Verdict(Box::new(verdict)),
        Err(failure) => WorkerAnswer::Nothing(failure),
    }
}

/// Repeats the read if the store does not answer, since the lease is paid for.
async fn find_candidate(
    desk: &impl TaskStorePort,
    key: &TaskKey,
    proposal: Option<&Proposal>,
) -> Option<Candidate> {
    let proposal = proposal?;
    let mut pause = tokio::time::interval(CANDIDATE_PAUSE);
    for _ in 0..CANDIDATE_TRIES {
        pause.tick().await;
        let Ok(found) = desk.candidate(key, &proposal.id).await else { continue };
        let mut candidate = found?;
        if has_all(&candidate, proposal) {
            return Some(candidate);
        }
        if let Ok(references) = desk.references(key, &proposal.digest).await {
            refer_to_all(&mut candidate, proposal, references);
            return Some(candidate);
        }
    }
    None
}

/// Whether it carries all references that must be available before it can be final.
fn has_all(candidate: &Candidate, proposal: &Proposal) -> bool {
    let refs = &candidate.evidence.refs;
    proposal.evidence.iter().all(|digest| refs.iter().any(|it| it.digest == *digest))
}

/// Adds the references of the others who proposed it. Those of earlier epochs are left out.
fn refer_to_all(candidate: &mut Candidate, proposal: &Proposal, references: Vec<ArtifactRef>) {
    let refs = &mut candidate.evidence.refs;
    for reference in references {
        let is_meant = proposal.evidence.contains(&reference.digest);
        if is_meant && refs.iter().all(|it| it.digest != reference.digest) {
            refs.push(reference);
        }
    }
}
