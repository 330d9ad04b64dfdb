//! A server with every surface, and callers that speak each of them.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::{
    app::{TestApp, TestCaller, TestReply},
    fake_executor::{Behaviour, FakeExecutor, says_valid},
    fake_facilitator::FakeFacilitator,
    surface_table::{
        self, BadRequest, DecidedRound, JobKind, LOST_POOL, LOST_PROFILE, Sender, Surface, chat,
        patched,
    },
};
use jurat_wire::api::openai::profile;
use serde_json::{Value, json};

use crate::{
    a2a::{self, Binding},
    mcp,
    x402::{Shop, encoded},
};

/// The result of a request, read from the envelope of its surface.
pub(super) struct Answer {
    /// The stable code, if the result is an error.
    pub(super) code: Option<String>,
    /// The reply of the API, or its problem.
    pub(super) reply: Value,
}

/// A request in the words of the API and of OpenAI's clients.
struct Asked {
    kind: JobKind,
    sender: Sender,
    request: Value,
    chat: Value,
}

pub(super) struct Desk {
    shop: Shop,
    /// Numbers payments and messages, which must not repeat.
    sent: AtomicU8,
}

impl Desk {
    pub(super) async fn honest() -> Self {
        Self::with([says_valid(), says_valid(), says_valid()]).await
    }

    pub(super) async fn with(behaviours: [Behaviour; 3]) -> Self {
        let facilitator = FakeFacilitator::start().await;
        let section = json!({ "replicas": 3, "session_pool": LOST_POOL });
        let lost = profile::read(LOST_PROFILE, &section).unwrap();
        let profiles = profile::built_in().with([lost]);
        let app = TestApp::selling_with(facilitator.settings(), profiles).await;
        let mut executors = Vec::new();
        for (fake, body) in surface_table::executors(behaviours).await {
            let reply = app.admin().post("/v1/executors", &body).await;
            assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
            executors.push(fake);
        }
        let executors = executors.try_into().unwrap();
        let shop = Shop { app: Arc::new(app), facilitator, executors };
        Self { shop, sent: AtomicU8::new(0) }
    }

    /// How often executors were asked for work.
    pub(super) fn asked(&self) -> usize {
        let calls = self.shop.executors.iter().flat_map(FakeExecutor::calls);
        calls.filter(|call| ["execute", "verify"].contains(&call.endpoint())).count()
    }

    pub(super) async fn decide(&self, surface: Surface, round: &DecidedRound) -> Answer {
        let asked = Asked {
            kind: round.kind,
            sender: Sender::Operator,
            request: patched(round.kind.request(), &round.patch),
            chat: patched(chat(), &round.chat_patch),
        };
        self.ask(surface, asked).await
    }

    /// The code with which a bad request is refused.
    pub(super) async fn refuse(&self, surface: Surface, kind: JobKind, bad: &BadRequest) -> String {
        let (request, chat) = (bad.request(kind), bad.chat());
        let answer = self.ask(surface, Asked { kind, sender: bad.sender, request, chat }).await;
        answer.code.unwrap_or_else(|| panic!("{surface:?} accepts {}", bad.name))
    }

    async fn ask(&self, surface: Surface, asked: Asked) -> Answer {
        let caller = self.caller(asked.sender).await;
        let kind = asked.kind.as_str();
        match surface {
            Surface::Rest => {
                problem(&caller.post(&format!("/api/v3/{kind}"), &asked.request).await)
            }
            Surface::McpLegacy => tool(&caller, mcp::LEGACY, &asked).await,
            Surface::McpModern => tool(&caller, mcp::MODERN, &asked).await,
            Surface::A2aJsonRpc => self.message(&caller, Binding::JsonRpc, asked).await,
            Surface::A2aHttp => self.message(&caller, Binding::Http, asked).await,
            Surface::X402 => self.purchase(&asked).await,
            Surface::OpenAi => completion(&caller.post("/v1/chat/completions", &asked.chat).await),
            Surface::Cli => panic!("the command line has a test of its own"),
        }
    }

    async fn caller(&self, sender: Sender) -> TestCaller<'_> {
        let app = &self.shop.app;
        match sender {
            Sender::Operator => app.admin(),
            Sender::Reader => app.caller("reader", &[Scope::RoundsRead]).await,
            Sender::Poor => app.caller("poor", &[Scope::RoundsCreate, Scope::RoundsRead]).await,
            Sender::Nobody => app.anonymous(),
        }
    }

    fn number(&self) -> u8 {
        self.sent.fetch_add(1, Ordering::SeqCst)
    }

    async fn message(&self, caller: &TestCaller<'_>, binding: Binding, asked: Asked) -> Answer {
        let request = patched(asked.request, &json!({ "skill": asked.kind.as_str() }));
        let message = a2a::data(&format!("m{}", self.number()), &request);
        let task = match a2a::call(caller, binding, "SendMessage", &message).await {
            Ok(reply) => reply["task"].clone(),
            Err(refusal) => return Answer { code: Some(refusal.code), reply: Value::Null },
        };
        // A decided round is a completed task; its status names the code of a disagreement.
        let said = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
        let code = said.split_once(": ").map(|(word, _)| word);
        let code = code.filter(|word| *word == "consensus_disagreement").map(str::to_owned);
        Answer { code, reply: a2a::part(&task, "answer", "data").clone() }
    }

    /// Nobody pays with nothing; everybody else with a payment for three replicas.
    async fn purchase(&self, asked: &Asked) -> Answer {
        let path = format!("/api/v3/x402/{}", asked.kind.as_str());
        let header = encoded(&self.shop.payment(self.number()));
        let paid = [("PAYMENT-SIGNATURE", header.as_str())];
        let headers = if asked.sender == Sender::Nobody { &[][..] } else { &paid };
        problem(&self.shop.app.anonymous().post_with(&path, &asked.request, headers).await)
    }
}

/// A refusal is a problem document.
#[track_caller]
fn problem(reply: &TestReply) -> Answer {
    let body = reply.json();
    if reply.status == StatusCode::OK {
        return Answer { code: None, reply: body };
    }
    assert_eq!(body["status"], reply.status.as_u16(), "{body}");
    Answer { code: body["code"].as_str().map(str::to_owned), reply: body }
}

/// A refusal is a tool error with the problem, or the problem itself if no message was read.
async fn tool(caller: &TestCaller<'_>, era: &str, asked: &Asked) -> Answer {
    let params = json!({ "name": asked.kind.as_str(), "arguments": asked.request });
    let reply = mcp::ask(caller, era, "tools/call", params).await;
    if reply.status != StatusCode::OK {
        return problem(&reply);
    }
    let result = mcp::result(&reply);
    let content = result["structuredContent"].clone();
    let code = content["code"].as_str().map(str::to_owned);
    assert_eq!(result["isError"], code.is_some(), "{result}");
    Answer { code, reply: content }
}

/// A refusal is OpenAI's error object, with the problem beside it.
#[track_caller]
fn completion(reply: &TestReply) -> Answer {
    let body = reply.json();
    if reply.status == StatusCode::OK {
        return Answer { code: None, reply: body["jurat"].clone() };
    }
    let error = &body["error"];
    assert_eq!(error["code"], error["jurat"]["code"], "{body}");
    Answer { code: error["code"].as_str().map(str::to_owned), reply: error["jurat"].clone() }
}
