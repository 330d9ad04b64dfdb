//! `jurat verifiers test` and `attack`.

use std::time::Duration;

use jurat_client::verifiers::{self, LAST_EVENT, MeasureKind};
use jurat_wire::api::verifier_tests::{CaseBody, MeasurementScores, ReportBody};
use serde_json::{Map, Value, json};

use super::{
    CommandContext,
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
    client::{ApiClient, Call, ClientError, Reply},
    commands::shared::junit::{self, JunitFile},
};

/// Thousands of cases take hours; a measurement that takes longer is stuck.
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
    let kind = MeasurementKind { measurement: MeasureKind::Test, names: &names };
    let report = measure(context, &args.measure, body, kind).await?;
    context.out.reply(&report, |out| show_measurement::test(out, &names.put(&report.value)))?;
    if args.compare && report.value.compared.is_none() {
        context.out.note(match report.value.version {
            1 => "there is nothing to compare with: version 1 is the first",
            _ => "there is nothing to compare with: the previous version has different fields",
        });
    }
    let thresholds =
        TestThresholds { min_accuracy: args.min_accuracy, max_false_pass: args.max_false_pass };
    let is_worse = report.value.compared.as_ref().is_some_and(|compared| compared.is_worse);
    let scores = MeasurementScores::read(&report.value.figures);
    Ok(if args.measure.gate { threshold::test(thresholds, &scores, is_worse) } else { 0 })
}

pub(super) async fn attack(
    context: &CommandContext,
    args: &AttackVerifierArgs,
) -> anyhow::Result<u8> {
    let mut body = body(&args.measure);
    if !args.family.is_empty() {
        body.insert("families".to_owned(), json!(args.family));
    }
    let kind = MeasurementKind { measurement: MeasureKind::Attack, names: &CaseNames::Known };
    let report = measure(context, &args.measure, body, kind).await?;
    context.out.reply(&report, |out| show_measurement::attack(out, &report.value))?;
    let most = args.max_success.unwrap_or(0.0);
    let scores = MeasurementScores::read(&report.value.figures);
    Ok(if args.measure.gate { threshold::attack(most, &scores) } else { 0 })
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

/// The kind of a measurement, and the names of its cases.
#[derive(Debug, Clone, Copy)]
struct MeasurementKind<'a> {
    measurement: MeasureKind,
    names: &'a CaseNames,
}

async fn measure(
    context: &CommandContext,
    args: &MeasureArgs,
    body: Map<String, Value>,
    kind: MeasurementKind<'_>,
) -> anyhow::Result<Reply<ReportBody<'static>>> {
    let MeasurementKind { measurement, names } = kind;
    let junit = JunitFile::new(args.junit.as_deref())?;
    let verifier = args.named.verifier.as_str();
    let call = verifiers::measure(verifier, measurement, &Value::Object(body));
    let asked = context.with_client(async |client| Ok(ask(context, client, call).await?)).await;
    if let Some(junit) = junit {
        let cases = match &asked {
            Ok(reply) => test_cases(measurement, &names.put(&reply.value)),
            Err(error) => {
                vec![junit::case(classname(measurement), verifier, junit::of_error(error))]
            }
        };
        junit.write(&classname(measurement).replace('.', " "), cases)?;
    }
    asked
}

/// Sends the call and shows its progress; the reply is the report.
pub(super) async fn ask(
    context: &CommandContext,
    client: &ApiClient,
    call: Call<ReportBody<'static>>,
) -> Result<Reply<ReportBody<'static>>, ClientError> {
    let mut bar = CasesBar::new(context.out);
    let call = call.within(LONGEST);
    let reply = client.watch(call, LAST_EVENT, |event| bar.show(event)).await;
    bar.finish();
    reply
}

/// The command as the class of a test case.
const fn classname(measurement: MeasureKind) -> &'static str {
    match measurement {
        MeasureKind::Test => "verifiers.test",
        MeasureKind::Attack => "verifiers.attack",
    }
}

fn test_cases(measurement: MeasureKind, report: &ReportBody<'_>) -> Vec<quick_junit::TestCase> {
    let case = |case: &CaseBody<'_>| {
        let status = match show_measurement::side(case) {
            CaseResult::Right => quick_junit::TestCaseStatus::success(),
            CaseResult::Wrong => junit::failed("wrong", &show_measurement::case_line(case)),
            CaseResult::Undecided => {
                junit::unanswered("inconclusive", &show_measurement::case_line(case))
            }
        };
        junit::case(classname(measurement), &show_measurement::case_name(case), status)
    };
    report.cases.iter().map(case).collect()
}
