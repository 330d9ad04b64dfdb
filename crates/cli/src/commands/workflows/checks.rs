//! `jurat workflows run-checks`: all checks of a workflow on one output.

use std::path::Path;

use jurat_core::{
    executor::session::BUILTIN_SESSION,
    workflow::{WorkflowRef, checks, front_matter},
};
use jurat_wire::strict_json;
use serde_json::{Map, Value, json};

use super::{CommandContext, ROUTE, folder};
use crate::{
    args::RunChecksArgs,
    client::{ApiCall, ApiClient, ApiReply, path, query},
    commands::shared::{
        gate::{self, NEGATIVE, PASSED, UNDECIDED},
        input,
    },
    failure::CliFailure,
    output::{
        Output, OutputFormat,
        table::{cell, said, table, word},
    },
};

/// What is checked, and by what.
struct CheckPlan {
    /// The parameters of `vp.checks.v1`.
    checks: Option<Value>,
    /// Names and references of verifiers.
    verifiers: Vec<(String, String)>,
    workflow_id: Option<String>,
    workflow_version: Option<u64>,
}

/// What came of one check.
struct CheckVerdict {
    name: String,
    kind: &'static str,
    passed: Option<bool>,
    detail: String,
    round_id: Value,
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
            for (name, verifier) in &plan.verifiers {
                let inputs = (&output, args.input.as_slice());
                verdicts.push(semantic(client, &plan, (name, verifier), inputs).await?);
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

/// One failure fails; what is not known does not pass.
fn exit_code(verdicts: &[CheckVerdict]) -> u8 {
    if verdicts.iter().any(|verdict| verdict.passed == Some(false)) {
        NEGATIVE
    } else if verdicts.iter().any(|verdict| verdict.passed.is_none()) {
        UNDECIDED
    } else {
        PASSED
    }
}

/// An output, as JSON where it is JSON.
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
        (None, Some(found)) => found["body"].as_str().unwrap_or_default().to_owned(),
        (None, None) => String::new(),
    };
    let checks = checks::read(&body)
        .map_err(|error| CliFailure::usage(format!("`{}` {error}", args.workflow)))?;
    Ok(CheckPlan {
        checks,
        verifiers: verifiers(args, found.as_ref()),
        workflow_id: found.as_ref().and_then(|it| Some(it["id"].as_str()?.to_owned())),
        workflow_version: found.as_ref().and_then(|it| it["version"].as_u64()),
    })
}

/// The workflow on the server; one that lies in a file may not be there.
async fn known(
    client: &ApiClient,
    reference: &str,
    is_file: bool,
) -> anyhow::Result<Option<Value>> {
    let Ok(WorkflowRef { version, .. }) = WorkflowRef::parse(reference) else { return Ok(None) };
    let name = reference.rsplit_once('@').filter(|_| version.is_some());
    let name = name.map_or(reference, |(name, _)| name);
    let version = version.map(|version| version.to_string());
    let address = query(&path(ROUTE, &[name]), &[("version", version)]);
    let reply = client.send(ApiCall::get(address)).await?;
    if is_file && reply.is_problem() && reply.value["code"] == "not_found" {
        return Ok(None);
    }
    Ok(Some(reply.success()?.value))
}

fn verifiers(args: &RunChecksArgs, found: Option<&Value>) -> Vec<(String, String)> {
    if args.no_verifiers {
        return Vec::new();
    }
    if !args.verifier.is_empty() {
        return args.verifier.clone();
    }
    let bound = found.and_then(|it| it["verifiers"].as_array()).into_iter().flatten();
    bound
        .filter_map(|it| {
            let (name, id) = (it["name"].as_str()?, it["verifier_id"].as_str()?);
            let pinned = it["version"].as_u64().map(|version| format!("{id}@{version}"));
            Some((name.to_owned(), pinned.unwrap_or_else(|| id.to_owned())))
        })
        .collect()
}

/// The checks of the body, which the node makes by itself: they need no model, and so no executor.
async fn structural(
    client: &ApiClient,
    checks: &Value,
    output: &CheckedOutput,
) -> anyhow::Result<CheckVerdict> {
    let body = json!({
        "claim": { "output": output.value },
        "policy": { "policy_id": "vp.checks.v1", "policy_params": checks },
        "consensus": { "replicas": 1, "session_pool": [BUILTIN_SESSION] },
    });
    let reply = client.send(ApiCall::post("/api/v3/validate", body)).await?.success()?;
    let passed = match gate::exit_code(&reply.value, gate::LEAST) {
        PASSED => Some(true),
        NEGATIVE => Some(false),
        _ => None,
    };
    let notes = reply.value["replicas"][0]["notes"].as_array().into_iter().flatten();
    let notes: Vec<String> = notes.map(said).collect();
    Ok(CheckVerdict {
        name: "checks".to_owned(),
        kind: "structural and functional",
        passed,
        detail: if notes.is_empty() { said(&reply.value["verdict"]) } else { notes.join("; ") },
        round_id: reply.value["round_id"].clone(),
    })
}

/// A verifier that the workflow names.
async fn semantic(
    client: &ApiClient,
    plan: &CheckPlan,
    (name, verifier): (&str, &str),
    (output, given): (&CheckedOutput, &[(String, String)]),
) -> anyhow::Result<CheckVerdict> {
    let shown = client.send(ApiCall::get(path("/v1/verifiers", &[verifier]))).await?;
    // Who may only run a verifier does not see its fields.
    let fields = (!shown.is_problem()).then(|| shown.value["input_fields"].clone());
    let verdict = |passed, detail: String, round_id| CheckVerdict {
        name: name.to_owned(),
        kind: "semantic",
        passed,
        detail,
        round_id,
    };
    let inputs = match inputs(fields.as_ref(), output, given) {
        Ok(inputs) => inputs,
        Err(missing) => {
            let detail = format!("`{missing}` has no value; add `--input {missing}=…`");
            return Ok(verdict(None, detail, Value::Null));
        }
    };
    let mut body = json!({ "inputs": inputs });
    if let Some(id) = &plan.workflow_id {
        body["workflow_id"] = json!(id);
        body["workflow_version"] = json!(plan.workflow_version);
    }
    let address = path("/v1/verifiers", &[verifier, "runs"]);
    let reply = client.send(ApiCall::post(address, body)).await?;
    Ok(match judged(&reply) {
        Ok((passed, detail)) => verdict(passed, detail, reply.value["round_id"].clone()),
        Err(detail) => verdict(None, detail, Value::Null),
    })
}

/// What a run says; what the server refuses is no verdict.
fn judged(reply: &ApiReply) -> Result<(Option<bool>, String), String> {
    let body = &reply.value;
    if reply.is_problem() {
        return Err(said(&body["message"]));
    }
    let why = if body["passed"].is_null() { &body["error_message"] } else { &body["reasoning"] };
    Ok((body["passed"].as_bool(), said(why)))
}

/// A text for each field: as it is given, as the output has it, or the whole output.
fn inputs(
    fields: Option<&Value>,
    output: &CheckedOutput,
    given: &[(String, String)],
) -> Result<Map<String, Value>, String> {
    let find = |field: &str| {
        let given = given.iter().find(|(name, _)| name == field).map(|(_, text)| json!(text));
        given.or_else(|| output.value.get(field).map(as_text))
    };
    let Some(fields) = fields.and_then(Value::as_array) else {
        let mut inputs: Map<String, Value> =
            given.iter().map(|(name, text)| (name.clone(), json!(text))).collect();
        let members = output.value.as_object().into_iter().flatten();
        for (name, value) in members {
            inputs.entry(name.clone()).or_insert_with(|| as_text(value));
        }
        return Ok(inputs);
    };
    let fields: Vec<&str> = fields.iter().filter_map(Value::as_str).collect();
    let open: Vec<&&str> = fields.iter().filter(|field| find(field).is_none()).collect();
    let mut inputs = Map::new();
    for field in &fields {
        let whole = || (open.len() == 1).then(|| json!(output.text));
        let text = find(field).or_else(whole).ok_or_else(|| (*field).to_owned())?;
        inputs.insert((*field).to_owned(), text);
    }
    Ok(inputs)
}

fn as_text(value: &Value) -> Value {
    if value.is_string() { value.clone() } else { json!(value.to_string()) }
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
            "passed": passed, "workflow_id": plan.workflow_id,
            "workflow_version": plan.workflow_version, "checks": checks.collect::<Vec<_>>(),
        });
        return Ok(out.data(&body.to_string())?);
    }
    let rows = verdicts.iter().map(|it| {
        vec![
            word(&json!(word_of(it.passed))),
            cell(&json!(it.name)),
            cell(&json!(it.kind)),
            cell(&json!(it.detail)),
        ]
    });
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
        let fields = json!(["response", "source"]);
        let given = [("source".to_owned(), "S".to_owned())];
        let plain = inputs(Some(&fields), &checked("It rains."), &given).unwrap();
        assert_eq!(json!(plain), json!({"response": "It rains.", "source": "S"}));
        let object = checked(r#"{"response": {"a": 1}, "source": "S"}"#);
        let members = inputs(Some(&fields), &object, &[]).unwrap();
        assert_eq!(json!(members), json!({"response": "{\"a\":1}", "source": "S"}));
        assert_eq!(inputs(Some(&fields), &checked("It rains."), &[]), Err("response".to_owned()));
    }

    #[test]
    fn one_failure_fails_and_an_unknown_result_does_not_pass() {
        let verdict = |passed| CheckVerdict {
            name: String::new(),
            kind: "",
            passed,
            detail: String::new(),
            round_id: Value::Null,
        };
        let code = |all: &[Option<bool>]| {
            exit_code(&all.iter().map(|passed| verdict(*passed)).collect::<Vec<_>>())
        };
        assert_eq!(code(&[Some(true), Some(true)]), PASSED);
        assert_eq!(code(&[Some(true), None]), UNDECIDED);
        assert_eq!(code(&[None, Some(false)]), NEGATIVE);
    }
}
