//! Payers are accounts of their own kind: without keys, and apart from each other.

use jurat_core::{account::caller::Scope, id::AccountId};
use jurat_store::Behalf;
use jurat_testkit::app::TestApp;
use serde_json::json;

use super::{Shop, expect};

/// The accounts that payers have.
async fn payers(app: &TestApp) -> Vec<String> {
    let accounts = app.admin().get("/v1/accounts").await.json();
    let ids = accounts["items"].as_array().unwrap().iter();
    let ids = ids.filter_map(|it| it["account_id"].as_str().or(it["id"].as_str()));
    ids.filter(|id| id.starts_with("acct_payer")).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_payer_is_an_account_that_owns_its_rounds() {
    let shop = Shop::open().await;
    assert_eq!(payers(&shop.app).await, [] as [String; 0]);
    let reply = shop.pay(&shop.payment(1)).await;
    expect(&reply, 200);
    // Another payment of the same payer is of the same account.
    expect(&shop.pay(&shop.payment_v1(2)).await, 200);
    let accounts = payers(&shop.app).await;
    assert_eq!(accounts.len(), 1);
    // The round belongs to the payer, and to nobody else.
    let round = reply.json()["round_id"].as_str().unwrap().to_owned();
    let account = AccountId::parse(&accounts[0]).unwrap();
    let id = jurat_core::id::RoundId::parse(&round).unwrap();
    let stored = shop.app.store.rounds().get(&Behalf::from(&account), &account, &id).await.unwrap();
    assert_eq!(stored.unwrap().open.account, account);
    let other = shop.app.caller("ann", &[Scope::RoundsRead]).await;
    expect(&other.get(&format!("/v1/rounds/{round}")).await, 404);
}

#[tokio::test]
async fn a_suspended_payer_buys_nothing() {
    let shop = Shop::open().await;
    expect(&shop.pay(&shop.payment(1)).await, 200);
    let account = payers(&shop.app).await.remove(0);
    let path = format!("/v1/accounts/{account}/suspend");
    expect(&shop.app.admin().post(&path, &json!({})).await, 200);
    let reply = shop.pay(&shop.payment(2)).await;
    expect(&reply, 403);
    assert_eq!(reply.json()["code"], "account_suspended");
    assert_eq!(shop.facilitator.transfers().len(), 1);
    // What was paid before can still be fetched.
    expect(&shop.pay(&shop.payment(1)).await, 200);
}
