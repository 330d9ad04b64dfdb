//! What the chain shows about an authorization: the only proof that money moved, or cannot move.

use bytes::Bytes;
use http::{HeaderMap, Uri};
use jurat_core::{
    payment::{
        record::Payment,
        state::{ChainRecord, SettleAttempt},
    },
    strict_json,
    time::Timestamp,
};
use serde_json::{Value, json};

use super::facilitator::pay_to;
use crate::Engine;

const MOST_VALUES: usize = 50_000;
/// How many blocks back the use of an authorization is looked for; nodes limit the range.
const BLOCKS_BACK: u64 = 5_000;

/// The questions of one look: two receipts, the state, the latest block and the log.
pub(super) const MOST_QUESTIONS: u32 = 5;

/// `authorizationState(address,bytes32)` of EIP-3009.
const AUTHORIZATION_STATE: &str = "0xe94a0102";
/// `AuthorizationUsed(address,bytes32)`.
const AUTHORIZATION_USED: &str =
    "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
/// `AuthorizationCanceled(address,bytes32)`.
const AUTHORIZATION_CANCELED: &str =
    "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81";
/// `Transfer(address,address,uint256)`.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// A block of the chain.
struct ChainBlock {
    number: u64,
    at: Timestamp,
}

impl Engine {
    /// Looks for the transfer that a payment demands. A proof is a transaction in which the token
    /// used the authorization and moved exactly the amount from the payer to us.
    pub(super) async fn chain_record(
        &self,
        rpc: &Uri,
        payment: &Payment,
        attempt: &SettleAttempt,
    ) -> ChainRecord {
        let record = self.look_up(rpc, payment, attempt).await;
        record.unwrap_or_else(|| {
            tracing::warn!(payment.id = %payment.id, "the chain did not say whether it was paid");
            ChainRecord::NoProof
        })
    }

    async fn look_up(
        &self,
        rpc: &Uri,
        payment: &Payment,
        attempt: &SettleAttempt,
    ) -> Option<ChainRecord> {
        if let SettleAttempt::Confirmed { transaction } = attempt
            && self.is_paid_by(rpc, payment, transaction).await == Some(true)
        {
            return Some(ChainRecord::Paid { transaction: transaction.clone() });
        }
        let (payer, nonce) = (word(payment.key.payer.as_str()), &payment.key.nonce);
        let latest = self.latest_block(rpc).await?;
        let data = format!("{AUTHORIZATION_STATE}{}{}", &payer[2..], &nonce[2..]);
        let call = json!([{ "to": payment.key.asset, "data": data }, block_name(latest.number)]);
        let used = self.rpc(rpc, "eth_call", call).await?;
        if number(used.as_str()?)? == 0 {
            return Some(ChainRecord::Unused { at: latest.at });
        }
        let from = latest.number.saturating_sub(BLOCKS_BACK);
        let filter = json!([{
            "address": payment.key.asset,
            "fromBlock": block_name(from),
            "toBlock": block_name(latest.number),
            "topics": [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], payer, nonce],
        }]);
        let found = self.rpc(rpc, "eth_getLogs", filter).await?;
        let log = found.as_array()?.first()?;
        if is_topic(log, 0, AUTHORIZATION_CANCELED) {
            return Some(ChainRecord::Cancelled);
        }
        let transaction = log.get("transactionHash")?.as_str()?.to_owned();
        let is_paid = self.is_paid_by(rpc, payment, &transaction).await?;
        is_paid.then_some(ChainRecord::Paid { transaction })
    }

    /// Whether a transaction is the demanded transfer; `None` if it is not on the chain.
    async fn is_paid_by(&self, rpc: &Uri, payment: &Payment, transaction: &str) -> Option<bool> {
        let receipt = self.rpc(rpc, "eth_getTransactionReceipt", json!([transaction])).await?;
        if number(receipt.get("status")?.as_str()?)? != 1 {
            return Some(false);
        }
        let (payer, pay_to) = (word(payment.key.payer.as_str()), word(&pay_to(payment)?));
        let logs = receipt.get("logs")?.as_array()?;
        let mut ours = logs.iter().filter(|log| {
            let address = log.get("address").and_then(Value::as_str).unwrap_or_default();
            address.eq_ignore_ascii_case(&payment.key.asset)
        });
        let is_used = ours.clone().any(|log| {
            is_topic(log, 0, AUTHORIZATION_USED)
                && is_topic(log, 1, &payer)
                && is_topic(log, 2, &payment.key.nonce)
        });
        let is_moved = ours.any(|log| {
            let value = log.get("data").and_then(Value::as_str).and_then(number);
            is_topic(log, 0, TRANSFER)
                && is_topic(log, 1, &payer)
                && is_topic(log, 2, &pay_to)
                && value == Some(payment.amount.into())
        });
        Some(is_used && is_moved)
    }

    /// The newest block that the node knows. The node may be late, so its time is that of the proof.
    async fn latest_block(&self, rpc: &Uri) -> Option<ChainBlock> {
        let found = self.rpc(rpc, "eth_getBlockByNumber", json!(["latest", false])).await?;
        let member = |name: &str| u64::try_from(number(found.get(name)?.as_str()?)?).ok();
        let seconds: i64 = member("timestamp")?.try_into().ok()?;
        let at = Timestamp::from_millis(seconds.saturating_mul(1_000));
        Some(ChainBlock { number: member("number")?, at })
    }

    async fn rpc(&self, address: &Uri, method: &str, params: Value) -> Option<Value> {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let body = Bytes::from(call.to_string());
        let within = self.payment_settings().ok()?.timeouts.rpc;
        let reply = self.inner.client.post_json(address, HeaderMap::new(), body, within).await;
        let reply = reply.ok().filter(|reply| reply.status.is_success())?;
        let document = strict_json::parse_within(&reply.body, MOST_VALUES).ok()?;
        document.get("result").filter(|it| !it.is_null()).cloned()
    }
}

/// A block as requests name it.
fn block_name(number: u64) -> String {
    format!("0x{number:x}")
}

/// An address as a word of 32 bytes.
fn word(address: &str) -> String {
    format!("0x{:0>64}", address.trim_start_matches("0x"))
}

fn is_topic(log: &Value, index: usize, expected: &str) -> bool {
    let topic = log.get("topics").and_then(|it| it.get(index)).and_then(Value::as_str);
    topic.is_some_and(|topic| topic.eq_ignore_ascii_case(expected))
}

/// A number in hexadecimal digits; `None` if it is too large to be an amount.
fn number(text: &str) -> Option<u128> {
    let digits = text.strip_prefix("0x")?.trim_start_matches('0');
    if digits.is_empty() { Some(0) } else { u128::from_str_radix(digits, 16).ok() }
}
