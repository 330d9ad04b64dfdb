//! Prepares a job's policy and schema once per round, before anyone is asked.

use std::sync::Arc;

use jurat_core::{
    candidate::{Candidate, InlineEvidence},
    canonical::canonical,
    id::{AccountId, RoundId},
    job::{Job, Work},
    policy::{BindError, Evaluation, Policy, Rules},
    reason,
    schema::Schema,
};
use jurat_guard::bounded::{Bounded, NotDone, RefusedPolicy, RefusedSchema};
use serde_json::{Map, Value, json};

use super::{judge::Judging, review::Review};
use crate::{Engine, EngineError, places::Takers, pool::PoolView, semantic::Bound};

/// A policy that can be evaluated, and what it says of the caller's own candidate.
#[derive(Debug)]
pub(crate) struct Checks {
    /// `None` for a policy that only executors know.
    pub(crate) policy: Option<Arc<Policy>>,
    /// What of it needs nobody's judgement; a judge is asked only about what passes that.
    pub(crate) ours: Option<Arc<Policy>>,
    pub(crate) schema: Schema,
    /// The candidate under validation; delegate and factcheck have none yet.
    pub(crate) candidate: Option<Arc<Candidate>>,
    /// Our own evaluation of that candidate, where the policy needs no judge.
    pub(crate) own: Option<Evaluation>,
    /// What the judges of a verifier are asked about the candidate, where they decide.
    pub(crate) judging: Option<Arc<Judging>>,
    /// How the answers of executors are judged, where a verifier decides those.
    pub(crate) review: Option<Review>,
}

impl Engine {
    pub(crate) async fn prepare(
        &self,
        (round, account): (&RoundId, &AccountId),
        job: &Job,
        view: &PoolView,
        verifier: Option<&Arc<Bound>>,
    ) -> Result<Checks, EngineError> {
        let bounded = self.inner.bounded.of(account);
        let policy = self.bind(&bounded, job, view).await?;
        let rules = policy.as_ref().map_or(Rules::Jurat, |policy| policy.rules());
        let schema = bounded.schema_under(rules, &job.output_schema).await;
        let schema = schema.map_err(|error| match error {
            RefusedSchema::Schema(error) => EngineError::Schema(error),
            RefusedSchema::Busy => EngineError::ChecksBusy,
            RefusedSchema::Crashed => EngineError::Bug("a schema could not be compiled"),
        })?;
        let candidate = candidate(round, job).map(Arc::new);
        let (mut judging, mut review) = (None, None);
        match (verifier, &candidate) {
            (Some(bound), Some(candidate)) => {
                let asked = self.judging(bound, &candidate.output).map_err(EngineError::unfit)?;
                judging = Some(Arc::new(asked));
            }
            (Some(bound), None) => {
                let estimate = self.judgment_room(bound).await;
                review = Some(Review::new(Arc::clone(bound), estimate));
            }
            (None, _) => {}
        }
        let ours = own_check(policy.as_ref(), &schema);
        let mut own = None;
        if let (Some(policy), Some(candidate)) = (&ours, &candidate) {
            let policy = Arc::clone(policy);
            let candidate = Arc::clone(candidate);
            let verdict = self.checked(account, policy, candidate, schema.clone()).await;
            let verdict = verdict.map_err(|_| EngineError::ChecksBusy)?;
            // Without a check of our own nothing would keep a false pass out.
            if verdict.reason_codes.contains(&reason::EVALUATION_REFUSED) {
                return Err(EngineError::TooMuchWork(verdict.notes.join("; ")));
            }
            own = Some(verdict);
        }
        if own.is_none() && Takers::of(job) == Takers::Node {
            let reason = format!(
                "this server cannot decide `{}` alone; it needs an executor",
                job.policy.policy_id
            );
            return Err(EngineError::NotSupported { field: "policy.policy_id", reason });
        }
        Ok(Checks { policy, ours, schema, candidate, own, judging, review })
    }

    async fn bind(
        &self,
        bounded: &Bounded,
        job: &Job,
        view: &PoolView,
    ) -> Result<Option<Arc<Policy>>, EngineError> {
        let binding = &job.policy;
        if Policy::is_known(&binding.policy_id) {
            let policy = bounded.policy(binding).await.map_err(|error| match error {
                RefusedPolicy::Policy(error) => EngineError::Policy(error),
                RefusedPolicy::NotDone(NotDone::Busy) => EngineError::ChecksBusy,
                RefusedPolicy::NotDone(NotDone::Crashed) => {
                    EngineError::Bug("a policy could not be compiled")
                }
            })?;
            if policy == Policy::Claim && !matches!(job.work, Work::Validate { .. }) {
                let reason =
                    format!("`{}` needs a judge and works with validate only", binding.policy_id);
                return Err(EngineError::NotSupported { field: "policy.policy_id", reason });
            }
            return Ok(Some(Arc::new(policy)));
        }
        let is_declared = view.pool.executors.keys().any(|name| {
            let standing = self.inner.pool.standing(name);
            let capabilities =
                standing.probe.as_ref().and_then(|probe| probe.capabilities.as_ref().ok());
            capabilities.is_some_and(|known| known.policies.contains(&binding.policy_id))
        });
        match (is_declared, &job.work) {
            (true, Work::Validate { .. }) => Ok(None),
            (true, Work::Delegate { .. } | Work::Factcheck { .. }) => {
                let reason = format!(
                    "`{}` is known to executors only and works with validate only",
                    binding.policy_id
                );
                Err(EngineError::NotSupported { field: "policy.policy_id", reason })
            }
            (false, _) => Err(EngineError::Policy(BindError::Unknown {
                policy_id: binding.policy_id.clone(),
            })),
        }
    }
}

/// What we can check of a candidate without anybody's judgement. A judge may fail what matches the
/// schema, and never passes what does not.
fn own_check(policy: Option<&Arc<Policy>>, schema: &Schema) -> Option<Arc<Policy>> {
    match policy {
        Some(policy) if !policy.needs_judge() => Some(Arc::clone(policy)),
        Some(policy) if matches!(**policy, Policy::Semantic(_)) && !schema.is_open() => {
            Some(Arc::new(Policy::SchemaOnly { rules: Rules::Jurat }))
        }
        Some(_) | None => None,
    }
}

/// The candidate of a validate job. Context travels as evidence that is marked as such, with what
/// else the caller says to the executors.
fn candidate(round: &RoundId, job: &Job) -> Option<Candidate> {
    let Work::Validate { output, evidence } = &job.work else { return None };
    let mut evidence = evidence.clone();
    let context = job.context.iter().map(|context| ("context".to_owned(), context.clone()));
    let mut said: Map<String, Value> = job.passed_on.clone().into_iter().chain(context).collect();
    if !said.is_empty() {
        said.insert("kind".to_owned(), json!("context"));
        evidence.inline.push(InlineEvidence {
            mime: "application/json".to_owned(),
            content: String::from_utf8_lossy(&canonical(&Value::Object(said))).into_owned(),
        });
    }
    let (candidate_id, execution_id) = match job.step.as_ref().and_then(|it| it.candidate.as_ref())
    {
        Some(proposed) => (proposed.candidate_id.clone(), proposed.execution_id.clone()),
        None => (format!("cand-{round}"), format!("exec-{round}")),
    };
    Some(Candidate { candidate_id, execution_id, output: output.clone(), evidence })
}
