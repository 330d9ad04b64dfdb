//! `jurat verifiers deploy`.

use serde_json::{Map, Value, json};

use super::{Context, ROUTE, measure, version_path};
use crate::{
    args::DeployVerifier,
    client::{Call, Client, Reply},
    commands::input,
    failure::{ERROR, Failure, sentence},
    output::{
        Chatter, Format, complain, measurement,
        table::{said, whole_text},
    },
};

pub(super) async fn run(context: &Context, args: &DeployVerifier) -> anyhow::Result<u8> {
    let mut body = input::object(&format!("`{}`", args.file.display()), &args.file)?;
    if let Some(token) = &args.expected_version_token {
        body.insert("expected_version_token".to_owned(), json!(token));
    }
    let call = Call::post(ROUTE, Value::Object(body))
        .with("idempotency-key", args.idempotency_key.as_deref());
    context.with_client(async |client| deploy(context, client, (args, call)).await).await
}

async fn deploy(
    context: &Context,
    client: &Client,
    (args, call): (&DeployVerifier, Call),
) -> anyhow::Result<u8> {
    let reply = client.send(call).await?.well()?;
    if context.out.format == Format::Text {
        context.out.text(&line(&reply.value))?;
        for warning in reply.value["warnings"].as_array().into_iter().flatten() {
            context.out.warn(&whole_text(warning));
        }
    }
    let before = if args.no_test { Before::Unknown } else { before(client, &reply.value).await };
    if !args.test && before == Before::Unknown {
        if context.out.format == Format::Json {
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
enum Before {
    /// There is none, or it was never tested.
    Unknown,
    Tested,
}

async fn before(client: &Client, deployed: &Value) -> Before {
    let version = deployed["version"].as_u64().and_then(|it| u32::try_from(it).ok());
    let before = version.and_then(|it| it.checked_sub(1)).filter(|before| *before != 0);
    let (Some(before), Some(id)) = (before, deployed["verifier_id"].as_str()) else {
        return Before::Unknown;
    };
    // A key that may deploy need not be one that may read.
    let reply = client.send(Call::get(version_path(id, Some(before)))).await;
    let shown = reply.ok().and_then(|reply| reply.well().ok());
    match shown {
        Some(shown) if !shown.value["measured"]["test"].is_null() => Before::Tested,
        Some(_) | None => Before::Unknown,
    }
}

/// On the cases of the version before where it has some, else on the examples of the new one.
async fn measured(
    context: &Context,
    client: &Client,
    (deployed, before): (&Value, Before),
) -> anyhow::Result<Value> {
    let mut body = Map::new();
    body.insert("version".to_owned(), deployed["version"].clone());
    if before == Before::Tested {
        body.insert("previous_cases".to_owned(), json!(true));
        body.insert("compare".to_owned(), json!(true));
    }
    let verifier = said(&deployed["verifier_id"]);
    Ok(measure::ask(context, client, (&verifier, "tests"), body).await?.well()?.value)
}

/// Standard output has the one line of the deploy, so people are told beside it.
fn tell(context: &Context, reply: &Reply, tested: anyhow::Result<Value>) -> anyhow::Result<()> {
    let out = context.out;
    if out.format == Format::Json {
        let mut body = reply.value.clone();
        body["test"] = match tested {
            Ok(report) => report,
            Err(error) => crate::failure::body(&error),
        };
        return Ok(out.data(&body.to_string())?);
    }
    match tested {
        Ok(_) if out.chatter == Chatter::Quiet => {}
        Ok(report) => complain(&measurement::test(out, &report)),
        Err(error) => {
            out.error(
                &format!("the version is deployed but could not be measured: {}", sentence(&error)),
                &error.downcast_ref::<Failure>().map(Failure::advice).unwrap_or_default(),
            );
        }
    }
    Ok(())
}
