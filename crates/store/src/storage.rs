//! How much an account has stored, what is kept beside the decisions of rounds, and what goes when it
//! is old. Decision entries and the ledger never go.

use std::convert::Infallible;

use jurat_core::{
    id::{AccountId, RoundId},
    round::{Asked, Kept},
    time::Timestamp,
};

use crate::{
    Result,
    both::{Arg, Tx, args, of_found, operations},
    rows::{Cells, Columns},
    sql::registry::{erased_answer, readable},
};

operations! {
    /// What accounts have in the store, and for how long.
    pub trait Storage;
    reads {
        /// How much the account has stored, as far as it counts.
        fn storage_bytes(account: &AccountId) -> Stored = bytes;
        /// The account with something stored that comes next behind this text.
        fn storage_account(after: &str) -> Option<AccountId> = account_after;
        /// What is kept of a round beside its decision.
        fn round_kept(of: &RoundKey) -> Kept = kept;
        /// What was asked in some rounds, in one line each; rounds of which nothing is kept are
        /// left out.
        fn round_lines(of: &RoundKeys) -> Vec<(RoundId, String)> = lines;
        /// How much would go, counted up to the limit.
        fn prunable(pruning: &PruneOrder) -> Pruned = count;
    }
    writes {
        /// Erases what was asked and said in a round that has ended; its decision stays. Returns
        /// when it was erased, which may be earlier.
        fn round_erase(erasing: &RoundErasing) -> Timestamp, or NotErased = erase;
        /// Sums up what was counted of an account, so that it is read quickly.
        fn storage_sum(account: &AccountId) -> (), or Infallible = sum;
        /// Removes what is old of one account, of each kind no more than the limit.
        fn prune(pruning: &PruneOrder) -> Pruned, or Infallible = prune_some;
    }
}

/// How much an account has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub bytes: u64,
    /// Of so many numbers it is the sum.
    pub parts: u64,
}

/// A round of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundKey {
    pub account: AccountId,
    pub round: RoundId,
}

/// Some rounds of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundKeys {
    pub account: AccountId,
    pub rounds: Vec<RoundId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundErasing {
    pub account: AccountId,
    pub round: RoundId,
    pub at: Timestamp,
}

/// Why nothing was erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotErased {
    /// There is no such round.
    Unknown,
    /// It has not ended, and what is said in it is still needed.
    Open,
}

/// Which of an account's rows go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneOrder {
    pub account: AccountId,
    pub at: Timestamp,
    /// Answers under idempotency keys that were noted before.
    pub answers_before: Timestamp,
    /// What was asked and said in rounds that ended before.
    pub texts_before: Timestamp,
    /// Events of tasks and runs that ended before.
    pub events_before: Timestamp,
    /// Events to executors that were added before, which are only counted here: they have an
    /// operation of their own.
    pub agent_events_before: Timestamp,
    pub limit: u32,
}

/// How much went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Answers under idempotency keys.
    pub answers: u64,
    /// Rounds whose request, outputs and texts are erased.
    pub rounds: u64,
    /// Tasks whose events are removed.
    pub tasks: u64,
    /// Runs whose events are removed.
    pub runs: u64,
    /// Events to executors.
    pub agent_events: u64,
}

impl Pruned {
    /// The largest of the numbers.
    pub fn most(&self) -> u64 {
        let all = [self.answers, self.rounds, self.tasks, self.runs, self.agent_events];
        all.into_iter().max().unwrap_or_default()
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            answers: self.answers + other.answers,
            rounds: self.rounds + other.rounds,
            tasks: self.tasks + other.tasks,
            runs: self.runs + other.runs,
            agent_events: self.agent_events + other.agent_events,
        }
    }
}

// Without a row there is nothing stored, and the sum is null.
const BYTES: &str = "\
    select cast($1 as text) as id, cast(coalesce(sum(bytes), 0) as bigint) as bytes, \
    count(*) as parts from account_storage where account_id = $1";
/// SQLite has one number for each account. What others sum up at the same time is left to them.
const SUM: (&str, &str) = (
    "update account_storage set bytes = bytes where account_id = $1",
    "with gone as (delete from account_storage where ctid = any (array( \
     select ctid from account_storage where account_id = $1 for update skip locked)) \
     returning bytes) insert into account_storage (account_id, bytes) \
     select $1, sum(bytes) from gone having 0 < count(*)",
);
const ACCOUNT_AFTER: &str = "\
    select account_id as id from account_storage where account_id > $1 \
    order by account_id limit 1";
const KEPT: &str = "\
    select rounds.id, rounds.erased_at, round_payloads.asked, round_payloads.request from rounds \
    left join round_payloads on round_payloads.account_id = rounds.account_id \
    and round_payloads.round_id = rounds.id \
    where rounds.account_id = $1 and rounds.id = $2";
const LINES: (&str, &str) = (
    "select round_id as id, asked from round_payloads where account_id = $1 \
     and round_id in (select value from json_each($2))",
    "select round_id as id, asked from round_payloads where account_id = $1 \
     and round_id in (select value from json_array_elements_text($2::json))",
);

/// Notes of steps stay: they keep a step from being paid twice. So do those of rounds under way.
macro_rules! old_answers {
    () => {
        "from idempotency where account_id = $2 and created_at < $3 \
         and operation <> 'task_step' and (round_id is null or not exists ( \
         select 1 from rounds where rounds.account_id = idempotency.account_id \
         and rounds.id = idempotency.round_id and rounds.state = 'open')) \
         order by created_at limit $4"
    };
}
const ANSWERS: &str = concat!(
    "delete from idempotency where account_id = $1 and key in (select key ",
    old_answers!(),
    ")"
);
const ANSWERS_COUNT: &str = concat!(
    "select cast($1 as text) as id, count(*) as times from (select key ",
    old_answers!(),
    ") as old"
);

/// A step of a task that is not over may still be read by whoever drives it.
macro_rules! old_rounds {
    ($task:expr) => {
        concat!(
            "rounds where account_id = $2 and closed_at < $3 and erased_at is null \
             and (step is null or not exists (select 1 from tasks \
             where tasks.account_id = rounds.account_id and tasks.id = ",
            $task,
            " and tasks.ended_at is null)) order by closed_at limit $4"
        )
    };
}
macro_rules! old_rounds_sqlite {
    () => {
        old_rounds!("json_extract(rounds.step, '$.task_id')")
    };
}
macro_rules! old_rounds_postgres {
    () => {
        old_rounds!("cast(rounds.step as json) ->> 'task_id'")
    };
}
macro_rules! without_output_sqlite {
    () => {
        "json_remove(consensus, '$.output')"
    };
}
macro_rules! without_output_postgres {
    () => {
        concat!(
            "(select json_object_agg(key, value)::text from json_each(",
            readable!("rounds.consensus"),
            ") where key <> 'output')"
        )
    };
}
const ROUNDS: (&str, &str) = (
    concat!(
        "update rounds set erased_at = $1, consensus = ",
        without_output_sqlite!(),
        " where rowid in (select rowid from ",
        old_rounds_sqlite!(),
        ") returning id, run"
    ),
    concat!(
        "update rounds set erased_at = $1, consensus = ",
        without_output_postgres!(),
        " where ctid = any (array(select ctid from ",
        old_rounds_postgres!(),
        " for update skip locked)) returning id, run"
    ),
);
const ROUNDS_COUNT: (&str, &str) = (
    concat!(
        "select cast($1 as text) as id, count(*) as times from (select 1 from ",
        old_rounds_sqlite!(),
        ") as old"
    ),
    concat!(
        "select cast($1 as text) as id, count(*) as times from (select 1 from ",
        old_rounds_postgres!(),
        ") as old"
    ),
);
const ROUND: (&str, &str) = (
    concat!(
        "update rounds set erased_at = $1, consensus = ",
        without_output_sqlite!(),
        " where account_id = $2 and id = $3 and state <> 'open' and erased_at is null \
         returning id, run"
    ),
    concat!(
        "update rounds set erased_at = $1, consensus = ",
        without_output_postgres!(),
        " where account_id = $2 and id = $3 and state <> 'open' and erased_at is null \
         returning id, run"
    ),
);
const ROUND_STATE: &str =
    "select id, state, erased_at from rounds where account_id = $1 and id = $2";
const REPLICAS: (&str, &str) = (
    concat!(
        "update replicas set document = json_set(document, '$.answer', json(",
        erased_answer!(),
        ")) where account_id = $1 and round_id = $2"
    ),
    concat!(
        "update replicas set document = ( \
         select json_object_agg(key, case when key = 'answer' then (",
        erased_answer!(),
        ")::json else value end)::text from json_each(",
        readable!("document"),
        ")) where account_id = $1 and round_id = $2"
    ),
);
const PAYLOAD: &str = "delete from round_payloads where account_id = $1 and round_id = $2";
const REASONING: &str = "\
    update verifier_runs set reasoning = null where account_id = $1 and id = $2 \
    and reasoning is not null";

macro_rules! old_tasks {
    () => {
        "tasks where account_id = $2 and ended_at < $3 and events_pruned_at is null \
         order by ended_at limit $4"
    };
}
const TASKS: (&str, &str) =
    of_found!("update tasks set events_pruned_at = $1", old_tasks!(), " returning id");
const TASKS_COUNT: &str = concat!(
    "select cast($1 as text) as id, count(*) as times from (select 1 from ",
    old_tasks!(),
    ") as old"
);
const TASK_EVENTS: &str = "delete from task_events where account_id = $1 and task_id = $2";

macro_rules! old_runs {
    () => {
        "task_runs where account_id = $2 and finished_at < $3 and events_pruned_at is null \
         order by finished_at limit $4"
    };
}
const RUNS: (&str, &str) =
    of_found!("update task_runs set events_pruned_at = $1", old_runs!(), " returning id");
const RUNS_COUNT: &str = concat!(
    "select cast($1 as text) as id, count(*) as times from (select 1 from ",
    old_runs!(),
    ") as old"
);
const RUN_EVENTS: &str = "delete from task_run_events where account_id = $1 and run_id = $2";

const AGENT_EVENTS: &str = "\
    select cast($1 as text) as id, count(*) as times from (select 1 from agent_events where account_id = $2 \
    and created_at < $3 and next_at is null order by created_at limit $4) as old";

async fn bytes(tx: &mut impl Tx, account: &AccountId) -> Result<Stored> {
    let read = |cells: &dyn Cells| {
        let columns = Columns::new(&cells, "account_storage", "id")?;
        let bytes = u64::try_from(columns.number("bytes")?).unwrap_or(0);
        Ok(Stored { bytes, parts: columns.count("parts")? })
    };
    Ok(tx.first(BYTES, args![account], read).await?.unwrap_or(Stored { bytes: 0, parts: 0 }))
}

async fn sum(tx: &mut impl Tx, account: &AccountId) -> Result<Result<(), Infallible>> {
    tx.run(tx.own(SUM), args![account]).await.map(|_| Ok(()))
}

async fn account_after(tx: &mut impl Tx, after: &str) -> Result<Option<AccountId>> {
    let read = |cells: &dyn Cells| {
        Columns::new(&cells, "account_storage", "id")?.id("id", AccountId::parse)
    };
    tx.first(ACCOUNT_AFTER, args![after], read).await
}

async fn kept(tx: &mut impl Tx, of: &RoundKey) -> Result<Kept> {
    let read = |cells: &dyn Cells| {
        let columns = Columns::new(&cells, "round_payloads", "id")?;
        let request = columns.maybe_text("request")?;
        let asked = columns.maybe_text("asked")?.map(|line| Asked { line, request });
        Ok(Kept { asked, erased_at: columns.maybe_time("erased_at")? })
    };
    let args = args![&of.account, of.round.as_str()];
    Ok(tx.first(KEPT, args, read).await?.unwrap_or_default())
}

async fn lines(tx: &mut impl Tx, of: &RoundKeys) -> Result<Vec<(RoundId, String)>> {
    let read = |cells: &dyn Cells| {
        let columns = Columns::new(&cells, "round_payloads", "id")?;
        Ok((columns.id("id", RoundId::parse)?, columns.text("asked")?))
    };
    let ids: Vec<&str> = of.rounds.iter().map(RoundId::as_str).collect();
    tx.all(tx.own(LINES), args![&of.account, crate::rows::json(&ids)?], read).await
}

async fn count(tx: &mut impl Tx, pruning: &PruneOrder) -> Result<Pruned> {
    let rounds = tx.own(ROUNDS_COUNT);
    Ok(Pruned {
        answers: times(tx, ANSWERS_COUNT, pruning, pruning.answers_before).await?,
        rounds: times(tx, rounds, pruning, pruning.texts_before).await?,
        tasks: times(tx, TASKS_COUNT, pruning, pruning.events_before).await?,
        runs: times(tx, RUNS_COUNT, pruning, pruning.events_before).await?,
        agent_events: times(tx, AGENT_EVENTS, pruning, pruning.agent_events_before).await?,
    })
}

async fn times(
    tx: &mut impl Tx,
    text: &'static str,
    pruning: &PruneOrder,
    before: Timestamp,
) -> Result<u64> {
    let read = |cells: &dyn Cells| Columns::new(&cells, "rounds", "id")?.count("times");
    let args = args![&pruning.account, &pruning.account, before, pruning.limit];
    Ok(tx.first(text, args, read).await?.unwrap_or(0))
}

async fn erase(tx: &mut impl Tx, erasing: &RoundErasing) -> Result<Result<Timestamp, NotErased>> {
    let RoundErasing { account, round, at } = erasing;
    let args = args![*at, account, round.as_str()];
    let erased = tx.first(tx.own(ROUND), args, read_erased).await?;
    if let Some(erased) = erased {
        erase_beside(tx, account, erased).await?;
        return Ok(Ok(*at));
    }
    let read = |cells: &dyn Cells| {
        let columns = Columns::new(&cells, "rounds", "id")?;
        Ok((columns.text("state")?, columns.maybe_time("erased_at")?))
    };
    let found = tx.first(ROUND_STATE, args![account, round.as_str()], read).await?;
    Ok(match found {
        None => Err(NotErased::Unknown),
        Some((state, _)) if state == "open" => Err(NotErased::Open),
        Some((_, erased_at)) => Ok(erased_at.unwrap_or(*at)),
    })
}

/// A round of which the row is erased already, and the run that it was.
type Erased = (String, Option<String>);

fn read_erased(cells: &dyn Cells) -> Result<Erased> {
    let columns = Columns::new(&cells, "rounds", "id")?;
    Ok((columns.text("id")?, columns.maybe_text("run")?))
}

async fn erase_beside(tx: &mut impl Tx, account: &AccountId, erased: Erased) -> Result<()> {
    let (round, run) = erased;
    tx.run(tx.own(REPLICAS), args![account, &round]).await?;
    tx.run(PAYLOAD, args![account, &round]).await?;
    let run: Option<serde_json::Value> = run.and_then(|text| serde_json::from_str(&text).ok());
    if let Some(id) = run.as_ref().and_then(|ticket| ticket["id"].as_str()) {
        tx.run(REASONING, args![account, id]).await?;
    }
    Ok(())
}

async fn prune_some(tx: &mut impl Tx, pruning: &PruneOrder) -> Result<Result<Pruned, Infallible>> {
    let PruneOrder { account, at, limit, .. } = pruning;
    let bounds = |before: Timestamp| args![*at, account, before, *limit];
    let answers = args![account, account, pruning.answers_before, *limit];
    let answers = tx.run(ANSWERS, answers).await?;
    let rounds = tx.all(tx.own(ROUNDS), bounds(pruning.texts_before), read_erased).await?;
    let mut pruned = Pruned { answers, ..Pruned::default() };
    for erased in rounds {
        erase_beside(tx, account, erased).await?;
        pruned.rounds += 1;
    }
    let tasks = bounds(pruning.events_before);
    pruned.tasks = events(tx, account, (tx.own(TASKS), TASK_EVENTS), tasks).await?;
    let runs = bounds(pruning.events_before);
    pruned.runs = events(tx, account, (tx.own(RUNS), RUN_EVENTS), runs).await?;
    tx.run(tx.own(SUM), args![account]).await?;
    Ok(Ok(pruned))
}

/// Marks what has ended and is old, which lets its events go, and removes these.
async fn events(
    tx: &mut impl Tx,
    account: &AccountId,
    (mark, remove): (&'static str, &'static str),
    bounds: Vec<Arg>,
) -> Result<u64> {
    let read = |cells: &dyn Cells| Columns::new(&cells, "tasks", "id")?.text("id");
    let ended = tx.all(mark, bounds, read).await?;
    let mut count = 0;
    for id in ended {
        tx.run(remove, args![account, id]).await?;
        count += 1;
    }
    Ok(count)
}

/// The texts that read large tables, for a look at how the databases read.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (KEPT, KEPT),
    LINES,
    (ANSWERS, ANSWERS),
    ROUNDS,
    ROUND,
    (ROUND_STATE, ROUND_STATE),
    (PAYLOAD, PAYLOAD),
    TASKS,
    (TASK_EVENTS, TASK_EVENTS),
    RUNS,
    (RUN_EVENTS, RUN_EVENTS),
    (AGENT_EVENTS, AGENT_EVENTS),
];
