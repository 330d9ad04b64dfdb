//! Verifier runs. A run begins and ends with its round.

mod list;

use const_format::concatcp;
use jurat_core::{
    id::{AccountId, RoundId},
    round::OpenRound,
    verifier::run::{
        VerifierRun, VerifierRunEnd, VerifierRunError, VerifierRunFilter, VerifierRunTicket,
        VerifierRunVerdict,
    },
};

use super::{
    documents::ProvenanceDocument,
    verifiers::rows::{USABLE, USABLE_LOCKED, is_system},
};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, json, to_bigint},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Verifier runs.
    pub struct VerifierRunOps = store.verifier_runs();
    reads {
        fn get(account: &AccountId, id: &str) -> Option<VerifierRun> = get;
        /// The account's runs, newest first.
        fn list(account: &AccountId, filter: &VerifierRunFilter) -> Vec<VerifierRun> = list::list;
    }
}

/// A run that begins.
pub(super) struct VerifierRunRow {
    pub(super) account_id: String,
    pub(super) id: String,
    pub(super) verifier_id: String,
    pub(super) version: i64,
    pub(super) purpose: &'static str,
    pub(super) round_id: String,
    pub(super) provenance: String,
    pub(super) inputs_digest: String,
    pub(super) created_at: i64,
    /// Whether it is a run of a system verifier, which is not in the store.
    pub(super) is_system: bool,
}

impl VerifierRunRow {
    pub(super) fn of(round: &OpenRound) -> Result<Option<Self>> {
        let Some(ticket) = &round.run else { return Ok(None) };
        Ok(Some(Self {
            account_id: round.account.to_string(),
            id: ticket.id.clone(),
            verifier_id: ticket.verifier_id.clone(),
            version: i64::from(ticket.version),
            purpose: ticket.purpose.as_str(),
            round_id: round.id.to_string(),
            provenance: json(&ProvenanceDocument::from(&ticket.provenance))?,
            inputs_digest: ticket.inputs_digest.clone(),
            created_at: round.opened_at.micros(),
            is_system: is_system(&ticket.verifier_id),
        }))
    }
}

/// The end of a run.
pub(super) struct VerifierRunEndRow {
    pub(super) id: String,
    pub(super) verdict: &'static str,
    pub(super) error_code: Option<&'static str>,
    pub(super) error_message: Option<String>,
    pub(super) reasoning: Option<String>,
    pub(super) duration_ms: i64,
    pub(super) cost_micros: i64,
}

impl VerifierRunEndRow {
    pub(super) fn new(id: &str, end: VerifierRunEnd) -> Self {
        let verdict = end.word();
        let (error_code, error_message) = end.verdict.err().unzip();
        Self {
            id: id.to_owned(),
            verdict: verdict.as_str(),
            error_code: error_code.map(VerifierRunError::as_str),
            error_message,
            reasoning: end.reasoning,
            duration_ms: to_bigint(end.duration_ms),
            cost_micros: end.cost_micros,
        }
    }
}

const COLUMNS: &str = "\
    id, account_id, verifier_id, version, purpose, verdict, round_id, provenance, \
    inputs_digest, created_at, error_code, error_message, reasoning, duration_ms, cost_micros";
const INTO: &str = "\
    insert into verifier_runs (account_id, verifier_id, id, version, purpose, verdict, round_id, \
    provenance, inputs_digest, created_at)";
const VALUES: &str = "$1, $2, $3, $4, $5, 'running', $6, $7, $8, $9";
const ADD: (&str, &str) = (
    concatcp!(INTO, " select ", VALUES, USABLE),
    concatcp!(INTO, " select ", VALUES, USABLE_LOCKED),
);
const ADD_OF_SYSTEM: &str = concatcp!(INTO, " values (", VALUES, ")");
/// Finds no run if its verifier was deleted in the meantime.
const END: &str = "\
    update verifier_runs set verdict = $1, error_code = $2, error_message = $3, reasoning = $4, \
    duration_ms = $5, cost_micros = $6 \
    where account_id = $7 and id = $8 and verdict = 'running'";
const GET: &str =
    concatcp!("select ", COLUMNS, " from verifier_runs where account_id = $1 and id = $2");

/// Adds a run; `false` if its verifier is gone. The verifier cannot be deleted before the run is
/// committed.
pub(super) async fn add(tx: &mut Tx<'_>, run: &VerifierRunRow) -> Result<bool> {
    let text = if run.is_system { ADD_OF_SYSTEM } else { tx.own(ADD) };
    let args = args![
        &run.account_id,
        &run.verifier_id,
        &run.id,
        run.version,
        run.purpose,
        &run.round_id,
        &run.provenance,
        &run.inputs_digest,
        run.created_at
    ];
    Ok(tx.run(text, args).await? == 1)
}

/// Ends a run with its round.
pub(super) async fn end(tx: &mut Tx<'_>, account: &str, end: &VerifierRunEndRow) -> Result<()> {
    let args = args![
        end.verdict,
        end.error_code,
        end.error_message.as_ref(),
        end.reasoning.as_ref(),
        end.duration_ms,
        end.cost_micros,
        account,
        &end.id
    ];
    tx.run(END, args).await.map(drop)
}

async fn get(tx: &mut Tx<'_>, account: &AccountId, id: &str) -> Result<Option<VerifierRun>> {
    tx.first(GET, args![account, id], read).await
}

fn read(cells: &dyn DbRow) -> Result<VerifierRun> {
    let columns = RowReader::new(cells, "verifier_runs", "id")?;
    let provenance: ProvenanceDocument<'_> = columns.document("provenance")?;
    let ticket = VerifierRunTicket {
        id: columns.text("id")?,
        verifier_id: columns.text("verifier_id")?,
        version: columns.count("version")?,
        purpose: columns.word("purpose")?,
        provenance: provenance.into(),
        inputs_digest: columns.text("inputs_digest")?,
    };
    Ok(VerifierRun {
        account: columns.id("account_id", AccountId::parse)?,
        ticket,
        round: columns.id("round_id", RoundId::parse)?,
        created_at: columns.time("created_at")?,
        end: end_of(&columns)?,
    })
}

fn end_of(columns: &RowReader<'_>) -> Result<Option<VerifierRunEnd>> {
    let verdict = match columns.word("verdict")? {
        VerifierRunVerdict::Running => return Ok(None),
        VerifierRunVerdict::Passed => Ok(true),
        VerifierRunVerdict::Failed => Ok(false),
        VerifierRunVerdict::Error => {
            Err((columns.word("error_code")?, columns.text("error_message")?))
        }
    };
    Ok(Some(VerifierRunEnd {
        verdict,
        reasoning: columns.maybe_text("reasoning")?,
        duration_ms: columns.count("duration_ms")?,
        cost_micros: columns.number("cost_micros")?,
    }))
}
