//! Requests about people, workflows and templates, and the arguments of their tools.

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
        mcp::{
            arguments,
            people::{
                self as people_tools, InvitationArguments, ListInvitationsArguments,
                ListKeysArguments, ListSharesArguments, ListTeamsArguments, MintKeyArguments,
                NoArguments, RevokeKeyArguments, ShareArguments, TeamArguments,
                TeamMemberArguments, TransferTeamArguments,
            },
            template_arguments::{
                self as template_tools, ArchiveArguments, DeprecateArguments, GetTemplateArguments,
                GetTemplateFileArguments, ListTemplatesArguments, TemplateArguments,
                TemplateVersionArguments, TransferTemplateArguments,
            },
            workflows::{
                self as tools, GrantWorkflowArguments, ListWorkflowsArguments,
                OptimizeWorkflowArguments, RevokeWorkflowGrantArguments, TransferWorkflowArguments,
                WorkflowArguments, WorkflowFileArguments, WorkflowFilesArguments,
                WorkflowVersionArguments,
            },
        },
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
    cases.extend(of_people_tools());
    cases.extend(of_workflows());
    cases.extend(of_workflow_tools());
    cases.extend(of_templates());
    cases.extend(of_template_tools());
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
    ]
}

fn of_people_tools() -> Vec<DescribedCase> {
    vec![
        case::<NoArguments>(people_tools::nothing, json!({})),
        case::<ListTeamsArguments>(
            |it| people_tools::teams(it).map(drop),
            json!({ "filter": "all" }),
        ),
        case::<TeamArguments>(
            |it| people_tools::one(it, "team_id").map(drop),
            json!({ "team_id": "a" }),
        ),
        case::<TeamMemberArguments>(
            |it| people_tools::pair(it, ("team_id", "user_identifier")).map(drop),
            json!({ "team_id": "a", "user_identifier": "b" }),
        ),
        case::<TransferTeamArguments>(
            |it| people_tools::pair(it, ("team_id", "new_owner_user_identifier")).map(drop),
            json!({ "team_id": "a", "new_owner_user_identifier": "b" }),
        ),
        case::<InvitationArguments>(
            |it| people_tools::one(it, "invitation_id").map(drop),
            json!({ "invitation_id": "a" }),
        ),
        case::<ListInvitationsArguments>(|it| people_tools::invitations(it).map(drop), json!({})),
        case::<ShareArguments>(|it| people_tools::share(it).map(drop), json!({ "share_id": "a" })),
        case::<ListSharesArguments>(|it| people_tools::shares(it).map(drop), json!({})),
        read::<AnswerShareRequest>(json!({})),
        case::<RevokeKeyArguments>(
            |it| people_tools::one(it, "key_id").map(drop),
            json!({ "key_id": "a" }),
        ),
        case::<MintKeyArguments>(
            |it| people_tools::one(it, "name").map(drop),
            json!({ "name": "a" }),
        ),
        case::<ListKeysArguments>(|it| arguments::page(it).map(drop), json!({})),
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

fn of_workflow_tools() -> Vec<DescribedCase> {
    let skill = || json!({ "skill_id": "a" });
    vec![
        case::<WorkflowArguments>(|it| tools::named(it, &[]).map(drop), skill()),
        case::<WorkflowVersionArguments>(|it| tools::named(it, &["version"]).map(drop), skill()),
        case::<OptimizeWorkflowArguments>(|it| tools::optimize(it).map(drop), skill()),
        case::<WorkflowFileArguments>(
            |it| tools::file(it).map(drop),
            json!({ "skill_id": "a", "path": "b" }),
        ),
        case::<WorkflowFilesArguments>(
            |it| tools::files(it).map(drop),
            json!({ "skill_id": "a", "paths": ["b"] }),
        ),
        case::<ListWorkflowsArguments>(|it| tools::list(it).map(drop), json!({})),
        case::<GrantWorkflowArguments>(
            |it| {
                let rest = tools::named(it, &[GRANTEE, "role", "include_history"])?.2;
                workflows::decode_grant(&rest).map(drop)
            },
            json!({ "skill_id": "a", GRANTEE: "@ann", "role": "view" }),
        ),
        case::<RevokeWorkflowGrantArguments>(
            |it| workflows::decode_revoke(&tools::named(it, &[GRANTEE])?.2).map(drop),
            json!({ "skill_id": "a", GRANTEE: "@ann" }),
        ),
        case::<TransferWorkflowArguments>(
            |it| workflows::decode_transfer(&tools::named(it, &[OWNER])?.2).map(drop),
            json!({ "skill_id": "a", OWNER: "@ann" }),
        ),
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

fn of_template_tools() -> Vec<DescribedCase> {
    let template = || json!({ "template_id": "@ann/report" });
    let version = || json!({ "template_id": "@ann/report", "version": 1 });
    let identifier = || json!({ "identifier": "@ann/report" });
    vec![
        case::<TemplateArguments>(|it| template_tools::template(it).map(drop), template()),
        case::<TemplateVersionArguments>(
            |it| template_tools::template_version(it, None).map(drop),
            version(),
        ),
        case::<DeprecateArguments>(
            |it| template_tools::template_version(it, Some("message")).map(drop),
            version(),
        ),
        case::<ArchiveArguments>(
            |it| template_tools::template_and_text(it, "archive_reason").map(drop),
            template(),
        ),
        case::<GetTemplateArguments>(|it| template_tools::identifier(it).map(drop), identifier()),
        case::<GetTemplateFileArguments>(
            |it| template_tools::identifier_and_path(it).map(drop),
            json!({ "identifier": "@ann/report", "path": "a" }),
        ),
        case::<ListTemplatesArguments>(|it| template_tools::list(it).map(drop), json!({})),
        case::<TransferTemplateArguments>(
            |it| template_tools::transfer(it).map(drop),
            json!({ "template_id": "@ann/report", OWNER: "a" }),
        ),
    ]
}
