//! `jurat mcp`: the Model Context Protocol on standard input and output.
//!
//! Passes every request to `/mcp` of the server, or of the same router in this process, and prints
//! the replies. So each tool exists once, and answers alike over HTTP and on standard input.

mod lines;
mod message;

use std::{collections::BTreeMap, io, pin::pin, sync::Arc};

use jurat_engine::{Clock as _, SystemClock};
use parking_lot::Mutex;
use tokio::{io::BufReader, sync::oneshot, task::JoinSet};

use self::{
    lines::{InputLine, LineReader},
    message::{RelayTerms, RpcMessage},
};
use super::CommandContext;
use crate::{client::ApiClient, failure::sentence, output::Output};

/// Maximum number of requests in progress. Further ones are refused instead of left in the pipe, where
/// they would hold up the message that cancels one.
const MOST: usize = 64;

pub(super) async fn run(context: &CommandContext) -> anyhow::Result<u8> {
    // Reports a problem with the settings, the key or the store before the first message.
    let first = Box::pin(ApiClient::connect(&context.config, context.out)).await?;
    first.work_on_agent_runs();
    let mut relay = McpRelay::new(context, first);
    let mut lines = LineReader::new(BufReader::new(tokio::io::stdin()));
    let mut has_ended = false;
    while !has_ended || !relay.in_flight.is_empty() {
        tokio::select! {
            Some(done) = relay.in_flight.join_next(), if !relay.in_flight.is_empty() => {
                relay.ended(done?)?;
            }
            line = lines.next(), if !has_ended => match line? {
                InputLine::Text(text) => relay.take(text).await?,
                InputLine::TooLong => relay.out.data(&message::too_long())?,
                InputLine::End => has_ended = true,
            },
            () = rested(relay.client.as_deref()), if relay.in_flight.is_empty() => {
                relay.release().await;
            }
        }
    }
    // Nobody is left who could ask for their results.
    if let Some(client) = &relay.client {
        client.release_rounds().await;
    }
    relay.release().await;
    Ok(0)
}

struct McpRelay<'a> {
    context: &'a CommandContext,
    out: Output,
    /// Only while a request or a round of this process is in progress: in between, other processes
    /// can use the store, and the next request finds a server that was started meanwhile.
    client: Option<Arc<ApiClient>>,
    in_flight: JoinSet<AnsweredRequest>,
    /// Where to send the message that cancels a request, by the id of the request.
    offs: BTreeMap<String, oneshot::Sender<RpcMessage>>,
    /// The revision that `initialize` agreed on. The newest revision is named in each message.
    revision: Arc<Mutex<Option<String>>>,
    /// Tells the requests of this client from those of others with the same key.
    session: String,
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
            session: format!("{:032x}", SystemClock.bits()),
        }
    }

    /// Releases the store and the server.
    async fn release(&mut self) {
        if let Some(client) = self.client.take().and_then(Arc::into_inner) {
            client.close().await;
        }
    }

    fn terms(&self) -> RelayTerms {
        RelayTerms {
            revision: self.revision.lock().clone(),
            tools: self.context.config.tools.clone(),
            session: self.session.clone(),
        }
    }

    fn ended(&mut self, (id, taken): AnsweredRequest) -> io::Result<()> {
        self.offs.remove(&id);
        taken
    }

    async fn take(&mut self, line: Vec<u8>) -> anyhow::Result<()> {
        let message = RpcMessage::read(line);
        if let Some(id) = message.cancels() {
            if let Some(off) = self.offs.remove(&id) {
                // A request that has just ended needs no cancelling.
                let _ended = off.send(message);
            }
            return Ok(());
        }
        // There is no state between messages that a notification could change.
        if message.is_notification() {
            return Ok(());
        }
        if MOST <= self.in_flight.len() {
            return Ok(self.out.data(&message.one_too_many(MOST))?);
        }
        let client = match self.connected().await {
            Ok(client) => client,
            Err(error) => return Ok(self.out.data(&message.failed(&sentence(&error)))?),
        };
        let (off, cancelled) = oneshot::channel();
        self.offs.insert(message.id_text(), off);
        let (out, revision, terms) = (self.out, Arc::clone(&self.revision), self.terms());
        self.in_flight.spawn(async move {
            let taken = {
                let mut answering = pin!(answer(&client, out, (&message, &terms), &revision));
                tokio::select! {
                    taken = &mut answering => taken,
                    Ok(off) = cancelled => {
                        // The newest revision cancels a request by dropping it. To older ones that
                        // means nothing, so the server is told while the request is there.
                        if !message.is_self_contained() {
                            let _unheard = client.exchange(off.call(&terms), |_| Ok(())).await;
                        }
                        Ok(())
                    }
                }
            };
            (message.id_text(), taken)
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

/// Resolves when the store and the server can be released: if no round is in progress, either, such
/// as one that a call returned because it took too long.
async fn rested(client: Option<&ApiClient>) {
    match client {
        Some(client) => client.rounds_ended().await,
        None => std::future::pending().await,
    }
}

/// Sends a request, and prints its replies.
async fn answer(
    client: &ApiClient,
    out: Output,
    (message, terms): (&RpcMessage, &RelayTerms),
    revision: &Mutex<Option<String>>,
) -> io::Result<()> {
    let mut is_answered = false;
    let exchanged = client.exchange(message.call(terms), |text| {
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
