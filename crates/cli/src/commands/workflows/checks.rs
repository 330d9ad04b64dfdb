//! `jurat workflows run-checks`: all checks of a workflow on one output.

use std::{collections::BTreeMap, path::Path};

use jurat_client::{rounds, verifiers, workflows};
use jurat_core::{
    code::ProblemCode,
    executor::session::BUILTIN_SESSION,
    workflow::{WorkflowRef, checks, front_matter},
};
use jurat_wire::{
    api::{
        consensus_request::{CandidateFieldsDraft, RoundFieldsDraft, ValidateDraft},
        kit::terms::ConsensusTermsDraft,
        policy_request::PolicyObjectDraft,
        verifier_runs::{RunVerifierDraft, VerifierRunBody},
        workflows::WorkflowBody,
    },
    strict_json,
};
use serde_json::{Value, json};

use super::{CommandContext, folder};
use crate::{
    args::RunChecksArgs,
    client::{ApiClient, ClientError, Refusal},
    commands::{
        rounds::show::RoundView,
        shared::{
            gate::{self, NEGATIVE, PASSED, UNDECIDED},
            input,
        },
    },
    failure::CliFailure,
    output::{
        Output, OutputFormat,
        table::{cell, said, table, word},
    },
};

/// The checks of a workflow.
struct CheckPlan {
    /// The parameters of `vp.checks.v1`.
    checks: Option<Value>,
    verifiers: Vec<PlannedVerifier>,
    workflow: Option<WorkflowBody<'static>>,
}

/// A verifier by the name that the workflow gives it, and its reference.
struct PlannedVerifier {
    name: String,
    reference: String,
}

/// The result of one check.
struct CheckVerdict {
    name: String,
    kind: &'static str,
    passed: Option<bool>,
    detail: String,
    round_id: Option<String>,
}

pub(super) async fn run(context: &CommandContext, args: &RunChecksArgs) -> anyhow::Result<u8> {
    let bytes = input::whole("`--output`", &args.output, input::LARGEST)?;
    let output = CheckedOutput::of(bytes)?;
    let (verdicts, plan) = context
        .with_client(async |client| {
            let plan = plan(client, args).await?;
            let mut verdicts = Vec::new();
            if let Some(checks) = &plan.checks {
                verdicts.push(structural(client, checks, &output).await?);
            }
            for verifier in &plan.verifiers {
                let given = GivenInputs { output: &output, inputs: &args.input };
                verdicts.push(semantic(client, &plan, verifier, given).await?);
            }
            Ok((verdicts, plan))
        })
        .await?;
    if verdicts.is_empty() {
        return Err(CliFailure::usage(format!(
            "`{}` has nothing to check: it has no checks block and no verifiers",
            args.workflow
        )));
    }
    report(context.out, &plan, &verdicts)?;
    Ok(exit_code(&verdicts))
}

/// The exit code: one failed check fails, and a check without a verdict leaves it undecided.
fn exit_code(verdicts: &[CheckVerdict]) -> u8 {
    if verdicts.iter().any(|verdict| verdict.passed == Some(false)) {
        NEGATIVE
    } else if verdicts.iter().any(|verdict| verdict.passed.is_none()) {
        UNDECIDED
    } else {
        PASSED
    }
}

/// The output to check, as text, and as JSON if it is JSON.
struct CheckedOutput {
    text: String,
    value: Value,
}

impl CheckedOutput {
    fn of(bytes: Vec<u8>) -> anyhow::Result<Self> {
        let text = String::from_utf8(bytes)
            .map_err(|_| CliFailure::usage("`--output` is not UTF-8 text"))?;
        let value = strict_json::parse(text.as_bytes()).unwrap_or_else(|_| json!(text));
        Ok(Self { text, value })
    }
}

async fn plan(client: &ApiClient, args: &RunChecksArgs) -> anyhow::Result<CheckPlan> {
    let file = Path::new(&args.workflow);
    let is_file = file.is_file() || file.is_dir();
    let body = match (is_file, file.is_dir()) {
        (true, true) => Some(folder::read(file)?.body),
        (true, false) => Some(folder::text(file)?),
        (false, _) => None,
    };
    let reference = match &body {
        None => Some(args.workflow.clone()),
        Some(body) => front_matter::read(body).ok().and_then(|found| found.name),
    };
    let found = match &reference {
        Some(reference) => known(client, reference, is_file).await?,
        None => None,
    };
    let body = match (&body, &found) {
        (Some(body), _) => body.clone(),
        (None, Some(found)) => found.body.clone().into_owned(),
        (None, None) => String::new(),
    };
    let checks = checks::read(&body)
        .map_err(|error| CliFailure::usage(format!("`{}` {error}", args.workflow)))?;
    Ok(CheckPlan { checks, verifiers: planned_verifiers(args, found.as_ref()), workflow: found })
}

/// The workflow on the server. A workflow from a file may not be there.
async fn known(
    client: &ApiClient,
    reference: &str,
    is_file: bool,
) -> anyhow::Result<Option<WorkflowBody<'static>>> {
    let Ok(WorkflowRef { version, .. }) = WorkflowRef::parse(reference) else { return Ok(None) };
    let name = reference.rsplit_once('@').filter(|_| version.is_some());
    let name = name.map_or(reference, |(name, _)| name);
    match client.send(workflows::show(name, version)).await {
        Ok(reply) => Ok(Some(reply.value)),
        Err(ClientError::Refused(refusal))
            if is_file && refusal.code() == Some(ProblemCode::NotFound) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn planned_verifiers(
    args: &RunChecksArgs,
    found: Option<&WorkflowBody<'_>>,
) -> Vec<PlannedVerifier> {
    if args.no_verifiers {
        return Vec::new();
    }
    if !args.verifier.is_empty() {
        let given = args.verifier.iter().cloned();
        return given.map(|(name, reference)| PlannedVerifier { name, reference }).collect();
    }
    let bound = found.map(|it| it.verifiers.as_slice()).unwrap_or_default();
    bound
        .iter()
        .map(|it| PlannedVerifier {
            name: it.name.clone().into_owned(),
            reference: match it.version {
                Some(version) => format!("{}@{version}", it.verifier_id),
                None => it.verifier_id.clone().into_owned(),
            },
        })
        .collect()
}

/// Runs the checks of the body on the node itself: they need no model, and so no executor.
async fn structural(
    client: &ApiClient,
    checks: &Value,
    output: &CheckedOutput,
) -> anyhow::Result<CheckVerdict> {
    let policy = PolicyObjectDraft {
        policy_id: Some("vp.checks.v1".to_owned()),
        policy_params: Some(checks.clone()),
        ..PolicyObjectDraft::default()
    };
    let consensus = ConsensusTermsDraft {
        replicas: Some(1),
        session_pool: Some(vec![BUILTIN_SESSION.to_owned()]),
        ..ConsensusTermsDraft::default()
    };
    let draft = ValidateDraft {
        claim: json!({ "output": output.value }),
        candidate: CandidateFieldsDraft { policy: Some(policy), ..CandidateFieldsDraft::default() },
        round: RoundFieldsDraft { consensus: Some(consensus), session_id: None },
        ..ValidateDraft::default()
    };
    let reply = client.send(rounds::validate(&draft)).await?;
    let round = RoundView::from(&reply.value);
    let passed = match gate::exit_code(&round, gate::LEAST) {
        PASSED => Some(true),
        NEGATIVE => Some(false),
        _ => None,
    };
    let replica = round.replicas.and_then(<[_]>::first);
    let notes = replica.iter().flat_map(|replica| replica.notes.iter());
    let notes: Vec<String> = notes.map(said).collect();
    Ok(CheckVerdict {
        name: "checks".to_owned(),
        kind: "structural and functional",
        passed,
        detail: if notes.is_empty() { said(&round.label) } else { notes.join("; ") },
        round_id: round.round_id.map(str::to_owned),
    })
}

/// The inputs of a verifier: the output, and the values of `--input`.
#[derive(Clone, Copy)]
struct GivenInputs<'a> {
    output: &'a CheckedOutput,
    inputs: &'a [(String, String)],
}

/// Runs a verifier of the workflow.
async fn semantic(
    client: &ApiClient,
    plan: &CheckPlan,
    verifier: &PlannedVerifier,
    given: GivenInputs<'_>,
) -> anyhow::Result<CheckVerdict> {
    let PlannedVerifier { name, reference } = verifier;
    // A caller who may only run a verifier does not see its fields.
    let shown = accepted(client.send(verifiers::show(reference, None)).await)?.ok();
    let fields = shown.map(|shown| shown.value.input_fields);
    let verdict = |passed, detail: String, round_id| CheckVerdict {
        name: name.clone(),
        kind: "semantic",
        passed,
        detail,
        round_id,
    };
    let inputs = match inputs(fields.as_deref(), given) {
        Ok(inputs) => inputs,
        Err(missing) => {
            let detail = format!("`{missing}` has no value; add `--input {missing}=…`");
            return Ok(verdict(None, detail, None));
        }
    };
    let draft = RunVerifierDraft {
        inputs: Some(inputs),
        workflow_id: plan.workflow.as_ref().map(|it| it.id.clone().into_owned()),
        workflow_version: plan.workflow.as_ref().map(|it| it.version),
        ..RunVerifierDraft::default()
    };
    Ok(match accepted(client.send(verifiers::run(reference, &draft)).await)? {
        Ok(run) => {
            let round_id = run.value.round_id.clone().into_owned();
            verdict(run.value.passed, why(&run.value), Some(round_id))
        }
        Err(refusal) => verdict(None, said(&refusal.to_string()), None),
    })
}

/// Separates a refusal by the server, which leaves no verdict, from a connection error.
fn accepted<T>(sent: Result<T, ClientError>) -> Result<Result<T, Box<Refusal>>, ClientError> {
    match sent {
        Ok(reply) => Ok(Ok(reply)),
        Err(ClientError::Refused(refusal)) => Ok(Err(refusal)),
        Err(error) => Err(error),
    }
}

/// The reason for the verdict of a run, or for the lack of one.
fn why(run: &VerifierRunBody<'_>) -> String {
    if run.passed.is_none() { said(&run.error_message) } else { said(&run.reasoning) }
}

/// The text of each field: a given value, the member of the output, or the whole output.
fn inputs(
    fields: Option<&[String]>,
    given: GivenInputs<'_>,
) -> Result<BTreeMap<String, String>, String> {
    let GivenInputs { output, inputs: given } = given;
    let find = |field: &str| {
        let given = given.iter().find(|(name, _)| name == field).map(|(_, text)| text.clone());
        given.or_else(|| output.value.get(field).map(as_text))
    };
    let Some(fields) = fields else {
        let mut inputs: BTreeMap<_, _> = given.iter().cloned().collect();
        let members = output.value.as_object().into_iter().flatten();
        for (name, value) in members {
            inputs.entry(name.clone()).or_insert_with(|| as_text(value));
        }
        return Ok(inputs);
    };
    let open = fields.iter().filter(|field| find(field).is_none()).count();
    let mut inputs = BTreeMap::new();
    for field in fields {
        let whole = || (open == 1).then(|| output.text.clone());
        let text = find(field).or_else(whole).ok_or_else(|| field.clone())?;
        inputs.insert(field.clone(), text);
    }
    Ok(inputs)
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn report(out: Output, plan: &CheckPlan, verdicts: &[CheckVerdict]) -> anyhow::Result<()> {
    let word_of = |passed| match passed {
        Some(true) => "PASS",
        Some(false) => "FAIL",
        None => "INCONCLUSIVE",
    };
    if out.format == OutputFormat::Json {
        let checks = verdicts.iter().map(|it| {
            json!({
                "name": it.name, "kind": it.kind, "passed": it.passed,
                "verdict": word_of(it.passed), "detail": it.detail, "round_id": it.round_id,
            })
        });
        let passed = match exit_code(verdicts) {
            PASSED => json!(true),
            NEGATIVE => json!(false),
            _ => Value::Null,
        };
        let body = json!({
            "passed": passed, "workflow_id": plan.workflow.as_ref().map(|it| &it.id),
            "workflow_version": plan.workflow.as_ref().map(|it| it.version),
            "checks": checks.collect::<Vec<_>>(),
        });
        return Ok(out.data(&body.to_string())?);
    }
    let rows = verdicts
        .iter()
        .map(|it| vec![word(word_of(it.passed)), cell(&it.name), cell(it.kind), cell(&it.detail)]);
    Ok(out.text(&table(out, &["verdict", "check", "kind", "why"], rows.collect()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> CheckedOutput {
        CheckedOutput::of(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn the_whole_output_fills_the_one_remaining_field() {
        let fields = ["response".to_owned(), "source".to_owned()];
        let given = [("source".to_owned(), "S".to_owned())];
        let inputs = |output: &CheckedOutput, inputs: &[(String, String)]| {
            super::inputs(Some(&fields), GivenInputs { output, inputs })
        };
        let plain = inputs(&checked("It rains."), &given).unwrap();
        assert_eq!(json!(plain), json!({"response": "It rains.", "source": "S"}));
        let object = checked(r#"{"response": {"a": 1}, "source": "S"}"#);
        let members = inputs(&object, &[]).unwrap();
        assert_eq!(json!(members), json!({"response": "{\"a\":1}", "source": "S"}));
        assert_eq!(inputs(&checked("It rains."), &[]), Err("response".to_owned()));
    }

    #[test]
    fn one_failure_fails_and_an_unknown_result_does_not_pass() {
        let verdict = |passed| CheckVerdict {
            name: String::new(),
            kind: "",
            passed,
            detail: String::new(),
            round_id: None,
        };
        let code = |all: &[Option<bool>]| {
            exit_code(&all.iter().map(|passed| verdict(*passed)).collect::<Vec<_>>())
        };
        assert_eq!(code(&[Some(true), Some(true)]), PASSED);
        assert_eq!(code(&[Some(true), None]), UNDECIDED);
        assert_eq!(code(&[None, Some(false)]), NEGATIVE);
    }
}
