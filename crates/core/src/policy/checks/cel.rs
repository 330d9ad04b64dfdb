//! The check `cel`: an expression over the output and its evidence that must be true.

use jurat_limits::{
    cel::{CelContext, CelExpression},
    quote::short,
};

use super::CheckFailure;
use crate::reason;

pub(super) fn judge(
    context: &CelContext<'_>,
    expression: &CelExpression,
) -> Result<(), CheckFailure> {
    let source = short(expression.source(), 60);
    let (code, why) = match context.evaluate(expression) {
        Ok(true) => return Ok(()),
        Ok(false) => (reason::CHECK_CEL_FALSE, format!("`{source}` is false.")),
        Err(why) => {
            let why = format!("`{source}` cannot be evaluated on this output: {why}.");
            (reason::CHECK_CEL_ERROR, why)
        }
    };
    Err(CheckFailure::new(code, why))
}
