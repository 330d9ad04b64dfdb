//! Collects the cases of a measurement: given ones, the version's own examples, earlier ones, or
//! attacks.

use std::collections::BTreeMap;

use jurat_core::{
    account::caller::Caller,
    canonical::{canonical, digest, sha256_hex},
    verifier::{
        InputError, VerifierConfig, VerifierRef, VerifierSelector, VerifierVersion,
        attack::{self, Attack, AttackFamily},
        registry::Measurement,
        run::VerifierRunPurpose,
    },
    workflow::VerifierRole,
};
use jurat_store::{Behalf, VersionKey};
use serde_json::{Value, json};

use super::{MeasureReport, MeasureRequest, MeasuredCase, parallel::WatchedCases};
use crate::{Engine, EngineError};

/// More cases need several measurements.
const MOST_CASES: usize = 1_000;
/// How many digits of its digest name an unnamed case.
const NAME_DIGITS: usize = 12;

/// The cases that a version is measured on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeasureData {
    /// Its own calibration examples, each hidden from its own judgment.
    Own,
    Given(Vec<ExpectedCase>),
    /// The cases of the newest test of the previous version.
    Previous,
    /// Known injections; of these families, or of all if empty.
    Attacks(Vec<String>),
}

impl MeasureData {
    pub(super) const fn purpose(&self) -> VerifierRunPurpose {
        match self {
            Self::Own | Self::Given(_) | Self::Previous => VerifierRunPurpose::Test,
            Self::Attacks(_) => VerifierRunPurpose::Attack,
        }
    }
}

/// A case with a known answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedCase {
    /// Identifies the case in every version that is measured on it.
    pub id: String,
    pub inputs: BTreeMap<String, String>,
    pub media_url: Option<String>,
    pub passed: bool,
    /// Only for an attack.
    pub family: Option<AttackFamily>,
}

impl ExpectedCase {
    /// A case without a name gets one from its content.
    pub fn new(
        id: Option<String>,
        inputs: BTreeMap<String, String>,
        media_url: Option<String>,
        passed: bool,
    ) -> Self {
        let content = json!({ "inputs": inputs, "media_url": media_url });
        let by_content = || sha256_hex(&canonical(&content))[..NAME_DIGITS].to_owned();
        Self { id: id.unwrap_or_else(by_content), inputs, media_url, passed, family: None }
    }

    pub(super) fn document(&self) -> Value {
        json!({
            "id": self.id,
            "inputs": self.inputs,
            "media_url": self.media_url,
            "passed": self.passed,
        })
    }

    /// The calibration example that is this case. The judge must not see the answer.
    pub(super) fn shown_as(&self, version: &VerifierVersion) -> Option<usize> {
        version.config.examples.iter().position(|example| {
            example.inputs == self.inputs && example.media_url == self.media_url
        })
    }
}

/// Identifies the set of cases, in any order.
pub(super) fn data_digest<'a>(cases: impl Iterator<Item = &'a ExpectedCase>) -> String {
    let mut documents: Vec<Value> = cases.map(ExpectedCase::document).collect();
    documents.sort_by_key(canonical);
    digest(&canonical(&Value::Array(documents)))
}

impl Engine {
    pub(super) async fn cases(
        &self,
        version: &VerifierVersion,
        data: &MeasureData,
    ) -> Result<Vec<ExpectedCase>, EngineError> {
        let cases = match data {
            MeasureData::Own => own_cases(&version.config),
            MeasureData::Given(cases) => cases.clone(),
            MeasureData::Previous => self.cases_before(version).await?,
            MeasureData::Attacks(families) => attack_cases(&version.config, families)?,
        };
        check(&version.config, &cases)?;
        Ok(cases)
    }

    async fn cases_before(
        &self,
        version: &VerifierVersion,
    ) -> Result<Vec<ExpectedCase>, EngineError> {
        let nothing = || wrong("cases", "is required: the previous version was not tested");
        let Some(before) = version.version.checked_sub(1).filter(|before| 0 < *before) else {
            return Err(nothing());
        };
        let (account, id) = (&version.verifier.account, &version.verifier.id);
        let measured = self
            .inner
            .store
            .measurements()
            .newest(
                &Behalf::from(account),
                &VersionKey {
                    account: account.clone(),
                    verifier_id: id.to_owned(),
                    version: before,
                },
                &VerifierRunPurpose::Test,
            )
            .await?;
        measured.and_then(|measured| read(&measured)).ok_or_else(nothing)
    }

    /// The previous version with its verdicts on the same cases, if they are known or requested.
    pub(super) async fn measured_before(
        &self,
        caller: &Caller,
        version: &VerifierVersion,
        request: &MeasureRequest,
        cases: &[ExpectedCase],
    ) -> Result<Option<(u32, Vec<MeasuredCase>)>, EngineError> {
        let Some(before) = version.version.checked_sub(1).filter(|before| 0 < *before) else {
            return Ok(None);
        };
        let (account, id) = (&version.verifier.account, &version.verifier.id);
        let store = &self.inner.store;
        let measured = store
            .measurements()
            .newest(
                &Behalf::from(account),
                &VersionKey {
                    account: account.clone(),
                    verifier_id: id.to_owned(),
                    version: before,
                },
                &VerifierRunPurpose::Test,
            )
            .await?;
        // The verdicts of the version's own judge say nothing about other judges.
        let same = measured
            .filter(|it| request.has_no_judges() && it.data_digest == data_digest(cases.iter()));
        if let Some(known) = same.as_ref().and_then(MeasureReport::cases_of) {
            return Ok(Some((before, known)));
        }
        if !request.compare {
            return Ok(None);
        }
        let which = VerifierSelector::Id(id.clone());
        let reference = VerifierRef { which, version: Some(before) };
        let earlier = self.verifier_reached(caller, &reference, VerifierRole::Tune).await?;
        if check(&earlier.config, cases).is_err() {
            // It reads other fields, so there is nothing to compare.
            return Ok(None);
        }
        let watched = WatchedCases { cases, watcher: None };
        let report = self.judge_cases(caller, &earlier, request, watched).await?;
        self.store_measurement(version, &report).await?;
        Ok(Some((before, report.cases)))
    }
}

fn own_cases(config: &VerifierConfig) -> Vec<ExpectedCase> {
    let case = |example: &jurat_core::verifier::VerifierExample| {
        ExpectedCase::new(None, example.inputs.clone(), example.media_url.clone(), example.passed)
    };
    config.examples.iter().map(case).collect()
}

fn attack_cases(
    config: &VerifierConfig,
    families: &[String],
) -> Result<Vec<ExpectedCase>, EngineError> {
    let families = families.iter().map(|name| family(name)).collect::<Result<Vec<_>, _>>()?;
    if config.fields.is_empty() {
        return Err(wrong("verifier_id", "has no text field that could contain an injection"));
    }
    let failing = config.examples.iter().find(|example| !example.passed);
    let base = failing.map(|example| example.inputs.clone()).unwrap_or_default();
    let media_url = config.examples.iter().find_map(|example| example.media_url.clone());
    let is_meant = |attack: &&Attack| families.is_empty() || families.contains(&attack.family);
    let mut cases = Vec::new();
    for attack in attack::attacks().iter().filter(is_meant) {
        for one in attack::tries(attack, &config.fields, &base) {
            // A text that a run refuses, such as an invisible one, never reaches a judge that it
            // could fool.
            if config.check_inputs(&one.inputs, media_url.as_deref()).is_err() {
                continue;
            }
            cases.push(ExpectedCase {
                id: one.id,
                inputs: one.inputs,
                media_url: media_url.clone(),
                passed: false,
                family: Some(attack.family),
            });
        }
    }
    Ok(cases)
}

fn family(name: &str) -> Result<AttackFamily, EngineError> {
    name.parse().map_err(|()| {
        let known: Vec<&str> = AttackFamily::ALL.iter().map(|family| family.as_str()).collect();
        let name: String = name.chars().take(60).collect();
        wrong("families", &format!("has `{name}`; known are: {}", known.join(", ")))
    })
}

fn check(config: &VerifierConfig, cases: &[ExpectedCase]) -> Result<(), EngineError> {
    if cases.is_empty() {
        return Err(wrong("cases", "is required: the version has no usable examples of its own"));
    }
    if MOST_CASES < cases.len() {
        return Err(wrong("cases", &format!("must be at most {MOST_CASES}")));
    }
    for (at, case) in cases.iter().enumerate() {
        if let Some(first) = cases[..at].iter().position(|other| other.id == case.id) {
            let id: String = case.id.chars().take(60).collect();
            // Unnamed cases are identified by their content.
            let problem = if cases[first].inputs == case.inputs {
                format!("is the same case as `cases.{first}`; leave one out, or give each an `id`")
            } else {
                format!(
                    "has the `id` `{id}`, which `cases.{first}` also has; give each case its own"
                )
            };
            return Err(wrong(&format!("cases.{at}"), &problem));
        }
        let fits = config.check_inputs(&case.inputs, case.media_url.as_deref());
        fits.map_err(|error| {
            EngineError::Input(InputError { field: format!("cases.{at}.{}", error.field), ..error })
        })?;
    }
    Ok(())
}

fn read(measured: &Measurement) -> Option<Vec<ExpectedCase>> {
    let cases = MeasureReport::cases_of(measured)?;
    let labelled = |case: MeasuredCase| {
        ExpectedCase::new(Some(case.id), case.inputs, case.media_url, case.expected)
    };
    Some(cases.into_iter().map(labelled).collect())
}

fn wrong(field: &str, problem: &str) -> EngineError {
    EngineError::invalid(field, problem)
}
