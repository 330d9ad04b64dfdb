//! `limit` and `cursor` of lists, other query parameters, and empty bodies.

use std::collections::BTreeMap;

use axum::{
    extract::{FromRequestParts, Query},
    http::request::Parts,
    response::Response,
};
use jurat_core::{code::ProblemCode, list::ListPosition};
use jurat_wire::problem::Problem;
use serde_json::Value;

use super::{cursor, encode};

pub(crate) const DEFAULT_LIMIT: u32 = 50;
pub(crate) const LARGEST_LIMIT: u32 = 200;

/// The query of a list: known parameters only.
#[derive(Debug)]
pub(crate) struct ListQuery<const MOST: u32 = LARGEST_LIMIT> {
    pub(crate) limit: u32,
    pub(crate) cursor: Option<String>,
    pub(crate) filters: QueryFilters,
}

/// The parameters of a query, each once.
#[derive(Debug)]
pub(crate) struct QueryFilters(BTreeMap<String, String>);

impl QueryFilters {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Refuses unknown parameters.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(wrong(name, "is not a known parameter")),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for QueryFilters {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let query = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Ok(Query(given)) = query else {
            return Err(encode::problem(&wrong("query", "cannot be read")));
        };
        let mut filters = BTreeMap::new();
        for (name, value) in given {
            if filters.contains_key(&name) {
                return Err(encode::problem(&wrong(&name, "is repeated; leave one out")));
            }
            if value.contains('\0') {
                return Err(encode::problem(&wrong(&name, "contains a NUL character")));
            }
            filters.insert(name, value);
        }
        Ok(Self(filters))
    }
}

impl<S: Send + Sync, const MOST: u32> FromRequestParts<S> for ListQuery<MOST> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let QueryFilters(mut filters) = QueryFilters::from_request_parts(parts, state).await?;
        let limit = match filters.remove("limit") {
            None => DEFAULT_LIMIT,
            Some(text) => match text.parse() {
                Ok(limit) if (1..=MOST).contains(&limit) => limit,
                _ => {
                    let reason = format!("must be a whole number from 1 to {MOST}");
                    return Err(encode::problem(&wrong("limit", &reason)));
                }
            },
        };
        let cursor = filters.remove("cursor");
        Ok(Self { limit, cursor, filters: QueryFilters(filters) })
    }
}

impl<const MOST: u32> ListQuery<MOST> {
    /// Refuses unknown parameters.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        self.filters.only(known)
    }

    /// The position in the list that the cursor leads to.
    pub(crate) fn position<const N: usize>(&self) -> Result<Option<[String; N]>, Problem> {
        self.cursor.as_deref().map(cursor::read).transpose()
    }

    /// The position in a list that is ordered by one text.
    pub(crate) fn text_position(&self) -> Result<Option<String>, Problem> {
        Ok(self.position()?.map(|[text]| text))
    }

    /// The position in a list that is ordered by time.
    pub(crate) fn time_position(&self) -> Result<Option<ListPosition>, Problem> {
        self.position()?.map(cursor::time_position).transpose()
    }

    /// The limit and one more, which shows whether there is another page.
    pub(crate) fn with_one_more(&self) -> u32 {
        self.limit + 1
    }

    /// Cuts the list to the limit; the cursor leads to the last one shown, if there is more.
    pub(crate) fn cut<T, const N: usize>(
        &self,
        items: &mut Vec<T>,
        position_of: impl Fn(&T) -> [String; N],
    ) -> Option<String> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        if items.len() <= limit {
            return None;
        }
        items.truncate(limit);
        items.last().map(|last| cursor::write(&position_of(last)))
    }
}

pub(crate) fn wrong(field: &str, reason: &str) -> Problem {
    Problem::new(ProblemCode::ValidationError, format!("`{field}` {reason}")).at(field)
}

/// Requires an empty body.
pub(crate) fn nothing(body: &Value) -> Result<(), Problem> {
    match body.as_object() {
        Some(members) if members.is_empty() => Ok(()),
        _ => Err(wrong("body", "must be empty, or an empty object")),
    }
}
