//! Two nodes with one payment: what one of them records, the other one hands over.

use std::sync::{Arc, OnceLock};

use jurat_core::{id::RoundId, idempotency::SavedAnswer, payment::record::Payment};
use jurat_engine::Failpoints;
use jurat_store::{Behalf, PaymentEnd, PaymentSettling, Store, StoreLocation};
use jurat_testkit::{app::TestApp, fake_executor::says_valid, fake_facilitator::FakeFacilitator};
use tokio::{runtime::Handle, task::block_in_place};

use super::{Shop, expect, records::reserved};

/// How far the other node is when this one gives the payment back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OtherNode {
    Settles,
    HasSettled,
}

/// Records what another node records that carries a payment out.
async fn settle(store: &Store, payment: &Payment, reply: &str, how: OtherNode) {
    let (account, id) = (payment.account.clone(), payment.id.clone());
    let behalf = Behalf::from(&account);
    let now = payment.created_at;
    let settling = PaymentSettling {
        account: account.clone(),
        id: id.clone(),
        round: RoundId::new(now, 1),
        answer: SavedAnswer { tag: 200, text: reply.to_owned() },
        lease_token: 7,
        next_at: now.plus_millis(1_000_000),
        now,
    };
    assert!(store.payments().settle(&behalf, &settling).await.unwrap());
    if how == OtherNode::HasSettled {
        let end = PaymentEnd { account, id, transaction: "0x1".to_owned(), now };
        assert!(store.payments().settled(&behalf, &end).await.unwrap());
    }
}

/// A payment that this node finds too old is settled by another one in the same moment.
async fn given_back_while(how: OtherNode) -> u16 {
    let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
    let left: Arc<OnceLock<(Payment, String)>> = Arc::default();
    let (found, there) = (Arc::clone(&left), Arc::clone(&store));
    let points = Failpoints::new(Arc::new(move |name| {
        if name == "payment_release_before"
            && let Some((payment, reply)) = found.get()
        {
            block_in_place(|| Handle::current().block_on(settle(&there, payment, reply, how)));
        }
    }));
    let facilitator = FakeFacilitator::start().await;
    let app = TestApp::selling_through(store, facilitator.settings(), points).await;
    let shop = Shop::run_by(app, facilitator, [says_valid(), says_valid(), says_valid()]).await;
    let sold = shop.pay(&shop.payment(1)).await;
    expect(&sold, 200);
    let payment = shop.payment(2);
    left.set((reserved(&shop, &payment).await, sold.text())).unwrap();
    shop.app.clock.advance_ms(150_000);
    let reply = shop.pay(&payment).await;
    assert!(!reply.headers.contains_key("payment-required"), "{}", reply.text());
    reply.status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_another_node_settles_is_not_demanded_again() {
    assert_eq!(given_back_while(OtherNode::HasSettled).await, 200);
    assert_eq!(given_back_while(OtherNode::Settles).await, 202);
}
