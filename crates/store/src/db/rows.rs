//! Converts between rows and domain types, and checks rows when they are read.

pub(crate) mod checkup;
pub(crate) mod documents;
pub(crate) mod idempotency;
pub(crate) mod installation;
pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod registry;
pub(crate) mod rounds;
pub(crate) mod verifier_runs;

use std::{error::Error, str::FromStr};

use jurat_core::{id::IdError, time::Timestamp};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Result, StoreError};

type CellError = Box<dyn Error + Send + Sync>;

/// A row of either database.
pub(crate) trait DbRow {
    fn text(&self, column: &str) -> Result<Option<String>, CellError>;
    fn number(&self, column: &str) -> Result<Option<i64>, CellError>;
    fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>, CellError>;
}

impl<C: DbRow + ?Sized> DbRow for &C {
    fn text(&self, column: &str) -> Result<Option<String>, CellError> {
        (**self).text(column)
    }

    fn number(&self, column: &str) -> Result<Option<i64>, CellError> {
        (**self).number(column)
    }

    fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>, CellError> {
        (**self).bytes(column)
    }
}

/// Reads the columns of one row and names a corrupt one.
pub(crate) struct RowReader<'a, C> {
    cells: &'a C,
    table: &'static str,
    row: String,
}

impl<'a, C: DbRow> RowReader<'a, C> {
    /// `key` is the column that names the row in an error.
    pub(crate) fn new(cells: &'a C, table: &'static str, key: &'static str) -> Result<Self> {
        let mut columns = Self { cells, table, row: "?".to_owned() };
        columns.row = columns.text(key)?;
        Ok(columns)
    }

    pub(crate) fn bad(&self, column: &'static str, why: impl Into<CellError>) -> StoreError {
        StoreError::corrupt((self.table, column), &self.row, why)
    }

    pub(crate) fn maybe_text(&self, column: &'static str) -> Result<Option<String>> {
        self.cells.text(column).map_err(|why| self.bad(column, why))
    }

    pub(crate) fn text(&self, column: &'static str) -> Result<String> {
        self.maybe_text(column)?.ok_or_else(|| self.bad(column, "it is null"))
    }

    pub(crate) fn maybe_number(&self, column: &'static str) -> Result<Option<i64>> {
        self.cells.number(column).map_err(|why| self.bad(column, why))
    }

    pub(crate) fn number(&self, column: &'static str) -> Result<i64> {
        self.maybe_number(column)?.ok_or_else(|| self.bad(column, "it is null"))
    }

    pub(crate) fn bytes(&self, column: &'static str) -> Result<Vec<u8>> {
        let bytes = self.cells.bytes(column).map_err(|why| self.bad(column, why))?;
        bytes.ok_or_else(|| self.bad(column, "it is null"))
    }

    pub(crate) fn count<N: TryFrom<i64, Error: Error + Send + Sync + 'static>>(
        &self,
        column: &'static str,
    ) -> Result<N> {
        N::try_from(self.number(column)?).map_err(|why| self.bad(column, why))
    }

    pub(crate) fn maybe_count<N: TryFrom<i64, Error: Error + Send + Sync + 'static>>(
        &self,
        column: &'static str,
    ) -> Result<Option<N>> {
        let number = self.maybe_number(column)?;
        number.map(N::try_from).transpose().map_err(|why| self.bad(column, why))
    }

    pub(crate) fn maybe_time(&self, column: &'static str) -> Result<Option<Timestamp>> {
        Ok(self.maybe_number(column)?.map(Timestamp::from_micros))
    }

    pub(crate) fn time(&self, column: &'static str) -> Result<Timestamp> {
        Ok(Timestamp::from_micros(self.number(column)?))
    }

    pub(crate) fn maybe_word<W: FromStr>(&self, column: &'static str) -> Result<Option<W>> {
        self.maybe_text(column)?.map(|text| self.parse(column, &text)).transpose()
    }

    pub(crate) fn word<W: FromStr>(&self, column: &'static str) -> Result<W> {
        self.parse(column, &self.text(column)?)
    }

    /// Parses a word in a column or in its document.
    pub(crate) fn parse<W: FromStr>(&self, column: &'static str, text: &str) -> Result<W> {
        text.parse().map_err(|_| self.bad(column, format!("`{text}` is not a known word")))
    }

    pub(crate) fn id<I>(
        &self,
        column: &'static str,
        parse: fn(&str) -> Result<I, IdError>,
    ) -> Result<I> {
        parse(&self.text(column)?).map_err(|why| self.bad(column, why))
    }

    pub(crate) fn document<D: DeserializeOwned>(&self, column: &'static str) -> Result<D> {
        serde_json::from_str(&self.text(column)?).map_err(|why| self.bad(column, why))
    }

    pub(crate) fn maybe_document<D: DeserializeOwned>(
        &self,
        column: &'static str,
    ) -> Result<Option<D>> {
        let text = self.maybe_text(column)?;
        let read = |text: String| serde_json::from_str(&text).map_err(|why| self.bad(column, why));
        text.map(read).transpose()
    }
}

/// The text of a document.
pub(crate) fn json(document: &impl Serialize) -> Result<String> {
    serde_json::to_string(document).map_err(StoreError::unavailable)
}

/// An event on its way into the database.
#[derive(Serialize)]
struct EventRow<'a> {
    kind: &'a str,
    body: String,
}

/// The kinds and texts of several events, which the database splits again.
pub(crate) fn event_texts<'a>(
    events: impl Iterator<Item = Result<(&'a str, String)>>,
) -> Result<String> {
    let texts = events.map(|event| event.map(|(kind, body)| EventRow { kind, body }));
    json(&texts.collect::<Result<Vec<_>>>()?)
}

/// Numbers beyond the range of the databases are stored as the largest number.
pub(crate) fn to_bigint(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
