//! `jurat delegate`, `validate` and `factcheck`.

pub(crate) mod args;
mod request;

use jurat_client::rounds::{self, AnyRoundReply};
use jurat_core::code::ProblemCode;
use jurat_wire::{
    api::{
        consensus_request::{CandidateFieldsDraft, DelegateDraft, FactcheckDraft, ValidateDraft},
        events::FINAL,
        policy_request::FactcheckPolicyDraft,
        rounds::RoundBody,
    },
    problem::ProblemBody,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::request::RequestDocument;
use super::rounds::show::{self, RoundView};
use super::{
    CommandContext,
    shared::{gate, junit::JunitReport},
};
use crate::{
    args::{ApiVersionArg, DelegateArgs, FactcheckArgs, RequestArgs, ValidateArgs},
    client::{ApiClient, Call, ClientError, Refusal, Reply},
    failure::{CliFailure, refusal},
    output::{Output, OutputFormat, progress::RoundProgressDisplay},
};

pub(super) async fn delegate(context: &CommandContext, args: &DelegateArgs) -> anyhow::Result<u8> {
    let flags = DelegateDraft {
        objective: args.objective.clone().unwrap_or_default(),
        input: request::flag("input", args.input.as_deref())?,
        policy: Some(request::policy(&args.policy, &args.request, args.task_type.as_deref())?),
        job: request::job(&args.request, args.schema.as_deref())?,
        round: request::round(&args.request)?,
    };
    let is_given = args.objective.is_some();
    let job = JobCommand { kind: "delegate", needs: "objective", is_given };
    run(context, job, &flags, &args.request).await
}

pub(super) async fn validate(context: &CommandContext, args: &ValidateArgs) -> anyhow::Result<u8> {
    let policy = request::policy(&args.policy, &args.request, None)?;
    let flags = ValidateDraft {
        claim: request::claim(args.claim.as_deref())?,
        candidate: CandidateFieldsDraft { policy: Some(policy), ..CandidateFieldsDraft::default() },
        job: request::job(&args.request, args.schema.as_deref())?,
        round: request::round(&args.request)?,
    };
    let is_given = args.claim.is_some();
    let job = JobCommand { kind: "validate", needs: "claim", is_given };
    run(context, job, &flags, &args.request).await
}

pub(super) async fn factcheck(
    context: &CommandContext,
    args: &FactcheckArgs,
) -> anyhow::Result<u8> {
    if args.request.api == ApiVersionArg::V2 {
        return Err(CliFailure::usage("factcheck is not part of v2; use `--api v3`"));
    }
    let routing = request::routing(&args.request);
    let flags = FactcheckDraft {
        claim: request::claim(args.claim.as_deref())?,
        mode: args.mode.clone(),
        policy: Some(FactcheckPolicyDraft { routing, ..FactcheckPolicyDraft::default() }),
        job: request::job(&args.request, None)?,
        round: request::round(&args.request)?,
    };
    let is_given = args.claim.is_some();
    let job = JobCommand { kind: "factcheck", needs: "claim", is_given };
    run(context, job, &flags, &args.request).await
}

/// A command that opens a round.
#[derive(Debug, Clone, Copy)]
struct JobCommand {
    kind: &'static str,
    /// The required field of the request.
    needs: &'static str,
    /// Whether a flag gives the required field, so that the file need not.
    is_given: bool,
}

impl JobCommand {
    /// The body of the request: the file, overridden by the flags.
    fn body(self, flags: &impl Serialize, args: &RequestArgs) -> anyhow::Result<Value> {
        let Self { kind, needs, is_given } = self;
        let mut document = RequestDocument::new(args.file.as_deref())?;
        if let Value::Object(mut flags) = json!(flags) {
            flags.retain(|name, _| is_given || name != needs);
            document.override_with(flags)?;
        }
        if document.has(needs) {
            return Ok(document.body());
        }
        let text = format!("there is nothing to {kind}: add `--{needs}` or `--file`");
        Err(CliFailure::usage(text))
    }
}

/// A round that is still open, or the result of one that has ended.
#[derive(Debug)]
pub(super) enum RoundAnswer {
    Open(Box<Reply<RoundBody<'static>>>),
    Ended(Box<Reply<AnyRoundReply>>),
}

async fn run(
    context: &CommandContext,
    job: JobCommand,
    flags: &impl Serialize,
    args: &RequestArgs,
) -> anyhow::Result<u8> {
    if args.min_confidence.is_some() && !args.gate && args.junit.is_none() {
        let text = "`--min-confidence` needs `--gate` or `--junit`; add one of them";
        return Err(CliFailure::usage(text));
    }
    let (kind, body) = (job.kind, job.body(flags, args)?);
    let junit = JunitReport::new(kind, &body, args)?;
    let (api, key) = (args.api.as_str(), args.idempotency_key.as_deref());
    let answer = if args.is_async {
        opened(context, rounds::open_async(api, kind, &body).idempotency_key(key)).await
    } else {
        ended(context, rounds::open(api, kind, &body).idempotency_key(key)).await
    };
    if let Some(junit) = junit {
        junit.write(&answer)?;
    }
    match answer {
        Ok(RoundAnswer::Open(round)) => {
            context.out.reply(&round, |out| super::rounds::shown(out, &round.value))?;
            let id = &round.value.round_id;
            context.out.note(&format!("wait for it with `jurat rounds show {id} --wait 60`"));
            Ok(0)
        }
        Ok(RoundAnswer::Ended(reply)) => {
            let round = RoundView::from(&reply.value);
            context.out.reply(&reply, |out| show::reply(out, &round))?;
            note_confidence(context.out, args, &round);
            Ok(if args.gate { gate::exit_code(&round, least(args)) } else { 0 })
        }
        Err(error) => {
            // Disagreement under `fail_hard` is a problem for the API, but an answer for a gate.
            let Some(split) = disagreement(&error).filter(|_| args.gate) else {
                return Err(error);
            };
            let round = RoundView::from(split.problem);
            context.out.body(&split.refusal.bytes, |out| show::reply(out, &round))?;
            Ok(gate::exit_code(&round, least(args)))
        }
    }
}

fn note_confidence(out: Output, args: &RequestArgs, round: &RoundView<'_>) {
    let wanted = args.min_confidence.filter(|least| gate::is_below(round.confidence, *least));
    if let Some(wanted) = wanted {
        let wanted = wanted * 100.0;
        out.note(&format!("inconclusive: the confidence is below `--min-confidence` ({wanted} %)"));
    }
}

/// Minimum confidence of an answer.
pub(super) fn least(args: &RequestArgs) -> f64 {
    args.min_confidence.unwrap_or(gate::LEAST)
}

async fn opened(
    context: &CommandContext,
    call: Call<RoundBody<'static>>,
) -> anyhow::Result<RoundAnswer> {
    let round = context
        .with_client(async |client| {
            if client.is_in_process() {
                let text = "`--async` needs a running server: start `jurat serve` first";
                return Err(CliFailure::usage(text));
            }
            Ok(client.send(call).await?)
        })
        .await?;
    Ok(RoundAnswer::Open(Box::new(round)))
}

async fn ended(context: &CommandContext, call: Call<AnyRoundReply>) -> anyhow::Result<RoundAnswer> {
    let reply =
        context.with_client(async |client| Ok(ask(client, context.out, call).await?)).await?;
    Ok(RoundAnswer::Ended(Box::new(reply)))
}

/// A round that was refused because its replicas do not agree.
pub(super) struct Disagreement<'a> {
    pub(super) refusal: &'a Refusal,
    pub(super) problem: &'a ProblemBody<'static>,
}

pub(super) fn disagreement(error: &anyhow::Error) -> Option<Disagreement<'_>> {
    let refusal = refusal(error)?;
    let is_it = refusal.code() == Some(ProblemCode::ConsensusDisagreement);
    refusal.problem.as_ref().filter(|_| is_it).map(|problem| Disagreement { refusal, problem })
}

/// Sends a call, and shows the progress of the replicas.
pub(crate) async fn ask<R: DeserializeOwned>(
    client: &ApiClient,
    out: Output,
    call: Call<R>,
) -> Result<Reply<R>, ClientError> {
    if out.format == OutputFormat::Json {
        return client.send(call).await;
    }
    let mut progress = RoundProgressDisplay::new(out);
    let reply = client.watch(call, FINAL, |event| progress.show(event)).await;
    progress.finish();
    reply
}
