//! `vp.semantic.v1` in a round: finds the verifier, pins its version, and writes the question for
//! its judge.

use std::{collections::BTreeMap, sync::Arc};

use jurat_core::{
    account::{
        caller::{Caller, Scope},
        ledger::CostEstimate,
    },
    id::AccountId,
    judge::Question,
    policy::{BindError, Policy, PolicyBinding, SEMANTIC, SemanticParams},
    round::job::Job,
    verifier::{InputError, ModelRef, SYSTEM_PREFIX, VerifierVersion, registry::Measurement},
};
use jurat_store::{Behalf, VersionKey};
use serde_json::Value;

use super::{ask::JudgeBrief, seats::SeatCandidates};
use crate::{
    Engine, EngineError, RefusalContext, access::require_scope, judges::CostBasis,
    node::capacity::capacity_owner, workflows::shares::names_listed,
};

/// The text length to hold credit for if the caller names none.
const USUAL_CHARS: usize = 20_000;

/// The verifier that decides a round, at one version, with its measurements.
#[derive(Debug)]
pub(crate) struct BoundVerifier {
    pub(crate) version: Arc<VerifierVersion>,
    pub(crate) measured: Arc<Vec<Measurement>>,
    policy: SemanticParams,
    caller: Caller,
}

/// A verifier that was found before the round starts.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedVerifier {
    pub(crate) version: Arc<VerifierVersion>,
    pub(crate) measured: Arc<Vec<Measurement>>,
}

impl Engine {
    /// The verifier that the policy of a job names, if it names one. The version is pinned in the
    /// policy, so that its hash identifies the version that decided.
    pub(crate) async fn bind_verifier(
        &self,
        caller: &Caller,
        job: &mut Job,
        found: Option<ResolvedVerifier>,
    ) -> Result<Option<Arc<BoundVerifier>>, EngineError> {
        if job.policy.policy_id != SEMANTIC {
            return Ok(None);
        }
        let Policy::Semantic(policy) = Policy::bind(&job.policy).map_err(EngineError::Policy)?
        else {
            return Err(EngineError::Bug("a semantic policy is something else"));
        };
        require_scope(caller, Scope::VerifiersRun)?;
        let found = match found {
            Some(found) => found,
            None => self.find_verifier(caller, &policy).await?,
        };
        policy.check(&found.version.config).map_err(EngineError::invalid_parameter)?;
        let (id, version) = (&found.version.verifier.id, found.version.version);
        job.policy = PolicyBinding::new(SEMANTIC, policy.pinned(id, version));
        let ResolvedVerifier { version, measured } = found;
        let bound = BoundVerifier { version, measured, policy, caller: caller.clone() };
        // Judges that take seats are checked when they are chosen.
        if SeatCandidates::of(job) != SeatCandidates::Judges {
            bound.check_judge(self, bound.judge())?;
        }
        Ok(Some(Arc::new(bound)))
    }

    /// Checks that the verifier of a policy exists for an account, and accepts its parameters.
    pub(crate) async fn check_verifier(
        &self,
        account: &AccountId,
        binding: &PolicyBinding,
    ) -> Result<(), EngineError> {
        let Policy::Semantic(policy) = Policy::bind(binding).map_err(EngineError::Policy)? else {
            return Ok(());
        };
        // Looked up for the account, as it will be when a candidate is judged.
        let caller = self.caller_without_key(account).await?;
        let found = self.find_verifier(&caller, &policy).await?;
        policy.check(&found.version.config).map_err(EngineError::invalid_parameter)
    }

    async fn find_verifier(
        &self,
        caller: &Caller,
        policy: &SemanticParams,
    ) -> Result<ResolvedVerifier, EngineError> {
        let found = self.verifier_resolve(caller, &policy.verifier).await;
        // For a caller of validate this is an invalid parameter, not an unknown address.
        let wrong = |problem| {
            let field = "policy_params.verifier".to_owned();
            EngineError::Policy(BindError::Params { field, problem })
        };
        let version = found.map_err(|error| {
            if let Some(RefusalContext::SharedNames { what, id, names }) = error.context() {
                return wrong(format!(
                    "names a {what} that you do not own: `{id}`; those shared with you are named {}",
                    names_listed(names)
                ));
            }
            let EngineError::NotFound { what, id } = error else { return error };
            wrong(format!("names a {what} that does not exist: `{id}`"))
        })?;
        self.with_measurements(version).await
    }

    pub(crate) async fn with_measurements(
        &self,
        version: VerifierVersion,
    ) -> Result<ResolvedVerifier, EngineError> {
        let (owner, id) = (&version.verifier.account, &version.verifier.id);
        let measured = self
            .inner
            .store
            .measurements()
            .list(
                &Behalf::from(owner),
                &VersionKey {
                    account: owner.clone(),
                    verifier_id: id.to_owned(),
                    version: version.version,
                },
            )
            .await?;
        Ok(ResolvedVerifier { version: Arc::new(version), measured: Arc::new(measured) })
    }

    /// The question to the judges about a candidate, if it has all inputs of the verifier.
    pub(crate) fn judge_brief(
        &self,
        bound: &BoundVerifier,
        output: &Value,
    ) -> Result<JudgeBrief, InputError> {
        let config = &bound.version.config;
        let given = bound.policy.read(output, config)?;
        Question::check_length(config.contract, &given.inputs)?;
        self.check_media_url("policy_params.media_url", given.media_url.as_deref())?;
        Ok(JudgeBrief::new(bound, bound.question(given.inputs), given.media_url))
    }

    /// The estimated cost of judging a candidate that does not exist yet. A candidate that could
    /// cost more is not judged.
    pub(crate) async fn review_estimate(&self, bound: &BoundVerifier) -> CostEstimate {
        let config = &bound.version.config;
        let each =
            bound.policy.max_chars.unwrap_or(USUAL_CHARS).div_ceil(config.fields.len().max(1));
        let inputs = config.fields.iter().map(|field| (field.clone(), "x".repeat(each))).collect();
        let question = bound.question(inputs);
        let judgment = CostBasis {
            question: &question,
            model: bound.judge(),
            has_image: config.contract.has_image(),
            commit_first: bound.commit_first(),
        };
        self.judge_estimate(&judgment, bound.account(), &bound.version.verifier.id).await
    }
}

impl BoundVerifier {
    /// The judge that the version names.
    pub(crate) fn judge(&self) -> &ModelRef {
        &self.version.config.judge.model
    }

    /// Checks that this judge may be asked on behalf of the payer.
    pub(crate) fn check_judge(&self, engine: &Engine, model: &ModelRef) -> Result<(), EngineError> {
        let Err(unpriced) = engine.check_priced(self.caller.credit(), model) else { return Ok(()) };
        if model != self.judge() {
            return Err(unpriced.into());
        }
        // Only the verifier named it.
        let field = "policy_params.verifier".to_owned();
        let problem = format!("names a verifier that is judged for nobody who pays: {unpriced}");
        Err(EngineError::Policy(BindError::Params { field, problem }))
    }

    /// The question of the verifier about these inputs.
    fn question(&self, inputs: BTreeMap<String, String>) -> Question {
        let config = &self.version.config;
        let mut examples = config.examples.clone();
        if let Some(index) = self.policy.leave_out.filter(|index| *index < examples.len()) {
            examples.remove(index);
        }
        Question {
            criterion: config.criterion.clone(),
            contract: config.contract,
            fields: config.fields.clone(),
            examples,
            inputs,
        }
    }

    /// The id of the verifier; `None` for a built-in one.
    pub(crate) fn stored_id(&self) -> Option<String> {
        let id = &self.version.verifier.id;
        (!id.starts_with(SYSTEM_PREFIX)).then(|| id.clone())
    }

    pub(crate) fn account(&self) -> &AccountId {
        self.caller.account()
    }

    /// The account whose fair share it uses.
    pub(crate) fn sharer(&self) -> AccountId {
        capacity_owner(&self.caller)
    }

    pub(crate) fn commit_first(&self) -> bool {
        self.policy.commit_first.unwrap_or(self.version.config.judge.commit_first)
    }

    pub(crate) fn is_fresh(&self) -> bool {
        self.policy.is_fresh
    }

    /// How often this judge was right when the version was measured.
    pub(crate) fn reliability(&self, model: &ModelRef) -> Option<f64> {
        let known = |measurement: &Measurement| {
            measurement.document.get("reliability")?.get(model.to_string())?.as_f64()
        };
        self.measured.iter().find_map(known).filter(|share| (0.0..1.0).contains(share))
    }
}
