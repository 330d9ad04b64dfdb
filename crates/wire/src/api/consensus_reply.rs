//! Replies of the consensus API, made from rounds.

use jurat_core::{
    consensus::{Consensus, ScoreSummary},
    job::{Kind, Toggle},
    reason,
    replica::{Label, Replica},
    round::{Closing, OpenRound, Round},
};
use serde_json::{Map, Value, json};

use crate::executor;

/// The reply to a delegate, validate or factcheck request.
pub fn body(round: &Round) -> Value {
    let Some(closing) = &round.closing else {
        return json!({ "round_id": round.open.id.as_str(), "state": "open" });
    };
    let consensus = &closing.consensus;
    let mut reply = Map::new();
    match round.open.kind {
        Kind::Delegate => {
            let status = consensus.verdict.map_or("NO_CONSENSUS", Label::as_str);
            reply.insert("status".to_owned(), json!(status));
            reply.insert("output".to_owned(), json!(consensus.output));
        }
        Kind::Validate | Kind::Factcheck => {
            let verdict = consensus.verdict.map(Label::as_str);
            reply.insert("verdict".to_owned(), json!(verdict));
            reply.insert("reasons".to_owned(), reasons(closing));
        }
    }
    reply.insert("confidence".to_owned(), json!(consensus.confidence));
    reply.insert("consensus".to_owned(), consensus_block(consensus));
    reply.insert("replicas".to_owned(), replicas(&round.open, closing));
    reply.insert("round_id".to_owned(), json!(round.open.id.as_str()));
    reply.insert("receipt_id".to_owned(), json!(closing.receipt_id));
    Value::Object(reply)
}

/// The `consensus` block: the five names every client may rely on, then ours.
pub fn consensus_block(consensus: &Consensus) -> Value {
    let verdicts: Vec<&str> = consensus.verdicts.iter().map(|label| label.as_str()).collect();
    json!({
        "replicas": consensus.asked,
        "agreement": consensus.agreement,
        "verdicts": verdicts,
        "strategy": consensus.strategy,
        "confidence": consensus.confidence,
        "outcome": consensus.outcome.as_str(),
        "agreement_answered": consensus.agreement_answered,
        "asked": consensus.asked,
        "started": consensus.started,
        "answered": consensus.answered,
        "cancelled": consensus.cancelled,
        "equivalence": consensus.equivalence,
        "groups": consensus.groups,
        "winner": consensus.winner,
        "effective_votes": consensus.effective_votes,
        "disagreement": consensus.disagreed,
        "tie_broken": consensus.tie_broken,
        "score": consensus.score.as_ref().map(score),
    })
}

pub fn replicas(open: &OpenRound, closing: &Closing) -> Value {
    let one = |replica: &Replica| {
        let group = closing.consensus.groups.get(replica.index).copied().flatten();
        replica_body(open.kind, open.traces, replica, group)
    };
    closing.replicas.iter().map(one).collect()
}

/// One replica, as it stands in replies and in events.
pub fn replica_body(kind: Kind, traces: Toggle, replica: &Replica, group: Option<usize>) -> Value {
    let said = replica.answer.said();
    let label = match kind {
        Kind::Delegate => "status",
        Kind::Validate | Kind::Factcheck => "verdict",
    };
    let mut body = json!({
        "replica_id": replica.index,
        "session_id": replica.session_id,
        "executor": replica.executor,
        label: replica.answer.label().as_str(),
        "output": said.and_then(|said| said.output.as_ref()),
        "score": said.and_then(|said| said.score),
        "reason_codes": said.map_or(&[][..], |said| &said.reason_codes),
        "latency_ms": replica.latency_ms,
        "cost": replica.cost_micros,
        "error": replica.answer.failure().map(|failure| json!({
            "code": failure.code.as_str(),
            "detail": failure.detail,
        })),
        "independence": replica.independence.to_string(),
        "reliability": replica.reliability,
        "group": group,
        "verifier_result_hash": said.and_then(|said| said.result_hash.as_ref()),
        "notes": said.map_or(&[][..], |said| &said.notes),
    });
    let mut evidence = Map::new();
    if let Some(said) = said {
        let refs: Vec<executor::ArtifactRef> =
            said.evidence.refs.iter().cloned().map(Into::into).collect();
        evidence.insert("refs".to_owned(), json!(refs));
        if traces == Toggle::On {
            let inline: Vec<executor::InlineEvidence> =
                said.evidence.inline.iter().cloned().map(Into::into).collect();
            evidence.insert("inline".to_owned(), json!(inline));
        }
    }
    body["evidence"] = Value::Object(evidence);
    body
}

/// Why the winning side says what it says, in words.
fn reasons(closing: &Closing) -> Value {
    let consensus = &closing.consensus;
    let winners = closing.replicas.iter().filter(|replica| {
        consensus.winner.is_some()
            && consensus.groups.get(replica.index).copied().flatten() == consensus.winner
    });
    let mut reasons: Vec<String> = Vec::new();
    for said in winners.filter_map(|replica| replica.answer.said()) {
        let texts = said.reason_codes.iter().map(|code| {
            let known = reason::ALL.iter().find(|(known, ..)| known == code);
            known.map_or_else(|| format!("Reason code {code}."), |(_, _, text)| (*text).to_owned())
        });
        for text in texts {
            if !reasons.contains(&text) {
                reasons.push(text);
            }
        }
    }
    json!(reasons)
}

fn score(summary: &ScoreSummary) -> Value {
    json!({
        "method": summary.method,
        "value": summary.value,
        "min": summary.min,
        "max": summary.max,
        "deviation": summary.deviation,
    })
}
