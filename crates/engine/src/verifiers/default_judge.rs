//! Chooses the judge of a version that names none.

use jurat_core::{
    account::caller::Caller,
    judge::{RulesError, check_rules},
    verifier::{InputError, ModelRef, VerifierDraft},
};

use crate::{
    Engine,
    judges::{BUILTIN_PROVIDER, NO_DEFAULT_JUDGE, RULES_MODEL},
};

impl Engine {
    /// The judge of a new version: the one that it names, else the default of the installation,
    /// else the built-in one, if it can read the criterion.
    pub(super) fn judge_of(
        &self,
        caller: &Caller,
        new: &VerifierDraft,
    ) -> Result<ModelRef, InputError> {
        let named = new.model.clone().or_else(|| self.default_judge());
        let judge = named.unwrap_or_else(|| built_in(RULES_MODEL));
        if judge.provider == BUILTIN_PROVIDER {
            self.judge_available(&judge).map_err(|unknown| InputError {
                field: "model_settings.model".to_owned(),
                problem: format!("is not a judge: {unknown}"),
            })?;
            check_criterion(new).map_err(|error| rules_problem(error, new.model.is_some()))?;
        }
        self.check_priced(caller.credit(), &judge).map_err(|unpriced| InputError {
            field: "model_settings.model".to_owned(),
            problem: format!("cannot be asked: {unpriced}"),
        })?;
        Ok(judge)
    }

    /// Why the judge that a version names cannot be asked today. It is deployed all the same: the
    /// operator may add the provider later.
    pub fn deploy_warnings(&self, new: &VerifierDraft) -> Vec<String> {
        let judge = new.model.clone().or_else(|| self.default_judge());
        let judge = judge.filter(|judge| judge.provider != BUILTIN_PROVIDER);
        let unknown = judge.and_then(|judge| Some((self.judge_available(&judge).err()?, judge)));
        let warning = unknown.map(|(why, judge)| {
            format!("no run will have a verdict until the judge `{judge}` is available: {why}")
        });
        warning.into_iter().collect()
    }

    /// The judge of the built-in verifiers.
    pub(super) fn judge_of_platform(&self) -> ModelRef {
        self.default_judge().unwrap_or_else(|| built_in(NO_DEFAULT_JUDGE))
    }

    fn default_judge(&self) -> Option<ModelRef> {
        self.judges_config().default_model.clone()
    }
}

fn check_criterion(new: &VerifierDraft) -> Result<(), RulesError> {
    check_rules(&new.criterion)?.check_fields(new.contract, &new.fields)
}

/// A caller that named no judge may not have meant rules.
fn rules_problem(error: RulesError, is_named: bool) -> InputError {
    let RulesError { field, mut problem } = error;
    if !is_named {
        problem.push_str("; if you did not mean rules, name a judge in `model_settings.model`");
    }
    InputError { field, problem }
}

fn built_in(model: &str) -> ModelRef {
    ModelRef { provider: BUILTIN_PROVIDER.to_owned(), model: model.to_owned() }
}
