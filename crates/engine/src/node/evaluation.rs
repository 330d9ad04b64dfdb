//! Emits each verdict as an event, in the words of the OpenTelemetry conventions.

use jurat_core::{
    reason,
    round::{
        OpenRound, RoundClosing, RoundEnding,
        replica::{Label, Replica},
    },
};
use tracing::Level;

/// The target of these events; the log leaves them out unless its filter names it.
pub const TARGET: &str = "jurat::evaluation";
/// Executors choose the names of models and providers, so they are cut.
const LONGEST_NAME: usize = 100;
const MOST_REASONS: usize = 5;

/// Emits the verdict of every replica and of the round, without any content. Votes are not emitted
/// at all: they are secret until the reveal.
pub(crate) fn emit(open: &OpenRound, closing: &RoundClosing) {
    if open.is_vote() {
        return;
    }
    for replica in &closing.replicas {
        emit_replica(open, closing, replica);
    }
    let consensus = &closing.consensus;
    // Without a verdict nothing was evaluated, and a zero would look like a score.
    let verdict = consensus.verdict.map(Label::as_str);
    let failure = match (verdict, closing.ending) {
        (Some(_), _) => None,
        (None, RoundEnding::Closed) => Some(consensus.outcome.as_str()),
        (None, ending) => Some(ending.as_str()),
    };
    tracing::event!(
        name: "gen_ai.evaluation.result",
        target: TARGET,
        Level::INFO,
        gen_ai.evaluation.name = "consensus",
        gen_ai.evaluation.score.value = verdict.map(|_| consensus.confidence),
        gen_ai.evaluation.score.label = verdict,
        gen_ai.evaluation.explanation = consensus.outcome.as_str(),
        gen_ai.response.id = open.id.as_str(),
        jurat.policy.id = cut(&open.policy_id),
        jurat.policy.hash = cut(&open.policy_hash),
        jurat.round.kind = open.kind.as_str(),
        jurat.round.agreement = consensus.agreement,
        jurat.receipt.id = closing.receipt_id,
        "error.type" = failure,
    );
}

fn emit_replica(open: &OpenRound, closing: &RoundClosing, replica: &Replica) {
    let said = replica.answer.content();
    let failure = replica.answer.failure().map(|failure| failure.code.as_str());
    // Only a verdict has a label; `error.type` says why there is none.
    let label = failure.is_none().then(|| replica.answer.label().as_str());
    let explanation =
        failure.map_or_else(|| reasons(said.map_or(&[], |said| &said.reason_codes)), str::to_owned);
    tracing::event!(
        name: "gen_ai.evaluation.result",
        target: TARGET,
        Level::INFO,
        gen_ai.evaluation.name = cut(&open.policy_id),
        gen_ai.evaluation.score.value = said.and_then(|said| said.score),
        gen_ai.evaluation.score.label = label,
        gen_ai.evaluation.explanation = explanation,
        gen_ai.response.id = open.id.as_str(),
        gen_ai.provider.name = cut(&replica.independence.provider_family),
        gen_ai.request.model = cut(&replica.independence.model_id),
        jurat.policy.id = cut(&open.policy_id),
        jurat.policy.hash = cut(&open.policy_hash),
        jurat.round.kind = open.kind.as_str(),
        jurat.replica.index = replica.index,
        jurat.executor.name = replica.executor,
        jurat.session.id = replica.session_id,
        jurat.receipt.id = closing.receipt_id,
        "error.type" = failure,
    );
}

/// The names of the reason codes, or the numbers of unknown ones.
fn reasons(codes: &[u16]) -> String {
    let name = |code: &u16| {
        let known = reason::ALL.iter().find(|(known, _, _)| known == code);
        known.map_or_else(|| format!("reason_{code}"), |(_, name, _)| name.to_lowercase())
    };
    codes.iter().take(MOST_REASONS).map(name).collect::<Vec<_>>().join(" ")
}

fn cut(text: &str) -> &str {
    let end = text.char_indices().nth(LONGEST_NAME).map_or(text.len(), |(at, _)| at);
    &text[..end]
}
