//! Cursors: the position where a list continues, as text.
//!
//! Every list on every surface uses this form: a version, a checksum, and the position as a list of
//! texts. A list reads back only positions with as many parts as its own.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jurat_core::{canonical::digest, code::ProblemCode, list::ListPosition, time::Timestamp};
use jurat_wire::problem::Problem;

/// The form of the text. An older form is refused, because a cursor is used only while a client
/// pages through a list.
const VERSION: char = '1';
/// Number of digits of the digest in a cursor.
const CHECKSUM_DIGITS: usize = 8;

/// A cursor for a position in a list.
pub(crate) fn write<const N: usize>(position: &[String; N]) -> String {
    // Texts always serialize.
    let text = serde_json::to_string(position.as_slice()).unwrap_or_default();
    format!("{VERSION}{}{}", checksum(&text), BASE64.encode(text))
}

/// The position of a cursor.
pub(crate) fn read<const N: usize>(cursor: &str) -> Result<[String; N], Problem> {
    let read = || {
        let rest = cursor.strip_prefix(VERSION)?;
        let (given, text) = rest.split_at_checked(CHECKSUM_DIGITS)?;
        let text = String::from_utf8(BASE64.decode(text).ok()?).ok()?;
        let parts: Vec<String> = serde_json::from_str(&text).ok()?;
        (given == checksum(&text)).then_some(parts)?.try_into().ok()
    };
    read().ok_or_else(refused)
}

/// The problem for a cursor that this list did not return.
pub(crate) fn refused() -> Problem {
    let detail = "`cursor` was not returned by this list, or comes from an older version of the server; leave it out to start at the first page";
    Problem::new(ProblemCode::ValidationError, detail).at("cursor")
}

/// The position of something in a list that is ordered by time.
pub(crate) fn by_time(created_at: Timestamp, id: &str) -> [String; 2] {
    [created_at.micros().to_string(), id.to_owned()]
}

/// The position in a list that is ordered by time.
pub(crate) fn time_position([micros, id]: [String; 2]) -> Result<ListPosition, Problem> {
    let micros = micros.parse().map_err(|_| refused())?;
    Ok(ListPosition { created_at: Timestamp::from_micros(micros), id })
}

fn checksum(text: &str) -> String {
    let digest = digest(format!("cursor {text}").as_bytes());
    digest.trim_start_matches("sha256:").chars().take(CHECKSUM_DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<const N: usize>(parts: [&str; N]) -> [String; N] {
        parts.map(str::to_owned)
    }

    #[test]
    fn a_cursor_leads_back_to_its_position_and_an_invented_one_nowhere() {
        for part in ["", "s1", "ä:b", "01a0c450-6c00-7538-a949-42a28a807973"] {
            assert_eq!(read(&write(&texts([part]))).unwrap(), texts([part]));
            assert_eq!(read(&write(&texts([part, "x"]))).unwrap(), texts([part, "x"]));
        }
        let good = write(&texts(["s1"]));
        let old = "1790000000000000.task-001";
        for invented in ["", "s1", "100000000", "100000000czE", &good[1..], "äääää", old] {
            let problem = read::<1>(invented).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some("cursor"), "{invented}");
        }
        // A list with another number of parts refuses the position.
        assert!(read::<2>(&good).is_err());
    }
}
