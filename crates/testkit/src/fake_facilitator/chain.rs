//! A chain with one token, as far as a payment needs it.

use std::{
    collections::BTreeMap,
    fmt,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

const USED: &str = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
const CANCELED: &str = "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81";
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// When the chain began, in seconds since 1970, and how long each of its blocks takes.
const GENESIS: u64 = 1_600_000_000;
const BLOCK_SECONDS: u64 = 2;
/// The largest range of blocks in which the node looks for logs.
const MOST_BLOCKS: u64 = 10_000;

/// A transfer of the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenTransfer {
    pub payer: String,
    pub to: String,
    pub value: u128,
    pub nonce: String,
    pub asset: String,
}

impl TokenTransfer {
    /// The transfer that a request to the facilitator is about.
    pub(super) fn asked(body: &Value) -> Self {
        let signed = &body["paymentPayload"]["payload"]["authorization"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_ascii_lowercase();
        Self {
            payer: text(&signed["from"]),
            to: text(&signed["to"]),
            value: text(&signed["value"]).parse().unwrap_or_default(),
            nonce: text(&signed["nonce"]),
            asset: text(&body["paymentRequirements"]["asset"]),
        }
    }
}

/// One log of the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenLog {
    /// The payer and the nonce of a used authorization.
    Used(String, String),
    /// A transfer, of whichever authorization.
    Moved { payer: String, to: String, value: u128 },
}

/// A log with the address that wrote it.
#[derive(Debug, Clone)]
struct WrittenLog {
    asset: String,
    log: TokenLog,
}

#[derive(Debug)]
struct Record {
    block: u64,
    spending: Spending,
}

/// How an authorization was used.
#[derive(Debug)]
enum Spending {
    Moved { transaction: String },
    Cancelled,
}

/// The time of the chain, in seconds since 1970.
pub(super) struct ChainClock(pub(super) Box<dyn Fn() -> u64 + Send + Sync>);

impl fmt::Debug for ChainClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainClock").finish_non_exhaustive()
    }
}

/// What is wrong with the node of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeFault {
    #[default]
    None,
    /// It is so many seconds behind.
    Late(u64),
    /// It belongs to another chain, on which the token does not exist.
    OtherChain,
    /// It belongs to Base, where the authorizations are unused.
    OnBase,
    /// It finds no code at the address of the token.
    NoToken,
    /// It finds no logs.
    NoLogs,
    /// It looks for logs in so many blocks at once and no more.
    FewBlocks(u64),
    /// It does not answer.
    Down,
}

#[derive(Debug)]
pub(super) struct Chain {
    /// The authorizations that were used, by payer and nonce.
    records: BTreeMap<(String, String), Record>,
    /// The logs of each transaction, in their order.
    transactions: Vec<(u64, Vec<WrittenLog>)>,
    /// The transfers that somebody asked for, with those that the token refused because it had
    /// accepted their authorization before.
    pub(super) tried: Vec<TokenTransfer>,
    /// What payers have, as far as it is limited.
    pub(super) balances: BTreeMap<String, u128>,
    clock: ChainClock,
    pub(super) fault: NodeFault,
}

impl Default for Chain {
    fn default() -> Self {
        #[expect(clippy::disallowed_methods, reason = "a server of its own has the real clock")]
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        Self {
            records: BTreeMap::new(),
            transactions: Vec::new(),
            tried: Vec::new(),
            balances: BTreeMap::new(),
            clock: ChainClock(Box::new(now)),
            fault: NodeFault::None,
        }
    }
}

impl Chain {
    pub(super) fn follow(&mut self, clock: ChainClock) {
        self.clock = clock;
    }

    /// The newest block of all, whatever the node knows.
    fn newest(&self) -> u64 {
        ((self.clock.0)() - GENESIS) / BLOCK_SECONDS
    }

    /// The newest block that the node knows.
    fn head(&self) -> u64 {
        let late = if let NodeFault::Late(seconds) = self.fault { seconds } else { 0 };
        self.newest() - late / BLOCK_SECONDS
    }

    /// The transfers for which an authorization was used.
    pub(super) fn transfers(&self) -> Vec<TokenTransfer> {
        let all = self.transactions.iter().flat_map(|(_, logs)| logs.windows(2));
        let moved = all.filter_map(|pair| match (&pair[0].log, &pair[1].log) {
            (TokenLog::Used(_, nonce), TokenLog::Moved { payer, to, value }) => {
                Some(TokenTransfer {
                    payer: payer.clone(),
                    to: to.clone(),
                    value: *value,
                    nonce: nonce.clone(),
                    asset: pair[0].asset.clone(),
                })
            }
            _ => None,
        });
        moved.collect()
    }

    /// Why a transfer is not possible.
    pub(super) fn refusal(&self, transfer: &TokenTransfer, body: &Value) -> Option<String> {
        let signature = body["paymentPayload"]["payload"]["signature"].as_str().unwrap_or_default();
        let required = &body["paymentRequirements"];
        let amount = required["amount"].as_str().or(required["maxAmountRequired"].as_str());
        let is_used = self.records.contains_key(&(transfer.payer.clone(), transfer.nonce.clone()));
        if signature.starts_with("0x00") {
            Some("invalid_exact_evm_signature".to_owned())
        } else if is_used {
            Some("invalid_exact_evm_nonce_already_used".to_owned())
        } else if amount != Some(transfer.value.to_string().as_str()) {
            Some("invalid_exact_evm_payload_authorization_value".to_owned())
        } else if self.balances.get(&transfer.payer).is_some_and(|it| *it < transfer.value) {
            Some("insufficient_funds".to_owned())
        } else {
            None
        }
    }

    /// Carries a transfer out.
    pub(super) fn transfer(&mut self, transfer: TokenTransfer) -> String {
        let TokenTransfer { payer, to, value, nonce, asset } = transfer;
        if let Some(balance) = self.balances.get_mut(&payer) {
            *balance -= value;
        }
        let used = TokenLog::Used(payer.clone(), nonce);
        self.transact(&asset, [used, TokenLog::Moved { payer, to, value }])
    }

    /// Writes a transaction with these logs of a token, and returns its hash.
    pub(super) fn transact(
        &mut self,
        asset: &str,
        logs: impl IntoIterator<Item = TokenLog>,
    ) -> String {
        let transaction = format!("0x{:064x}", self.transactions.len() + 1);
        let asset = asset.to_owned();
        let logs: Vec<WrittenLog> =
            logs.into_iter().map(|log| WrittenLog { asset: asset.clone(), log }).collect();
        for written in &logs {
            if let TokenLog::Used(payer, nonce) = &written.log {
                let spending = Spending::Moved { transaction: transaction.clone() };
                self.record((payer.clone(), nonce.clone()), spending);
            }
        }
        self.transactions.push((self.newest(), logs));
        transaction
    }

    pub(super) fn cancel(&mut self, payer: &str, nonce: &str) {
        self.record((payer.to_owned(), nonce.to_owned()), Spending::Cancelled);
    }

    fn record(&mut self, key: (String, String), spending: Spending) {
        let block = self.newest();
        self.records.insert(key, Record { block, spending });
    }

    /// Answers as a node of the chain; `None` if it does not.
    pub(super) fn rpc(&self, body: &Value) -> Option<Value> {
        let params = &body["params"];
        let head = self.head();
        let result = match body["method"].as_str().unwrap_or_default() {
            _ if self.fault == NodeFault::Down => return None,
            "eth_chainId" if self.fault == NodeFault::OtherChain => json!("0x1"),
            "eth_chainId" if self.fault == NodeFault::OnBase => json!("0x2105"),
            "eth_chainId" => json!("0x14a34"),
            "eth_blockNumber" => json!(format!("0x{head:x}")),
            "eth_getBlockByNumber" => block(number(&params[0], head), head),
            "eth_call" => self.state(params, head),
            "eth_getLogs" => self.logs(&params[0], head),
            "eth_getTransactionReceipt" => {
                self.receipt(params[0].as_str().unwrap_or_default(), head)
            }
            _ => Value::Null,
        };
        let mut answer = json!({ "jsonrpc": "2.0", "id": body["id"] });
        if result.is_null() {
            answer["error"] = json!({ "code": -32_000, "message": "not available" });
        } else {
            answer["result"] = result;
        }
        Some(answer)
    }

    fn state(&self, params: &Value, head: u64) -> Value {
        if matches!(self.fault, NodeFault::OtherChain | NodeFault::NoToken) {
            return json!("0x");
        }
        let block = number(&params[1], head);
        if head < block {
            return Value::Null;
        }
        let data = params[0]["data"].as_str().unwrap_or_default();
        let key = (format!("0x{}", &data[34..74]), format!("0x{}", &data[74..138]));
        let is_used = self.records.get(&key).is_some_and(|it| it.block <= block);
        let is_used = is_used && self.fault != NodeFault::OnBase;
        json!(format!("0x{:064x}", u8::from(is_used)))
    }

    fn logs(&self, filter: &Value, head: u64) -> Value {
        let from = number(&filter["fromBlock"], head);
        let to = number(&filter["toBlock"], head).min(head);
        let most = if let NodeFault::FewBlocks(most) = self.fault { most } else { MOST_BLOCKS };
        if self.fault == NodeFault::NoLogs || from + most <= to {
            return Value::Null;
        }
        let topics = &filter["topics"];
        let found = self.records.iter().filter(|((payer, nonce), record)| {
            (from..=to).contains(&record.block)
                && topics[1] == json!(word(payer))
                && topics[2] == json!(nonce)
        });
        let logs = found.map(|((payer, nonce), record)| {
            let block = format!("0x{:x}", record.block);
            match &record.spending {
                Spending::Moved { transaction } => json!({
                    "topics": [USED, word(payer), nonce], "transactionHash": transaction,
                    "blockNumber": block,
                }),
                Spending::Cancelled => {
                    json!({ "topics": [CANCELED, word(payer), nonce], "blockNumber": block })
                }
            }
        });
        logs.collect()
    }

    fn receipt(&self, wanted: &str, head: u64) -> Value {
        let named = |index: usize| format!("0x{:064x}", index + 1) == wanted;
        let mut known = (0..).zip(&self.transactions).filter(|(_, (block, _))| *block <= head);
        let Some((_, (_, logs))) = known.find(|(index, _)| named(*index)) else {
            return Value::Null;
        };
        let logs: Vec<Value> = logs.iter().map(written).collect();
        json!({ "status": "0x1", "logs": logs })
    }
}

/// A log as a node writes it.
fn written(WrittenLog { asset, log }: &WrittenLog) -> Value {
    match log {
        TokenLog::Used(payer, nonce) => {
            json!({ "address": asset, "topics": [USED, word(payer), nonce], "data": "0x" })
        }
        TokenLog::Moved { payer, to, value } => json!({
            "address": asset,
            "topics": [TRANSFER, word(payer), word(to)],
            "data": format!("0x{value:064x}"),
        }),
    }
}

/// The number of a block that a request names.
fn number(named: &Value, head: u64) -> u64 {
    let text = named.as_str().unwrap_or_default();
    text.strip_prefix("0x").map_or(head, |digits| u64::from_str_radix(digits, 16).unwrap())
}

fn block(number: u64, head: u64) -> Value {
    if head < number {
        return Value::Null;
    }
    let at = GENESIS + number * BLOCK_SECONDS;
    json!({ "number": format!("0x{number:x}"), "timestamp": format!("0x{at:x}") })
}

fn word(address: &str) -> String {
    format!("0x{:0>64}", address.trim_start_matches("0x"))
}
