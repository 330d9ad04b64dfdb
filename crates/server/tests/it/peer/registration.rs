//! The registration file of ERC-8004.

use std::sync::Arc;

use http::StatusCode;
use jurat_server::PeerOptions;
use jurat_testkit::{app::TestApp, fake_facilitator::FakeFacilitator};
use jurat_wire::api::agent_registration::{AgentProfile, AgentRegistration};
use serde_json::json;

pub(crate) fn profile() -> AgentProfile {
    AgentProfile {
        url: "https://jurat.example.com".to_owned(),
        name: "Jurat".to_owned(),
        description: "Judges claims.".to_owned(),
        image: None,
        registrations: vec![AgentRegistration::parse("22@eip155:1:0x742").unwrap()],
    }
}

#[tokio::test]
async fn the_file_names_the_addresses_under_the_public_url() {
    let path = "/.well-known/agent-registration.json";
    let app = TestApp::new().await;
    assert_eq!(app.anonymous().get(path).await.status, StatusCode::NOT_FOUND);
    let app = app.with_peers(PeerOptions { agent: Some(profile()), ..PeerOptions::default() });
    let reply = app.anonymous().get(path).await;
    assert_eq!(reply.headers["content-type"], "application/json");
    let file = reply.json();
    assert_eq!(file["type"], "https://eips.ethereum.org/EIPS/eip-8004#registration-v1");
    assert_eq!((&file["name"], &file["active"]), (&json!("Jurat"), &json!(true)));
    let registrations = json!([{ "agentId": 22, "agentRegistry": "eip155:1:0x742" }]);
    assert_eq!((&file["registrations"], &file["x402Support"]), (&registrations, &json!(false)));
    let services = file["services"].as_array().unwrap();
    let facilitator = FakeFacilitator::start().await;
    let shop = TestApp::selling(Arc::clone(&app.store), facilitator.settings()).await;
    let shop = shop.with_peers(PeerOptions { agent: Some(profile()), ..PeerOptions::default() });
    assert_eq!(shop.anonymous().get(path).await.json()["x402Support"], true);
    let mcp = services.iter().find(|it| it["name"] == "MCP").unwrap();
    assert_eq!(mcp["endpoint"], "https://jurat.example.com/mcp");
}
