//! Compiles an expression: parses it within limits, checks its names, and replaces some parts.

use cel::{
    IdedExpr,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr,
        operators,
    },
    parser::{
        ParseErrors, PrattParser,
        pratt_parser::{Lexer, TokenKind},
    },
};

use super::{ACCUMULATOR, CelExpression, MATCHES, ORDERED, number};
use crate::{
    pattern::{Pattern, Patterns},
    quote::{did_you_mean, plain},
};

const MAX_BYTES: usize = 2_048;
/// Words and signs. The recursion of the parser goes no deeper than this.
const MAX_TOKENS: usize = 500;
/// Nested parentheses, brackets and arguments.
const MAX_NESTED: u16 = 32;
const MAX_CONDITIONALS: usize = 32;
/// The depth of the tree, in which a sum of ten terms is ten deep.
const MAX_TREE_DEPTH: usize = 64;

const VARIABLES: &[&str] = &["output", "evidence"];
const TYPES: &[&str] =
    &["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];

/// How a function is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallForm {
    /// `f(x)`
    Global,
    /// `x.f()`
    Member,
    Both,
}

/// Functions with the number of their arguments, the one before the dot included.
const FUNCTIONS: &[(&str, CallForm, usize)] = &[
    ("size", CallForm::Both, 1),
    ("sum", CallForm::Both, 1),
    ("min", CallForm::Both, 1),
    ("max", CallForm::Both, 1),
    ("contains", CallForm::Member, 2),
    ("startsWith", CallForm::Member, 2),
    ("endsWith", CallForm::Member, 2),
    ("matches", CallForm::Both, 2),
    ("bool", CallForm::Global, 1),
    ("int", CallForm::Global, 1),
    ("uint", CallForm::Global, 1),
    ("double", CallForm::Global, 1),
    ("string", CallForm::Global, 1),
    ("bytes", CallForm::Global, 1),
    ("type", CallForm::Global, 1),
    ("dyn", CallForm::Global, 1),
];

/// The functions that the parser turns signs and loops into.
const OPERATORS: &[&str] = &[
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::GREATER_EQUALS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::LESS,
    operators::NEGATE,
    operators::INDEX,
    operators::IN,
    operators::NOT_STRICTLY_FALSE,
];

pub(super) fn compile(text: &str, patterns: &mut Patterns) -> Result<CelExpression, String> {
    if text.trim().is_empty() {
        return Err("must be an expression such as output.total > 0".to_owned());
    }
    if MAX_BYTES < text.len() {
        return Err(format!("has more than {MAX_BYTES} bytes; split it into several checks"));
    }
    refuse_long(text)?;
    let tree = PrattParser::new()
        .max_recursion_depth(MAX_NESTED)
        .error_recovery_limit(1)
        .parse(text)
        .map_err(|errors| not_parsed(&errors))?;
    let mut reader =
        ExpressionReader { patterns, variables: Vec::new(), uses_evidence: false, deepest: 0 };
    let tree = reader.read(tree, 1)?;
    let (depth, uses_evidence) = (reader.deepest, reader.uses_evidence);
    Ok(CelExpression { source: text.to_owned(), tree, depth, uses_evidence })
}

/// Counts the tokens, because parts of the parser and every walk of a tree are recursive.
fn refuse_long(text: &str) -> Result<(), String> {
    let mut lexer = Lexer::new(text);
    let (mut tokens, mut conditionals) = (0, 0);
    // Each token takes a byte at least.
    for _ in 0..=text.len() {
        let kind = lexer.lex().kind;
        if kind == TokenKind::TokEnd {
            break;
        }
        let is_blank = matches!(kind, TokenKind::TokWhitespace | TokenKind::TokComment);
        tokens += usize::from(!is_blank);
        conditionals += usize::from(kind == TokenKind::TokQuestion);
    }
    if MAX_TOKENS < tokens || MAX_CONDITIONALS < conditionals {
        return Err(format!(
            "has more than {MAX_TOKENS} tokens, or more than {MAX_CONDITIONALS} conditionals; split it into several checks"
        ));
    }
    Ok(())
}

fn not_parsed(errors: &ParseErrors) -> String {
    let Some(first) = errors.errors.first() else { return "does not compile".to_owned() };
    let what = first.msg.replace("']'", "a closing square bracket");
    let what = what.replace("'['", "an opening square bracket");
    let (line, column) = first.pos;
    if line < 1 {
        return format!("does not compile: {}", plain(&what, 200));
    }
    format!("does not compile: {} (line {line}, column {column})", plain(&what, 200))
}

struct ExpressionReader<'p> {
    patterns: &'p mut Patterns,
    /// The variables of the enclosing loops, innermost last.
    variables: Vec<String>,
    uses_evidence: bool,
    deepest: usize,
}

impl ExpressionReader<'_> {
    fn read(&mut self, node: IdedExpr, depth: usize) -> Result<IdedExpr, String> {
        if MAX_TREE_DEPTH < depth {
            return Err(format!(
                "nests deeper than {MAX_TREE_DEPTH}; split it into several checks, or join with && and ||"
            ));
        }
        self.deepest = self.deepest.max(depth);
        let expr = match node.expr {
            Expr::Literal(literal) => Expr::Literal(literal),
            Expr::Ident(name) => self.variable(name)?,
            Expr::Select(select) => self.select(select, depth)?,
            Expr::Call(call) => self.call(call, depth)?,
            Expr::List(list) => {
                let elements = self.read_all(list.elements, depth)?;
                Expr::List(ListExpr::new(elements))
            }
            Expr::Map(map) => self.map(map, depth)?,
            Expr::Comprehension(held) => self.comprehension(*held, depth)?,
            Expr::Struct(held) => {
                let name = plain(&held.type_name, 60);
                return Err(format!("creates a message `{name}`; messages are not supported"));
            }
            Expr::Unspecified => return Err("does not compile".to_owned()),
        };
        Ok(IdedExpr { id: node.id, expr })
    }

    fn read_all(&mut self, nodes: Vec<IdedExpr>, depth: usize) -> Result<Vec<IdedExpr>, String> {
        nodes.into_iter().map(|node| self.read(node, depth + 1)).collect()
    }

    fn variable(&mut self, name: String) -> Result<Expr, String> {
        let is_bound = name == ACCUMULATOR || self.variables.contains(&name);
        if !is_bound && !VARIABLES.contains(&name.as_str()) && !TYPES.contains(&name.as_str()) {
            let mut known: Vec<&str> = VARIABLES.to_vec();
            known.extend(self.variables.iter().map(String::as_str));
            let meant = did_you_mean(&name, &known);
            let known = known.join(", ");
            return Err(format!(
                "uses the name `{}`, which is not known{meant} (known are: {known})",
                plain(&name, 60)
            ));
        }
        self.uses_evidence |= name == "evidence";
        Ok(Expr::Ident(name))
    }

    fn select(&mut self, select: SelectExpr, depth: usize) -> Result<Expr, String> {
        let operand = Box::new(self.read(*select.operand, depth + 1)?);
        Ok(Expr::Select(SelectExpr { operand, ..select }))
    }

    fn map(&mut self, mut map: MapExpr, depth: usize) -> Result<Expr, String> {
        for entry in &mut map.entries {
            let EntryExpr::MapEntry(entry) = &mut entry.expr else {
                return Err("does not compile".to_owned());
            };
            entry.key = self.read(std::mem::take(&mut entry.key), depth + 1)?;
            entry.value = self.read(std::mem::take(&mut entry.value), depth + 1)?;
        }
        Ok(Expr::Map(map))
    }

    /// A loop: its range gets a fixed order, and its variable is known inside it.
    fn comprehension(&mut self, held: ComprehensionExpr, depth: usize) -> Result<Expr, String> {
        let name = held.iter_var.clone();
        if VARIABLES.contains(&name.as_str()) || TYPES.contains(&name.as_str()) {
            return Err(format!("names a loop variable `{name}`; choose another name"));
        }
        // One more level for the call of `ORDERED`.
        let range = self.read(held.iter_range, depth + 2)?;
        let range = IdedExpr {
            id: range.id,
            expr: Expr::Call(CallExpr {
                func_name: ORDERED.to_owned(),
                target: None,
                args: vec![range],
            }),
        };
        self.variables.push(name);
        let held = ComprehensionExpr {
            iter_range: range,
            accu_init: self.read(held.accu_init, depth + 1)?,
            loop_cond: self.read(held.loop_cond, depth + 1)?,
            loop_step: self.read(held.loop_step, depth + 1)?,
            result: self.read(held.result, depth + 1)?,
            ..held
        };
        self.variables.pop();
        Ok(Expr::Comprehension(Box::new(held)))
    }

    fn call(&mut self, call: CallExpr, depth: usize) -> Result<Expr, String> {
        let CallExpr { func_name, target, args } = call;
        let target = target.map(|target| self.read(*target, depth + 1)).transpose()?;
        let mut called =
            CallExpr { target: target.map(Box::new), args: self.read_all(args, depth)?, func_name };
        if called.target.is_none() {
            if OPERATORS.contains(&called.func_name.as_str()) || is_own_step(&called) {
                return Ok(Expr::Call(called));
            }
            if let Some(ours) = number::lenient(&called.func_name) {
                ours.clone_into(&mut called.func_name);
                return Ok(Expr::Call(called));
            }
        }
        refuse_unknown(&called)?;
        match called.func_name.as_str() {
            "matches" => self.matches(called),
            _ => Ok(Expr::Call(called)),
        }
    }

    /// Compiles the pattern here, which is why it must be a literal.
    fn matches(&mut self, call: CallExpr) -> Result<Expr, String> {
        let mut args: Vec<IdedExpr> = call.target.map(|target| *target).into_iter().collect();
        args.extend(call.args);
        let Some(Expr::Literal(LiteralValue::String(pattern))) = args.get(1).map(|arg| &arg.expr)
        else {
            return Err(
                "calls `matches` with a pattern that is not a string literal; write it in quotes"
                    .to_owned(),
            );
        };
        let text = pattern.inner();
        if !self.patterns.contains_key(text) {
            let compiled = Pattern::compile(text)
                .map_err(|why| format!("has a pattern that is refused: {why}"))?;
            self.patterns.insert(text.to_owned(), compiled);
        }
        Ok(Expr::Call(CallExpr { func_name: MATCHES.to_owned(), target: None, args }))
    }
}

fn refuse_unknown(call: &CallExpr) -> Result<(), String> {
    let name = call.func_name.as_str();
    let Some((_, form, arguments)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
        let known: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
        let meant = did_you_mean(name, &known);
        let known = known.join(", ");
        return Err(format!(
            "calls `{}`, which is not known{meant} (known are: {known}, and the loops all, exists, exists_one, filter, map, and has)",
            plain(name, 60)
        ));
    };
    let given = call.args.len() + usize::from(call.target.is_some());
    if given != *arguments {
        return Err(format!("calls `{name}` with {given} arguments; it takes {arguments}"));
    }
    match (form, call.target.is_some()) {
        (CallForm::Global, true) => Err(format!("calls `x.{name}()`; write `{name}(x)`")),
        (CallForm::Member, false) => Err(format!("calls `{name}(x, y)`; write `x.{name}(y)`")),
        (CallForm::Both, _) | (CallForm::Global, false) | (CallForm::Member, true) => Ok(()),
    }
}

/// Whether this is the step of a loop that adds to its accumulator.
fn is_own_step(call: &CallExpr) -> bool {
    let is_gathered =
        |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == ACCUMULATOR);
    call.func_name == operators::ADD && call.args.first().is_some_and(is_gathered)
}
