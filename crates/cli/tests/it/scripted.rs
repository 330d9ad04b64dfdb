//! A scripted server on a real socket, which records its requests.

use std::{
    collections::BTreeMap,
    fmt::Display,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::home::{Home, Ran};

/// Replies by method and path, in sequence; the last one stays.
type Answers = BTreeMap<String, Vec<(u16, String)>>;

pub(crate) struct Scripted {
    url: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    answers: Arc<Mutex<Answers>>,
}

impl Scripted {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (asked, answers) = (Arc::default(), Arc::default());
        let (its_asked, its_answers) = (Arc::clone(&asked), Arc::clone(&answers));
        // It ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                serve(stream, &its_asked, &its_answers);
            }
        });
        Self { url, asked, answers }
    }

    /// The reply to `METHOD /path`: a status, and a body that is JSON or a stream of events.
    pub(crate) fn on(self, request: &str, status: u16, body: impl Display) -> Self {
        let mut answers = self.answers.lock();
        answers.entry(request.to_owned()).or_default().push((status, format!("{body}")));
        drop(answers);
        self
    }

    pub(crate) fn command(&self, home: &Home, args: &[&str]) -> Command {
        let mut command = home.command(args);
        command.env("JURAT_SERVER", &self.url).env("JURAT_KEY", "jrt_live_x");
        command
    }

    pub(crate) fn run(&self, home: &Home, args: &[&str]) -> Ran {
        self.command(home, args).output().unwrap().into()
    }

    /// The requests in order: `METHOD /path` and the body.
    pub(crate) fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().clone()
    }
}

/// One request, and then the end of the connection.
fn serve(mut stream: TcpStream, asked: &Mutex<Vec<(String, Value)>>, answers: &Mutex<Answers>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() || first.is_empty() {
        return;
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let request = first.rsplit_once(' ').unwrap().0.to_owned();
    let value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    asked.lock().push((request.clone(), value));
    let (status, text) = answer(&request, answers);
    let kind = if text.starts_with("event:") { "text/event-stream" } else { "application/json" };
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
    .unwrap();
}

fn answer(request: &str, answers: &Mutex<Answers>) -> (u16, String) {
    let mut answers = answers.lock();
    match answers.get_mut(request) {
        Some(list) if list.len() > 1 => list.remove(0),
        Some(list) => list[0].clone(),
        None => {
            let text = format!("nobody said what {request} answers");
            (404, serde_json::json!({"code": "not_found", "message": text}).to_string())
        }
    }
}
