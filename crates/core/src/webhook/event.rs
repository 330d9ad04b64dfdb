//! Builds events from the facts that cause them. An event names what happened by its ids, and never
//! quotes a claim, an output or a reason of a model.

use serde_json::{Value, json};

use super::{Webhook, WebhookEventType};
use crate::{
    account::ledger::Balance,
    canonical::sha256_hex,
    id::AccountId,
    round::{OpenRound, RoundClosing, replica::Label},
    task::{TaskEvent, TaskKey},
    time::Timestamp,
    verifier::run::{RoundSettlement, VerifierRunPurpose, VerifierRunTicket},
    workflow::template::Template,
};

/// An event of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookEvent {
    /// Derived from the fact, so that the same fact has the same id whichever node announces it.
    pub id: String,
    pub event_type: WebhookEventType,
    /// The round, task or other object that it is about.
    pub subject: Option<String>,
    /// The JSON that is sent.
    pub body: String,
}

impl WebhookEvent {
    /// An event about one fact; `fact` tells it apart from others of its type in the account.
    fn new(
        account: &AccountId,
        event_type: WebhookEventType,
        (subject, fact): (&str, &str),
        at: Timestamp,
        data: &Value,
    ) -> Self {
        let name = format!("{account}\n{event_type}\n{subject}\n{fact}");
        let mut id = sha256_hex(name.as_bytes());
        id.truncate(32);
        let (kind, time) = (event_type.as_str(), at.rfc3339());
        Self {
            id: format!("evt_{id}"),
            event_type,
            subject: Some(subject.to_owned()),
            body: json!({ "type": kind, "timestamp": time, "data": data }).to_string(),
        }
    }

    /// The end of a round or of the verifier run that it carries out. The rounds of a task are not
    /// announced, because some of them are secret votes, and neither are measurements.
    pub fn of_round(
        round: &OpenRound,
        closing: &RoundClosing,
        run_verdict: Option<&str>,
    ) -> Option<Self> {
        if round.step.is_some() {
            return None;
        }
        let mut data = json!({
            "round_id": round.id.as_str(),
            "kind": round.kind.as_str(),
            "state": closing.ending.as_str(),
            "outcome": closing.consensus.outcome.as_str(),
            "verdict": closing.consensus.verdict.map(Label::as_str),
            "agreement": four_digits(closing.consensus.agreement),
            "confidence": four_digits(closing.consensus.confidence),
            "receipt_id": closing.receipt_id,
        });
        let (kind, subject) = match &round.run {
            None => (WebhookEventType::RoundDecided, round.id.as_str()),
            Some(VerifierRunTicket { purpose: VerifierRunPurpose::Run, id, .. }) => {
                (WebhookEventType::VerifierRunCompleted, id.as_str())
            }
            Some(_) => return None,
        };
        if let Some(run) = &round.run {
            data["verifier_run_id"] = json!(run.id);
            data["verifier_id"] = json!(run.verifier_id);
            data["version"] = json!(run.version);
            data["verdict"] = json!(run_verdict);
        }
        let of = (subject, closing.ending.as_str());
        Some(Self::new(&round.account, kind, of, closing.closed_at, &data))
    }

    /// The end of a round that was read back.
    pub fn of_ended(round: &OpenRound, closing: &RoundClosing) -> Option<Self> {
        let run = RoundSettlement::of(round, closing).run;
        Self::of_round(round, closing, run.map(|end| end.word().as_str()))
    }

    /// The end of a task, if the event ends it; `seq` is the number of the event.
    #[expect(clippy::wildcard_enum_match_arm, reason = "few of the many events end a task")]
    pub fn of_task(task: &TaskKey, seq: u64, event: &TaskEvent, at: Timestamp) -> Option<Self> {
        let failed = |state: &str| {
            (WebhookEventType::TaskFailed, json!({ "task_id": task.id, "state": state }))
        };
        let (kind, data) = match event {
            TaskEvent::Finalized { epoch, candidate, settles_at } => {
                let data = json!({
                    "task_id": task.id, "state": "finalized", "epoch": epoch,
                    "candidate_id": candidate, "settles_at": settles_at.rfc3339(),
                });
                (WebhookEventType::TaskFinalized, data)
            }
            TaskEvent::Failed { .. } => failed("failed"),
            TaskEvent::Expired { .. } => failed("expired"),
            TaskEvent::Cancelled { .. } => failed("cancelled"),
            _ => return None,
        };
        Some(Self::new(&task.account, kind, (&task.id, &seq.to_string()), at, &data))
    }

    /// A change of credit that its owner wants to know; `line` is the number of the last line of
    /// the ledger. Credit that is held is not spent yet.
    pub fn of_credit(
        account: &AccountId,
        (change, balance): (Balance, Balance),
        line: i64,
        at: Timestamp,
    ) -> Option<Self> {
        let left = balance.available.saturating_add(balance.held);
        let before = left.saturating_sub(change.available.saturating_add(change.held));
        let low = balance.granted / 10;
        let kind = if 0 < change.granted {
            WebhookEventType::CreditGranted
        } else if left <= 0 && 0 < before {
            WebhookEventType::CreditExhausted
        } else if left < low && low <= before {
            WebhookEventType::CreditLow
        } else {
            return None;
        };
        let data = json!({
            "account_id": account.as_str(),
            "change_micros": left.saturating_sub(before),
            "left_micros": left,
            "granted_micros": balance.granted,
        });
        Some(Self::new(account, kind, (account.as_str(), &line.to_string()), at, &data))
    }

    /// A published version of a template.
    pub fn of_template(template: &Template, at: Timestamp) -> Self {
        let version = template.latest_version;
        let data = json!({
            "template_id": template.id,
            "workflow_id": template.workflow_id,
            "handle": template.publishing_handle,
            "slug": template.slug,
            "version": version,
        });
        let of = (template.id.as_str(), &*version.to_string());
        Self::new(&template.account, WebhookEventType::TemplatePublished, of, at, &data)
    }

    /// A webhook that was disabled, for the other webhooks of the account. The address is left out,
    /// because it may hold a secret.
    pub fn of_disabled(webhook: &Webhook, reason: &str, at: Timestamp) -> Self {
        let data = json!({ "webhook_id": webhook.id, "reason": reason });
        let of = (webhook.id.as_str(), &*at.micros().to_string());
        Self::new(&webhook.account, WebhookEventType::WebhookDisabled, of, at, &data)
    }

    /// A test of one webhook; `nonce` tells two tests apart.
    pub fn of_test(account: &AccountId, webhook: &str, nonce: u128, at: Timestamp) -> Self {
        let data = json!({ "webhook_id": webhook });
        Self::new(account, WebhookEventType::WebhookTest, (webhook, &nonce.to_string()), at, &data)
    }
}

/// A share to four digits, as everywhere in the API.
fn four_digits(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    fn credit(change: i64, left: i64) -> Option<WebhookEventType> {
        let account = AccountId::admin();
        let change = Balance { available: change, ..Balance::default() };
        let balance = Balance { granted: 1_000, available: left - 7, held: 7, spent: 1_000 - left };
        WebhookEvent::of_credit(&account, (change, balance), 3, AT).map(|it| it.event_type)
    }

    #[test]
    fn credit_is_announced_when_it_passes_a_limit_and_not_again() {
        assert_eq!(credit(-50, 500), None);
        assert_eq!(credit(-50, 90), Some(WebhookEventType::CreditLow));
        assert_eq!(credit(-10, 80), None);
        assert_eq!(credit(-80, 0), Some(WebhookEventType::CreditExhausted));
        assert_eq!(credit(-5, -5), None);
        assert_eq!(credit(-1_000, -1), Some(WebhookEventType::CreditExhausted));
    }

    #[test]
    fn the_same_fact_has_the_same_id_and_another_one_has_not() {
        let account = AccountId::admin();
        let event = |nonce| WebhookEvent::of_test(&account, "whk_1", nonce, AT);
        assert_eq!(event(1), event(1));
        assert_ne!(event(1).id, event(2).id);
        assert_eq!(
            event(1).body,
            r#"{"data":{"webhook_id":"whk_1"},"timestamp":"2026-09-21T14:13:20.000Z","type":"webhook.test"}"#
        );
    }

    #[test]
    fn a_task_is_announced_when_it_ends() {
        let task = TaskKey { account: AccountId::admin(), id: "t-1".to_owned() };
        let of = |event: &TaskEvent| WebhookEvent::of_task(&task, 4, event, AT);
        let candidate = "cand".to_owned();
        let settles_at = AT.plus_millis(1_000);
        let done = of(&TaskEvent::Finalized { epoch: 1, candidate, settles_at }).unwrap();
        assert_eq!(done.event_type, WebhookEventType::TaskFinalized);
        assert_eq!(done.subject.as_deref(), Some("t-1"));
        let reason = "the secret of a contract".to_owned();
        let failed = of(&TaskEvent::Failed { reason }).unwrap();
        assert_eq!(failed.event_type, WebhookEventType::TaskFailed);
        assert!(!failed.body.contains("secret"), "{}", failed.body);
        assert_eq!(of(&TaskEvent::RetryScheduled { at: AT }), None);
    }
}
