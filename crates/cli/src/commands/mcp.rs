//! `jurat mcp`: the Model Context Protocol on standard input and output.
//!
//! Passes every request to `/mcp` of the server, or of the same router in this process, and prints
//! the replies. So each tool exists once, and answers alike over HTTP and on standard input.

mod lines;
mod message;

use std::{collections::BTreeMap, io, sync::Arc};

use parking_lot::Mutex;
use tokio::{io::BufReader, sync::Notify, task::JoinSet};

use self::{
    lines::{InputLine, LineReader},
    message::RpcMessage,
};
use super::CommandContext;
use crate::{client::ApiClient, failure::sentence, output::Output};

/// Maximum number of requests in progress; further ones wait in the pipe.
const MOST: usize = 64;

pub(super) async fn run(context: &CommandContext) -> anyhow::Result<u8> {
    // Reports a problem with the settings, the key or the store before the first message.
    let first = Box::pin(ApiClient::connect(&context.config, context.out)).await?;
    first.work_on_agent_runs();
    let mut relay = McpRelay::new(context, first);
    let mut lines = LineReader::new(BufReader::new(tokio::io::stdin()));
    let mut has_ended = false;
    while !has_ended || !relay.in_flight.is_empty() {
        relay.rest().await;
        tokio::select! {
            Some(done) = relay.in_flight.join_next(), if !relay.in_flight.is_empty() => {
                relay.ended(done?)?;
            }
            line = lines.next(), if !has_ended && relay.in_flight.len() < MOST => match line? {
                InputLine::Text(text) => relay.take(text).await?,
                InputLine::TooLong => relay.out.data(&message::too_long())?,
                InputLine::End => has_ended = true,
            },
        }
    }
    relay.rest().await;
    Ok(0)
}

struct McpRelay<'a> {
    context: &'a CommandContext,
    out: Output,
    /// Only while a request is in progress: in between, other processes can use the store, and the
    /// next request finds a server that was started meanwhile.
    client: Option<Arc<ApiClient>>,
    in_flight: JoinSet<AnsweredRequest>,
    /// Signals that cancel requests, by the id of the request.
    offs: BTreeMap<String, Arc<Notify>>,
    /// The revision that `initialize` agreed on. The newest revision is named in each message.
    revision: Arc<Mutex<Option<String>>>,
}

/// A request that has ended: its id, and whether its answer could be printed.
type AnsweredRequest = (String, io::Result<()>);

impl<'a> McpRelay<'a> {
    fn new(context: &'a CommandContext, client: ApiClient) -> Self {
        Self {
            context,
            out: context.out,
            client: Some(Arc::new(client)),
            in_flight: JoinSet::new(),
            offs: BTreeMap::new(),
            revision: Arc::default(),
        }
    }

    /// Releases the store and the server while no request is in progress.
    async fn rest(&mut self) {
        if self.in_flight.is_empty()
            && let Some(client) = self.client.take().and_then(Arc::into_inner)
        {
            client.close().await;
        }
    }

    fn ended(&mut self, (id, taken): AnsweredRequest) -> io::Result<()> {
        self.offs.remove(&id);
        taken
    }

    async fn take(&mut self, line: Vec<u8>) -> anyhow::Result<()> {
        let message = RpcMessage::read(line);
        if let Some(id) = message.cancels() {
            if let Some(off) = self.offs.get(&id) {
                off.notify_one();
            }
            return Ok(());
        }
        // There is no state between messages that a notification could change.
        if message.is_notification() {
            return Ok(());
        }
        let client = match self.connected().await {
            Ok(client) => client,
            Err(error) => return Ok(self.out.data(&message.failed(&sentence(&error)))?),
        };
        let off = Arc::new(Notify::new());
        self.offs.insert(message.id_text(), Arc::clone(&off));
        let (out, revision) = (self.out, Arc::clone(&self.revision));
        let tools = self.context.config.tools.clone();
        self.in_flight.spawn(async move {
            let id = message.id_text();
            let taken = tokio::select! {
                taken = answer(&client, out, (&message, &tools), &revision) => taken,
                // Dropping the request notifies the server.
                () = off.notified() => Ok(()),
            };
            (id, taken)
        });
        Ok(())
    }

    async fn connected(&mut self) -> anyhow::Result<Arc<ApiClient>> {
        if let Some(client) = &self.client {
            return Ok(Arc::clone(client));
        }
        let found = Box::pin(ApiClient::connect(&self.context.config, self.out)).await?;
        // Without a server, this process works on tasks and runs while a request is in progress.
        found.work_on_agent_runs();
        let client = Arc::new(found);
        self.client = Some(Arc::clone(&client));
        Ok(client)
    }
}

/// Sends a request, and prints its replies.
async fn answer(
    client: &ApiClient,
    out: Output,
    (message, tools): (&RpcMessage, &[String]),
    revision: &Mutex<Option<String>>,
) -> io::Result<()> {
    let known = revision.lock().clone();
    let mut is_answered = false;
    let exchanged = client.exchange(message.call(known.as_deref(), tools), |text| {
        let reply = message.reply(text);
        is_answered |= reply.is_last;
        if let Some(agreed) = reply.revision {
            *revision.lock() = Some(agreed);
        }
        out.data(&reply.text)
    });
    let error = match exchanged.await {
        Ok(()) if is_answered => return Ok(()),
        Ok(()) => "the reply is incomplete".to_owned(),
        Err(error) => match error.downcast::<io::Error>() {
            Ok(error) => return Err(error),
            Err(error) => sentence(&error),
        },
    };
    out.data(&message.failed(&error))
}
