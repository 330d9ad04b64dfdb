//! The measured store is one that the program itself could have written.

use std::process::Command;

use jurat_core::{
    id::AccountId,
    round::{RoundFilter, consensus::Outcome, job::JobKind},
};
use jurat_store::{Behalf, Store};

#[tokio::test]
async fn the_store_has_the_rounds_that_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_jurat-bench-start"));
    let run = program.args(["--rounds", "60", "--make-only", "--folder"]).arg(folder.path());
    let run = run.output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let store = Store::sqlite(&folder.path().join("jurat.db")).await.unwrap();
    let found = async |kind, outcome| {
        let filter = RoundFilter { kind, outcome, limit: 1_000, ..RoundFilter::default() };
        store
            .rounds()
            .list(&Behalf::from(&AccountId::admin()), &AccountId::admin(), &filter)
            .await
            .unwrap()
            .len()
    };
    assert_eq!(found(None, None).await, 60);
    assert_eq!(found(Some(JobKind::Delegate), None).await, 15);
    assert_eq!(found(None, Some(Outcome::Split)).await, 3);
    assert_eq!(found(Some(JobKind::Factcheck), None).await, 0);
    store.close().await;
}
