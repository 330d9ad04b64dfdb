//! The cases of a measurement: given, the version's own examples, those of before, or attacks.

use std::collections::BTreeMap;

use jurat_core::{
    attack::{self, Attack, Family},
    caller::Caller,
    canonical::{canonical, digest, sha256_hex},
    run::Purpose,
    verifier::{Config, InputError, VerifierRef, VerifierVersion, Which},
    workflow::VerifierRole,
};
use jurat_store::Measurement;
use serde_json::{Value, json};

use super::{MeasureReport, MeasureRequest, MeasuredCase};
use crate::{Engine, EngineError};

/// More cases are several measurements.
const MOST_CASES: usize = 1_000;
/// How many digits of its digest name a case that has no name.
const NAME_DIGITS: usize = 12;

/// What a version is measured on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Its own calibration examples, each without itself.
    Own,
    Given(Vec<Labelled>),
    /// The cases of the newest test of the version before.
    Previous,
    /// Known injections; of these families, or of all when empty.
    Attacks(Vec<String>),
}

impl Data {
    pub(super) const fn purpose(&self) -> Purpose {
        match self {
            Self::Own | Self::Given(_) | Self::Previous => Purpose::Test,
            Self::Attacks(_) => Purpose::Attack,
        }
    }
}

/// A case whose answer is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    /// Tells it from the others, in every version that is measured on it.
    pub id: String,
    pub inputs: BTreeMap<String, String>,
    pub media_url: Option<String>,
    pub passed: bool,
    /// Of an attack.
    pub family: Option<Family>,
}

impl Labelled {
    /// A case without a name of its own goes by its content.
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

/// Tells whether two measurements used the same cases, in whatever order.
pub(super) fn data_digest<'a>(cases: impl Iterator<Item = &'a Labelled>) -> String {
    let mut documents: Vec<Value> = cases.map(Labelled::document).collect();
    documents.sort_by_key(canonical);
    digest(&canonical(&Value::Array(documents)))
}

impl Engine {
    pub(super) async fn cases(
        &self,
        version: &VerifierVersion,
        data: &Data,
    ) -> Result<Vec<Labelled>, EngineError> {
        let cases = match data {
            Data::Own => own(&version.config),
            Data::Given(cases) => cases.clone(),
            Data::Previous => self.cases_before(version).await?,
            Data::Attacks(families) => attacks(&version.config, families)?,
        };
        check(&version.config, &cases)?;
        Ok(cases)
    }

    async fn cases_before(&self, version: &VerifierVersion) -> Result<Vec<Labelled>, EngineError> {
        let nothing = || wrong("cases", "is required: the previous version was not tested");
        let Some(before) = version.version.checked_sub(1).filter(|before| 0 < *before) else {
            return Err(nothing());
        };
        let (account, id) = (&version.verifier.account, &version.verifier.id);
        let measured = self.inner.store.measurement_get(account, id, before, Purpose::Test).await?;
        measured.and_then(|measured| read(&measured)).ok_or_else(nothing)
    }

    /// The version before with its verdicts on the same cases, where they are known or asked for.
    pub(super) async fn measured_before(
        &self,
        caller: &Caller,
        version: &VerifierVersion,
        request: &MeasureRequest,
        cases: &[Labelled],
    ) -> Result<Option<(u32, Vec<MeasuredCase>)>, EngineError> {
        let Some(before) = version.version.checked_sub(1).filter(|before| 0 < *before) else {
            return Ok(None);
        };
        let (account, id) = (&version.verifier.account, &version.verifier.id);
        let store = &self.inner.store;
        let measured = store.measurement_get(account, id, before, Purpose::Test).await?;
        // What the judge of the version said tells nothing of others.
        let same = measured
            .filter(|it| request.has_no_judges() && it.data_digest == data_digest(cases.iter()));
        if let Some(known) = same.as_ref().and_then(MeasureReport::cases_of) {
            return Ok(Some((before, known)));
        }
        if !request.compare {
            return Ok(None);
        }
        let which = Which::Id(id.clone());
        let reference = VerifierRef { which, version: Some(before) };
        let earlier = self.verifier_reached(caller, &reference, VerifierRole::Tune).await?;
        if check(&earlier.config, cases).is_err() {
            // It reads other fields, so that there is nothing to compare.
            return Ok(None);
        }
        let report = self.judge_cases(caller, &earlier, request, (cases, None)).await?;
        self.keep(version, &report).await?;
        Ok(Some((before, report.cases)))
    }
}

fn own(config: &Config) -> Vec<Labelled> {
    let case = |example: &jurat_core::verifier::Example| {
        Labelled::new(None, example.inputs.clone(), example.media_url.clone(), example.passed)
    };
    config.examples.iter().map(case).collect()
}

fn attacks(config: &Config, families: &[String]) -> Result<Vec<Labelled>, EngineError> {
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
            // A text that a run may not have, such as one that nobody sees, is refused before any
            // judge could be fooled by it.
            if config.check_inputs(&one.inputs, media_url.as_deref()).is_err() {
                continue;
            }
            cases.push(Labelled {
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

fn family(name: &str) -> Result<Family, EngineError> {
    name.parse().map_err(|()| {
        let known: Vec<&str> = Family::ALL.iter().map(|family| family.as_str()).collect();
        let name: String = name.chars().take(60).collect();
        wrong("families", &format!("has `{name}`; known are: {}", known.join(", ")))
    })
}

fn check(config: &Config, cases: &[Labelled]) -> Result<(), EngineError> {
    if cases.is_empty() {
        return Err(wrong("cases", "is required: the version has no usable examples of its own"));
    }
    if MOST_CASES < cases.len() {
        return Err(wrong("cases", &format!("must be at most {MOST_CASES}")));
    }
    for (at, case) in cases.iter().enumerate() {
        if let Some(first) = cases[..at].iter().position(|other| other.id == case.id) {
            let id: String = case.id.chars().take(60).collect();
            // Without names of their own, cases go by their content.
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

fn read(measured: &Measurement) -> Option<Vec<Labelled>> {
    let cases = MeasureReport::cases_of(measured)?;
    let labelled = |case: MeasuredCase| {
        Labelled::new(Some(case.id), case.inputs, case.media_url, case.expected)
    };
    Some(cases.into_iter().map(labelled).collect())
}

fn wrong(field: &str, problem: &str) -> EngineError {
    EngineError::Input(InputError { field: field.to_owned(), problem: problem.to_owned() })
}
