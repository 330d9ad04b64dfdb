//! The books between this node and its peers: who did which job, and at which price.

use std::{fmt, str::FromStr};

use super::PeerId;
use crate::{
    id::{AccountId, RoundId},
    round::job::words,
    time::Timestamp,
};

words!(
    /// Who worked for whom.
    BookSide {
        /// This node worked for the peer.
        Earned => "earned",
        /// The peer worked for this node.
        Owed => "owed",
    }
);

/// A job that one node did for the other. It is booked once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerBooking {
    pub peer: PeerId,
    pub side: BookSide,
    /// The node whose round it is: this node if the job is owed, the peer if it is earned.
    pub origin: PeerId,
    /// The origin's name for the job.
    pub execution_id: String,
    pub price_micros: u64,
}

/// A booking as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerBookingRecord {
    pub booking: PeerBooking,
    /// The account of the round.
    pub account: AccountId,
    /// The round of this node that booked the job.
    pub round: RoundId,
    pub booked_at: Timestamp,
}

impl PeerBookingRecord {
    /// Where the list continues after this booking.
    pub fn position(&self) -> BookPosition {
        BookPosition {
            booked_at: self.booked_at,
            side: self.booking.side,
            execution_id: self.booking.execution_id.clone(),
        }
    }
}

/// A position in the books of one peer, which are listed newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookPosition {
    pub booked_at: Timestamp,
    pub side: BookSide,
    pub execution_id: String,
}

impl fmt::Display for BookPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.booked_at.micros(), self.side, self.execution_id)
    }
}

impl FromStr for BookPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next().ok_or(());
        let (micros, side, execution_id) = (next()?, next()?, next()?);
        Ok(Self {
            booked_at: Timestamp::from_micros(micros.parse().map_err(drop)?),
            side: side.parse()?,
            execution_id: execution_id.to_owned(),
        })
    }
}

/// What two nodes did for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerBooks {
    pub earned_jobs: u64,
    pub earned_micros: u64,
    pub owed_jobs: u64,
    pub owed_micros: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_position_of_another_form_is_refused() {
        for text in ["", "7", "7:owed", "x:owed:e", "7:lent:e", ":owed:e"] {
            assert!(text.parse::<BookPosition>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_position_reads_back(
            micros: i64,
            is_owed: bool,
            execution_id in "\\PC{0,40}",
        ) {
            let side = if is_owed { BookSide::Owed } else { BookSide::Earned };
            let booked_at = Timestamp::from_micros(micros);
            let position = BookPosition { booked_at, side, execution_id };
            prop_assert_eq!(position.to_string().parse(), Ok(position));
        }
    }
}
