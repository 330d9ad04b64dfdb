//! What must hold on PostgreSQL just as on the embedded store.

use jurat_engine::Limits;
use jurat_testkit::{app::TestApp, postgres::Schema};

use crate::v1::verifiers;

#[tokio::test]
async fn a_run_passes_or_fails_and_reads_back_as_it_was_answered() {
    let schema = Schema::new().await;
    let store = jurat_store::open(&schema.location()).await.unwrap();
    let app = TestApp::on(store, Limits::default()).await;
    verifiers::runs::runs(&app).await;
    app.engine.shutdown().await;
    schema.drop().await;
}

#[tokio::test]
async fn a_verifier_is_deployed_changed_revoked_and_deleted() {
    let schema = Schema::new().await;
    let store = jurat_store::open(&schema.location()).await.unwrap();
    let app = TestApp::on(store, Limits::default()).await;
    verifiers::life::life(&app).await;
    app.engine.shutdown().await;
    schema.drop().await;
}
