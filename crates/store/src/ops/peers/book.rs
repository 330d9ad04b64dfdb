//! The books between this node and its peers. A round adds to them as it ends.

use const_format::concatcp;
use jurat_core::{
    peer::{
        PeerId,
        book::{PeerBooking, PeerBookingRecord, PeerBooks},
    },
    round::{OpenRound, RoundClosing},
};

use super::{
    PeerBookingsQuery,
    rows::{BOOKING_COLUMNS, read_booking},
};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, to_bigint},
        tx::{SqlArg, Tx, args},
    },
};

/// The jobs that a round books as it ends.
pub(crate) struct BookedJobs {
    account_id: String,
    round_id: String,
    booked_at: i64,
    /// In the order of their keys, so that two rounds that book the same jobs wait for each other in
    /// one order.
    bookings: Vec<PeerBooking>,
}

impl BookedJobs {
    pub(crate) fn of(round: &OpenRound, closing: &RoundClosing) -> Option<Self> {
        let mut bookings = closing.bookings.clone();
        bookings.sort_unstable();
        (!bookings.is_empty()).then(|| Self {
            account_id: round.account.to_string(),
            round_id: round.id.to_string(),
            booked_at: closing.closed_at.micros(),
            bookings,
        })
    }
}

const ADD_SQLITE: &str = concatcp!(
    "insert into peer_bookings (",
    BOOKING_COLUMNS,
    ") values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing"
);
const ADD_POSTGRES: &str = concatcp!(
    "insert into peer_bookings (",
    BOOKING_COLUMNS,
    ") select booking.*, $6, $7, $8 \
     from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) as booking \
     on conflict do nothing"
);
const BOOKS: &str = "\
    select 'books' as id, \
    count(case when side = 'earned' then 1 end) as earned_jobs, \
    cast(coalesce(sum(case when side = 'earned' then price_micros end), 0) as bigint) \
    as earned_micros, \
    count(case when side = 'owed' then 1 end) as owed_jobs, \
    cast(coalesce(sum(case when side = 'owed' then price_micros end), 0) as bigint) \
    as owed_micros from peer_bookings where peer = $1";
const LIST: &str = concatcp!(
    "select ",
    BOOKING_COLUMNS,
    " from peer_bookings where peer = $1 and (booked_at, side, execution_id) < ($2, $3, $4) \
     order by booked_at desc, side desc, execution_id desc limit $5"
);

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[(BOOKS, BOOKS), (LIST, LIST)];

/// Books jobs that are not booked yet.
pub(crate) async fn add(tx: &mut Tx<'_>, booked: &BookedJobs) -> Result<()> {
    let BookedJobs { account_id, round_id, booked_at, bookings } = booked;
    if tx.is_sqlite() {
        for booking in bookings {
            let args = args![
                booking.peer.as_str(),
                booking.side.as_str(),
                booking.origin.as_str(),
                &booking.execution_id,
                booking.price_micros,
                account_id,
                round_id,
                *booked_at
            ];
            tx.run(ADD_SQLITE, args).await?;
        }
        return Ok(());
    }
    let texts = |text: fn(&PeerBooking) -> &str| {
        SqlArg::Texts(bookings.iter().map(|it| Some(text(it).to_owned())).collect())
    };
    let prices = bookings.iter().map(|it| to_bigint(it.price_micros)).collect();
    let mut args = vec![
        texts(|it| it.peer.as_str()),
        texts(|it| it.side.as_str()),
        texts(|it| it.origin.as_str()),
        texts(|it| &it.execution_id),
        SqlArg::Numbers(prices),
    ];
    args.extend(args![account_id, round_id, *booked_at]);
    tx.run(ADD_POSTGRES, args).await.map(drop)
}

pub(super) async fn books(tx: &mut Tx<'_>, id: &PeerId) -> Result<PeerBooks> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "peer_bookings", "id")?;
        Ok(PeerBooks {
            earned_jobs: columns.count("earned_jobs")?,
            earned_micros: columns.count("earned_micros")?,
            owed_jobs: columns.count("owed_jobs")?,
            owed_micros: columns.count("owed_micros")?,
        })
    };
    Ok(tx.first(BOOKS, args![id.as_str()], read).await?.unwrap_or_default())
}

pub(super) async fn list(
    tx: &mut Tx<'_>,
    query: &PeerBookingsQuery,
) -> Result<Vec<PeerBookingRecord>> {
    let (micros, side, execution_id) = match &query.before {
        Some(last) => (last.booked_at.micros(), last.side.as_str(), last.execution_id.as_str()),
        // Later than every booking.
        None => (i64::MAX, "", ""),
    };
    let args = args![query.peer.as_str(), micros, side, execution_id, query.limit];
    tx.all(LIST, args, read_booking).await
}
