//! Rows of peers, their invitations and their bookings.

use std::{borrow::Cow, collections::BTreeSet};

use jurat_core::{
    id::{AccountId, RoundId},
    peer::{
        Peer,
        book::{PeerBooking, PeerBookingRecord},
        invitation::PeerInvitation,
        terms::PeerTerms,
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    Result,
    db::row::{DbRow, RowReader},
};

pub(super) const PEER_COLUMNS: &str =
    "id, name, standing, direct, relays, network, terms, added_at, changed_at";
pub(super) const INVITATION_COLUMNS: &str =
    "secret_digest, name, terms, created_at, expires_at, used_by";
pub(super) const BOOKING_COLUMNS: &str =
    "peer, side, origin, execution_id, price_micros, account_id, round_id, booked_at";

/// The terms of a peer or an invitation.
#[derive(Serialize, Deserialize)]
pub(super) struct TermsDocument<'a> {
    works_for: bool,
    hires: bool,
    requests_per_minute: u32,
    concurrent_jobs: u32,
    payload_bytes: u64,
    most_price_micros: Option<u64>,
    task_types: Cow<'a, BTreeSet<String>>,
}

impl<'a> From<&'a PeerTerms> for TermsDocument<'a> {
    fn from(terms: &'a PeerTerms) -> Self {
        Self {
            works_for: terms.works_for,
            hires: terms.hires,
            requests_per_minute: terms.requests_per_minute,
            concurrent_jobs: terms.concurrent_jobs,
            payload_bytes: terms.payload_bytes,
            most_price_micros: terms.most_price_micros,
            task_types: Cow::Borrowed(&terms.task_types),
        }
    }
}

impl From<TermsDocument<'_>> for PeerTerms {
    fn from(document: TermsDocument<'_>) -> Self {
        Self {
            works_for: document.works_for,
            hires: document.hires,
            requests_per_minute: document.requests_per_minute,
            concurrent_jobs: document.concurrent_jobs,
            payload_bytes: document.payload_bytes,
            most_price_micros: document.most_price_micros,
            task_types: document.task_types.into_owned(),
        }
    }
}

pub(super) fn read_peer(cells: &dyn DbRow) -> Result<Peer> {
    let columns = RowReader::new(cells, "peers", "id")?;
    Ok(Peer {
        id: columns.word("id")?,
        name: columns.maybe_text("name")?,
        standing: columns.word("standing")?,
        direct: columns.document("direct")?,
        relays: columns.document("relays")?,
        network: columns.maybe_text("network")?,
        terms: terms_of(&columns)?,
        added_at: columns.time("added_at")?,
        changed_at: columns.time("changed_at")?,
    })
}

pub(super) fn read_invitation(cells: &dyn DbRow) -> Result<PeerInvitation> {
    let columns = RowReader::new(cells, "peer_invitations", "secret_digest")?;
    Ok(PeerInvitation {
        secret_digest: columns.text("secret_digest")?,
        terms: terms_of(&columns)?,
        name: columns.maybe_text("name")?,
        created_at: columns.time("created_at")?,
        expires_at: columns.time("expires_at")?,
        used_by: columns.maybe_word("used_by")?,
    })
}

pub(super) fn read_booking(cells: &dyn DbRow) -> Result<PeerBookingRecord> {
    let columns = RowReader::new(cells, "peer_bookings", "execution_id")?;
    let booking = PeerBooking {
        peer: columns.word("peer")?,
        side: columns.word("side")?,
        origin: columns.word("origin")?,
        execution_id: columns.text("execution_id")?,
        price_micros: columns.count("price_micros")?,
    };
    Ok(PeerBookingRecord {
        booking,
        account: columns.id("account_id", AccountId::parse)?,
        round: columns.id("round_id", RoundId::parse)?,
        booked_at: columns.time("booked_at")?,
    })
}

fn terms_of(columns: &RowReader<'_>) -> Result<PeerTerms> {
    let document: TermsDocument<'_> = columns.document("terms")?;
    Ok(document.into())
}
