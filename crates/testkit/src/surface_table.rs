//! The same requests for every surface: how each is decided, and with which code it is refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fake_executor::{
    Behaviour, FakeExecutor, answers, says_inconclusive, says_invalid, says_valid,
};

mod refusals;

pub use refusals::{BadRequest, LOST_POOL, LOST_PROFILE, Sender, SurfaceDifference, bad_requests};

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
    Cli,
}

impl Surface {
    /// The surfaces of the server; the command line is a program of its own.
    pub const SERVED: [Self; 7] = [
        Self::Rest,
        Self::McpLegacy,
        Self::McpModern,
        Self::A2aJsonRpc,
        Self::A2aHttp,
        Self::X402,
        Self::OpenAi,
    ];

    /// Whether the surface has jobs of this kind: a chat is always delegated.
    pub fn has(self, kind: JobKind) -> bool {
        self != Self::OpenAi || kind == JobKind::Delegate
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    Validate,
    Delegate,
}

impl JobKind {
    pub const ALL: [Self; 2] = [Self::Validate, Self::Delegate];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Delegate => "delegate",
        }
    }

    /// A request to three executors that every surface can express.
    pub fn request(self) -> Value {
        match self {
            Self::Validate => json!({ "claim": "12 * 12 = 144", "consensus": { "replicas": 3 } }),
            Self::Delegate => json!({ "objective": "12 * 12", "consensus": { "replicas": 3 } }),
        }
    }
}

/// The delegate request in the words of OpenAI's clients: the model selects three executors.
pub fn chat() -> Value {
    json!({ "model": "jurat/safe", "messages": [{ "role": "user", "content": "12 * 12" }] })
}

/// Starts the executors of the sessions `s1`, `s2` and so on, each with the body of its
/// registration. The sessions cost something, so an account needs credit for them.
pub async fn executors(behaviours: [Behaviour; 3]) -> Vec<(FakeExecutor, Value)> {
    let mut started = Vec::new();
    for (number, behaviour) in (1..).zip(behaviours) {
        let (family, model) = (format!("family-{number}"), format!("model-{number}"));
        let behaviour = behaviour.provider_family(&family).model_id(&model);
        let fake = FakeExecutor::start(behaviour).await;
        let name = format!("s{number}");
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
    let two_to_one = || [says_valid(), says_valid(), says_invalid()];
    let divided = || [says_valid(), says_invalid(), says_inconclusive()];
    let answer = |text: &str| answers(json!({ "answer": text }));
    let split = json!({ "agreement": 0.3333, "outcome": "split", "confidence": 0.0 });
    let fail_hard = json!({ "disagreement_policy": "fail_hard" });
    let round = |name, kind, executors, decision: Value| DecidedRound {
        name,
        kind,
        executors,
        patch: json!({}),
        chat_patch: json!({}),
        code: None,
        decision: patched(json!({ "strategy": "majority" }), &decision),
    };
    let refused = |round: DecidedRound| DecidedRound {
        patch: json!({ "consensus": fail_hard }),
        chat_patch: json!({ "jurat": fail_hard }),
        code: Some("consensus_disagreement"),
        ..round
    };
    let verdicts = json!({ "s1": "VALID", "s2": "INVALID", "s3": "RETRY" });
    let not_valid = patched(split.clone(), &json!({ "verdicts": verdicts }));
    let statuses = json!({ "s1": "OK", "s2": "OK", "s3": "OK" });
    let no_answer = patched(split, &json!({ "verdicts": statuses }));
    let answered = [answer("144"), answer("144"), answer("142")];
    let scattered = || [answer("144"), answer("143"), answer("142")];
    vec![
        round(
            "a claim that two of three judge valid",
            JobKind::Validate,
            two_to_one(),
            json!({
                "verdict": "VALID", "agreement": 0.6667, "outcome": "agreed", "confidence": 0.6437,
                "verdicts": { "s1": "VALID", "s2": "VALID", "s3": "INVALID" },
            }),
        ),
        round(
            "an answer that two of three give",
            JobKind::Delegate,
            answered,
            json!({
                "output": { "answer": "144" },
                "agreement": 0.6667, "outcome": "agreed", "verdicts": statuses,
            }),
        ),
        round("a claim without a majority", JobKind::Validate, divided(), not_valid.clone()),
        round("answers without a majority", JobKind::Delegate, scattered(), no_answer.clone()),
        refused(round(
            "a claim without a majority, which must fail",
            JobKind::Validate,
            divided(),
            not_valid,
        )),
        refused(round(
            "answers without a majority, which must fail",
            JobKind::Delegate,
            scattered(),
            no_answer,
        )),
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
