//! `jurat verifiers test` and `attack`.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{
    CommandContext, ROUTE,
    cases::{self, CaseNames},
    run::judges,
    threshold::{self, TestThresholds},
};
use super::{
    show_cases::CasesBar,
    show_measurement::{self, CaseResult},
};
use crate::{
    args::{AttackVerifierArgs, MeasureArgs, TestVerifierArgs},
    client::{ApiCall, ApiClient, ApiReply, ClientError, path},
    commands::shared::junit::{self, JunitFile},
};

/// The event that ends the stream: the report.
const REPORT: &str = "report";
/// Thousands of cases take hours; what takes longer has got stuck.
const LONGEST: Duration = Duration::from_hours(12);

pub(super) async fn test(context: &CommandContext, args: &TestVerifierArgs) -> anyhow::Result<u8> {
    let mut body = body(&args.measure);
    let names = match &args.data {
        Some(file) => {
            let (cases, names) = cases::read(file)?;
            body.insert("cases".to_owned(), Value::Array(cases));
            names
        }
        None if args.previous_cases => CaseNames::Known,
        None => CaseNames::Examples,
    };
    for (name, is_set) in [("previous_cases", args.previous_cases), ("compare", args.compare)] {
        if is_set {
            body.insert(name.to_owned(), json!(true));
        }
    }
    let report = measure(context, &args.measure, ("tests", body), &names).await?;
    context.out.reply(&report, |out| show_measurement::test(out, &names.put(&report.value)))?;
    if args.compare && report.value["compared"].is_null() {
        context.out.note(match report.value["version"].as_u64() {
            Some(1) => "there is nothing to compare with: version 1 is the first",
            _ => "there is nothing to compare with: the previous version has different fields",
        });
    }
    let thresholds =
        TestThresholds { min_accuracy: args.min_accuracy, max_false_pass: args.max_false_pass };
    Ok(if args.measure.gate { threshold::test(thresholds, &report.value) } else { 0 })
}

pub(super) async fn attack(
    context: &CommandContext,
    args: &AttackVerifierArgs,
) -> anyhow::Result<u8> {
    let mut body = body(&args.measure);
    if !args.family.is_empty() {
        body.insert("families".to_owned(), json!(args.family));
    }
    let report = measure(context, &args.measure, ("attacks", body), &CaseNames::Known).await?;
    context.out.reply(&report, |out| show_measurement::attack(out, &report.value))?;
    let most = args.max_success.unwrap_or(0.0);
    Ok(if args.measure.gate { threshold::attack(most, &report.value) } else { 0 })
}

fn body(args: &MeasureArgs) -> Map<String, Value> {
    let mut body = Map::new();
    if let Some(version) = args.named.version {
        body.insert("version".to_owned(), json!(version));
    }
    if let Some(timeout) = args.timeout_ms {
        body.insert("timeout_ms".to_owned(), json!(timeout));
    }
    judges(&mut body, &args.judges);
    body
}

async fn measure(
    context: &CommandContext,
    args: &MeasureArgs,
    (operation, body): (&str, Map<String, Value>),
    names: &CaseNames,
) -> anyhow::Result<ApiReply> {
    let junit = JunitFile::new(args.junit.as_deref())?;
    let verifier = args.named.verifier.as_str();
    let asked = context
        .with_client(async |client| {
            let reply = ask(context, client, (verifier, operation), body).await?;
            Ok(reply.success()?)
        })
        .await;
    if let Some(junit) = junit {
        let cases = match &asked {
            Ok(reply) => test_cases(operation, &names.put(&reply.value)),
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
    context: &CommandContext,
    client: &ApiClient,
    (verifier, operation): (&str, &str),
    body: Map<String, Value>,
) -> Result<ApiReply, ClientError> {
    let call =
        ApiCall::post(path(ROUTE, &[verifier, operation]), Value::Object(body)).within(LONGEST);
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
        let status = match show_measurement::side(case) {
            CaseResult::Right => quick_junit::TestCaseStatus::success(),
            CaseResult::Wrong => junit::failed("wrong", &show_measurement::case_line(case)),
            CaseResult::Undecided => {
                junit::unanswered("inconclusive", &show_measurement::case_line(case))
            }
        };
        junit::case(&classname(operation), &show_measurement::case_name(case), status)
    };
    cases.map(case).collect()
}
