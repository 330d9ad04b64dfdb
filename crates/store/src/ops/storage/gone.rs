//! Erases and prunes data. Rows marked with `pruned_at` keep a skeleton, which does not count.

use const_format::concatcp;
use jurat_core::{id::AccountId, time::Timestamp};

use super::{ErasureRefusal, PruneCounts, PruneOrder, RoundErasure, SUM};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, of_found},
    },
    ops::erasure::{ERASED_ANSWER, READABLE_CONSENSUS, READABLE_DOCUMENT, READABLE_SPEC},
};

/// Notes of task calls keep a call from being paid for twice: they stay until their rounds are
/// pruned, long after the task ended. Notes of open rounds stay, too.
const OLD_ANSWERS: &str = "\
    from idempotency where account_id = $2 and created_at < $3 \
    and (operation <> 'task_step' or exists (select 1 from rounds \
    where rounds.account_id = idempotency.account_id \
    and rounds.id = idempotency.round_id and rounds.pruned_at is not null)) \
    and (round_id is null or not exists ( \
    select 1 from rounds where rounds.account_id = idempotency.account_id \
    and rounds.id = idempotency.round_id and rounds.state = 'open')) \
    order by created_at limit $4";
const ANSWERS: &str = concatcp!(
    "delete from idempotency where account_id = $1 and key in (select key ",
    OLD_ANSWERS,
    ")"
);
const ANSWERS_COUNT: &str = concatcp!(
    "select cast($1 as text) as id, count(*) as times from (select key ",
    OLD_ANSWERS,
    ") as old"
);

/// Skips rounds of open tasks, because the driver may still read them.
macro_rules! old_rounds {
    ($task:expr) => {
        const_format::concatcp!(
            "rounds where account_id = $2 and closed_at < $3 and pruned_at is null \
             and (step is null or not exists (select 1 from tasks \
             where tasks.account_id = rounds.account_id and tasks.id = ",
            $task,
            " and tasks.ended_at is null)) order by closed_at limit $4"
        )
    };
}
const OLD_ROUNDS_SQLITE: &str = old_rounds!("json_extract(rounds.step, '$.task_id')");
const OLD_ROUNDS_POSTGRES: &str = old_rounds!("cast(rounds.step as json) ->> 'task_id'");
const WITHOUT_OUTPUT_SQLITE: &str = "json_remove(consensus, '$.output')";
const WITHOUT_OUTPUT_POSTGRES: &str = concatcp!(
    "(select json_object_agg(key, value)::text from json_each(",
    READABLE_CONSENSUS,
    ") where key <> 'output')"
);
const ROUNDS: (&str, &str) = (
    concatcp!(
        "update rounds set erased_at = coalesce(erased_at, $1), pruned_at = $1, consensus = ",
        WITHOUT_OUTPUT_SQLITE,
        " where rowid in (select rowid from ",
        OLD_ROUNDS_SQLITE,
        ") returning id, run, erased_at"
    ),
    concatcp!(
        "update rounds set erased_at = coalesce(erased_at, $1), pruned_at = $1, consensus = ",
        WITHOUT_OUTPUT_POSTGRES,
        " where ctid = any (array(select ctid from ",
        OLD_ROUNDS_POSTGRES,
        " for update skip locked)) returning id, run, erased_at"
    ),
);
const ROUNDS_COUNT: (&str, &str) = (
    concatcp!(
        "select cast($1 as text) as id, count(*) as times from (select 1 from ",
        OLD_ROUNDS_SQLITE,
        ") as old"
    ),
    concatcp!(
        "select cast($1 as text) as id, count(*) as times from (select 1 from ",
        OLD_ROUNDS_POSTGRES,
        ") as old"
    ),
);
const ROUND: (&str, &str) = (
    concatcp!(
        "update rounds set erased_at = coalesce(erased_at, $1), pruned_at = $1, consensus = ",
        WITHOUT_OUTPUT_SQLITE,
        " where account_id = $2 and id = $3 and state <> 'open' and pruned_at is null \
         returning id, run, erased_at"
    ),
    concatcp!(
        "update rounds set erased_at = coalesce(erased_at, $1), pruned_at = $1, consensus = ",
        WITHOUT_OUTPUT_POSTGRES,
        " where account_id = $2 and id = $3 and state <> 'open' and pruned_at is null \
         returning id, run, erased_at"
    ),
);
const ROUND_STATE: &str =
    "select id, state, erased_at from rounds where account_id = $1 and id = $2";
const REPLICAS: (&str, &str) = (
    concatcp!(
        "update replicas set pruned_at = $1, document = json_set(document, '$.answer', json(",
        ERASED_ANSWER,
        ")) where account_id = $2 and round_id = $3"
    ),
    concatcp!(
        "update replicas set pruned_at = $1, document = ( \
         select json_object_agg(key, case when key = 'answer' then (",
        ERASED_ANSWER,
        ")::json else value end)::text from json_each(",
        READABLE_DOCUMENT,
        ")) where account_id = $2 and round_id = $3"
    ),
);
const PAYLOAD: &str = "delete from round_payloads where account_id = $1 and round_id = $2";
const REASONING: &str = "\
    update verifier_runs set reasoning = null, pruned_at = $1 where account_id = $2 and id = $3";

/// A task that can still be disputed is due once more, and is not pruned yet.
const OLD_TASKS: &str = "\
    tasks where account_id = $2 and ended_at < $3 and pruned_at is null and due_at is null \
    order by ended_at limit $4";
/// The digest stays, and identifies the contract.
const TASKS: (&str, &str) = of_found!(
    "update tasks set pruned_at = $1, events_pruned_at = coalesce(events_pruned_at, $1), \
     contract = '{}'",
    OLD_TASKS,
    " returning id"
);
const TASKS_COUNT: &str = concatcp!(
    "select cast($1 as text) as id, count(*) as times from (select 1 from ",
    OLD_TASKS,
    ") as old"
);
const OF_TASK: &[&str] = &[
    "delete from task_events where account_id = $1 and task_id = $2",
    "delete from task_candidates where account_id = $1 and task_id = $2",
    "delete from task_ballots where account_id = $1 and task_id = $2",
];

const OLD_AGENT_RUNS: &str = "\
    task_runs where account_id = $2 and finished_at < $3 and pruned_at is null \
    order by finished_at limit $4";
/// Keeps the identities of the agents, which belong to the state of the run, but not their prompts.
const PRUNE_AGENT_RUNS: &str = "\
    update task_runs set pruned_at = $1, \
    events_pruned_at = coalesce(events_pruned_at, $1), result = null, spec = ";
const AGENT_RUNS: (&str, &str) = (
    concatcp!(
        concatcp!(
            PRUNE_AGENT_RUNS,
            "json_object('run_id', id, 'task_type', task_type, 'agents', (select \
             json_group_array(json_object('agent_id', json_extract(value, '$.agent_id'), \
             'executor', json_extract(value, '$.executor'), \
             'profile', coalesce(json_extract(value, '$.profile'), 'default'), \
             'prompt', 'erased', 'weight', coalesce(json_extract(value, '$.weight'), 1), \
             'priority', coalesce(json_extract(value, '$.priority'), 0))) \
             from json_each(spec, '$.agents')))"
        ),
        " where rowid in (select rowid from ",
        OLD_AGENT_RUNS,
        ") returning id"
    ),
    concatcp!(
        concatcp!(
            PRUNE_AGENT_RUNS,
            "json_build_object('run_id', id, 'task_type', task_type, 'agents', (select \
             json_agg(json_build_object('agent_id', value ->> 'agent_id', \
             'executor', value ->> 'executor', \
             'profile', coalesce(value ->> 'profile', 'default'), \
             'prompt', 'erased', 'weight', coalesce(value -> 'weight', '1'::jsonb), \
             'priority', coalesce(value -> 'priority', '0'::jsonb))) \
             from jsonb_array_elements((",
            READABLE_SPEC,
            ")::jsonb -> 'agents')))::text"
        ),
        " where ctid = any (array(select ctid from ",
        OLD_AGENT_RUNS,
        " for update skip locked)) returning id"
    ),
);
const AGENT_RUNS_COUNT: &str = concatcp!(
    "select cast($1 as text) as id, count(*) as times from (select 1 from ",
    OLD_AGENT_RUNS,
    ") as old"
);
const AGENT_RUN_EVENTS: &str = "delete from task_run_events where account_id = $1 and run_id = $2";
const AGENT_RUN_STEPS: &str = "\
    update task_run_steps set pruned_at = $1, output = null, error = null \
    where account_id = $2 and run_id = $3";

const AGENT_EVENTS: &str = "\
    select cast($1 as text) as id, count(*) as times from (select 1 from agent_events where account_id = $2 \
    and created_at < $3 and next_at is null order by created_at limit $4) as old";

const DELIVERIES: &str = "\
    select cast($1 as text) as id, count(*) as times from (select 1 from webhook_deliveries \
    where account_id = $2 and created_at < $3 and next_at is null \
    order by created_at limit $4) as old";

pub(super) async fn count(tx: &mut Tx<'_>, pruning: &PruneOrder) -> Result<PruneCounts> {
    let rounds = tx.own(ROUNDS_COUNT);
    Ok(PruneCounts {
        answers: times(tx, ANSWERS_COUNT, pruning, pruning.answers_before).await?,
        rounds: times(tx, rounds, pruning, pruning.texts_before).await?,
        tasks: times(tx, TASKS_COUNT, pruning, pruning.events_before).await?,
        runs: times(tx, AGENT_RUNS_COUNT, pruning, pruning.events_before).await?,
        agent_events: times(tx, AGENT_EVENTS, pruning, pruning.agent_events_before).await?,
        webhook_deliveries: times(tx, DELIVERIES, pruning, pruning.deliveries_before).await?,
    })
}

async fn times(
    tx: &mut Tx<'_>,
    text: &'static str,
    pruning: &PruneOrder,
    before: Timestamp,
) -> Result<u64> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "rounds", "id")?.count("times");
    let args = args![&pruning.account, &pruning.account, before, pruning.limit];
    Ok(tx.first(text, args, read).await?.unwrap_or(0))
}

pub(super) async fn erase(
    tx: &mut Tx<'_>,
    erasing: &RoundErasure,
) -> Result<Result<Timestamp, ErasureRefusal>> {
    let RoundErasure { account, round, at } = erasing;
    let args = args![*at, account, round.as_str()];
    let erased = tx.first(tx.own(ROUND), args, read_erased).await?;
    if let Some(erased) = erased {
        let erased_at = erased.erased_at;
        erase_beside(tx, (account, *at), erased).await?;
        return Ok(Ok(erased_at));
    }
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "rounds", "id")?;
        Ok((columns.text("state")?, columns.maybe_time("erased_at")?))
    };
    let found = tx.first(ROUND_STATE, args![account, round.as_str()], read).await?;
    Ok(match found {
        None => Err(ErasureRefusal::Unknown),
        Some((state, _)) if state == "open" => Err(ErasureRefusal::Open),
        Some((_, erased_at)) => Ok(erased_at.unwrap_or(*at)),
    })
}

/// A round whose row is already erased.
struct ErasedRound {
    round: String,
    /// Its verifier run.
    run: Option<String>,
    erased_at: Timestamp,
}

fn read_erased(cells: &dyn DbRow) -> Result<ErasedRound> {
    let columns = RowReader::new(cells, "rounds", "id")?;
    let (round, run) = (columns.text("id")?, columns.maybe_text("run")?);
    Ok(ErasedRound { round, run, erased_at: columns.time("erased_at")? })
}

async fn erase_beside(
    tx: &mut Tx<'_>,
    (account, at): (&AccountId, Timestamp),
    erased: ErasedRound,
) -> Result<()> {
    let ErasedRound { round, run, .. } = erased;
    tx.run(tx.own(REPLICAS), args![at, account, &round]).await?;
    tx.run(PAYLOAD, args![account, &round]).await?;
    let run: Option<serde_json::Value> = run.and_then(|text| serde_json::from_str(&text).ok());
    if let Some(id) = run.as_ref().and_then(|ticket| ticket["id"].as_str()) {
        tx.run(REASONING, args![at, account, id]).await?;
    }
    Ok(())
}

pub(super) async fn prune_some(tx: &mut Tx<'_>, pruning: &PruneOrder) -> Result<PruneCounts> {
    let PruneOrder { account, at, limit, .. } = pruning;
    let bounds = |before: Timestamp| args![*at, account, before, *limit];
    let answers = args![account, account, pruning.answers_before, *limit];
    let answers = tx.run(ANSWERS, answers).await?;
    let rounds = tx.all(tx.own(ROUNDS), bounds(pruning.texts_before), read_erased).await?;
    let mut pruned = PruneCounts { answers, ..PruneCounts::default() };
    for erased in rounds {
        erase_beside(tx, (account, *at), erased).await?;
        pruned.rounds += 1;
    }
    let read = |cells: &dyn DbRow| RowReader::new(cells, "tasks", "id")?.text("id");
    let tasks = tx.all(tx.own(TASKS), bounds(pruning.events_before), read).await?;
    for task in tasks {
        for removal in OF_TASK {
            tx.run(removal, args![account, &task]).await?;
        }
        pruned.tasks += 1;
    }
    for run in tx.all(tx.own(AGENT_RUNS), bounds(pruning.events_before), read).await? {
        tx.run(AGENT_RUN_EVENTS, args![account, &run]).await?;
        tx.run(AGENT_RUN_STEPS, args![*at, account, &run]).await?;
        pruned.runs += 1;
    }
    tx.run(tx.own(SUM), args![account]).await?;
    Ok(pruned)
}

/// The statements that read large tables, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (ANSWERS, ANSWERS),
    ROUNDS,
    ROUND,
    (ROUND_STATE, ROUND_STATE),
    (PAYLOAD, PAYLOAD),
    TASKS,
    (OF_TASK[0], OF_TASK[0]),
    (OF_TASK[1], OF_TASK[1]),
    (OF_TASK[2], OF_TASK[2]),
    AGENT_RUNS,
    (AGENT_RUN_EVENTS, AGENT_RUN_EVENTS),
    (AGENT_RUN_STEPS, AGENT_RUN_STEPS),
    (AGENT_EVENTS, AGENT_EVENTS),
];
