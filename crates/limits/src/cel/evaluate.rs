//! Evaluates expressions on a subject.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

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

use super::{CelExpression, CelSubject, MATCHES, ORDERED, number};
use crate::{pattern::Patterns, quote::short};

/// Functions that do not depend on the subject.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::default().with_optional_support(false).with_stdlib();
    number::declare(&mut env);
    // The name is ours alone, so declaring it cannot fail.
    drop(env.add_overload(ORDERED, ORDERED, vec![DYN_TYPE], ordered));
    Arc::new(env)
});

/// The variables and functions that expressions can use.
pub struct CelContext<'v> {
    context: Context<'v, 'v>,
}

impl fmt::Debug for CelContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CelContext").finish_non_exhaustive()
    }
}

impl<'v> CelContext<'v> {
    /// The context of one subject, with the patterns of the expressions that will read it.
    pub fn of(subject: &CelSubject<'v>, patterns: &Patterns) -> Self {
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.add_variable_as_val("output", seen(subject.output));
        context.add_variable_as_val("evidence", seen(subject.evidence));
        let patterns = patterns.clone();
        let matches = move |text: Arc<String>, pattern: Arc<String>| {
            patterns.get(pattern.as_str()).is_some_and(|held| held.is_match(&text))
        };
        let sum = |This(list): This<Arc<Vec<Computed>>>| number::sum(&list);
        let min = |This(list): This<Arc<Vec<Computed>>>| {
            number::extreme("min", &list, |left, right| left < right)
        };
        let max = |This(list): This<Arc<Vec<Computed>>>| {
            number::extreme("max", &list, |left, right| right < left)
        };
        // None of these is the name of a standard function, so declaring them cannot fail.
        drop(context.add_function(MATCHES, matches));
        drop(context.add_function("sum", sum));
        drop(context.add_function("min", min));
        drop(context.add_function("max", max));
        Self { context }
    }

    /// Whether the expression is true. The error is a clause that says why it has no value.
    pub fn evaluate(&self, expression: &CelExpression) -> Result<bool, String> {
        let result = Computed::resolve_val(&expression.tree, &self.context)
            .map_err(|error| explained(&error))?;
        let truth = result.downcast_ref::<CelBool>().map(|held| *held.inner());
        truth.ok_or_else(|| {
            let kind = result.get_type().name();
            format!("it returns a value of type `{kind}`, not true or false")
        })
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

/// A JSON value as expressions see it. A whole number is an `int` in any notation, because `3` and
/// `3.0` are the same canonical JSON.
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

/// A list as it is, or the sorted names of an object's members.
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

/// Explains an error without the values, which may be long.
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
