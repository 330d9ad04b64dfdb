//! Cases for requests about people, workflows and templates.

use jurat_core::{
    code::ProblemCode,
    verifier::InputError,
    workflow::draft::{check_deletions, check_files},
};
use serde_json::{Value, json};

use super::{DescribedCase, case};
use crate::{
    api::{
        logins::{self, ApproveRequest, CodeRequest, ExchangeRequest, VerifyCodeRequest},
        people::{self, HandleRequest},
        shares::{self, AnswerShareRequest},
        teams::{self, AddMemberRequest, TransferTeamRequest},
        templates::{
            self, ArchiveTemplateRequest, DeprecateVersionRequest, ForkTemplateRequest,
            PublishTemplateRequest, SearchTemplatesRequest, TransferTemplateRequest,
        },
        workflows::{
            self, PatchWorkflowFilesRequest, RevokeWorkflowGrantRequest, SaveWorkflowRequest,
            SearchWorkflowsRequest, TransferWorkflowRequest, WorkflowGrantRequest,
        },
    },
    problem::Problem,
};

const GRANTEE: &str = "grantee_email_or_at_team_handle";
const OWNER: &str = "new_owner_user_id_or_email";

pub(super) fn cases() -> Vec<DescribedCase> {
    let mut cases = of_people();
    cases.extend(of_workflows());
    cases.extend(of_templates());
    cases
}

fn of_people() -> Vec<DescribedCase> {
    vec![
        case::<CodeRequest>(|it| logins::decode_code(it).map(drop), json!({ "email": "a" })),
        case::<VerifyCodeRequest>(
            |it| logins::decode_verify(it).map(drop),
            json!({ "email": "a", "code": "b" }),
        ),
        case::<ExchangeRequest>(
            |it| logins::decode_exchange(it).map(drop),
            json!({ "hostname": "a" }),
        ),
        case::<ApproveRequest>(
            |it| logins::decode_approve(it).map(drop),
            json!({ "user_code": "a", "approve": true }),
        ),
        case::<HandleRequest>(|it| people::decode_handle(it).map(drop), json!({ "handle": "a" })),
        case::<AddMemberRequest>(
            |it| teams::decode_member(it).map(drop),
            json!({ "user_identifier": "a" }),
        ),
        case::<TransferTeamRequest>(
            |it| teams::decode_new_owner(it).map(drop),
            json!({ "new_owner_user_identifier": "a" }),
        ),
        case::<AnswerShareRequest>(shares::decode_answer, json!({})),
    ]
}

/// Converts an error that the core found into a problem.
fn checked(found: Result<(), InputError>) -> Result<(), Problem> {
    found.map_err(|InputError { field, problem }| {
        Problem::new(ProblemCode::ValidationError, format!("`{field}` {problem}")).at(field)
    })
}

fn save(body: &Value) -> Result<(), Problem> {
    checked(workflows::decode_save(body)?.completed().map(drop))
}

fn patch(body: &Value) -> Result<(), Problem> {
    let patch = workflows::decode_patch(body)?;
    checked(check_files(&patch.files))?;
    checked(check_deletions(&patch.files, &patch.delete_paths))
}

fn of_workflows() -> Vec<DescribedCase> {
    let file = json!({ "path": "a", "content": "b" });
    vec![
        case::<SaveWorkflowRequest>(
            save,
            json!({
                "name": "a", "description": "b", "body": "c", "tags": ["d"], "files": [file],
                "verifiers": [{ "name": "e", "verifier_id": "f" }],
            }),
        ),
        case::<PatchWorkflowFilesRequest>(
            patch,
            json!({ "expected_version_token": "a", "files": [file] }),
        ),
        case::<WorkflowGrantRequest>(
            |it| workflows::decode_grant(it).map(drop),
            json!({ GRANTEE: "ann@example.com", "role": "view" }),
        ),
        case::<RevokeWorkflowGrantRequest>(
            |it| workflows::decode_revoke(it).map(drop),
            json!({ GRANTEE: "@ann" }),
        ),
        case::<TransferWorkflowRequest>(
            |it| workflows::decode_transfer(it).map(drop),
            json!({ OWNER: "ann@example.com" }),
        ),
        case::<SearchWorkflowsRequest>(
            |it| workflows::decode_search(it).map(drop),
            json!({ "query": "a" }),
        ),
    ]
}

fn of_templates() -> Vec<DescribedCase> {
    vec![
        case::<PublishTemplateRequest>(
            |it| templates::decode_publish(it).map(drop),
            json!({ "skill_id": "a" }),
        ),
        case::<SearchTemplatesRequest>(
            |it| templates::decode_search(it).map(drop),
            json!({ "query": "a", "filter": "all", "limit": 1 }),
        ),
        case::<ForkTemplateRequest>(
            |it| templates::decode_fork(it).map(drop),
            json!({ "identifier": "@ann/report", "name": "b" }),
        ),
        case::<DeprecateVersionRequest>(
            |it| templates::decode_deprecate(it).map(drop),
            json!({ "message": "a" }),
        ),
        case::<ArchiveTemplateRequest>(
            |it| templates::decode_archive(it).map(drop),
            json!({ "archive_reason": "a" }),
        ),
        case::<TransferTemplateRequest>(
            |it| templates::decode_transfer(it).map(drop),
            json!({ OWNER: "a" }),
        ),
    ]
}
