//! A payment facilitator and its chain on a loopback port. It answers `/verify` and `/settle`, honestly
//! or not, and as a node of the chain at `/rpc`.

mod chain;

use std::{net::SocketAddr, sync::Arc};

use jurat_core::payment::network::PaymentNetwork;
use jurat_engine::{Clock as _, PayerLimits, PaymentSettings, PaymentTimeouts};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
    task::JoinSet,
};

use self::chain::{Chain, ChainClock};
pub use self::chain::{NodeFault, TokenLog, TokenTransfer};
use crate::{
    app::ManualClock,
    fake_executor::{http::ClientConnection, reach},
};

/// The address that is paid in tests.
pub const PAY_TO: &str = "0x209693bc6afc0c5328ba36faf03c514ef312287c";

/// How a facilitator behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FacilitatorMode {
    #[default]
    Honest,
    /// Never answers a request to verify.
    HangsVerifying,
    /// Answers a request to verify with status 500.
    FailsVerifying,
    /// Moves the money, and never answers.
    HangsAfterSettling,
    /// Moves the money, and closes the connection.
    HangsUpAfterSettling,
    /// Moves the money, and answers with status 500.
    FailsAfterSettling,
    /// Moves the money, and says that it did not.
    RefusesAfterSettling,
    /// Moves nothing, and answers with status 500.
    FailsBeforeSettling,
    /// Moves nothing, and says so.
    RefusesToSettle,
    /// Says yes to everything, and moves nothing.
    SaysYes,
    /// Verifies, settles and refuses like an honest one, and never names the payer.
    NamesNobody,
    /// Moves the money, and names another payer.
    NamesOtherPayer,
    /// Moves the money, and names another amount.
    NamesOtherAmount,
    /// Moves the money, and names another recipient.
    NamesOtherPayee,
    /// Moves the money, and names another network.
    NamesOtherNetwork,
    /// Verifies and moves the money like an honest one, and answers with status 402.
    AnswersWith402,
    /// Moves the money, and answers with more than anybody reads.
    AnswersTooMuch,
    /// Waits with each settlement until it is told to go on.
    WaitsToSettle,
    /// Waits with each verification until it is told to go on.
    WaitsToVerify,
}

/// A running facilitator; it stops, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct FakeFacilitator {
    address: SocketAddr,
    shared: Arc<FacilitatorState>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct FacilitatorState {
    mode: Mutex<FacilitatorMode>,
    chain: Mutex<Chain>,
    asked: Mutex<Vec<(String, Value)>>,
    count: watch::Sender<usize>,
    verifications: watch::Sender<usize>,
    go_on: Notify,
}

impl FakeFacilitator {
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(FacilitatorState {
            mode: Mutex::default(),
            chain: Mutex::default(),
            asked: Mutex::default(),
            count: watch::Sender::new(0),
            verifications: watch::Sender::new(0),
            go_on: Notify::new(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, _tasks: tasks }
    }

    /// The base address, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address of the chain's node.
    pub fn rpc_url(&self) -> String {
        format!("http://{}/rpc", self.address)
    }

    /// Settings of a server that uses it, and asks the chain for proofs.
    pub fn settings(&self) -> PaymentSettings {
        PaymentSettings {
            network: PaymentNetwork::BaseSepolia,
            pay_to: PAY_TO.parse().unwrap(),
            facilitator: self.url().parse().unwrap(),
            rpc: Some(self.rpc_url().parse().unwrap()),
            price_per_replica: 1_000,
            identifier: jurat_wire::x402::required::IdentifierRule::Optional,
            limits: PayerLimits::default(),
            timeouts: PaymentTimeouts::default(),
        }
    }

    /// How it behaves from now on.
    pub fn set(&self, mode: FacilitatorMode) {
        *self.shared.mode.lock() = mode;
    }

    /// The chain takes its time from a clock, and not from where somebody set it.
    pub fn follow(&self, clock: Arc<ManualClock>) {
        let seconds = move || (clock.steady().millis() / 1_000).unsigned_abs();
        self.shared.chain.lock().follow(ChainClock(Box::new(seconds)));
    }

    /// What is wrong with the node of the chain from now on.
    pub fn set_node(&self, fault: NodeFault) {
        self.shared.chain.lock().fault = fault;
    }

    /// The transfers that were asked for, with those that the token refused because it had
    /// accepted their authorization before.
    pub fn tried(&self) -> Vec<TokenTransfer> {
        self.shared.chain.lock().tried.clone()
    }

    /// The transfers on the chain so far.
    pub fn transfers(&self) -> Vec<TokenTransfer> {
        self.shared.chain.lock().transfers()
    }

    /// Somebody else settles a payment on the chain.
    pub fn spend(&self, payment: &Value) {
        let asset = &payment["accepted"]["asset"];
        let request = json!({
            "paymentPayload": payment, "paymentRequirements": { "asset": asset },
        });
        self.shared.chain.lock().transfer(TokenTransfer::asked(&request));
    }

    /// From now on, a payer has so much of the token, and not without end.
    pub fn fund(&self, payer: &str, value: u128) {
        self.shared.chain.lock().balances.insert(payer.to_owned(), value);
    }

    /// Somebody writes a transaction of the token with these logs.
    pub fn transact(&self, logs: impl IntoIterator<Item = TokenLog>) -> String {
        let asset = PaymentNetwork::BaseSepolia.asset();
        self.shared.chain.lock().transact(asset, logs)
    }

    /// The payer cancels an authorization on the chain.
    pub fn cancel(&self, payer: &str, nonce: &str) {
        self.shared.chain.lock().cancel(payer, nonce);
    }

    /// How often a path was requested.
    pub fn asked(&self, path: &str) -> usize {
        self.shared.asked.lock().iter().filter(|(asked, _)| asked == path).count()
    }

    /// The bodies of the requests to a path.
    pub fn bodies(&self, path: &str) -> Vec<Value> {
        let asked = self.shared.asked.lock();
        asked.iter().filter(|(it, _)| it == path).map(|(_, body)| body.clone()).collect()
    }

    /// Waits until this many requests to settle have arrived in total.
    pub async fn was_asked_to_settle(&self, times: usize) {
        reach(&self.shared.count, times).await;
    }

    /// Waits until this many requests to verify have arrived in total.
    pub async fn was_asked_to_verify(&self, times: usize) {
        reach(&self.shared.verifications, times).await;
    }

    /// Lets the requests that wait go on.
    pub fn go_on(&self) {
        self.shared.go_on.notify_waiters();
    }
}

async fn accept(listener: TcpListener, shared: Arc<FacilitatorState>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(converse(stream, Arc::clone(&shared)));
    }
}

/// The answer to a request.
enum Answer {
    Json(u16, Value),
    /// None, while the connection stays open.
    Nothing,
    HangUp,
}

async fn converse(stream: TcpStream, shared: Arc<FacilitatorState>) {
    let mut connection = ClientConnection::new(stream);
    while let Ok(Some(call)) = connection.request().await {
        let (path, body) = (call.path.clone(), call.body.clone());
        shared.asked.lock().push((path.clone(), body.clone()));
        let answer = match path.as_str() {
            "/verify" => {
                shared.verifications.send_modify(|count| *count += 1);
                let waits = *shared.mode.lock() == FacilitatorMode::WaitsToVerify;
                if waits {
                    shared.go_on.notified().await;
                }
                shared.verify(&body)
            }
            "/settle" => {
                shared.count.send_modify(|count| *count += 1);
                let waits = *shared.mode.lock() == FacilitatorMode::WaitsToSettle;
                if waits {
                    shared.go_on.notified().await;
                }
                shared.settle(&body)
            }
            "/rpc" => match shared.chain.lock().rpc(&body) {
                Some(answer) => Answer::Json(200, answer),
                None => Answer::Json(503, json!({})),
            },
            _ => Answer::Json(404, json!({})),
        };
        match answer {
            Answer::Json(status, mut body) => {
                if *shared.mode.lock() == FacilitatorMode::NamesNobody
                    && let Some(members) = body.as_object_mut()
                {
                    members.remove("payer");
                }
                if connection.reply_json(status, &body).await.is_err() {
                    return;
                }
            }
            Answer::Nothing => std::future::pending().await,
            Answer::HangUp => return,
        }
    }
}

impl FacilitatorState {
    fn verify(&self, body: &Value) -> Answer {
        let payment = TokenTransfer::asked(body);
        let payer = payment.payer.clone();
        let mode = *self.mode.lock();
        if mode == FacilitatorMode::HangsVerifying {
            return Answer::Nothing;
        }
        if mode == FacilitatorMode::FailsVerifying {
            return Answer::Json(500, json!({}));
        }
        if mode == FacilitatorMode::SaysYes {
            return Answer::Json(200, json!({ "isValid": true, "payer": payer }));
        }
        let reason = self.chain.lock().refusal(&payment, body);
        Answer::Json(
            if mode == FacilitatorMode::AnswersWith402 { 402 } else { 200 },
            match reason {
                None => json!({ "isValid": true, "payer": payer }),
                Some(reason) => {
                    json!({ "isValid": false, "invalidReason": reason, "payer": payer })
                }
            },
        )
    }

    fn settle(&self, body: &Value) -> Answer {
        let mode = *self.mode.lock();
        let payment = TokenTransfer::asked(body);
        let network = body["paymentRequirements"]["network"].clone();
        let success = |payer: &str, transaction: &str| {
            json!({
                "success": true, "payer": payer, "transaction": transaction, "network": network,
            })
        };
        let failure = |reason: &str| {
            let payer = &payment.payer;
            let body = json!({
                "success": false, "errorReason": reason, "payer": payer, "transaction": "",
                "network": network,
            });
            Answer::Json(200, body)
        };
        if mode == FacilitatorMode::SaysYes {
            let made_up = format!("0x{}", "5".repeat(64));
            return Answer::Json(200, success(&payment.payer, &made_up));
        }
        if mode == FacilitatorMode::FailsBeforeSettling {
            return Answer::Json(500, json!({}));
        }
        if mode == FacilitatorMode::RefusesToSettle {
            return failure("insufficient_funds");
        }
        let mut chain = self.chain.lock();
        chain.tried.push(payment.clone());
        if let Some(reason) = chain.refusal(&payment, body) {
            return failure(&reason);
        }
        let transaction = chain.transfer(payment.clone());
        let mut answer = success(&payment.payer, &transaction);
        match mode {
            FacilitatorMode::HangsAfterSettling => return Answer::Nothing,
            FacilitatorMode::HangsUpAfterSettling => return Answer::HangUp,
            FacilitatorMode::FailsAfterSettling => return Answer::Json(500, json!({})),
            FacilitatorMode::RefusesAfterSettling => return failure("unexpected_settle_error"),
            FacilitatorMode::NamesOtherPayer => answer["payer"] = json!(PAY_TO),
            FacilitatorMode::NamesOtherAmount => answer["amount"] = json!("1"),
            FacilitatorMode::NamesOtherPayee => answer["payTo"] = json!(payment.payer),
            FacilitatorMode::NamesOtherNetwork => answer["network"] = json!("eip155:1"),
            FacilitatorMode::AnswersWith402 => return Answer::Json(402, answer),
            FacilitatorMode::AnswersTooMuch => answer["extra"] = json!("x".repeat(3 * 1024 * 1024)),
            FacilitatorMode::Honest
            | FacilitatorMode::NamesNobody
            | FacilitatorMode::HangsVerifying
            | FacilitatorMode::FailsVerifying
            | FacilitatorMode::FailsBeforeSettling
            | FacilitatorMode::RefusesToSettle
            | FacilitatorMode::SaysYes
            | FacilitatorMode::WaitsToSettle
            | FacilitatorMode::WaitsToVerify => {}
        }
        Answer::Json(200, answer)
    }
}
