//! Peers: the nodes that this one works for or hires, their invitations, and the books.

pub(crate) mod book;
pub(crate) mod invite;
mod rows;

use std::convert::Infallible;

use const_format::concatcp;
use jurat_core::{
    list::ListPage,
    peer::{
        Peer, PeerId,
        book::{BookPosition, PeerBookingRecord, PeerBooks},
        invitation::PeerInvitation,
    },
    time::Timestamp,
};

use self::rows::{PEER_COLUMNS, TermsDocument, read_peer};
use super::sessions::pool_changed;
use crate::{
    NotFound, Result,
    db::{
        row::json,
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Peers of the installation. Every change of one raises `sessions().pool_version`.
    pub struct PeerOps = store.peers();
    reads {
        fn get(id: &PeerId) -> Option<Peer> = get;
        /// Peers in the order of their identities.
        fn list(page: &ListPage) -> Vec<Peer> = list;
        /// What this node and a peer did for each other, whether the peer is still known or not.
        fn books(id: &PeerId) -> PeerBooks = book::books;
        /// The jobs that this node and a peer did for each other, newest first.
        fn bookings(query: &PeerBookingsQuery) -> Vec<PeerBookingRecord> = book::list;
        fn invitation(secret_digest: &str) -> Option<PeerInvitation> = invite::get;
    }
    changes {
        /// Removes invitations that ended before a time, up to the limit.
        fn prune_invitations(before: &Timestamp, limit: &u32) -> u64 = invite::prune;
    }
    writes {
        /// Adds a peer with its account, or replaces it, except for the time at which it was added.
        fn put(peer: &Peer) -> (), or Infallible = put;
        /// Removes a peer. Its account and its bookings stay.
        fn remove(id: &PeerId) -> (), or NotFound = remove;
        fn invite(invitation: &PeerInvitation) -> (), or Infallible = invite::invite;
        /// Makes a node a peer on the terms of its invitation. The node may repeat this, which
        /// changes nothing.
        fn accept_invitation(used: &PeerInvitationUse) -> Peer, or PeerInvitationRefusal
            = invite::accept;
    }
}

/// Selects bookings of one peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerBookingsQuery {
    pub peer: PeerId,
    /// Starts after this booking, towards older ones.
    pub before: Option<BookPosition>,
    pub limit: u32,
}

/// A node that uses an invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerInvitationUse {
    pub secret_digest: String,
    /// The identity that the node proved.
    pub peer: PeerId,
    pub direct: Vec<String>,
    pub relays: Vec<String>,
    pub network: Option<String>,
    pub now: Timestamp,
}

/// Why an invitation was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerInvitationRefusal {
    Unknown,
    /// Another node used it, or the peer was removed after it had used it.
    Used,
    Expired,
    /// The node is a peer that the operator has blocked.
    Blocked,
}

const GET: &str = concatcp!("select ", PEER_COLUMNS, " from peers where id = $1");
const LIST: &str =
    concatcp!("select ", PEER_COLUMNS, " from peers where id > $1 order by id limit $2");
const ACCOUNT: &str = "\
    insert into accounts (id, created_at, kind) values ($1, $2, 'peer') \
    on conflict (id) do nothing";
const PUT: &str = concatcp!(
    "insert into peers (",
    PEER_COLUMNS,
    ") values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (id) do update set \
     name = excluded.name, standing = excluded.standing, direct = excluded.direct, \
     relays = excluded.relays, network = excluded.network, terms = excluded.terms, \
     changed_at = excluded.changed_at"
);
const REMOVE: &str = "delete from peers where id = $1";

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[(GET, GET), (LIST, LIST), (REMOVE, REMOVE)];

async fn get(tx: &mut Tx<'_>, id: &PeerId) -> Result<Option<Peer>> {
    tx.first(GET, args![id.as_str()], read_peer).await
}

async fn list(tx: &mut Tx<'_>, page: &ListPage) -> Result<Vec<Peer>> {
    tx.all(LIST, args![page.after.as_deref().unwrap_or_default(), page.limit], read_peer).await
}

async fn put(tx: &mut Tx<'_>, peer: &Peer) -> Result<Result<(), Infallible>> {
    pool_changed(tx).await?;
    store(tx, peer).await.map(Ok)
}

/// Writes a peer and creates its account.
async fn store(tx: &mut Tx<'_>, peer: &Peer) -> Result<()> {
    tx.run(ACCOUNT, args![&peer.account(), peer.changed_at]).await?;
    let args = args![
        peer.id.as_str(),
        peer.name.as_ref(),
        peer.standing.as_str(),
        json(&peer.direct)?,
        json(&peer.relays)?,
        peer.network.as_ref(),
        json(&TermsDocument::from(&peer.terms))?,
        peer.added_at,
        peer.changed_at
    ];
    tx.run(PUT, args).await.map(drop)
}

async fn remove(tx: &mut Tx<'_>, id: &PeerId) -> Result<Result<(), NotFound>> {
    pool_changed(tx).await?;
    let is_removed = tx.run(REMOVE, args![id.as_str()]).await? == 1;
    Ok(if is_removed { Ok(()) } else { Err(NotFound) })
}
