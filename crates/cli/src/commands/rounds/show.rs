//! A round at a glance: the answer of each replica, the agreement and the confidence.

use std::fmt::Write as _;

use comfy_table::Cell;
use console::Style;
use jurat_client::rounds::AnyRoundReply;
use jurat_core::{
    reason,
    round::{
        consensus::{Basis, Outcome},
        replica::Label,
    },
};
use jurat_wire::{
    api::{
        consensus_reply::{ConsensusBlock, ReplicaBody, RoundReply},
        rounds::RoundBody,
        v2::ReplyV2,
    },
    problem::ProblemBody,
};
use serde_json::Value;

use crate::output::{Output, shortened, table};

const WIDEST_ANSWER: usize = 2_000;
const WIDEST_REMARK: usize = 400;
/// A terminal shows the beginning of each answer; the winning one follows the table in full.
const WIDEST_ON_TERMINAL: usize = 160;

/// A round that has ended, from any reply that describes one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RoundView<'a> {
    /// The verdict, or the status of a delegated job.
    pub(crate) label: Option<&'a str>,
    pub(crate) output: Option<&'a Value>,
    pub(crate) confidence: Option<f64>,
    /// Version 2 has none: one replica cannot disagree.
    pub(crate) consensus: Option<&'a ConsensusBlock<'a>>,
    pub(crate) replicas: Option<&'a [ReplicaBody<'a>]>,
    pub(crate) round_id: Option<&'a str>,
    pub(crate) receipt_id: Option<&'a str>,
}

impl<'a> From<&'a RoundReply<'a>> for RoundView<'a> {
    fn from(reply: &'a RoundReply<'a>) -> Self {
        match reply {
            RoundReply::Delegate(reply) => Self {
                label: Some(&reply.status),
                output: reply.output.as_deref(),
                confidence: Some(reply.confidence),
                consensus: Some(&reply.consensus),
                replicas: Some(&reply.replicas),
                round_id: Some(&reply.round_id),
                receipt_id: Some(&reply.receipt_id),
            },
            RoundReply::Verdict(reply) => Self {
                label: reply.verdict.map(|verdict| verdict.0.as_str()),
                output: None,
                confidence: Some(reply.confidence),
                consensus: Some(&reply.consensus),
                replicas: Some(&reply.replicas),
                round_id: Some(&reply.round_id),
                receipt_id: Some(&reply.receipt_id),
            },
        }
    }
}

impl<'a> From<&'a AnyRoundReply> for RoundView<'a> {
    fn from(reply: &'a AnyRoundReply) -> Self {
        match reply {
            AnyRoundReply::V3(reply) => reply.into(),
            AnyRoundReply::V2(ReplyV2::Delegate(reply)) => Self {
                label: Some(&reply.status),
                output: reply.output.as_deref(),
                confidence: Some(reply.confidence),
                round_id: Some(&reply.round_id),
                receipt_id: Some(&reply.receipt_id),
                ..Self::default()
            },
            AnyRoundReply::V2(ReplyV2::Verdict(reply)) => Self {
                label: reply.verdict.map(|verdict| verdict.0.as_str()),
                confidence: Some(reply.confidence),
                round_id: Some(&reply.round_id),
                receipt_id: Some(&reply.receipt_id),
                ..Self::default()
            },
        }
    }
}

impl<'a> From<&'a RoundBody<'a>> for RoundView<'a> {
    fn from(round: &'a RoundBody<'a>) -> Self {
        Self {
            label: round.verdict.map(|verdict| verdict.0.as_str()),
            output: round.output.value().map(AsRef::as_ref),
            confidence: round.confidence,
            consensus: round.consensus.as_ref(),
            replicas: round.replicas.as_deref(),
            round_id: Some(&round.round_id),
            receipt_id: round.receipt_id.as_deref(),
        }
    }
}

/// The problem `consensus_disagreement`, which is a round without a verdict.
impl<'a> From<&'a ProblemBody<'a>> for RoundView<'a> {
    fn from(problem: &'a ProblemBody<'a>) -> Self {
        Self {
            consensus: problem.consensus.as_ref(),
            replicas: problem.replicas.as_deref(),
            round_id: problem.round_id.as_deref(),
            receipt_id: problem.receipt_id.as_deref(),
            ..Self::default()
        }
    }
}

/// A round that has ended, in full.
pub(crate) fn reply(out: Output, round: &RoundView<'_>) -> String {
    let mut parts = Vec::new();
    if let Some(replicas) = round.replicas {
        let winner = round.consensus.and_then(|consensus| consensus.winner);
        parts.push(replicas_table(out, replicas, winner));
        parts.extend(replicas.iter().filter_map(remark));
    }
    if let Some(output) = round.output.filter(|output| !output.is_null()) {
        parts.push(format!("answer  {}", answer(output)));
    }
    parts.push(conclusion(out, round));
    parts.extend(why_so_sure(round));
    parts.push(identifiers(round));
    parts.join("\n")
}

/// Explains the confidence: the same agreement counts for more on some questions than on others.
fn why_so_sure(round: &RoundView<'_>) -> Option<String> {
    let consensus = round.consensus?;
    let winner = consensus.winner?;
    let votes: Vec<usize> = consensus.groups.iter().copied().flatten().collect();
    if votes.len() < 2 {
        return None;
    }
    let with = votes.iter().filter(|group| **group == winner).count();
    let against = votes.len() - with;
    let chance = match round.label? {
        "VALID" | "INVALID" => "only two answers are possible, so agreement by chance is likely",
        "TRUE" | "FALSE" | "UNSURE" => "only three answers are possible, so some agree by chance",
        _ => "any answer is possible, so agreement by chance is unlikely",
    };
    let sure = round.confidence? * 100.0;
    let (count, worth) = (votes.len(), consensus.effective_votes);
    Some(format!(
        "why {sure:.1} %: {with} for, {against} against; {chance}; {count} votes count as {worth:.1} independent ones"
    ))
}

fn replicas_table(out: Output, replicas: &[ReplicaBody<'_>], winner: Option<usize>) -> String {
    let rows = replicas.iter().map(|replica| {
        let is_with_winner = winner.is_some() && replica.group == winner;
        let mark = match (is_with_winner, replica.replaced_by.is_some()) {
            (true, _) => "✓",
            (false, true) => "↷",
            (false, false) => " ",
        };
        vec![
            Cell::new(mark),
            table::cell(&replica.session_id),
            table::cell(&replica.executor),
            table::word(&label(replica)),
            Cell::new(glance(out, &why(replica))),
            Cell::new(format!("{} ms", replica.latency_ms)),
        ]
    });
    let header = ["", "session", "executor", "verdict", "detail", "took"];
    table::table(out, &header, rows.collect())
}

/// The verdict of a replica, or its status in a delegated job.
pub(crate) fn label(replica: &ReplicaBody<'_>) -> Option<&'static str> {
    replica.verdict.or(replica.status).map(|label| label.0.as_str())
}

/// The text, shortened on a terminal and in full elsewhere.
fn glance(out: Output, text: &str) -> String {
    shortened(text, if out.width.is_some() { WIDEST_ON_TERMINAL } else { usize::MAX })
}

/// The answer of a replica, or why it gave none.
fn why(replica: &ReplicaBody<'_>) -> String {
    if let Some(error) = &replica.error {
        return format!("{}: {}", error.code.0.as_str(), table::said(&error.detail));
    }
    if let Some(output) = replica.output.as_deref().filter(|output| !output.is_null()) {
        if let Some(reasons) = output.get("reasons").filter(|it| it.is_array()) {
            return table::said(reasons);
        }
        return table::said(output.get("answer").filter(|it| it.is_string()).unwrap_or(output));
    }
    let reasons: Vec<String> = replica.reason_codes.iter().copied().map(reason_text).collect();
    let mut text = if reasons.is_empty() { without_reason(replica) } else { reasons.join(" ") };
    if let Some(score) = replica.score {
        let _ = write!(text, " (score {score})");
    }
    text
}

/// The notes and the error of a replica in full; the table shows only their beginning.
fn remark(replica: &ReplicaBody<'_>) -> Option<String> {
    let mut said: Vec<String> = Vec::new();
    if let Some(error) = &replica.error {
        said.push(format!("{}: {}", error.code.0.as_str(), error.detail));
    }
    if let Some(spare) = replica.replaced_by {
        said.push(format!("replaced by replica {spare}"));
    }
    said.extend(replica.notes.iter().cloned());
    if said.is_empty() {
        return None;
    }
    let session = table::said(&replica.session_id);
    Some(format!("{session}: {}", shortened(&said.join("; "), WIDEST_REMARK)))
}

/// The detail for a replica without a reason code: a replica that declines to decide explains why
/// in a note.
fn without_reason(replica: &ReplicaBody<'_>) -> String {
    let label = replica.verdict.or(replica.status);
    if matches!(label.map(|label| label.0), Some(Label::Valid | Label::True | Label::Ok)) {
        return "no objection".to_owned();
    }
    if replica.notes.is_empty() { "no reason given".to_owned() } else { replica.notes.join("; ") }
}

fn reason_text(code: u16) -> String {
    let known = reason::ALL.iter().find(|(known, ..)| *known == code);
    known.map_or_else(|| format!("Reason code {code}."), |(_, _, text)| (*text).to_owned())
}

fn answer(output: &Value) -> String {
    let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
    shortened(&text, WIDEST_ANSWER)
}

/// One line with the verdict, the agreement and the confidence.
pub(crate) fn conclusion(out: Output, round: &RoundView<'_>) -> String {
    let word = round.label.unwrap_or("NO_CONSENSUS");
    let style = match table::colour(word) {
        Some(comfy_table::Color::Green) => Style::new().green().bold(),
        Some(comfy_table::Color::Red) => Style::new().red().bold(),
        Some(_) | None => Style::new().yellow().bold(),
    };
    let mut parts = vec![out.paint(word, &style)];
    if let Some(consensus) = round.consensus {
        let asked = f64::from(u32::try_from(consensus.asked).unwrap_or(u32::MAX));
        parts.push(format!("{:.0} of {asked:.0} agree", consensus.agreement * asked));
    }
    if let Some(confidence) = round.confidence {
        parts.push(format!("confidence {:.1} %", confidence * 100.0));
    }
    if let Some(consensus) = round.consensus {
        parts.push(format!("outcome {}", consensus.outcome.0.as_str()));
        if consensus.basis.is_some_and(|basis| basis.0 == Basis::Form) {
            parts.push("form only, not truth".to_owned());
        }
        if consensus.low_confidence == Some(true) {
            parts.push("no more likely right than wrong".to_owned());
        }
        if consensus.tie_broken {
            parts.push("a tie was broken".to_owned());
        }
    }
    parts.join("  ·  ")
}

/// Whether the replicas agree as far as the request requires; a single replica always does.
pub(crate) fn is_agreed(round: &RoundView<'_>) -> bool {
    round.consensus.is_none_or(|it| it.outcome.0 == Outcome::Agreed && !it.disagreement)
}

fn identifiers(round: &RoundView<'_>) -> String {
    let pairs = [("round", round.round_id), ("receipt", round.receipt_id)];
    let present = pairs.into_iter().filter_map(|(title, id)| Some((title, id?)));
    let lines: Vec<(&str, String)> =
        present.map(|(title, id)| (title, shortened(id, 100))).collect();
    table::fields(&lines)
}

#[cfg(test)]
pub(crate) mod samples {
    //! Complete parts of replies for tests, with the members that a test cares about.

    use serde_json::{Value, json};

    use super::{ConsensusBlock, ReplicaBody};

    pub(crate) fn consensus(members: Value) -> ConsensusBlock<'static> {
        read(
            json!({
                "replicas": 3, "agreement": 1.0, "verdicts": [], "strategy": "majority",
                "confidence": 0.9, "outcome": "agreed", "agreement_answered": 1.0, "asked": 3,
                "started": 3, "answered": 3, "cancelled": 0, "equivalence": "label", "groups": [],
                "winner": null, "effective_votes": 1.0, "disagreement": false, "tie_broken": false,
                "basis": null, "score": null, "output_by": null, "spread": {},
            }),
            members,
        )
    }

    pub(crate) fn replica(members: Value) -> ReplicaBody<'static> {
        read(
            json!({
                "replica_id": 0, "session_id": "s", "executor": "s", "output": null, "score": null,
                "reason_codes": [], "evidence": {}, "latency_ms": 1, "cost": 0, "error": null,
                "independence": "s", "reliability": 0.8, "group": null,
                "verifier_result_hash": null, "notes": [],
            }),
            members,
        )
    }

    /// Reads a complete document after replacing some of its members.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(mut whole: Value, members: Value) -> T {
        let Value::Object(members) = members else { panic!("{members} has no members") };
        whole.as_object_mut().unwrap().extend(members);
        serde_json::from_value(whole).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        samples::{consensus, replica},
        *,
    };

    #[test]
    fn a_round_is_read_at_a_glance() {
        let consensus = consensus(json!({
            "agreement": 0.667, "asked": 3, "effective_votes": 1.9, "winner": 0,
            "groups": [0, 0, null],
        }));
        let replicas = [
            replica(
                json!({"session_id": "a", "executor": "a", "verdict": "VALID", "score": 0.99, "latency_ms": 3, "group": 0}),
            ),
            replica(
                json!({"session_id": "b", "executor": "b", "verdict": "VALID", "latency_ms": 4, "group": 0}),
            ),
            replica(
                json!({"session_id": "c", "executor": "c", "verdict": "TIMEOUT", "latency_ms": 2000,
                "error": {"code": "timeout", "detail": "no answer before the deadline"}}),
            ),
        ];
        let round = RoundView {
            label: Some("VALID"),
            output: None,
            confidence: Some(0.9),
            consensus: Some(&consensus),
            replicas: Some(&replicas),
            round_id: Some("rnd_1"),
            receipt_id: Some("sha256:1"),
        };
        insta::assert_snapshot!(reply(Output::plain(), &round));
    }

    #[test]
    fn two_of_three_are_explained_if_they_mean_different_things() {
        let majority =
            consensus(json!({"winner": 0, "groups": [1, 0, 0], "effective_votes": 1.875}));
        let round = RoundView {
            consensus: Some(&majority),
            confidence: Some(0.6437),
            ..RoundView::default()
        };
        let explained = |label| why_so_sure(&RoundView { label: Some(label), ..round }).unwrap();
        let judged = explained("VALID");
        assert!(judged.starts_with("why 64.4 %: 2 for, 1 against; only two answers"), "{judged}");
        assert!(judged.ends_with("; 3 votes count as 1.9 independent ones"), "{judged}");
        let checked = explained("FALSE");
        assert!(checked.contains("only three answers"), "{checked}");
        let done = explained("OK");
        assert!(done.contains("any answer is possible"), "{done}");
        let one = consensus(json!({"winner": 0, "groups": [0]}));
        let alone = RoundView { label: Some("VALID"), consensus: Some(&one), ..round };
        assert_eq!(why_so_sure(&alone), None);
    }

    #[test]
    fn an_abstention_does_not_read_like_agreement() {
        let says = |verdict: &str, notes: Value| {
            why(&replica(json!({"verdict": verdict, "notes": notes})))
        };
        assert_eq!(says("NEEDS_SPEC", json!(["which year?", "x"])), "which year?; x");
        assert_eq!(says("RETRY", json!([])), "no reason given");
        assert_eq!(says("INVALID", json!([])), "no reason given");
        assert_eq!(says("VALID", json!(["hash_missing"])), "no objection");
    }

    #[test]
    fn an_error_is_shown_in_full_and_cannot_control_the_terminal() {
        let detail = format!("first \u{1b}[2J{}", "x".repeat(200));
        let error = replica(json!({"error": {"code": "bad_shape", "detail": detail}}));
        let expected = format!("s: bad_shape: first \\u{{1b}}[2J{}", "x".repeat(200));
        assert_eq!(remark(&error), Some(expected));
        let noted = replica(json!({"notes": ["which year?", "x"]}));
        assert_eq!(remark(&noted).as_deref(), Some("s: which year?; x"));
        assert_eq!(remark(&replica(json!({}))), None);
        let long = replica(json!({"notes": ["y".repeat(5_000)]}));
        assert!(remark(&long).unwrap().chars().count() <= 403);
    }
}
