//! A long event log: copies of a task that the server itself completed.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jurat_core::{
    id::AccountId,
    task::{
        TaskEvent, TaskKey, TaskRecord,
        knowledge::{KnowledgeFilter, KnowledgeScope},
    },
};
use jurat_store::{
    Behalf, Store, TaskAppend, TaskAppendExtras, TaskEventsQuery, TaskSubmit, WriteOutcome,
};

/// Concurrent writes: as many as SQLite commits together.
const AT_ONCE: usize = 256;

/// A task with everything that was written about it.
#[derive(Debug)]
struct TaskLog {
    record: TaskRecord,
    events: Vec<TaskEvent>,
    with: TaskAppendExtras,
}

/// Fills the log with copies of the task until it has this many events.
pub(crate) async fn fill(store: &Arc<Store>, id: &str, events: u64) -> Result<()> {
    let whole = read(store, id).await?;
    let each = u64::try_from(whole.events.len())?;
    let copies = events.div_ceil(each).saturating_sub(1);
    let written = stream::iter(0..copies).map(|number| copy(store, &whole, number));
    written.buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await
}

async fn read(store: &Arc<Store>, id: &str) -> Result<TaskLog> {
    let (store, account) = (&store, AccountId::admin());
    let behalf = Behalf::Account(account.clone());
    let key = TaskKey { account: account.clone(), id: id.to_owned() };
    let record = store.tasks().get(&behalf, &key).await?.context("the first task is not there")?;
    let asked = TaskEventsQuery { task: key.clone(), after: 0, limit: 1_000 };
    let events = store.tasks().events(&behalf, &asked).await?;
    let candidate = store.tasks().candidates(&behalf, &key, &1).await?.pop();
    let of = KnowledgeScope::Task(id.to_owned());
    let page = KnowledgeFilter { of, before: None, limit: 1 };
    let learned = store.knowledge().export(&behalf, &account, &page).await?.pop();
    let knowledge = learned.map(|it| it.knowledge);
    let with = TaskAppendExtras { candidate, knowledge, ..TaskAppendExtras::default() };
    Ok(TaskLog { record, events: events.into_iter().map(|it| it.event).collect(), with })
}

/// Writes with the same operations as the server.
async fn copy(store: &Arc<Store>, whole: &TaskLog, number: u64) -> Result<()> {
    let TaskLog { record, events, with } = whole;
    let behalf = Behalf::Account(record.key.account.clone());
    let task = TaskKey { account: record.key.account.clone(), id: format!("copy-{number:08}") };
    let (first, rest) = events.split_at(1);
    let submit = TaskSubmit {
        task: task.clone(),
        task_type: record.task_type.clone(),
        contract: record.contract.clone(),
        contract_digest: record.contract_digest.clone(),
        panel: record.panel.clone(),
        ordered_by: None,
        state: record.state.clone(),
        events: first.to_vec(),
        due_at: None,
        at: record.created_at,
        most_open: u32::MAX,
    };
    let tasks = store.tasks();
    let submitted = tasks.submit(&behalf, &submit, None).await?;
    ensure!(matches!(submitted, WriteOutcome::Done(_)), "{number} was not submitted");
    let mut with = with.clone();
    if let Some(knowledge) = &mut with.knowledge {
        knowledge.digests.inputs = format!("sha256:{number:064x}");
    }
    let append = TaskAppend {
        task,
        expected_seq: 1,
        events: rest.to_vec(),
        state: record.state.clone(),
        due_at: None,
        at: record.updated_at,
        with,
    };
    let appended = tasks.append(&behalf, &append, None).await?;
    ensure!(matches!(appended, WriteOutcome::Done(())), "{number} was not written");
    Ok(())
}
