//! Which judge a version gets that names none.

use jurat_core::{
    judge::{RulesError, check_rules},
    verifier::{InputError, ModelRef, NewVersion},
};

use crate::Engine;

/// The judge that is always there: it follows rules, and asks no model.
const RULES: (&str, &str) = ("builtin", "rules");
/// What stands for the default judge where there is none: no provider has this name, so that a run
/// ends without a verdict.
const NOBODY: (&str, &str) = ("default", "judge");

impl Engine {
    /// The judge of a new version: the one that it names, else the default of the installation,
    /// else the built-in one, which must be able to read the criterion.
    pub(super) fn judge_of(&self, new: &NewVersion) -> Result<ModelRef, InputError> {
        let judge = new.model.clone().or_else(|| self.default_judge()).unwrap_or(model(RULES));
        if judge == model(RULES) {
            check(new).map_err(|error| explain(error, new.model.is_some()))?;
        }
        Ok(judge)
    }

    /// The judge of the verifiers that come with the program.
    pub(super) fn judge_of_platform(&self) -> ModelRef {
        self.default_judge().unwrap_or(model(NOBODY))
    }

    fn default_judge(&self) -> Option<ModelRef> {
        self.judges().default_model.clone()
    }
}

fn check(new: &NewVersion) -> Result<(), RulesError> {
    check_rules(&new.criterion)?.check_fields(new.contract, &new.fields)
}

/// Who named no judge may not have meant rules.
fn explain(error: RulesError, is_named: bool) -> InputError {
    let RulesError { field, mut problem } = error;
    if !is_named {
        problem.push_str("; there is no default judge, so name one in `model_settings.model`");
    }
    InputError { field, problem }
}

fn model((provider, model): (&str, &str)) -> ModelRef {
    ModelRef { provider: provider.to_owned(), model: model.to_owned() }
}
