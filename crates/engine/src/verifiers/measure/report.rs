//! The report of a measurement: the statistics, each case, and the changes since the previous
//! version.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    round::replica::{Label, Replica},
    time::Timestamp,
    verifier::{
        VerifierVersion,
        attack::{AttackFamily, AttackResult, AttackStats},
        calibration::{self, CalibrationCase, CalibrationStats, Rate, VerdictFlip},
        registry::Measurement,
        run::{VerifierRunError, VerifierRunPurpose},
    },
};
use serde_json::{Value, json};

use super::{
    MeasureRequest,
    cases::{ExpectedCase, MeasureData, data_digest},
};
use crate::{VerifierRunView, rounds::seats::JUDGE_PREFIX};

/// A case, and the verdicts of the judges.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredCase {
    pub id: String,
    pub inputs: BTreeMap<String, String>,
    pub media_url: Option<String>,
    pub family: Option<AttackFamily>,
    pub expected: bool,
    /// `None` if there is no verdict.
    pub got: Option<bool>,
    pub reasoning: Option<String>,
    pub error: Option<(VerifierRunError, String)>,
    /// `None` if the case was not judged.
    pub run_id: Option<String>,
    pub cost_micros: i64,
    /// The verdict of each judge.
    pub by_judge: Vec<(String, Option<bool>)>,
}

/// The changes since the previous version, on the same cases.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionComparison {
    pub with_version: u32,
    pub flips: Vec<VerdictFlip>,
    /// Whether more cases are wrong than before.
    pub is_worse: bool,
    /// The probability of such a difference if both are equally good.
    pub p_value: f64,
}

#[derive(Debug, Clone)]
pub struct MeasureReport {
    pub id: String,
    pub verifier_id: String,
    pub verifier_name: String,
    pub version: u32,
    pub purpose: VerifierRunPurpose,
    pub judges: Vec<String>,
    pub replicas: u8,
    /// The families of attacks that were tried; empty for a test.
    pub families: Vec<AttackFamily>,
    /// Whether it counts for the version: only its own judge decided, and no case was left out.
    pub is_own: bool,
    pub data_digest: String,
    pub figures: CalibrationStats,
    /// How often attacks succeeded; `None` for a test.
    pub attacks: Option<AttackStats>,
    /// The estimated reliability of each judge, as far as the cases allow.
    pub reliability: BTreeMap<String, f64>,
    pub cases: Vec<MeasuredCase>,
    pub compared: Option<VersionComparison>,
    pub cost_micros: i64,
    pub at: Timestamp,
}

impl MeasuredCase {
    pub(super) fn new(case: &ExpectedCase, view: &VerifierRunView) -> Self {
        let end = view.run.end.as_ref();
        let verdict = end.map(|end| end.verdict.clone());
        let replicas = view.round.closing.iter().flat_map(|closing| &closing.replicas);
        Self {
            id: case.id.clone(),
            inputs: case.inputs.clone(),
            media_url: case.media_url.clone(),
            family: case.family,
            expected: case.passed,
            got: verdict.as_ref().and_then(|verdict| verdict.as_ref().ok().copied()),
            reasoning: end.and_then(|end| end.reasoning.clone()),
            error: verdict.and_then(Result::err),
            run_id: Some(view.run.ticket.id.clone()),
            cost_micros: end.map_or(0, |end| end.cost_micros),
            by_judge: replicas.map(|replica| (judge_of(replica), verdict_of(replica))).collect(),
        }
    }

    /// A case that was not judged, because the measurement could not continue.
    pub(super) fn not_judged(case: &ExpectedCase, why: &str) -> Self {
        Self {
            id: case.id.clone(),
            inputs: case.inputs.clone(),
            media_url: case.media_url.clone(),
            family: case.family,
            expected: case.passed,
            got: None,
            reasoning: None,
            error: Some((
                VerifierRunError::VerifierUnavailable,
                format!("it was not judged: {why}"),
            )),
            run_id: None,
            cost_micros: 0,
            by_judge: Vec::new(),
        }
    }

    fn outcome(&self) -> CalibrationCase {
        CalibrationCase { expected: self.expected, got: self.got }
    }

    fn document(&self) -> Value {
        json!({
            "id": self.id,
            "inputs": self.inputs,
            "media_url": self.media_url,
            "family": self.family.map(AttackFamily::as_str),
            "expected": self.expected,
            "got": self.got,
            "reasoning": self.reasoning,
            "error_code": self.error.as_ref().map(|(code, _)| code.as_str()),
            "error_message": self.error.as_ref().map(|(_, message)| message),
            "run_id": self.run_id,
            "cost_micros": self.cost_micros,
        })
    }

    fn read(document: &Value) -> Option<Self> {
        let text = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
        let inputs = document.get("inputs")?.as_object()?.iter();
        let inputs = inputs.map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let code = text("error_code").and_then(|code| code.parse().ok());
        Some(Self {
            id: text("id")?,
            inputs: inputs.collect::<Option<_>>()?,
            media_url: text("media_url"),
            family: text("family").and_then(|family| family.parse().ok()),
            expected: document.get("expected")?.as_bool()?,
            got: document.get("got").and_then(Value::as_bool),
            reasoning: text("reasoning"),
            error: code.zip(text("error_message")),
            run_id: text("run_id"),
            cost_micros: document.get("cost_micros")?.as_i64()?,
            by_judge: Vec::new(),
        })
    }
}

/// A measurement that has ended.
pub(super) struct EndedMeasure {
    pub(super) at: Timestamp,
    pub(super) cases: Vec<MeasuredCase>,
    /// Whether all cases were judged.
    pub(super) is_whole: bool,
}

impl MeasureReport {
    /// A report; some cases may be unjudged.
    pub(super) fn new(
        id: String,
        version: &VerifierVersion,
        request: &MeasureRequest,
        ended: EndedMeasure,
    ) -> Self {
        let EndedMeasure { at, cases, is_whole } = ended;
        let outcomes: Vec<CalibrationCase> = cases.iter().map(MeasuredCase::outcome).collect();
        let labelled = cases.iter().map(|case| {
            let (id, inputs) = (Some(case.id.clone()), case.inputs.clone());
            ExpectedCase::new(id, inputs, case.media_url.clone(), case.expected)
        });
        let labelled: Vec<ExpectedCase> = labelled.collect();
        let purpose = request.data.purpose();
        let attacks = (purpose == VerifierRunPurpose::Attack)
            .then(|| AttackStats::of(&attack_results(&cases)));
        let families: Vec<AttackFamily> =
            attacks.iter().flat_map(|it| &it.families).map(|it| it.family).collect();
        let judges: BTreeSet<String> =
            by_judge(&cases).map(|(judge, _)| judge.to_owned()).collect();
        let own = BTreeSet::from([version.config.judge.model.to_string()]);
        let is_part = matches!(&request.data, MeasureData::Attacks(some) if !some.is_empty());
        Self {
            id,
            verifier_id: version.verifier.id.clone(),
            verifier_name: version.verifier.name.clone(),
            version: version.version,
            purpose,
            replicas: request.replicas,
            families,
            is_own: is_whole && !is_part && request.replicas == 1 && judges == own,
            data_digest: data_digest(labelled.iter()),
            figures: CalibrationStats::of(&outcomes),
            attacks,
            reliability: match purpose {
                // Attacks are not a representative sample for a judge.
                VerifierRunPurpose::Attack => BTreeMap::new(),
                VerifierRunPurpose::Test | VerifierRunPurpose::Run => reliability(&judges, &cases),
            },
            judges: judges.into_iter().collect(),
            cost_micros: cases.iter().map(|case| case.cost_micros).sum(),
            cases,
            compared: None,
            at,
        }
    }

    pub(super) fn compared_with(mut self, before: Option<(u32, Vec<MeasuredCase>)>) -> Self {
        self.compared = before.map(|(with_version, before)| {
            let compared = calibration::compare(&verdicts(&before), &verdicts(&self.cases));
            VersionComparison {
                with_version,
                flips: compared.flips,
                is_worse: compared.is_worse,
                p_value: rounded(compared.p_value),
            }
        });
        self
    }

    /// The part of the measurement that `show` and every run include.
    pub(super) fn summary(&self) -> Value {
        json!({
            "own": self.is_own,
            "judges": self.judges,
            "replicas": self.replicas,
            "families": self.families.iter().map(|it| it.as_str()).collect::<Vec<_>>(),
            "figures": self.shown_figures(),
            "reliability": self.reliability,
            "cost_micros": self.cost_micros,
        })
    }

    /// The statistics as they are stored and shown: of a test, or of attacks.
    pub fn shown_figures(&self) -> Value {
        let Some(attacks) = &self.attacks else { return figures_document(&self.figures) };
        let families = attacks.families.iter().map(|it| {
            json!({
                "family": it.family.as_str(),
                "inconclusive": it.inconclusive,
                "success_rate": rate_document(&it.success_rate),
            })
        });
        json!({
            "n": attacks.n,
            "inconclusive": attacks.inconclusive,
            "succeeded": attacks.succeeded,
            "success_rate": rate_document(&attacks.success_rate),
            "families": families.collect::<Vec<_>>(),
        })
    }

    pub(super) fn cases_document(&self) -> Value {
        self.cases.iter().map(MeasuredCase::document).collect()
    }

    /// The cases of a measurement that was read with them.
    pub(super) fn cases_of(measured: &Measurement) -> Option<Vec<MeasuredCase>> {
        measured.cases.as_array()?.iter().map(MeasuredCase::read).collect()
    }
}

fn verdicts(cases: &[MeasuredCase]) -> Vec<(String, CalibrationCase)> {
    cases.iter().map(|case| (case.id.clone(), case.outcome())).collect()
}

fn by_judge(cases: &[MeasuredCase]) -> impl Iterator<Item = (&str, CalibrationCase)> {
    cases.iter().flat_map(|case| {
        case.by_judge.iter().map(|(judge, got)| {
            (judge.as_str(), CalibrationCase { expected: case.expected, got: *got })
        })
    })
}

fn reliability(judges: &BTreeSet<String>, cases: &[MeasuredCase]) -> BTreeMap<String, f64> {
    let of = |judge: &String| {
        let own: Vec<CalibrationCase> =
            by_judge(cases).filter(|(name, _)| *name == judge).map(|(_, case)| case).collect();
        Some((judge.clone(), rounded(calibration::reliability(&CalibrationStats::of(&own))?)))
    };
    judges.iter().filter_map(of).collect()
}

fn attack_results(cases: &[MeasuredCase]) -> Vec<AttackResult> {
    let tried =
        |case: &MeasuredCase| case.family.map(|family| AttackResult { family, passed: case.got });
    cases.iter().filter_map(tried).collect()
}

fn judge_of(replica: &Replica) -> String {
    replica.session_id.strip_prefix(JUDGE_PREFIX).unwrap_or(&replica.session_id).to_owned()
}

fn verdict_of(replica: &Replica) -> Option<bool> {
    let label = replica.answer.label();
    let is_verdict = matches!(label, Label::Valid | Label::Invalid);
    is_verdict.then_some(label == Label::Valid)
}

fn figures_document(figures: &CalibrationStats) -> Value {
    json!({
        "n": figures.n,
        "judged": figures.judged,
        "inconclusive": figures.inconclusive,
        "correct": figures.correct,
        "true_pass": figures.true_pass,
        "false_pass": figures.false_pass,
        "true_fail": figures.true_fail,
        "false_fail": figures.false_fail,
        "accuracy": rate_document(&figures.accuracy),
        "false_pass_rate": rate_document(&figures.false_pass_rate),
        "false_fail_rate": rate_document(&figures.false_fail_rate),
        "inconclusive_rate": rate_document(&figures.inconclusive_rate),
        "kappa": figures.kappa.map(rounded),
    })
}

/// `count` of `n`, as a share.
fn rate_document(rate: &Rate) -> Value {
    json!({
        "count": rate.count,
        "n": rate.n,
        "value": rate.value.map(rounded),
        "low": rounded(rate.low),
        "high": rounded(rate.high),
    })
}

/// Four decimals: no measurement is that precise.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}
