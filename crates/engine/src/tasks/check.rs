//! Checks a task before it is accepted, and refuses one that could never succeed.

use std::collections::BTreeSet;

use jurat_core::{
    account::caller::{Caller, CreditMode},
    code::ProblemCode,
    id::AccountId,
    policy::{BindError, Policy, PolicyBinding, SEMANTIC},
    round::select::SelectError,
    verifier::InputError,
};
use jurat_wire::executor::{TaskContract, TaskSubmission};

use super::TaskRoster;
use crate::{
    Engine, EngineError, RefusalContext,
    executors::pool::{PoolHealth, PoolView},
    rounds::seats::JUDGE_PREFIX,
};

const USUAL_PROFILE: &str = "default";

impl Engine {
    /// The roster of an acceptable task, or the field that is wrong.
    pub(super) async fn task_check(
        &self,
        caller: &Caller,
        order: &TaskSubmission,
    ) -> Result<TaskRoster, EngineError> {
        let contract = &order.contract;
        if let Some(wrong) = contract.terms().check(self.inner.clock.now()).into_iter().next() {
            return Err(wrong_field(wrong.field, wrong.reason));
        }
        self.check_task_schema(caller.account(), contract).await?;
        let view = self.pool_view().await?;
        let panel = self.task_roster(order, caller.credit(), &view).await?;
        self.check_task_policy(caller.account(), contract, &panel).await?;
        let panel = self.check_task_quorum(contract, panel)?;
        self.check_task_voters(order, &panel)?;
        Ok(panel)
    }

    /// Named voters vote alone. If none of them can be asked, no proposal could be approved.
    fn check_task_voters(
        &self,
        order: &TaskSubmission,
        panel: &TaskRoster,
    ) -> Result<(), EngineError> {
        let standings = self.pool_health();
        let trouble = |name: &String| {
            if name.starts_with(JUDGE_PREFIX) { None } else { standings.of(name).err() }
        };
        let troubles: Option<Vec<String>> = panel.voters.iter().map(trouble).collect();
        match troubles.unwrap_or_default().first() {
            Some(why) if !order.verifiers.is_empty() => Err(unhealthy("verifiers", why)),
            Some(_) | None => Ok(()),
        }
    }

    /// The roster with the voters that count, or an error if the quorum cannot be reached.
    pub(crate) fn check_task_quorum(
        &self,
        contract: &TaskContract,
        panel: TaskRoster,
    ) -> Result<TaskRoster, EngineError> {
        let policy_id = &contract.acceptance.verifier_policy.policy_id;
        let (standings, profile) = (self.pool_health(), panel.profile.clone());
        let can_vote = |name: &str| {
            if name.starts_with(JUDGE_PREFIX) {
                return policy_id == SEMANTIC;
            }
            // An executor that cannot be asked now may be healthy when its vote is needed.
            standings.of(name).map_or(true, |declared| {
                let knows = Policy::is_builtin(policy_id) || declared.policies.contains(policy_id);
                knows && declared.has_profile(&profile)
            })
        };
        Ok(panel.for_quorum(contract.acceptance.quorum_threshold, policy_id, can_vote)?)
    }

    pub(crate) async fn check_task_schema(
        &self,
        account: &AccountId,
        contract: &TaskContract,
    ) -> Result<(), EngineError> {
        let binding: PolicyBinding = contract.acceptance.verifier_policy.clone().into();
        let (bounded, schema) = (self.inner.bounded.of(account), &contract.output_schema);
        bounded.schema_under(binding.rules(), schema).await?;
        Ok(())
    }

    pub(crate) async fn check_task_policy(
        &self,
        account: &AccountId,
        contract: &TaskContract,
        panel: &TaskRoster,
    ) -> Result<(), EngineError> {
        let binding: PolicyBinding = contract.acceptance.verifier_policy.clone().into();
        if !Policy::is_builtin(&contract.acceptance.verifier_policy.policy_id) {
            return self.check_custom_policy(contract, panel);
        }
        let bound = self.inner.bounded.of(account).policy(&binding).await;
        bound.map_err(|error| in_contract(error.into()))?;
        if binding.policy_id != SEMANTIC {
            return Ok(());
        }
        self.check_verifier(account, &binding).await.map_err(in_contract)
    }

    /// A policy that only executors know: one of the voters must declare it.
    fn check_custom_policy(
        &self,
        contract: &TaskContract,
        panel: &TaskRoster,
    ) -> Result<(), EngineError> {
        let policy_id = &contract.acceptance.verifier_policy.policy_id;
        let standings = self.pool_health();
        let knows = |name: &String| {
            standings.of(name).is_ok_and(|declared| declared.policies.contains(policy_id))
        };
        if panel.voters.iter().any(knows) {
            return Ok(());
        }
        let is_judge = |name: &&String| name.starts_with(JUDGE_PREFIX);
        let mut executors = panel.voters.iter().filter(|name| !is_judge(name));
        if let Some(why) = executors.find_map(|name| standings.of(name).err()) {
            return Err(unhealthy(if panel.has_spare { "executors" } else { "verifiers" }, &why));
        }
        let problem = "is not a policy known to this server or to a voter of the task".to_owned();
        Err(wrong_field("acceptance.verifier_policy.policy_id", problem))
    }

    async fn task_roster(
        &self,
        order: &TaskSubmission,
        credit: CreditMode,
        view: &PoolView,
    ) -> Result<TaskRoster, EngineError> {
        let profile = profile_of(order);
        for (field, names) in [("executors", &order.executors), ("verifiers", &order.verifiers)] {
            let is_unknown =
                |name: &&String| !view.pool.executors.contains_key(*name) && !self.is_judge(name);
            if let Some(name) = names.iter().find(is_unknown) {
                return Err(wrong_field(field, format!("names `{name}`, which is not registered")));
            }
            let executors = names.iter().filter(|name| !name.starts_with(JUDGE_PREFIX));
            let mut lost = executors.filter_map(|it| view.session_to(it, profile, credit).err());
            if let Some(error) = lost.next() {
                return Err(no_session(field, &error).into());
            }
        }
        let names: BTreeSet<&str> = if order.executors.is_empty() {
            view.pool.executors.keys().map(String::as_str).collect()
        } else {
            order.executors.iter().chain(&order.verifiers).map(String::as_str).collect()
        };
        self.probe_named(view, &names).await;
        let declaring = DeclarationCheck {
            view,
            standings: self.pool_health(),
            task_type: &order.contract.task_type,
            profile,
        };
        let asked = if order.executors.is_empty() {
            reachable(view, profile, credit)?
        } else {
            order.executors.clone()
        };
        let able: Vec<String> = asked.iter().filter(|it| declaring.both(it)).cloned().collect();
        if able.is_empty() {
            return Err(declaring.refusal(&asked));
        }
        // Named executors stay, in case they declare it later.
        let executors = if order.executors.is_empty() { able } else { asked };
        let verifiers =
            if order.verifiers.is_empty() { executors.clone() } else { order.verifiers.clone() };
        let has_spare = order.verifiers.is_empty();
        let profile = profile.to_owned();
        Ok(TaskRoster {
            proposers: executors,
            voters: verifiers,
            profile,
            has_node: false,
            has_spare,
            attempt: 1,
        })
    }

    pub(crate) fn is_judge(&self, name: &str) -> bool {
        let model = name.strip_prefix(JUDGE_PREFIX).and_then(|it| it.parse().ok());
        model.is_some_and(|model| self.is_judge_known(&model))
    }
}

/// The profile in which all executors of a task are asked.
pub(crate) fn profile_of(order: &TaskSubmission) -> &str {
    order.profile.as_deref().unwrap_or(USUAL_PROFILE)
}

/// The executors that an account can reach in a profile, or why it reaches none.
fn reachable(
    view: &PoolView,
    profile: &str,
    credit: CreditMode,
) -> Result<Vec<String>, EngineError> {
    let mut refused = None;
    let mut names = Vec::new();
    for name in view.pool.executors.keys() {
        match view.session_to(name, profile, credit) {
            Ok(_) => names.push(name.clone()),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match refused {
        Some(error) if names.is_empty() => Err(no_session("executors", &error).into()),
        Some(_) | None => Ok(names),
    }
}

/// The fault of the field that names an executor, or of the profile.
pub(crate) fn no_session(field: &str, error: &SelectError) -> InputError {
    let field = if matches!(error, SelectError::NoSession { .. }) { "profile" } else { field };
    InputError { field: field.to_owned(), problem: format!("cannot be used: {error}") }
}

/// Which executors declare the needs of a task.
struct DeclarationCheck<'a> {
    view: &'a PoolView,
    standings: PoolHealth,
    task_type: &'a str,
    profile: &'a str,
}

impl DeclarationCheck<'_> {
    fn task_type(&self, name: &str) -> bool {
        // Whether the account may use it was checked before.
        let Ok(session) = self.view.session_to(name, self.profile, CreditMode::Unmetered) else {
            return false;
        };
        let wanted = session.task_type(self.task_type);
        self.standings.of(name).is_ok_and(|declared| declared.takes_task_type(wanted))
    }

    fn profile(&self, name: &str) -> bool {
        self.standings.of(name).is_ok_and(|declared| declared.has_profile(self.profile))
    }

    fn both(&self, name: &str) -> bool {
        self.task_type(name) && self.profile(name)
    }

    /// Why none of them can work on it.
    fn refusal(&self, names: &[String]) -> EngineError {
        if names.is_empty() {
            let problem = "has no executor for the task: register one first".to_owned();
            return wrong_field("executors", problem);
        }
        let mut troubles = names.iter().map(|name| self.standings.of(name).err());
        if let Some(Some(why)) = troubles.next()
            && troubles.all(|it| it.is_some())
        {
            return unhealthy("executors", &why);
        }
        if names.iter().any(|name| self.task_type(name)) {
            let problem =
                format!("is `{}`, which none of the task's executors declares", self.profile);
            return wrong_field("profile", problem);
        }
        let why = names.iter().find_map(|name| self.standings.of(name).err());
        let problem = match why {
            Some(why) => format!("is declared by none of the task's executors: {why}"),
            None => "is declared by none of the task's executors".to_owned(),
        };
        wrong_field("task_type", problem)
    }
}

/// The submission could be valid at another time.
fn unhealthy(field: &'static str, why: &str) -> EngineError {
    let detail = format!("`{field}` has no executor that can be called now: {why}");
    EngineError::refused(ProblemCode::ValidationError, detail)
        .at(field)
        .with(RefusalContext::Unhealthy)
}

/// Names a wrong parameter of the policy by its path in the contract.
fn in_contract(error: EngineError) -> EngineError {
    let EngineError::Policy(error) = error else { return error };
    EngineError::Input(policy_field(&error))
}

fn wrong_field(field: &str, problem: String) -> EngineError {
    EngineError::invalid(field, problem)
}

fn policy_field(error: &BindError) -> InputError {
    let (field, problem) = match error {
        BindError::Unknown { .. } => ("policy_id".to_owned(), "is not known".to_owned()),
        BindError::Version { .. } => ("policy_version".to_owned(), "must be `1`".to_owned()),
        BindError::Hash { expected, .. } => (
            "policy_hash".to_owned(),
            format!("does not match the policy and its parameters, whose hash is `{expected}`"),
        ),
        BindError::Params { field, problem } => (field.clone(), problem.clone()),
    };
    InputError { field: format!("acceptance.verifier_policy.{field}"), problem }
}
