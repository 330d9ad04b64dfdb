//! The texts of the attacks, read once from `texts.json`. An id never changes its meaning: a new text
//! gets a new id.

use std::{collections::BTreeMap, sync::LazyLock};

use super::Attack;

const FILE: &str = include_str!("texts.json");

/// All attacks, in the order of the file. A test refuses a file that cannot be read completely.
pub(super) static ATTACKS: LazyLock<Vec<Attack>> = LazyLock::new(|| {
    let listed: Vec<BTreeMap<String, String>> = serde_json::from_str(FILE).unwrap_or_default();
    listed.into_iter().filter_map(attack).collect()
});

fn attack(mut members: BTreeMap<String, String>) -> Option<Attack> {
    let id = members.remove("id")?;
    let (family, _) = id.split_once('.')?;
    let family = family.parse().ok()?;
    let placement = members.remove("placement")?.parse().ok()?;
    let text = members.remove("text")?;
    members.is_empty().then_some(Attack { id, family, text, placement })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_the_file_is_an_attack() {
        let listed: Vec<serde_json::Value> = serde_json::from_str(FILE).unwrap();
        let ids: Vec<&str> = listed.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
        let read: Vec<&str> = ATTACKS.iter().map(|attack| attack.id.as_str()).collect();
        assert_eq!(read, ids);
    }
}
