//! Questions to a node of the chain. An answer that is not exactly of the expected form is none.

use std::{sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Uri};
use jurat_core::{
    payment::{hex_of, network::PaymentNetwork, record::PaymentKey},
    strict_json,
    time::Timestamp,
};
use jurat_guard::client::{CallError, OutboundClient};
use serde_json::{Value, json};

use super::word;
use crate::Engine;

const MOST_VALUES: usize = 50_000;
/// `authorizationState(address,bytes32)` of EIP-3009.
const AUTHORIZATION_STATE: &str = "0xe94a0102";

/// The node of the chain that the settings name.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainNode<'a> {
    client: &'a OutboundClient,
    address: &'a Uri,
    /// How long one question may take.
    timeout: Duration,
}

/// Why a node has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeFailure {
    /// It answered with an error, or with more than is read.
    Refused,
    /// There was no answer.
    Silent,
}

/// A block of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainBlock {
    pub(super) number: u64,
    pub(super) at: Timestamp,
}

impl Engine {
    /// The node that knows the payments on a network; `None` if there is none, or if it is on
    /// another chain.
    pub(super) async fn chain_node(&self, network: PaymentNetwork) -> Option<ChainNode<'_>> {
        let node = self.configured_node().filter(|_| self.is_network(network))?;
        if self.inner.chain.is_right.load(Ordering::Relaxed) {
            return Some(node);
        }
        let found = node.chain_id().await?;
        if found != network.chain_id() {
            tracing::warn!(found, "the node of `x402.rpc_url` is on another chain");
            return None;
        }
        self.inner.chain.is_right.store(true, Ordering::Relaxed);
        Some(node)
    }

    /// The chain that the node is on, if it says so.
    pub(crate) async fn chain_id(&self) -> Option<u64> {
        self.configured_node()?.chain_id().await
    }

    /// Whether the node of the chain finds logs, which prove what a facilitator does not tell.
    pub(crate) async fn chain_finds_logs(&self) -> bool {
        let (Some(node), Ok(settings)) = (self.configured_node(), self.payment_settings()) else {
            return false;
        };
        self.inner.chain.finds_logs(node, settings.network.asset()).await.is_some()
    }

    fn configured_node(&self) -> Option<ChainNode<'_>> {
        let settings = self.payment_settings().ok()?;
        let (address, timeout) = (settings.rpc.as_ref()?, settings.timeouts.rpc);
        Some(ChainNode { client: &self.inner.client, address, timeout })
    }

    fn is_network(&self, network: PaymentNetwork) -> bool {
        self.payment_settings().is_ok_and(|settings| settings.network == network)
    }
}

impl ChainNode<'_> {
    async fn chain_id(self) -> Option<u64> {
        let found = self.ask("eth_chainId", json!([])).await?;
        number(found.as_str()?)?.try_into().ok()
    }

    /// The newest block that the node knows. The node may be late, so the time of this block is
    /// that of whatever the node says about it.
    pub(super) async fn latest(self) -> Option<ChainBlock> {
        self.block("latest").await
    }

    /// The block of a name.
    pub(super) async fn block(self, name: &str) -> Option<ChainBlock> {
        let found = self.ask("eth_getBlockByNumber", json!([name, false])).await?;
        let member = |name: &str| u64::try_from(number(found.get(name)?.as_str()?)?).ok();
        let millis = i64::try_from(member("timestamp")?).ok()?.saturating_mul(1_000);
        Some(ChainBlock { number: member("number")?, at: Timestamp::from_millis(millis) })
    }

    /// Whether an authorization was used or cancelled, up to a block.
    pub(super) async fn is_used(self, key: &PaymentKey, block: &str) -> Option<bool> {
        let (payer, nonce) = (word(key.payer.as_str()), &key.nonce);
        let data = format!("{AUTHORIZATION_STATE}{}{}", &payer[2..], nonce.get(2..)?);
        let call = json!([{ "to": key.asset, "data": data }, block]);
        let answer = self.ask("eth_call", call).await?;
        // Without the token at its address, the answer is empty, which is not zero.
        match number(&hex_of(answer.as_str()?, 32)?)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Answers `None` if the node does not, with an error, or with nothing.
    pub(super) async fn ask(self, method: &str, params: Value) -> Option<Value> {
        self.try_ask(method, params).await.ok()
    }

    /// The answer, or whether the node refused to give one.
    pub(super) async fn try_ask(self, method: &str, params: Value) -> Result<Value, NodeFailure> {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let body = Bytes::from(call.to_string());
        let asking = self.client.post_json(self.address, HeaderMap::new(), body, self.timeout);
        let reply = asking.await.map_err(|error| match error {
            CallError::TooLarge { .. } => NodeFailure::Refused,
            CallError::Timeout
            | CallError::Unreachable(_)
            | CallError::Disconnected(_)
            | CallError::Encoded { .. }
            | CallError::Redirect { .. }
            | CallError::Tls(_) => NodeFailure::Silent,
        })?;
        if !reply.status.is_success() {
            return Err(NodeFailure::Refused);
        }
        let document = strict_json::parse_within(&reply.body, MOST_VALUES)
            .map_err(|_| NodeFailure::Refused)?;
        let result = document.get("result").filter(|it| !it.is_null());
        result.cloned().ok_or(NodeFailure::Refused)
    }
}

/// A block as questions name it.
pub(super) fn block_name(number: u64) -> String {
    format!("0x{number:x}")
}

/// A number in hexadecimal digits; `None` if it is too large to be an amount.
pub(super) fn number(text: &str) -> Option<u128> {
    let digits = text.strip_prefix("0x").filter(|digits| !digits.is_empty())?;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() { Some(0) } else { u128::from_str_radix(digits, 16).ok() }
}
