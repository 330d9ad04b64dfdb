//! Rows of verifiers, their versions and measurements, and of cached verdicts.

use jurat_core::{
    account::full_name,
    id::AccountId,
    verifier::{
        SYSTEM_PREFIX, Verifier, VerifierConfig, VerifierStanding, VerifierVersion,
        registry::{Measurement, VersionSummary},
    },
};
use serde_json::Value;

use super::{DbRow, RowReader, json};
use crate::{
    CachedVerdict, DeployOutcome, NewVerifierVersion, Result, StoreError, ops::workflows::label,
};

/// A deploy with its configuration as text.
pub(crate) struct DeployRow {
    pub(crate) deploy: NewVerifierVersion,
    pub(crate) config: String,
    pub(crate) config_hash: String,
}

impl DeployRow {
    pub(crate) fn new(deploy: &NewVerifierVersion) -> Result<Self> {
        Ok(Self {
            deploy: deploy.clone(),
            config: json(&deploy.config.document())?,
            config_hash: deploy.config.hash(),
        })
    }

    /// The verifier after the deploy, or why there is none.
    pub(crate) fn next(&self, found: Option<Verifier>) -> Result<Verifier, Box<DeployOutcome>> {
        let deploy = &self.deploy;
        let Some(found) = found else {
            return if deploy.expected_token.is_some() {
                Err(Box::new(DeployOutcome::TokenUnexpected))
            } else {
                Ok(self.first())
            };
        };
        if found.standing == VerifierStanding::Revoked {
            return Err(Box::new(DeployOutcome::NameRevoked));
        }
        match &deploy.expected_token {
            None => Err(Box::new(DeployOutcome::TokenMissing { current: found.version_token })),
            Some(given) if *given != found.version_token => {
                Err(Box::new(DeployOutcome::TokenStale { current: found.version_token }))
            }
            Some(_) => Ok(Verifier {
                description: deploy.description.clone(),
                current_version: found.current_version.saturating_add(1),
                version_token: deploy.new_token.clone(),
                updated_at: deploy.at,
                ..found
            }),
        }
    }

    fn first(&self) -> Verifier {
        let deploy = &self.deploy;
        Verifier {
            account: deploy.account.clone(),
            id: deploy.new_id.clone(),
            name: deploy.name.clone(),
            description: deploy.description.clone(),
            current_version: 1,
            version_token: deploy.new_token.clone(),
            standing: VerifierStanding::Active,
            created_at: deploy.at,
            updated_at: deploy.at,
        }
    }
}

/// A verifier of another owner that the caller may tune.
pub(crate) struct TunableVerifier {
    pub(crate) verifier: Verifier,
    is_accepted: bool,
    full_name: String,
}

pub(crate) fn read_tuned(cells: &impl DbRow) -> Result<TunableVerifier> {
    let columns = RowReader::new(cells, "verifiers", "id")?;
    let verifier = read_verifier(cells)?;
    let owner = label(columns.maybe_text("owner_handle")?, verifier.account.as_str());
    Ok(TunableVerifier {
        is_accepted: columns.text("via")?.starts_with("2 1 "),
        full_name: full_name(&owner, &verifier.name),
        verifier,
    })
}

/// The verifier of another owner that a deploy means, among several with one name: the accepted one
/// with its token. Another token is not revealed, because the deploy would go to another owner.
pub(crate) fn tuned(
    shared: Vec<TunableVerifier>,
    token: &str,
) -> Result<Option<Verifier>, Box<DeployOutcome>> {
    if shared.is_empty() {
        return Ok(None);
    }
    let is_meant = |it: &TunableVerifier| it.is_accepted && it.verifier.version_token == token;
    let names = shared.iter().map(|it| it.full_name.clone()).collect();
    match shared.into_iter().find(is_meant) {
        Some(one) => Ok(Some(one.verifier)),
        None => Err(Box::new(DeployOutcome::TokenOfNone(names))),
    }
}

/// Whether a verifier is a built-in one, which is not in the store.
pub(crate) fn is_system(verifier_id: &str) -> bool {
    verifier_id.starts_with(SYSTEM_PREFIX)
}

/// Data of a verifier cannot be stored without it.
pub(crate) fn verifier_gone() -> StoreError {
    StoreError::conflict("the verifier no longer exists")
}

/// Greater than any version.
pub(crate) fn version_below(before: Option<u32>) -> i64 {
    before.map_or(i64::MAX, i64::from)
}

pub(crate) fn read_verifier(cells: &impl DbRow) -> Result<Verifier> {
    let columns = RowReader::new(cells, "verifiers", "id")?;
    Ok(Verifier {
        account: columns.id("account_id", AccountId::parse)?,
        id: columns.text("id")?,
        name: columns.text("name")?,
        description: columns.text("description")?,
        current_version: columns.count("current_version")?,
        version_token: columns.text("version_token")?,
        standing: columns.word("standing")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}

pub(crate) fn read_version(cells: &impl DbRow) -> Result<VerifierVersion> {
    let columns = RowReader::new(cells, "verifier_versions", "id")?;
    let document: Value = columns.document("config")?;
    let config = VerifierConfig::read(&document);
    Ok(VerifierVersion {
        verifier: read_verifier(cells)?,
        version: columns.count("version")?,
        description: columns.text("version_description")?,
        config: config.ok_or_else(|| columns.bad("config", "it is no configuration"))?,
        config_hash: columns.text("config_hash")?,
        deployed_at: columns.time("deployed_at")?,
    })
}

pub(crate) fn read_version_summary(cells: &impl DbRow) -> Result<VersionSummary> {
    let columns = RowReader::new(cells, "verifier_versions", "verifier_id")?;
    Ok(VersionSummary {
        version: columns.count("version")?,
        description: columns.text("description")?,
        config_hash: columns.text("config_hash")?,
        deployed_at: columns.time("deployed_at")?,
    })
}

/// A measurement with its cases.
pub(crate) fn read_measured(cells: &impl DbRow) -> Result<Measurement> {
    let cases = RowReader::new(cells, "verifier_measurements", "id")?.document("cases")?;
    Ok(Measurement { cases, ..read_measurement(cells)? })
}

pub(crate) fn read_measurement(cells: &impl DbRow) -> Result<Measurement> {
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

pub(crate) fn read_cached_verdict(cells: &impl DbRow) -> Result<CachedVerdict> {
    let columns = RowReader::new(cells, "known_verdicts", "digest")?;
    Ok(CachedVerdict {
        digest: columns.text("digest")?,
        document: columns.document("document")?,
        at: columns.time("created_at")?,
    })
}
