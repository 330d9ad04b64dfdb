//! The books between two nodes.

use std::borrow::Cow;

use jurat_core::peer::{
    PeerId,
    book::{PeerBookingRecord, PeerBooks},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::kit::{time::Time, words};

/// A job that one node did for the other.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PeerBooking)]
pub struct PeerBookingBody<'a> {
    /// The id of the peer.
    pub peer: Cow<'a, str>,
    pub side: words::BookSide,
    /// The node whose round the job belongs to: this one if the job is owed, the peer if it is
    /// earned.
    pub origin: Cow<'a, str>,
    /// The name of the job, the same on both nodes.
    pub execution_id: Cow<'a, str>,
    /// The price in millionths of a credit.
    pub price_micros: u64,
    /// The account of the round here.
    pub account: Cow<'a, str>,
    /// The round of this node that booked the job.
    pub round_id: Cow<'a, str>,
    pub booked_at: Time,
}

/// The totals of a book that one node keeps about another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[schema(as = PeerBooks)]
pub struct PeerBooksBody {
    /// Jobs that the owner of the book did for the other node.
    pub earned_jobs: u64,
    /// Their price in millionths of a credit.
    pub earned_micros: u64,
    /// Jobs that the other node did for the owner of the book.
    pub owed_jobs: u64,
    /// Their price in millionths of a credit.
    pub owed_micros: u64,
}

/// What two nodes have booked about each other.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PeerStatement)]
pub struct PeerStatementBody<'a> {
    /// The id of the peer.
    pub peer: Cow<'a, str>,
    /// Whether the books agree: each node owes what the other has earned. Null if the book of the
    /// peer is not known.
    #[schema(required = true)]
    pub agrees: Option<bool>,
    /// The book of this node.
    pub ours: PeerBooksBody,
    /// The book of the peer, from its side: it earned what this node owes. Null if it is not known.
    #[schema(required = true)]
    pub theirs: Option<PeerBooksBody>,
    /// Why the book of the peer is not known.
    #[schema(required = true)]
    pub problem: Option<Cow<'a, str>>,
    /// The document in which the peer stated its book, with its signature.
    #[schema(required = true)]
    pub signed: Option<Cow<'a, str>>,
}

impl<'a> From<&'a PeerBookingRecord> for PeerBookingBody<'a> {
    fn from(record: &'a PeerBookingRecord) -> Self {
        let booking = &record.booking;
        Self {
            peer: Cow::Borrowed(booking.peer.as_str()),
            side: words::BookSide(booking.side),
            origin: Cow::Borrowed(booking.origin.as_str()),
            execution_id: Cow::Borrowed(&booking.execution_id),
            price_micros: booking.price_micros,
            account: Cow::Borrowed(record.account.as_str()),
            round_id: Cow::Borrowed(record.round.as_str()),
            booked_at: Time(record.booked_at),
        }
    }
}

impl From<&PeerBooks> for PeerBooksBody {
    fn from(books: &PeerBooks) -> Self {
        let PeerBooks { earned_jobs, earned_micros, owed_jobs, owed_micros } = *books;
        Self { earned_jobs, earned_micros, owed_jobs, owed_micros }
    }
}

impl<'a> PeerStatementBody<'a> {
    /// The book of this node, with the book of the peer still unknown.
    pub fn of(peer: &'a PeerId, ours: &PeerBooks) -> Self {
        Self {
            peer: Cow::Borrowed(peer.as_str()),
            agrees: None,
            ours: PeerBooksBody::from(ours),
            theirs: None,
            problem: None,
            signed: None,
        }
    }
}
