//! Push notifications of the Agent2Agent protocol: webhooks about one task, with the body and the
//! proof that the protocol prescribes.

use serde_json::{Value, json};

use super::{Webhook, WebhookEventType, WebhookEvents, WebhookScheme, WebhookSecret, WebhookState};
use crate::{
    canonical::sha256_hex,
    id::AccountId,
    round::{OpenRound, RoundEnding},
    time::Timestamp,
    verifier::run::VerifierRunPurpose,
};

/// Push notifications that one task may have.
pub const MOST_PER_TASK: u32 = 10;
/// Push notifications that an account may have, so that its webhooks are found quickly.
pub const MOST_PER_ACCOUNT: u32 = 1_000;
/// How long a push notification is kept: longer than a task and all attempts to notify about it.
pub const KEPT_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// The form of the ids of push notifications, as long as that of other webhooks.
const PREFIX: &str = "psh_";

/// Where to send the news of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPush {
    /// The caller's name for it. Without one, the address is its name, so that a repeated request
    /// adds nothing.
    pub name: Option<String>,
    pub url: String,
    pub proof: PushProof,
}

/// A push notification as its account sees it: without its token and its credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    pub webhook: Webhook,
    /// How the notification authenticates itself, such as `Bearer`.
    pub auth_scheme: Option<String>,
}

impl Push {
    pub fn of(webhook: Webhook, secret: &WebhookSecret) -> Self {
        let authorization = PushProof::of_secret(secret).authorization;
        let scheme = authorization.and_then(|it| it.split(' ').next().map(str::to_owned));
        Self { webhook, auth_scheme: scheme }
    }
}

/// What accompanies a notification, so that its receiver trusts it and knows its context.
#[derive(Clone, PartialEq, Eq)]
pub struct PushProof {
    pub context_id: String,
    /// A text that the receiver expects.
    pub token: Option<String>,
    /// The value of the header `Authorization`.
    pub authorization: Option<String>,
}

impl std::fmt::Debug for PushProof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushProof").field("context_id", &self.context_id).finish_non_exhaustive()
    }
}

impl PushProof {
    /// The form in which it is stored, in the place of a secret.
    pub fn to_secret(&self) -> WebhookSecret {
        let Self { context_id, token, authorization } = self;
        let stored =
            json!({ "context_id": context_id, "token": token, "authorization": authorization });
        WebhookSecret::new(stored.to_string())
    }

    pub fn of_secret(secret: &WebhookSecret) -> Self {
        let stored: Value = serde_json::from_str(secret.reveal()).unwrap_or_default();
        let text = |name: &str| stored[name].as_str().map(str::to_owned);
        Self {
            context_id: text("context_id").unwrap_or_default(),
            token: text("token"),
            authorization: text("authorization"),
        }
    }
}

/// The subject of the event at the end of a round; `None` if the round is never announced.
pub fn push_subject(round: &OpenRound) -> Option<&str> {
    match &round.run {
        _ if round.step.is_some() => None,
        None => Some(round.id.as_str()),
        Some(run) if run.purpose == VerifierRunPurpose::Run => Some(&run.id),
        Some(_) => None,
    }
}

/// Whether an id of a webhook is that of a push notification.
pub fn is_push_id(id: &str) -> bool {
    id.starts_with(PREFIX)
}

/// The id of a push notification. The same name means the same one within a task.
pub fn push_id(subject: &str, name: &str) -> String {
    let mut id = sha256_hex(format!("{subject}\n{name}").as_bytes());
    id.truncate(26);
    format!("{PREFIX}{id}")
}

impl NewPush {
    /// The name under which it is found again.
    pub fn name(&self) -> String {
        let of_url = || format!("push-{}", &sha256_hex(self.url.as_bytes())[..12]);
        self.name.clone().unwrap_or_else(of_url)
    }

    /// The webhook that carries the notifications.
    pub fn webhook(&self, account: &AccountId, subject: &str, at: Timestamp) -> Webhook {
        let name = self.name();
        let ends = [WebhookEventType::RoundDecided, WebhookEventType::VerifierRunCompleted];
        Webhook {
            account: account.clone(),
            id: push_id(subject, &name),
            url: self.url.clone(),
            description: Some(name),
            events: WebhookEvents::Only(ends.into()),
            subject: Some(subject.to_owned()),
            scheme: WebhookScheme::Token,
            state: WebhookState::Enabled,
            disabled: None,
            failing_since: None,
            previous_secret_until: None,
            created_at: at,
            updated_at: at,
        }
    }
}

/// An event as the protocol sends it: the last status of the task. `None` if the event is not the
/// end of a round.
pub fn notification(event: &str, context_id: &str) -> Option<String> {
    let event: Value = serde_json::from_str(event).ok()?;
    let data = &event["data"];
    let state = match data["state"].as_str()?.parse().ok()? {
        RoundEnding::Closed => "TASK_STATE_COMPLETED",
        RoundEnding::Expired => "TASK_STATE_FAILED",
        RoundEnding::Cancelled => "TASK_STATE_CANCELED",
    };
    let update = json!({
        "taskId": data["round_id"],
        "contextId": context_id,
        "status": { "state": state, "timestamp": event["timestamp"] },
        "metadata": data,
    });
    Some(json!({ "statusUpdate": update }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(name: Option<&str>) -> NewPush {
        let proof = PushProof { context_id: "ctx_1".to_owned(), token: None, authorization: None };
        let (name, url) = (name.map(str::to_owned), "https://example.com/news".to_owned());
        NewPush { name, url, proof }
    }

    #[test]
    fn a_name_means_the_same_notification_within_its_task_only() {
        let account = AccountId::admin();
        let id = |name, task| push(name).webhook(&account, task, Timestamp::from_millis(0)).id;
        assert_eq!(id(Some("a"), "rnd_1"), id(Some("a"), "rnd_1"));
        assert_ne!(id(Some("a"), "rnd_1"), id(Some("b"), "rnd_1"));
        assert_ne!(id(Some("a"), "rnd_1"), id(Some("a"), "rnd_2"));
        assert_eq!(id(None, "rnd_1"), id(None, "rnd_1"));
        assert!(is_push_id(&id(None, "rnd_1")));
    }

    #[test]
    fn a_proof_is_stored_and_read_but_not_shown() {
        let proof = PushProof {
            context_id: "ctx_1".to_owned(),
            token: Some("open sesame".to_owned()),
            authorization: Some("Bearer xyzzy".to_owned()),
        };
        assert_eq!(PushProof::of_secret(&proof.to_secret()), proof);
        let webhook = push(None).webhook(&AccountId::admin(), "rnd_1", Timestamp::from_millis(0));
        let seen = Push::of(webhook, &proof.to_secret());
        assert_eq!(seen.auth_scheme.as_deref(), Some("Bearer"));
        let shown = format!("{proof:?} {seen:?}");
        assert!(!shown.contains("sesame") && !shown.contains("xyzzy"), "{shown}");
    }

    #[test]
    fn a_notification_is_the_last_status_of_the_task() {
        let event = |state: &str| {
            json!({
                "type": "round.decided", "timestamp": "2026-09-21T14:13:20.000Z",
                "data": { "round_id": "rnd_1", "state": state, "verdict": "VALID" },
            })
            .to_string()
        };
        for (state, expected) in [
            ("closed", "TASK_STATE_COMPLETED"),
            ("expired", "TASK_STATE_FAILED"),
            ("cancelled", "TASK_STATE_CANCELED"),
        ] {
            let sent = notification(&event(state), "ctx_1").unwrap();
            let sent: Value = serde_json::from_str(&sent).unwrap();
            let update = &sent["statusUpdate"];
            assert_eq!(update["taskId"], "rnd_1");
            assert_eq!(update["contextId"], "ctx_1");
            assert_eq!(update["status"]["state"], expected);
            assert_eq!(update["status"]["timestamp"], "2026-09-21T14:13:20.000Z");
            assert_eq!(update["metadata"]["verdict"], "VALID");
        }
        assert_eq!(notification(&event("open"), "ctx_1"), None);
        assert_eq!(notification("{}", "ctx_1"), None);
    }
}
