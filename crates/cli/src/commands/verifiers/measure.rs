//! `jurat verifiers test` and `attack`.

use std::time::Duration;

use jurat_client::verifiers::{self, LAST_EVENT};
use jurat_wire::api::verifier_tests::{
    AttackVerifierDraft, CaseBody, MeasurementScores, ReportBody, TestVerifierDraft,
};

use super::{
    CommandContext,
    cases::{self, CaseNames},
    threshold::{self, TestThresholds},
};
use super::{
    show_cases::CasesBar,
    show_measurement::{self, CaseResult},
};
use crate::{
    args::{AttackVerifierArgs, MeasureArgs, TestVerifierArgs},
    client::{ApiClient, Call, ClientError, Reply},
    commands::shared::{
        given,
        junit::{self, JunitFile},
    },
};

/// Thousands of cases take hours; a measurement that takes longer is stuck.
const LONGEST: Duration = Duration::from_hours(12);

pub(super) async fn test(context: &CommandContext, args: &TestVerifierArgs) -> anyhow::Result<u8> {
    let (cases, names) = match &args.data {
        Some(file) => {
            let (cases, names) = cases::read(file)?;
            (Some(cases), names)
        }
        None if args.previous_cases => (None, CaseNames::Known),
        None => (None, CaseNames::Examples),
    };
    let MeasureArgs { named, judges, timeout_ms, .. } = &args.measure;
    let draft = TestVerifierDraft {
        cases,
        previous_cases: args.previous_cases.then_some(true),
        version: named.version,
        replicas: judges.count(),
        judges: given(&judges.judge),
        fresh: judges.fresh.then_some(true),
        compare: args.compare.then_some(true),
        timeout_ms: *timeout_ms,
    };
    let call = verifiers::test(&named.verifier, &draft);
    let kind = MeasurementKind { class: "verifiers.test", names: &names };
    let report = measure(context, &args.measure, call, kind).await?;
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
    let MeasureArgs { named, judges, timeout_ms, .. } = &args.measure;
    let draft = AttackVerifierDraft {
        families: given(&args.family),
        version: named.version,
        replicas: judges.count(),
        judges: given(&judges.judge),
        fresh: judges.fresh.then_some(true),
        timeout_ms: *timeout_ms,
    };
    let call = verifiers::attack(&named.verifier, &draft);
    let kind = MeasurementKind { class: "verifiers.attack", names: &CaseNames::Known };
    let report = measure(context, &args.measure, call, kind).await?;
    context.out.reply(&report, |out| show_measurement::attack(out, &report.value))?;
    let most = args.max_success.unwrap_or(0.0);
    let scores = MeasurementScores::read(&report.value.figures);
    Ok(if args.measure.gate { threshold::attack(most, &scores) } else { 0 })
}

/// The kind of a measurement, and the names of its cases.
#[derive(Debug, Clone, Copy)]
struct MeasurementKind<'a> {
    /// The command as the class of a test case.
    class: &'static str,
    names: &'a CaseNames,
}

async fn measure(
    context: &CommandContext,
    args: &MeasureArgs,
    call: Call<ReportBody<'static>>,
    kind: MeasurementKind<'_>,
) -> anyhow::Result<Reply<ReportBody<'static>>> {
    let MeasurementKind { class, names } = kind;
    let junit = JunitFile::new(args.junit.as_deref())?;
    let verifier = args.named.verifier.as_str();
    let asked = context.with_client(async |client| Ok(ask(context, client, call).await?)).await;
    if let Some(junit) = junit {
        let cases = match &asked {
            Ok(reply) => test_cases(class, &names.put(&reply.value)),
            Err(error) => {
                vec![junit::case(class, verifier, junit::of_error(error))]
            }
        };
        junit.write(&class.replace('.', " "), cases)?;
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

fn test_cases(class: &str, report: &ReportBody<'_>) -> Vec<quick_junit::TestCase> {
    let case = |case: &CaseBody<'_>| {
        let status = match show_measurement::side(case) {
            CaseResult::Right => quick_junit::TestCaseStatus::success(),
            CaseResult::Wrong => junit::failed("wrong", &show_measurement::case_line(case)),
            CaseResult::Undecided => {
                junit::unanswered("inconclusive", &show_measurement::case_line(case))
            }
        };
        junit::case(class, &show_measurement::case_name(case), status)
    };
    report.cases.iter().map(case).collect()
}
