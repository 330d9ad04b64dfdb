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
    let text = "Makes a verifier, or adds a version to the one with the name. A version never changes. The first deploy of a name leaves `expected_version_token` out, every later one sends the current token; else the answer is 409 with the current one in `current_version_token`. The names of verifiers of the platform are taken.";
    Description::new(VERIFIERS, "Deploy a version of a verifier", text)
        .scope(Scope::VerifiersWrite)
        .takes::<DeployVerifierRequest>([("plain", examples::of("verifier_deploy_request"))])
        .answers::<DeployedVerifier<'_>>(
            201,
            "The version that was added.",
            examples::of("verifier_deploy"),
        )
        .repeatable()
        .refuses([Code::Conflict])
}

fn list() -> Description {
    let text =
        "The active verifiers of the account by name; those of the platform are not among them.";
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
    let text = "One version in full, with its criterion and examples: the one that is pinned, or the current one. What the account does not own, what was revoked and the verifiers of the platform are not found.";
    Description::new(VERIFIERS, "Show a verifier", text)
        .scope(Scope::VerifiersRead)
        .with([parameters::version("The version to show; the current one when left out.")])
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
    let text = "Deactivates a verifier for ever: it is not listed, shown or run any more, its name stays taken, and its runs can still be read.";
    Description::new(VERIFIERS, "Revoke a verifier", text)
        .scope(Scope::VerifiersWrite)
        .answers::<RevokedVerifier<'_>>(200, "It is revoked.", examples::of("verifier_revoke"))
        .repeatable()
        .refuses([Code::NotFound])
}

fn delete() -> Description {
    let text = "Erases a verifier, also a revoked one, with its versions, measurements and runs, at once and for ever. Only its id can mean it. Its name is free again. One that a live template was published with is refused, and the answer names the templates.";
    Description::new(VERIFIERS, "Erase a verifier", text)
        .scope(Scope::VerifiersWrite)
        .answers::<DeletedVerifier<'_>>(200, "It is gone.", examples::of("verifier_delete"))
        .repeatable()
        .refuses([Code::NotFound, Code::Conflict])
}

fn run() -> Description {
    let text = "Has inputs judged. The status is 201 whatever the verdict is, and also when no judge decides: then `status` is `error`, `passed` is null and `error_code` says why. Inputs that do not fit the contract are refused, and nothing is run. A version that is pinned in the address, in the query and in the body must be the same. Without a key, exactly the versions can be run that live templates were published with, and those of the platform, from a small credit of the network address; all else is not found.";
    Description::new(VERIFIERS, "Run a verifier", text)
        .scope(Scope::VerifiersRun)
        .with([parameters::version("The version to run; the current one when left out.")])
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
    let text = "Lets the judges of a version decide cases whose verdict is known, and tells how often they are right, with intervals. Without `cases` these are the version's own examples, each judged without itself. Every case is a run and costs what a run costs. With `Accept: text/event-stream` each case comes as an event `case` when it is judged, and the report as the last one.";
    measured(Description::new(VERIFIERS, "Test a verifier", text), "verifier_report")
        .takes::<TestVerifierRequest>([("plain", examples::of("verifier_test_request"))])
}

fn attack() -> Description {
    let text = "Tries known injections on the judges of a version, and tells how often one of them is passed. Every attack is a run and costs what a run costs. With `Accept: text/event-stream` each attack comes as an event `case` when it is judged, and the report as the last one.";
    measured(Description::new(VERIFIERS, "Attack a verifier", text), "verifier_attack_report")
        .takes::<AttackVerifierRequest>([("plain", examples::of("verifier_attack_request"))])
}

fn measured(description: Description, example: &str) -> Description {
    description
        .scope(Scope::VerifiersRun)
        .answers::<ReportBody<'_>>(201, "What was found.", examples::of(example))
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
    let text = "The account's runs of one verifier, or of one of the platform, newest first.";
    Description::new(VERIFIERS, "List the runs of a verifier", text)
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .with(parameters::of_runs())
        .answers::<Page<'_, RunBody<'_>>>(200, "A page of runs.", examples::of("run_list"))
        .refuses([Code::NotFound, Code::ValidationError])
}

fn run_list() -> Description {
    let text = "The account's runs of all verifiers, newest first. With `Accept: application/x-ndjson` all of them come at once, one in a line, and `limit` does not matter; a list that cannot be sent whole breaks off.";
    Description::new(VERIFIERS, "List or export runs", text)
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .with([parameters::of_verifier()])
        .with(parameters::of_runs())
        .answers::<Page<'_, RunBody<'_>>>(200, "A page of runs.", examples::of("run_list"))
        .or_lines("An item of a page in each line.")
        .refuses([Code::NotFound, Code::ValidationError])
}

fn run_get() -> Description {
    let text = "A run, with what each judge said. A run of another account is not found.";
    Description::new(VERIFIERS, "Show a run", text)
        .scope(Scope::VerifiersRead)
        .answers::<RunBody<'_>>(200, "The run.", examples::of("run"))
        .refuses([Code::NotFound])
}
