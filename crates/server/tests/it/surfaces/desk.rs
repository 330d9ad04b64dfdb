//! A server with every surface, and callers that speak each of them.

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU32, Ordering},
};

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::{
    app::{TestApp, TestCaller, TestReply},
    fake_executor::{Behaviour, FakeExecutor, fact},
    fake_facilitator::FakeFacilitator,
    surface_table::{
        self, BadRequest, DecidedRound, JobKind, LOST_POOL, LOST_PROFILE, SICK_POOL, SICK_PROFILE,
        Sender, Sending, Surface, chat, patched, prompt,
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

/// A request in the words of the API, of OpenAI's clients and of prompt-oriented ones.
struct Asked {
    kind: JobKind,
    sender: Sender,
    sending: Sending,
    request: Value,
    chat: Value,
    prompt: Value,
    /// Its number, which names messages and payments, and the key of a request.
    number: u32,
}

impl Asked {
    fn body(&self) -> String {
        self.text_of(&self.request)
    }

    /// A document as it is sent.
    fn text_of(&self, document: &Value) -> String {
        match self.sending {
            Sending::AsText(text) => text.to_owned(),
            Sending::AsJson | Sending::UnderUsedKey => document.to_string(),
        }
    }

    fn key(&self) -> String {
        format!("key-{}", self.number)
    }
}

pub(super) struct Desk {
    shop: Shop,
    /// Numbers messages and payments, which must not repeat.
    sent: AtomicU32,
    paid: AtomicU8,
    _sick: Vec<FakeExecutor>,
}

impl Desk {
    /// With executors that answer every job.
    pub(super) async fn honest() -> Self {
        Self::with([fact("TRUE"), fact("TRUE"), fact("TRUE")]).await
    }

    pub(super) async fn with(behaviours: [Behaviour; 3]) -> Self {
        let facilitator = FakeFacilitator::start().await;
        let own = [(LOST_PROFILE, LOST_POOL), (SICK_PROFILE, SICK_POOL)].map(|(name, pool)| {
            profile::read(name, &json!({ "replicas": 3, "session_pool": pool })).unwrap()
        });
        let profiles = profile::built_in().with(own);
        let app = TestApp::selling_with(facilitator.settings(), profiles).await;
        let mut executors = Vec::new();
        for (fake, body) in surface_table::executors(behaviours).await {
            let reply = app.admin().post("/v1/executors", &body).await;
            assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
            executors.push(fake);
        }
        let mut sick = Vec::new();
        for (fake, body) in surface_table::sick_executors().await {
            let reply = app.admin().post("/v1/executors", &body).await;
            assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
            surface_table::fall_ill(&fake);
            let check = format!("/v1/executors/{}/check", body["name"].as_str().unwrap());
            app.admin().post(&check, &json!({})).await;
            sick.push(fake);
        }
        let executors = executors.try_into().unwrap();
        let shop = Shop { app: Arc::new(app), facilitator, executors };
        Self { shop, sent: AtomicU32::new(0), paid: AtomicU8::new(0), _sick: sick }
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
            sending: Sending::AsJson,
            request: patched(round.kind.request(), &round.patch),
            chat: patched(chat(), &round.chat_patch),
            prompt: prompt(round.kind),
            number: self.number(surface),
        };
        self.ask(surface, asked).await
    }

    /// The code with which a bad request is refused.
    pub(super) async fn refuse(&self, surface: Surface, kind: JobKind, bad: &BadRequest) -> String {
        let number = self.number(surface);
        let (sender, sending) = (bad.sender, bad.sending);
        if sending == Sending::UnderUsedKey {
            let (request, chat, prompt) = (kind.request(), chat(), prompt(kind));
            let good = Asked { kind, sender, sending, request, chat, prompt, number };
            let answer = self.ask(surface, good).await;
            assert_eq!(answer.code, None, "{surface:?} {kind:?}: the key is not used yet");
        }
        let (request, mut chat) = (bad.request(kind), bad.chat());
        if sending == Sending::UnderUsedKey {
            chat["messages"][0]["content"] = json!("11 * 11");
        }
        let prompt = bad.prompt(kind);
        let asked = Asked { kind, sender, sending, request, chat, prompt, number };
        let answer = self.ask(surface, asked).await;
        let Answer { code, reply } = answer;
        code.unwrap_or_else(|| panic!("{surface:?}, {kind:?} accepts {}: {reply}", bad.name))
    }

    async fn ask(&self, surface: Surface, asked: Asked) -> Answer {
        let caller = self.caller(asked.sender).await;
        match surface {
            Surface::Rest => {
                let path = format!("/api/v3/{}", asked.kind.as_str());
                problem(&posted(&caller, &path, (asked.body(), &asked)).await)
            }
            Surface::McpLegacy => tool(&caller, mcp::LEGACY, &asked).await,
            Surface::McpModern => tool(&caller, mcp::MODERN, &asked).await,
            Surface::A2aJsonRpc => self.message(&caller, Binding::JsonRpc, asked).await,
            Surface::A2aHttp => self.message(&caller, Binding::Http, asked).await,
            Surface::X402 => self.purchase(&asked).await,
            Surface::OpenAi => {
                let text = asked.text_of(&asked.chat);
                completion(&posted(&caller, "/v1/chat/completions", (text, &asked)).await)
            }
            Surface::Peer => {
                let path = format!("/api/v1/{}", asked.kind.as_str());
                problem(&posted(&caller, &path, (asked.text_of(&asked.prompt), &asked)).await)
            }
            Surface::Cli => panic!("the command line has a test of its own"),
        }
    }

    async fn caller(&self, sender: Sender) -> TestCaller<'_> {
        let app = &self.shop.app;
        let both = [Scope::RoundsCreate, Scope::RoundsRead];
        match sender {
            Sender::Operator => app.admin(),
            Sender::Reader => app.caller("reader", &[Scope::RoundsRead]).await,
            Sender::Poor => app.caller("poor", &both).await,
            Sender::Hasty => {
                let wanted = json!({ "name": format!("hasty-{}", self.number(Surface::Rest)), "rate_per_minute": 1 });
                let made = app.admin().post("/v1/api-keys", &wanted).await.json();
                let hasty = app.with_key(made["key"].as_str().unwrap());
                assert_eq!(hasty.get("/v1/rounds").await.status, StatusCode::OK);
                hasty
            }
            Sender::Nobody => app.anonymous(),
        }
    }

    fn number(&self, surface: Surface) -> u32 {
        if surface == Surface::X402 {
            u32::from(self.paid.fetch_add(1, Ordering::SeqCst))
        } else {
            self.sent.fetch_add(1, Ordering::SeqCst)
        }
    }

    async fn message(&self, caller: &TestCaller<'_>, binding: Binding, asked: Asked) -> Answer {
        let request = patched(asked.request.clone(), &json!({ "skill": asked.kind.as_str() }));
        let message = a2a::data(&format!("m{}", asked.number), &request);
        let reply = match asked.sending {
            Sending::AsText(text) => a2a::send_text(caller, binding, text).await,
            Sending::AsJson | Sending::UnderUsedKey => {
                a2a::send(caller, binding, "SendMessage", &message).await
            }
        };
        let task = match a2a::read(binding, &reply) {
            Ok(reply) => reply["task"].clone(),
            Err(refusal) => return Answer { code: Some(refusal.code), reply: Value::Null },
        };
        // A decided round is a completed task; its status names the code of a disagreement.
        let said = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
        let code = said.split_once(": ").map(|(word, _)| word);
        let code = code.filter(|word| *word == "consensus_disagreement").map(str::to_owned);
        Answer { code, reply: a2a::part(&task, "answer", "data").clone() }
    }

    /// Nobody pays with nothing; everybody else with a payment for three replicas, whose number is
    /// the key of the request.
    async fn purchase(&self, asked: &Asked) -> Answer {
        let path = format!("/api/v3/x402/{}", asked.kind.as_str());
        let header = encoded(&self.shop.payment(u8::try_from(asked.number).unwrap()));
        let paid = [("PAYMENT-SIGNATURE", header.as_str())];
        let headers = if asked.sender == Sender::Nobody { &[][..] } else { &paid };
        let body = Body::from(asked.body());
        problem(&self.shop.app.anonymous().send("POST", &path, body, headers).await)
    }
}

/// The reply to a text, with the key of the request if it has one.
async fn posted(caller: &TestCaller<'_>, path: &str, (text, asked): (String, &Asked)) -> TestReply {
    let key = asked.key();
    let keyed = [("idempotency-key", key.as_str())];
    let headers = if asked.sending == Sending::UnderUsedKey { &keyed[..] } else { &[] };
    caller.send("POST", path, Body::from(text), headers).await
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
    let reply = match asked.sending {
        Sending::AsText(text) => caller.send("POST", "/mcp", Body::from(text), &[]).await,
        Sending::AsJson | Sending::UnderUsedKey => {
            mcp::ask(caller, era, "tools/call", params).await
        }
    };
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
