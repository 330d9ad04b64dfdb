//! Lists: one page, a requested number of items, or all of them.

use anyhow::bail;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::commands::CommandContext;
use crate::{
    args::ListArgs,
    client::{ApiClient, Call, Page, Reply},
};

/// The largest page that the server returns.
const WHOLE_PAGE: u32 = 200;

impl CommandContext {
    /// Reads a list, in several pages if one page cannot hold the requested items.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        call: Call<Page<T>>,
        args: ListArgs,
    ) -> anyhow::Result<Reply<Page<T>>> {
        let ListArgs { limit, cursor, all } = args;
        let one_page = limit.is_none_or(|limit| limit <= WHOLE_PAGE) && !all;
        if one_page {
            return self.send(call.page(limit, cursor.as_deref())).await;
        }
        let most = limit.filter(|_| !all);
        let mut pages = PagedList { call: call.reading(), limit: WHOLE_PAGE, cursor };
        let page = self.with_client(async |client| pages.take(client, most).await).await?;
        self.or_print_unread(Reply::of_document(&json!(page)).map_err(Into::into))
    }

    /// Prints a note on how to see more of a list, or how to begin an empty one.
    pub(crate) fn note_page<T>(&self, page: &Page<T>, when_empty: &str) {
        let shown = page.items.len();
        self.note_empty(shown, when_empty);
        if let Some(cursor) = &page.next_cursor {
            self.out.note(&format!(
                "there are more than these {shown}: list everything with `--all`, or continue with `--cursor {cursor}`"
            ));
        }
    }

    /// Prints a note on how to begin an empty list.
    pub(crate) fn note_empty(&self, shown: usize, when_empty: &str) {
        if shown == 0 {
            self.out.note(when_empty);
        }
    }
}

/// A list in pages. Its items stay as received, because some commands print them unchanged.
pub(crate) struct PagedList {
    call: Call<Page<Value>>,
    limit: u32,
    cursor: Option<String>,
}

impl PagedList {
    /// A list in pages of this size, starting at a cursor.
    pub(crate) fn new<T>(call: Call<Page<T>>, limit: u32, cursor: Option<String>) -> Self {
        Self { call: call.reading(), limit, cursor }
    }

    /// A whole list, in pages of the largest size.
    pub(crate) fn whole<T>(call: Call<Page<T>>) -> Self {
        Self::new(call, WHOLE_PAGE, None)
    }

    pub(crate) async fn next(&mut self, client: &ApiClient) -> anyhow::Result<Page<Value>> {
        let call = self.call.clone().page(Some(self.limit), self.cursor.as_deref());
        let page = client.send(call).await?.value;
        let next = page.next_cursor.as_deref().map(str::to_owned);
        if next.is_some() && next == self.cursor {
            bail!("the server keeps returning the same page; the list is incomplete");
        }
        self.cursor = next;
        Ok(page)
    }

    /// Whether there is another page.
    pub(crate) const fn has_more(&self) -> bool {
        self.cursor.is_some()
    }

    /// Collects at most `most` items into one page, or all items without a limit.
    async fn take(&mut self, client: &ApiClient, most: Option<u32>) -> anyhow::Result<Page<Value>> {
        let mut whole = Page::new(Vec::new(), None);
        let mut left = most;
        loop {
            self.limit = left.map_or(WHOLE_PAGE, |left| left.min(WHOLE_PAGE));
            let page = self.next(client).await?;
            let came = u32::try_from(page.items.len()).unwrap_or(u32::MAX);
            left = left.map(|left| left.saturating_sub(came));
            whole.items.extend(page.items);
            if self.cursor.is_none() || left == Some(0) {
                whole.next_cursor = page.next_cursor;
                return Ok(whole);
            }
        }
    }

    /// Reads one page, or all pages merged into one.
    pub(crate) async fn read<T: DeserializeOwned>(
        &mut self,
        client: &ApiClient,
        all: bool,
    ) -> anyhow::Result<Reply<Page<T>>> {
        let mut whole = self.next(client).await?;
        while all && self.cursor.is_some() {
            let page = self.next(client).await?;
            whole.items.extend(page.items);
            whole.next_cursor = page.next_cursor;
        }
        Ok(Reply::of_document(&json!(whole))?)
    }
}
