//! What the chain shows about an authorization: the only proof that money moved, or cannot move.

mod node;
mod search;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU32},
};

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
    /// How often the pages of a search were halved, because the node refused larger ones.
    halvings: AtomicU32,
}

impl Engine {
    /// Looks for the transfer that a payment demands. A proof is a transaction in which the token
    /// used the authorization, and for it moved exactly the amount from the payer to us.
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
            && use_in(node, payment, transaction).await == Some(UseOfNonce::Demanded)
        {
            return Some(ChainRecord::Paid { transaction: transaction.clone() });
        }
        let latest = node.latest().await?;
        if !node.is_used(&payment.key, &block_name(latest.number)).await? {
            return Some(ChainRecord::Unused { at: latest.at });
        }
        let now = self.inner.clock.now();
        let log = self.inner.chain.log_of_use(node, payment, latest, now).await?;
        let spent = || async {
            let block = node.block(log.get("blockNumber")?.as_str()?).await?;
            Some(ChainRecord::Spent { since: block.at, at: latest.at })
        };
        if is_topic(&log, 0, AUTHORIZATION_CANCELED) {
            return spent().await;
        }
        let transaction = log.get("transactionHash")?.as_str()?.to_owned();
        match use_in(node, payment, &transaction).await? {
            UseOfNonce::Demanded => Some(ChainRecord::Paid { transaction }),
            UseOfNonce::Other => spent().await,
        }
    }
}

/// What a transaction did with the authorization of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UseOfNonce {
    /// It moved the demanded amount to us.
    Demanded,
    /// It moved something else.
    Other,
}

/// What a transaction shows about a payment; `None` if it does not show the use of its
/// authorization.
async fn use_in(node: ChainNode<'_>, payment: &Payment, transaction: &str) -> Option<UseOfNonce> {
    let receipt = node.ask("eth_getTransactionReceipt", json!([transaction])).await?;
    if number(receipt.get("status")?.as_str()?)? != 1 {
        return None;
    }
    read_use(payment, receipt.get("logs")?.as_array()?)
}

/// The token logs the use of an authorization, and directly after it the transfer of that
/// authorization. Any other transfer in the same transaction belongs to another authorization, and
/// would pay for two requests.
fn read_use(payment: &Payment, logs: &[Value]) -> Option<UseOfNonce> {
    let (payer, pay_to) = (word(payment.key.payer.as_str()), word(&pay_to(payment)?));
    let is_of_token = |log: &Value| {
        let address = log.get("address").and_then(Value::as_str).unwrap_or_default();
        address.eq_ignore_ascii_case(&payment.key.asset)
    };
    let used = logs.iter().position(|log| {
        is_of_token(log)
            && is_topic(log, 0, AUTHORIZATION_USED)
            && is_topic(log, 1, &payer)
            && is_topic(log, 2, &payment.key.nonce)
    })?;
    let moved = logs.get(used + 1)?;
    // A token that logs something else in between is one that we do not understand.
    if !is_of_token(moved) || !is_topic(moved, 0, TRANSFER) || !is_topic(moved, 1, &payer) {
        return None;
    }
    let value = moved.get("data").and_then(Value::as_str).and_then(number)?;
    let is_ours = is_topic(moved, 2, &pay_to) && value == payment.amount.into();
    Some(if is_ours { UseOfNonce::Demanded } else { UseOfNonce::Other })
}

/// An address as a word of 32 bytes.
fn word(address: &str) -> String {
    format!("0x{:0>64}", address.trim_start_matches("0x"))
}

fn is_topic(log: &Value, index: usize, expected: &str) -> bool {
    let topic = log.get("topics").and_then(|it| it.get(index)).and_then(Value::as_str);
    topic.is_some_and(|topic| topic.eq_ignore_ascii_case(expected))
}
