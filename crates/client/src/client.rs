//! Sends calls over a transport and reads their replies.

use std::{error::Error, io};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Request, Response, StatusCode, header};
use serde::de::DeserializeOwned;

use crate::{
    call::Call,
    reply::{Refusal, Reply, date},
    sse::{SseEvent, SseReader},
    transport::{ReplyBody, Transport},
};

/// Why a call has no reply.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(transparent)]
    Transport(Box<dyn Error + Send + Sync>),
    #[error("the key has characters that a header cannot hold; check JURAT_KEY or `admin.key`")]
    Key,
    #[error("the request could not be built")]
    Request(#[from] http::Error),
    #[error("the reply does not come from a Jurat server (status {status}); check `--server`")]
    Foreign { status: StatusCode },
    #[error("this program cannot read the reply; the server may be newer")]
    Unreadable { bytes: Bytes, source: serde_json::Error },
    #[error("{0}")]
    Refused(Box<Refusal>),
}

impl ClientError {
    /// The body of a reply that this version cannot read.
    pub fn unread_body(&self) -> Option<&Bytes> {
        match self {
            Self::Unreadable { bytes, .. } => Some(bytes),
            Self::Transport(_)
            | Self::Key
            | Self::Request(_)
            | Self::Foreign { .. }
            | Self::Refused(_) => None,
        }
    }

    /// The refusal, if the server refused the request.
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Transport(_)
            | Self::Key
            | Self::Request(_)
            | Self::Foreign { .. }
            | Self::Unreadable { .. } => None,
        }
    }
}

/// Sends calls with one key over one transport.
#[derive(Debug)]
pub struct Client<T> {
    transport: T,
    /// `None` sends no key.
    key: Option<HeaderValue>,
}

impl<T: Transport> Client<T> {
    pub fn new(transport: T, key: &str) -> Result<Self, ClientError> {
        let value = HeaderValue::from_str(&format!("Bearer {key}"));
        let mut value = value.map_err(|_| ClientError::Key)?;
        value.set_sensitive(true);
        Ok(Self { transport, key: Some(value) })
    }

    pub const fn transport(&self) -> &T {
        &self.transport
    }

    pub fn into_transport(self) -> T {
        self.transport
    }

    /// Stops sending the key.
    pub fn forget_key(&mut self) {
        self.key = None;
    }

    /// Sends a call and returns its reply.
    pub async fn send<R: DeserializeOwned>(&self, call: Call<R>) -> Result<Reply<R>, ClientError> {
        let arriving = self.begin(call, "application/json").await?;
        read(arriving).await
    }

    /// Sends a call and shows its events until the event `last`, which is the reply.
    pub async fn watch<R: DeserializeOwned>(
        &self,
        call: Call<R>,
        last: &str,
        mut show: impl FnMut(&SseEvent) + Send,
    ) -> Result<Reply<R>, ClientError> {
        let mut arriving = self.begin(call, "text/event-stream").await?;
        if !is_events(&arriving) {
            return read(arriving).await;
        }
        let status = arriving.status();
        let mut reader = SseReader::default();
        while let Some(chunk) = next(arriving.body_mut()).await? {
            for event in reader.push(&chunk) {
                match event.name.as_str() {
                    name if name == last => {
                        return Reply::read(StatusCode::OK, Bytes::from(event.data), None);
                    }
                    jurat_wire::api::events::ERROR => {
                        let status = StatusCode::INTERNAL_SERVER_ERROR;
                        let headers = arriving.headers();
                        let refusal = Refusal::read(status, Bytes::from(event.data), headers)?;
                        return Err(ClientError::Refused(Box::new(refusal)));
                    }
                    _ => show(&event),
                }
            }
        }
        Err(ClientError::Foreign { status })
    }

    /// Sends a message and passes each message of the reply to `take`.
    pub async fn exchange(
        &self,
        call: Call<()>,
        mut take: impl FnMut(&str) -> io::Result<()> + Send,
    ) -> Result<io::Result<()>, ClientError> {
        let mut arriving = self.begin(call, "application/json, text/event-stream").await?;
        if !is_events(&arriving) {
            let bytes = whole(arriving.body_mut()).await?;
            return Ok(take(&String::from_utf8_lossy(&bytes)));
        }
        let mut reader = SseReader::default();
        while let Some(chunk) = next(arriving.body_mut()).await? {
            for event in reader.push(&chunk) {
                if let Err(error) = take(&event.data) {
                    return Ok(Err(error));
                }
            }
        }
        Ok(Ok(()))
    }

    async fn begin<R>(
        &self,
        call: Call<R>,
        accept: &'static str,
    ) -> Result<Response<T::Body>, ClientError> {
        let within = call.within;
        let mut request = Request::builder()
            .method(call.method)
            .uri(self.transport.address(&call.path))
            .header(header::ACCEPT, accept);
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, key.clone());
        }
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        if call.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(call.body.unwrap_or_default())?;
        self.transport.send(request, within).await.map_err(transport_error)
    }
}

async fn read<R: DeserializeOwned, B: ReplyBody<Error: Error + Send + Sync + 'static>>(
    mut arriving: Response<B>,
) -> Result<Reply<R>, ClientError> {
    let bytes = whole(arriving.body_mut()).await?;
    let status = arriving.status();
    if status.is_success() {
        return Reply::read(status, bytes, date(arriving.headers()));
    }
    let refusal = Refusal::read(status, bytes, arriving.headers())?;
    Err(ClientError::Refused(Box::new(refusal)))
}

async fn whole<B: ReplyBody<Error: Error + Send + Sync + 'static>>(
    body: &mut B,
) -> Result<Bytes, ClientError> {
    let mut whole = BytesMut::new();
    while let Some(chunk) = next(body).await? {
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

async fn next<B: ReplyBody<Error: Error + Send + Sync + 'static>>(
    body: &mut B,
) -> Result<Option<Bytes>, ClientError> {
    body.next().await.map_err(transport_error)
}

fn transport_error(error: impl Error + Send + Sync + 'static) -> ClientError {
    ClientError::Transport(Box::new(error))
}

fn is_events<B>(arriving: &Response<B>) -> bool {
    let kind = arriving.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}
