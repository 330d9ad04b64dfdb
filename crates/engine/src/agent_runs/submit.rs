//! Accepts runs, and refuses a run that could never succeed.

use std::collections::BTreeSet;

use jurat_core::{
    account::caller::{Caller, Scope},
    agent_run::{
        AgentRun, AgentRunAddition, AgentRunCommand, AgentRunEvent, AgentRunEventKind, AgentRunKey,
        AgentRunOrder, AgentRunStatus, AgentSpec,
    },
    id::AccountId,
    policy::Policy,
    task::TermError,
    verifier::InputError,
};
use jurat_store::{AgentRunRefusal, AgentRunSubmit, NewAgentStep};
use jurat_wire::executor::{ShapeError, TaskSubmission, step_submission};
use serde_json::json;

use super::{key, record};
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, RefusalContext,
    access::{behalf_of, require_scope},
    tasks::{TaskRoster, call::submitting_key, check_scopes, no_session, profile_of},
};

impl Engine {
    /// Submits a run. The same spec under the same id is the same run.
    pub async fn agent_run_submit(
        &self,
        caller: &Caller,
        order: AgentRunOrder,
        keyed: Option<IdempotentWrite<AgentRunAddition>>,
    ) -> Result<IdempotentOutcome<AgentRunAddition>, EngineError> {
        require_scope(caller, Scope::TasksWrite)?;
        require_scope(caller, Scope::RoundsCreate)?;
        let now = self.inner.clock.now();
        let AgentRunOrder { kickoff, spec, labels, spec_digest } = order;
        let mut run = AgentRun::new(spec, now);
        let key = key(caller, &run.spec.run_id);
        // An existing run is not checked again: an executor may be gone by now.
        if !self.is_agent_run_stored(caller, &key, &spec_digest).await? {
            self.require_storage(caller).await?;
            self.agent_run_check(caller, &run).await?;
        }
        let agents = json!({ "agents": run.steps.len() });
        let mut events = vec![AgentRunEvent::new(AgentRunEventKind::RunCreated, agents)];
        if kickoff {
            events.extend(run.act(AgentRunCommand::Kickoff, now).unwrap_or_default());
        }
        let submit = AgentRunSubmit {
            run: key.clone(),
            ordered_by: submitting_key(caller),
            task_type: run.spec.task_type.clone(),
            spec_digest,
            spec: run.spec.to_document(&labels),
            state: record::stored_state(&run),
            steps: new_steps(&run),
            events,
            at: now,
            most_open: self.inner.limits.open_agent_runs,
        };
        let (agent_runs, behalf) = (self.inner.store.agent_runs(), behalf_of(caller));
        let written = self
            .write_idempotent(caller, keyed.as_ref(), Leaves::Note, async |once| {
                self.inner.failpoints.pass("run_submit_before");
                let writing = agent_runs.submit(&behalf, &submit, once);
                let written = self.inner.metrics.write("task_run_submit", writing).await;
                self.inner.failpoints.pass("run_submit_after");
                written
            })
            .await?;
        let mut done = written
            .map_err(|refused| refusal(&refused, &key.id, self.inner.limits.open_agent_runs))?;
        if let IdempotentOutcome::Now(AgentRunAddition {
            is_new: false,
            status: status @ AgentRunStatus::Created,
        }) = &mut done
            && kickoff
        {
            *status = self.agent_run_change(&key, AgentRunCommand::Kickoff).await?.run.status;
        }
        self.agent_run_changed(&key);
        Ok(done)
    }

    async fn is_agent_run_stored(
        &self,
        caller: &Caller,
        key: &AgentRunKey,
        spec_digest: &str,
    ) -> Result<bool, EngineError> {
        let found = self.inner.store.agent_runs().get(&behalf_of(caller), key).await?;
        match found {
            None => Ok(false),
            Some(stored) if stored.spec_digest == spec_digest => Ok(true),
            Some(_) => Err(refusal(&AgentRunRefusal::Taken, &key.id, 0)),
        }
    }

    /// Checks that every step could be a task: its executor is known, its schema and policy are
    /// valid, and its quorum can be reached. The health of the executor is checked when the step
    /// starts.
    async fn agent_run_check(&self, caller: &Caller, run: &AgentRun) -> Result<(), EngineError> {
        let view = self.pool_view().await?;
        let is_known =
            |name: &String| view.pool.executors.contains_key(name) || self.is_judge(name);
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for (index, agent) in run.spec.agents.iter().enumerate() {
            let at = format!("agents.{index}");
            let order = step_task(run, &agent.agent_id)
                .map_err(|error| wrong_field(format!("{at}.contract"), error.problem))?;
            if let Some(TermError { field, reason }) =
                order.contract.terms().check_clock(run.created_at)
            {
                return Err(located(wrong_field(field.to_owned(), reason), &at, agent));
            }
            if let Some(name) = order.executors.iter().find(|name| !is_known(name)) {
                let problem = format!("names `{name}`, which is not registered");
                return Err(wrong_field(format!("{at}.executor"), problem));
            }
            if let Some(name) = order.verifiers.iter().find(|name| !is_known(name)) {
                let own = if agent.verifiers.is_empty() { String::new() } else { format!("{at}.") };
                let problem = format!("names `{name}`, which is not registered");
                return Err(wrong_field(format!("{own}verifiers"), problem));
            }
            let profile = profile_of(&order);
            let executors = order.executors.iter().chain(&order.verifiers);
            let mut executors = executors.filter(|name| !self.is_judge(name));
            let lost = executors.find_map(|it| view.session_to(it, profile, caller.credit()).err());
            if let Some(error) = lost {
                let InputError { field, problem } = no_session("executor", &error);
                return Err(wrong_field(format!("{at}.{field}"), problem));
            }
            let terms = format!("{:?}", (&agent.contract, &agent.verifiers, &agent.executor));
            if seen.insert(terms) {
                check_scopes(caller, &order.contract)?;
                let checked = self.step_check(caller.account(), &order).await;
                checked.map_err(|error| located(error, &at, agent))?;
            }
        }
        Ok(())
    }

    async fn step_check(
        &self,
        account: &AccountId,
        order: &TaskSubmission,
    ) -> Result<(), EngineError> {
        let contract = &order.contract;
        self.check_task_schema(account, contract).await?;
        let policy_id = &contract.acceptance.verifier_policy.policy_id;
        let verifiers =
            if order.verifiers.is_empty() { &order.executors } else { &order.verifiers };
        let panel = TaskRoster {
            proposers: order.executors.clone(),
            voters: verifiers.clone(),
            profile: order.profile.clone().unwrap_or_default(),
            has_node: false,
            has_spare: order.verifiers.is_empty(),
            attempt: 1,
        };
        if !Policy::is_builtin(policy_id) {
            // Only the executors know whether they support it.
            let names = panel.voters.iter().map(String::as_str).collect();
            self.probe_named(&*self.pool_view().await?, &names).await;
        }
        match self.check_task_policy(account, contract, &panel).await {
            // An unhealthy executor is asked again when the step starts.
            Err(error) if error.context() == Some(&RefusalContext::Unhealthy) => {}
            checked => checked?,
        }
        self.check_task_quorum(contract, panel).map(drop)
    }
}

/// The task of a step.
pub(super) fn step_task(run: &AgentRun, agent_id: &str) -> Result<TaskSubmission, ShapeError> {
    let missing = || ShapeError::new("agents", format!("have no agent `{agent_id}`"));
    step_submission(run, agent_id).ok_or_else(missing)?
}

/// Moves the field of an error to its path in the spec.
fn located(error: EngineError, at: &str, agent: &AgentSpec) -> EngineError {
    let EngineError::Input(InputError { field, problem }) = error else { return error };
    let top = field.split('.').next().unwrap_or_default();
    let own = if agent.contract.get(top).is_some() { format!("{at}.") } else { String::new() };
    wrong_field(format!("{own}contract.{field}"), problem)
}

fn wrong_field(field: String, problem: String) -> EngineError {
    EngineError::invalid(field, problem)
}

fn new_steps(run: &AgentRun) -> Vec<NewAgentStep> {
    let pairs = run.spec.agents.iter().zip(&run.steps);
    let new = |(agent, step): (&AgentSpec, &jurat_core::agent_run::AgentStep)| NewAgentStep {
        step: step.clone(),
        executor: agent.executor.clone(),
        priority: agent.priority,
        at_once: run.spec.per_executor,
    };
    pairs.map(new).collect()
}

fn refusal(refused: &AgentRunRefusal, id: &str, most_open: u32) -> EngineError {
    EngineError::Conflict(match refused {
        AgentRunRefusal::Taken => {
            format!("there is already a run `{id}` with another spec")
        }
        AgentRunRefusal::TooManyOpen => format!(
            "the account has reached its limit of {most_open} open runs; wait, or cancel some"
        ),
    })
}
