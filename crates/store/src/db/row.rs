//! Reading rows: each column is checked, and an error names the one that is corrupt.

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

/// Reads the columns of one row and names the one that is corrupt.
pub(crate) struct RowReader<'a> {
    cells: &'a dyn DbRow,
    table: &'static str,
    row: String,
}

impl<'a> RowReader<'a> {
    /// `key` is the column that names the row in an error.
    pub(crate) fn new(
        cells: &'a dyn DbRow,
        table: &'static str,
        key: &'static str,
    ) -> Result<Self> {
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

    /// Parses a word from a column or from the document in it.
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

    pub(crate) fn maybe_id<I>(
        &self,
        column: &'static str,
        parse: fn(&str) -> Result<I, IdError>,
    ) -> Result<Option<I>> {
        let text = self.maybe_text(column)?;
        text.map(|text| parse(&text)).transpose().map_err(|why| self.bad(column, why))
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

/// The JSON text of a document.
pub(crate) fn json(document: &impl Serialize) -> Result<String> {
    serde_json::to_string(document).map_err(StoreError::unavailable)
}

/// An event that is about to be stored.
#[derive(Serialize)]
struct EventRow<'a> {
    kind: &'a str,
    body: String,
}

/// The kinds and bodies of several events as one text, which the database splits into rows.
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

/// Reads the column `name` of a row that has no other column.
pub(crate) fn read_name(cells: &dyn DbRow) -> Result<String> {
    RowReader::new(cells, "result", "name")?.text("name")
}

/// Reads the column `number` of a row whose column `name` identifies the number.
pub(crate) fn read_number(cells: &dyn DbRow) -> Result<i64> {
    RowReader::new(cells, "result", "name")?.number("number")
}
