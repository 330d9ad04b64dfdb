//! The limit is sound: no random expression takes more iterations or makes a larger value.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use cel::{
    IdedExpr, Value as Computed,
    common::ast::{CallExpr, EntryExpr, Expr},
};
use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed},
};
use serde_json::{Value, json};

use super::{CelContext, CelExpression, CelSubject, work_limit};
use crate::pattern::Patterns;

const TICK: &str = "@tick";

/// The type that a part of an expression should have, so that most can be evaluated.
#[derive(Clone, Copy)]
enum ExpressionSort {
    List,
    Text,
    Number,
    Truth,
    Any,
}

/// Builds an expression from choices. If they run out, it takes the first of each.
struct ExpressionMaker<'c> {
    choices: &'c mut dyn Iterator<Item = u8>,
    loops: usize,
}

impl ExpressionMaker<'_> {
    fn choose(&mut self, count: u8) -> u8 {
        self.choices.next().unwrap_or(0) % count
    }

    fn make(&mut self, sort: ExpressionSort, depth: usize) -> String {
        if depth == 0 {
            return self.leaf(sort);
        }
        match sort {
            ExpressionSort::List => self.list(depth - 1),
            ExpressionSort::Text => match self.choose(5) {
                0 => self.leaf(sort),
                1 => format!("string({})", self.make(ExpressionSort::Number, depth - 1)),
                2 => format!("({}[0])", self.make(ExpressionSort::List, depth - 1)),
                _ => self.pair("+", ExpressionSort::Text, depth - 1),
            },
            ExpressionSort::Number => match self.choose(5) {
                0 => self.leaf(sort),
                1 => format!("size({})", self.make(ExpressionSort::List, depth - 1)),
                2 => format!("size({})", self.make(ExpressionSort::Text, depth - 1)),
                3 => self.pair("*", ExpressionSort::Number, depth - 1),
                _ => self.pair("+", ExpressionSort::Number, depth - 1),
            },
            ExpressionSort::Truth => match self.choose(5) {
                0 => self.leaf(sort),
                1 => self.pair("&&", ExpressionSort::Truth, depth - 1),
                2 => self.pair("<", ExpressionSort::Number, depth - 1),
                3 => self.looped("exists", ExpressionSort::Truth, depth - 1),
                _ => self.pair("==", ExpressionSort::Any, depth - 1),
            },
            ExpressionSort::Any => match self.choose(6) {
                0 => self.make(ExpressionSort::Text, depth - 1),
                1 => self.make(ExpressionSort::Number, depth - 1),
                2 => format!("{{'k': {}}}", self.make(ExpressionSort::Any, depth - 1)),
                3 => format!("dyn({})", self.make(ExpressionSort::Any, depth - 1)),
                _ => self.make(ExpressionSort::List, depth - 1),
            },
        }
    }

    fn leaf(&mut self, sort: ExpressionSort) -> String {
        if 0 < self.loops && self.choose(3) != 0 {
            let number = self.choose(u8::try_from(self.loops).unwrap());
            return format!("v{number}");
        }
        let words: &[&str] = match sort {
            ExpressionSort::List => {
                &["output.f", "output.l", "[1, 'a']", "output.n", "output.o", "[]"]
            }
            ExpressionSort::Text => &["output.t", "'ab'", "output.o.long"],
            ExpressionSort::Number => &["3", "output.i", "1.5"],
            ExpressionSort::Truth => &["true", "output.b", "false", "has(output.z)"],
            ExpressionSort::Any => &["output", "output.l", "output.t", "null", "output.n[1]"],
        };
        let chosen = self.choose(u8::try_from(words.len()).unwrap());
        words[usize::from(chosen)].to_owned()
    }

    fn list(&mut self, depth: usize) -> String {
        match self.choose(7) {
            0 => self.leaf(ExpressionSort::List),
            1 => format!(
                "[{}, {}]",
                self.make(ExpressionSort::Any, depth),
                self.make(ExpressionSort::Any, depth)
            ),
            2 => self.pair("+", ExpressionSort::List, depth),
            3 => self.looped("filter", ExpressionSort::Truth, depth),
            4 => {
                let truth = self.make(ExpressionSort::Truth, depth);
                format!(
                    "({truth} ? {} : {})",
                    self.make(ExpressionSort::List, depth),
                    self.leaf(ExpressionSort::List)
                )
            }
            _ => self.looped("map", ExpressionSort::Any, depth),
        }
    }

    fn pair(&mut self, sign: &str, sort: ExpressionSort, depth: usize) -> String {
        let left = self.make(sort, depth);
        format!("({left} {sign} {})", self.make(sort, depth))
    }

    fn looped(&mut self, name: &str, body: ExpressionSort, depth: usize) -> String {
        let range = self.make(ExpressionSort::List, depth);
        let variable = self.loops;
        self.loops += 1;
        let body = self.make(body, depth);
        self.loops -= 1;
        format!("{range}.{name}(v{variable}, {body})")
    }
}

fn output() -> Value {
    let many: Vec<Value> = (0..20).map(|n| json!(vec![n; n])).collect();
    json!({
        "f": vec![1; 40], "l": ["a", "b", ["c", {"d": 1}], "e"], "n": many, "i": 7, "b": true,
        "t": "text".repeat(40), "o": {"x": 1, "y": [1, 2], "long": "x".repeat(500)},
    })
}

/// Counts the iterations of every loop, by a call around its condition.
fn ticking(mut node: IdedExpr) -> IdedExpr {
    node.expr = match node.expr {
        Expr::Comprehension(mut held) => {
            for part in [
                &mut held.iter_range,
                &mut held.accu_init,
                &mut held.loop_cond,
                &mut held.loop_step,
                &mut held.result,
            ] {
                *part = ticking(std::mem::take(part));
            }
            let args = vec![std::mem::take(&mut held.loop_cond)];
            let call = CallExpr { func_name: TICK.to_owned(), target: None, args };
            held.loop_cond = IdedExpr { id: 0, expr: Expr::Call(call) };
            Expr::Comprehension(held)
        }
        Expr::Call(mut call) => {
            call.target = call.target.map(|target| Box::new(ticking(*target)));
            call.args = call.args.into_iter().map(ticking).collect();
            Expr::Call(call)
        }
        Expr::List(mut list) => {
            list.elements = list.elements.into_iter().map(ticking).collect();
            Expr::List(list)
        }
        Expr::Map(mut map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    entry.key = ticking(std::mem::take(&mut entry.key));
                    entry.value = ticking(std::mem::take(&mut entry.value));
                }
            }
            Expr::Map(map)
        }
        Expr::Select(mut select) => {
            select.operand = Box::new(ticking(*select.operand));
            Expr::Select(select)
        }
        other @ (Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified) => other,
    };
    node
}

/// The size of a computed value, in the units of the limit.
fn size(value: &Computed) -> u64 {
    match value {
        Computed::List(items) => 1 + items.iter().map(size).sum::<u64>(),
        Computed::Map(map) => {
            let entries = map.map.iter();
            let sizes = entries.map(|(key, value)| as_units(key.to_string().len()) + size(value));
            1 + sizes.sum::<u64>()
        }
        Computed::String(text) => 1 + as_units(text.len()),
        Computed::Bytes(bytes) => 1 + as_units(bytes.len()),
        Computed::Int(_)
        | Computed::UInt(_)
        | Computed::Float(_)
        | Computed::Bool(_)
        | Computed::Null
        | Computed::Function(..)
        | Computed::Opaque(_)
        | Computed::Struct(_) => 1,
    }
}

fn as_units(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap() / 64
}

proptest! {
    #![proptest_config(Config {
        cases: 3_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(5872),
        ..Config::default()
    })]

    #[test]
    fn no_expression_exceeds_its_limit(
        choices in proptest::collection::vec(any::<u8>(), 8..60),
        depth in 1..5_usize,
    ) {
        let mut choices = choices.into_iter();
        let text = ExpressionMaker { choices: &mut choices, loops: 0 }.make(ExpressionSort::Any, depth);
        let mut patterns = Patterns::new();
        let Ok(mut expression) = CelExpression::compile(&text, &mut patterns) else { return Ok(()) };
        let (output, evidence) = (output(), Value::Null);
        let subject = CelSubject { output: &output, evidence: &evidence };
        let Some((work, most)) = work_limit::extent(&expression, &subject, &patterns, 1_000_000) else {
            return Ok(());
        };

        let turns = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&turns);
        let mut world = CelContext::of(&subject, &patterns);
        world.declare(TICK, move |value: Computed| {
            counted.fetch_add(1, Ordering::Relaxed);
            value
        });
        expression.tree = ticking(expression.tree);
        let computed = world.compute(&expression);
        let turns = turns.load(Ordering::Relaxed);
        prop_assert!(turns <= work.applications, "{turns} turns of {work:?}: {text}");
        if let Ok(value) = computed {
            let size = size(&value);
            prop_assert!(size <= most, "{size} of {most}: {text}");
            prop_assert!(size <= work.applications + 1_000, "{size} of {work:?}: {text}");
        }
    }
}

#[test]
fn most_random_expressions_can_be_evaluated() {
    let (output, evidence) = (output(), Value::Null);
    let subject = CelSubject { output: &output, evidence: &evidence };
    let mut evaluated = 0;
    for seed in 0..200_u32 {
        let mut state = seed.wrapping_mul(2_654_435_761);
        let mut choices = std::iter::repeat_with(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u8::try_from(state >> 24).unwrap()
        });
        let text = ExpressionMaker { choices: &mut choices, loops: 0 }.make(ExpressionSort::Any, 3);
        let mut patterns = Patterns::new();
        let Ok(expression) = CelExpression::compile(&text, &mut patterns) else { continue };
        let world = CelContext::of(&subject, &patterns);
        evaluated += u32::from(world.compute(&expression).is_ok());
    }
    assert!(100 < evaluated, "only {evaluated} of 200 can be evaluated");
}
