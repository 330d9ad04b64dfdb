//! The roles of the round measurement, which the overload measurement uses, too.

pub mod bare;
pub mod executors;
pub mod jurat;
pub mod request;

/// Parses the number of replicas of a round.
pub fn replicas(text: &str) -> Result<usize, String> {
    match text {
        "1" => Ok(1),
        "3" => Ok(3),
        "5" => Ok(5),
        other => Err(format!("a round has 1, 3 or 5 replicas, not `{other}`")),
    }
}
