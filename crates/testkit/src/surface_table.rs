//! The same requests for every surface: how each is decided, and with which code it is refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fake_executor::{
    Behaviour, FakeExecutor, FakeHealth, answers, fact, says_inconclusive, says_invalid,
    says_valid, status,
};

mod refusals;

pub use refusals::{
    BadRequest, LOST_POOL, LOST_PROFILE, SICK_POOL, SICK_PROFILE, Sender, Sending,
    SurfaceDifference, bad_requests,
};

/// A way to ask for a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Surface {
    Rest,
    McpLegacy,
    McpModern,
    A2aJsonRpc,
    A2aHttp,
    X402,
    OpenAi,
    /// The API for prompt-oriented clients.
    Peer,
    Cli,
}

impl Surface {
    /// The surfaces of the server; the command line is a program of its own.
    pub const SERVED: [Self; 8] = [
        Self::Rest,
        Self::McpLegacy,
        Self::McpModern,
        Self::A2aJsonRpc,
        Self::A2aHttp,
        Self::X402,
        Self::OpenAi,
        Self::Peer,
    ];

    /// Whether the surface has jobs of this kind: a chat is always delegated.
    pub fn has(self, kind: JobKind) -> bool {
        self != Self::OpenAi || kind == JobKind::Delegate
    }

    /// Whether a reply has the members that [`decision_of`] reads: a prompt-oriented client gets one
    /// text or one verdict, in a form of its own.
    pub fn shows_decisions(self) -> bool {
        self != Self::Peer
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    Validate,
    Delegate,
    Factcheck,
}

impl JobKind {
    pub const ALL: [Self; 3] = [Self::Validate, Self::Delegate, Self::Factcheck];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Delegate => "delegate",
            Self::Factcheck => "factcheck",
        }
    }

    /// A request to three executors that every surface can express.
    pub fn request(self) -> Value {
        match self {
            Self::Validate | Self::Factcheck => {
                json!({ "claim": "12 * 12 = 144", "consensus": { "replicas": 3 } })
            }
            Self::Delegate => json!({ "objective": "12 * 12", "consensus": { "replicas": 3 } }),
        }
    }
}

/// The delegate request in the words of OpenAI's clients: the model selects three executors.
pub fn chat() -> Value {
    json!({ "model": "jurat/safe", "messages": [{ "role": "user", "content": "12 * 12" }] })
}

/// The request of a kind in the words of prompt-oriented clients.
pub fn prompt(kind: JobKind) -> Value {
    match kind {
        JobKind::Validate => json!({ "result_data": "12 * 12 = 144", "k_redundancy": 3 }),
        JobKind::Delegate => json!({ "prompt": "12 * 12", "k_redundancy": 3 }),
        JobKind::Factcheck => json!({ "claim": "12 * 12 = 144", "k_redundancy": 3 }),
    }
}

/// Starts the executors of the sessions `s1`, `s2` and so on, each with the body of its
/// registration. The sessions cost something, so an account needs credit for them.
pub async fn executors(behaviours: [Behaviour; 3]) -> Vec<(FakeExecutor, Value)> {
    named_executors(["s1", "s2", "s3"], behaviours).await
}

/// Starts the executors of [`SICK_POOL`], which have to be registered before [`fall_ill`].
pub async fn sick_executors() -> Vec<(FakeExecutor, Value)> {
    let says = [says_valid(), says_valid(), says_valid()];
    let mut started = named_executors(SICK_POOL, says).await;
    for (_, body) in &mut started {
        body["session"]["labels"] = json!([SICK_PROFILE]);
    }
    started
}

/// Makes an executor unhealthy for its next check.
pub fn fall_ill(executor: &FakeExecutor) {
    executor.set(status(503).health(FakeHealth::Status(503)));
}

async fn named_executors(
    names: [&str; 3],
    behaviours: [Behaviour; 3],
) -> Vec<(FakeExecutor, Value)> {
    let mut started = Vec::new();
    for (name, behaviour) in names.into_iter().zip(behaviours) {
        let (family, model) = (format!("family-{name}"), format!("model-{name}"));
        let behaviour = behaviour.provider_family(&family).model_id(&model);
        let fake = FakeExecutor::start(behaviour).await;
        let session = json!({ "id": name, "price_micros": 1 });
        let body = json!({ "name": name, "url": fake.url(), "session": session });
        started.push((fake, body));
    }
    started
}

/// A round, and its result on every surface.
#[derive(Debug)]
pub struct DecidedRound {
    pub name: &'static str,
    pub kind: JobKind,
    /// The executors of the sessions `s1`, `s2` and `s3`.
    pub executors: [Behaviour; 3],
    /// How the request differs from that of its kind.
    pub patch: Value,
    /// How the chat differs.
    pub chat_patch: Value,
    /// The stable code, if the result is an error.
    pub code: Option<&'static str>,
    /// Some members of the result, as [`decision_of`] reads them.
    pub decision: Value,
}

/// The table of results.
pub fn decided_rounds() -> Vec<DecidedRound> {
    [validate_rounds(), delegate_rounds(), factcheck_rounds()].into_iter().flatten().collect()
}

fn round(
    name: &'static str,
    kind: JobKind,
    executors: [Behaviour; 3],
    decision: &Value,
) -> DecidedRound {
    DecidedRound {
        name,
        kind,
        executors,
        patch: json!({}),
        chat_patch: json!({}),
        code: None,
        decision: patched(json!({ "strategy": "majority" }), decision),
    }
}

/// The same round for a caller that takes no disagreement.
fn refused(name: &'static str, round: DecidedRound) -> DecidedRound {
    let fail_hard = json!({ "disagreement_policy": "fail_hard" });
    DecidedRound {
        name,
        patch: json!({ "consensus": fail_hard }),
        chat_patch: json!({ "jurat": fail_hard }),
        code: Some("consensus_disagreement"),
        ..round
    }
}

/// The decision of a round without a majority.
fn split(verdicts: &Value) -> Value {
    json!({ "agreement": 0.3333, "outcome": "split", "confidence": 0.0, "verdicts": verdicts })
}

fn validate_rounds() -> Vec<DecidedRound> {
    let divided = |name| {
        let says = [says_valid(), says_invalid(), says_inconclusive()];
        let verdicts = json!({ "s1": "VALID", "s2": "INVALID", "s3": "RETRY" });
        round(name, JobKind::Validate, says, &split(&verdicts))
    };
    let name = "a claim without a majority, which must fail";
    vec![
        round(
            "a claim that two of three judge valid",
            JobKind::Validate,
            [says_valid(), says_valid(), says_invalid()],
            &json!({
                "verdict": "VALID", "agreement": 0.6667, "outcome": "agreed", "confidence": 0.6437,
                "verdicts": { "s1": "VALID", "s2": "VALID", "s3": "INVALID" },
            }),
        ),
        divided("a claim without a majority"),
        refused(name, divided(name)),
    ]
}

fn delegate_rounds() -> Vec<DecidedRound> {
    let answer = |text: &str| answers(json!({ "answer": text }));
    let statuses = json!({ "s1": "OK", "s2": "OK", "s3": "OK" });
    let scattered = |name| {
        let says = [answer("144"), answer("143"), answer("142")];
        round(name, JobKind::Delegate, says, &split(&statuses))
    };
    let name = "answers without a majority, which must fail";
    vec![
        round(
            "an answer that two of three give",
            JobKind::Delegate,
            [answer("144"), answer("144"), answer("142")],
            &json!({
                "output": { "answer": "144" },
                "agreement": 0.6667, "outcome": "agreed", "verdicts": statuses,
            }),
        ),
        scattered("answers without a majority"),
        refused(name, scattered(name)),
    ]
}

fn factcheck_rounds() -> Vec<DecidedRound> {
    let doubtful = |name| {
        let says = [fact("TRUE"), fact("FALSE"), fact("UNSURE")];
        let verdicts = json!({ "s1": "TRUE", "s2": "FALSE", "s3": "UNSURE" });
        round(name, JobKind::Factcheck, says, &split(&verdicts))
    };
    let name = "a fact without a majority, which must fail";
    vec![
        round(
            "a fact that two of three confirm",
            JobKind::Factcheck,
            [fact("TRUE"), fact("TRUE"), fact("FALSE")],
            &json!({
                "verdict": "TRUE", "agreement": 0.6667, "outcome": "agreed", "confidence": 0.6922,
                "verdicts": { "s1": "TRUE", "s2": "TRUE", "s3": "FALSE" },
            }),
        ),
        doubtful("a fact without a majority"),
        refused(name, doubtful(name)),
    ]
}

/// What a caller relies on in a reply, or in the problem of a disagreement.
///
/// The order in which executors are asked is left out, because each round draws its own.
pub fn decision_of(reply: &Value) -> Value {
    let word = |replica: &Value| match replica.get("verdict") {
        Some(verdict) => verdict.clone(),
        None => replica["status"].clone(),
    };
    let replicas = reply["replicas"].as_array().into_iter().flatten();
    let verdicts: BTreeMap<&str, Value> = replicas
        .map(|replica| (replica["session_id"].as_str().unwrap_or_default(), word(replica)))
        .collect();
    let consensus = &reply["consensus"];
    json!({
        "verdict": reply["verdict"],
        "output": reply["output"],
        "confidence": consensus["confidence"],
        "agreement": consensus["agreement"],
        "outcome": consensus["outcome"],
        "strategy": consensus["strategy"],
        "effective_votes": consensus["effective_votes"],
        "score": consensus["score"],
        "verdicts": verdicts,
    })
}

/// Asserts the members of a decision that the table names.
///
/// # Panics
///
/// If one differs.
#[track_caller]
pub fn assert_decided(round: &DecidedRound, reply: &Value, by: Surface) {
    let decision = decision_of(reply);
    for (member, expected) in round.decision.as_object().into_iter().flatten() {
        assert_eq!(decision[member], *expected, "{by:?}, {}: {member} in {reply}", round.name);
    }
}

/// A document with some members replaced; null removes a member.
#[must_use]
pub fn patched(mut document: Value, patch: &Value) -> Value {
    let (Value::Object(members), Value::Object(changes)) = (&mut document, patch) else {
        return patch.clone();
    };
    for (name, change) in changes {
        if change.is_null() {
            members.remove(name);
        } else {
            let before = members.remove(name).unwrap_or_default();
            members.insert(name.clone(), patched(before, change));
        }
    }
    document
}
