//! Which judge a version gets that names none.

use jurat_core::verifier::ModelRef;

use crate::{
    Engine,
    judge::{BUILTIN, RULES},
};

impl Engine {
    /// The judge that is named, else the default of the installation, else the built-in one.
    pub(super) fn judge_or_rules(&self, named: Option<ModelRef>) -> ModelRef {
        let rules = || ModelRef { provider: BUILTIN.to_owned(), model: RULES.to_owned() };
        named.or_else(|| self.judge_by_default()).unwrap_or_else(rules)
    }
}
