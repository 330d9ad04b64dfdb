//! `jurat verifiers deploy`.

use jurat_client::verifiers;
use jurat_wire::api::{
    verifier_tests::{ReportBody, TestVerifierDraft},
    verifiers::DeployedVerifier,
};
use serde_json::{Value, json};

use super::show_measurement;
use super::{CommandContext, measure};
use crate::{
    args::DeployVerifierArgs,
    client::{ApiClient, Reply},
    commands::shared::input,
    failure::{self, ERROR, sentence},
    output::{OutputFormat, Verbosity, complain, table::whole_text},
};

pub(super) async fn run(context: &CommandContext, args: &DeployVerifierArgs) -> anyhow::Result<u8> {
    // The verifier is a user's document.
    let mut body = input::object(&format!("`{}`", args.file.display()), &args.file)?;
    if let Some(token) = &args.expected_version_token {
        body.insert("expected_version_token".to_owned(), json!(token));
    }
    let body = Value::Object(body);
    context.with_client(async |client| deploy(context, client, args, &body).await).await
}

async fn deploy(
    context: &CommandContext,
    client: &ApiClient,
    args: &DeployVerifierArgs,
    body: &Value,
) -> anyhow::Result<u8> {
    let call = verifiers::deploy(body).idempotency_key(args.idempotency_key.as_deref());
    let reply = client.send(call).await?;
    if context.out.format == OutputFormat::Text {
        context.out.text(&line(&reply.value))?;
        for warning in reply.value.warnings.iter() {
            context.out.warn(&whole_text(warning));
        }
    }
    let before =
        if args.no_test { PriorVersion::Unknown } else { before(client, &reply.value).await };
    if !args.test && before == PriorVersion::Unknown {
        if context.out.format == OutputFormat::Json {
            context.out.reply(&reply, |_| String::new())?;
        }
        return Ok(0);
    }
    let tested = measured(context, client, &reply.value, before).await;
    let is_failed = tested.is_err();
    tell(context, &reply, tested)?;
    // The version is deployed; a failed test is an error only if the user asked for it.
    Ok(if is_failed && args.test { ERROR } else { 0 })
}

fn line(deployed: &DeployedVerifier<'_>) -> String {
    format!(
        "Deployed {} v{} (verifier_id={}, version_token={})",
        whole_text(&deployed.name),
        deployed.version,
        whole_text(&deployed.verifier_id),
        whole_text(&deployed.version_token)
    )
}

/// Whether the new version can be compared with the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PriorVersion {
    /// There is no previous version, or no test of it is known.
    Unknown,
    Tested,
}

async fn before(client: &ApiClient, deployed: &DeployedVerifier<'_>) -> PriorVersion {
    let before = deployed.version.checked_sub(1).filter(|before| *before != 0);
    let Some(before) = before else { return PriorVersion::Unknown };
    // A key that may deploy a verifier may lack the right to read it.
    let shown = client.send(verifiers::show(&deployed.verifier_id, Some(before))).await.ok();
    let measured = shown.and_then(|shown| shown.value.measured);
    if measured.is_some_and(|measured| measured.test.is_some()) {
        PriorVersion::Tested
    } else {
        PriorVersion::Unknown
    }
}

/// Measures on the cases of the previous version if it was tested, otherwise on the new examples.
async fn measured(
    context: &CommandContext,
    client: &ApiClient,
    deployed: &DeployedVerifier<'_>,
    before: PriorVersion,
) -> anyhow::Result<Reply<ReportBody<'static>>> {
    let again = (before == PriorVersion::Tested).then_some(true);
    let draft = TestVerifierDraft {
        version: Some(deployed.version),
        previous_cases: again,
        compare: again,
        ..TestVerifierDraft::default()
    };
    let call = verifiers::test(&deployed.verifier_id, &draft);
    Ok(measure::ask(context, client, call).await?)
}

/// Reports the measurement to people on standard error: standard output has one line for scripts.
fn tell(
    context: &CommandContext,
    reply: &Reply<DeployedVerifier<'static>>,
    tested: anyhow::Result<Reply<ReportBody<'static>>>,
) -> anyhow::Result<()> {
    let out = context.out;
    if out.format == OutputFormat::Json {
        let test = match tested {
            Ok(report) => report.document(),
            Err(error) => failure::body(&error),
        };
        let mut body = reply.document();
        if let Some(members) = body.as_object_mut() {
            members.insert("test".to_owned(), test);
        }
        return Ok(out.data(&body.to_string())?);
    }
    match tested {
        Ok(_) if out.chatter == Verbosity::Quiet => {}
        Ok(report) => complain(&show_measurement::test(out, &report.value)),
        Err(error) => {
            out.error(
                &format!("the version is deployed but could not be measured: {}", sentence(&error)),
                &failure::advice(&error),
            );
        }
    }
    Ok(())
}
