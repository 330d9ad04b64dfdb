//! Agent events: an outbox to executors, and an inbox from them.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    task::agent_event::{
        AgentEventAddition, AgentEventFilter, AgentEventRecord, Delivery, NewAgentEvent,
    },
    time::Timestamp,
};
use serde_json::Value;

use super::tasks::read::LAST;
use crate::{
    Result, StoreError,
    db::{
        row::{DbRow, RowReader, json},
        tx::{Tx, args, of_found, operations},
    },
};

operations! {
    /// Agent events to executors and from them.
    pub struct AgentEventOps = store.agent_events();
    reads {
        fn get(account: &AccountId, id: &str) -> Option<AgentEventRecord> = get;
        /// The account's events, newest first.
        fn page(account: &AccountId, filter: &AgentEventFilter) -> Vec<AgentEventRecord> = page;
        /// The time at which the next event of any account is due.
        fn next_due() -> Option<Timestamp> = next;
        /// The number of the account's events that wait for the executor, counted up to the limit.
        fn pending(account: &AccountId, executor: &str, limit: &u32) -> u32 = pending;
        /// The first account after this text that has events.
        fn account_after(after: &str) -> Option<AccountId> = account_after;
    }
    changes {
        /// Takes due events of all accounts, the longest due first. The number of attempts of an
        /// event identifies its holder until it is taken again.
        fn take_due(take: &AgentEventTake) -> Vec<AgentEventRecord> = take_due;
        /// Removes old events of an account that are no longer delivered, the oldest first, up to
        /// the limit. Returns the number of removed events.
        fn prune(pruning: &AgentEventPruning) -> u64 = prune;
    }
    writes {
        /// Adds an event once: an event that the executor already has under the key is returned as
        /// is.
        fn add(added: &AgentEventAdd) -> AgentEventAddition, or TooManyPending = add_one;
        /// Records the outcome of an event, unless the event was taken again in the meantime.
        fn note(outcome: &AgentEventOutcome) -> (), or NotLeaseHolder = note;
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct AgentEventAdd {
    pub account: AccountId,
    pub event: NewAgentEvent,
    pub at: Timestamp,
    /// Maximum number of the account's events that wait for the executor, including this one.
    pub most_pending: u32,
}

/// Too many events of the account wait for the executor: nothing was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyPending;

/// An event that is recorded but not delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct UndeliverableEvent {
    pub event: NewAgentEvent,
    pub reason: String,
}

/// Selects the events to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEventPruning {
    pub account: AccountId,
    /// Removes events that were added before this time.
    pub before: Timestamp,
    pub limit: u32,
}

/// A request for due events, with the time until which they are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEventTake {
    pub now: Timestamp,
    /// When each event is sent again, if no outcome is recorded by then.
    pub until: Timestamp,
    pub limit: u32,
    /// Executors at their limit, whose events are not taken.
    pub without: Vec<String>,
    /// Accounts at their limit, whose events are not taken.
    pub without_accounts: Vec<String>,
}

/// The outcome of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEventOutcome {
    pub account: AccountId,
    pub id: String,
    /// The number of attempts with which the event was taken.
    pub attempt: u32,
    pub state: Delivery,
    /// When the event is delivered again; `None` if it is not.
    pub next_at: Option<Timestamp>,
    pub decision: Option<Value>,
    pub last_error: Option<String>,
    pub at: Timestamp,
}

/// Another node holds the lease, or the item is gone: nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotLeaseHolder;

const ADD: &str = "\
    insert into agent_events (\
        account_id, id, direction, executor, event_type, source_kind, dedupe_key, body, state, \
        attempts, next_at, last_error, created_at, updated_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11, $12, $12) on conflict do nothing";

const COLUMNS: &str = "\
    agent_events.account_id, agent_events.id, agent_events.direction, agent_events.executor, \
    agent_events.event_type, agent_events.source_kind, agent_events.dedupe_key, \
    agent_events.body, agent_events.state, agent_events.attempts, agent_events.next_at, \
    agent_events.decision, agent_events.last_error, agent_events.created_at, \
    agent_events.updated_at";

const GET: &str =
    concatcp!("select ", COLUMNS, " from agent_events where account_id = $1 and id = $2");

const BY_KEY: &str = concatcp!(
    "select ",
    COLUMNS,
    " from agent_events where account_id = $1 and direction = $2 and executor = $3 \
     and dedupe_key = $4"
);

/// Each filter has its own statement, so that it uses an index.
macro_rules! page {
    ($filter:expr, $at:literal, $id:literal, $limit:literal) => {
        const_format::concatcp!(
            "select ",
            COLUMNS,
            " from agent_events where account_id = $1 ",
            $filter,
            " and (created_at, id) < (",
            $at,
            ", ",
            $id,
            ") order by created_at desc, id desc limit ",
            $limit
        )
    };
}

const ANY: &str = page!("", "$2", "$3", "$4");
const OF_STATE: &str = page!("and state = $2", "$3", "$4", "$5");
const OF_EXECUTOR: &str = page!("and executor = $2", "$3", "$4", "$5");
const OF_BOTH: &str = page!("and executor = $2 and state = $3", "$4", "$5", "$6");

/// Pages of events with or without a review, which no index covers.
macro_rules! reviewed {
    ($filter:literal, $is:literal, $at:literal, $id:literal, $limit:literal) => {
        (
            page!(
                const_format::concatcp!(
                    $filter,
                    " and case when json_extract(decision, '$.action') = 'human_review' \
                     then 1 else 0 end = ",
                    $is
                ),
                $at,
                $id,
                $limit
            ),
            page!(
                const_format::concatcp!(
                    $filter,
                    " and case when cast(decision as json) ->> 'action' = 'human_review' \
                     then 1 else 0 end = ",
                    $is
                ),
                $at,
                $id,
                $limit
            ),
        )
    };
}

const REVIEWED: (&str, &str) = reviewed!("", "$2", "$3", "$4", "$5");
const REVIEWED_STATE: (&str, &str) = reviewed!("and state = $2", "$3", "$4", "$5", "$6");
const REVIEWED_EXECUTOR: (&str, &str) = reviewed!("and executor = $2", "$3", "$4", "$5", "$6");
const REVIEWED_BOTH: (&str, &str) =
    reviewed!("and executor = $2 and state = $3", "$4", "$5", "$6", "$7");

const NEXT: &str = "\
    select id, next_at from agent_events where next_at is not null order by next_at limit 1";

/// A name contains no comma, so `replace` shortens a list only if the name is in it.
const TAKE: (&str, &str) = of_found!(
    "update agent_events set attempts = attempts + 1, next_at = $1, updated_at = $2",
    "agent_events where next_at <= $2 and \
     replace(cast($3 as text), ',' || executor || ',', '') = cast($3 as text) and \
     replace(cast($4 as text), ',' || account_id || ',', '') = cast($4 as text) \
     order by next_at limit $5",
    concatcp!(" returning ", COLUMNS)
);

const NOTE: &str = "\
    update agent_events set state = $1, next_at = $2, decision = coalesce($3, decision), \
    last_error = $4, updated_at = $5 where account_id = $6 and id = $7 and attempts = $8";

/// Counted only up to the limit.
const PENDING: &str = "\
    select $1 as id, count(*) as times from (\
        select 1 from agent_events where account_id = $1 and executor = $2 and state = 'pending' \
        limit $3) as pending_events";

const ACCOUNT_AFTER: &str = "\
    select id, account_id from agent_events where account_id > $1 order by account_id limit 1";

const PRUNE: (&str, &str) = of_found!(
    "delete from agent_events",
    "agent_events where account_id = $1 and created_at < $2 and next_at is null \
     order by created_at limit $3",
    ""
);

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (ADD, ADD),
    (GET, GET),
    (BY_KEY, BY_KEY),
    (ANY, ANY),
    (OF_STATE, OF_STATE),
    (OF_EXECUTOR, OF_EXECUTOR),
    (OF_BOTH, OF_BOTH),
    (NEXT, NEXT),
    (NOTE, NOTE),
    (PENDING, PENDING),
    (ACCOUNT_AFTER, ACCOUNT_AFTER),
    REVIEWED,
    REVIEWED_STATE,
    REVIEWED_EXECUTOR,
    REVIEWED_BOTH,
    TAKE,
    PRUNE,
];

/// Adds an event, unless it is known already.
pub(crate) async fn add(
    tx: &mut Tx<'_>,
    account: &AccountId,
    event: &NewAgentEvent,
    at: Timestamp,
) -> Result<bool> {
    insert(tx, account, (event, None), at).await
}

/// Adds an event that is not delivered, with the reason.
pub(crate) async fn add_given_up(
    tx: &mut Tx<'_>,
    account: &AccountId,
    given_up: &UndeliverableEvent,
    at: Timestamp,
) -> Result<bool> {
    insert(tx, account, (&given_up.event, Some(&given_up.reason)), at).await
}

async fn insert(
    tx: &mut Tx<'_>,
    account: &AccountId,
    (event, given_up): (&NewAgentEvent, Option<&str>),
    at: Timestamp,
) -> Result<bool> {
    let state = if given_up.is_some() { Delivery::Failed } else { Delivery::Pending };
    let args = args![
        account,
        &event.id,
        event.direction.as_str(),
        &event.executor,
        &event.event_type,
        &event.source_kind,
        event.dedupe_key.as_deref(),
        json(&event.body)?,
        state.as_str(),
        event.next_at.filter(|_| given_up.is_none()),
        given_up,
        at
    ];
    Ok(tx.run(ADD, args).await? == 1)
}

async fn add_one(
    tx: &mut Tx<'_>,
    added: &AgentEventAdd,
) -> Result<Result<AgentEventAddition, TooManyPending>> {
    let AgentEventAdd { account, event, at, most_pending } = added;
    // A known event does not count against the limit.
    if let Some(record) = known(tx, account, event).await? {
        return Ok(Ok(AgentEventAddition { record, is_new: false }));
    }
    if *most_pending <= pending(tx, account, &event.executor, most_pending).await? {
        return Ok(Err(TooManyPending));
    }
    let is_new = add(tx, account, event, *at).await?;
    let record = known(tx, account, event).await?;
    let missing = || StoreError::conflict("an event that was added is not there");
    Ok(Ok(AgentEventAddition { record: record.ok_or_else(missing)?, is_new }))
}

/// The event with the key, or with the identifier if it has no key.
async fn known(
    tx: &mut Tx<'_>,
    account: &AccountId,
    event: &NewAgentEvent,
) -> Result<Option<AgentEventRecord>> {
    let Some(key) = &event.dedupe_key else { return get(tx, account, &event.id).await };
    let args = args![account, event.direction.as_str(), &event.executor, key];
    tx.first(BY_KEY, args, read).await
}

async fn pending(tx: &mut Tx<'_>, account: &AccountId, executor: &str, limit: &u32) -> Result<u32> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "agent_events", "id")?.count("times");
    Ok(tx.first(PENDING, args![account, executor, *limit], read).await?.unwrap_or(0))
}

async fn account_after(tx: &mut Tx<'_>, after: &str) -> Result<Option<AccountId>> {
    let read = |cells: &dyn DbRow| {
        RowReader::new(cells, "agent_events", "id")?.id("account_id", AccountId::parse)
    };
    tx.first(ACCOUNT_AFTER, args![after], read).await
}

async fn prune(tx: &mut Tx<'_>, pruning: &AgentEventPruning) -> Result<u64> {
    let args = args![&pruning.account, pruning.before, pruning.limit];
    tx.run(tx.own(PRUNE), args).await
}

async fn get(tx: &mut Tx<'_>, account: &AccountId, id: &str) -> Result<Option<AgentEventRecord>> {
    tx.first(GET, args![account, id], read).await
}

async fn page(
    tx: &mut Tx<'_>,
    account: &AccountId,
    filter: &AgentEventFilter,
) -> Result<Vec<AgentEventRecord>> {
    let is_reviewed = filter.needs_review.is_some();
    let text = match (&filter.executor, filter.state) {
        (None, None) if is_reviewed => tx.own(REVIEWED),
        (None, Some(_)) if is_reviewed => tx.own(REVIEWED_STATE),
        (Some(_), None) if is_reviewed => tx.own(REVIEWED_EXECUTOR),
        (Some(_), Some(_)) if is_reviewed => tx.own(REVIEWED_BOTH),
        (None, None) => ANY,
        (None, Some(_)) => OF_STATE,
        (Some(_), None) => OF_EXECUTOR,
        (Some(_), Some(_)) => OF_BOTH,
    };
    let mut args = args![account];
    args.extend(filter.executor.as_ref().map(Into::into));
    args.extend(filter.state.map(|state| state.as_str().into()));
    args.extend(filter.needs_review.map(Into::into));
    let before = filter.before.as_ref();
    args.push(before.map_or(LAST, |it| it.created_at).into());
    args.push(before.map_or("", |it| it.id.as_str()).into());
    args.push(filter.limit.into());
    tx.all(text, args, read).await
}

async fn next(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "agent_events", "id")?.time("next_at");
    tx.first(NEXT, args![], read).await
}

async fn take_due(tx: &mut Tx<'_>, take: &AgentEventTake) -> Result<Vec<AgentEventRecord>> {
    let listed = |names: &[String]| format!(",{},", names.join(",,"));
    let (executors, accounts) = (listed(&take.without), listed(&take.without_accounts));
    let args = args![take.until, take.now, executors, accounts, take.limit];
    tx.all(tx.own(TAKE), args, read).await
}

async fn note(tx: &mut Tx<'_>, outcome: &AgentEventOutcome) -> Result<Result<(), NotLeaseHolder>> {
    let decision = outcome.decision.as_ref().map(json).transpose()?;
    let args = args![
        outcome.state.as_str(),
        outcome.next_at,
        decision.as_deref(),
        outcome.last_error.as_deref(),
        outcome.at,
        &outcome.account,
        &outcome.id,
        outcome.attempt
    ];
    Ok(if tx.run(NOTE, args).await? == 1 { Ok(()) } else { Err(NotLeaseHolder) })
}

fn read(cells: &dyn DbRow) -> Result<AgentEventRecord> {
    let columns = RowReader::new(cells, "agent_events", "id")?;
    let event = NewAgentEvent {
        id: columns.text("id")?,
        direction: columns.word("direction")?,
        executor: columns.text("executor")?,
        event_type: columns.text("event_type")?,
        source_kind: columns.text("source_kind")?,
        dedupe_key: columns.maybe_text("dedupe_key")?,
        body: columns.document("body")?,
        next_at: columns.maybe_time("next_at")?,
    };
    Ok(AgentEventRecord {
        account: columns.id("account_id", AccountId::parse)?,
        event,
        state: columns.word("state")?,
        attempts: columns.count("attempts")?,
        decision: columns.maybe_document("decision")?,
        last_error: columns.maybe_text("last_error")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}
