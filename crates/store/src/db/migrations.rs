//! The numbered migrations, embedded, and the schema versions that this program serves.

use crate::error::DatabaseRefusal;

pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) name: &'static str,
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

/// Never edit a migration after its release: add a new one.
pub(crate) const ALL: &[Migration] = &[
    Migration {
        version: 1,
        name: "0001_first",
        sqlite: include_str!("../../migrations/sqlite/0001_first.sql"),
        postgres: include_str!("../../migrations/postgres/0001_first.sql"),
    },
    Migration {
        version: 2,
        name: "0002_operations",
        sqlite: include_str!("../../migrations/sqlite/0002_operations.sql"),
        postgres: include_str!("../../migrations/postgres/0002_operations.sql"),
    },
    Migration {
        version: 3,
        name: "0003_registry",
        sqlite: include_str!("../../migrations/sqlite/0003_registry.sql"),
        postgres: include_str!("../../migrations/postgres/0003_registry.sql"),
    },
    Migration {
        version: 4,
        name: "0004_sharing",
        sqlite: include_str!("../../migrations/sqlite/0004_sharing.sql"),
        postgres: include_str!("../../migrations/postgres/0004_sharing.sql"),
    },
    Migration {
        version: 5,
        name: "0005_search",
        sqlite: include_str!("../../migrations/sqlite/0005_search.sql"),
        postgres: include_str!("../../migrations/postgres/0005_search.sql"),
    },
    Migration {
        version: 6,
        name: "0006_tasks",
        sqlite: include_str!("../../migrations/sqlite/0006_tasks.sql"),
        postgres: include_str!("../../migrations/postgres/0006_tasks.sql"),
    },
    Migration {
        version: 7,
        name: "0007_fair_shares",
        sqlite: include_str!("../../migrations/sqlite/0007_fair_shares.sql"),
        postgres: include_str!("../../migrations/postgres/0007_fair_shares.sql"),
    },
    Migration {
        version: 8,
        name: "0008_room",
        sqlite: include_str!("../../migrations/sqlite/0008_room.sql"),
        postgres: include_str!("../../migrations/postgres/0008_room.sql"),
    },
    Migration {
        version: 9,
        name: "0009_switches",
        sqlite: include_str!("../../migrations/sqlite/0009_switches.sql"),
        postgres: include_str!("../../migrations/postgres/0009_switches.sql"),
    },
    Migration {
        version: 10,
        name: "0010_webhooks",
        sqlite: include_str!("../../migrations/sqlite/0010_webhooks.sql"),
        postgres: include_str!("../../migrations/postgres/0010_webhooks.sql"),
    },
    Migration {
        version: 11,
        name: "0011_payments",
        sqlite: include_str!("../../migrations/sqlite/0011_payments.sql"),
        postgres: include_str!("../../migrations/postgres/0011_payments.sql"),
    },
    Migration {
        version: 12,
        name: "0012_peers",
        sqlite: include_str!("../../migrations/sqlite/0012_peers.sql"),
        postgres: include_str!("../../migrations/postgres/0012_peers.sql"),
    },
];

/// The schema version that this program is written for.
pub(crate) const NEEDED: i64 = 12;

/// Each migration keeps the previous program working, so the next version is served as well: while
/// nodes are replaced one by one, an old node may restart.
pub(crate) const NEWEST_SERVED: i64 = NEEDED + 1;

pub(crate) fn check_served(found: i64) -> Result<(), DatabaseRefusal> {
    if found < NEEDED {
        return Err(DatabaseRefusal::SchemaOld { found, needed: NEEDED });
    }
    if NEWEST_SERVED < found {
        return Err(DatabaseRefusal::SchemaNew { found, known: NEWEST_SERVED });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_migration_is_the_required_one() {
        let versions: Vec<i64> = ALL.iter().map(|migration| migration.version).collect();
        let expected: Vec<i64> = (1..=NEEDED).collect();
        assert_eq!(versions, expected);
    }

    #[test]
    fn an_older_schema_and_one_far_ahead_are_refused() {
        assert_eq!(
            check_served(NEEDED - 1).unwrap_err().to_string(),
            "the database has schema version 11, but this program needs 12; start `jurat serve` with `--migrate-url`, the URL for the role that owns the tables"
        );
        assert_eq!(check_served(NEEDED), Ok(()));
        assert_eq!(check_served(NEEDED + 1), Ok(()));
        assert!(check_served(NEEDED + 2).is_err());
    }
}
