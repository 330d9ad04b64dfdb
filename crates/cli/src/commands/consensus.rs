//! `jurat delegate`, `validate` and `factcheck`.

pub(crate) mod args;
mod request;

use jurat_core::code::ProblemCode;
use jurat_wire::api::events::FINAL;
use serde_json::{Value, json};

use self::request::RequestDraft;
use super::rounds::show;
use super::{
    CommandContext,
    shared::{gate, junit::JunitReport},
};
use crate::{
    args::{ApiVersionArg, DelegateArgs, FactcheckArgs, RequestArgs, ValidateArgs},
    client::{ApiCall, ApiClient, ApiReply, ClientError},
    failure::{self, CliFailure},
    output::{Output, OutputFormat, progress::RoundProgressDisplay},
};

pub(super) async fn delegate(context: &CommandContext, args: &DelegateArgs) -> anyhow::Result<u8> {
    let mut draft = RequestDraft::new(args.request.file.as_deref())?;
    draft.text("objective", args.objective.as_deref());
    draft.json("input", args.input.as_deref())?;
    draft.schema(args.schema.as_deref())?;
    draft.policy(&args.policy)?;
    if let Some(task_type) = &args.task_type {
        draft.set_in("policy", "task_type", json!(task_type))?;
    }
    run(context, "delegate", draft, ("objective", &args.request)).await
}

pub(super) async fn validate(context: &CommandContext, args: &ValidateArgs) -> anyhow::Result<u8> {
    let mut draft = RequestDraft::new(args.request.file.as_deref())?;
    draft.claim(args.claim.as_deref())?;
    draft.schema(args.schema.as_deref())?;
    draft.policy(&args.policy)?;
    run(context, "validate", draft, ("claim", &args.request)).await
}

pub(super) async fn factcheck(
    context: &CommandContext,
    args: &FactcheckArgs,
) -> anyhow::Result<u8> {
    if args.request.api == ApiVersionArg::V2 {
        return Err(CliFailure::usage("factcheck is not part of v2; use `--api v3`"));
    }
    let mut draft = RequestDraft::new(args.request.file.as_deref())?;
    draft.claim(args.claim.as_deref())?;
    draft.text("mode", args.mode.as_deref());
    run(context, "factcheck", draft, ("claim", &args.request)).await
}

async fn run(
    context: &CommandContext,
    operation: &str,
    mut draft: RequestDraft,
    (needed, args): (&str, &RequestArgs),
) -> anyhow::Result<u8> {
    draft.common(args)?;
    if args.min_confidence.is_some() && !args.gate && args.junit.is_none() {
        let text = "`--min-confidence` needs `--gate` or `--junit`; add one of them";
        return Err(CliFailure::usage(text));
    }
    if !draft.has(needed) {
        let text = format!("there is nothing to {operation}: add `--{needed}` or `--file`");
        return Err(CliFailure::usage(text));
    }
    let body = draft.body();
    let junit = JunitReport::new(operation, &body, args)?;
    let path = format!("/api/{}/{operation}", args.api.as_str());
    let call = ApiCall::post(path, body)
        .with("idempotency-key", args.idempotency_key.as_deref())
        .with("prefer", args.is_async.then_some("respond-async"));
    let reply = sent(context, call, args).await;
    if let Some(junit) = junit {
        junit.write(reply.as_ref())?;
    }
    let reply = reply?;
    if args.is_async && !reply.is_problem() {
        context.out.reply(&reply, |out| super::rounds::shown(out, &reply.value))?;
        let id = reply.value["round_id"].as_str().unwrap_or_default();
        context.out.note(&format!("wait for it with `jurat rounds show {id} --wait 60`"));
        return Ok(0);
    }
    // Disagreement under `fail_hard` is a problem to the API and an answer to a gate.
    if reply.is_problem() && is_disagreement(&reply.value) && args.gate {
        context.out.reply(&reply, |out| show::reply(out, &undecided(&reply.value)))?;
        return Ok(gate::exit_code(&reply.value, least(args)));
    }
    let reply = reply.success()?;
    context.out.reply(&reply, |out| show::reply(out, &reply.value))?;
    if let Some(wanted) = args.min_confidence.filter(|least| gate::is_below(&reply.value, *least)) {
        let wanted = wanted * 100.0;
        context.out.note(&format!(
            "inconclusive: the confidence is below `--min-confidence` ({wanted} %)"
        ));
    }
    Ok(if args.gate { gate::exit_code(&reply.value, least(args)) } else { 0 })
}

/// How sure an answer must be to be one.
pub(super) fn least(args: &RequestArgs) -> f64 {
    args.min_confidence.unwrap_or(gate::LEAST)
}

async fn sent(
    context: &CommandContext,
    call: ApiCall,
    args: &RequestArgs,
) -> anyhow::Result<ApiReply> {
    let client = Box::pin(ApiClient::connect(&context.config, context.out)).await?;
    if args.is_async && client.is_in_process() {
        client.close().await;
        let text = "`--async` needs a running server: start `jurat serve` first";
        return Err(CliFailure::usage(text));
    }
    let reply =
        if args.is_async { client.send(call).await } else { ask(&client, context.out, call).await };
    client.close().await;
    Ok(reply?)
}

pub(super) fn is_disagreement(body: &Value) -> bool {
    failure::code(body) == Some(ProblemCode::ConsensusDisagreement)
}

/// A problem body has a `status` of its own, which is no verdict.
pub(super) fn undecided(body: &Value) -> Value {
    let mut body = body.clone();
    body["verdict"] = Value::Null;
    body
}

/// Sends a request, and shows what the replicas do while they do it.
pub(crate) async fn ask(
    client: &ApiClient,
    out: Output,
    call: ApiCall,
) -> Result<ApiReply, ClientError> {
    if out.format == OutputFormat::Json {
        return client.send(call).await;
    }
    let mut progress = RoundProgressDisplay::new(out);
    let reply = client.watch(call, FINAL, |event| progress.show(event)).await;
    progress.finish();
    reply
}
