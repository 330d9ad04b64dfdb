//! A server that dies while it sells rounds: each payment is settled once, and its reply is there,
//! whatever the facilitator says.

use std::{os::unix::process::ExitStatusExt as _, process::Command, thread, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_testkit::{
    fake_executor::{FakeExecutor, says_valid, status},
    fake_facilitator::{FacilitatorMode, FakeFacilitator, PAY_TO},
};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{
    is_thorough,
    site::{Kind, Prepared, Site, serve},
};
use crate::{home::Process, http::Http};

/// Where the server dies.
const DEATHS: [&str; 11] = [
    "payment_reserve_before",
    "payment_reserve_after",
    "round_open_after",
    "round_close_after",
    "payment_release_before",
    "payment_release_after",
    "payment_settle_before",
    "payment_settle_after",
    "payment_record_before",
    "payment_record_after",
    "payment_take_after",
];
/// Facilitators that do not say what they did.
const LIARS: [FacilitatorMode; 3] = [
    FacilitatorMode::FailsAfterSettling,
    FacilitatorMode::HangsUpAfterSettling,
    FacilitatorMode::RefusesAfterSettling,
];
const LOOKS: usize = 300;
/// So often a reply is looked for that cannot come.
const LOOKS_FOR_NOTHING: usize = 20;
/// Other nodes leave a round alone until its time is up, so it is as short as it can be.
const BODY: &str =
    r#"{ "claim": "x", "consensus": { "replicas": 1 }, "execution": { "timeout_ms": 5000 } }"#;

/// A death, and what is around it.
#[derive(Debug, Clone, Copy)]
struct Death {
    point: &'static str,
    mode: FacilitatorMode,
    buyers: u8,
    /// Whether the server may ask the chain.
    has_node: bool,
}

/// The deaths on a store: all of them with `just killed`.
fn deaths(kind: Kind) -> Vec<Death> {
    let honest = |point| Death { point, mode: FacilitatorMode::Honest, buyers: 1, has_node: true };
    let mut deaths: Vec<Death> = DEATHS.into_iter().map(honest).collect();
    let several = |point, mode| Death { mode, buyers: 3, ..honest(point) };
    let blind = |point| Death { has_node: false, ..honest(point) };
    if is_thorough() {
        let liars = || LIARS.into_iter().chain([FacilitatorMode::Honest]);
        deaths.extend(DEATHS.iter().flat_map(|point| liars().map(|mode| several(point, mode))));
        deaths.extend(DEATHS.into_iter().map(blind));
    } else if kind == Kind::File {
        deaths.extend(LIARS.map(|mode| several("payment_record_before", mode)));
        deaths.push(blind("payment_record_before"));
    }
    deaths
}

/// A server that sells rounds of one executor.
struct Shop {
    site: Site,
    facilitator: FakeFacilitator,
    executor: FakeExecutor,
    payments: Vec<String>,
    has_node: bool,
}

impl Shop {
    async fn new(kind: Kind, buyers: u8, has_node: bool) -> Self {
        let executor = FakeExecutor::start(says_valid()).await;
        let executors = vec![("a".to_owned(), executor.url())];
        let site = Prepared::new(kind, executors).site().await;
        let facilitator = FakeFacilitator::start().await;
        let payments = (1..=buyers).map(|number| STANDARD.encode(payment(number))).collect();
        Self { site, facilitator, executor, payments, has_node }
    }

    fn serve(&self, mut command: Command) -> Process {
        command.env("JURAT_X402_PAY_TO", PAY_TO);
        command.env("JURAT_X402_NETWORK", "base-sepolia");
        command.env("JURAT_X402_FACILITATOR_URL", self.facilitator.url());
        // Another process repeats a settlement only after the first one's time is up.
        command.env("JURAT_X402_TIMEOUT_MS", "1000");
        if self.has_node {
            command.env("JURAT_X402_RPC_URL", self.facilitator.rpc_url());
        }
        serve(command)
    }

    /// What all buyers get at the same time.
    fn buy(&self, server: &Process, looks: usize) -> Vec<Option<Bought>> {
        let runtime = Handle::current();
        let url = server.url.as_str();
        let buy = |payment| runtime.block_on(self.buy_one(url, payment, looks));
        thread::scope(|scope| {
            let buying: Vec<_> =
                self.payments.iter().map(|payment| scope.spawn(move || buy(payment))).collect();
            buying.into_iter().map(|it| it.join().unwrap()).collect()
        })
    }

    /// Buys until there is a verdict; `None` if the server died. Nobody is ever asked to pay again.
    async fn buy_one(&self, url: &str, payment: &str, looks: usize) -> Option<Bought> {
        let http = Http::new(url, &self.site.home.state());
        let headers = [("PAYMENT-SIGNATURE", payment)];
        for _ in 0..looks {
            let reply = http.ask_with("POST", "/api/v3/x402/validate", BODY, &headers).ok()?;
            match reply.status {
                200 if reply.body["verdict"] == "VALID" => return Some(Bought::Reply(reply.body)),
                // A round that was not charged; the payment is still good.
                200 => self.executor.set(says_valid()),
                202 => assert_eq!(reply.body["state"], "settlement_pending"),
                // Somebody else gave the payment back.
                409 => assert_eq!(reply.body["code"], "conflict"),
                other => panic!("{other}: {}", reply.body),
            }
            self.facilitator.set(FacilitatorMode::Honest);
            jurat_engine::pause(Duration::from_millis(100)).await;
        }
        Some(Bought::Unknown)
    }
}

/// What a buyer has in the end.
#[derive(Debug, Clone, PartialEq)]
enum Bought {
    Reply(Value),
    /// Neither a reply nor a new demand.
    Unknown,
}

/// A payment that is valid for an hour of the real clock.
fn payment(number: u8) -> String {
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
                "from": format!("0x{}", format!("{number:02x}").repeat(20)),
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

/// The points that undisturbed sales pass, one of which is not charged at first, and is settled
/// only later.
pub(super) async fn counted() -> Vec<String> {
    let shop = Shop::new(Kind::File, 1, true).await;
    shop.executor.set(status(500));
    let server = shop.serve(shop.site.mortal(&["serve"], None));
    let http = Http::new(&server.url, &shop.site.home.state());
    let headers = [("PAYMENT-SIGNATURE", shop.payments[0].as_str())];
    let reply = http.ask_with("POST", "/api/v3/x402/validate", BODY, &headers).unwrap();
    assert_eq!((reply.status, &reply.body["verdict"]), (200, &Value::Null));
    shop.executor.set(says_valid());
    shop.facilitator.set(FacilitatorMode::FailsBeforeSettling);
    assert!(matches!(shop.buy(&server, LOOKS)[..], [Some(Bought::Reply(_))]));
    assert_eq!(shop.facilitator.transfers().len(), 1);
    server.terminate();
    assert!(server.wait().success());
    let points = shop.site.points();
    shop.site.drop().await;
    points
}

pub(super) async fn all(kind: Kind) {
    for death in deaths(kind) {
        die(kind, death).await;
    }
}

async fn die(kind: Kind, death: Death) {
    let Death { point, mode, buyers, has_node } = death;
    let shop = Shop::new(kind, buyers, has_node).await;
    shop.facilitator.set(mode);
    if point == "payment_take_after" {
        shop.facilitator.set(FacilitatorMode::FailsBeforeSettling);
    }
    if point.starts_with("payment_release") {
        shop.executor.set(status(500));
    }
    let mut mortal = shop.site.mortal(&["serve"], None);
    mortal.env("JURAT_TEST_KILL_AT", point);
    let server = shop.serve(mortal);
    let bought = shop.buy(&server, LOOKS);
    assert!(bought.contains(&None), "it lived past it: {death:?}");
    assert_eq!(server.wait().signal(), Some(9), "{death:?}");
    assert_eq!(shop.site.points().last().map(String::as_str), Some(point));
    shop.executor.set(says_valid());
    shop.facilitator.set(mode);
    let server = shop.serve(shop.site.command(&["serve"]));
    // Without a node, nothing proves a transfer that the facilitator does not confirm again.
    let is_unproven = !has_node && point == "payment_record_before";
    let looks = if is_unproven { LOOKS_FOR_NOTHING } else { LOOKS };
    let bought = shop.buy(&server, looks);
    for bought in &bought {
        match bought {
            Some(Bought::Reply(reply)) if !is_unproven => {
                assert_eq!(reply["verdict"], "VALID", "{death:?}");
            }
            Some(Bought::Unknown) if is_unproven => {}
            other => panic!("{death:?}: {other:?}"),
        }
    }
    assert_eq!(shop.buy(&server, looks), bought, "{death:?}");
    let transfers = shop.facilitator.transfers();
    assert_eq!(transfers.len(), usize::from(buyers), "{death:?}: each is settled once");
    for (number, transfer) in (1..).zip(&transfers) {
        assert_eq!((transfer.to.as_str(), transfer.value), (PAY_TO, 1_000));
        let others = &transfers[..number - 1];
        assert!(others.iter().all(|other| other.payer != transfer.payer), "{death:?}");
    }
    server.terminate();
    assert!(server.wait().success());
    shop.site.drop().await;
}
