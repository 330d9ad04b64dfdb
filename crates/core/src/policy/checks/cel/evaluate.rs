//! Runs expressions on a candidate.

use std::sync::{Arc, LazyLock};

use cel::{
    Context, Env, ExecutionError, Value as Computed,
    common::{
        types::{
            CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, DYN_TYPE,
        },
        value::{CowVal, Val},
    },
    extractors::This,
};
use serde_json::{Map, Number, Value};

use super::{CelExpression, MATCHES, ORDERED, number};
use crate::policy::checks::{CheckFailure, CheckSubject, Patterns};
use crate::{policy::params::short, reason};

/// Functions that do not depend on the candidate.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::default().with_optional_support(false).with_stdlib();
    number::declare(&mut env);
    // The name is ours alone, so nothing is declared twice.
    drop(env.add_overload(ORDERED, ORDERED, vec![DYN_TYPE], ordered));
    Arc::new(env)
});

/// All that expressions can see.
pub(crate) struct CelContext<'v> {
    context: Context<'v, 'v>,
}

impl<'v> CelContext<'v> {
    pub(crate) fn of(subject: &CheckSubject<'v>, patterns: &Patterns) -> Self {
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.add_variable_as_val("output", seen(subject.output));
        context.add_variable_as_val("evidence", seen(subject.evidence));
        let patterns = patterns.clone();
        let matches = move |text: Arc<String>, pattern: Arc<String>| {
            patterns.get(pattern.as_str()).is_some_and(|held| held.regex.is_match(&text))
        };
        let sum = |This(list): This<Arc<Vec<Computed>>>| number::sum(&list);
        let min = |This(list): This<Arc<Vec<Computed>>>| {
            number::extreme("min", &list, |left, right| left < right)
        };
        let max = |This(list): This<Arc<Vec<Computed>>>| {
            number::extreme("max", &list, |left, right| right < left)
        };
        // None of these names is one of the standard functions, so nothing is in the way.
        drop(context.add_function(MATCHES, matches));
        drop(context.add_function("sum", sum));
        drop(context.add_function("min", min));
        drop(context.add_function("max", max));
        Self { context }
    }

    pub(crate) fn judge(&self, expression: &CelExpression) -> Result<(), CheckFailure> {
        let source = short(&expression.source, 60);
        let cannot = |why: String| {
            let why = format!("`{source}` cannot be evaluated on this output: {why}.");
            Err(CheckFailure::new(reason::CHECK_CEL_ERROR, why))
        };
        let result = match Computed::resolve_val(&expression.tree, &self.context) {
            Ok(result) => result,
            Err(error) => return cannot(explained(&error)),
        };
        match result.downcast_ref::<CelBool>().map(|held| *held.inner()) {
            Some(true) => Ok(()),
            Some(false) => {
                Err(CheckFailure::new(reason::CHECK_CEL_FALSE, format!("`{source}` is false.")))
            }
            None => {
                let kind = result.get_type().name();
                cannot(format!("it returns a value of type `{kind}`, not true or false"))
            }
        }
    }
}

#[cfg(test)]
impl CelContext<'_> {
    /// Adds a function of one value.
    pub(super) fn declare(
        &mut self,
        name: &str,
        function: impl Fn(Computed) -> Computed + Send + Sync + 'static,
    ) {
        self.context.add_function(name, function).unwrap();
    }

    /// The value of any expression.
    pub(super) fn compute(&self, expression: &CelExpression) -> Result<Computed, ExecutionError> {
        Computed::resolve(&expression.tree, &self.context)
    }
}

/// A JSON value as expressions see it. Whole numbers are `int` however they are written, because
/// `3` and `3.0` are the same canonical JSON.
fn seen(value: &Value) -> Box<dyn Val + '_> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(flag) => Box::new(CelBool::from(*flag)),
        Value::Number(number) => numeric(number),
        Value::String(text) => Box::new(CelString::from(text.as_str())),
        Value::Array(items) => {
            Box::new(CelList::from(items.iter().map(seen).collect::<Vec<Box<dyn Val + '_>>>()))
        }
        Value::Object(members) => object(members),
    }
}

#[expect(
    clippy::disallowed_types,
    reason = "the crate wants it; loops see the names in order, see `ordered`"
)]
fn object(members: &Map<String, Value>) -> Box<dyn Val + '_> {
    let members = members.iter();
    let seen = members.map(|(name, value)| (CelMapKey::from(name.as_str()), seen(value)));
    Box::new(CelMap::from(seen.collect::<std::collections::HashMap<_, _>>()))
}

fn numeric(number: &Number) -> Box<dyn Val> {
    /// Up to here every whole number is a float as well.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().unwrap_or(f64::NAN);
    if float.fract() == 0.0 && float.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
        return Box::new(CelInt::from(float as i64));
    }
    Box::new(CelDouble::from(float))
}

/// A list as it is; of an object the names of its members, sorted.
fn ordered<'b, 'v>(mut values: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let Some(value) = values.pop() else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    let Some(map) = value.downcast_ref::<CelMap<'v>>() else { return Ok(value) };
    let mut keys: Vec<&CelMapKey<'v>> = map.inner().keys().collect();
    keys.sort_unstable();
    let keys: Vec<Box<dyn Val + 'v>> =
        keys.into_iter().map(|key| key.inner().clone_as_boxed()).collect();
    Ok(CowVal::owned(CelList::from(keys)))
}

/// What went wrong, without the values themselves, which may be long.
#[expect(clippy::wildcard_enum_match_arm, reason = "there may be more kinds in later versions")]
fn explained(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("there is no member `{}`", short(key, 40)),
        ExecutionError::NoSuchOverload(overload) => {
            let types = overload.argument_types().join(" and ");
            format!("`{}` does not take {types}", sign(overload.function()))
        }
        ExecutionError::UnexpectedType { want, .. } if want == "iterable" => {
            "a loop needs a list or an object".to_owned()
        }
        ExecutionError::UnexpectedType { want, .. } if want == "bool" => {
            "it needs true or false, but got another type".to_owned()
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "it divides by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "a number becomes too large".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "an index is out of range".to_owned(),
        ExecutionError::FunctionError { function, message } if message.len() <= 60 => {
            format!("`{}`: {}", short(function, 20), short(message, 60))
        }
        _ => "a value has the wrong type".to_owned(),
    }
}

/// An operator as it is written in an expression.
fn sign(function: &str) -> String {
    let bare: String = function.chars().filter(|sign| !matches!(sign, '_' | '@')).collect();
    match bare.as_str() {
        "." => "a member by name".to_owned(),
        "[]" => "an index".to_owned(),
        other => short(other, 20),
    }
}
