//! Converts between a run and its stored form.

use std::collections::BTreeSet;

use jurat_core::agent_run::{
    AgentRun, AgentRunSpec, AgentStep, BucketName, ExploreProgress, ReexploreSignal,
    UnresolvedCause,
};
use jurat_store::{AgentRunRecord, AgentRunState};
use serde_json::{Value, json};

use crate::EngineError;

pub(super) fn read_stored(stored: AgentRunRecord) -> Result<AgentRun, EngineError> {
    let spec = AgentRunSpec::from_document(&stored.spec).map_err(|error| {
        tracing::error!(run.id = stored.key.id, error = %error, "could not read the spec of a run");
        EngineError::Bug("the spec of a run does not read back")
    })?;
    let AgentRunRecord { state, steps, created_at, .. } = stored;
    let (explored, signal) = read_explored(&state.explored, state.iteration)
        .ok_or(EngineError::Bug("what a run has explored does not read back"))?;
    Ok(AgentRun {
        spec,
        status: state.status,
        iteration: state.iteration,
        explored,
        signal,
        steps,
        result: state.result,
        error: state.error,
        created_at,
        updated_at: state.updated_at,
        started_at: state.started_at,
        finished_at: state.finished_at,
    })
}

pub(super) fn stored_state(run: &AgentRun) -> AgentRunState {
    AgentRunState {
        status: run.status,
        iteration: run.iteration,
        explored: explored(run),
        result: run.result.clone(),
        error: run.error.clone(),
        updated_at: run.updated_at,
        started_at: run.started_at,
        finished_at: run.finished_at,
    }
}

/// The steps that changed.
pub(super) fn changed_steps(before: &AgentRun, after: &AgentRun) -> Vec<AgentStep> {
    let pairs = before.steps.iter().zip(&after.steps);
    pairs.filter(|(old, new)| old != new).map(|(_, new)| new.clone()).collect()
}

fn explored(run: &AgentRun) -> Value {
    let signal = run.signal.as_ref().map(|signal| {
        let unresolved: Vec<(&str, &str)> =
            signal.unresolved.iter().map(|(name, why)| (name.as_str(), why.as_str())).collect();
        json!({ "unresolved": unresolved, "require_new_evidence": signal.require_new_evidence })
    });
    json!({
        "iterations": run.explored.iterations,
        "without_new_evidence": run.explored.without_new_evidence,
        "evidence": run.explored.evidence,
        "signal": signal,
    })
}

fn read_explored(
    document: &Value,
    iteration: u32,
) -> Option<(ExploreProgress, Option<ReexploreSignal>)> {
    let count = |name: &str| u32::try_from(document.get(name)?.as_u64()?).ok();
    let evidence = document.get("evidence")?.as_array()?.iter();
    let evidence: Option<BTreeSet<String>> =
        evidence.map(|digest| digest.as_str().map(str::to_owned)).collect();
    let explored = ExploreProgress {
        iterations: count("iterations")?,
        without_new_evidence: count("without_new_evidence")?,
        evidence: evidence?,
    };
    let signal = match document.get("signal") {
        None | Some(Value::Null) => None,
        Some(signal) => Some(read_signal(signal, iteration)?),
    };
    Some((explored, signal))
}

fn read_signal(document: &Value, iteration: u32) -> Option<ReexploreSignal> {
    let pair = |pair: &Value| {
        let name: BucketName = pair.get(0)?.as_str()?.parse().ok()?;
        let why: UnresolvedCause = pair.get(1)?.as_str()?.parse().ok()?;
        Some((name, why))
    };
    let unresolved: Option<Vec<_>> =
        document.get("unresolved")?.as_array()?.iter().map(pair).collect();
    let require_new_evidence = document.get("require_new_evidence")?.as_bool()?;
    Some(ReexploreSignal { iteration, unresolved: unresolved?, require_new_evidence })
}
