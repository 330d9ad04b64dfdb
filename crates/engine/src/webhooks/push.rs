//! Push notifications: an agent is told when one task has ended.

use std::time::Duration;

use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    id::RoundId,
    round::Round,
    time::Timestamp,
    webhook::{
        KEPT_MS, MOST_PER_ACCOUNT, MOST_PER_TASK, NewPush, Push, Webhook, WebhookEvent, push_id,
        push_subject,
    },
};
use jurat_store::{PushAdd, TooManyPushes, WebhookKey, WebhookSend, WriteOutcome};

use crate::{
    Engine, EngineError, IdempotentOutcome, Leaves,
    access::{behalf_of, require_key, require_scope},
};

/// How long a node waits for a round before it looks again.
const LOOK: Duration = Duration::from_secs(30);

impl Engine {
    /// Checks whether the caller may be notified at an address, and whether its account may have
    /// one more push notification, before anything is begun.
    pub async fn push_check(&self, caller: &Caller, url: &str) -> Result<(), EngineError> {
        self.push_allowed(caller, url)?;
        let (webhooks, account) = (self.inner.store.webhooks(), caller.account());
        let stale = stale_before(self.inner.clock.now());
        let count = webhooks.push_count(&behalf_of(caller), account, &stale).await?;
        if MOST_PER_ACCOUNT <= count {
            return Err(EngineError::Conflict(too_many(TooManyPushes::OfAccount)));
        }
        Ok(())
    }

    fn push_allowed(&self, caller: &Caller, url: &str) -> Result<(), EngineError> {
        require_scope(caller, Scope::RoundsCreate)?;
        require_scope(caller, Scope::RoundsRead)?;
        require_key(caller)?;
        self.check_webhook_url(url)
    }

    /// Notifies an address when a round has ended, or now if it has. The same name replaces what it
    /// named before.
    pub async fn push_add(
        &self,
        caller: &Caller,
        round: &RoundId,
        new: NewPush,
    ) -> Result<Push, EngineError> {
        self.push_allowed(caller, &new.url)?;
        let round = self.round_show(caller, round).await?;
        let at = self.inner.clock.now();
        let webhook = new.webhook(caller.account(), subject(&round)?, at);
        let secret = new.proof.to_secret();
        let add = PushAdd { webhook, secret, stale_before: stale_before(at) };
        let (webhooks, behalf) = (self.inner.store.webhooks(), behalf_of(caller));
        let written = self
            .write_idempotent::<Webhook, _>(caller, None, Leaves::Rows, async |once| {
                let writing = webhooks.add_push(&behalf, &add, once);
                self.inner.metrics.write("push_add", writing).await
            })
            .await?;
        match written {
            Ok(IdempotentOutcome::Now(added)) => {
                self.notify_at_end(caller, &round.open.id, &added);
                Ok(Push::of(added, &add.secret))
            }
            Ok(IdempotentOutcome::Before(_)) => Ok(Push::of(add.webhook, &add.secret)),
            Err(refused) => Err(EngineError::Conflict(too_many(refused))),
        }
    }

    /// The push notifications about a round, in order of creation.
    pub async fn push_list(
        &self,
        caller: &Caller,
        round: &RoundId,
    ) -> Result<Vec<Push>, EngineError> {
        let round = self.round_show(caller, round).await?;
        let Ok(subject) = subject(&round) else { return Ok(Vec::new()) };
        let webhooks = self.inner.store.webhooks();
        Ok(webhooks.pushes(&behalf_of(caller), caller.account(), subject).await?)
    }

    pub async fn push_show(
        &self,
        caller: &Caller,
        round: &RoundId,
        name: &str,
    ) -> Result<Push, EngineError> {
        let found = self.push_list(caller, round).await?;
        let is_named = |it: &Push| it.webhook.description.as_deref() == Some(name);
        found.into_iter().find(is_named).ok_or_else(|| unknown(name))
    }

    /// Removes a push notification, with what still waits to be sent.
    pub async fn push_remove(
        &self,
        caller: &Caller,
        round: &RoundId,
        name: &str,
    ) -> Result<(), EngineError> {
        require_scope(caller, Scope::RoundsCreate)?;
        require_key(caller)?;
        let round = self.round_show(caller, round).await?;
        let id = push_id(subject(&round).map_err(|_| unknown(name))?, name);
        let removed = WebhookKey { account: caller.account().clone(), id };
        let (webhooks, behalf) = (self.inner.store.webhooks(), behalf_of(caller));
        let writing = webhooks.remove(&behalf, &removed, None);
        match self.inner.metrics.write("push_remove", writing).await? {
            WriteOutcome::Done(()) | WriteOutcome::Repeated => {
                self.inner.webhooks.waits.end(&removed.id);
                Ok(())
            }
            WriteOutcome::Refused(_) => Err(unknown(name)),
        }
    }

    /// Sends the notification when the round has ended. Closing the round announces it, too, and the
    /// same event is sent once; but a round that closes while the notification is being added may
    /// not have seen it. A notification has one wait, however often it is replaced.
    fn notify_at_end(&self, caller: &Caller, round: &RoundId, webhook: &Webhook) {
        let (engine, caller, id) = (self.clone(), caller.clone(), round.clone());
        let key = WebhookKey { account: webhook.account.clone(), id: webhook.id.clone() };
        let wait = self.inner.webhooks.waits.begin(&webhook.id);
        let _waiting = self.inner.background.spawn(async move {
            let ended = wait.until(engine.ended_round(&caller, &id)).await;
            let Some(round) = ended.flatten() else { return };
            let event = round.closing.as_ref();
            let event = event.and_then(|closing| WebhookEvent::of_ended(&round.open, closing));
            let Some(event) = event else { return };
            let send = WebhookSend { key, event, at: engine.inner.clock.now() };
            let (webhooks, behalf) = (engine.inner.store.webhooks(), behalf_of(&caller));
            let writing = webhooks.send(&behalf, &send, None);
            match engine.inner.metrics.write("push_send", writing).await {
                Ok(_) => engine.inner.webhooks.wake().notify_one(),
                Err(error) => {
                    tracing::warn!(error = %error, round.id = %id, "could not send a push notification");
                }
            }
        });
    }

    /// Waits for the end of a round; `None` if this node stops first.
    async fn ended_round(&self, caller: &Caller, id: &RoundId) -> Option<Round> {
        loop {
            let round = self.round_wait(caller, id, LOOK).await.ok()?;
            if round.closing.is_some() {
                return Some(round);
            }
            if self.is_stopping() {
                return None;
            }
        }
    }
}

/// The time before which a push notification that was added has nothing more to do.
pub(super) fn stale_before(now: Timestamp) -> Timestamp {
    Timestamp::from_millis(now.millis().saturating_sub_unsigned(KEPT_MS))
}

fn subject(round: &Round) -> Result<&str, EngineError> {
    push_subject(&round.open).ok_or_else(|| {
        let reason =
            "the end of this round is not announced, because it is part of a task or a measurement";
        EngineError::refused(ProblemCode::NotSupported, reason)
    })
}

fn too_many(refused: TooManyPushes) -> String {
    match refused {
        TooManyPushes::OfSubject => format!(
            "the task has {MOST_PER_TASK} push notifications, which is the limit; remove one first"
        ),
        TooManyPushes::OfAccount => format!(
            "the account has {MOST_PER_ACCOUNT} push notifications, which is the limit; remove some, or wait: they go {} days after they were added",
            KEPT_MS / (24 * 60 * 60 * 1_000)
        ),
    }
}

fn unknown(name: &str) -> EngineError {
    EngineError::NotFound { what: "push notification", id: name.to_owned() }
}
