//! Reads an event stream as it arrives.

use serde::de::DeserializeOwned;

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    pub name: String,
    pub data: String,
    /// The id to resume the stream after this event.
    pub id: Option<String>,
}

impl SseEvent {
    /// The data as a `T`, if it can be read as one.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(&self.data).ok()
    }
}

/// Splits a stream into events, and keeps the beginning of an incomplete one.
#[derive(Debug, Default)]
pub(crate) struct SseReader {
    buffer: Vec<u8>,
    /// Number of bytes at the start of the buffer that contain no end of an event.
    searched: usize,
}

impl SseReader {
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<SseEvent> {
        self.buffer.extend_from_slice(chunk);
        let mut events = Vec::new();
        while let Some(at) = self.end() {
            let block: Vec<u8> = self.buffer.drain(..at + 2).collect();
            self.searched = 0;
            events.extend(event(&String::from_utf8_lossy(&block)));
        }
        self.searched = self.buffer.len().saturating_sub(1);
        events
    }

    fn end(&self) -> Option<usize> {
        let unseen = self.buffer.get(self.searched..)?;
        unseen.windows(2).position(|pair| pair == b"\n\n").map(|at| self.searched + at)
    }
}

/// Reads a block of lines. A comment that keeps the connection open is not an event.
fn event(block: &str) -> Option<SseEvent> {
    let mut event = SseEvent { name: String::new(), data: String::new(), id: None };
    for line in block.lines() {
        let Some((field, value)) = line.split_once(':') else { continue };
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut event.name),
            "id" => event.id = Some(value.to_owned()),
            "data" if event.data.is_empty() => value.clone_into(&mut event.data),
            "data" => {
                event.data.push('\n');
                event.data.push_str(value);
            }
            _ => {}
        }
    }
    (!event.data.is_empty()).then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_complete_however_they_are_split() {
        let text = b":\n\nevent: replica_done\nid: 7\ndata: {\"a\":1}\n\n: still here\n\nevent: final\ndata: {}\n\n";
        for size in 1..=text.len() {
            let mut reader = SseReader::default();
            let events: Vec<SseEvent> =
                text.chunks(size).flat_map(|chunk| reader.push(chunk)).collect();
            let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
            assert_eq!(names, ["replica_done", "final"], "in parts of {size}");
            assert_eq!(events[0].read(), Some(serde_json::json!({"a": 1})));
            assert_eq!((events[0].id.as_deref(), events[1].id.as_deref()), (Some("7"), None));
        }
    }
}
