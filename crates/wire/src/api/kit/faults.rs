//! Collects what is wrong with a long document, so that its author hears of all of it at once.

use std::ops::RangeInclusive;

use jurat_core::code::ProblemCode;
use serde_json::json;

use super::{
    fields::RequestFields,
    known_fields::{DescribedRequest, SearchDepth},
};
use crate::problem::Problem;

/// How many faults are told.
const MOST: usize = 20;
/// How many of them stand in the sentence.
const SAID: usize = 5;

#[derive(Debug, Default)]
pub(crate) struct RequestFaults(Vec<Problem>);

impl From<Problem> for RequestFaults {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl IntoIterator for RequestFaults {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl RequestFaults {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what was not said yet.
    pub(crate) fn add_once(&mut self, problem: Problem) {
        if !self.0.contains(&problem) {
            self.add(problem);
        }
    }

    /// The problem that tells of all of them.
    pub(crate) fn into_problem(self, code: ProblemCode) -> Problem {
        self.problem(code).unwrap_or_else(|| Problem::new(code, "the body cannot be read"))
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// What was read; a fault is noted, and the reading goes on.
    pub(crate) fn take<T>(&mut self, read: Result<T, Problem>) -> Option<T> {
        read.map_err(|problem| self.add(problem)).ok()
    }

    /// Notes each unknown field of a request.
    pub(crate) fn note_unknown<R: DescribedRequest>(
        &mut self,
        fields: &RequestFields<'_>,
        depth: SearchDepth,
    ) {
        self.0.extend(fields.unknown_fields::<R>(depth));
    }

    /// An object that must be there.
    pub(crate) fn section<'a>(
        &mut self,
        parent: &RequestFields<'a>,
        name: &str,
    ) -> Option<RequestFields<'a>> {
        let section = self.take(parent.object(name))?;
        if section.is_none() {
            self.add(parent.wrong(name, "is required"));
        }
        section
    }

    /// The same, which may be left out. One that is wrong reads like that too, and is noted.
    pub(crate) fn optional<'a>(
        &mut self,
        parent: &RequestFields<'a>,
        name: &str,
    ) -> Option<RequestFields<'a>> {
        self.take(parent.object(name)).flatten()
    }

    pub(crate) fn whole(
        &mut self,
        fields: &RequestFields<'_>,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let (least, most) = range.into_inner();
        let read = fields.whole(name, least, most);
        let read = if least == most {
            read.map_err(|_| fields.wrong(name, &format!("must be {least}")))
        } else {
            read
        };
        let read = read.and_then(|it| it.ok_or_else(|| fields.wrong(name, "is required")));
        self.take(read)
    }

    pub(crate) fn count(
        &mut self,
        fields: &RequestFields<'_>,
        name: &str,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        self.whole(fields, name, range).and_then(|it| u32::try_from(it).ok())
    }

    /// A number that has a usual value.
    pub(crate) fn whole_or(
        &mut self,
        fields: &RequestFields<'_>,
        name: &str,
        (range, usual): (RangeInclusive<u64>, u64),
    ) -> Option<u64> {
        self.take(fields.whole(name, *range.start(), *range.end())).map(|it| it.unwrap_or(usual))
    }

    pub(crate) fn count_or(
        &mut self,
        fields: &RequestFields<'_>,
        name: &str,
        (range, usual): (RangeInclusive<u32>, u32),
    ) -> Option<u32> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        let read = self.whole_or(fields, name, (range, u64::from(usual)));
        read.and_then(|it| u32::try_from(it).ok())
    }

    /// The problem that tells of all faults; nothing when there are none.
    pub(crate) fn problem(self, code: ProblemCode) -> Option<Problem> {
        let Self(faults) = self;
        let first = faults.first()?.clone();
        if faults.len() == 1 {
            return Some(first);
        }
        let said: Vec<&str> = faults.iter().take(SAID).map(|it| it.detail.as_str()).collect();
        let rest = if SAID < faults.len() { "; and more" } else { "" };
        let detail = format!("{} fields are wrong: {}{rest}", faults.len(), said.join("; "));
        let errors: Vec<_> = faults
            .iter()
            .take(MOST)
            .map(|it| json!({ "field": it.field, "reason": it.detail }))
            .collect();
        let problem = Problem::new(code, detail).with("errors", json!(errors));
        Some(match first.field {
            Some(field) => problem.at(field),
            None => problem,
        })
    }
}
