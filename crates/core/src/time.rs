//! Points in time as microseconds since 1970, so that every store keeps them alike.

/// A point in time, in microseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The time at a number of microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The time at a number of milliseconds since 1970.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since 1970, rounded down.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// The time this many milliseconds later, saturating.
    #[must_use]
    pub const fn plus_millis(self, millis: u64) -> Self {
        #[expect(clippy::cast_possible_wrap, reason = "saturated just before")]
        let millis = if millis > i64::MAX as u64 { i64::MAX } else { millis as i64 };
        Self(self.0.saturating_add(millis.saturating_mul(1_000)))
    }

    /// The start of its month and of the following month, in UTC.
    pub fn month(self) -> (Self, Self) {
        let (year, month) = civil(self.0.div_euclid(DAY));
        let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        (Self(first_day(year, month) * DAY), Self(first_day(next_year, next) * DAY))
    }

    /// Its date in UTC, such as `2026-09-21`.
    pub fn date(self) -> String {
        let day = self.0.div_euclid(DAY);
        let (year, month) = civil(day);
        format!("{year:04}-{month:02}-{:02}", day - first_day(year, month) + 1)
    }

    /// The time in UTC to the millisecond, such as `2026-09-21T14:13:20.000Z`.
    pub fn rfc3339(self) -> String {
        let millis = self.millis().rem_euclid(DAY / 1_000);
        let (seconds, millis) = (millis / 1_000, millis % 1_000);
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        let (hours, minutes) = (minutes / 60, minutes % 60);
        format!("{}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z", self.date())
    }

    /// The start of the following day, in UTC.
    #[must_use]
    pub fn next_day(self) -> Self {
        Self((self.0.div_euclid(DAY) + 1).saturating_mul(DAY))
    }

    /// The start of its year, in UTC.
    #[must_use]
    pub fn year(self) -> Self {
        let (year, _) = civil(self.0.div_euclid(DAY));
        Self(first_day(year, 1) * DAY)
    }

    /// Milliseconds from `earlier` to this time; zero if this time is before it.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        let micros = self.0.saturating_sub(earlier.0);
        if micros < 0 { 0 } else { micros.unsigned_abs() / 1_000 }
    }
}

/// Microseconds in a day.
const DAY: i64 = 86_400_000_000;
/// Days in 400 years, after which the calendar repeats itself.
const ERA: i64 = 146_097;

/// The year and month of a day since 1970. Internally, years start in March, so that the leap day
/// is the last day.
fn civil(day: i64) -> (i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(ERA);
    let of_era = shifted.rem_euclid(ERA);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (era * 400 + year + i64::from(month <= 2), month)
}

/// The first day of a month, in days since 1970.
fn first_day(year: i64, month: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * march + 2) / 5;
    era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_has_a_year_a_month_and_a_day() {
        for (seconds, date) in [
            (0, "1970-01-01"),
            (1_709_164_800, "2024-02-29"),
            (1_709_251_199, "2024-02-29"),
            (1_709_251_200, "2024-03-01"),
            (1_798_761_599, "2026-12-31"),
        ] {
            assert_eq!(Timestamp::from_micros(seconds * 1_000_000).date(), date);
        }
    }

    #[test]
    fn a_month_ends_when_the_next_one_starts() {
        const SECOND: i64 = 1_000_000;
        for (at, first, next) in [
            // 1970-01, 2024-02 with its leap day, 2026-11, 2026-12, 1900-02 without one, 1969-12.
            (0, 0, 2_678_400),
            (1_709_164_800, 1_706_745_600, 1_709_251_200),
            (1_794_766_407, 1_793_491_200, 1_796_083_200),
            (1_796_083_200, 1_796_083_200, 1_798_761_600),
            (-2_203_977_600, -2_206_310_400, -2_203_891_200),
            (-1, -2_678_400, 0),
        ] {
            let month = Timestamp::from_micros(at * SECOND).month();
            let expected = (first, next);
            assert_eq!((month.0.micros() / SECOND, month.1.micros() / SECOND), expected, "{at}");
        }
    }
}
