//! Backups: their contents, their verification, and where they cannot be restored.

use std::{
    fs,
    ops::ControlFlow,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use jurat_core::{
    round::Round,
    verifier::{VerifierSelector, run::VerifierRunVerdict},
};
use jurat_store::{
    Behalf, Store,
    backup::{
        self, BackupError, BackupProgress, BackupSource, BackupStage, Manifest, RestoreTarget,
    },
};
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{
    conformance::verifiers::deployed,
    samples::{
        account, at, close_round, closing, deploy, executor, find_round, grant, holding, judged,
        open_round, round, run, session,
    },
};

type Edit = fn(&mut Value);

const MOMENT: &str = "2027-01-15T08:00:00Z";

fn go_on(_: BackupProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A state folder with a store of three rounds, one of them open, and its backup.
struct Home {
    folder: TempDir,
    store: Store,
}

impl Home {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        fs::create_dir(&state).unwrap();
        fs::write(state.join("node.key"), "node\n").unwrap();
        fs::write(state.join("admin.key"), "admin\n").unwrap();
        let store = Store::sqlite(&state.join("store.db")).await.unwrap();
        store
            .executors()
            .add(&Behalf::Platform, &executor("e1"), Some(&session("s1", "e1")), None)
            .await
            .unwrap();
        let alice = account("alice");
        for number in 1..=3 {
            let open = round(&alice, number);
            open_round(&store, &open).await;
            if number < 3 {
                close_round(&store, &open, &closing(&open)).await;
            }
        }
        Self { folder, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str) -> Result<Manifest, BackupError> {
        let (database, keys) = (self.path("state/store.db"), self.path("state"));
        let source = BackupSource {
            database: &database,
            keys: &keys,
            program_version: "1.2.3",
            created_at: MOMENT,
        };
        backup::write(source, &self.path(name), &mut go_on)
    }

    /// A backup whose database and manifest were changed together.
    fn forged(&self, sql: &str) -> BackupError {
        self.write("forged").unwrap();
        let path = self.path("forged/jurat.db");
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "foreign_keys", "off").unwrap();
        connection.pragma_update(None, "journal_mode", "delete").unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        let bytes = fs::read(&path).unwrap();
        self.edit_manifest("forged", |manifest| {
            manifest["files"][0]["size_bytes"] = json!(bytes.len());
            manifest["files"][0]["sha256"] = json!(hex::encode(Sha256::digest(&bytes)));
        });
        let error = backup::verify(&self.path("forged"), &mut go_on).unwrap_err();
        fs::remove_dir_all(self.path("forged")).unwrap();
        error
    }

    fn edit_manifest(&self, name: &str, edit: impl FnOnce(&mut Value)) {
        let path = self.path(name).join("manifest.json");
        let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        edit(&mut manifest);
        fs::write(&path, manifest.to_string()).unwrap();
    }
}

fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn refusal(folder: &Path) -> String {
    backup::verify(folder, &mut go_on).unwrap_err().to_string()
}

#[tokio::test]
async fn a_backup_holds_the_database_the_keys_and_a_manifest_for_the_owner_only() {
    let home = Home::new().await;
    let manifest = home.write("monday").unwrap();
    assert_eq!(manifest.format, "jurat.backup.v1");
    assert_eq!((manifest.rounds, manifest.open_rounds, manifest.entries), (3, 1, 2));
    assert_eq!(manifest.newest_round_id, Some(round(&account("alice"), 3).id.to_string()));
    assert_eq!((manifest.program_version.as_str(), manifest.schema_version), ("1.2.3", 12));
    assert_eq!(manifest.created_at, MOMENT);
    let folder = home.path("monday");
    assert_eq!(names(&folder), ["admin.key", "jurat.db", "manifest.json", "node.key"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for name in names(&folder) {
        assert_eq!(mode(&folder.join(&name)), 0o600, "{name}");
    }
    // Verifying it leaves no files next to it.
    assert_eq!(backup::verify(&folder, &mut go_on).unwrap().manifest, manifest);
    assert_eq!(names(&folder).len(), 4);
    assert_eq!(names(home.folder.path()), ["monday", "state"]);
}

#[tokio::test]
async fn a_backup_carries_verifiers_runs_and_credit() {
    let home = Home::new().await;
    let (store, alice) = (&home.store, account("alice"));
    store.accounts().ensure(&Behalf::Platform, &alice, &at(0)).await.unwrap();
    store.ledger().grant(&Behalf::Platform, &grant(&alice, 100), None).await.unwrap();
    let verifier = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    let open = holding(run(&alice, &verifier.id, 7), 40, true);
    open_round(store, &open).await;
    close_round(store, &open, &judged(&open, VerifierRunVerdict::Passed, 15)).await;
    home.write("monday").unwrap();
    let changed = "update credit_balances set granted = 101, available = 86";
    let forged = home.forged(changed).to_string();
    assert!(forged.contains("the balance does not match its ledger lines"), "{forged}");

    let new = home.path("new");
    fs::create_dir(&new).unwrap();
    let verified = backup::verify(&home.path("monday"), &mut go_on).unwrap();
    let place = RestoreTarget { database: &new.join("store.db"), keys: &new };
    verified.restore(place, &mut go_on).unwrap();
    let restored = Store::sqlite(&new.join("store.db")).await.unwrap();
    let which = VerifierSelector::Id(verifier.id);
    let there = async |store: &Store| {
        (
            crate::samples::verifier(store, &alice, &which, None).await.unwrap(),
            store
                .verifier_runs()
                .get(&Behalf::from(&alice), &alice, &open.run.as_ref().unwrap().id)
                .await
                .unwrap()
                .unwrap(),
            store.accounts().get(&Behalf::Platform, &alice).await.unwrap().unwrap(),
            store.ledger().transfers(&Behalf::from(&alice), &alice, None, 10).await.unwrap(),
        )
    };
    assert_eq!(there(&restored).await, there(store).await);
    assert_eq!(restored.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
    restored.close().await;
}

#[tokio::test]
async fn existing_files_are_never_overwritten() {
    let home = Home::new().await;
    home.write("monday").unwrap();
    let error = home.write("monday").unwrap_err();
    assert!(matches!(error, BackupError::Taken { .. }), "{error}");
    fs::write(home.path("file"), "mine").unwrap();
    assert!(matches!(home.write("file").unwrap_err(), BackupError::Taken { .. }));
    let error = home.write("nowhere/monday").unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[tokio::test]
async fn a_backup_that_fails_leaves_nothing_behind() {
    let home = Home::new().await;
    fs::remove_file(home.path("state/node.key")).unwrap();
    let error = home.write("monday").unwrap_err();
    assert!(error.to_string().contains("node.key`, which a complete backup needs"), "{error}");
    assert_eq!(names(home.folder.path()), ["state"]);

    fs::write(home.path("state/node.key"), "node\n").unwrap();
    let (database, keys) = (home.path("state/store.db"), home.path("state"));
    let source =
        BackupSource { database: &database, keys: &keys, program_version: "1", created_at: MOMENT };
    for stage in [BackupStage::Checksums, BackupStage::Integrity, BackupStage::Entries] {
        let mut stop_at = |progress: BackupProgress| {
            if progress.stage == stage { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = backup::write(source, &home.path("monday"), &mut stop_at);
        assert!(matches!(stopped, Err(BackupError::Stopped)));
        assert_eq!(names(home.folder.path()), ["state"]);
    }
}

#[tokio::test]
async fn a_damaged_store_is_found_when_it_is_backed_up() {
    let home = Home::new().await;
    let connection = Connection::open(home.path("state/store.db")).unwrap();
    connection.execute_batch("drop trigger entries_never_go; delete from entries").unwrap();
    let error = home.write("monday").unwrap_err().to_string();
    assert!(error.contains("its decision entry is missing"), "{error}");
    assert_eq!(names(home.folder.path()), ["state"]);
}

#[tokio::test]
async fn planted_damage_is_refused_by_name() {
    let home = Home::new().await;
    home.write("monday").unwrap();
    let (folder, database) = (home.path("monday"), home.path("monday/jurat.db"));
    let whole = fs::read(&database).unwrap();

    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    fs::write(&database, &flipped).unwrap();
    assert_eq!(
        refusal(&folder),
        "`jurat.db` of the backup is damaged: its checksum is wrong; use another backup"
    );
    fs::write(&database, &whole[..whole.len() - 4096]).unwrap();
    let size = whole.len();
    assert_eq!(
        refusal(&folder),
        format!(
            "`jurat.db` of the backup is damaged: it has {} bytes instead of {size}; use another backup",
            size - 4096
        )
    );
    fs::write(&database, &whole).unwrap();
    fs::remove_file(folder.join("node.key")).unwrap();
    assert!(refusal(&folder).contains("`node.key` of the backup is damaged: it is missing"));
    fs::remove_file(folder.join("manifest.json")).unwrap();
    assert!(refusal(&folder).contains("not a backup, or the backup was not finished"));
}

#[tokio::test]
async fn damage_that_matches_the_manifest_is_found_as_well() {
    let home = Home::new().await;
    let first = round(&account("alice"), 1).id;
    let cases = [
        (
            "drop trigger entries_never_go; delete from entries where rowid = 1; \
             insert into entries select account_id, 'rnd_X', 'r', '{}', 0 from entries",
            "decision entry",
        ),
        (
            "drop trigger entries_never_change; \
             update entries set entry = replace(entry, '\"VALID\"', '\"INVALID\"')",
            "its decision entry does not match the digest in its receipt",
        ),
        (
            "drop trigger entries_never_change; update entries set receipt_id = 'x' || rowid; \
             update entries set receipt_id = (select r.receipt_id from rounds r where r.id <> round_id and r.receipt_id is not null), \
             entry = (select e.entry from entries e where e.round_id <> entries.round_id)",
            "decision entry",
        ),
        ("delete from replicas where position = 2", "the number of recorded replicas is wrong"),
        ("update rounds set state = 'open' where rowid = 1", "it contains Counts"),
        ("delete from executors", "a row of `sessions` refers to a missing row"),
        ("pragma user_version = 1", "schema_version: 1"),
    ];
    for (sql, expected) in cases {
        let error = home.forged(sql).to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    }
    let error = home.forged("delete from replicas where round_id = (select min(id) from rounds)");
    assert!(error.to_string().contains(first.as_str()), "{error}");
}

#[tokio::test]
async fn an_unknown_manifest_is_refused() {
    let home = Home::new().await;
    let edits: [(Edit, &str); 5] = [
        (|it| it["format"] = json!("jurat.backup.v2"), "its format is `jurat.backup.v2`"),
        (|it| it["files"][1]["name"] = json!("../../etc/passwd"), "it names `../../etc/passwd`"),
        (|it| drop(it["files"].as_array_mut().unwrap().pop()), "it does not name `admin.key`"),
        (
            |it| it["schema_version"] = json!(99),
            "this program knows versions up to 13; use the program that wrote it, which is version 1.2.3",
        ),
        (|it| it["rounds"] = json!(7), "the manifest says"),
    ];
    for (edit, expected) in edits {
        home.write("monday").unwrap();
        home.edit_manifest("monday", edit);
        let error = refusal(&home.path("monday"));
        assert!(error.contains(expected), "{error}");
        fs::remove_dir_all(home.path("monday")).unwrap();
    }
}

#[tokio::test]
async fn a_backup_is_restored_only_if_no_store_exists() {
    let home = Home::new().await;
    home.write("monday").unwrap();
    let verified = backup::verify(&home.path("monday"), &mut go_on).unwrap();
    let there = home.path("there");
    fs::create_dir(&there).unwrap();
    let database = there.join("other.db");
    let place = RestoreTarget { database: &database, keys: &there };
    verified.restore(place, &mut go_on).unwrap();
    assert_eq!(names(&there), ["admin.key", "node.key", "other.db"]);
    for name in names(&there) {
        let mode = fs::metadata(there.join(&name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }

    let store = Store::sqlite(&database).await.unwrap();
    let first = round(&account("alice"), 1);
    let read = find_round(&store, &first.account, &first.id).await.unwrap();
    assert_eq!(read, Round { closing: Some(closing(&first)), open: first });
    // It is a store like any other.
    let next = round(&account("alice"), 9);
    open_round(&store, &next).await;
    store.close().await;
    let error = verified.restore(place, &mut go_on).unwrap_err();
    assert!(matches!(error, BackupError::StoreThere { .. }), "{error}");
    // Nor can one be restored over the original.
    let database = home.path("state/store.db");
    let state = home.path("state");
    let error = verified.restore(RestoreTarget { database: &database, keys: &state }, &mut go_on);
    assert!(matches!(error, Err(BackupError::StoreThere { .. })));
    home.store.close().await;
}

#[tokio::test]
async fn leftovers_of_another_store_are_not_mixed_with_a_restored_one() {
    let home = Home::new().await;
    home.write("monday").unwrap();
    let verified = backup::verify(&home.path("monday"), &mut go_on).unwrap();
    let there = home.path("there");
    fs::create_dir(&there).unwrap();
    let database = there.join("jurat.db");
    let place = RestoreTarget { database: &database, keys: &there };
    fs::write(there.join("jurat.db-wal"), "left").unwrap();
    let error = verified.restore(place, &mut go_on).unwrap_err();
    assert!(error.to_string().contains("jurat.db-wal` already exists"), "{error}");
    fs::remove_file(there.join("jurat.db-wal")).unwrap();
    fs::write(there.join("node.key"), "another\n").unwrap();
    let error = verified.restore(place, &mut go_on).unwrap_err();
    assert!(
        error.to_string().contains("node.key` already exists and differs from the key"),
        "{error}"
    );
    assert_eq!(names(&there), ["node.key"]);
    // The same key may exist already.
    fs::write(there.join("node.key"), "node").unwrap();
    verified.restore(place, &mut go_on).unwrap();
}
