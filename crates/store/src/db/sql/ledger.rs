//! The SQL of credits and of how accounts stand.

/// Changes a balance, unless there is none or less is available than is needed. What the account
/// may owe stays as it is without `$6`, and is not limited where that is below zero.
macro_rules! balance_change {
    () => {
        "update credit_balances set granted = granted + $1, available = available + $2, \
         held = held + $3, spent = spent + $4, lines = lines + $5, \
         may_owe = case when cast($6 as bigint) < 0 then null \
         else coalesce(cast($6 as bigint), may_owe) end \
         where account_id = $7 and available >= coalesce($8, available) \
         returning account_id, granted, available, held, spent, lines"
    };
}
pub(crate) use balance_change;

pub(crate) const BALANCE_CHANGE: &str = balance_change!();
pub(crate) const BALANCE_MAKE: &str = "\
    insert into credit_balances (account_id, granted, available, held, spent, lines) \
    values ($1, 0, 0, 0, 0, 0) on conflict do nothing";
pub(crate) const BALANCE_GET: &str = "\
    select account_id, granted, available, held, spent, lines \
    from credit_balances where account_id = $1";
/// The same; whoever else moves credit of the account waits until this transaction ends.
pub(crate) const BALANCE_LOCK: &str = "\
    select account_id, granted, available, held, spent, lines \
    from credit_balances where account_id = $1 for update";
/// By how much the rounds of an account that are under way may cost more than they hold, without
/// the one that is about to begin.
pub(crate) const AT_RISK: &str = "\
    select $1 as account_id, \
    cast(coalesce(sum(most_micros - held_micros), 0) as bigint) as at_risk from rounds \
    where account_id = $1 and state = 'open' and most_micros > held_micros and id <> $2";

pub(crate) const TRANSFER_ADD: &str = "\
    insert into credit_transfers (account_id, id, movement, micros, round_id, note, created_at) \
    values ($1, $2, $3, $4, $5, $6, $7)";
pub(crate) const TRANSFER_LIST: &str = "\
    select id, movement, micros, round_id, note, created_at from credit_transfers \
    where account_id = $1 and id < $2 order by id desc limit $3";
/// A round has one line of what it cost, if it cost anything. What a provider reports afterwards is
/// a line of its own, which counts for no other round where it gives something back.
pub(crate) const SPENT: &str = "\
    select $1 as account_id, cast(coalesce(sum(micros), 0) as bigint) as micros, \
    cast(coalesce(sum(case when micros > 0 then 1 else 0 end), 0) as bigint) as rounds \
    from credit_transfers \
    where account_id = $1 and movement = 'capture' and created_at >= $2";

/// What was spent and is reserved in a day without a key.
pub(crate) const DAY_GET: &str = "select day, micros from anonymous_days where day = $1";
pub(crate) const DAY_MAKE: &str =
    "insert into anonymous_days (day, micros) values ($1, 0) on conflict do nothing";
/// Reserves a part of the day, if so much is left of it.
pub(crate) const DAY_RESERVE: &str = "\
    update anonymous_days set micros = micros + $1 where day = $2 and micros + $1 <= $3";
pub(crate) const DAY_RETURN: &str = "update anonymous_days set micros = micros - $1 where day = $2";

macro_rules! account {
    ($rest:expr) => {
        concat!(
            "select accounts.id, accounts.created_at, accounts.suspended_at, \
             coalesce(credit_balances.granted, 0) as granted, \
             coalesce(credit_balances.available, 0) as available, \
             coalesce(credit_balances.held, 0) as held, \
             coalesce(credit_balances.spent, 0) as spent \
             from accounts left join credit_balances on credit_balances.account_id = accounts.id \
             where ",
            $rest
        )
    };
}

pub(crate) const ACCOUNT_GET: &str = account!("accounts.id = $1");
pub(crate) const ACCOUNT_LIST: &str = account!("accounts.id > $1 order by accounts.id limit $2");
/// One that is suspended already stays so from when it was.
pub(crate) const ACCOUNT_SUSPEND: &str =
    "update accounts set suspended_at = coalesce(suspended_at, $1) where id = $2";
pub(crate) const ACCOUNT_RESUME: &str = "update accounts set suspended_at = null where id = $1";

/// Each finds what breaks a rule, and says which rule. The first column names it.
pub(crate) const RULES: [(&str, &str); 6] = [
    (
        "the balance does not match its ledger lines",
        "select credit_balances.account_id from credit_balances left join ( \
         select account_id, count(*) as lines, \
         sum(case when movement = 'grant' then micros else 0 end) as granted, \
         sum(case when movement = 'hold' then -micros when movement = 'capture' then 0 \
         else micros end) as available, \
         sum(case when movement = 'hold' then micros when movement = 'grant' then 0 \
         else -micros end) as held, \
         sum(case when movement = 'capture' then micros else 0 end) as spent \
         from credit_transfers group by account_id \
         ) as sums on sums.account_id = credit_balances.account_id \
         where credit_balances.granted <> coalesce(sums.granted, 0) \
         or credit_balances.available <> coalesce(sums.available, 0) \
         or credit_balances.held <> coalesce(sums.held, 0) \
         or credit_balances.spent <> coalesce(sums.spent, 0) \
         or credit_balances.lines <> coalesce(sums.lines, 0) limit $1",
    ),
    (
        "there are ledger lines but no balance",
        "select distinct account_id from credit_transfers where not exists ( \
         select 1 from credit_balances \
         where credit_balances.account_id = credit_transfers.account_id) limit $1",
    ),
    (
        "the ledger lines do not match the round: the amount it held, and how that was settled",
        "select sums.round_id from ( \
         select account_id, round_id, \
         sum(case when movement = 'hold' then micros else 0 end) as held, \
         sum(case when movement = 'hold' then 0 else micros end) as settled \
         from credit_transfers where round_id is not null group by account_id, round_id \
         ) as sums left join rounds \
         on rounds.account_id = sums.account_id and rounds.id = sums.round_id \
         where rounds.id is null or sums.held <> coalesce(rounds.held_micros, 0) \
         or sums.settled <> case when rounds.state = 'open' then 0 else sums.held end limit $1",
    ),
    (
        "several rounds are in progress, and together they may cost more than the account has",
        "select rounds.account_id from rounds join credit_balances \
         on credit_balances.account_id = rounds.account_id \
         where rounds.state = 'open' and rounds.is_limited = 1 \
         and rounds.most_micros > rounds.held_micros \
         group by rounds.account_id, credit_balances.available having count(*) > 1 \
         and credit_balances.available < sum(rounds.most_micros - rounds.held_micros) limit $1",
    ),
    (
        "the round is open, but its hold is not in the ledger",
        "select rounds.id from rounds left join ( \
         select account_id, round_id from credit_transfers where movement = 'hold' \
         ) as holds on holds.account_id = rounds.account_id and holds.round_id = rounds.id \
         where rounds.state = 'open' and rounds.held_micros > 0 and holds.round_id is null limit $1",
    ),
    (
        "the execution is marked as paid, but its round captured nothing",
        "select execution_id from execution_captures where not exists ( \
         select 1 from credit_transfers \
         where credit_transfers.account_id = execution_captures.account_id \
         and credit_transfers.round_id = execution_captures.round_id \
         and credit_transfers.movement = 'capture') limit $1",
    ),
];

/// Executions of steps that were captured more than once; each database reads documents its own
/// way.
macro_rules! captured_twice {
    ($execution:expr) => {
        (
            "the execution was captured more than once",
            concat!(
                "select ",
                $execution,
                " from credit_transfers join rounds \
                 on rounds.account_id = credit_transfers.account_id \
                 and rounds.id = credit_transfers.round_id \
                 where credit_transfers.movement = 'capture' and rounds.step is not null \
                 group by rounds.account_id, ",
                $execution,
                " having count(distinct rounds.id) > 1 limit $1"
            ),
        )
    };
}

pub(crate) const CAPTURED_TWICE_SQLITE: (&str, &str) =
    captured_twice!("json_extract(rounds.step, '$.execution_id')");
pub(crate) const CAPTURED_TWICE_POSTGRES: (&str, &str) =
    captured_twice!("rounds.step::json ->> 'execution_id'");
