//! What the chain shows about an authorization: the only proof that money moved, or cannot move.

mod node;
mod search;

use std::{collections::BTreeMap, sync::atomic::AtomicBool};

use jurat_core::{
    id::PaymentId,
    payment::{
        record::{Payment, PaymentKey},
        state::ChainRecord,
    },
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use self::node::{ChainNode, block_name, number};
use super::facilitator::pay_to;
use crate::Engine;

/// `AuthorizationUsed(address,bytes32)`.
const AUTHORIZATION_USED: &str =
    "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
/// `AuthorizationCanceled(address,bytes32)`.
const AUTHORIZATION_CANCELED: &str =
    "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81";
/// `Transfer(address,address,uint256)`.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// What this process knows about the chain.
#[derive(Debug, Default)]
pub(crate) struct ChainMemory {
    /// Whether the node named the chain of the settings.
    is_right: AtomicBool,
    /// Payments whose transfer takes several looks to find, and the block with which the next one
    /// begins.
    searched: Mutex<BTreeMap<PaymentId, u64>>,
}

impl Engine {
    /// Looks for the transfer that a payment demands. A proof is a transaction in which the token
    /// used the authorization and moved exactly the amount from the payer to us.
    pub(super) async fn chain_record(&self, payment: &Payment) -> ChainRecord {
        let within = self.payment_settings().map(|settings| settings.timeouts.look());
        let looked = tokio::time::timeout(within.unwrap_or_default(), self.look_up(payment)).await;
        looked.ok().flatten().unwrap_or_else(|| {
            tracing::warn!(payment.digest = %payment.payment_digest, "the chain did not say whether it was paid");
            ChainRecord::NoProof
        })
    }

    /// Whether the chain shows that an authorization was used or cancelled. A chain that does not
    /// answer stops no sale: what is paid is proven later.
    pub(super) async fn is_spent(&self, key: &PaymentKey) -> bool {
        let Ok(settings) = self.payment_settings() else { return false };
        let asking = async { self.chain_node(key.network).await?.is_used(key, "latest").await };
        let asked = tokio::time::timeout(settings.timeouts.rpc, asking).await;
        asked.is_ok_and(|is_used| is_used == Some(true))
    }

    async fn look_up(&self, payment: &Payment) -> Option<ChainRecord> {
        let node = self.chain_node(payment.key.network).await?;
        if let Some(transaction) = &payment.transaction
            && is_paid_by(node, payment, transaction).await == Some(true)
        {
            return Some(ChainRecord::Paid { transaction: transaction.clone() });
        }
        let latest = node.latest().await?;
        if !node.is_used(&payment.key, &block_name(latest.number)).await? {
            return Some(ChainRecord::Unused { at: latest.at });
        }
        let now = self.inner.clock.now();
        let log = self.inner.chain.log_of_use(node, payment, latest, now).await?;
        if is_topic(&log, 0, AUTHORIZATION_CANCELED) {
            return Some(ChainRecord::Cancelled);
        }
        let transaction = log.get("transactionHash")?.as_str()?.to_owned();
        let is_paid = is_paid_by(node, payment, &transaction).await?;
        is_paid.then_some(ChainRecord::Paid { transaction })
    }
}

/// Whether a transaction is the demanded transfer; `None` if it is not on the chain.
async fn is_paid_by(node: ChainNode<'_>, payment: &Payment, transaction: &str) -> Option<bool> {
    let receipt = node.ask("eth_getTransactionReceipt", json!([transaction])).await?;
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

/// An address as a word of 32 bytes.
fn word(address: &str) -> String {
    format!("0x{:0>64}", address.trim_start_matches("0x"))
}

fn is_topic(log: &Value, index: usize, expected: &str) -> bool {
    let topic = log.get("topics").and_then(|it| it.get(index)).and_then(Value::as_str);
    topic.is_some_and(|topic| topic.eq_ignore_ascii_case(expected))
}
