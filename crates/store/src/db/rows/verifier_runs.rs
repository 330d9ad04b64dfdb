//! Rows of verifier runs.

use jurat_core::{
    id::{AccountId, RoundId, uuid},
    round::OpenRound,
    verifier::run::{
        VerifierRun, VerifierRunEnd, VerifierRunError, VerifierRunTicket, VerifierRunVerdict,
    },
};

use super::{
    DbRow, RowReader, documents::ProvenanceDocument, json, registry::is_system, rounds::AFTER_ALL,
    to_bigint,
};
use crate::{Result, VerifierRunFilter};

/// A run that starts.
pub(crate) struct VerifierRunRow {
    pub(crate) account_id: String,
    pub(crate) id: String,
    pub(crate) verifier_id: String,
    pub(crate) version: i64,
    pub(crate) purpose: &'static str,
    pub(crate) round_id: String,
    pub(crate) provenance: String,
    pub(crate) inputs_digest: String,
    pub(crate) created_at: i64,
    /// Whether its verifier is built in.
    pub(crate) is_system: bool,
}

impl VerifierRunRow {
    pub(crate) fn of(round: &OpenRound) -> Result<Option<Self>> {
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

/// How a run ends.
pub(crate) struct VerifierRunEndRow {
    pub(crate) id: String,
    pub(crate) verdict: &'static str,
    pub(crate) error_code: Option<&'static str>,
    pub(crate) error_message: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) duration_ms: i64,
    pub(crate) cost_micros: i64,
}

impl VerifierRunEndRow {
    pub(crate) fn new(id: &str, end: VerifierRunEnd) -> Self {
        let (verdict, error) = match end.verdict {
            Ok(true) => (VerifierRunVerdict::Passed, None),
            Ok(false) => (VerifierRunVerdict::Failed, None),
            Err(error) => (VerifierRunVerdict::Error, Some(error)),
        };
        let (error_code, error_message) = error.unzip();
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

pub(crate) fn read_verifier_run(cells: &impl DbRow) -> Result<VerifierRun> {
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

fn end_of<C: DbRow>(columns: &RowReader<'_, C>) -> Result<Option<VerifierRunEnd>> {
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

/// The range of identifiers of a list, without the upper end. They start with their time, so a time
/// is an identifier as well.
pub(crate) fn id_range(filter: &VerifierRunFilter) -> (String, String) {
    let until = filter.until.map_or_else(|| AFTER_ALL.to_owned(), |until| uuid(until, 0));
    let below = filter.before.as_ref().map_or(until.clone(), |before| until.min(before.clone()));
    let from = filter.since.map(|since| uuid(since, 0)).unwrap_or_default();
    (below, from)
}
