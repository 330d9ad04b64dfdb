//! `jurat verifiers run`.

use jurat_client::verifiers;
use jurat_core::verifier::{VerifierRef, VerifierSelector};
use jurat_wire::api::verifier_runs::VerifierRunBody;
use quick_junit::{TestCase, TestCaseStatus};
use serde_json::{Map, Value, json};

use super::CommandContext;
use super::show_run;
use crate::{
    args::{JudgeArgs, RunVerifierArgs, VerifierInputArgs},
    client::Reply,
    commands::shared::{
        gate::{LEAST, NEGATIVE, PASSED, UNDECIDED, is_below},
        input,
        junit::{self, JunitFile, property},
    },
    failure::{CliFailure, ERROR},
    output::Output,
};

pub(super) async fn run(context: &CommandContext, args: &RunVerifierArgs) -> anyhow::Result<u8> {
    if args.anonymous {
        check_anonymous(args)?;
    }
    let junit = JunitFile::new(args.junit.as_deref())?;
    let call = verifiers::run(&args.named.verifier, &body(args)?)
        .idempotency_key(args.idempotency_key.as_deref());
    let reply = if args.anonymous {
        context.send_anonymously(call).await
    } else {
        context.send(call).await
    };
    if let Some(junit) = junit {
        junit.write("verifiers run", [case(&args.named.verifier, reply.as_ref())])?;
    }
    let reply = reply?;
    context.out.reply(&reply, |out| show_run::result(out, &reply.value))?;
    let run = &reply.value;
    let exit_code = match run.passed {
        Some(_) if args.gate && is_below(confidence(run), LEAST) => UNDECIDED,
        Some(true) => PASSED,
        Some(false) if args.gate => NEGATIVE,
        Some(false) => 0,
        None if args.gate => UNDECIDED,
        None => ERROR,
    };
    Ok(exit_code)
}

/// A visitor cannot use names, which belong to accounts, nor idempotency keys.
fn check_anonymous(args: &RunVerifierArgs) -> anyhow::Result<()> {
    let is_named = VerifierRef::parse(&args.named.verifier).is_ok_and(|it| {
        matches!(it.which, VerifierSelector::Name(_) | VerifierSelector::Of { .. })
    });
    if is_named {
        return Err(CliFailure::usage(
            "`--anonymous` takes the id of a verifier or `system:` and a name, because other names belong to accounts and no key is sent",
        ));
    }
    if args.idempotency_key.is_some() {
        return Err(CliFailure::usage(
            "`--idempotency-key` needs an API key; leave out `--anonymous`",
        ));
    }
    Ok(())
}

fn body(args: &RunVerifierArgs) -> anyhow::Result<Value> {
    let mut body = Map::new();
    body.insert("inputs".to_owned(), Value::Object(inputs(&args.inputs)?));
    judges(&mut body, &args.judges);
    let from = &args.provenance;
    for (name, value) in [
        ("media_url", json!(args.inputs.media_url)),
        ("version", json!(args.named.version)),
        ("workflow_id", json!(from.workflow_id)),
        ("workflow_version", json!(from.workflow_version)),
        ("workflow_ref", json!(from.workflow_ref)),
        ("run_id", json!(from.run_id)),
        ("commit_first", json!(args.commit_first.then_some(true))),
        ("timeout_ms", json!(args.timeout_ms)),
    ] {
        if !value.is_null() {
            body.insert(name.to_owned(), value);
        }
    }
    Ok(Value::Object(body))
}

/// The judges of a run, a test or an attack.
pub(super) fn judges(body: &mut Map<String, Value>, args: &JudgeArgs) {
    if let Some(replicas) = args.replicas.as_deref().and_then(|it| it.parse::<u8>().ok()) {
        body.insert("replicas".to_owned(), json!(replicas));
    }
    if !args.judge.is_empty() {
        body.insert("judges".to_owned(), json!(args.judge));
    }
    if args.fresh {
        body.insert("fresh".to_owned(), json!(true));
    }
}

fn inputs(args: &VerifierInputArgs) -> anyhow::Result<Map<String, Value>> {
    let mut inputs = match (&args.inputs_json, &args.inputs_file) {
        (Some(text), _) => input::object_of("`--inputs-json`", text.as_bytes())?,
        (None, Some(file)) => input::object(&format!("`--inputs-file {}`", file.display()), file)?,
        (None, None) => Map::new(),
    };
    for (name, value) in &args.input {
        inputs.insert(name.clone(), json!(value));
    }
    Ok(inputs)
}

fn confidence(run: &VerifierRunBody<'_>) -> Option<f64> {
    run.confidence.value().copied()
}

/// The run as a test case, with the result that the gate would return.
fn case(name: &str, reply: Result<&Reply<VerifierRunBody<'static>>, &anyhow::Error>) -> TestCase {
    let run = match reply {
        Ok(reply) => &reply.value,
        Err(error) => return junit::case("verifiers.run", name, junit::of_error(error)),
    };
    let text = show_run::result(Output::plain(), run);
    let word = show_run::verdict(run);
    let status = match run.passed {
        Some(_) if is_below(confidence(run), LEAST) => junit::unanswered("low_confidence", &text),
        Some(true) => TestCaseStatus::success(),
        Some(false) => junit::failed(word, &text),
        None => junit::unanswered(word, &text),
    };
    let mut case = junit::case("verifiers.run", name, status);
    case.set_time(std::time::Duration::from_millis(run.duration_ms));
    let properties = [
        property("verifier_run_id", &run.verifier_run_id),
        property("verifier_id", &run.verifier_id),
        property("version", &run.version),
        property("round_id", &run.round_id),
        property("receipt_id", &run.receipt_id),
        property("agreement", &run.agreement),
        property("confidence", &run.confidence),
        property("cost_usd", &run.cost_usd),
    ];
    case.add_properties(properties.into_iter().flatten());
    case.set_system_out(junit::clean(&text));
    case
}
