//! The search for the log of an authorization, in pages, because nodes limit the range of a search.

use std::sync::atomic::Ordering;

use jurat_core::{
    id::PaymentId,
    payment::record::{Payment, PaymentKey},
    time::Timestamp,
};
use serde_json::{Value, json};

use super::{
    AUTHORIZATION_CANCELED, AUTHORIZATION_USED, ChainMemory,
    node::{ChainBlock, ChainNode, NodeFailure, block_name},
    word,
};

/// The blocks of one page, as long as the node accepts that.
const MOST_BLOCKS: u64 = 4_096;
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
        // The node may be several machines, one of which is behind.
        if latest.number < first {
            return None;
        }
        let mut search = self.search(node, LogFilter::of(payment), latest.number);
        // The newest page comes first, because somebody looks soon after most transfers.
        let newest = search.newest(first).await?;
        let (mut next, mut found) = (first, newest.logs);
        for _ in 0..PAGES_AT_ONCE {
            if !found.is_empty() || newest.first <= next {
                break;
            }
            let page = search.from(next).await?;
            (next, found) = (page.last + 1, page.logs);
            self.searched.lock().insert(payment.id.clone(), next);
        }
        // After the whole time, the search begins again: the node may have been late with its logs.
        if !found.is_empty() || newest.first <= next {
            self.forget(&payment.id);
        }
        found.into_iter().next()
    }

    /// Forgets how far the search for a payment is.
    pub(in crate::payments) fn forget(&self, payment: &PaymentId) {
        self.searched.lock().remove(payment);
    }

    /// `None` if a node finds no logs of a token, in however few blocks.
    pub(super) async fn finds_logs(&self, node: ChainNode<'_>, asset: &str) -> Option<()> {
        let (asset, nothing) = (asset.to_owned(), word("0x0"));
        let filter = LogFilter { asset, payer: nothing.clone(), nonce: nothing };
        let latest = node.latest().await?;
        self.search(node, filter, latest.number).newest(0).await.map(drop)
    }

    fn search<'a>(&'a self, node: ChainNode<'a>, filter: LogFilter, latest: u64) -> LogSearch<'a> {
        let blocks = MOST_BLOCKS >> self.halvings.load(Ordering::Relaxed);
        LogSearch { memory: self, node, filter, latest, blocks, refused: u64::MAX }
    }
}

/// One look for logs. Nodes accept ranges of different sizes, and only some say which.
struct LogSearch<'a> {
    memory: &'a ChainMemory,
    node: ChainNode<'a>,
    filter: LogFilter,
    latest: u64,
    /// The blocks of the next page.
    blocks: u64,
    /// A page of so many blocks was too large.
    refused: u64,
}

impl LogSearch<'_> {
    /// The last page, which begins at a block or later.
    async fn newest(&mut self, first: u64) -> Option<LogPage> {
        loop {
            let from = (self.latest + 1).saturating_sub(self.blocks).max(first);
            if let Some(page) = self.read(from, self.latest).await? {
                return Some(page);
            }
        }
    }

    /// The page that begins at a block.
    async fn from(&mut self, first: u64) -> Option<LogPage> {
        loop {
            let last = (first + self.blocks - 1).min(self.latest);
            if let Some(page) = self.read(first, last).await? {
                return Some(page);
            }
        }
    }

    /// The logs of some blocks; `Some(None)` if there were too many blocks for the node, and the
    /// next page is smaller.
    async fn read(&mut self, first: u64, last: u64) -> Option<Option<LogPage>> {
        let blocks = last + 1 - first;
        match self.node.try_ask("eth_getLogs", self.filter.within(first, last)).await {
            Ok(found) => {
                // The node may have refused a larger page for another reason.
                if self.blocks * 2 < self.refused {
                    self.resize(self.blocks * 2);
                }
                Some(Some(LogPage { first, last, logs: found.as_array()?.clone() }))
            }
            Err(failure) => {
                self.refused = blocks;
                while blocks <= self.blocks && 1 < self.blocks {
                    self.resize(self.blocks / 2);
                }
                (failure == NodeFailure::Refused && 1 < blocks).then_some(None)
            }
        }
    }

    /// Later looks begin with this size, too.
    fn resize(&mut self, blocks: u64) {
        self.blocks = blocks.min(MOST_BLOCKS);
        self.memory.halvings.store((MOST_BLOCKS / self.blocks).ilog2(), Ordering::Relaxed);
    }
}

/// The logs that are searched for.
struct LogFilter {
    asset: String,
    /// Words of 32 bytes.
    payer: String,
    nonce: String,
}

impl LogFilter {
    fn of(payment: &Payment) -> Self {
        let PaymentKey { asset, payer, nonce, .. } = &payment.key;
        Self { asset: asset.clone(), payer: word(payer.as_str()), nonce: nonce.clone() }
    }

    fn within(&self, first: u64, last: u64) -> Value {
        json!([{
            "address": self.asset,
            "fromBlock": block_name(first),
            "toBlock": block_name(last),
            "topics": [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], self.payer, self.nonce],
        }])
    }
}

/// The logs of some blocks.
struct LogPage {
    first: u64,
    last: u64,
    logs: Vec<Value>,
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
