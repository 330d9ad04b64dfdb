//! Builds the recorded result of an agent run that has ended.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    AgentRun, Bucket, BucketName, BucketOutcome, StepStatus, UnresolvedCause, ValueCandidate,
};

/// Counts steps by status.
pub fn counts(statuses: impl IntoIterator<Item = StepStatus>) -> BTreeMap<StepStatus, u32> {
    let mut counts: BTreeMap<StepStatus, u32> =
        StepStatus::ALL.iter().map(|status| (*status, 0)).collect();
    for status in statuses {
        *counts.entry(status).or_default() += 1;
    }
    counts
}

/// The result of a run that has ended.
pub(super) fn result(run: &AgentRun, buckets: &[Bucket]) -> Value {
    let counts = counts(run.steps.iter().map(|step| step.status));
    let counts: Map<String, Value> = counts
        .into_iter()
        .map(|(status, count)| (status.as_str().to_ascii_lowercase(), count.into()))
        .collect();
    json!({
        "run_id": run.spec.run_id,
        "status": run.status.as_str(),
        "counts": counts,
        "aggregation": aggregation(run, buckets),
    })
}

fn aggregation(run: &AgentRun, buckets: &[Bucket]) -> Value {
    let bucket = |name: BucketName| buckets.iter().find(|bucket| bucket.name == name);
    let value = |name: BucketName| {
        bucket(name).and_then(|bucket| bucket.outcome.value()).cloned().unwrap_or_default()
    };
    let votes = |name: BucketName| {
        let candidates = bucket(name).map_or(&[][..], |bucket| &bucket.candidates);
        let votes = candidates.iter().map(|it| (text(&it.value), it.agents.len().into()));
        Value::Object(votes.collect())
    };
    json!({
        "mode": run.spec.aggregation.mode,
        "final_decision": value(BucketName::Decision),
        "final_answer": value(BucketName::Answer),
        "decision_votes": votes(BucketName::Decision),
        "answer_votes": votes(BucketName::Answer),
        "buckets": buckets.iter().map(bucket_document).collect::<Vec<_>>(),
        "tie_policy": tie_policy(run, buckets),
        "steps": steps(run),
    })
}

/// A value as the name of a JSON member.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn bucket_document(bucket: &Bucket) -> Value {
    let candidate = |it: &ValueCandidate| json!({ "value": it.value, "agents": it.agents, "votes": it.agents.len(), "weight": it.weight() });
    json!({
        "name": bucket.name.as_str(),
        "value": bucket.outcome.value(),
        "decided_by": decided_by(bucket),
        "unresolved": unresolved(bucket).map(UnresolvedCause::as_str),
        "candidates": bucket.candidates.iter().map(candidate).collect::<Vec<_>>(),
    })
}

const fn decided_by(bucket: &Bucket) -> Option<&'static str> {
    match bucket.outcome {
        BucketOutcome::Value { decided_by, .. } => decided_by,
        BucketOutcome::None(_) | BucketOutcome::Reexplore(_) => None,
    }
}

const fn unresolved(bucket: &Bucket) -> Option<UnresolvedCause> {
    match bucket.outcome {
        BucketOutcome::Value { .. } => None,
        BucketOutcome::None(why) | BucketOutcome::Reexplore(why) => Some(why),
    }
}

fn tie_policy(run: &AgentRun, buckets: &[Bucket]) -> Value {
    let of = |name: BucketName| {
        let bucket = buckets.iter().find(|bucket| bucket.name == name);
        bucket.and_then(decided_by)
    };
    let chain: Vec<&str> = run.spec.aggregation.tie.chain.iter().map(|it| it.as_str()).collect();
    json!({
        "chain": chain,
        "decision_decided_by": of(BucketName::Decision),
        "answer_decided_by": of(BucketName::Answer),
        "iterations": run.iteration,
    })
}

fn steps(run: &AgentRun) -> Vec<Value> {
    let step = |(agent, step): (&super::AgentSpec, &super::AgentStep)| {
        let conclusion = step.conclusion.as_ref();
        json!({
            "agent_id": agent.agent_id,
            "executor": agent.executor,
            "profile": agent.profile,
            "weight": agent.weight,
            "priority": agent.priority,
            "status": step.status.as_str(),
            "iteration": run.iteration,
            "attempt": step.attempt,
            "task_id": run.task_id(&step.agent_id, step.attempt),
            "candidate_id": conclusion.map(|it| it.candidate_id.as_str()),
            "candidate_output": conclusion.map(|it| &it.output),
            "error": step.error,
        })
    };
    run.spec.agents.iter().zip(&run.steps).map(step).collect()
}
