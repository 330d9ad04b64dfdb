//! Which judge a version gets that names none.

use jurat_core::verifier::ModelRef;

use crate::Engine;

/// The judge that is always there: it follows rules, and asks no model.
const RULES: (&str, &str) = ("builtin", "rules");

impl Engine {
    /// The judge that is named, else the default of the installation, else the built-in one.
    pub(super) fn judge_or_rules(&self, named: Option<ModelRef>) -> ModelRef {
        named.or_else(|| self.default_judge()).unwrap_or_else(rules)
    }

    #[expect(clippy::unused_self, reason = "the settings of judges will belong to the engine")]
    fn default_judge(&self) -> Option<ModelRef> {
        None
    }
}

fn rules() -> ModelRef {
    ModelRef { provider: RULES.0.to_owned(), model: RULES.1.to_owned() }
}
