//! Prepares a job's policy and schema once per round, before any session is asked.

use std::sync::Arc;

use jurat_core::{
    account::caller::Caller,
    canonical::canonical,
    code::ProblemCode,
    id::RoundId,
    policy::{BindError, Evaluation, Policy, PolicyRules},
    reason,
    round::{
        candidate::{Candidate, InlineEvidence},
        job::{Job, JobWork},
    },
    schema::Schema,
};
use jurat_guard::sandbox::Sandbox;
use serde_json::{Map, Value, json};

use super::ask::{judge::JudgeBrief, review::AnswerReview};
use super::{seats::SeatCandidates, semantic::BoundVerifier};
use crate::{Engine, EngineError, executors::pool::PoolView};

/// A prepared policy, and its evaluation of the caller's own candidate.
#[derive(Debug)]
pub(crate) struct RoundChecks {
    /// `None` for a policy that only executors know.
    pub(crate) policy: Option<Arc<Policy>>,
    /// The part of it that needs no judge; a judge is asked only about candidates that pass it.
    pub(crate) own_policy: Option<Arc<Policy>>,
    pub(crate) schema: Schema,
    /// The candidate under validation; delegate and factcheck have none yet.
    pub(crate) candidate: Option<Arc<Candidate>>,
    /// Our own evaluation of that candidate, if the policy needs no judge.
    pub(crate) own_evaluation: Option<Evaluation>,
    /// The question to the judges about the candidate, if they decide.
    pub(crate) judge_brief: Option<Arc<JudgeBrief>>,
    /// How the answers of executors are judged, if a verifier decides them.
    pub(crate) review: Option<AnswerReview>,
}

/// The inputs of a round before it is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundInputs<'a> {
    pub(crate) round: &'a RoundId,
    pub(crate) caller: &'a Caller,
    pub(crate) job: &'a Job,
    pub(crate) view: &'a PoolView,
    pub(crate) verifier: Option<&'a Arc<BoundVerifier>>,
}

impl Engine {
    pub(crate) async fn prepare(
        &self,
        inputs: RoundInputs<'_>,
    ) -> Result<RoundChecks, EngineError> {
        let RoundInputs { round, caller, job, view, verifier } = inputs;
        let bounded = self.inner.bounded.of(caller.account());
        let policy = self.bind_policy(&bounded, job, view).await?;
        let rules = policy.as_ref().map_or(PolicyRules::Jurat, |policy| policy.rules());
        let schema = bounded.schema_under(rules, &job.output_schema).await;
        let schema = schema?;
        let candidate = candidate(round, job).map(Arc::new);
        let (mut judging, mut review) = (None, None);
        match (verifier, &candidate) {
            (Some(bound), Some(candidate)) => {
                let asked = self
                    .judge_brief(bound, &candidate.output)
                    .map_err(EngineError::invalid_parameter)?;
                judging = Some(Arc::new(asked));
            }
            (Some(bound), None) => {
                let estimate = self.review_estimate(bound).await;
                review = Some(AnswerReview::new(Arc::clone(bound), estimate));
            }
            (None, _) => {}
        }
        let ours = own_check(policy.as_ref(), &schema);
        let mut own = None;
        if let (Some(policy), Some(candidate)) = (&ours, &candidate) {
            let policy = Arc::clone(policy);
            let candidate = Arc::clone(candidate);
            let verdict =
                self.check_candidate(caller.account(), policy, candidate, schema.clone()).await;
            let verdict = verdict.map_err(|_| EngineError::CHECKS_BUSY)?;
            // Without a check of our own, nothing would expose a false pass.
            if verdict.reason_codes.contains(&reason::EVALUATION_REFUSED) {
                let detail = format!(
                    "the claim cannot be checked within the work limits: {}",
                    verdict.notes.join("; ")
                );
                return Err(
                    EngineError::refused(ProblemCode::SchemaRefused, detail).at("output_schema")
                );
            }
            own = Some(verdict);
        }
        if own.is_none() && SeatCandidates::of(job) == SeatCandidates::Node {
            let reason = format!(
                "this server cannot decide `{}` alone; it needs an executor",
                job.policy.policy_id
            );
            return Err(EngineError::not_supported("policy.policy_id", &reason));
        }
        Ok(RoundChecks {
            policy,
            own_policy: ours,
            schema,
            candidate,
            own_evaluation: own,
            judge_brief: judging,
            review,
        })
    }

    async fn bind_policy(
        &self,
        bounded: &Sandbox,
        job: &Job,
        view: &PoolView,
    ) -> Result<Option<Arc<Policy>>, EngineError> {
        let binding = &job.policy;
        if Policy::is_builtin(&binding.policy_id) {
            let policy = bounded.policy(binding).await?;
            if policy == Policy::Claim && !matches!(job.work, JobWork::Validate { .. }) {
                let reason =
                    format!("`{}` needs a judge and works with validate only", binding.policy_id);
                return Err(EngineError::not_supported("policy.policy_id", &reason));
            }
            return Ok(Some(Arc::new(policy)));
        }
        let is_declared = view.pool.executors.keys().any(|name| {
            let standing = self.inner.pool.health_of(name);
            let capabilities =
                standing.probe.as_ref().and_then(|probe| probe.capabilities.as_ref().ok());
            capabilities.is_some_and(|known| known.policies.contains(&binding.policy_id))
        });
        match (is_declared, &job.work) {
            (true, JobWork::Validate { .. }) => Ok(None),
            (true, JobWork::Delegate { .. } | JobWork::Factcheck { .. }) => {
                let reason = format!(
                    "`{}` is known to executors only and works with validate only",
                    binding.policy_id
                );
                Err(EngineError::not_supported("policy.policy_id", &reason))
            }
            (false, _) => Err(EngineError::Policy(BindError::Unknown {
                policy_id: binding.policy_id.clone(),
            })),
        }
    }
}

/// The check that needs no judge. A judge may fail a candidate that matches the schema, but never
/// passes one that does not.
fn own_check(policy: Option<&Arc<Policy>>, schema: &Schema) -> Option<Arc<Policy>> {
    match policy {
        Some(policy) if !policy.needs_judge() => Some(Arc::clone(policy)),
        Some(policy) if matches!(**policy, Policy::Semantic(_)) && !schema.is_open() => {
            Some(Arc::new(Policy::SchemaOnly { rules: PolicyRules::Jurat }))
        }
        Some(_) | None => None,
    }
}

/// The candidate of a validate job. The context is sent as marked evidence, with the other members
/// for the executors.
fn candidate(round: &RoundId, job: &Job) -> Option<Candidate> {
    let JobWork::Validate { output, evidence } = &job.work else { return None };
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
    let proposed = job.step.as_ref().and_then(|it| it.candidate.as_ref());
    let relayed = job.relayed.as_ref().and_then(|it| it.candidate.as_ref());
    let (candidate_id, execution_id) = match (proposed, relayed) {
        (Some(it), _) => (it.candidate_id.clone(), it.execution_id.clone()),
        (None, Some(it)) => (it.candidate_id.clone(), it.execution_id.clone()),
        (None, None) => (format!("cand-{round}"), format!("exec-{round}")),
    };
    Some(Candidate { candidate_id, execution_id, output: output.clone(), evidence })
}
