//! A request to the fake provider, as the model would see it.

use serde_json::Value;

use crate::fake_executor::ReceivedCall;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderProtocol {
    /// `/chat/completions`
    Chat,
    /// `/v1/messages`
    Messages,
}

#[derive(Debug, Clone)]
pub struct FakeProviderRequest {
    pub protocol: ProviderProtocol,
    pub call: ReceivedCall,
    /// By the timer of tokio, which a test can pause.
    pub at: tokio::time::Instant,
}

impl FakeProviderRequest {
    pub(super) fn of(call: ReceivedCall) -> Option<Self> {
        let protocol = match (call.method.as_str(), call.path.as_str()) {
            ("POST", path) if path.ends_with("/chat/completions") => ProviderProtocol::Chat,
            ("POST", path) if path.ends_with("/v1/messages") => ProviderProtocol::Messages,
            _ => return None,
        };
        Some(Self { protocol, call, at: tokio::time::Instant::now() })
    }

    pub fn body(&self) -> &Value {
        &self.call.body
    }

    /// The text of the instruction channel.
    pub fn system(&self) -> String {
        match self.protocol {
            ProviderProtocol::Chat => {
                let messages = self.messages();
                let system = messages.iter().filter(|message| message["role"] == "system");
                system.map(text).collect::<Vec<_>>().join("\n")
            }
            ProviderProtocol::Messages => {
                self.body()["system"].as_str().unwrap_or_default().to_owned()
            }
        }
    }

    /// The roles and texts of the conversation after the instructions.
    pub fn conversation(&self) -> Vec<(String, String)> {
        let messages = self.messages();
        let turns = messages.iter().filter(|message| message["role"] != "system");
        turns
            .map(|turn| (turn["role"].as_str().unwrap_or_default().to_owned(), text(turn)))
            .collect()
    }

    /// Media types and base64 texts of all images, in order.
    pub fn images(&self) -> Vec<(String, String)> {
        let parts = self
            .messages()
            .into_iter()
            .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
        let image = |part: Value| match self.protocol {
            ProviderProtocol::Chat => {
                let url = part["image_url"]["url"].as_str()?.strip_prefix("data:")?;
                let (mime, data) = url.split_once(";base64,")?;
                Some((mime.to_owned(), data.to_owned()))
            }
            ProviderProtocol::Messages => {
                let source = &part["source"];
                let text = |name: &str| source[name].as_str().map(str::to_owned);
                Some((text("media_type")?, text("data")?))
            }
        };
        parts.filter_map(image).collect()
    }

    /// The last message as JSON, which is the data.
    pub fn data(&self) -> Value {
        let turns = self.conversation();
        let last = turns.last().map_or("", |(_, text)| text.as_str());
        serde_json::from_str(last).unwrap_or(Value::Null)
    }

    /// Whether the judge is asked to write down its expectations.
    pub fn is_commit(&self) -> bool {
        self.data().get("task").is_some()
    }

    /// The text of a field of the candidate, without its marks; `None` if it is not marked.
    pub fn field(&self, name: &str) -> Option<String> {
        let data = self.data();
        unmarked(data["fields"][name].as_str()?, data["mark"].as_str()?)
    }

    /// Everything that a model reads outside of the marked data.
    pub fn outside_of_marks(&self) -> String {
        let mut outside = self.system();
        for (_, text) in self.conversation() {
            outside.push('\n');
            outside.push_str(&without_data(&text));
        }
        outside
    }

    fn messages(&self) -> Vec<Value> {
        self.body()["messages"].as_array().cloned().unwrap_or_default()
    }
}

fn text(message: &Value) -> String {
    let content = &message["content"];
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().cloned().unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect()
}

/// A message without its marked data; the whole message if it has none.
fn without_data(text: &str) -> String {
    let Ok(mut data) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let Some(mark) = data["mark"].as_str().map(str::to_owned) else { return text.to_owned() };
    if let Some(fields) = data["fields"].as_object_mut() {
        for value in fields.values_mut() {
            if value.as_str().is_some_and(|text| unmarked(text, &mark).is_some()) {
                *value = Value::Null;
            }
        }
    }
    data.to_string()
}

/// The text between the marks; `None` unless every line starts with a mark and a lone mark ends it.
fn unmarked(text: &str, mark: &str) -> Option<String> {
    let (lines, last) = text.rsplit_once('\n')?;
    if last != mark || mark.len() < 16 {
        return None;
    }
    let begins = format!("{mark} ");
    let lines: Option<Vec<&str>> =
        lines.split('\n').map(|line| line.strip_prefix(begins.as_str())).collect();
    Some(lines?.join("\n"))
}
