//! Prints this node, its peers, and the books between them.

use jurat_wire::api::nodes::{
    NodeBody, PeerBody, PeerBookingBody, PeerOffersBody, PeerStatementBody,
};

use super::super::to_the_second;
use crate::output::{
    Output, counted,
    table::{cell, fields, said, table, word},
};

/// How many digits of an id people read.
const SHORT_ID: usize = 8;

pub(super) fn node(node: &NodeBody<'_>) -> String {
    fields(&[
        ("id", said(&node.id)),
        ("endpoint", if node.enabled { "on".to_owned() } else { "off".to_owned() }),
        ("addresses", said(&node.addresses)),
        ("relays", said(&node.relays)),
        ("name", said(&node.name)),
        ("network", said(&node.network)),
        ("scopes", said(&node.scopes)),
        ("trusted peers", said(&node.trusted_peers)),
        ("blocked peers", said(&node.blocked_peers)),
    ])
}

/// The name of a peer, or the beginning of its id.
pub(super) fn label(peer: &PeerBody<'_>) -> String {
    match &peer.name {
        Some(name) => said(name),
        None => said(&peer.id.chars().take(SHORT_ID).collect::<String>()),
    }
}

pub(super) fn peers(out: Output, peers: &[PeerBody<'_>]) -> String {
    let rows = peers.iter().map(|peer| {
        vec![
            cell(&peer.id),
            cell(&peer.name),
            word(&peer.standing),
            cell(yes(peer.connected)),
            cell(yes(peer.terms.works_for)),
            cell(yes(peer.terms.hires)),
        ]
    });
    let header = ["peer", "name", "standing", "connected", "works for it", "hires it"];
    table(out, &header, rows.collect())
}

const fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

pub(super) fn peer(peer: &PeerBody<'_>) -> String {
    let terms = &peer.terms;
    let types =
        if terms.task_types.is_empty() { "all".to_owned() } else { said(&terms.task_types) };
    let most = terms
        .most_price_micros
        .map_or_else(|| "the price of the session".to_owned(), |micros| micros.to_string());
    fields(&[
        ("peer", said(&peer.id)),
        ("name", said(&peer.name)),
        ("standing", said(&peer.standing)),
        ("connected", yes(peer.connected).to_owned()),
        ("addresses", said(&peer.addresses)),
        ("relays", said(&peer.relays)),
        ("network", said(&peer.network)),
        ("works for it", yes(terms.works_for).to_owned()),
        ("hires it", yes(terms.hires).to_owned()),
        ("requests", format!("{} per minute", terms.requests_per_minute)),
        ("jobs", format!("{} at a time", terms.concurrent_jobs)),
        ("payload", format!("at most {} bytes", terms.payload_bytes)),
        ("most per job", most),
        ("task types", types),
        ("added", said(&peer.added_at)),
        ("changed", said(&peer.changed_at)),
    ])
}

pub(super) fn offers(out: Output, offered: &PeerOffersBody<'_>) -> String {
    let rows = offered.offers.iter().map(|offer| {
        let can = &offer.capabilities;
        let model = if can.ok {
            format!("{}/{}", said(&can.provider_family), said(&can.model_id))
        } else {
            format!("unhealthy: {}", said(&can.error))
        };
        vec![
            cell(&offer.executor),
            cell(&offer.profile),
            cell(&offer.price_micros),
            cell(&can.task_types),
            cell(&model),
        ]
    });
    table(out, &["executor", "profile", "price", "task types", "model"], rows.collect())
}

pub(super) fn bookings(out: Output, bookings: &[PeerBookingBody<'_>]) -> String {
    let rows = bookings.iter().map(|booking| {
        vec![
            cell(&to_the_second(booking.booked_at)),
            word(&booking.side),
            cell(&booking.price_micros),
            cell(&booking.round_id),
            cell(&booking.execution_id),
        ]
    });
    table(out, &["booked", "side", "price", "round", "execution"], rows.collect())
}

/// Both books side by side: what one node earned, the other owes.
pub(super) fn statement(out: Output, statement: &PeerStatementBody<'_>) -> String {
    let (ours, theirs) = (&statement.ours, statement.theirs.as_ref());
    let rows = [
        ("jobs done for the peer", ours.earned_jobs, theirs.map(|it| it.owed_jobs)),
        ("their price", ours.earned_micros, theirs.map(|it| it.owed_micros)),
        ("jobs done by the peer", ours.owed_jobs, theirs.map(|it| it.earned_jobs)),
        ("their price", ours.owed_micros, theirs.map(|it| it.earned_micros)),
    ];
    let rows = rows.map(|(what, ours, theirs)| vec![cell(what), cell(&ours), cell(&theirs)]);
    let books = table(out, &["", "our book", "book of the peer"], rows.into());
    format!("{books}\n{}", verdict(statement))
}

fn verdict(statement: &PeerStatementBody<'_>) -> String {
    let (ours, Some(theirs)) = (&statement.ours, &statement.theirs) else {
        return format!("the book of the peer is not known: {}", said(&statement.problem));
    };
    if statement.agrees == Some(true) {
        return "the books agree".to_owned();
    }
    let jobs =
        ours.earned_jobs.abs_diff(theirs.owed_jobs) + ours.owed_jobs.abs_diff(theirs.earned_jobs);
    let micros = ours.earned_micros.abs_diff(theirs.owed_micros)
        + ours.owed_micros.abs_diff(theirs.earned_micros);
    format!(
        "the books differ by {} and {micros} millionths of a credit; jobs in progress may explain it",
        counted(jobs, "job")
    )
}
