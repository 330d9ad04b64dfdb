//! The books between this node and a peer.

use std::borrow::Cow;

use axum::{Extension, extract::State};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    peer::book::BookPosition,
    time::Timestamp,
};
use jurat_engine::{Engine, PeerStatement};
use jurat_wire::{
    api::{
        kit::page::PageBody,
        nodes::{self, PeerBookingBody, PeerBooksBody, PeerStatementBody},
    },
    problem::Problem,
};
use serde_json::{Value, json};

use super::{AT, ID, NO_NAME, PEER};
use crate::{
    operation::{Operation, parameters},
    request::{
        cursor,
        decode::PathText,
        encode::{self, HandlerResult},
        page::{ListQuery, QueryFilters},
    },
    resources::NODES,
};

pub(super) fn operations() -> Vec<Operation> {
    vec![bookings_operation(), statement_operation()]
}

fn bookings_operation() -> Operation {
    let text = "The jobs that this node and a peer did for each other, newest first, with their prices. Each is booked once, by the round that did it or had it done. The bookings of a node that is no longer a peer are listed, too.";
    let page = json!({ "items": [booking_example()], "next_cursor": null });
    Operation::get("/v1/peers/{id}/bookings", "peer_bookings", bookings)
        .tag(NODES)
        .summary("List bookings")
        .text(text)
        .in_path([PEER])
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<PageBody<'_, PeerBookingBody<'_>>>(200, "A page of bookings.", page)
        .refuses([ProblemCode::ValidationError])
        .refuses_when(ProblemCode::NotFound, NO_NAME)
}

async fn bookings(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let before = query.position()?.map(position).transpose()?;
    let id = nodes::peer_id(&id)?;
    let mut found = engine.peer_bookings(&caller, &id, before, query.with_one_more()).await?;
    let next = query.cut(&mut found, |record| {
        let BookPosition { booked_at, side, execution_id } = record.position();
        [booked_at.micros().to_string(), side.to_string(), execution_id]
    });
    let items = found.iter().map(PeerBookingBody::from);
    Ok(encode::ok(&PageBody::new(items, next.as_deref())))
}

/// The booking that a cursor leads to.
fn position([micros, side, execution_id]: [String; 3]) -> Result<BookPosition, Problem> {
    let micros = micros.parse().map_err(|_| cursor::refused())?;
    let side = side.parse().map_err(|()| cursor::refused())?;
    Ok(BookPosition { booked_at: Timestamp::from_micros(micros), side, execution_id })
}

fn statement_operation() -> Operation {
    let text = "Compares the totals of two books: that of this node, and that of the peer, which the peer states and signs now. `agrees` is null if the peer does not answer.";
    Operation::get("/v1/peers/{id}/statement", "peer_statement", statement)
        .tag(NODES)
        .summary("Compare the books")
        .text(text)
        .in_path([PEER])
        .scope(Scope::Admin)
        .answers::<PeerStatementBody<'_>>(200, "Both books.", statement_example())
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

async fn statement(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let statement = engine.peer_statement(&caller, &nodes::peer_id(&id)?).await?;
    Ok(encode::ok(&compared(&statement)))
}

fn compared(statement: &PeerStatement) -> PeerStatementBody<'_> {
    let unknown = PeerStatementBody::of(&statement.peer.id, &statement.ours);
    match &statement.theirs {
        Ok(stated) => PeerStatementBody {
            agrees: statement.agrees(),
            theirs: Some(PeerBooksBody::from(&stated.books)),
            signed: Some(Cow::Borrowed(&stated.signed)),
            ..unknown
        },
        Err(problem) => PeerStatementBody { problem: Some(Cow::Borrowed(problem)), ..unknown },
    }
}

fn booking_example() -> Value {
    json!({
        "peer": ID,
        "side": "owed",
        "origin": "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c",
        "execution_id": "exec-rnd_01M4MKN5EH4FK1F5CXR11J5M2Z-0",
        "price_micros": 250,
        "account": "acct_admin",
        "round_id": "rnd_01M4MKN5EH4FK1F5CXR11J5M2Z",
        "booked_at": AT,
    })
}

fn statement_example() -> Value {
    json!({
        "peer": ID,
        "agrees": true,
        "ours": { "earned_jobs": 0, "earned_micros": 0, "owed_jobs": 1, "owed_micros": 250 },
        "theirs": { "earned_jobs": 1, "earned_micros": 250, "owed_jobs": 0, "owed_micros": 0 },
        "problem": null,
        "signed": "{\"document\":\"…\",\"signature\":\"…\"}",
    })
}
