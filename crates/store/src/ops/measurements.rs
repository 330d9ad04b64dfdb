//! Measurements of verifier versions: tests and attacks.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    verifier::{registry::Measurement, run::VerifierRunPurpose},
};
use serde_json::Value;

use super::verifiers::rows::{USABLE, USABLE_LOCKED, is_system, verifier_gone};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, json},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Measurements of verifier versions.
    pub struct MeasurementOps = store.measurements();
    reads {
        /// The newest own measurement of a version for one purpose, with its cases.
        fn newest(of: &VersionKey, purpose: &VerifierRunPurpose) -> Option<Measurement> = newest;
        /// The newest own measurement of a version for each purpose, and its newest tests with
        /// other judges, without their cases.
        fn list(of: &VersionKey) -> Vec<Measurement> = list;
    }
    changes {
        /// Stores a measurement of a version.
        fn add(account: &AccountId, measurement: &Measurement) -> () = add;
    }
}

/// A version of a verifier, and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionKey {
    pub account: AccountId,
    pub verifier_id: String,
    pub version: u32,
}

const COLUMNS: &str = "id, verifier_id, version, purpose, data_digest, document, created_at";
const INTO: &str = "\
    insert into verifier_measurements (account_id, verifier_id, id, version, purpose, \
    data_digest, document, cases, created_at)";
const VALUES: &str = "$1, $2, $3, $4, $5, $6, $7, $8, $9";
const ADD: (&str, &str) = (
    concatcp!(INTO, " select ", VALUES, USABLE),
    concatcp!(INTO, " select ", VALUES, USABLE_LOCKED),
);
const ADD_OF_SYSTEM: &str = concatcp!(INTO, " values (", VALUES, ")");

const OF_VERSION: &str = " from verifier_measurements \
    where account_id = $1 and verifier_id = $2 and version = $3 and purpose = ";
const IS_OWN: &str = " and is_own = 1";
const IS_OTHER: &str = " and is_own = 0";
const NEWEST: &str =
    concatcp!("select ", COLUMNS, ", cases", OF_VERSION, "$4", IS_OWN, " order by id desc limit 1");
const PART: &str = concatcp!("select * from (select ", COLUMNS, OF_VERSION);
/// The newest own test and attack, then tests with other judges, newest first.
const LIST: &str = concatcp!(
    PART,
    "'test'",
    IS_OWN,
    " order by id desc limit 1) as newest union all ",
    PART,
    "'attack'",
    IS_OWN,
    " order by id desc limit 1) as newest union all ",
    PART,
    "'test'",
    IS_OTHER,
    " order by id desc limit 20) as newest order by purpose desc, id desc"
);

async fn add(tx: &mut Tx<'_>, account: &AccountId, measurement: &Measurement) -> Result<()> {
    let is_system = is_system(&measurement.verifier_id);
    let text = if is_system { ADD_OF_SYSTEM } else { tx.own(ADD) };
    let args = args![
        account,
        &measurement.verifier_id,
        &measurement.id,
        measurement.version,
        measurement.purpose.as_str(),
        &measurement.data_digest,
        json(&measurement.document)?,
        json(&measurement.cases)?,
        measurement.at
    ];
    if tx.run(text, args).await? == 0 { Err(verifier_gone()) } else { Ok(()) }
}

async fn newest(
    tx: &mut Tx<'_>,
    of: &VersionKey,
    purpose: &VerifierRunPurpose,
) -> Result<Option<Measurement>> {
    let args = args![&of.account, &of.verifier_id, of.version, purpose.as_str()];
    tx.first(NEWEST, args, read_with_cases).await
}

async fn list(tx: &mut Tx<'_>, of: &VersionKey) -> Result<Vec<Measurement>> {
    tx.all(LIST, args![&of.account, &of.verifier_id, of.version], read).await
}

fn read_with_cases(cells: &dyn DbRow) -> Result<Measurement> {
    let cases = RowReader::new(cells, "verifier_measurements", "id")?.document("cases")?;
    Ok(Measurement { cases, ..read(cells)? })
}

fn read(cells: &dyn DbRow) -> Result<Measurement> {
    let columns = RowReader::new(cells, "verifier_measurements", "id")?;
    Ok(Measurement {
        id: columns.text("id")?,
        verifier_id: columns.text("verifier_id")?,
        version: columns.count("version")?,
        purpose: columns.word("purpose")?,
        data_digest: columns.text("data_digest")?,
        document: columns.document("document")?,
        cases: Value::Null,
        at: columns.time("created_at")?,
    })
}
