//! `jurat verifiers deploy`.

use serde_json::{Map, Value, json};

use super::show_measurement;
use super::{CommandContext, ROUTE, measure, version_path};
use crate::{
    args::DeployVerifierArgs,
    client::{ApiCall, ApiClient, ApiReply},
    commands::shared::input,
    failure::{CliFailure, ERROR, sentence},
    output::{
        OutputFormat, Verbosity, complain,
        table::{said, whole_text},
    },
};

pub(super) async fn run(context: &CommandContext, args: &DeployVerifierArgs) -> anyhow::Result<u8> {
    let mut body = input::object(&format!("`{}`", args.file.display()), &args.file)?;
    if let Some(token) = &args.expected_version_token {
        body.insert("expected_version_token".to_owned(), json!(token));
    }
    let call = ApiCall::post(ROUTE, Value::Object(body))
        .with("idempotency-key", args.idempotency_key.as_deref());
    context.with_client(async |client| deploy(context, client, (args, call)).await).await
}

async fn deploy(
    context: &CommandContext,
    client: &ApiClient,
    (args, call): (&DeployVerifierArgs, ApiCall),
) -> anyhow::Result<u8> {
    let reply = client.send(call).await?.success()?;
    if context.out.format == OutputFormat::Text {
        context.out.text(&line(&reply.value))?;
        for warning in reply.value["warnings"].as_array().into_iter().flatten() {
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
    let tested = measured(context, client, (&reply.value, before)).await;
    let is_failed = tested.is_err();
    tell(context, &reply, tested)?;
    // The version is deployed; only who asked for the test is told that there was none.
    Ok(if is_failed && args.test { ERROR } else { 0 })
}

fn line(body: &Value) -> String {
    let text = |name: &str| whole_text(&body[name]);
    format!(
        "Deployed {} v{} (verifier_id={}, version_token={})",
        text("name"),
        text("version"),
        text("verifier_id"),
        text("version_token")
    )
}

/// What is known of the version before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PriorVersion {
    /// There is none, or it was never tested.
    Unknown,
    Tested,
}

async fn before(client: &ApiClient, deployed: &Value) -> PriorVersion {
    let version = deployed["version"].as_u64().and_then(|it| u32::try_from(it).ok());
    let before = version.and_then(|it| it.checked_sub(1)).filter(|before| *before != 0);
    let (Some(before), Some(id)) = (before, deployed["verifier_id"].as_str()) else {
        return PriorVersion::Unknown;
    };
    // A key that may deploy need not be one that may read.
    let reply = client.send(ApiCall::get(version_path(id, Some(before)))).await;
    let shown = reply.ok().and_then(|reply| reply.success().ok());
    match shown {
        Some(shown) if !shown.value["measured"]["test"].is_null() => PriorVersion::Tested,
        Some(_) | None => PriorVersion::Unknown,
    }
}

/// On the cases of the version before where it has some, else on the examples of the new one.
async fn measured(
    context: &CommandContext,
    client: &ApiClient,
    (deployed, before): (&Value, PriorVersion),
) -> anyhow::Result<Value> {
    let mut body = Map::new();
    body.insert("version".to_owned(), deployed["version"].clone());
    if before == PriorVersion::Tested {
        body.insert("previous_cases".to_owned(), json!(true));
        body.insert("compare".to_owned(), json!(true));
    }
    let verifier = said(&deployed["verifier_id"]);
    Ok(measure::ask(context, client, (&verifier, "tests"), body).await?.success()?.value)
}

/// Standard output has the one line of the deploy, so people are told beside it.
fn tell(
    context: &CommandContext,
    reply: &ApiReply,
    tested: anyhow::Result<Value>,
) -> anyhow::Result<()> {
    let out = context.out;
    if out.format == OutputFormat::Json {
        let mut body = reply.value.clone();
        body["test"] = match tested {
            Ok(report) => report,
            Err(error) => crate::failure::body(&error),
        };
        return Ok(out.data(&body.to_string())?);
    }
    match tested {
        Ok(_) if out.chatter == Verbosity::Quiet => {}
        Ok(report) => complain(&show_measurement::test(out, &report)),
        Err(error) => {
            out.error(
                &format!("the version is deployed but could not be measured: {}", sentence(&error)),
                &error.downcast_ref::<CliFailure>().map(CliFailure::advice).unwrap_or_default(),
            );
        }
    }
    Ok(())
}
