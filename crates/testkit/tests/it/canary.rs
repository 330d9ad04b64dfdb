//! The canary counts connections.

use jurat_testkit::fake_executor::{canary, redirects_to};
use tokio::net::TcpStream;

use crate::client::posted;

#[tokio::test]
async fn a_canary_without_visits_counts_none() {
    let canary = canary();
    let (_fake, mut client) = posted(redirects_to(&canary.url()), "/verify").await;
    client.reply().await;
    assert!(!canary.was_touched());
}

#[tokio::test]
async fn a_canary_counts_every_visit_immediately() {
    let canary = canary();
    let address = canary.url().trim_start_matches("http://").to_owned();
    let _first = TcpStream::connect(&address).await.unwrap();
    assert!(canary.was_touched());
    let _second = TcpStream::connect(&address).await.unwrap();
    assert_eq!(canary.connections(), 2);
}
