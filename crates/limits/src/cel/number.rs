//! Arithmetic on mixed numbers: JSON has one kind of number, and expressions have three.

use std::sync::Arc;

use cel::{
    Env, ExecutionError, Value,
    common::{ast::operators, functions::Function, types::DYN_TYPE, value::CowVal},
};

/// Arithmetic operators with our names for them, and what they do.
const LENIENT: [(&str, &str, Function); 5] = [
    (operators::ADD, "@add", add),
    ("_-_", "@subtract", subtract),
    (operators::MULTIPLY, "@multiply", multiply),
    (operators::DIVIDE, "@divide", divide),
    (operators::MODULO, "@remainder", remainder),
];

/// The name of our own form of an arithmetic operator.
pub(super) fn lenient(operator: &str) -> Option<&'static str> {
    LENIENT.iter().find(|(theirs, ..)| *theirs == operator).map(|(_, ours, _)| *ours)
}

/// Whether the name is that of our own addition, which also joins texts and lists.
pub(super) fn is_addition(name: &str) -> bool {
    name == "@add"
}

/// Declares our own operators.
pub(super) fn declare(env: &mut Env) {
    for (_, name, function) in LENIENT {
        // The names are ours alone, so declaring them cannot fail.
        drop(env.add_overload(name, name, vec![DYN_TYPE, DYN_TYPE], function));
    }
}

fn add<'b, 'v>(values: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    on_numbers("+", values, |left, right| left + right)
}

fn subtract<'b, 'v>(values: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    on_numbers("-", values, |left, right| left - right)
}

fn multiply<'b, 'v>(values: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    on_numbers("*", values, |left, right| left * right)
}

fn divide<'b, 'v>(values: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    on_numbers("/", values, |left, right| left / right)
}

fn remainder<'b, 'v>(values: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    on_numbers("%", values, |left, right| left % right)
}

fn on_numbers<'b, 'v>(
    sign: &str,
    values: Vec<CowVal<'b, 'v>>,
    compute: impl FnOnce(Value, Value) -> Result<Value, ExecutionError>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let two: Result<[CowVal<'b, 'v>; 2], _> = values.try_into();
    let Ok([left, right]) = two else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    let types = || vec![left.get_type().name().to_owned(), right.get_type().name().to_owned()];
    let (left_type, right_type) = (left.get_type().name(), right.get_type().name());
    let is_number = |name: &str| matches!(name, "int" | "uint" | "double");
    let is_joined =
        sign == "+" && left_type == right_type && matches!(left_type, "string" | "list" | "bytes");
    if let Some(adder) = left.as_adder().filter(|_| is_joined) {
        return Ok(CowVal::Owned(adder.add(right.as_ref())?.into_owned()));
    }
    if !is_number(left_type) || !is_number(right_type) {
        return Err(ExecutionError::no_such_overload(sign, types()));
    }
    let (left, right) = alike(left.as_ref().try_into()?, right.as_ref().try_into()?);
    Ok(CowVal::Owned(compute(left, right)?.try_into()?))
}

/// Two numbers as the same kind: a fraction makes both fractions.
fn alike(left: Value, right: Value) -> (Value, Value) {
    match (&left, &right) {
        (Value::Int(_), Value::Int(_)) | (Value::UInt(_), Value::UInt(_)) => (left, right),
        _ => (Value::Float(float(&left)), Value::Float(float(&right))),
    }
}

#[expect(clippy::cast_precision_loss, reason = "beside a fraction a number is a fraction")]
fn float(value: &Value) -> f64 {
    match value {
        Value::Int(whole) => *whole as f64,
        Value::UInt(whole) => *whole as f64,
        Value::Float(number) => *number,
        // Only numbers get here.
        Value::List(_)
        | Value::Map(_)
        | Value::Function(..)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Bool(_)
        | Value::Opaque(_)
        | Value::Struct(_)
        | Value::Null => f64::NAN,
    }
}

/// The sum of the numbers of a list; that of none is 0.
pub(super) fn sum(list: &Arc<Vec<Value>>) -> Result<Value, ExecutionError> {
    list.iter().try_fold(Value::Int(0), |total, value| {
        let (total, value) = alike(total, number("sum", value)?);
        total + value
    })
}

/// The number of a list that is beyond all others.
pub(super) fn extreme(
    function: &str,
    list: &Arc<Vec<Value>>,
    is_beyond: impl Fn(f64, f64) -> bool,
) -> Result<Value, ExecutionError> {
    let mut found: Option<Value> = None;
    for value in list.iter() {
        let value = number(function, value)?;
        if found.as_ref().is_none_or(|found| is_beyond(float(&value), float(found))) {
            found = Some(value);
        }
    }
    found.ok_or_else(|| ExecutionError::function_error(function, "the list is empty"))
}

fn number(function: &str, value: &Value) -> Result<Value, ExecutionError> {
    if matches!(value, Value::Int(_) | Value::UInt(_) | Value::Float(_)) {
        return Ok(value.clone());
    }
    Err(ExecutionError::function_error(function, "not all items of the list are numbers"))
}
