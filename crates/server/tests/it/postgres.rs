//! Tests that must pass on PostgreSQL as on the embedded store.

use jurat_engine::EngineLimits;
use jurat_testkit::{app::TestApp, postgres::TestSchema};

use crate::tenants;
use crate::v1::verifiers::{credit, life, refusals, runs, tokens, unreachable};
use crate::v1::{agent_events, tasks, templates, webhooks::announced};

/// Plays a story on an application with a schema of its own.
async fn told(story: impl AsyncFnOnce(&TestApp)) {
    let schema = TestSchema::new().await;
    let store = jurat_store::open(&schema.location()).await.unwrap();
    let app = TestApp::on(store, EngineLimits::default()).await;
    story(&app).await;
    app.engine.shutdown().await;
    schema.drop().await;
}

#[tokio::test]
async fn a_judge_that_does_not_answer_in_time_is_paid() {
    credit::told_on_postgres(credit::late).await;
}

#[tokio::test]
async fn a_late_report_corrects_the_charge() {
    credit::told_on_postgres(credit::reported_later).await;
}

#[tokio::test]
async fn a_run_that_is_cancelled_pays_for_what_was_sent() {
    credit::told_on_postgres(credit::cancelled).await;
}

#[tokio::test]
async fn calls_of_a_node_that_died_are_paid_when_their_round_expires() {
    credit::told_on_postgres(credit::died).await;
}

#[tokio::test]
async fn the_first_run_without_a_key_works_and_its_time_has_a_floor() {
    credit::told_on_postgres(credit::first_anonymous).await;
}

#[tokio::test]
async fn a_late_judge_is_paid_without_a_key_too_and_counts_for_the_day() {
    credit::told_on_postgres(credit::late_anonymous).await;
}

#[tokio::test]
async fn a_cached_verdict_needs_no_credit() {
    credit::told_on_postgres(credit::known).await;
}

#[tokio::test]
async fn equal_concurrent_runs_are_one_call_that_the_first_pays() {
    credit::told_on_postgres(credit::shared).await;
}

#[tokio::test]
async fn the_spare_of_a_judge_whose_failure_is_shared_is_paid() {
    credit::told_on_postgres(credit::shared_failure).await;
}

#[tokio::test]
async fn a_small_balance_is_spent_one_call_at_a_time() {
    credit::told_on_postgres(credit::little).await;
}

#[tokio::test]
async fn no_round_is_opened_for_a_caller_that_leaves_the_queue_for_credit() {
    credit::told_on_postgres(credit::left).await;
}

#[tokio::test]
async fn a_verifier_is_deployed_changed_revoked_and_deleted() {
    told(life::life).await;
}

#[tokio::test]
async fn a_pin_in_the_address_comes_back_with_the_id() {
    told(life::pins).await;
}

#[tokio::test]
async fn a_missing_or_stale_token_is_a_conflict_that_names_the_current_one() {
    told(tokens::conflicts).await;
}

#[tokio::test]
async fn a_verifier_just_within_the_limits_is_deployed() {
    told(refusals::limits).await;
}

#[tokio::test]
async fn another_accounts_verifier_looks_like_a_missing_one() {
    told(unreachable::masking).await;
}

#[tokio::test]
async fn a_run_passes_or_fails_and_reads_back_as_it_was_answered() {
    told(runs::runs).await;
}

#[tokio::test]
async fn a_revoked_verifier_cannot_run_and_its_runs_stay() {
    told(runs::revocation).await;
}

#[tokio::test]
async fn a_verifier_run_and_a_publication_are_announced() {
    announced::told_on_postgres(announced::runs_and_templates).await;
}

#[tokio::test]
async fn a_stranger_sees_no_card_or_task_of_others_and_a_grantee_its_own_runs() {
    told(crate::a2a::tenants::told).await;
}

#[tokio::test]
async fn credit_that_runs_low_is_announced() {
    announced::told_on_postgres(announced::credit).await;
}

#[tokio::test]
async fn a_task_that_is_cancelled_or_expires_is_announced_as_failed() {
    announced::told_on_postgres(announced::tasks).await;
}

#[tokio::test]
async fn executors_are_notified_of_the_progress_of_a_task() {
    told(agent_events::told).await;
}

#[tokio::test]
async fn two_nodes_deliver_each_event_once() {
    let schema = TestSchema::new().await;
    let (mut nodes, limits) = (Vec::new(), EngineLimits { lag: None, ..EngineLimits::default() });
    for _ in 0..2 {
        let store = jurat_store::open(&schema.location()).await.unwrap();
        nodes.push(TestApp::on(store, limits).await);
    }
    agent_events::sent::shared(&nodes.iter().collect::<Vec<_>>()).await;
    for node in &nodes {
        node.engine.shutdown().await;
    }
    schema.drop().await;
}

#[tokio::test]
async fn a_task_is_proposed_verified_voted_on_and_decided() {
    told(tasks::life).await;
}

/// With row security as the second line of defence.
#[tokio::test]
async fn names_of_another_tenant_reveal_nothing() {
    templates::told_on_postgres(tenants::crawl).await;
}

#[tokio::test]
async fn a_template_is_screened_published_changed_and_deleted() {
    templates::told_on_postgres(templates::life).await;
}

#[tokio::test]
async fn only_published_verifiers_run_without_a_key() {
    templates::told_on_postgres(templates::anonymous_runs).await;
}
