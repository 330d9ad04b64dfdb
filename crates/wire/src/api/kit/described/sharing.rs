//! Requests about people, workflows and templates.

use jurat_core::{
    code::ProblemCode,
    verifier::InputError,
    workflow::draft::{check_deletions, check_files},
};
use serde_json::{Value, json};

use super::{DescribedCase, case, read};
use crate::{
    api::{
        logins::{ApproveRequest, CodeRequest, ExchangeRequest, VerifyCodeRequest},
        people::HandleRequest,
        shares::AnswerShareRequest,
        teams::{AddMemberRequest, TransferTeamRequest},
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
        read::<CodeRequest>(json!({ "email": "a" })),
        read::<VerifyCodeRequest>(json!({ "email": "a", "code": "b" })),
        read::<ExchangeRequest>(json!({ "hostname": "a" })),
        read::<ApproveRequest>(json!({ "user_code": "a", "approve": true })),
        read::<HandleRequest>(json!({ "handle": "a" })),
        read::<AddMemberRequest>(json!({ "user_identifier": "a" })),
        read::<TransferTeamRequest>(json!({ "new_owner_user_identifier": "a" })),
        read::<AnswerShareRequest>(json!({})),
    ]
}

/// What the core finds wrong with what was read.
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
        read::<WorkflowGrantRequest>(json!({ GRANTEE: "ann@example.com", "role": "view" })),
        read::<RevokeWorkflowGrantRequest>(json!({ GRANTEE: "@ann" })),
        read::<TransferWorkflowRequest>(json!({ OWNER: "ann@example.com" })),
        read::<SearchWorkflowsRequest>(json!({ "query": "a" })),
    ]
}

fn of_templates() -> Vec<DescribedCase> {
    vec![
        read::<PublishTemplateRequest>(json!({ "skill_id": "a" })),
        read::<SearchTemplatesRequest>(json!({ "query": "a", "filter": "all", "limit": 1 })),
        case::<ForkTemplateRequest>(
            |it| templates::decode_fork(it).map(drop),
            json!({ "identifier": "@ann/report", "name": "b" }),
        ),
        read::<DeprecateVersionRequest>(json!({ "message": "a" })),
        read::<ArchiveTemplateRequest>(json!({ "archive_reason": "a" })),
        read::<TransferTemplateRequest>(json!({ OWNER: "a" })),
    ]
}
