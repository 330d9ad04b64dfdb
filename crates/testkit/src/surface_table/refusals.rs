//! Requests that every surface refuses, and the differences between surfaces.

use serde_json::{Value, json};

use super::{JobKind, Surface, chat, patched, prompt};

/// A request with one fault.
#[derive(Debug)]
pub struct BadRequest {
    pub name: &'static str,
    pub sender: Sender,
    pub sending: Sending,
    /// The jobs that can have the fault.
    kinds: &'static [JobKind],
    /// How the request differs from a good one.
    patch: Value,
    /// How the chat differs, in which some faults have another place.
    chat_patch: Value,
    /// How the request of a prompt-oriented client differs.
    prompt_patch: Value,
    /// The stable code of the refusal.
    code: &'static str,
    /// The surfaces that differ, each with the reason.
    differences: Vec<(Surface, SurfaceDifference)>,
}

/// Who sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    Operator,
    /// A key that can only read rounds.
    Reader,
    /// An account without credit.
    Poor,
    /// A key that may send one request in a minute, and has sent it.
    Hasty,
    /// No key at all.
    Nobody,
}

/// How a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    AsJson,
    /// This text instead.
    AsText(&'static str),
    /// Under the key of an earlier request, which was another one.
    UnderUsedKey,
}

/// A documented difference of a surface.
#[derive(Debug)]
pub enum SurfaceDifference {
    /// It refuses with this code of its own family.
    Code(&'static str, &'static str),
    /// It has no words for the fault.
    Inexpressible(&'static str),
}

impl BadRequest {
    pub fn request(&self, kind: JobKind) -> Value {
        patched(kind.request(), &self.patch)
    }

    pub fn chat(&self) -> Value {
        patched(chat(), &self.chat_patch)
    }

    pub fn prompt(&self, kind: JobKind) -> Value {
        patched(prompt(kind), &self.prompt_patch)
    }

    /// Whether a job of this kind can have the fault.
    pub fn is_for(&self, kind: JobKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// The code on this surface; none if the surface cannot express the fault.
    pub fn code(&self, surface: Surface) -> Option<&'static str> {
        let mut differences = self.differences.iter().filter(|(at, _)| *at == surface);
        match differences.next() {
            None => Some(self.code),
            Some((_, SurfaceDifference::Code(code, _))) => Some(code),
            Some((_, SurfaceDifference::Inexpressible(_))) => None,
        }
    }

    fn of(mut self, surface: Surface, difference: SurfaceDifference) -> Self {
        self.differences.push((surface, difference));
        self
    }
}

/// The table of refusals.
pub fn bad_requests() -> Vec<BadRequest> {
    [faults_of_the_request(), faults_of_the_policy(), faults_of_the_pool(), faults_of_the_sender()]
        .into_iter()
        .flatten()
        .collect()
}

fn bad(name: &'static str, code: &'static str, patch: Value) -> BadRequest {
    BadRequest {
        name,
        sender: Sender::Operator,
        sending: Sending::AsJson,
        kinds: &JobKind::ALL,
        patch,
        chat_patch: json!({}),
        prompt_patch: json!({}),
        code,
        differences: Vec::new(),
    }
}

fn faults_of_the_request() -> Vec<BadRequest> {
    let v1 = || {
        SurfaceDifference::Code("validation_error", "a bad request is 400 on /v1, and 422 on /api")
    };
    let large = "x".repeat(1024 * 1024);
    vec![
        BadRequest {
            // A chat ignores unknown members outside of `jurat`, as OpenAI's clients expect.
            chat_patch: json!({ "jurat": { "replica": 3 } }),
            ..bad("an unknown field", "request_invalid", json!({ "replica": 3 }))
        }
        .of(Surface::OpenAi, v1())
        .of(Surface::Peer, inexpressible("a prompt-oriented client may send fields of its own")),
        bad("two replicas", "request_invalid", json!({ "consensus": { "replicas": 2 } })).of(
            Surface::OpenAi,
            SurfaceDifference::Inexpressible(
                "the model sets the replicas, and a server refuses to start with a profile of two",
            ),
        )
        .of(Surface::Peer, inexpressible("two miners are rounded up to three replicas")),
        BadRequest {
            chat_patch: json!({ "messages": null }),
            prompt_patch: json!({ "prompt": null, "result_data": null, "claim": null }),
            ..bad("nothing to do", "request_invalid", json!({ "claim": null, "objective": null }))
        }
        .of(Surface::OpenAi, v1())
        .of(
            Surface::Cli,
            SurfaceDifference::Code(
                "usage_error",
                "the command sends nothing if there is nothing to send",
            ),
        ),
        BadRequest {
            chat_patch: json!({ "user": large }),
            prompt_patch: json!({ "user": large }),
            ..bad("a body that is too large", "payload_too_large", json!({ "context": large }))
        },
        BadRequest { sending: Sending::AsText("{"), ..bad("no JSON", "invalid_json", json!({})) }
            .of(
                Surface::Cli,
                SurfaceDifference::Code(
                    "usage_error",
                    "the command reads the file and sends nothing",
                ),
            ),
        BadRequest {
            sending: Sending::UnderUsedKey,
            prompt_patch: json!({ "user": "x" }),
            ..bad("another request under a key", "idempotency_mismatch", json!({ "context": "x" }))
        }
        .of(Surface::McpLegacy, no_key())
        .of(Surface::McpModern, no_key()),
    ]
}

fn no_key() -> SurfaceDifference {
    inexpressible("a tool takes no idempotency key")
}

const fn inexpressible(reason: &'static str) -> SurfaceDifference {
    SurfaceDifference::Inexpressible(reason)
}

/// A fact check has a policy and a schema of its own.
const POLICY_KINDS: &[JobKind] = &[JobKind::Validate, JobKind::Delegate];

fn faults_of_the_policy() -> Vec<BadRequest> {
    // No pattern that looks ahead can be matched in linear time.
    let schema = json!({ "type": "string", "pattern": "(?=x)x" });
    let format = json!({ "name": "x", "schema": schema });
    vec![
        BadRequest {
            kinds: POLICY_KINDS,
            ..bad("an unknown policy", "policy_invalid", json!({ "policy": "vp.none.v1" }))
        }
        .of(
            Surface::OpenAi,
            SurfaceDifference::Inexpressible(
                "the model sets the policy, and a server refuses to start with an unknown one",
            ),
        )
        .of(
            Surface::Peer,
            inexpressible("its policy is a tier, and everything else in it is ignored"),
        ),
        BadRequest {
            kinds: POLICY_KINDS,
            chat_patch: json!({
                "response_format": { "type": "json_schema", "json_schema": format },
            }),
            ..bad(
                "a schema beyond the limits",
                "schema_refused",
                json!({ "execution": { "output_schema": schema } }),
            )
        }
        .of(Surface::Peer, inexpressible("a prompt has no schema")),
    ]
}

fn faults_of_the_pool() -> Vec<BadRequest> {
    let pool = |sessions: &[&str]| json!({ "consensus": { "session_pool": sessions } });
    let no_pool = || {
        SurfaceDifference::Inexpressible(
            "the model names the sessions, and a server refuses to start with such a profile",
        )
    };
    vec![
        BadRequest {
            prompt_patch: json!({ "session_id": "s1" }),
            ..bad("a pool that is too small", "session_pool_too_small", pool(&["s1", "s2"]))
        }
        .of(Surface::OpenAi, no_pool()),
        bad("a session twice", "request_invalid", pool(&["s1", "s2", "s2"]))
            .of(Surface::OpenAi, no_pool())
            .of(Surface::Peer, inexpressible("it names one session, or one label")),
        BadRequest {
            chat_patch: json!({ "model": format!("jurat/{LOST_PROFILE}") }),
            prompt_patch: json!({ "session_id": LOST_POOL[2], "k_redundancy": 1 }),
            ..bad("an unknown session", "session_unknown", pool(&LOST_POOL))
        },
        BadRequest {
            chat_patch: json!({ "model": format!("jurat/{SICK_PROFILE}") }),
            prompt_patch: json!({ "session_id": SICK_PROFILE }),
            ..bad("unhealthy sessions", "sessions_unavailable", pool(&SICK_POOL))
        },
    ]
}

/// The operator's profile whose pool is [`LOST_POOL`]; chats name their sessions by such a profile.
pub const LOST_PROFILE: &str = "lost";
/// A pool with a session that does not exist.
pub const LOST_POOL: [&str; 3] = ["s1", "s2", "nobody"];
/// The operator's profile whose pool is [`SICK_POOL`], and the label of its sessions.
pub const SICK_PROFILE: &str = "sick";
/// Sessions of executors that are unhealthy.
pub const SICK_POOL: [&str; 3] = ["d1", "d2", "d3"];

fn faults_of_the_sender() -> Vec<BadRequest> {
    let paid = || {
        SurfaceDifference::Inexpressible("a payer has no key, and its rounds no price in credit")
    };
    let by = |sender, name, code| BadRequest { sender, ..bad(name, code, json!({})) };
    vec![
        by(Sender::Reader, "a key without the scope", "forbidden").of(Surface::X402, paid()),
        by(Sender::Poor, "an account without credit", "budget_exhausted").of(Surface::X402, paid()),
        by(Sender::Hasty, "one request too many", "rate_limited").of(Surface::X402, paid()),
        by(Sender::Nobody, "no key", "auth_required")
            .of(
                Surface::X402,
                SurfaceDifference::Code(
                    "payment_required",
                    "a payment takes the place of the key, so this is a request without a payment",
                ),
            )
            .of(
                Surface::Cli,
                SurfaceDifference::Code(
                    "command_failed",
                    "the command sends nothing without a key",
                ),
            ),
    ]
}
