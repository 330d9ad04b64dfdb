//! What the operations on verifiers are for, what they take, and what they answer.

use jurat_core::{caller::Scope, code::Code};
use jurat_wire::api::{
    events,
    page::Page,
    verifier_runs::{RunBody, RunVerifierRequest},
    verifier_tests::{AttackVerifierRequest, CaseEvent, ReportBody, TestVerifierRequest},
    verifiers::{
        DeletedVerifier, DeployVerifierRequest, DeployedVerifier, ListedVerifier, RevokedVerifier,
        VerifierBody, VersionBody,
    },
};

use jurat_wire::problem::ProblemBody;

use super::VERIFIERS;
use crate::{
    http::RouteInfo,
    openapi::{
        description::{Description, Event},
        examples, parameters,
    },
};

pub(super) fn describe(route: &RouteInfo) -> Option<Description> {
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
        "verifier_runs" => runs_of_one(),
        "run_list" => run_list(),
        "run_get" => run_get(),
        _ => return None,
    })
}

fn deploy() -> Description {
    let text = "Creates a verifier, or adds a version to the one with this name. A version never changes. Leave out `expected_version_token` for the first deploy of a name, and send the current token for every later one; otherwise the reply is 409 with the current token in `current_version_token`. The names of platform verifiers are reserved.";
    Description::new(VERIFIERS, "Deploy a version of a verifier", text)
        .scope(Scope::VerifiersWrite)
        .takes::<DeployVerifierRequest>([("plain", examples::of("verifier_deploy_request"))])
        .answers::<DeployedVerifier<'_>>(201, "The added version.", examples::of("verifier_deploy"))
        .repeatable()
        .refuses([Code::Conflict])
}

fn list() -> Description {
    let text = "The account's active verifiers by name, without platform verifiers.";
    Description::new(VERIFIERS, "List verifiers", text)
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .answers::<Page<'_, ListedVerifier<'_>>>(
            200,
            "A page of verifiers.",
            examples::of("verifier_list"),
        )
        .refuses([Code::ValidationError])
}

fn get() -> Description {
    let text = "One full version with its criterion and examples: the pinned one, or the current one. Verifiers that the account does not own, revoked ones and platform verifiers are not found.";
    Description::new(VERIFIERS, "Show a verifier", text)
        .scope(Scope::VerifiersRead)
        .with([parameters::version("The version to show; defaults to the current one.")])
        .answers::<VerifierBody<'_>>(200, "The version.", examples::of("verifier"))
        .refuses([Code::NotFound, Code::ValidationError])
}

fn versions() -> Description {
    Description::new(VERIFIERS, "List the versions of a verifier", "All versions, newest first.")
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .answers::<Page<'_, VersionBody<'_>>>(
            200,
            "A page of versions.",
            examples::of("verifier_versions"),
        )
        .refuses([Code::NotFound, Code::ValidationError])
}

fn revoke() -> Description {
    let text = "Permanently deactivates a verifier: it is no longer listed, shown or run. Its name cannot be reused, and its runs can still be read.";
    Description::new(VERIFIERS, "Revoke a verifier", text)
        .scope(Scope::VerifiersWrite)
        .answers::<RevokedVerifier<'_>>(200, "It is revoked.", examples::of("verifier_revoke"))
        .repeatable()
        .refuses([Code::NotFound])
}

fn delete() -> Description {
    let text = "Permanently deletes a verifier, active or revoked, with its versions, measurements and runs. It must be named by its id. Its name becomes available again. A verifier that is part of a published template is refused, and the error names the templates.";
    Description::new(VERIFIERS, "Delete a verifier", text)
        .scope(Scope::VerifiersWrite)
        .answers::<DeletedVerifier<'_>>(200, "It is deleted.", examples::of("verifier_delete"))
        .repeatable()
        .refuses([Code::NotFound, Code::Conflict])
}

fn run() -> Description {
    let text = "Has inputs judged. The status is 201 for every verdict, and also if no judge decides: then `status` is `error`, `passed` is null and `error_code` says why. Inputs that do not match the contract are refused without a run. A version pinned in the path, the query and the body must be the same. Without a key, only the versions of published templates and platform verifiers can be run, from a small credit of the network address; all others are not found.";
    Description::new(VERIFIERS, "Run a verifier", text)
        .scope(Scope::VerifiersRun)
        .with([parameters::version("The version to run; defaults to the current one.")])
        .takes::<RunVerifierRequest>([("plain", examples::of("verifier_run_request"))])
        .answers::<RunBody<'_>>(201, "The run.", examples::of("run"))
        .repeatable()
        .refuses([
            Code::NotFound,
            Code::BudgetExhausted,
            Code::AnonymousDailyCap,
            Code::AccountSuspended,
            Code::SessionPoolTooSmall,
            Code::SessionsUnavailable,
            Code::ShuttingDown,
            Code::Conflict,
        ])
}

fn test() -> Description {
    let text = "Has the judges of a version decide labelled cases, and reports how often they are right, with confidence intervals. Without `cases`, the version's own examples are used, each judged without showing it to the judge as an example. Every case is a run and costs as much. With `Accept: text/event-stream` each judged case is sent as an event `case`, and the report as the last event.";
    measured(Description::new(VERIFIERS, "Test a verifier", text), "verifier_report")
        .takes::<TestVerifierRequest>([("plain", examples::of("verifier_test_request"))])
}

fn attack() -> Description {
    let text = "Tries known injections on the judges of a version, and reports how often one passes. Every attack is a run and costs as much. With `Accept: text/event-stream` each judged attack is sent as an event `case`, and the report as the last event.";
    measured(Description::new(VERIFIERS, "Attack a verifier", text), "verifier_attack_report")
        .takes::<AttackVerifierRequest>([("plain", examples::of("verifier_attack_request"))])
}

fn measured(description: Description, example: &str) -> Description {
    description
        .scope(Scope::VerifiersRun)
        .answers::<ReportBody<'_>>(201, "The result.", examples::of(example))
        .or_streams(
            &[
                ("case", Event::of::<CaseEvent<'_>>()),
                ("report", Event::of::<ReportBody<'_>>()),
                (events::ERROR, Event::of::<ProblemBody<'_>>()),
            ],
            "event: case\ndata: …\n\nevent: report\ndata: …\n\n",
        )
        .refuses([
            Code::ValidationError,
            Code::NotFound,
            Code::BudgetExhausted,
            Code::AccountSuspended,
            Code::SessionPoolTooSmall,
            Code::SessionsUnavailable,
            Code::ShuttingDown,
        ])
}

fn runs_of_one() -> Description {
    let text = "The account's runs of one verifier or platform verifier, newest first.";
    Description::new(VERIFIERS, "List the runs of a verifier", text)
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .with(parameters::of_runs())
        .answers::<Page<'_, RunBody<'_>>>(200, "A page of runs.", examples::of("run_list"))
        .refuses([Code::NotFound, Code::ValidationError])
}

fn run_list() -> Description {
    let text = "The account's runs of all verifiers, newest first. With `Accept: application/x-ndjson` all runs are sent, one per line, and `limit` is ignored; if the list cannot be sent completely, the connection breaks off.";
    Description::new(VERIFIERS, "List or export verifier runs", text)
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .with([parameters::of_verifier()])
        .with(parameters::of_runs())
        .answers::<Page<'_, RunBody<'_>>>(200, "A page of runs.", examples::of("run_list"))
        .or_lines("One run per line.")
        .refuses([Code::NotFound, Code::ValidationError])
}

fn run_get() -> Description {
    let text = "A run, with each judge's answer. A run of another account is not found.";
    Description::new(VERIFIERS, "Show a run", text)
        .scope(Scope::VerifiersRead)
        .answers::<RunBody<'_>>(200, "The run.", examples::of("run"))
        .refuses([Code::NotFound])
}
