//! The search for the log of an authorization, in pages, because nodes limit the range of a search.

use std::iter;

use jurat_core::{payment::record::Payment, time::Timestamp};
use serde_json::{Value, json};

use super::{
    AUTHORIZATION_CANCELED, AUTHORIZATION_USED, ChainMemory,
    node::{ChainBlock, ChainNode, block_name},
    word,
};

/// The blocks of one page.
const PAGE: u64 = 5_000;
/// How many pages one look searches, besides the newest one. The next look continues.
const PAGES_AT_ONCE: u64 = 8;
/// How long before the reservation of a payment the search begins: clocks differ.
const MARGIN_MS: i64 = 600_000;
/// How often the block of a time is estimated, and the time between two blocks that the first
/// estimate assumes.
const MOST_ESTIMATES: u32 = 4;
const BLOCK_MS: u64 = 2_000;

impl ChainMemory {
    /// The log of the use or the cancellation of an authorization, from the reservation of its
    /// payment to the latest block; `None` if it was not found this time.
    pub(super) async fn log_of_use(
        &self,
        node: ChainNode<'_>,
        payment: &Payment,
        latest: ChainBlock,
        now: Timestamp,
    ) -> Option<Value> {
        let known = self.searched.lock().get(&payment.id).copied();
        let first = match known {
            Some(next) => next,
            None => block_before(node, latest, reservation(payment, latest, now)).await?,
        };
        // The newest page comes first, because somebody looks soon after most transfers.
        let newest = (latest.number + 1).saturating_sub(PAGE).max(first);
        let earlier = (0..PAGES_AT_ONCE).map(|page| first + page * PAGE);
        let pages = iter::once(newest).chain(earlier.take_while(|from| *from < newest));
        let mut next = first;
        for from in pages {
            let found = logs(node, payment, from, (from + PAGE - 1).min(latest.number)).await?;
            if let Some(log) = found.as_array()?.first() {
                self.searched.lock().remove(&payment.id);
                return Some(log.clone());
            }
            if from == next {
                next += PAGE;
                self.searched.lock().insert(payment.id.clone(), next);
            }
        }
        // After the whole time, the search begins again: the node may have been late with its logs.
        if newest <= next {
            self.searched.lock().remove(&payment.id);
        }
        None
    }
}

/// A time before a payment was reserved, by the clock of the chain.
fn reservation(payment: &Payment, latest: ChainBlock, now: Timestamp) -> Timestamp {
    let age = now.micros().saturating_sub(payment.created_at.micros());
    let by_age = latest.at.micros().saturating_sub(age);
    let earlier = Timestamp::from_micros(by_age.min(payment.created_at.micros()));
    Timestamp::from_millis(earlier.millis().saturating_sub(MARGIN_MS))
}

/// The number of a block that is hardly later than a time, and mostly earlier.
async fn block_before(node: ChainNode<'_>, latest: ChainBlock, time: Timestamp) -> Option<u64> {
    let (mut block, mut block_ms) = (latest, BLOCK_MS);
    for _ in 0..MOST_ESTIMATES {
        if block.at <= time {
            break;
        }
        let back = block.at.millis_since(time).div_ceil(block_ms);
        let number = block.number.saturating_sub(back);
        if number == 0 {
            return Some(0);
        }
        let earlier = node.block(&block_name(number)).await?;
        block_ms = (block.at.millis_since(earlier.at) / back).max(1);
        block = earlier;
    }
    Some(block.number)
}

async fn logs(node: ChainNode<'_>, payment: &Payment, from: u64, to: u64) -> Option<Value> {
    let (payer, nonce) = (word(payment.key.payer.as_str()), &payment.key.nonce);
    let filter = json!([{
        "address": payment.key.asset,
        "fromBlock": block_name(from),
        "toBlock": block_name(to),
        "topics": [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], payer, nonce],
    }]);
    node.ask("eth_getLogs", filter).await
}
