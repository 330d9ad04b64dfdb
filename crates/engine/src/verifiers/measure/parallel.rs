//! Judges the cases of a measurement, as many concurrently as the credit and the key allow.

use std::collections::VecDeque;

use futures::{StreamExt as _, stream::FuturesUnordered};
use jurat_core::{account::caller::Caller, code::ProblemCode, id, verifier::VerifierVersion};

use super::{
    CaseProgress, CaseWatcher, ExpectedCase, MeasureReport, MeasureRequest, MeasuredCase,
    report::EndedMeasure,
};
use crate::{Engine, EngineError};

/// Cases that are judged concurrently; more would only wait for the provider.
const AT_ONCE: usize = 4;

/// The progress of a measurement.
struct MeasureProgress<'a> {
    cases: &'a [ExpectedCase],
    waiting: VecDeque<usize>,
    judged: Vec<Option<MeasuredCase>>,
    at_once: usize,
    /// Why no more cases are started.
    stopped: Option<EngineError>,
}

/// The cases of a measurement, and its watcher.
pub(super) struct WatchedCases<'a> {
    pub(super) cases: &'a [ExpectedCase],
    pub(super) watcher: Option<CaseWatcher>,
}

impl Engine {
    /// The report of all cases. Judged cases are paid for, so an error ends a measurement without a
    /// report only if it comes before the first verdict.
    pub(super) async fn judge_cases(
        &self,
        caller: &Caller,
        version: &VerifierVersion,
        request: &MeasureRequest,
        watched: WatchedCases<'_>,
    ) -> Result<MeasureReport, EngineError> {
        let WatchedCases { cases, watcher } = watched;
        let mut progress = MeasureProgress::new(cases);
        let mut under_way = FuturesUnordered::new();
        loop {
            while under_way.len() < progress.at_once
                && let Some(index) = progress.waiting.pop_front()
            {
                let case = self.judge_case(caller, version, request, &cases[index]);
                under_way.push(async move { (index, case.await) });
            }
            let Some((index, ended)) = under_way.next().await else { break };
            match ended {
                Ok(case) => {
                    if let Some(watcher) = &watcher {
                        let total = cases.len();
                        // The watcher may be gone; the measurement continues.
                        let _gone = watcher.send(CaseProgress { index, total, case: case.clone() });
                    }
                    progress.judged[index] = Some(case);
                }
                Err(error) => progress.put_back(index, error, under_way.len()),
            }
        }
        let (judged, stopped) = progress.end()?;
        let (at, bits) = (self.inner.clock.now(), self.inner.clock.bits());
        let ended = EndedMeasure { at, cases: judged, is_whole: stopped.is_none() };
        Ok(MeasureReport::new(id::uuid(at, bits), version, request, ended))
    }
}

impl<'a> MeasureProgress<'a> {
    fn new(cases: &'a [ExpectedCase]) -> Self {
        Self {
            cases,
            waiting: (0..cases.len()).collect(),
            judged: vec![None; cases.len()],
            at_once: AT_ONCE,
            stopped: None,
        }
    }

    /// Other cases of the measurement release their resources when they end, so the case waits for
    /// one of them. If no other case is in progress, there is nothing to wait for.
    fn put_back(&mut self, index: usize, error: EngineError, others: usize) {
        if is_transient(&error) && 0 < others && self.stopped.is_none() {
            self.at_once = self.at_once.min(others);
            self.waiting.push_front(index);
            return;
        }
        self.waiting.clear();
        self.stopped.get_or_insert(error);
    }

    /// All cases in order; unjudged ones say why.
    fn end(self) -> Result<(Vec<MeasuredCase>, Option<EngineError>), EngineError> {
        let Some(error) = self.stopped else {
            return Ok((self.judged.into_iter().flatten().collect(), None));
        };
        if self.judged.iter().all(Option::is_none) {
            return Err(error);
        }
        let cases = self.judged.into_iter().zip(self.cases).map(|(judged, case)| {
            judged.unwrap_or_else(|| MeasuredCase::not_judged(case, &error.to_string()))
        });
        let cases = cases.collect();
        Ok((cases, Some(error)))
    }
}

/// Whether a case can be judged once another one has ended.
fn is_transient(error: &EngineError) -> bool {
    matches!(
        error.code(),
        ProblemCode::BudgetExhausted | ProblemCode::RateLimited | ProblemCode::Overloaded
    )
}
