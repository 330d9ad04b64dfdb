//! `jurat verifiers test` and `attack`.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Context, ROUTE, cases, run::judges};
use crate::{
    args::{AttackVerifier, MeasureArgs, TestVerifier},
    client::{Call, Client, ClientError, Reply, path},
    commands::{
        gate::{NEGATIVE, PASSED, UNDECIDED},
        junit::{self, JunitFile},
    },
    output::{
        cases::CasesBar,
        measurement::{self, Side},
    },
};

/// The event that ends the stream: the report.
const REPORT: &str = "report";
/// Thousands of cases take hours; what takes longer has got stuck.
const LONGEST: Duration = Duration::from_hours(12);

pub(super) async fn test(context: &Context, args: &TestVerifier) -> anyhow::Result<u8> {
    let mut body = body(&args.measure)?;
    if args.compare {
        body.insert("compare".to_owned(), json!(true));
    }
    let report = measure(context, &args.measure, ("tests", body)).await?;
    context.out.reply(&report, |out| measurement::test(out, &report.value))?;
    Ok(if args.measure.gate { test_gate(args, &report.value) } else { 0 })
}

pub(super) async fn attack(context: &Context, args: &AttackVerifier) -> anyhow::Result<u8> {
    let mut body = body(&args.measure)?;
    if !args.family.is_empty() {
        body.insert("families".to_owned(), json!(args.family));
    }
    let report = measure(context, &args.measure, ("attacks", body)).await?;
    context.out.reply(&report, |out| measurement::attack(out, &report.value))?;
    Ok(if args.measure.gate { attack_gate(args, &report.value) } else { 0 })
}

fn body(args: &MeasureArgs) -> anyhow::Result<Map<String, Value>> {
    let mut body = Map::new();
    if let Some(version) = args.named.version {
        body.insert("version".to_owned(), json!(version));
    }
    if let Some(file) = &args.data {
        body.insert("cases".to_owned(), Value::Array(cases::read(file)?));
    }
    judges(&mut body, &args.judges);
    Ok(body)
}

async fn measure(
    context: &Context,
    args: &MeasureArgs,
    (operation, body): (&str, Map<String, Value>),
) -> anyhow::Result<Reply> {
    let junit = JunitFile::new(args.junit.as_deref())?;
    let verifier = args.named.verifier.as_str();
    let asked = context
        .with_client(async |client| {
            let reply = ask(context, client, (verifier, operation), body).await?;
            Ok(reply.well()?)
        })
        .await;
    if let Some(junit) = junit {
        let cases = match &asked {
            Ok(reply) => test_cases(operation, &reply.value),
            Err(error) => {
                vec![junit::case(&classname(operation), verifier, junit::of_error(error))]
            }
        };
        junit.write(&classname(operation).replace('.', " "), cases)?;
    }
    asked
}

/// Sends the request and shows how far it is; the reply is the report.
pub(super) async fn ask(
    context: &Context,
    client: &Client,
    (verifier, operation): (&str, &str),
    body: Map<String, Value>,
) -> Result<Reply, ClientError> {
    let call = Call::post(path(ROUTE, &[verifier, operation]), Value::Object(body)).within(LONGEST);
    let mut bar = CasesBar::new(context.out);
    let reply = client.watch(call, REPORT, |event| bar.show(event)).await;
    bar.finish();
    reply
}

/// The command, which has one letter less than its route.
fn classname(operation: &str) -> String {
    format!("verifiers.{}", operation.trim_end_matches('s'))
}

fn test_cases(operation: &str, report: &Value) -> Vec<quick_junit::TestCase> {
    let cases = report["cases"].as_array().into_iter().flatten();
    let case = |case: &Value| {
        let status = match measurement::side(case) {
            Side::Right => quick_junit::TestCaseStatus::success(),
            Side::Wrong => junit::failed("wrong", &measurement::case_line(case)),
            Side::Undecided => junit::unanswered("inconclusive", &measurement::case_line(case)),
        };
        junit::case(&classname(operation), &measurement::case_name(case), status)
    };
    cases.map(case).collect()
}

/// Without a threshold every case must be right.
fn test_gate(args: &TestVerifier, report: &Value) -> u8 {
    let figures = &report["figures"];
    if figures["judged"].as_u64().unwrap_or(0) == 0 {
        return UNDECIDED;
    }
    let share = |name: &str| figures[name]["value"].as_f64();
    let is_free = args.min_accuracy.is_none() && args.max_false_pass.is_none();
    let least = args.min_accuracy.or(is_free.then_some(1.0));
    let below = |least: f64| share("accuracy").map(|it| it < least);
    let above = |most: f64| share("false_pass_rate").map(|it| most < it);
    let missed = [least.map(below), args.max_false_pass.map(above)];
    let is_worse = report["compared"]["is_worse"] == true;
    if is_worse || missed.contains(&Some(Some(true))) {
        return NEGATIVE;
    }
    let is_open = is_free && figures["inconclusive"].as_u64().unwrap_or(0) != 0;
    if is_open || missed.contains(&Some(None)) { UNDECIDED } else { PASSED }
}

fn attack_gate(args: &AttackVerifier, report: &Value) -> u8 {
    let rate = report["figures"]["success_rate"]["value"].as_f64();
    match rate {
        None => UNDECIDED,
        Some(rate) if args.max_success.unwrap_or(0.0) < rate => NEGATIVE,
        Some(_) => PASSED,
    }
}
