//! An upper limit of the work of an expression, from its tree and the shape of the values it reads.
//!
//! Each part of the tree is visited once. Its value has an extent: how large it can be, and how many
//! items it and the values below it can have, by depth. A loop costs its body times the items of its
//! range. An expression cannot compute a value beyond its extent, so the limit is sound.

use cel::{
    IdedExpr,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr,
        operators,
    },
};
use serde_json::Value;

use super::{ACCUMULATOR, CelExpression, CelSubject, MATCHES, ORDERED, number};
use crate::{
    pattern::{Pattern, Patterns},
    size::{as_u64, size_within, text_size},
    work::WorkEstimate,
};

/// The cost of one iteration of a loop besides its parts.
const ITERATION: u64 = 4;
/// Levels of a schema that take as much stack as one level of a tree.
const STACK: u64 = 16;
/// Bytes of text in one unit of size.
const BYTES: u64 = 64;

/// The work of the expression; more than `most` may be counted only in part.
pub(super) fn work(
    expression: &CelExpression,
    subject: &CelSubject<'_>,
    patterns: &Patterns,
    most: u64,
) -> WorkEstimate {
    let mut walk = CostVisitor { subject, patterns, most, walked: 0, scope: Vec::new() };
    let stack = as_u64(expression.depth).saturating_mul(STACK);
    match walk.cost(&expression.tree) {
        Ok(found) => {
            let applications = found.work.applications.saturating_add(walk.walked);
            WorkEstimate { applications, stack, ..found.work }
        }
        Err(WorkLimitExceeded) => {
            WorkEstimate { applications: u64::MAX, regex_steps: u64::MAX, stack }
        }
    }
}

/// The work of an expression, and the largest size of its value; for tests of the limit itself.
#[cfg(test)]
pub(super) fn extent(
    expression: &CelExpression,
    subject: &CelSubject<'_>,
    patterns: &Patterns,
    most: u64,
) -> Option<(WorkEstimate, u64)> {
    let mut walk = CostVisitor { subject, patterns, most, walked: 0, scope: Vec::new() };
    let found = walk.cost(&expression.tree).ok()?;
    let size = walk.size(&found.extent).ok()?;
    Some((found.work, size))
}

struct WorkLimitExceeded;

/// The knowledge of a value before it is computed.
#[derive(Debug, Clone)]
enum ValueExtent<'a> {
    /// Exactly this value.
    Known(&'a Value),
    /// A value that is neither a text nor a container.
    Scalar,
    /// Limits of the value and of the values below it, by depth.
    Within(Vec<ExtentLevel>),
}

/// The limits of one value at a depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ExtentLevel {
    /// Items, or members.
    len: u64,
    /// Size of the value with everything below it.
    size: u64,
}

const SCALAR: ExtentLevel = ExtentLevel { len: 0, size: 1 };
/// The longest number has about three hundred digits.
const NUMBER_AS_TEXT: ExtentLevel = ExtentLevel { len: 0, size: 8 };
static NULL: Value = Value::Null;

/// The cost of a part of the tree, and the extent of its value.
struct PartCost<'a> {
    work: WorkEstimate,
    extent: ValueExtent<'a>,
}

impl PartCost<'_> {
    fn scalar(work: WorkEstimate) -> Self {
        Self { work, extent: ValueExtent::Scalar }
    }
}

struct CostVisitor<'a, 's> {
    subject: &'s CelSubject<'a>,
    patterns: &'s Patterns,
    most: u64,
    /// The cost of measuring values so far, because that is work as well.
    walked: u64,
    scope: Vec<(&'s str, ValueExtent<'a>)>,
}

impl<'a, 's> CostVisitor<'a, 's> {
    fn cost(&mut self, node: &'s IdedExpr) -> Result<PartCost<'a>, WorkLimitExceeded> {
        let found = match &node.expr {
            Expr::Literal(literal) => literal_cost(literal),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select)?,
            Expr::Call(call) => self.call(call)?,
            Expr::List(list) => self.list(list)?,
            Expr::Map(map) => self.map(map)?,
            Expr::Comprehension(held) => self.comprehension(held)?,
            Expr::Struct(_) | Expr::Unspecified => return Err(WorkLimitExceeded),
        };
        if self.most < found.work.applications.saturating_add(self.walked) {
            return Err(WorkLimitExceeded);
        }
        Ok(found)
    }

    fn variable(&self, name: &str) -> PartCost<'a> {
        // Names are looked up in every enclosing loop.
        let work = applications(1 + as_u64(self.scope.len()));
        let bound = self.scope.iter().rev().find(|(known, _)| *known == name);
        let extent = match (bound, name) {
            (Some((_, extent)), _) => extent.clone(),
            (None, "output") => ValueExtent::Known(self.subject.output),
            (None, "evidence") => ValueExtent::Known(self.subject.evidence),
            // A type.
            (None, _) => ValueExtent::Scalar,
        };
        PartCost { work, extent }
    }

    fn select(&mut self, select: &'s SelectExpr) -> Result<PartCost<'a>, WorkLimitExceeded> {
        let operand = self.cost(&select.operand)?;
        // A chain of names is built once for each of its links.
        let work = operand.work.and(applications(2 + as_u64(self.scope.len())));
        let extent = match operand.extent {
            ValueExtent::Known(value) => {
                ValueExtent::Known(value.get(&select.field).unwrap_or(&NULL))
            }
            ValueExtent::Within(levels) => beneath(levels),
            ValueExtent::Scalar => ValueExtent::Scalar,
        };
        // A test for presence gives a boolean, not the member.
        let extent = if select.test { ValueExtent::Scalar } else { extent };
        Ok(PartCost { work, extent })
    }

    fn list(&mut self, list: &'s ListExpr) -> Result<PartCost<'a>, WorkLimitExceeded> {
        let items = list.elements.iter().collect();
        self.container(items, as_u64(list.elements.len()))
    }

    fn map(&mut self, map: &'s MapExpr) -> Result<PartCost<'a>, WorkLimitExceeded> {
        let mut parts = Vec::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(WorkLimitExceeded) };
            parts.extend([&entry.key, &entry.value]);
        }
        self.container(parts, as_u64(map.entries.len()))
    }

    /// A list or an object that is put together from copies of its parts.
    fn container(
        &mut self,
        parts: Vec<&'s IdedExpr>,
        len: u64,
    ) -> Result<PartCost<'a>, WorkLimitExceeded> {
        let mut work = applications(1 + len);
        let mut levels = vec![ExtentLevel { len, size: 1 }];
        for part in parts {
            let found = self.cost(part)?;
            let inner = self.levels(&found.extent)?;
            let size = first(&inner).size;
            work = work.and(found.work).and(applications(size));
            levels[0].size = levels[0].size.saturating_add(size);
            raise(&mut levels, 1, &inner);
        }
        Ok(PartCost { work, extent: ValueExtent::Within(levels) })
    }

    fn call(&mut self, call: &'s CallExpr) -> Result<PartCost<'a>, WorkLimitExceeded> {
        let mut found = Vec::with_capacity(1 + call.args.len());
        let mut work = applications(1);
        for part in call.target.as_deref().into_iter().chain(&call.args) {
            let part = self.cost(part)?;
            work = work.and(part.work);
            found.push(part.extent);
        }
        let name = call.func_name.as_str();
        match name {
            operators::LOGICAL_AND
            | operators::LOGICAL_OR
            | operators::LOGICAL_NOT
            | operators::NOT_STRICTLY_FALSE => return Ok(PartCost::scalar(work)),
            operators::INDEX => return self.index(call, found, work),
            operators::CONDITIONAL => {
                let extent = self.either(found.get(1), found.get(2))?;
                return Ok(PartCost { work, extent });
            }
            _ => {}
        }
        // All others read their values once at most; an error may copy them.
        let mut sizes = Vec::with_capacity(found.len());
        for extent in &found {
            sizes.push(self.size(extent)?);
        }
        let read = sizes.iter().fold(0, |total: u64, size| total.saturating_add(*size));
        let mut work = work.and(applications(read.saturating_mul(2)));
        if name == MATCHES {
            work.regex_steps = work.regex_steps.saturating_add(self.steps(call, &sizes));
        }
        if name == operators::ADD || number::is_addition(name) {
            let extent = self.joined(&found)?;
            return Ok(PartCost { work, extent });
        }
        if matches!(name, "string" | "bytes" | "dyn") {
            let mut levels = self.levels(found.first().unwrap_or(&ValueExtent::Scalar))?;
            raise(&mut levels, 0, &[NUMBER_AS_TEXT]);
            return Ok(PartCost { work, extent: ValueExtent::Within(levels) });
        }
        Ok(PartCost::scalar(work))
    }

    fn index(
        &mut self,
        call: &'s CallExpr,
        mut found: Vec<ValueExtent<'a>>,
        work: WorkEstimate,
    ) -> Result<PartCost<'a>, WorkLimitExceeded> {
        let literal = call.args.get(1).and_then(|index| literal_index(&index.expr));
        let from = if found.is_empty() { ValueExtent::Scalar } else { found.swap_remove(0) };
        match (from, literal) {
            (ValueExtent::Known(value), Some(IndexLiteral::Name(name))) => {
                Ok(PartCost { work, extent: ValueExtent::Known(value.get(name).unwrap_or(&NULL)) })
            }
            (ValueExtent::Known(value), Some(IndexLiteral::Number(number))) => Ok(PartCost {
                work,
                extent: ValueExtent::Known(value.get(number).unwrap_or(&NULL)),
            }),
            (ValueExtent::Within(levels), Some(_)) => {
                Ok(PartCost { work, extent: beneath(levels) })
            }
            (ValueExtent::Scalar, _) => Ok(PartCost::scalar(work)),
            // An index of another type makes an error that holds a copy of the list.
            (from, None) => {
                let levels = self.levels(&from)?;
                let work = work.and(applications(first(&levels).size));
                Ok(PartCost { work, extent: beneath(levels) })
            }
        }
    }

    fn comprehension(
        &mut self,
        held: &'s ComprehensionExpr,
    ) -> Result<PartCost<'a>, WorkLimitExceeded> {
        let Expr::Call(ordered) = &held.iter_range.expr else { return Err(WorkLimitExceeded) };
        let range = ordered.args.first().filter(|_| ordered.func_name == ORDERED);
        let range = self.cost(range.ok_or(WorkLimitExceeded)?)?;
        let levels = self.levels(&range.extent)?;
        let ExtentLevel { len: turns, size } = first(&levels);
        let start = self.cost(&held.accu_init)?;
        let gathers = matches!(held.accu_init.expr, Expr::List(_));
        // An iteration is charged for what it adds, not for what was there before.
        let gathered = if gathers { ValueExtent::Within(vec![SCALAR]) } else { start.extent };
        self.scope.push((ACCUMULATOR, gathered));
        self.scope.push((held.iter_var.as_str(), beneath(levels)));
        let condition = self.cost(&held.loop_cond)?;
        let step = self.cost(&held.loop_step)?;
        let result = self.cost(&held.result)?;
        self.scope.truncate(self.scope.len() - 2);

        let mut added = self.levels(&step.extent)?;
        let one = first(&added);
        let turn =
            condition.work.and(step.work).and(applications(one.size.saturating_add(ITERATION)));
        // The items are copied one by one, and the names of an object are sorted first.
        let work = range.work.and(start.work).and(result.work).and(turn.times(turns));
        let work = work.and(applications(size.saturating_mul(3)));
        if !gathers {
            return Ok(PartCost::scalar(work));
        }
        added[0] = ExtentLevel {
            len: one.len.saturating_mul(turns),
            size: one.size.saturating_mul(turns).saturating_add(1),
        };
        Ok(PartCost { work, extent: ValueExtent::Within(added) })
    }

    /// Steps of the pattern of a call of `matches`, on a text of that size.
    fn steps(&self, call: &CallExpr, sizes: &[u64]) -> u64 {
        let states = match call.args.get(1).map(|pattern| &pattern.expr) {
            Some(Expr::Literal(LiteralValue::String(text))) => self.patterns.get(text.inner()),
            _ => None,
        };
        let states = states.map_or(u64::MAX, Pattern::states);
        let size = sizes.first().copied().unwrap_or_default();
        size.saturating_mul(BYTES).saturating_mul(states)
    }

    fn size(&mut self, extent: &ValueExtent<'a>) -> Result<u64, WorkLimitExceeded> {
        match extent {
            ValueExtent::Known(value) => {
                let size = size_within(value, self.most);
                self.pay(size)?;
                Ok(size)
            }
            ValueExtent::Within(levels) => Ok(first(levels).size),
            ValueExtent::Scalar => Ok(SCALAR.size),
        }
    }

    fn levels(&mut self, extent: &ValueExtent<'a>) -> Result<Vec<ExtentLevel>, WorkLimitExceeded> {
        match extent {
            ValueExtent::Known(value) => {
                // Counted first, because `measure` does not stop halfway.
                let size = size_within(value, self.most);
                self.pay(size)?;
                let mut levels = Vec::new();
                measure(value, 0, &mut levels);
                Ok(levels)
            }
            ValueExtent::Within(levels) => Ok(levels.clone()),
            ValueExtent::Scalar => Ok(vec![SCALAR]),
        }
    }

    fn pay(&mut self, size: u64) -> Result<(), WorkLimitExceeded> {
        self.walked = self.walked.saturating_add(size);
        if self.most < self.walked { Err(WorkLimitExceeded) } else { Ok(()) }
    }

    fn either(
        &mut self,
        left: Option<&ValueExtent<'a>>,
        right: Option<&ValueExtent<'a>>,
    ) -> Result<ValueExtent<'a>, WorkLimitExceeded> {
        let mut levels = vec![SCALAR];
        for extent in [left, right].into_iter().flatten() {
            let inner = self.levels(extent)?;
            raise(&mut levels, 0, &inner);
        }
        Ok(ValueExtent::Within(levels))
    }

    /// Two texts or two lists, joined.
    fn joined(&mut self, found: &[ValueExtent<'a>]) -> Result<ValueExtent<'a>, WorkLimitExceeded> {
        // A number can only be added to numbers.
        let is_scalar = |extent: &ValueExtent<'_>| match extent {
            ValueExtent::Scalar => true,
            ValueExtent::Known(value) => !value.is_array() && !value.is_string(),
            ValueExtent::Within(_) => false,
        };
        if found.iter().any(is_scalar) {
            return Ok(ValueExtent::Scalar);
        }
        let mut levels = vec![SCALAR];
        let mut whole = SCALAR;
        for extent in found {
            let inner = self.levels(extent)?;
            let ExtentLevel { len, size } = first(&inner);
            whole.len = whole.len.saturating_add(len);
            whole.size = whole.size.saturating_add(size);
            raise(&mut levels, 0, &inner);
        }
        levels[0] = whole;
        Ok(ValueExtent::Within(levels))
    }
}

enum IndexLiteral<'e> {
    Name(&'e str),
    Number(usize),
}

fn literal_index(expr: &Expr) -> Option<IndexLiteral<'_>> {
    let Expr::Literal(literal) = expr else { return None };
    match literal {
        LiteralValue::String(name) => Some(IndexLiteral::Name(name.inner())),
        LiteralValue::Int(number) => {
            usize::try_from(*number.inner()).ok().map(IndexLiteral::Number)
        }
        LiteralValue::Boolean(_)
        | LiteralValue::Bytes(_)
        | LiteralValue::Double(_)
        | LiteralValue::Null
        | LiteralValue::UInt(_) => None,
    }
}

fn literal_cost<'a>(literal: &LiteralValue) -> PartCost<'a> {
    let bytes = match literal {
        LiteralValue::String(text) => text.inner().len(),
        LiteralValue::Bytes(bytes) => bytes.inner().len(),
        LiteralValue::Boolean(_)
        | LiteralValue::Double(_)
        | LiteralValue::Int(_)
        | LiteralValue::Null
        | LiteralValue::UInt(_) => return PartCost::scalar(applications(1)),
    };
    let size = 1 + as_u64(bytes) / BYTES;
    PartCost {
        work: applications(1),
        extent: ValueExtent::Within(vec![ExtentLevel { len: 0, size }]),
    }
}

const fn applications(applications: u64) -> WorkEstimate {
    WorkEstimate::of_applications(applications)
}

fn first(levels: &[ExtentLevel]) -> ExtentLevel {
    levels.first().copied().unwrap_or(SCALAR)
}

/// The extent of an item or a member.
fn beneath<'a>(mut levels: Vec<ExtentLevel>) -> ValueExtent<'a> {
    if !levels.is_empty() {
        levels.remove(0);
    }
    ValueExtent::Within(levels)
}

/// Raises the levels from a depth on to those of another value.
fn raise(levels: &mut Vec<ExtentLevel>, from: usize, others: &[ExtentLevel]) {
    if levels.len() < from + others.len() {
        levels.resize(from + others.len(), SCALAR);
    }
    for (level, other) in levels.iter_mut().skip(from).zip(others) {
        level.len = level.len.max(other.len);
        level.size = level.size.max(other.size);
    }
}

/// Records the extent of a value and of everything below it, and returns its size.
fn measure(value: &Value, depth: usize, levels: &mut Vec<ExtentLevel>) -> u64 {
    let mut own = SCALAR;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => own.size += text_size(text),
        Value::Array(items) => {
            own.len = as_u64(items.len());
            for item in items {
                own.size += measure(item, depth + 1, levels);
            }
        }
        Value::Object(members) => {
            own.len = as_u64(members.len());
            for (name, member) in members {
                // A loop over an object iterates over its names.
                let name = text_size(name);
                raise(levels, depth + 1, &[ExtentLevel { len: 0, size: 1 + name }]);
                own.size += name + measure(member, depth + 1, levels);
            }
        }
    }
    raise(levels, depth, &[own]);
    own.size
}
