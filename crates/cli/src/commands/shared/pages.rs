//! Lists: one page, as many as were asked for, or all of them.

use anyhow::bail;
use serde_json::{Value, json};

use crate::commands::CommandContext;
use crate::{
    args::ListArgs,
    client::{ApiCall, ApiClient, ApiReply, query},
};

/// As many as the server gives at once.
const WHOLE_PAGE: u32 = 200;

impl CommandContext {
    /// Reads a list, page after page where one does not hold what was asked for.
    pub(crate) async fn list(
        &self,
        route: &str,
        filters: &[(&'static str, Option<String>)],
        args: ListArgs,
    ) -> anyhow::Result<ApiReply> {
        let ListArgs { limit, cursor, all } = args;
        let one_page = limit.is_none_or(|limit| limit <= WHOLE_PAGE) && !all;
        if one_page {
            let page = [("limit", limit.map(|limit| limit.to_string())), ("cursor", cursor)];
            return self.send(ApiCall::get(query(route, &[filters, &page].concat()))).await;
        }
        // Whoever wants everything does not care how it comes.
        let most = limit.filter(|_| !all);
        let mut pages = PagedList { route: route.to_owned(), parameters: filters.to_vec(), cursor };
        let body = self.with_client(async |client| pages.take(client, most).await).await?;
        Ok(ApiReply::made(body))
    }

    /// Says how to see more of a list, or how to begin one.
    pub(crate) fn note_page(&self, body: &Value, when_empty: &str) {
        let shown = body["items"].as_array().map_or(0, Vec::len);
        if shown == 0 {
            self.out.note(when_empty);
        }
        if let Some(cursor) = body["next_cursor"].as_str() {
            self.out.note(&format!(
                "there are more than these {shown}: list everything with `--all`, or continue with `--cursor {cursor}`"
            ));
        }
    }
}

/// A list that comes in pages.
pub(crate) struct PagedList {
    route: String,
    parameters: Vec<(&'static str, Option<String>)>,
    cursor: Option<String>,
}

impl PagedList {
    pub(crate) fn new(route: &str, parameters: &[(&'static str, Option<String>)]) -> Self {
        let cursor = parameters.iter().find(|(name, _)| *name == "cursor");
        Self {
            route: route.to_owned(),
            cursor: cursor.and_then(|(_, cursor)| cursor.clone()),
            parameters: parameters.iter().filter(|(name, _)| *name != "cursor").cloned().collect(),
        }
    }

    pub(crate) async fn next(&mut self, client: &ApiClient) -> anyhow::Result<Value> {
        let mut parameters = self.parameters.clone();
        parameters.push(("cursor", self.cursor.clone()));
        let page =
            client.send(ApiCall::get(query(&self.route, &parameters))).await?.success()?.value;
        let next = page["next_cursor"].as_str().map(str::to_owned);
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

    /// So many items as one page, or all of them.
    async fn take(&mut self, client: &ApiClient, most: Option<u32>) -> anyhow::Result<Value> {
        let mut whole = json!({ "items": [] });
        let mut left = most;
        loop {
            let size = left.map_or(WHOLE_PAGE, |left| left.min(WHOLE_PAGE));
            self.parameters.retain(|(name, _)| *name != "limit");
            self.parameters.push(("limit", Some(size.to_string())));
            let page = self.next(client).await?;
            let came = u32::try_from(page["items"].as_array().map_or(0, Vec::len));
            left = left.map(|left| left.saturating_sub(came.unwrap_or(u32::MAX)));
            append(&mut whole, page);
            if self.cursor.is_none() || left == Some(0) {
                whole["next_cursor"] = json!(self.cursor);
                return Ok(whole);
            }
        }
    }

    /// One page, or all of them as one.
    pub(crate) async fn read(&mut self, client: &ApiClient, all: bool) -> anyhow::Result<Value> {
        let mut whole = self.next(client).await?;
        while all && self.cursor.is_some() {
            append(&mut whole, self.next(client).await?);
        }
        whole["next_cursor"] = json!(self.cursor);
        Ok(whole)
    }
}

/// Puts the items of a page behind those of the pages before it.
fn append(whole: &mut Value, mut page: Value) {
    if let (Some(items), Some(more)) = (whole["items"].as_array_mut(), page["items"].as_array_mut())
    {
        items.append(more);
    }
}
