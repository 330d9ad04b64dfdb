//! Reads back every example of a reply in the OpenAPI document with its type.

use std::{borrow::Cow, collections::BTreeMap};

use jurat_wire::{
    api::{
        agent_events::AgentEventEntry,
        agent_registration::AgentRegistrationFile,
        agent_runs::{
            AgentRunBody, AgentRunEventBody, AgentRunLine, AgentRunResultBody, AgentRunSubmitted,
        },
        consensus_reply::{DelegateReply, RoundReply, VerdictReply},
        credits::{AccountBody, AccountUsageBody, GrantBody, MeBody, TransferBody},
        doctor::{CheckedEntries, CheckupBody},
        executors::{ExecutorBody, ProbeBody},
        invitations::{InvitationBody, InvitationResolved, InvitationSent},
        keys::{CreatedKey, KeyPage},
        kit::page::PageBody,
        knowledge::KnowledgeBody,
        logins::{
            ClientConfig, CodeSent, DeviceAnswered, DeviceBody, DeviceProblemBody, DeviceTokenBody,
            LoginKeyBody,
        },
        mcp::ProtectedResource,
        nodes::{
            NodeBody, NodeInvitationBody, PeerBody, PeerBookingBody, PeerOffersBody,
            PeerStatementBody,
        },
        openai::{
            models::{ChatModel, ChatModelList},
            reply::ChatCompletion,
        },
        packs::PackBody,
        payments::{PaidReply, PaymentPendingBody},
        peer::{
            node::{PeerCreated, PeerMiners, PeerNode, PeerSession, PeerSessions},
            reply::{
                PeerChatCompletion, PeerCompletion, PeerDelegateReply, PeerFactcheckReply,
                PeerValidateReply,
            },
            task::{PeerTask, PeerTasks},
        },
        people::ClaimedHandle,
        prune::PrunedBody,
        rounds::{ErasedBody, RoundBody},
        sessions::SessionBody,
        shares::ShareBody,
        status::{ApiIndex, RemovalBody, RemovedExecutor, ServerStatus},
        tasks::{DecisionBody, TaskBody, TaskEventBody, TaskSummaryBody},
        teams::{DeletedTeam, MemberBody, RemovedMember, TeamBody},
        templates::{
            ArchivedTemplate, DeletedTemplate, DeletedVersion, DeprecatedVersion, ForkedTemplate,
            OfferedTemplate, PublishedTemplateBody, SafetyCheckBody, TemplateBody,
            TemplateFileEnvelope, TemplateSearchBody, TemplateSummary, UnarchivedTemplate,
            UnpublishedVersion,
        },
        v2::{DelegateReplyV2, ReplyV2, VerdictReplyV2},
        verifier_runs::VerifierRunBody,
        verifier_tests::ReportBody,
        verifiers::{
            DeletedVerifier, DeployedVerifier, ListedVerifier, RevokedVerifier, VerifierBody,
            VersionBody,
        },
        webhooks::{WebhookBody, WebhookDeliveryBody},
        workflows::{
            ArchivedWorkflow, DeletedWorkflow, DeletedWorkflowVersion, GrantedWorkflow,
            LeftWorkflow, LineageBody, ListedWorkflow, OfferedWorkflow, PatchedWorkflow,
            RevokedWorkflowGrant, SavedWorkflowBody, WorkflowBody, WorkflowGrantList,
            WorkflowSearchBody,
        },
    },
    executor::{CapabilitiesResponse, VerifyResponse},
    problem::ProblemBody,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use utoipa::ToSchema;

const DOCUMENT: &str = include_str!("../../../../docs/reference/openapi.json");
/// Replies that another standard defines, or that a client reads without a type.
const UNTYPED: [&str; 12] = [
    "A2aPushConfig",
    "A2aPushConfigList",
    "A2aPushRemoved",
    "A2aRpcResponse",
    "A2aSendReply",
    "A2aTask",
    "A2aTaskPage",
    "AgentCard",
    "McpReply",
    "OpenApiDocument",
    "TaskContract",
    "WorkflowFileOrFiles",
];

type ReadBack = fn(&Value) -> serde_json::Result<Value>;

fn reader<T: ToSchema + DeserializeOwned + Serialize>() -> (Cow<'static, str>, ReadBack) {
    (T::name(), |example| Ok(json!(serde_json::from_str::<T>(&example.to_string())?)))
}

fn page<T: ToSchema + DeserializeOwned + Serialize>() -> (Cow<'static, str>, ReadBack) {
    reader::<PageBody<'static, T>>()
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn readers() -> BTreeMap<Cow<'static, str>, ReadBack> {
    BTreeMap::from([
        reader::<AccountBody<'_>>(),
        reader::<AccountUsageBody>(),
        reader::<AgentEventEntry<'_>>(),
        reader::<AgentRegistrationFile<'_>>(),
        reader::<PeerChatCompletion<'_>>(),
        reader::<PeerCompletion<'_>>(),
        (Cow::Borrowed("PeerProblem"), reader::<ProblemBody<'_>>().1),
        reader::<PeerCreated>(),
        reader::<PeerDelegateReply<'_>>(),
        reader::<PeerFactcheckReply<'_>>(),
        reader::<PeerMiners<'_>>(),
        reader::<PeerNode>(),
        reader::<PeerSession<'_>>(),
        reader::<PeerSessions<'_>>(),
        reader::<PeerTask<'_>>(),
        reader::<PeerTasks<'_>>(),
        reader::<PeerValidateReply<'_>>(),
        reader::<WebhookBody>(),
        reader::<WebhookDeliveryBody<'_>>(),
        reader::<AgentRunBody<'_>>(),
        reader::<AgentRunResultBody<'_>>(),
        reader::<AgentRunSubmitted<'_>>(),
        reader::<ApiIndex>(),
        reader::<ArchivedTemplate<'_>>(),
        reader::<ArchivedWorkflow<'_>>(),
        reader::<CapabilitiesResponse>(),
        reader::<ChatCompletion<'_>>(),
        reader::<ChatModel<'_>>(),
        reader::<ChatModelList<'_>>(),
        reader::<CheckedEntries<'_>>(),
        reader::<CheckupBody<'_>>(),
        reader::<ClaimedHandle<'_>>(),
        reader::<ClientConfig>(),
        reader::<ProtectedResource<'_>>(),
        reader::<CodeSent>(),
        reader::<CreatedKey>(),
        reader::<DecisionBody<'_>>(),
        reader::<DelegateReply<'_>>(),
        reader::<DelegateReplyV2<'_>>(),
        reader::<DeletedTeam<'_>>(),
        reader::<DeletedTemplate<'_>>(),
        reader::<DeletedVerifier<'_>>(),
        reader::<DeletedVersion<'_>>(),
        reader::<DeletedWorkflow<'_>>(),
        reader::<DeletedWorkflowVersion<'_>>(),
        reader::<DeployedVerifier<'_>>(),
        reader::<DeprecatedVersion<'_>>(),
        reader::<DeviceAnswered>(),
        reader::<DeviceBody<'_>>(),
        reader::<DeviceProblemBody>(),
        reader::<DeviceTokenBody<'_>>(),
        reader::<ErasedBody<'_>>(),
        reader::<ExecutorBody<'_>>(),
        reader::<ForkedTemplate<'_>>(),
        reader::<GrantBody<'_>>(),
        reader::<GrantedWorkflow<'_>>(),
        reader::<InvitationResolved<'_>>(),
        reader::<InvitationSent<'_>>(),
        reader::<KeyPage>(),
        reader::<LeftWorkflow<'_>>(),
        reader::<LineageBody<'_>>(),
        reader::<LoginKeyBody>(),
        reader::<MeBody<'_>>(),
        reader::<NodeBody<'_>>(),
        reader::<NodeInvitationBody<'_>>(),
        reader::<OfferedTemplate<'_>>(),
        reader::<OfferedWorkflow<'_>>(),
        reader::<PackBody<'_>>(),
        reader::<PaidReply<'_>>(),
        reader::<PatchedWorkflow<'_>>(),
        reader::<PeerBody<'_>>(),
        reader::<PeerOffersBody<'_>>(),
        reader::<PeerStatementBody<'_>>(),
        reader::<PaymentPendingBody<'_>>(),
        reader::<ProbeBody<'_>>(),
        reader::<ProblemBody<'_>>(),
        reader::<PrunedBody>(),
        reader::<PublishedTemplateBody<'_>>(),
        reader::<RemovalBody<'_>>(),
        reader::<RemovedExecutor<'_>>(),
        reader::<RemovedMember<'_>>(),
        reader::<ReportBody<'_>>(),
        reader::<RevokedVerifier<'_>>(),
        reader::<RevokedWorkflowGrant<'_>>(),
        reader::<RoundBody<'_>>(),
        reader::<SafetyCheckBody<'_>>(),
        reader::<SavedWorkflowBody<'_>>(),
        reader::<ServerStatus>(),
        reader::<SessionBody<'_>>(),
        reader::<ShareBody<'_>>(),
        reader::<TaskBody<'_>>(),
        reader::<TeamBody<'_>>(),
        reader::<TemplateBody<'_>>(),
        reader::<TemplateFileEnvelope<'_>>(),
        reader::<TemplateSearchBody<'_>>(),
        reader::<UnarchivedTemplate<'_>>(),
        reader::<UnpublishedVersion<'_>>(),
        reader::<VerdictReply<'_>>(),
        reader::<VerdictReplyV2<'_>>(),
        reader::<VerifierBody<'_>>(),
        reader::<VerifierRunBody<'_>>(),
        reader::<VerifyResponse>(),
        reader::<WorkflowBody<'_>>(),
        reader::<WorkflowGrantList<'_>>(),
        reader::<WorkflowSearchBody<'_>>(),
        page::<AccountBody<'_>>(),
        page::<AgentEventEntry<'_>>(),
        page::<WebhookBody>(),
        page::<WebhookDeliveryBody<'_>>(),
        page::<AgentRunEventBody<'_>>(),
        page::<AgentRunLine>(),
        page::<ExecutorBody<'_>>(),
        page::<InvitationBody<'_>>(),
        page::<KnowledgeBody<'_>>(),
        page::<ListedVerifier<'_>>(),
        page::<ListedWorkflow<'_>>(),
        page::<MemberBody<'_>>(),
        page::<PeerBody<'_>>(),
        page::<PeerBookingBody<'_>>(),
        page::<RoundBody<'_>>(),
        page::<SessionBody<'_>>(),
        page::<ShareBody<'_>>(),
        page::<TaskEventBody<'_>>(),
        page::<TaskSummaryBody<'_>>(),
        page::<TeamBody<'_>>(),
        page::<TemplateSummary<'_>>(),
        page::<TransferBody<'_>>(),
        page::<VerifierRunBody<'_>>(),
        page::<VersionBody<'_>>(),
    ])
}

/// An example of a reply, with the name of its schema.
struct Example<'a> {
    operation: String,
    schema: &'a str,
    value: &'a Value,
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn examples(document: &Value) -> Vec<Example<'_>> {
    let mut found = Vec::new();
    let resolved = |example: &'_ Value| -> Option<&Value> {
        let pointer = example.get("$ref")?.as_str()?.strip_prefix('#')?;
        document.pointer(pointer)
    };
    for (path, methods) in members(&document["paths"]) {
        for (method, operation) in members(methods) {
            for (status, reply) in members(&operation["responses"]) {
                let reply = resolved(reply).unwrap_or(reply);
                let content = members(&reply["content"]).filter(|(kind, _)| kind.ends_with("json"));
                for (_, content) in content {
                    let schema = content["schema"]["$ref"].as_str().unwrap_or_default();
                    let schema = schema.rsplit('/').next().unwrap_or_default();
                    let several = members(&content["examples"]).map(|(_, example)| {
                        let example = resolved(example).unwrap_or(example);
                        &example["value"]
                    });
                    for value in content.get("example").into_iter().chain(several) {
                        let operation = format!("{method} {path} {status}");
                        found.push(Example { operation, schema, value });
                    }
                }
            }
        }
    }
    found
}

#[test]
fn every_example_reads_back_as_it_was_written() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let (readers, examples) = (readers(), examples(&document));
    assert!(1_000 < examples.len(), "{} examples", examples.len());
    for Example { operation, schema, value } in examples {
        if UNTYPED.contains(&schema) {
            continue;
        }
        let Some(read) = readers.get(schema) else {
            panic!("{operation}: no type reads `{schema}`; add it to the list");
        };
        match read(value) {
            Ok(written) => assert_eq!(&written, value, "{operation} as `{schema}`"),
            Err(error) => panic!("{operation} as `{schema}`: {error}\n{value}"),
        }
    }
}

#[test]
fn a_reply_of_a_later_version_reads_without_its_new_members() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let readers = readers();
    for Example { operation, schema, value } in examples(&document) {
        let Some(read) = readers.get(schema) else { continue };
        let mut later = value.clone();
        // A list has members in its items.
        let object = if later.is_array() { &mut later[0] } else { &mut later };
        object["a_new_member"] = json!({ "of": "a later version" });
        assert_eq!(read(&later).unwrap(), *value, "{operation} as `{schema}`");
    }
}

#[test]
fn the_kind_of_a_round_is_told_from_its_reply() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    for Example { operation, schema, value } in examples(&document) {
        let text = value.to_string();
        let is_delegate = match schema {
            "DelegateReply" | "VerdictReply" => {
                matches!(serde_json::from_str(&text).unwrap(), RoundReply::Delegate(_))
            }
            "DelegateReplyV2" | "VerdictReplyV2" => {
                matches!(serde_json::from_str(&text).unwrap(), ReplyV2::Delegate(_))
            }
            _ => continue,
        };
        assert_eq!(is_delegate, schema.starts_with("Delegate"), "{operation}");
    }
}
