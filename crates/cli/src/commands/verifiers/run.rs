//! `jurat verifiers run`.

use std::collections::BTreeMap;

use jurat_client::verifiers;
use jurat_core::verifier::{VerifierRef, VerifierSelector};
use jurat_wire::api::verifier_runs::{RunVerifierDraft, VerifierRunBody};
use quick_junit::{TestCase, TestCaseStatus};

use super::CommandContext;
use super::show_run;
use crate::{
    args::{RunVerifierArgs, VerifierInputArgs},
    client::Reply,
    commands::shared::{
        gate::{LEAST, NEGATIVE, PASSED, UNDECIDED, is_below},
        given, input,
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
    let call = verifiers::run(&args.named.verifier, &draft(args)?)
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

fn draft(args: &RunVerifierArgs) -> anyhow::Result<RunVerifierDraft> {
    let from = &args.provenance;
    Ok(RunVerifierDraft {
        inputs: Some(inputs(&args.inputs)?),
        media_url: args.inputs.media_url.clone(),
        version: args.named.version,
        workflow_id: from.workflow_id.clone(),
        workflow_version: from.workflow_version,
        workflow_ref: from.workflow_ref.clone(),
        run_id: from.run_id.clone(),
        replicas: args.judges.count(),
        judges: given(&args.judges.judge),
        fresh: args.judges.fresh.then_some(true),
        commit_first: args.commit_first.then_some(true),
        timeout_ms: args.timeout_ms,
        ..RunVerifierDraft::default()
    })
}

fn inputs(args: &VerifierInputArgs) -> anyhow::Result<BTreeMap<String, String>> {
    let mut inputs = match (&args.inputs_json, &args.inputs_file) {
        (Some(text), _) => input::texts_of("`--inputs-json`", text.as_bytes())?,
        (None, Some(file)) => {
            let name = format!("`--inputs-file {}`", file.display());
            input::texts_of(&name, &input::whole(&name, file, input::LARGEST)?)?
        }
        (None, None) => BTreeMap::new(),
    };
    inputs.extend(args.input.iter().cloned());
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
