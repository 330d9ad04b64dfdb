//! `jurat node`.

pub(crate) mod args;
mod show;

use std::path::Path;

use jurat_client::{node, peers};
use jurat_engine::NodeSigningKey;
use jurat_wire::api::nodes::{InviteNodeDraft, JoinNodeDraft, PeerTermsDraft, TrustNodeDraft};
use serde_json::json;

use super::{CommandContext, shared::input, to_the_second};
use crate::{
    args::{InviteNodeArgs, JoinNodeArgs, ListArgs, NodeCommand, PeerTermsArgs, TrustNodeArgs},
    failure::{CliFailure, ERROR},
    output::{OutputFormat, plain::visible, table::fields},
    state::StateFolder,
};

/// The algorithm that is named in the signatures of requests to executors.
const ALGORITHM: &str = "ed25519";
/// More than the longest ticket.
const MOST_TICKET_BYTES: u64 = 16 * 1024;

pub(super) async fn run(
    context: &CommandContext,
    command: Option<NodeCommand>,
) -> anyhow::Result<u8> {
    let Some(command) = command else { return identity(context) };
    match command {
        NodeCommand::Id => id(context),
        NodeCommand::Status => {
            let reply = context.send(node::show()).await?;
            context.out.reply(&reply, |_| show::node(&reply.value))?;
            if !reply.value.enabled {
                context.out.note(
                    "this node has no endpoint for others: start `jurat serve --node-listen ADDRESS`",
                );
            }
            Ok(0)
        }
        NodeCommand::Invite(args) => invite(context, args).await,
        NodeCommand::Join(args) => join(context, args).await,
        NodeCommand::Peers(args) => list(context, args).await,
        NodeCommand::Show { id } => {
            let reply = context.send(peers::show(&id)).await?;
            context.out.reply(&reply, |_| show::peer(&reply.value))?;
            Ok(0)
        }
        NodeCommand::Trust(args) => trust(context, args).await,
        NodeCommand::Block { id } => {
            let reply = context.send(peers::block(&id)).await?;
            context.out.confirm(&reply, || format!("blocked {}", show::label(&reply.value)))?;
            Ok(0)
        }
        NodeCommand::Remove { id } => {
            let reply = context.send(peers::remove(&id)).await?;
            context.out.confirm(&reply, || format!("removed {id}"))?;
            Ok(0)
        }
        NodeCommand::Offers { id } => offers(context, &id).await,
        NodeCommand::Bookings { id, list } => bookings(context, &id, list).await,
        NodeCommand::Statement { id } => statement(context, &id).await,
    }
}

/// The key of the state folder, which no server is asked for.
fn signing_key(context: &CommandContext, command: &str) -> anyhow::Result<NodeSigningKey> {
    if context.config.server.is_some() {
        return Err(CliFailure::usage(format!(
            "`{command}` reads the key from a state folder and cannot ask a server; leave out `--server` and JURAT_SERVER, and run the command on the server's machine"
        )));
    }
    Ok(StateFolder::existing(&context.config.state_dir).existing_node_key()?)
}

fn identity(context: &CommandContext) -> anyhow::Result<u8> {
    let key = signing_key(context, "jurat node")?;
    // Signatures name the key by the public key itself.
    let (key_id, public_key) = (key.id(), key.id());
    match context.out.format {
        OutputFormat::Json => {
            let body =
                json!({ "key_id": key_id, "public_key": public_key, "algorithm": ALGORITHM });
            context.out.data(&body.to_string())?;
        }
        OutputFormat::Text => context.out.data(&fields(&[
            ("key id", key_id.to_owned()),
            ("public key", public_key.to_owned()),
            ("algorithm", ALGORITHM.to_owned()),
        ]))?,
    }
    Ok(0)
}

fn id(context: &CommandContext) -> anyhow::Result<u8> {
    let key = signing_key(context, "jurat node id")?;
    match context.out.format {
        OutputFormat::Json => context.out.data(&json!({ "id": key.id() }).to_string())?,
        OutputFormat::Text => context.out.data(key.id())?,
    }
    Ok(0)
}

async fn invite(context: &CommandContext, args: InviteNodeArgs) -> anyhow::Result<u8> {
    let draft = InviteNodeDraft {
        name: args.name,
        valid_seconds: args.valid_seconds,
        terms: Some(terms(args.terms)),
    };
    let reply = context.send(node::invite(&draft)).await?;
    match context.out.format {
        OutputFormat::Json => context.out.body(&reply.bytes, |_| String::new())?,
        // On one line, however long it is: it will be copied.
        OutputFormat::Text => context.out.data(&visible(&reply.value.ticket))?,
    }
    context.out.note(&format!(
        "run `jurat node join TICKET` on the other node, once, before {} UTC; the ticket is a secret and is not shown again",
        to_the_second(reply.value.expires_at)
    ));
    Ok(0)
}

async fn join(context: &CommandContext, args: JoinNodeArgs) -> anyhow::Result<u8> {
    let ticket = match args.ticket.as_str() {
        "-" => {
            let bytes = input::whole("the ticket", Path::new("-"), MOST_TICKET_BYTES)?;
            String::from_utf8_lossy(&bytes).trim().to_owned()
        }
        given => given.to_owned(),
    };
    let draft = JoinNodeDraft { ticket, name: args.name, terms: Some(terms(args.terms)) };
    let reply = context.send(node::join(&draft)).await?;
    context.out.reply(&reply, |_| show::peer(&reply.value))?;
    context.out.note(&format!(
        "both nodes trust each other; see what it lends with `jurat node offers {}`",
        visible(&reply.value.id)
    ));
    Ok(0)
}

async fn list(context: &CommandContext, list: ListArgs) -> anyhow::Result<u8> {
    let reply = context.list(peers::list(), list).await?;
    context.out.reply(&reply, |out| show::peers(out, &reply.value.items))?;
    let nobody =
        "no peers yet: `jurat node invite` invites one, and `jurat node join` takes an invitation";
    context.note_page(&reply.value, nobody);
    Ok(0)
}

async fn trust(context: &CommandContext, args: TrustNodeArgs) -> anyhow::Result<u8> {
    let addresses = args.addresses.iter().map(ToString::to_string).collect();
    let draft = TrustNodeDraft {
        name: args.name,
        addresses: Some(addresses),
        relays: Some(args.relays),
        terms: Some(terms(args.terms)),
    };
    let reply = context.send(peers::trust(&args.id, &draft)).await?;
    context.out.reply(&reply, |_| show::peer(&reply.value))?;
    if reply.value.addresses.is_empty() && reply.value.relays.is_empty() {
        context.out.note(
            "no address of this node is known, so only it can connect; add one with `--address`",
        );
    }
    Ok(0)
}

async fn offers(context: &CommandContext, id: &str) -> anyhow::Result<u8> {
    let reply = context.send(peers::offers(id)).await?;
    context.out.reply(&reply, |out| show::offers(out, &reply.value))?;
    if reply.value.offers.is_empty() {
        context.out.note("it lends no executors to this node");
    } else {
        context.out.note(&format!(
            "register one with `jurat executors add NAME EXECUTOR --remote --target-node {}`",
            visible(&reply.value.peer)
        ));
    }
    Ok(0)
}

async fn bookings(context: &CommandContext, id: &str, list: ListArgs) -> anyhow::Result<u8> {
    let reply = context.list(peers::bookings(id), list).await?;
    context.out.reply(&reply, |out| show::bookings(out, &reply.value.items))?;
    context.note_page(&reply.value, "no jobs are booked yet");
    Ok(0)
}

async fn statement(context: &CommandContext, id: &str) -> anyhow::Result<u8> {
    let reply = context.send_to_decide(peers::statement(id)).await?;
    context.out.reply(&reply, |out| show::statement(out, &reply.value))?;
    Ok(if reply.value.agrees == Some(true) { 0 } else { ERROR })
}

/// The terms that the flags set; the server fills in the others.
fn terms(args: PeerTermsArgs) -> PeerTermsDraft {
    PeerTermsDraft {
        works_for: args.no_work.then_some(false),
        hires: args.no_hire.then_some(false),
        requests_per_minute: args.requests_per_minute,
        concurrent_jobs: args.concurrent_jobs,
        payload_bytes: args.payload_bytes,
        most_price_micros: args.most_price_micros,
        task_types: Some(args.task_types).filter(|types| !types.is_empty()),
    }
}
