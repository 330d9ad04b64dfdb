//! Points in time as microseconds since 1970, so that every store keeps them alike.

/// A point in time, in microseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    #[must_use]
    pub const fn plus_millis(self, millis: u64) -> Self {
        #[expect(clippy::cast_possible_wrap, reason = "saturated just before")]
        let millis = if millis > i64::MAX as u64 { i64::MAX } else { millis as i64 };
        Self(self.0.saturating_add(millis.saturating_mul(1_000)))
    }

    /// Milliseconds from `earlier` to this point; zero when it lies before.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        let micros = self.0.saturating_sub(earlier.0);
        if micros < 0 { 0 } else { micros.unsigned_abs() / 1_000 }
    }
}
