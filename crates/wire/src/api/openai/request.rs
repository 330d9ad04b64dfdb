//! A chat request, decoded into the same job as a delegate request.

use jurat_core::{
    code::ProblemCode,
    round::{
        job::Job,
        profile::{ConsensusProfile, ConsensusProfiles},
    },
};
use serde_json::{Map, Value, json};
use utoipa::openapi::{
    RefOr,
    schema::{ArrayBuilder, ObjectBuilder, Schema, Type},
};

use super::{
    messages::{ChatMessages, Conversation, NoTools, Unavailable},
    profile::find,
};
use crate::{
    api::{
        consensus_request::{self, JsonSchema},
        kit::{
            faults::RequestFaults,
            json::{kind, short, whole_number},
            request::{
                self, FieldFault, FieldPath, Hidden, RequestField, SchemaParts, integer, one_of,
                request, text,
                unknown::FieldShape,
                values,
                values::{NotBlank, Whole, number, text_of, texts_of},
            },
            words,
        },
        policy_request::TimeoutMs,
    },
    problem::Problem,
};

request! {
    /// A request for a chat completion. Unknown members are ignored; known ones that would change
    /// the answer and are not supported are refused by name.
    pub open struct ChatRequest {
        /// The consensus profile, such as `jurat/safe`; `GET /v1/models` lists all.
        model: NotBlank,
        /// The conversation.
        messages: ChatMessages,
        response_format: Option<ResponseFormat>,
        /// Answer with an event stream of chunks.
        stream: Option<bool>,
        stream_options: Option<StreamOptions>,
        /// How to reach consensus, beyond the profile.
        jurat: Option<ChatTermsMember>,
        n: Option<OneChoice>,
        tools: Option<NoTools>,
        functions: Option<NoTools>,
        tool_choice: Option<ToolChoice>,
        function_call: Option<ToolChoice>,
        logprobs: Option<NoLogprobs>,
        modalities: Option<Modalities>,
        top_logprobs: Hidden<Unavailable>,
        logit_bias: Hidden<Unavailable>,
        audio: Hidden<Unavailable>,
        web_search_options: Hidden<Unavailable>;
        ..sampling: SamplingHints
    }

    /// Hints for the executors, passed on in `input.sampling`. An executor may ignore them.
    pub open struct SamplingHints {
        temperature: Option<Temperature>,
        top_p: Option<ProbabilityShare>,
        max_tokens: Option<Whole<1, MOST_TOKENS>>,
        max_completion_tokens: Option<Whole<1, MOST_TOKENS>>,
        stop: Option<StopTexts>,
        seed: Option<Seed>,
        frequency_penalty: Option<Penalty>,
        presence_penalty: Option<Penalty>,
        reasoning_effort: Option<String>,
    }

    /// The form of the answer.
    pub open struct ResponseFormat {
        form as "type": FormatKind,
        /// Required with the type `json_schema`.
        json_schema: Option<NamedSchema>,
    }

    /// The schema of the answer.
    pub open struct NamedSchema {
        name: Option<String>,
        description: Option<String>,
        /// Schema that the answer must match; any object if left out.
        schema: Option<JsonSchema>,
        /// The answer always matches the schema, so this changes nothing.
        strict: Option<bool>,
    }

    /// Options of an event stream.
    pub open struct StreamOptions {
        /// Send the usage in a chunk of its own, before the end.
        include_usage: Option<bool>,
    }

    /// How to reach consensus, beyond the profile.
    pub strict struct ChatTerms {
        /// What to do when the replicas do not agree; takes precedence over the profile.
        disagreement_policy: Option<words::DisagreementPolicy>,
        /// Deadline of the round; takes precedence over the profile.
        timeout_ms: Option<TimeoutMs>,
    }
}

const MOST_TOKENS: u64 = 10_000_000;
const MOST_STOPS: usize = 4;

values! {
    /// A number of choices, which must be 1.
    pub named struct OneChoice(()):
        integer().enum_values(Some([1])).description(Some("Not supported above 1.")) => one_choice;

    /// Whether tools are used, which they are not.
    pub named struct ToolChoice(()):
        text()
            .enum_values(Some(["none", "auto"]))
            .description(Some("Without effect, because there are no tools."))
        => tool_choice;

    /// Whether to return probabilities, which is not supported.
    pub named struct NoLogprobs(()):
        ObjectBuilder::new()
            .schema_type(Type::Boolean)
            .enum_values(Some([false]))
            .description(Some("Not supported: must be false or left out."))
        => no_logprobs;

    /// Kinds of output, of which only text is supported.
    pub named struct Modalities(()):
        ArrayBuilder::new()
            .items(text().enum_values(Some(["text"])))
            .description(Some("Kinds of output. Only text is supported."))
        => modalities;

    /// The type of a response format.
    pub named struct FormatKind(AnswerFormat as String):
        text()
            .enum_values(Some(["text", "json_object", "json_schema"]))
            .description(Some("Plain text, any JSON object, or JSON that matches a schema."))
        => format_kind;

    /// A sampling temperature.
    pub struct Temperature(()): number().minimum(Some(0)).maximum(Some(2)) => temperature;

    /// A share of probability.
    pub struct ProbabilityShare(()):
        number().minimum(Some(0)).maximum(Some(1)) => probability_share;

    /// A penalty on repeated words.
    pub struct Penalty(()): number().minimum(Some(-2)).maximum(Some(2)) => penalty;

    /// A seed for sampling.
    pub struct Seed(()): integer() => seed;

    /// Texts at which a model stops.
    pub named struct StopTexts(()):
        one_of("A text at which a model stops, or up to four.")
            .item(text())
            .item(ArrayBuilder::new().items(text()).max_items(Some(MOST_STOPS)))
        => stop_texts;
}

/// The `jurat` member, in which unknown fields are refused although the request ignores them.
#[derive(Debug)]
pub struct ChatTermsMember(pub ChatTerms);

impl RequestField for ChatTermsMember {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        request::note_unknown::<ChatTerms>(value, at, faults);
        ChatTerms::read(value, at, faults).map(Self)
    }

    fn describe() -> RefOr<Schema> {
        ChatTerms::describe()
    }

    fn describe_parts(parts: &mut SchemaParts) {
        ChatTerms::describe_parts(parts);
    }

    fn shape() -> FieldShape {
        ChatTerms::shape()
    }
}

/// The form of the answer that the caller reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerFormat {
    Text,
    Object,
    Schema,
}

/// Whether the answer is streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatDelivery {
    Whole,
    Stream,
    /// A stream with a chunk for the usage.
    StreamWithUsage,
}

/// A decoded chat request.
#[derive(Debug)]
pub struct ChatOrder {
    /// The model as the caller named it.
    pub model: String,
    pub format: AnswerFormat,
    pub delivery: ChatDelivery,
    pub job: Job,
}

const CODE: ProblemCode = ProblemCode::ValidationError;
const AT: FieldPath<'static> = FieldPath::body(CODE);
/// The members that executors get as hints.
const HINTS: [&str; 9] = [
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "reasoning_effort",
];

/// Reads a chat request. It becomes a delegate request with the terms of its profile, and is
/// decoded like one.
pub fn chat(body: &Value, profiles: &ConsensusProfiles) -> Result<ChatOrder, Problem> {
    let chat: ChatRequest = request::read(body, CODE)?;
    let NotBlank(model) = chat.model;
    let profile = find(profiles, &model)?;
    let conversation = Conversation::checked(chat.messages, &AT.member("messages"))?;
    let (format, schema) = answer_format(chat.response_format)?;
    let terms = chat.jurat.map(|terms| terms.0);
    let input = json!({ "messages": conversation.messages(), "sampling": hints(body) });
    let request =
        delegate_request(profile, terms.as_ref(), schema, (conversation.objective(), input));
    let job = consensus_request::delegate(&request)?;
    let has_usage = chat.stream_options.and_then(|options| options.include_usage) == Some(true);
    let delivery = match (chat.stream, has_usage) {
        (Some(true), true) => ChatDelivery::StreamWithUsage,
        (Some(true), false) => ChatDelivery::Stream,
        (Some(false) | None, _) => ChatDelivery::Whole,
    };
    Ok(ChatOrder { model, format, delivery, job })
}

fn delegate_request(
    profile: &ConsensusProfile,
    terms: Option<&ChatTerms>,
    schema: Option<Value>,
    (objective, input): (String, Value),
) -> Value {
    let mut request = profile.request.clone();
    request.insert("objective".to_owned(), json!(objective));
    request.insert("input".to_owned(), input);
    let mut set = |block: &str, name: &str, value: Value| {
        let block = request.entry(block).or_insert_with(|| json!({}));
        if let Some(members) = block.as_object_mut() {
            members.insert(name.to_owned(), value);
        }
    };
    if let Some(schema) = schema {
        set("execution", "output_schema", schema);
    }
    if let Some(ChatTerms { disagreement_policy, timeout_ms }) = terms {
        if let Some(words::DisagreementPolicy(policy)) = disagreement_policy {
            set("consensus", "disagreement_policy", json!(policy.as_str()));
        }
        if let Some(Whole(timeout_ms)) = timeout_ms {
            set("execution", "timeout_ms", json!(timeout_ms));
        }
    }
    Value::Object(request)
}

/// The form of the answer, with the schema that outputs must match.
fn answer_format(given: Option<ResponseFormat>) -> Result<(AnswerFormat, Option<Value>), Problem> {
    let Some(ResponseFormat { form: FormatKind(format), json_schema }) = given else {
        return Ok((AnswerFormat::Text, None));
    };
    let any_object = || json!({ "type": "object" });
    let schema = match (format, json_schema) {
        (AnswerFormat::Text, _) => None,
        (AnswerFormat::Object, _) => Some(any_object()),
        (AnswerFormat::Schema, Some(named)) => {
            Some(named.schema.map_or_else(any_object, |schema| schema.0))
        }
        (AnswerFormat::Schema, None) => {
            let at = AT.member("response_format");
            return Err(at.member("json_schema").wrong("is required with the type `json_schema`"));
        }
    };
    Ok((format, schema))
}

/// The hints of the request, as the caller wrote them.
fn hints(body: &Value) -> Map<String, Value> {
    let given = |name: &str| Some((name.to_owned(), body.get(name)?.clone()));
    HINTS.into_iter().filter_map(given).filter(|(_, value)| !value.is_null()).collect()
}

fn one_choice(value: &Value) -> Result<(), FieldFault> {
    match whole_number(value) {
        Some(1) => Ok(()),
        Some(0) | None => Err("must be 1".into()),
        Some(_) => Err(FieldFault::Unsupported(
            "above 1 is not supported, because replicas give one answer together; leave it out"
                .into(),
        )),
    }
}

fn tool_choice(value: &Value) -> Result<(), FieldFault> {
    match value.as_str() {
        Some("none" | "auto") => Ok(()),
        Some(_) | None => Err(FieldFault::Unsupported(
            "is not supported, because executors use their own tools; leave it out".into(),
        )),
    }
}

fn no_logprobs(value: &Value) -> Result<(), FieldFault> {
    match value.as_bool() {
        Some(false) => Ok(()),
        Some(true) => Err(FieldFault::Unsupported(
            "is not supported; `jurat.confidence` of the answer is the probability that it is right"
                .into(),
        )),
        None => Err(format!("must be true or false, not {}", kind(value)).into()),
    }
}

fn modalities(value: &Value) -> Result<(), FieldFault> {
    match texts_of(value)?.into_iter().find(|name| *name != "text") {
        None => Ok(()),
        Some(other) => Err(FieldFault::Unsupported(
            format!("`{}` is not supported; only `text` is", short(other)).into(),
        )),
    }
}

fn format_kind(value: &Value) -> Result<AnswerFormat, FieldFault> {
    match text_of(value)? {
        "text" => Ok(AnswerFormat::Text),
        "json_object" => Ok(AnswerFormat::Object),
        "json_schema" => Ok(AnswerFormat::Schema),
        other => {
            let reason = "must be one of text, json_object, json_schema, not";
            Err(format!("{reason} `{}`", short(other)).into())
        }
    }
}

fn temperature(value: &Value) -> Result<(), FieldFault> {
    within(value, (0.0, 2.0))
}

fn probability_share(value: &Value) -> Result<(), FieldFault> {
    within(value, (0.0, 1.0))
}

fn penalty(value: &Value) -> Result<(), FieldFault> {
    within(value, (-2.0, 2.0))
}

fn within(value: &Value, (least, most): (f64, f64)) -> Result<(), FieldFault> {
    match value.as_f64() {
        Some(number) if (least..=most).contains(&number) => Ok(()),
        Some(_) | None => Err(format!("must be a number from {least} to {most}").into()),
    }
}

fn seed(value: &Value) -> Result<(), FieldFault> {
    let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    if is_whole { Ok(()) } else { Err("must be a whole number".into()) }
}

fn stop_texts(value: &Value) -> Result<(), FieldFault> {
    if value.is_string() {
        return Ok(());
    }
    let texts = texts_of(value).map_err(|_| "must be text or a list of texts")?;
    if texts.len() <= MOST_STOPS {
        Ok(())
    } else {
        Err(format!("must have at most {MOST_STOPS} texts").into())
    }
}

#[cfg(test)]
mod tests;
