//! A grant to an address makes the same queries, whether or not the address is registered.

use jurat_core::workflow::WorkflowSelector;
use rusqlite::Connection;

use super::*;
use crate::db::{sqlite::setup, tx::complete};

/// An owner with one workflow, its administrator, and two accounts with an address, one of them
/// with a handle.
const ROWS: &str = "\
    insert into accounts (id, created_at, kind, email, handle) values \
    ('acct_eve', 1, 'user', 'eve@example.com', 'eve'), \
    ('acct_cat', 1, 'user', 'cat@example.com', 'cat'), \
    ('acct_ann', 1, 'user', 'ann@example.com', 'ann'), \
    ('acct_bob', 1, 'user', 'bob@example.com', null); \
    insert into workflows (account_id, id, slug, name, description, outcome, tags, search_text, \
    current_version, version_token, created_at, updated_at) values \
    ('acct_eve', 'w', 'report', 'Report', '', '', '[]', 'report', 1, 't', 1, 1); \
    insert into workflow_grants (account_id, workflow_id, grantee_id, role, floor_version, \
    granted_by, granted_at, state) values \
    ('acct_eve', 'w', 'acct_cat', 'admin', 0, 'acct_eve', 1, 'accepted')";

fn granted(connection: &mut Connection, to: &str) -> Vec<&'static str> {
    let mut tx = Tx::sqlite(connection);
    let order = WorkflowGrantOrder {
        caller: AccountId::parse("acct_cat").unwrap(),
        which: WorkflowSelector::Id("w".to_owned()),
        grantee: AccountName::parse(to).unwrap(),
        role: AccessRole::View,
        with_history: false,
        at: Timestamp::from_micros(2),
    };
    complete(grant(&mut tx, &order)).unwrap().unwrap();
    tx.texts
}

fn revoked(connection: &mut Connection, to: &str) -> Vec<&'static str> {
    let mut tx = Tx::sqlite(connection);
    let order = GrantRevocation {
        caller: AccountId::parse("acct_cat").unwrap(),
        which: WorkflowSelector::Id("w".to_owned()),
        grantee: AccountName::parse(to).unwrap(),
        at: Timestamp::from_micros(3),
    };
    complete(revoke(&mut tx, &order)).unwrap().unwrap();
    tx.texts
}

#[test]
fn an_unknown_address_is_invited_like_a_known_one() {
    let mut connection = setup::open_memory().unwrap();
    connection.execute_batch(ROWS).unwrap();
    let mut asked = |to: &str| {
        [
            revoked(&mut connection, to),
            granted(&mut connection, to),
            granted(&mut connection, to),
            revoked(&mut connection, to),
            revoked(&mut connection, to),
        ]
    };
    let of_nobody = asked("nobody@example.com");
    assert!(of_nobody[1].contains(&PUT), "it is the whole way: {of_nobody:?}");
    // An administrator does not learn the owner's address, either.
    for to in ["ann@example.com", "bob@example.com", "eve@example.com"] {
        assert_eq!(asked(to), of_nobody, "{to}");
    }
    let left = "select count(*) from workflow_grants where grantee_id <> 'acct_cat'";
    let left: u32 = connection.query_row(left, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0, "nobody has anything that nobody took back");
}
