//! Requests of prompt-oriented clients, decoded into requests of version 3.

use jurat_core::executor::session::Tier;
use serde_json::{Map, Value, json};

use super::session_named;
use crate::{
    api::kit::{
        json::whole_number,
        request::{
            self, FieldFault, FieldPath, ListOf, integer, one_of, request, text, values,
            values::{NotBlank, number},
        },
        terms,
    },
    problem::Problem,
};

/// The longest deadline of a round, in seconds.
const LONGEST_S: f64 = 600.0;
const SHORTEST_S: f64 = 0.001;
/// The most answers of a round.
const MOST_REPLICAS: f64 = 5.0;
/// Fields of a prompt that are passed on to the executors.
const PASSED_ON: [&str; 10] = [
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "stop",
    "prompt_type",
    "prompt_template",
    "web_url",
];
/// Fields of a task that tell a judge what it is about.
const ABOUT_TASK: [&str; 5] =
    ["task_id", "miner_address", "task_domain", "task_type", "evaluation_mode"];

request! {
    /// A prompt to complete. Unknown fields are ignored; sampling parameters such as `temperature`
    /// are passed on to the executors.
    pub open struct PeerCompletionRequest {
        prompt: NotBlank;
        ..common: PeerFields
    }

    /// Messages to complete. Unknown fields are ignored; sampling parameters such as `temperature`
    /// are passed on to the executors.
    pub open struct PeerChatRequest {
        messages: ListOf<PeerMessage, 1, 1000>;
        ..common: PeerFields
    }

    /// A message of a chat.
    pub open struct PeerMessage {
        /// Defaults to `user`.
        role: Option<String>,
        /// Text, or a list of parts with text.
        content: Value,
    }

    /// A prompt to delegate: `prompt` or `task_request_input`. Unknown fields are ignored.
    pub open struct PeerDelegateRequest {
        prompt: Option<String>,
        /// Alias of `prompt`.
        task_request_input: Option<String>;
        ..common: PeerFields
    }

    /// A result to judge: `result_data` or `task_result_output`. Unknown fields are ignored.
    pub open struct PeerValidateRequest {
        result_data: Option<Value>,
        /// Alias of `result_data`.
        task_result_output: Option<Value>,
        /// The prompt of the result; defaults to that of the task.
        task_request_input: Option<String>,
        /// Alias of `task_request_input`.
        prompt: Option<String>,
        /// A task of the account, whose prompt the judges read.
        task_id: Option<PeerId>;
        ..common: PeerFields
    }

    /// A claim to check: `claim`, `task_request_input` or `prompt`. Unknown fields are ignored.
    pub open struct PeerFactcheckRequest {
        /// Text, or an object with the text in `text` or `claim`.
        claim: Option<Value>,
        /// Alias of `claim`.
        task_request_input: Option<String>,
        /// Alias of `claim`.
        prompt: Option<String>,
        /// `standard` or `realtime`.
        mode: Option<String>,
        /// Sources and other context for the executors.
        context: Option<Value>;
        ..common: PeerFields
    }

    /// A request for a session. Sessions are added by the operator, so its fields are ignored.
    pub open struct PeerCreateRequest {
        /// A session to look for; without it, any.
        session_id: Option<PeerId>,
    }

    /// The fields of every request.
    pub open struct PeerFields {
        /// A session or a label; 0 lets the server choose.
        session_id: Option<PeerId>,
        /// Number of answers, at most 5; rounded up to 1, 3 or 5.
        k_redundancy: Option<PeerRedundancy>,
        /// Alias of `k_redundancy`.
        redundancy: Option<PeerRedundancy>,
        /// Most answers; rounded down to 1, 3 or 5.
        max_miners: Option<PeerNumber>,
        /// A tier, or an object with a `tier`; everything else in it is ignored.
        policy: Option<Value>,
        /// Deadline of the whole round in seconds, at most 600.
        timeout: Option<PeerNumber>,
        /// Whether a completion arrives as an event stream.
        stream: Option<bool>,
    }
}

values! {
    /// An id, as a string or an integer.
    pub named struct PeerId(String):
        one_of("An id, as a string or an integer.").item(text()).item(integer().minimum(Some(0)))
        => peer_id;

    /// A number, also as text.
    pub named struct PeerNumber(f64):
        one_of("A number, also as text.").item(number()).item(text().pattern(Some(r"^\s*\d+(\.\d+)?\s*$")))
        => peer_number;

    /// A number up to 5, also as text.
    pub named struct PeerRedundancy(f64):
        one_of("A number up to 5, also as text.").item(number().maximum(Some(MOST_REPLICAS)))
            .item(text().pattern(Some(r"^\s*0*([0-4](\.\d+)?|5(\.0+)?)\s*$")))
        => peer_redundancy;
}

/// A request of version 3 without its terms of consensus, which depend on the sessions at hand.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerJob {
    /// The session or label that it names.
    pub session: Option<String>,
    /// The number of replicas that it asks for.
    pub replicas: Option<u8>,
    /// Whether it asks for an event stream.
    pub is_streamed: bool,
    /// The task whose result is judged.
    pub task: Option<String>,
    disagreement: &'static str,
    body: Map<String, Value>,
}

impl PeerJob {
    fn new(fields: PeerFields, disagreement: &'static str, body: Map<String, Value>) -> Self {
        let mut job = Self {
            session: fields.session_id.and_then(|id| session_named(&id.0)),
            replicas: None,
            is_streamed: fields.stream == Some(true),
            task: None,
            disagreement,
            body,
        };
        if let Some(PeerNumber(seconds)) = fields.timeout.filter(|it| 0.0 < it.0) {
            let timeout = json!({ "timeout": seconds.clamp(SHORTEST_S, LONGEST_S) });
            job.body.insert("execution".to_owned(), timeout);
        }
        let least = fields.k_redundancy.or(fields.redundancy).map(|it| at_least(it.0));
        let most = fields.max_miners.map(|it| at_most(it.0));
        let tier = fields.policy.as_ref().and_then(tier);
        if let Some(tier) = tier {
            job.body.insert("policy".to_owned(), json!({ "tier": tier.as_str() }));
        }
        job.replicas = least.or(most).or(tier.map(Tier::replicas));
        job
    }

    /// Adds the prompt of the judged task, unless the request has one.
    pub fn add_prompt(&mut self, prompt: &str) {
        let context = self.body.entry("context").or_insert_with(|| json!({}));
        if let Some(context) = context.as_object_mut() {
            context.entry("task_request_input").or_insert_with(|| json!(prompt));
        }
    }

    /// The request of version 3.
    pub fn into_v3(mut self, replicas: u8, pool: &[&str]) -> Value {
        let mut consensus =
            json!({ "replicas": replicas, "disagreement_policy": self.disagreement });
        if !pool.is_empty() {
            consensus["session_pool"] = json!(pool);
        }
        self.body.insert("consensus".to_owned(), consensus);
        Value::Object(self.body)
    }
}

/// Reads a prompt to complete. A completion has one text, so replicas that disagree do not end it.
pub fn completion(body: &Value) -> Result<PeerJob, Problem> {
    let PeerCompletionRequest { prompt, common } = request::read(body, terms::CODE)?;
    Ok(PeerJob::new(common, "best_effort", prompted(&prompt.0, body)))
}

/// Reads messages to complete.
pub fn chat(body: &Value) -> Result<PeerJob, Problem> {
    let PeerChatRequest { messages: ListOf(messages), common } = request::read(body, terms::CODE)?;
    let prompt = transcript(&messages);
    if prompt.trim().is_empty() {
        return Err(AT.member("messages").wrong("must have a message with text"));
    }
    let mut translated = prompted(&prompt, body);
    if let Some(input) = translated.get_mut("input") {
        input["messages"] = body["messages"].clone();
    }
    Ok(PeerJob::new(common, "best_effort", translated))
}

/// Reads a prompt to delegate.
pub fn delegate(body: &Value) -> Result<PeerJob, Problem> {
    let PeerDelegateRequest { prompt, task_request_input, common } =
        request::read(body, terms::CODE)?;
    let prompt = either(prompt.or(task_request_input), "prompt", "task_request_input")?;
    let mut translated = prompted(&prompt, body);
    let about = members_of(body, &ABOUT_TASK);
    if !about.is_empty() {
        translated.insert("context".to_owned(), Value::Object(about));
    }
    Ok(PeerJob::new(common, "best_effort", translated))
}

/// Reads a result to judge.
pub fn validate(body: &Value) -> Result<PeerJob, Problem> {
    let request: PeerValidateRequest = request::read(body, terms::CODE)?;
    let result = request.result_data.or(request.task_result_output);
    let result = result.filter(|it| it.as_str().is_none_or(|text| !text.trim().is_empty()));
    let Some(result) = result else {
        let reason = "is required, or `task_result_output` instead";
        return Err(AT.member("result_data").wrong(reason));
    };
    let mut context = members_of(body, &ABOUT_TASK);
    if let Some(prompt) = request.task_request_input.or(request.prompt) {
        context.insert("task_request_input".to_owned(), json!(prompt));
    }
    // A claim with an `output` is a candidate: the result itself is judged, whatever is in it.
    let translated = Map::from_iter([
        ("claim".to_owned(), json!({ "output": result })),
        ("context".to_owned(), Value::Object(context)),
    ]);
    let task = request.task_id.map(|id| id.0);
    Ok(PeerJob { task, ..PeerJob::new(request.common, "return_all", translated) })
}

/// Reads a claim to check.
pub fn factcheck(body: &Value) -> Result<PeerJob, Problem> {
    let request: PeerFactcheckRequest = request::read(body, terms::CODE)?;
    let text = request.task_request_input.or(request.prompt).map(Value::String);
    let Some(claim) = request.claim.or(text) else {
        return Err(AT.member("claim").wrong("is required"));
    };
    let mut translated = Map::from_iter([("claim".to_owned(), claim)]);
    for (name, value) in [("mode", request.mode.map(Value::String)), ("context", request.context)] {
        if let Some(value) = value {
            translated.insert(name.to_owned(), value);
        }
    }
    Ok(PeerJob::new(request.common, "return_all", translated))
}

/// Reads a request for a session.
pub fn create(body: &Value) -> Result<Option<String>, Problem> {
    let PeerCreateRequest { session_id } = request::read(body, terms::CODE)?;
    Ok(session_id.and_then(|id| session_named(&id.0)))
}

const AT: FieldPath<'static> = FieldPath::body(terms::CODE);

fn prompted(prompt: &str, body: &Value) -> Map<String, Value> {
    Map::from_iter([
        ("objective".to_owned(), json!(prompt)),
        ("input".to_owned(), Value::Object(members_of(body, &PASSED_ON))),
    ])
}

fn members_of(body: &Value, names: &[&str]) -> Map<String, Value> {
    let given = |name: &&str| {
        let value = body.get(name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    };
    names.iter().filter_map(given).collect()
}

fn either(text: Option<String>, name: &str, alias: &str) -> Result<String, Problem> {
    let text = text.filter(|text| !text.trim().is_empty());
    text.ok_or_else(|| AT.member(name).wrong(&format!("is required, or `{alias}` instead")))
}

/// A single message is the prompt; several become a dialogue with the speaker before each text.
fn transcript(messages: &[PeerMessage]) -> String {
    if let [only] = messages {
        return message_text(&only.content);
    }
    let line = |message: &PeerMessage| {
        let role = message.role.as_deref().unwrap_or("user");
        format!("{role}: {}", message_text(&message.content))
    };
    messages.iter().map(line).collect::<Vec<_>>().join("\n\n")
}

fn message_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// The tier of a policy, which is a word or an object.
fn tier(policy: &Value) -> Option<Tier> {
    policy.as_str().or_else(|| policy["tier"].as_str())?.parse().ok()
}

fn at_least(count: f64) -> u8 {
    if count <= 1.0 {
        1
    } else if count <= 3.0 {
        3
    } else {
        5
    }
}

fn at_most(count: f64) -> u8 {
    if count < 3.0 {
        1
    } else if count < 5.0 {
        3
    } else {
        5
    }
}

fn peer_id(value: &Value) -> Result<String, FieldFault> {
    match value {
        Value::String(text) => Ok(text.trim().to_owned()),
        Value::Number(_) => {
            let number = whole_number(value).map(|number| number.to_string());
            number.ok_or_else(|| "must be a string or a whole number".into())
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err("must be a string or an integer".into())
        }
    }
}

fn peer_number(value: &Value) -> Result<f64, FieldFault> {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let of_text = |text: &str| {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        text.parse().ok().filter(|_| is_digits(whole) && is_digits(fraction))
    };
    let number = value.as_f64().or_else(|| of_text(value.as_str()?.trim()));
    number.filter(|it| it.is_finite()).ok_or_else(|| "must be a number".into())
}

/// More answers than a round can have are refused, because fewer would be weaker than what was asked.
fn peer_redundancy(value: &Value) -> Result<f64, FieldFault> {
    let count = peer_number(value)?;
    if count <= MOST_REPLICAS {
        return Ok(count);
    }
    Err(format!("must be at most {MOST_REPLICAS}, and is {count}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redundancy_is_rounded_to_what_there_is() {
        for (body, replicas) in [
            (json!({ "k_redundancy": 1 }), Some(1)),
            (json!({ "k_redundancy": 2 }), Some(3)),
            (json!({ "redundancy": "3" }), Some(3)),
            (json!({ "redundancy": 4 }), Some(5)),
            (json!({ "max_miners": 2 }), Some(1)),
            (json!({ "max_miners": 4 }), Some(3)),
            (json!({ "max_miners": 15 }), Some(5)),
            (json!({ "policy": "oracle" }), Some(5)),
            (json!({ "policy": { "tier": "fast", "other": 1 } }), Some(1)),
            (json!({ "policy": {} }), None),
            (json!({}), None),
        ] {
            let mut body = body;
            body["prompt"] = json!("x");
            assert_eq!(delegate(&body).unwrap().replicas, replicas, "{body}");
        }
    }

    #[test]
    fn more_answers_than_a_round_can_have_are_refused() {
        for (body, field, detail) in [
            (json!({ "k_redundancy": 7 }), "k_redundancy", "must be at most 5, and is 7"),
            (json!({ "redundancy": "5.5" }), "redundancy", "must be at most 5, and is 5.5"),
            (json!({ "k_redundancy": 1e30 }), "k_redundancy", "must be at most 5"),
            (json!({ "redundancy": "seven" }), "redundancy", "must be a number"),
        ] {
            let mut body = body;
            body["prompt"] = json!("x");
            let refused = delegate(&body).unwrap_err();
            assert_eq!(refused.field.as_deref(), Some(field), "{body}");
            assert!(refused.detail.contains(detail), "{}", refused.detail);
        }
    }

    #[test]
    fn a_chat_becomes_a_dialogue() {
        let body = json!({ "messages": [
            { "role": "system", "content": "Be brief." },
            { "content": [{ "type": "text", "text": "Hello" }] },
        ]});
        let v3 = chat(&body).unwrap().into_v3(1, &[]);
        assert_eq!(v3["objective"], "system: Be brief.\n\nuser: Hello");
        assert_eq!(v3["input"]["messages"], body["messages"]);
        let empty = chat(&json!({ "messages": [{ "content": " " }] })).unwrap_err();
        assert_eq!(empty.field.as_deref(), Some("messages"));
    }

    #[test]
    fn a_deadline_is_kept_within_the_limits_of_a_round() {
        let timeout = |seconds: Value| {
            let job = completion(&json!({ "prompt": "x", "timeout": seconds })).unwrap();
            job.into_v3(1, &[])["execution"]["timeout"].clone()
        };
        assert_eq!(timeout(json!(360)), 360.0);
        assert_eq!(timeout(json!("90")), 90.0);
        assert_eq!(timeout(json!(10_000)), 600.0);
        assert_eq!(timeout(json!(0)), Value::Null);
    }
}
