-- What an account uses, is owed and has accepted is counted where nobody else can write it.
-- The previous binary runs on the result.

-- What judge calls cost. The most that a round can cost, where that is more than it holds; null for
-- one that costs no more than it holds.
alter table rounds add column most_micros bigint;
-- What the judge calls cost that have left so far, for each seat: written before each of them leaves,
-- so that a round whose node stops is charged for what was sent.
alter table rounds add column sent_micros text;
-- By how much the rounds of an account that are under way may cost more than they hold.
create index rounds_at_risk on rounds (account_id) where state = 'open' and most_micros > held_micros;
-- How much the account may owe: what its one call that the credit does not cover may cost beyond it.
-- Null for an account that is not limited, and where only an older program wrote.
alter table credit_balances add column may_owe bigint check (may_owe is null or available >= -may_owe);

-- What the latest judgments of a verifier used, for each account that runs it.
create table judge_history (
    account_id text not null,
    verifier_id text not null,
    model text not null,
    samples text not null,
    updated_at bigint not null,
    primary key (account_id, verifier_id, model)
);

create index judge_history_of_all on judge_history (verifier_id);

-- Evidence that was seen at one address is not known to be there at another. What was kept before
-- has no address, and is fetched again.
alter table evidence_blobs add column uri text not null default '';

-- A task and a run keep the key that submitted them: its scopes and limits hold for their steps,
-- and they end with it. Null for what was submitted before keys were kept.
alter table tasks add column ordered_by text;
alter table task_runs add column ordered_by text;

-- What the execution of a task's step costs is captured once, however many rounds ask for it and
-- whichever node closes one of them late. The row is written with the capture, in the transaction
-- that closes the round.
create table execution_captures (
    account_id text not null,
    execution_id text not null,
    round_id text not null,
    captured_at bigint not null,
    primary key (account_id, execution_id)
) without rowid;

insert into execution_captures (account_id, execution_id, round_id, captured_at)
select rounds.account_id, json_extract(rounds.step, '$.execution_id'), rounds.id,
    credit_transfers.created_at
from credit_transfers join rounds
on rounds.account_id = credit_transfers.account_id and rounds.id = credit_transfers.round_id
where credit_transfers.movement = 'capture' and rounds.step is not null
order by credit_transfers.account_id, credit_transfers.id
on conflict do nothing;

-- The earlier rounds of a step are found by what is on record of them, which no caller writes.
create index rounds_by_execution on rounds (account_id, json_extract(step, '$.execution_id'))
where step is not null;
