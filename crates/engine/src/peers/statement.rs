//! Compares the books of two nodes about each other.

use std::time::Duration;

use bytes::Bytes;
use jurat_core::{
    account::caller::{Caller, Scope},
    peer::{Peer, PeerId, book::PeerBooks},
};
use jurat_store::Behalf;
use jurat_wire::mesh::{NodeReply, NodeRequest, StatementReply, StatementRequest};

use super::message::{ReplyLimits, address_of};
use crate::{Engine, EngineError, access::require_scope};

const STATEMENT_WITHIN: Duration = Duration::from_secs(5);

/// What both nodes have booked.
#[derive(Debug, Clone)]
pub struct PeerStatement {
    pub peer: Peer,
    /// This node's book about the peer.
    pub ours: PeerBooks,
    /// The peer's book about this node, or why it is not known.
    pub theirs: Result<StatedBooks, String>,
}

/// The totals of a peer, with its signature.
#[derive(Debug, Clone)]
pub struct StatedBooks {
    pub books: PeerBooks,
    /// The signed document as it arrived.
    pub signed: String,
}

impl PeerStatement {
    /// Whether both books say the same; `None` if the peer's book is not known.
    pub fn agrees(&self) -> Option<bool> {
        let theirs = &self.theirs.as_ref().ok()?.books;
        let (ours, mirrored) = (&self.ours, mirror(theirs));
        Some(*ours == mirrored)
    }
}

/// What one node earned, the other owes.
const fn mirror(books: &PeerBooks) -> PeerBooks {
    PeerBooks {
        earned_jobs: books.owed_jobs,
        earned_micros: books.owed_micros,
        owed_jobs: books.earned_jobs,
        owed_micros: books.earned_micros,
    }
}

impl Engine {
    /// The totals of both books about the jobs between this node and a peer.
    pub async fn peer_statement(
        &self,
        caller: &Caller,
        id: &PeerId,
    ) -> Result<PeerStatement, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let peer = self.stored_peer(id).await?;
        let ours = self.inner.store.peers().books(&Behalf::Platform, id).await?;
        let theirs = self.ask_statement(&peer).await;
        Ok(PeerStatement { peer, ours, theirs })
    }

    async fn ask_statement(&self, peer: &Peer) -> Result<StatedBooks, String> {
        let request = NodeRequest::Statement(StatementRequest { route: self.route_to(&peer.id) });
        let limits = ReplyLimits { within: STATEMENT_WITHIN, most_body: 0 };
        let replied = self.ask_node(&address_of(peer), &request, Bytes::new(), limits).await;
        let replied = replied.map_err(|error| error.to_string())?;
        let NodeReply::Statement(stated) = replied.reply else {
            return Err("the reply is no statement".to_owned());
        };
        let books = PeerBooks {
            earned_jobs: stated.earned_jobs,
            earned_micros: stated.earned_micros,
            owed_jobs: stated.owed_jobs,
            owed_micros: stated.owed_micros,
        };
        Ok(StatedBooks { books, signed: replied.proof })
    }

    pub(super) async fn statement_reply(
        &self,
        peer: &Peer,
        request: String,
    ) -> Result<NodeReply, EngineError> {
        let books = self.inner.store.peers().books(&Behalf::Platform, &peer.id).await?;
        Ok(NodeReply::Statement(StatementReply {
            route: self.route_to(&peer.id),
            request,
            earned_jobs: books.earned_jobs,
            earned_micros: books.earned_micros,
            owed_jobs: books.owed_jobs,
            owed_micros: books.owed_micros,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_node_earned_the_other_owes() {
        let books = PeerBooks { earned_jobs: 1, earned_micros: 20, owed_jobs: 3, owed_micros: 40 };
        assert_eq!(mirror(&mirror(&books)), books);
        assert_eq!(mirror(&books).owed_micros, 20);
    }
}
