//! Webhooks, and the outbox of deliveries to them.

use std::collections::BTreeSet;

use jurat_core::{
    id::AccountId,
    round::RoundEnding,
    webhook::{
        MOST_PER_TASK, Webhook, WebhookChange, WebhookDelivery, WebhookDeliveryFilter,
        WebhookDeliveryState, WebhookEvent, WebhookEventType, WebhookEvents, WebhookScheme,
        WebhookSecret, WebhookState,
    },
};
use jurat_store::{
    Behalf, NotFound, NotLeaseHolder, PushAdd, Store, TakenWebhookDelivery, TooManyPushes,
    TooManyWebhooks, WebhookAdd, WebhookEffect, WebhookKey, WebhookNoted, WebhookOutcome,
    WebhookPruning, WebhookReplay, WebhookSend, WebhookSendRefusal, WebhookTake, WebhookUpdate,
    WriteOutcome,
};

use super::workflows::behalf;
use crate::{
    backend::Backend,
    samples::{account, at, close_round, closing, costing, grant, open_round, page, round},
};

fn webhook(whose: &AccountId, number: u32) -> Webhook {
    Webhook {
        account: whose.clone(),
        id: format!("whk_{number}"),
        url: format!("https://example.com/{number}"),
        description: None,
        events: WebhookEvents::All,
        subject: None,
        scheme: WebhookScheme::Standard,
        state: WebhookState::Enabled,
        disabled: None,
        failing_since: None,
        previous_secret_until: None,
        created_at: at(1),
        updated_at: at(1),
    }
}

async fn added(store: &Store, webhook: &Webhook) {
    let secret = WebhookSecret::new("whsec_c2VjcmV0".to_owned());
    let add = WebhookAdd { webhook: webhook.clone(), secret, most: 3 };
    let done = store.webhooks().add(&behalf(&webhook.account), &add, None).await.unwrap();
    assert_eq!(done, WriteOutcome::Done(webhook.clone()));
}

async fn deliveries(store: &Store, whose: &AccountId, webhook: &str) -> Vec<WebhookDelivery> {
    let filter = WebhookDeliveryFilter {
        webhook: webhook.to_owned(),
        state: None,
        before: None,
        limit: 10_000,
    };
    store.webhooks().deliveries(&behalf(whose), whose, &filter).await.unwrap()
}

async fn taken(store: &Store, now: i64, without: &[&str]) -> Vec<TakenWebhookDelivery> {
    let without = without.iter().map(|it| (*it).to_owned()).collect();
    let take = WebhookTake { now: at(now), until: at(now + 100), limit: 10, without };
    store.webhooks().take_due(&Behalf::Platform, &take).await.unwrap()
}

async fn sent(store: &Store, whose: &AccountId, webhook: &str, nonce: u128) -> WebhookDelivery {
    let event = WebhookEvent::of_test(whose, webhook, nonce, at(10));
    let key = WebhookKey { account: whose.clone(), id: webhook.to_owned() };
    sent_as(store, WebhookSend { key, event, at: at(10) }).await
}

async fn sent_as(store: &Store, send: WebhookSend) -> WebhookDelivery {
    match store.webhooks().send(&behalf(&send.key.account), &send, None).await.unwrap() {
        WriteOutcome::Done(delivery) => delivery,
        other => panic!("{other:?}"),
    }
}

fn outcome(delivery: &WebhookDelivery, effect: WebhookEffect) -> WebhookOutcome {
    let is_done = effect == WebhookEffect::Works;
    WebhookOutcome {
        account: delivery.account.clone(),
        id: delivery.id.clone(),
        webhook: delivery.webhook.clone(),
        attempt: delivery.attempts,
        attempts_before: delivery.attempts_before,
        created_at: delivery.created_at,
        state: if is_done {
            WebhookDeliveryState::Delivered
        } else {
            WebhookDeliveryState::Pending
        },
        next_at: (!is_done).then(|| at(500)),
        status: Some(if is_done { 200 } else { 500 }),
        reply: Some("reply".to_owned()),
        last_error: (!is_done).then(|| "error".to_owned()),
        effect,
        at: at(50),
    }
}

fn disable_after(failures: u32) -> WebhookEffect {
    WebhookEffect::Disable { reason: "too long".to_owned(), after_failures: failures }
}

async fn noted(
    store: &Store,
    outcome: &WebhookOutcome,
) -> WriteOutcome<WebhookNoted, NotLeaseHolder> {
    store.webhooks().note(&behalf(&outcome.account), outcome, None).await.unwrap()
}

/// Writes a row of every table of webhooks.
pub(crate) async fn with_everything(store: &Store, whose: &AccountId) {
    added(store, &webhook(whose, 1)).await;
    sent(store, whose, "whk_1", 1).await;
}

pub(crate) async fn a_round_is_announced_in_the_transaction_that_closes_it(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    let only = |types: &[WebhookEventType]| WebhookEvents::Only(types.iter().copied().collect());
    added(store, &webhook(&alice, 1)).await;
    let round_events = only(&[WebhookEventType::RoundDecided]);
    added(store, &Webhook { events: round_events, ..webhook(&alice, 2) }).await;
    let others = only(&[WebhookEventType::TaskFailed, WebhookEventType::CreditLow]);
    added(store, &Webhook { events: others, ..webhook(&alice, 3) }).await;
    added(store, &webhook(&bob, 4)).await;
    let open = round(&alice, 1);
    open_round(store, &open).await;
    assert_eq!(deliveries(store, &alice, "whk_1").await, []);
    close_round(store, &open, &closing(&open)).await;
    for name in ["whk_1", "whk_2"] {
        let found = deliveries(store, &alice, name).await;
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0].event_type, WebhookEventType::RoundDecided);
        assert_eq!(found[0].state, WebhookDeliveryState::Pending);
        assert_eq!(found[0].subject.as_deref(), Some(open.id.as_str()));
        assert!(found[0].body.contains(open.id.as_str()), "{}", found[0].body);
    }
    let first = deliveries(store, &alice, "whk_1").await.remove(0);
    let second = deliveries(store, &alice, "whk_2").await.remove(0);
    assert_eq!(first.event_id, second.event_id);
    assert_eq!(deliveries(store, &alice, "whk_3").await, [], "it wants other events");
    assert_eq!(deliveries(store, &bob, "whk_4").await, []);
    // A round that another node ended is announced once.
    close_round(store, &open, &closing(&open)).await;
    assert_eq!(deliveries(store, &alice, "whk_1").await.len(), 1);
}

pub(crate) async fn a_webhook_about_one_round_receives_no_others(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let (wanted, other) = (round(&alice, 1), round(&alice, 2));
    let subject = Some(wanted.id.to_string());
    let scheme = WebhookScheme::Token;
    added(store, &Webhook { subject, scheme, ..webhook(&alice, 1) }).await;
    for open in [&wanted, &other] {
        open_round(store, open).await;
        close_round(store, open, &costing(open, RoundEnding::Closed, 0)).await;
    }
    let found = deliveries(store, &alice, "whk_1").await;
    let subjects: Vec<&str> = found.iter().filter_map(|it| it.subject.as_deref()).collect();
    assert_eq!(subjects, [wanted.id.as_str()]);
    let listed = store.webhooks().list(&behalf(&alice), &alice, &page(None, 10)).await.unwrap();
    assert_eq!(listed, [], "it belongs to its subject");
}

pub(crate) async fn credit_is_announced_with_its_posting(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    store.accounts().ensure(&Behalf::Platform, &alice, &at(1)).await.unwrap();
    added(store, &webhook(&alice, 1)).await;
    store.ledger().grant(&Behalf::Platform, &grant(&alice, 1_000), None).await.unwrap();
    store.ledger().grant(&Behalf::Platform, &grant(&alice, -1_000), None).await.unwrap();
    let found = deliveries(store, &alice, "whk_1").await;
    let types: BTreeSet<WebhookEventType> = found.iter().map(|it| it.event_type).collect();
    let expected = [WebhookEventType::CreditGranted, WebhookEventType::CreditExhausted];
    assert_eq!(types, expected.into());
}

pub(crate) async fn a_delivery_is_taken_by_one_node_and_its_late_outcome_is_refused(
    backend: &Backend,
) {
    let store = &*backend.store;
    let alice = account("alice");
    added(store, &webhook(&alice, 1)).await;
    sent(store, &alice, "whk_1", 1).await;
    assert_eq!(store.webhooks().next_due(&Behalf::Platform).await.unwrap(), Some(at(10)));
    assert_eq!(taken(store, 9, &[]).await, []);
    assert_eq!(taken(store, 20, &["whk_1"]).await, [], "the webhook is busy");
    assert_eq!(taken(store, 20, &[alice.as_str()]).await, [], "the account is at its limit");
    let first = taken(store, 20, &["whk_2"]).await.remove(0);
    assert_eq!(first.delivery.attempts, 1);
    let (found, secrets) = first.webhook.clone().unwrap();
    assert_eq!(found, webhook(&alice, 1));
    assert_eq!(secrets.current.reveal(), "whsec_c2VjcmV0");
    assert_eq!(taken(store, 21, &[]).await, [], "it is leased");
    let second = taken(store, 120, &[]).await.remove(0);
    let late = outcome(&first.delivery, WebhookEffect::Works);
    assert_eq!(noted(store, &late).await, WriteOutcome::Refused(NotLeaseHolder));
    let done = outcome(&second.delivery, WebhookEffect::Works);
    assert_eq!(noted(store, &done).await, WriteOutcome::Done(WebhookNoted::Recorded));
    let found = deliveries(store, &alice, "whk_1").await.remove(0);
    assert_eq!((found.state, found.status), (WebhookDeliveryState::Delivered, Some(200)));
    assert_eq!((found.reply.as_deref(), found.next_at), (Some("reply"), None));
}

pub(crate) async fn a_disabled_webhook_is_announced_to_the_others(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    for number in [1, 2] {
        added(store, &webhook(&alice, number)).await;
    }
    for nonce in [1, 2] {
        sent(store, &alice, "whk_1", nonce).await;
    }
    let first = taken(store, 20, &[]).await.remove(0).delivery;
    // Which delivery fails again decides how many attempts have failed, and both are due.
    let same = async |now| {
        let mut found = taken(store, now, &[]).await.into_iter().map(|it| it.delivery);
        found.find(|it| it.id == first.id).unwrap()
    };
    let fails = outcome(&first, WebhookEffect::Fails);
    noted(store, &fails).await;
    let get = async || store.webhooks().get(&behalf(&alice), &alice, "whk_1").await.unwrap();
    assert_eq!(get().await.unwrap().failing_since, Some(at(50)));
    let again = same(600).await;
    // One attempt has failed before this one.
    let early = outcome(&again, disable_after(2));
    assert_eq!(noted(store, &early).await, WriteOutcome::Done(WebhookNoted::Recorded));
    assert_eq!(get().await.unwrap().state, WebhookState::Enabled);
    let again = same(1_200).await;
    let disable = outcome(&again, disable_after(2));
    assert_eq!(noted(store, &disable).await, WriteOutcome::Done(WebhookNoted::Disabled));
    let found = get().await.unwrap();
    assert_eq!((found.state, found.failing_since), (WebhookState::Disabled, Some(at(50))));
    assert_eq!(found.disabled.unwrap().reason, "too long");
    let all = deliveries(store, &alice, "whk_1").await;
    assert!(all.iter().all(|it| it.state == WebhookDeliveryState::Failed), "{all:?}");
    let told = deliveries(store, &alice, "whk_2").await;
    assert_eq!(told[0].event_type, WebhookEventType::WebhookDisabled);
    let disabled = store.webhooks().disabled(&Behalf::Platform, &10).await.unwrap();
    assert_eq!(disabled.len(), 1);
    let key = WebhookKey { account: alice.clone(), id: "whk_1".to_owned() };
    let change = WebhookChange { state: Some(WebhookState::Enabled), ..WebhookChange::default() };
    let update = WebhookUpdate { key, change, at: at(700) };
    store.webhooks().change(&behalf(&alice), &update, None).await.unwrap();
    let found = get().await.unwrap();
    assert_eq!(
        (found.state, found.disabled, found.failing_since),
        (WebhookState::Enabled, None, None)
    );
}

pub(crate) async fn a_delivery_is_replayed_unless_it_is_waiting(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    added(store, &webhook(&alice, 1)).await;
    let delivery = sent(store, &alice, "whk_1", 1).await;
    let replay = async |whose: &AccountId| {
        let account = whose.clone();
        let replay = WebhookReplay { account, delivery: delivery.id.clone(), at: at(90) };
        store.webhooks().replay(&behalf(whose), &replay, None).await.unwrap()
    };
    assert_eq!(replay(&alice).await, WriteOutcome::Refused(WebhookSendRefusal::Pending));
    assert_eq!(replay(&bob).await, WriteOutcome::Refused(WebhookSendRefusal::Unknown));
    let first = taken(store, 20, &[]).await.remove(0).delivery;
    noted(store, &outcome(&first, WebhookEffect::Works)).await;
    let WriteOutcome::Done(again) = replay(&alice).await else { panic!("it is not replayed") };
    assert_eq!((again.attempts, again.attempts_before), (1, 1));
    assert_eq!(again.event_id, delivery.event_id);
    assert_eq!(taken(store, 95, &[]).await.len(), 1);
}

pub(crate) async fn a_late_outcome_changes_nothing_after_the_delivery_was_given_up_or_replayed(
    backend: &Backend,
) {
    let store = &*backend.store;
    let alice = account("alice");
    added(store, &webhook(&alice, 1)).await;
    let switch = async |state| {
        let key = WebhookKey { account: alice.clone(), id: "whk_1".to_owned() };
        let change = WebhookChange { state: Some(state), ..WebhookChange::default() };
        let update = WebhookUpdate { key, change, at: at(60) };
        store.webhooks().change(&behalf(&alice), &update, None).await.unwrap();
    };
    let sent_once = sent(store, &alice, "whk_1", 1).await;
    let slow = taken(store, 20, &[]).await.remove(0).delivery;
    switch(WebhookState::Disabled).await;
    let fails = outcome(&slow, WebhookEffect::Fails);
    assert_eq!(noted(store, &fails).await, WriteOutcome::Refused(NotLeaseHolder));
    switch(WebhookState::Enabled).await;
    let replay =
        WebhookReplay { account: alice.clone(), delivery: sent_once.id.clone(), at: at(90) };
    store.webhooks().replay(&behalf(&alice), &replay, None).await.unwrap();
    for effect in [WebhookEffect::Fails, WebhookEffect::Works, disable_after(0)] {
        let late = outcome(&slow, effect);
        assert_eq!(noted(store, &late).await, WriteOutcome::Refused(NotLeaseHolder));
    }
    let found = deliveries(store, &alice, "whk_1").await.remove(0);
    assert_eq!((found.state, found.next_at), (WebhookDeliveryState::Pending, Some(at(90))));
    // What was given up may have arrived all the same.
    let current = taken(store, 95, &[]).await.remove(0).delivery;
    switch(WebhookState::Disabled).await;
    let works = outcome(&current, WebhookEffect::Works);
    assert_eq!(noted(store, &works).await, WriteOutcome::Done(WebhookNoted::Recorded));
    let found = deliveries(store, &alice, "whk_1").await.remove(0);
    assert_eq!(found.state, WebhookDeliveryState::Delivered);
}

pub(crate) async fn a_push_notification_whose_receiver_is_gone_is_removed_in_silence(
    backend: &Backend,
) {
    let store = &*backend.store;
    let alice = account("alice");
    added(store, &webhook(&alice, 1)).await;
    let subject = Some("rnd_1".to_owned());
    let gone = Webhook { id: "psh_2".to_owned(), subject: subject.clone(), ..webhook(&alice, 2) };
    added(store, &gone).await;
    sent(store, &alice, "psh_2", 1).await;
    let first = taken(store, 20, &[]).await.remove(0).delivery;
    let removed = outcome(&first, WebhookEffect::Remove);
    assert_eq!(noted(store, &removed).await, WriteOutcome::Done(WebhookNoted::Recorded));
    let found = store.webhooks().get(&behalf(&alice), &alice, "psh_2").await.unwrap();
    assert_eq!(found, None);
    assert_eq!(deliveries(store, &alice, "psh_2").await, []);
    assert_eq!(deliveries(store, &alice, "whk_1").await, [], "nobody is told");
    // One that was disabled before is no webhook that its owner looks after.
    added(store, &Webhook { id: "psh_3".to_owned(), subject, ..webhook(&alice, 3) }).await;
    sent(store, &alice, "psh_3", 1).await;
    let first = taken(store, 20, &[]).await.remove(0).delivery;
    noted(store, &outcome(&first, disable_after(0))).await;
    assert_eq!(store.webhooks().disabled(&Behalf::Platform, &10).await.unwrap(), []);
}

/// The new notification has the ids of the old one, and as many attempts.
pub(crate) async fn a_late_outcome_of_a_replaced_push_notification_changes_nothing(
    backend: &Backend,
) {
    let store = &*backend.store;
    let alice = account("alice");
    let push = Webhook { subject: Some("rnd_1".to_owned()), ..webhook(&alice, 1) };
    let event = WebhookEvent::of_test(&alice, "whk_1", 1, at(10));
    let secret = WebhookSecret::new("{}".to_owned());
    let add = PushAdd { webhook: push.clone(), secret, stale_before: at(0) };
    let key = WebhookKey { account: alice.clone(), id: push.id.clone() };
    let mut found = Vec::new();
    for millis in [20, 30] {
        let done = store.webhooks().add_push(&behalf(&alice), &add, None).await.unwrap();
        assert_eq!(done, WriteOutcome::Done(push.clone()));
        let send = WebhookSend { key: key.clone(), event: event.clone(), at: at(millis) };
        sent_as(store, send).await;
        found.push(taken(store, millis, &[]).await.remove(0).delivery);
    }
    let [old, new] = &found[..] else { panic!("each is taken once") };
    assert_eq!((&old.id, old.attempts), (&new.id, new.attempts));
    for effect in [WebhookEffect::Works, WebhookEffect::Fails, WebhookEffect::Remove] {
        let late = outcome(old, effect);
        assert_eq!(noted(store, &late).await, WriteOutcome::Refused(NotLeaseHolder));
    }
    assert_eq!(deliveries(store, &alice, "whk_1").await, std::slice::from_ref(new));
    let kept = store.webhooks().get(&behalf(&alice), &alice, "whk_1").await.unwrap();
    assert_eq!(kept, Some(push));
    let gone = outcome(new, WebhookEffect::Remove);
    assert_eq!(noted(store, &gone).await, WriteOutcome::Done(WebhookNoted::Recorded));
    let kept = store.webhooks().get(&behalf(&alice), &alice, "whk_1").await.unwrap();
    assert_eq!(kept, None);
}

pub(crate) async fn waiting_deliveries_are_limited_and_the_rest_is_recorded(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    added(store, &webhook(&alice, 1)).await;
    let more = "insert into webhook_deliveries (account_id, id, webhook_id, event_id, event_type, \
        body, state, attempts, attempts_before, next_at, created_at, updated_at) \
        with recursive n (i) as (select 1 union all select i + 1 from n where i < 1000) \
        select 'acct_alice', 'dlv_' || i, 'whk_1', 'evt_' || i, 'webhook.test', '{}', 'pending', \
        0, 0, 1, 1, 1 from n";
    backend.tamper(more).await.unwrap();
    let open = round(&alice, 1);
    open_round(store, &open).await;
    close_round(store, &open, &closing(&open)).await;
    let found = deliveries(store, &alice, "whk_1").await;
    assert_eq!(found.len(), 1_001);
    let crowded = &found[0];
    assert_eq!((crowded.state, crowded.next_at), (WebhookDeliveryState::Failed, None));
    assert!(crowded.last_error.as_deref().unwrap().starts_with("1000 deliveries were waiting"));
}

pub(crate) async fn webhooks_are_limited_listed_and_removed_with_their_deliveries(
    backend: &Backend,
) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    for number in [1, 2, 3] {
        added(store, &webhook(&alice, number)).await;
    }
    added(store, &webhook(&bob, 0)).await;
    let secret = WebhookSecret::new("s".to_owned());
    let add = WebhookAdd { webhook: webhook(&alice, 4), secret, most: 3 };
    let refused = store.webhooks().add(&behalf(&alice), &add, None).await.unwrap();
    assert_eq!(refused, WriteOutcome::Refused(TooManyWebhooks));
    let ids = async |after: Option<&str>, limit| -> Vec<String> {
        let page = page(after, limit);
        let list = store.webhooks().list(&behalf(&alice), &alice, &page).await.unwrap();
        list.into_iter().map(|it| it.id).collect()
    };
    assert_eq!(ids(None, 2).await, ["whk_1", "whk_2"]);
    assert_eq!(ids(Some("whk_2"), 2).await, ["whk_3"]);
    sent(store, &alice, "whk_1", 1).await;
    let key = |whose: &AccountId| WebhookKey { account: whose.clone(), id: "whk_1".to_owned() };
    let removed = store.webhooks().remove(&behalf(&bob), &key(&bob), None).await.unwrap();
    assert_eq!(removed, WriteOutcome::Refused(NotFound));
    let removed = store.webhooks().remove(&behalf(&alice), &key(&alice), None).await.unwrap();
    assert_eq!(removed, WriteOutcome::Done(()));
    assert_eq!(deliveries(store, &alice, "whk_1").await, []);
    assert_eq!(ids(None, 9).await, ["whk_2", "whk_3"]);
}

pub(crate) async fn old_deliveries_are_pruned_and_waiting_ones_stay(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    added(store, &webhook(&alice, 1)).await;
    for nonce in [1, 2] {
        sent(store, &alice, "whk_1", nonce).await;
    }
    let done = taken(store, 20, &[]).await.remove(0).delivery;
    noted(store, &outcome(&done, WebhookEffect::Works)).await;
    let pruning = WebhookPruning {
        account: alice.clone(),
        before: at(11),
        stale_pushes_before: at(0),
        limit: 10,
    };
    assert_eq!(store.webhooks().prune(&Behalf::Platform, &pruning).await.unwrap(), 1);
    let left = deliveries(store, &alice, "whk_1").await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].state, WebhookDeliveryState::Pending);
}

pub(crate) async fn push_notifications_are_few_and_go_when_they_are_stale(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    let push = |whose: &AccountId, subject: &str, number: u32, added_at: i64| PushAdd {
        webhook: Webhook {
            id: format!("psh_{subject}{number}"),
            subject: Some(subject.to_owned()),
            created_at: at(added_at),
            ..webhook(whose, number)
        },
        secret: WebhookSecret::new("{}".to_owned()),
        stale_before: at(5),
    };
    let add = async |push: &PushAdd| {
        let whose = behalf(&push.webhook.account);
        store.webhooks().add_push(&whose, push, None).await.unwrap()
    };
    let names = async |whose: &AccountId, subject: &str| -> Vec<String> {
        let found = store.webhooks().pushes(&behalf(whose), whose, subject).await.unwrap();
        found.into_iter().map(|it| it.webhook.id).collect()
    };
    for number in 0..MOST_PER_TASK {
        assert!(matches!(add(&push(&alice, "a", number, 1)).await, WriteOutcome::Done(_)));
    }
    // A refusal changes nothing, and the limit does not keep one from being replaced.
    let many = add(&push(&alice, "a", MOST_PER_TASK, 1)).await;
    assert_eq!(many, WriteOutcome::Refused(TooManyPushes::OfSubject));
    assert!(matches!(add(&push(&alice, "a", 0, 1)).await, WriteOutcome::Done(_)));
    assert_eq!(names(&alice, "a").await.len(), 10);
    let count = async |before: i64| {
        let whose = behalf(&alice);
        store.webhooks().push_count(&whose, &alice, &at(before)).await.unwrap()
    };
    assert_eq!((count(1).await, count(5).await), (10, 0));
    assert_eq!(names(&bob, "a").await, Vec::<String>::new());

    // One waits to be delivered, and stays; the others are stale.
    sent(store, &alice, "psh_a3", 1).await;
    assert_eq!(count(5).await, 1);
    assert!(matches!(add(&push(&alice, "b", 0, 9)).await, WriteOutcome::Done(_)));
    let pruning = WebhookPruning {
        account: alice.clone(),
        before: at(0),
        stale_pushes_before: at(5),
        limit: 10,
    };
    assert_eq!(store.webhooks().prune(&Behalf::Platform, &pruning).await.unwrap(), 0);
    assert_eq!(names(&alice, "a").await, ["psh_a3"]);
    assert_eq!(names(&alice, "b").await, ["psh_b0"]);
}
