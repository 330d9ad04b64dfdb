//! What the operations on verifiers are for, what they take, and what they answer.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_wire::api::{
    events,
    kit::page::PageBody,
    verifier_runs::{RunVerifierRequest, VerifierRunBody},
    verifier_tests::{AttackVerifierRequest, CaseEvent, ReportBody, TestVerifierRequest},
    verifiers::{
        DeletedVerifier, DeployVerifierRequest, DeployedVerifier, ListedVerifier, RevokedVerifier,
        VerifierBody, VersionBody,
    },
};

use jurat_wire::problem::ProblemBody;

use super::VERIFIERS;
use crate::{
    openapi::{
        description::{EventDescription, OperationDescription},
        examples, parameters,
    },
    resources::RouteInfo,
};

pub(super) fn describe(route: &RouteInfo) -> Option<OperationDescription> {
    Some(match route.operation {
        "verifier_deploy" => deploy(),
        "verifier_list" => list(),
        "verifier_get" => get(),
        "verifier_versions" => versions(),
        "verifier_revoke" => revoke(),
        "verifier_delete" => delete(),
        "verifier_run" => run(),
        "verifier_test" => test(),
        "verifier_attack" => attack(),
        "verifier_runs" => verifier_runs(),
        "run_list" => verifier_run_list(),
        "run_get" => verifier_run_get(),
        _ => return None,
    })
}

fn deploy() -> OperationDescription {
    let text = "Creates a verifier, or adds a version to the one with this name. A version never changes. Leave out `expected_version_token` for the first deploy of a name, and send the current token for every later one; otherwise the reply is 409 with the current token in `current_version_token`. The names of platform verifiers are reserved.";
    OperationDescription::new(VERIFIERS, "Deploy a version of a verifier", text)
        .scope(Scope::VerifiersWrite)
        .takes::<DeployVerifierRequest>([("plain", examples::of("verifier_deploy_request"))])
        .answers::<DeployedVerifier<'_>>(201, "The added version.", examples::of("verifier_deploy"))
        .idempotent()
        .refuses([ProblemCode::Conflict])
}

fn list() -> OperationDescription {
    let text = "The account's active verifiers by name, without platform verifiers.";
    OperationDescription::new(VERIFIERS, "List verifiers", text)
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .answers::<PageBody<'_, ListedVerifier<'_>>>(
            200,
            "A page of verifiers.",
            examples::of("verifier_list"),
        )
        .refuses([ProblemCode::ValidationError])
}

fn get() -> OperationDescription {
    let text = "One full version with its criterion and examples: the pinned one, or the current one. Verifiers that the account does not own, revoked ones and platform verifiers are not found.";
    OperationDescription::new(VERIFIERS, "Show a verifier", text)
        .scope(Scope::VerifiersRead)
        .with([parameters::version("The version to show; defaults to the current one.")])
        .answers::<VerifierBody<'_>>(200, "The version.", examples::of("verifier"))
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn versions() -> OperationDescription {
    OperationDescription::new(
        VERIFIERS,
        "List the versions of a verifier",
        "All versions, newest first.",
    )
    .scope(Scope::VerifiersRead)
    .with(parameters::of_list())
    .answers::<PageBody<'_, VersionBody<'_>>>(
        200,
        "A page of versions.",
        examples::of("verifier_versions"),
    )
    .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn revoke() -> OperationDescription {
    let text = "Permanently deactivates a verifier: it is no longer listed, shown or run. Its name cannot be reused, and its runs can still be read.";
    OperationDescription::new(VERIFIERS, "Revoke a verifier", text)
        .scope(Scope::VerifiersWrite)
        .answers::<RevokedVerifier<'_>>(200, "It is revoked.", examples::of("verifier_revoke"))
        .idempotent()
        .refuses([ProblemCode::NotFound])
}

fn delete() -> OperationDescription {
    let text = "Permanently deletes a verifier, active or revoked, with its versions, measurements and runs. It must be named by its id. Its name becomes available again. A verifier that is part of a published template is refused, and the error names the templates.";
    OperationDescription::new(VERIFIERS, "Delete a verifier", text)
        .scope(Scope::VerifiersWrite)
        .answers::<DeletedVerifier<'_>>(200, "It is deleted.", examples::of("verifier_delete"))
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
}

fn run() -> OperationDescription {
    let text = "Has inputs judged. The status is 201 for every verdict, and also if no judge decides: then `status` is `error`, `passed` is null and `error_code` says why. Inputs that do not match the contract are refused without a run. A version pinned in the path, the query and the body must be the same. Without a key, only the versions of published templates and platform verifiers can be run, from a small credit of the network address; all others are not found.";
    OperationDescription::new(VERIFIERS, "Run a verifier", text)
        .scope(Scope::VerifiersRun)
        .with([parameters::version("The version to run; defaults to the current one.")])
        .takes::<RunVerifierRequest>([("plain", examples::of("verifier_run_request"))])
        .answers::<VerifierRunBody<'_>>(201, "The run.", examples::of("run"))
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::BudgetExhausted,
            ProblemCode::AnonymousDailyCap,
            ProblemCode::AccountSuspended,
            ProblemCode::SessionPoolTooSmall,
            ProblemCode::SessionsUnavailable,
            ProblemCode::ShuttingDown,
            ProblemCode::Conflict,
        ])
}

fn test() -> OperationDescription {
    let text = "Has the judges of a version decide labelled cases, and reports how often they are right, with confidence intervals. Without `cases`, the version's own examples are used, each judged without showing it to the judge as an example. Every case is a run and costs as much. With `Accept: text/event-stream` each judged case is sent as an event `case`, and the report as the last event.";
    measured(OperationDescription::new(VERIFIERS, "Test a verifier", text), "verifier_report")
        .takes::<TestVerifierRequest>([("plain", examples::of("verifier_test_request"))])
}

fn attack() -> OperationDescription {
    let text = "Tries known injections on the judges of a version, and reports how often one passes. Every attack is a run and costs as much. With `Accept: text/event-stream` each judged attack is sent as an event `case`, and the report as the last event.";
    measured(
        OperationDescription::new(VERIFIERS, "Attack a verifier", text),
        "verifier_attack_report",
    )
    .takes::<AttackVerifierRequest>([("plain", examples::of("verifier_attack_request"))])
}

fn measured(description: OperationDescription, example: &str) -> OperationDescription {
    description
        .scope(Scope::VerifiersRun)
        .answers::<ReportBody<'_>>(201, "The result.", examples::of(example))
        .or_streams(
            &[
                ("case", EventDescription::of::<CaseEvent<'_>>()),
                ("report", EventDescription::of::<ReportBody<'_>>()),
                (events::ERROR, EventDescription::of::<ProblemBody<'_>>()),
            ],
            "event: case\ndata: …\n\nevent: report\ndata: …\n\n",
        )
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::NotFound,
            ProblemCode::BudgetExhausted,
            ProblemCode::AccountSuspended,
            ProblemCode::SessionPoolTooSmall,
            ProblemCode::SessionsUnavailable,
            ProblemCode::ShuttingDown,
        ])
}

fn verifier_runs() -> OperationDescription {
    let text = "The account's runs of one verifier or platform verifier, newest first.";
    OperationDescription::new(VERIFIERS, "List the runs of a verifier", text)
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .with(parameters::of_verifier_runs())
        .answers::<PageBody<'_, VerifierRunBody<'_>>>(
            200,
            "A page of runs.",
            examples::of("run_list"),
        )
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn verifier_run_list() -> OperationDescription {
    let text = "The account's runs of all verifiers, newest first. With `Accept: application/x-ndjson` all runs are sent, one per line, and `limit` is ignored; if the list cannot be sent completely, the connection breaks off.";
    OperationDescription::new(VERIFIERS, "List or export verifier runs", text)
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .with([parameters::of_verifier()])
        .with(parameters::of_verifier_runs())
        .answers::<PageBody<'_, VerifierRunBody<'_>>>(
            200,
            "A page of runs.",
            examples::of("run_list"),
        )
        .or_lines("One run per line.")
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn verifier_run_get() -> OperationDescription {
    let text = "A run, with each judge's answer. A run of another account is not found.";
    OperationDescription::new(VERIFIERS, "Show a run", text)
        .scope(Scope::VerifiersRead)
        .answers::<VerifierRunBody<'_>>(200, "The run.", examples::of("run"))
        .refuses([ProblemCode::NotFound])
}
