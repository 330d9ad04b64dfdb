//! The open connections: which of them leads to a peer, and which has to go.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use iroh::{
    EndpointId,
    endpoint::{Connection, VarInt},
};
use parking_lot::Mutex;

use crate::codes;

/// How many connections with one peer may be open in each direction: one that is used, and an older
/// one whose streams end.
const MOST_PER_PEER: usize = 2;

/// Which side made the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkOrigin {
    Dialled,
    Accepted,
}

/// An open connection with a peer. Both sides may open streams on it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: Connection,
    pub(crate) peer: String,
    pub(crate) origin: LinkOrigin,
    streams: AtomicUsize,
    /// When it was used last, counted in uses of all connections.
    used: AtomicU64,
}

/// A stream of a connection that is in use.
#[derive(Debug)]
pub(crate) struct LinkUse(Arc<Link>);

/// The table is full of connections that are in use.
#[derive(Debug)]
pub(crate) struct LinksFull {
    pub(crate) limit: usize,
}

#[derive(Debug)]
pub(crate) struct Links {
    table: Mutex<BTreeMap<EndpointId, Vec<Arc<Link>>>>,
    uses: AtomicU64,
    limit: usize,
}

impl Link {
    fn new(connection: Connection, origin: LinkOrigin) -> Self {
        let peer = connection.remote_id().to_string();
        let (streams, used) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { connection, peer, origin, streams, used }
    }

    pub(crate) fn begin_stream(self: &Arc<Self>) -> LinkUse {
        self.streams.fetch_add(1, Ordering::Relaxed);
        LinkUse(Arc::clone(self))
    }

    pub(crate) fn close(&self, code: VarInt) {
        self.connection.close(code, codes::meaning(code).as_bytes());
    }

    fn is_open(&self) -> bool {
        self.connection.close_reason().is_none()
    }

    fn is_idle(&self) -> bool {
        self.streams.load(Ordering::Relaxed) == 0
    }
}

impl Drop for LinkUse {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Links {
    pub(crate) fn new(limit: usize) -> Self {
        Self { table: Mutex::default(), uses: AtomicU64::new(0), limit }
    }

    /// The connection to use for a peer: one that we made, if there is one. Else the newest that the
    /// peer made, which is the only way to a peer behind a NAT.
    pub(crate) fn find(&self, id: EndpointId) -> Option<Arc<Link>> {
        let table = self.table.lock();
        let open: Vec<_> = table.get(&id)?.iter().filter(|link| link.is_open()).collect();
        let ours = open.iter().find(|link| link.origin == LinkOrigin::Dialled);
        let link = ours.or(open.last())?;
        self.mark_used(link);
        Some(Arc::clone(link))
    }

    /// Whether a connection with the peer is open.
    pub(crate) fn is_connected(&self, peer: EndpointId) -> bool {
        let table = self.table.lock();
        table.get(&peer).is_some_and(|links| links.iter().any(|link| link.is_open()))
    }

    /// Adds a connection that was just made.
    pub(crate) fn add(
        &self,
        connection: Connection,
        origin: LinkOrigin,
    ) -> Result<Arc<Link>, LinksFull> {
        let link = Link::new(connection, origin);
        let mut table = self.table.lock();
        for links in table.values_mut() {
            links.retain(|link| link.is_open());
        }
        table.retain(|_, links| !links.is_empty());
        let id = link.connection.remote_id();
        replace_older(table.entry(id).or_default(), link.origin);
        if self.limit <= table.values().map(Vec::len).sum() && !close_idlest(&mut table) {
            table.retain(|_, links| !links.is_empty());
            link.close(codes::BUSY);
            return Err(LinksFull { limit: self.limit });
        }
        let link = Arc::new(link);
        self.mark_used(&link);
        table.entry(id).or_default().push(Arc::clone(&link));
        Ok(link)
    }

    /// Forgets a connection that ended.
    pub(crate) fn remove(&self, link: &Arc<Link>) {
        let mut table = self.table.lock();
        let id = link.connection.remote_id();
        if let Some(links) = table.get_mut(&id) {
            links.retain(|other| !Arc::ptr_eq(other, link));
            if links.is_empty() {
                table.remove(&id);
            }
        }
    }

    /// Closes every connection with a peer.
    pub(crate) fn close_peer(&self, id: EndpointId, code: VarInt) {
        let links = self.table.lock().remove(&id).unwrap_or_default();
        for link in links {
            link.close(code);
        }
    }

    pub(crate) fn close_all(&self, code: VarInt) {
        let links = std::mem::take(&mut *self.table.lock());
        for link in links.values().flatten() {
            link.close(code);
        }
    }

    pub(crate) fn mark_used(&self, link: &Link) {
        link.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Makes room for a newer connection of one peer: the idle ones go, and of the others the oldest.
fn replace_older(links: &mut Vec<Arc<Link>>, origin: LinkOrigin) {
    let close = |link: &Arc<Link>| link.close(codes::REPLACED);
    let is_idle = |link: &mut Arc<Link>| link.origin == origin && link.is_idle();
    links.extract_if(.., is_idle).for_each(|link| close(&link));
    let of_origin = links.iter().filter(|link| link.origin == origin).count();
    if MOST_PER_PEER <= of_origin
        && let Some(oldest) = links.iter().position(|link| link.origin == origin)
    {
        close(&links.remove(oldest));
    }
}

/// Closes the connection that was not used for the longest time; `false` if all are in use.
fn close_idlest(table: &mut BTreeMap<EndpointId, Vec<Arc<Link>>>) -> bool {
    let idle = table.values().flatten().filter(|link| link.is_idle());
    let Some(idlest) = idle.min_by_key(|link| link.used.load(Ordering::Relaxed)).cloned() else {
        return false;
    };
    idlest.close(codes::DISCONNECTED);
    for links in table.values_mut() {
        links.retain(|link| !Arc::ptr_eq(link, &idlest));
    }
    true
}
