//! A server that dies while it sells a round: the payment is settled once, and its reply is there.

use std::{os::unix::process::ExitStatusExt as _, process::Command, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_testkit::{
    fake_executor::{FakeExecutor, says_valid},
    fake_facilitator::{FacilitatorMode, FakeFacilitator, PAY_TO},
};
use serde_json::{Value, json};

use super::site::{Kind, Prepared, Site, serve};
use crate::{home::Process, http::Http};

/// Where the server dies.
const DEATHS: [&str; 9] = [
    "payment_reserve_before",
    "payment_reserve_after",
    "round_open_after",
    "round_close_after",
    "payment_settle_before",
    "payment_settle_after",
    "payment_record_before",
    "payment_record_after",
    "payment_take_after",
];
const LOOKS: usize = 300;
/// Other nodes leave a round alone until its time is up, so it is short.
const BODY: &str =
    r#"{ "claim": "x", "consensus": { "replicas": 1 }, "execution": { "timeout_ms": 1000 } }"#;

/// A server that sells rounds of one executor.
struct Shop {
    site: Site,
    facilitator: FakeFacilitator,
    _executor: FakeExecutor,
    payment: String,
}

impl Shop {
    async fn new(kind: Kind) -> Self {
        let executor = FakeExecutor::start(says_valid()).await;
        let executors = vec![("a".to_owned(), executor.url())];
        let site = Prepared::new(kind, executors).site().await;
        let facilitator = FakeFacilitator::start().await;
        Self { site, facilitator, _executor: executor, payment: STANDARD.encode(payment()) }
    }

    fn serve(&self, mut command: Command) -> Process {
        command.env("JURAT_X402_PAY_TO", PAY_TO);
        command.env("JURAT_X402_NETWORK", "base-sepolia");
        command.env("JURAT_X402_FACILITATOR_URL", self.facilitator.url());
        // Another process repeats a settlement only after the first one's time is up.
        command.env("JURAT_X402_TIMEOUT_MS", "1000");
        command.env("JURAT_X402_RPC_URL", self.facilitator.rpc_url());
        serve(command)
    }

    /// Buys until there is a reply; `None` if the server died.
    async fn buy(&self, server: &Process) -> Option<Value> {
        let http = Http::new(&server.url, &self.site.home.state());
        let headers = [("PAYMENT-SIGNATURE", self.payment.as_str())];
        for _ in 0..LOOKS {
            let reply = http.ask_with("POST", "/api/v3/x402/validate", BODY, &headers).ok()?;
            match reply.status {
                200 => return Some(reply.body),
                202 => assert_eq!(reply.body["state"], "settlement_pending"),
                other => panic!("{other}: {}", reply.body),
            }
            self.facilitator.set(FacilitatorMode::Honest);
            jurat_engine::pause(Duration::from_millis(100)).await;
        }
        panic!("the payment was not settled")
    }
}

/// A payment that is valid for an hour of the real clock.
fn payment() -> String {
    #[expect(clippy::disallowed_methods, reason = "the server has the real clock")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    json!({
        "x402Version": 2,
        "accepted": {
            "scheme": "exact",
            "network": "eip155:84532",
            "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
            "payTo": PAY_TO,
            "amount": "1000",
        },
        "payload": {
            "signature": format!("0x{}", "2d".repeat(65)),
            "authorization": {
                "from": "0x857b06519e91e3a54538791bdbb0e22373e36b66",
                "to": PAY_TO,
                "value": "1000",
                "validAfter": "0",
                "validBefore": (now + 3_600).to_string(),
                "nonce": format!("0x{}", "11".repeat(32)),
            },
        },
    })
    .to_string()
}

/// The points that undisturbed sales pass, one of which is settled only later.
pub(super) async fn counted() -> Vec<String> {
    let shop = Shop::new(Kind::File).await;
    shop.facilitator.set(FacilitatorMode::FailsBeforeSettling);
    let server = shop.serve(shop.site.mortal(&["serve"], None));
    assert!(shop.buy(&server).await.is_some());
    assert_eq!(shop.facilitator.transfers().len(), 1);
    server.terminate();
    assert!(server.wait().success());
    let points = shop.site.points();
    shop.site.drop().await;
    points
}

pub(super) async fn all(kind: Kind) {
    for point in DEATHS {
        let shop = Shop::new(kind).await;
        if point == "payment_take_after" {
            shop.facilitator.set(FacilitatorMode::FailsBeforeSettling);
        }
        let mut mortal = shop.site.mortal(&["serve"], None);
        mortal.env("JURAT_TEST_KILL_AT", point);
        let server = shop.serve(mortal);
        assert_eq!(shop.buy(&server).await, None, "it lived past {point}");
        assert_eq!(server.wait().signal(), Some(9), "{point}");
        assert_eq!(shop.site.points().last().map(String::as_str), Some(point));
        shop.facilitator.set(FacilitatorMode::Honest);
        let server = shop.serve(shop.site.command(&["serve"]));
        let reply = shop.buy(&server).await.unwrap();
        assert_eq!(reply["verdict"], "VALID", "{point}");
        assert_eq!(shop.buy(&server).await.unwrap(), reply, "{point}");
        let transfers = shop.facilitator.transfers();
        assert_eq!(transfers.len(), 1, "{point}: settled once");
        assert_eq!((transfers[0].to.as_str(), transfers[0].value), (PAY_TO, 1_000));
        server.terminate();
        assert!(server.wait().success());
        shop.site.drop().await;
    }
}
