//! Taking runs: what could never end well is not begun.

use std::collections::BTreeSet;

use jurat_core::{
    caller::{Caller, Scope},
    canonical::digest_json,
    id::AccountId,
    policy::Policy,
    task::TermError,
    task_run::{AgentSpec, Run, RunCommand, RunEvent, RunEventKind, RunStatus},
    verifier::InputError,
};
use jurat_store::{NewStep, RunAdded, RunKey, RunSubmit, RunSubmitRefused};
use jurat_wire::api::{
    runs::{RunOrder, step_order},
    tasks::TaskSubmission,
};
use serde_json::json;

use super::{key, record};
use crate::{
    Done, Engine, EngineError, Keyed, Leaves,
    executors::require,
    people::behalf,
    step::ordered_by,
    task::{Panel, may_order, no_lane, profile_of},
};

impl Engine {
    /// Takes a run. The same spec under the same identifier is the same run.
    pub async fn task_run_submit(
        &self,
        caller: &Caller,
        order: RunOrder,
        keyed: Option<Keyed<RunAdded>>,
    ) -> Result<Done<RunAdded>, EngineError> {
        require(caller, Scope::TasksWrite)?;
        require(caller, Scope::RoundsCreate)?;
        let now = self.inner.clock.now();
        let RunOrder { kickoff, spec, document } = order;
        let mut run = Run::new(spec, now);
        let spec_digest = digest_json(&document);
        let key = key(caller, &run.spec.run_id);
        // What is there already is not checked again: an executor may be gone by now.
        if !self.is_run_there(caller, &key, &spec_digest).await? {
            self.require_room(caller).await?;
            self.task_run_check(caller, &run).await?;
        }
        let agents = json!({ "agents": run.steps.len() });
        let mut events = vec![RunEvent::new(RunEventKind::RunCreated, agents)];
        if kickoff {
            events.extend(run.act(RunCommand::Kickoff, now).unwrap_or_default());
        }
        let submit = RunSubmit {
            run: key.clone(),
            ordered_by: ordered_by(caller),
            task_type: run.spec.task_type.clone(),
            spec_digest,
            spec: document,
            state: record::state(&run),
            steps: new_steps(&run),
            events,
            at: now,
            most_open: self.inner.limits.open_runs,
        };
        let (tasks, behalf) = (self.inner.store.tasks(), behalf(caller));
        let written = self
            .write_once(caller, keyed.as_ref(), Leaves::Note, async |once| {
                self.inner.points.pass("run_submit_before");
                let writing = tasks.task_run_submit(&behalf, &submit, once);
                let written = self.inner.metrics.write("task_run_submit", writing).await;
                self.inner.points.pass("run_submit_after");
                written
            })
            .await?;
        let mut done =
            written.map_err(|refused| refusal(&refused, &key.id, self.inner.limits.open_runs))?;
        if let Done::Now(RunAdded { is_new: false, status: status @ RunStatus::Created }) =
            &mut done
            && kickoff
        {
            *status = self.task_run_change(&key, RunCommand::Kickoff).await?.run.status;
        }
        self.task_run_changed(&key);
        Ok(done)
    }

    async fn is_run_there(
        &self,
        caller: &Caller,
        key: &RunKey,
        spec_digest: &str,
    ) -> Result<bool, EngineError> {
        let found = self.inner.store.tasks().task_run_get(&behalf(caller), key).await?;
        match found {
            None => Ok(false),
            Some(stored) if stored.spec_digest == spec_digest => Ok(true),
            Some(_) => Err(refusal(&RunSubmitRefused::Taken, &key.id, 0)),
        }
    }

    /// Whether every step could be a task: its executor is known, its schema and its policy can be
    /// used, and its quorum reached. Whether the executor is well is asked when the step begins.
    async fn task_run_check(&self, caller: &Caller, run: &Run) -> Result<(), EngineError> {
        let view = self.pool_view().await?;
        let is_known =
            |name: &String| view.pool.executors.contains_key(name) || self.is_judge(name);
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for (index, agent) in run.spec.agents.iter().enumerate() {
            let at = format!("agents.{index}");
            let order = step_order(run, &agent.agent_id)
                .map_err(|problem| wrong(format!("{at}.contract"), problem.detail))?;
            if let Some(TermError { field, reason }) =
                order.contract.terms().check_clock(run.created_at)
            {
                return Err(located(wrong(field.to_owned(), reason), &at, agent));
            }
            if let Some(name) = order.executors.iter().find(|name| !is_known(name)) {
                let problem = format!("names `{name}`, which is not registered");
                return Err(wrong(format!("{at}.executor"), problem));
            }
            if let Some(name) = order.verifiers.iter().find(|name| !is_known(name)) {
                let own = if agent.verifiers.is_empty() { String::new() } else { format!("{at}.") };
                let problem = format!("names `{name}`, which is not registered");
                return Err(wrong(format!("{own}verifiers"), problem));
            }
            let profile = profile_of(&order);
            let executors = order.executors.iter().chain(&order.verifiers);
            let mut executors = executors.filter(|name| !self.is_judge(name));
            let lost = executors.find_map(|it| view.lane_to(it, profile, caller.credit()).err());
            if let Some(error) = lost {
                let InputError { field, problem } = no_lane("executor", &error);
                return Err(wrong(format!("{at}.{field}"), problem));
            }
            let terms = format!("{:?}", (&agent.contract, &agent.verifiers, &agent.executor));
            if seen.insert(terms) {
                may_order(caller, &order.contract)?;
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
        self.task_schema(account, contract).await?;
        let policy_id = &contract.acceptance.verifier_policy.policy_id;
        let verifiers =
            if order.verifiers.is_empty() { &order.executors } else { &order.verifiers };
        let panel = Panel {
            executors: order.executors.clone(),
            verifiers: verifiers.clone(),
            profile: order.profile.clone().unwrap_or_default(),
            has_node: false,
            has_spare: order.verifiers.is_empty(),
            attempt: 1,
        };
        if !Policy::is_known(policy_id) {
            // Only they can say whether they know it.
            let names = panel.verifiers.iter().map(String::as_str).collect();
            self.probe_named(&*self.pool_view().await?, &names).await;
        }
        match self.task_policy(account, contract, &panel).await {
            // Whoever is not well is asked when the step begins.
            Ok(()) | Err(EngineError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        self.task_quorum(contract, panel).map(drop)
    }
}

/// The field as it stands in the spec.
fn located(error: EngineError, at: &str, agent: &AgentSpec) -> EngineError {
    let EngineError::Input(InputError { field, problem }) = error else { return error };
    let top = field.split('.').next().unwrap_or_default();
    let own = if agent.contract.get(top).is_some() { format!("{at}.") } else { String::new() };
    wrong(format!("{own}contract.{field}"), problem)
}

fn wrong(field: String, problem: String) -> EngineError {
    EngineError::Input(InputError { field, problem })
}

fn new_steps(run: &Run) -> Vec<NewStep> {
    let pairs = run.spec.agents.iter().zip(&run.steps);
    let new = |(agent, step): (&AgentSpec, &jurat_core::task_run::Step)| NewStep {
        step: step.clone(),
        executor: agent.executor.clone(),
        priority: agent.priority,
        at_once: run.spec.per_executor,
    };
    pairs.map(new).collect()
}

fn refusal(refused: &RunSubmitRefused, id: &str, most_open: u32) -> EngineError {
    EngineError::Conflict(match refused {
        RunSubmitRefused::Taken => {
            format!("there is already a run `{id}` with another spec")
        }
        RunSubmitRefused::TooManyOpen => format!(
            "the account has reached its limit of {most_open} open runs; wait, or cancel some"
        ),
    })
}
