//! Takes due tasks, with a fair share for each account if there are too few slots.
//!
//! There is no list of due tasks by account. The longest due tasks are read, which shows whether
//! any task has to wait. If so, a few more accounts are considered, and a few tasks of each, so
//! that it takes no longer if one account has very many.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    account::fair_share::share_fairly,
    id::AccountId,
    task::{TakenTasks, TaskKey, TaskTake},
    time::Timestamp,
};
use serde_json::{Value, json};

use super::rows::read_key;
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, json},
        tx::{Tx, args},
    },
};

/// The number of accounts to consider, and the number of tasks of each: this limit applies to open
/// and to unstarted tasks separately.
const ACCOUNTS: u32 = 32;
const OF_EACH: u32 = 64;

const OLDEST: (&str, &str) = (
    "select account_id, id, due_at from tasks where due_at <= $1 order by due_at limit $2",
    "select account_id, id, due_at from tasks where due_at <= $1 order by due_at limit $2 \
     for update skip locked",
);

/// Finds the accounts with open tasks one by one, without reading other tasks.
const WITH_TASKS: &str = "\
    with recursive named (account_id, place) as (\
        select (select min(account_id) from tasks where ended_at is null and account_id > $1), 1 \
        union all \
        select (select min(account_id) from tasks \
            where ended_at is null and account_id > named.account_id), place + 1 \
        from named where named.account_id is not null and place < $2) \
    select account_id from named where account_id is not null";

const OF_ACCOUNTS: (&str, &str) = (
    "\
    select tasks.account_id, tasks.id, tasks.due_at from json_each($1) as named \
    cross join tasks on tasks.rowid in (\
        select place from (select rowid as place from tasks as begun \
            where begun.account_id = json_extract(named.value, '$.account') and begun.ended_at is null limit $2) \
        union \
        select place from (select rowid as place from tasks as unbegun \
            where unbegun.account_id = json_extract(named.value, '$.account') and unbegun.phase = 'created' \
            order by unbegun.created_at, unbegun.id limit $2)) \
    where tasks.due_at <= $3",
    "\
    select found.account_id, found.id, found.due_at \
    from json_to_recordset(cast($1 as json)) as named (account text) \
    cross join lateral (\
        (select account_id, id, due_at from tasks \
            where account_id = named.account and ended_at is null limit $2) \
        union all \
        (select account_id, id, due_at from tasks \
            where account_id = named.account and phase = 'created' \
            order by created_at, id limit $2)) as found \
    where found.due_at <= $3",
);

const TAKE: (&str, &str) = (
    "\
    update tasks set due_at = $1 where rowid in (\
        select tasks.rowid from json_each($2) as chosen cross join tasks \
        on tasks.account_id = json_extract(chosen.value, '$.account') \
        and tasks.id = json_extract(chosen.value, '$.id') where tasks.due_at <= $3) \
    returning account_id, id",
    "\
    update tasks set due_at = $1 where ctid = any (array(\
        select tasks.ctid \
        from json_to_recordset(cast($2 as json)) as chosen (account text, id text) \
        join tasks on tasks.account_id = chosen.account and tasks.id = chosen.id \
        where tasks.due_at <= $3 for update of tasks skip locked)) \
    returning account_id, id",
);

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[OLDEST, (WITH_TASKS, WITH_TASKS), OF_ACCOUNTS, TAKE];

/// The longest due task is first.
type DueTask = (Timestamp, TaskKey);

pub(super) async fn due(tx: &mut Tx<'_>, take: &TaskTake) -> Result<TakenTasks> {
    let free = usize::try_from(take.limit).unwrap_or(usize::MAX);
    let args = args![take.now, take.limit.saturating_add(1)];
    let oldest = tx.all(tx.own(OLDEST), args, read_due).await?;
    let mut found: BTreeSet<DueTask> = oldest.into_iter().collect();
    let mut looked_to = None;
    if free < found.len() {
        let accounts = with_tasks(tx, take).await?;
        let named = |it: &AccountId| json!({ "account": it.as_str() });
        let named: Vec<Value> = accounts.iter().map(named).collect();
        let args = args![json(&named)?, OF_EACH, take.now];
        found.extend(tx.all(tx.own(OF_ACCOUNTS), args, read_due).await?);
        let is_end = accounts.len() < usize::try_from(ACCOUNTS).unwrap_or(usize::MAX);
        looked_to = if is_end { None } else { accounts.into_iter().next_back() };
    }
    let mut waiting: BTreeMap<AccountId, Vec<DueTask>> = BTreeMap::new();
    let all = found.len();
    for it in found {
        waiting.entry(it.1.account.clone()).or_default().push(it);
    }
    let chosen = share_fairly(waiting, &take.in_flight, free);
    let is_taken = taken(tx, take, &chosen).await?;
    let (some_wait, number) = (chosen.len() < all, chosen.len());
    let chosen = chosen.into_iter().map(|(_, key)| key);
    let tasks: Vec<TaskKey> = chosen.filter(|key| is_taken.contains(key)).collect();
    // If other nodes took some of the tasks first, another look is worthwhile.
    let some_wait = some_wait && tasks.len() == number;
    Ok(TakenTasks { tasks, some_wait, looked_to })
}

async fn with_tasks(tx: &mut Tx<'_>, take: &TaskTake) -> Result<Vec<AccountId>> {
    let read = |cells: &dyn DbRow| {
        RowReader::new(cells, "tasks", "account_id")?.id("account_id", AccountId::parse)
    };
    let after = take.after.as_ref().map_or("", AccountId::as_str);
    tx.all(WITH_TASKS, args![after, ACCOUNTS], read).await
}

/// Takes the tasks that no other node took in the meantime.
async fn taken(tx: &mut Tx<'_>, take: &TaskTake, chosen: &[DueTask]) -> Result<BTreeSet<TaskKey>> {
    if chosen.is_empty() {
        return Ok(BTreeSet::new());
    }
    let named = |(_, key): &DueTask| json!({ "account": key.account.as_str(), "id": key.id });
    let keys: Vec<Value> = chosen.iter().map(named).collect();
    let args = args![take.until, json(&keys)?, take.now];
    Ok(tx.all(tx.own(TAKE), args, read_key).await?.into_iter().collect())
}

fn read_due(cells: &dyn DbRow) -> Result<DueTask> {
    let due_at = RowReader::new(cells, "tasks", "id")?.time("due_at")?;
    Ok((due_at, read_key(cells)?))
}
