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
    account_id text collate "C" not null,
    verifier_id text collate "C" not null,
    model text collate "C" not null,
    samples text not null,
    updated_at bigint not null,
    primary key (account_id, verifier_id, model)
);

create index judge_history_of_all on judge_history (verifier_id);

alter table judge_history enable row level security;
create policy of_account on judge_history using (jurat_sees(account_id));

-- A connection that has not said on whose behalf it asks sees nothing. It used to see everything, for
-- the sake of programs that never said so; none of these can run on this schema.
create or replace function jurat_sees(owner text) returns boolean language sql stable as $$
    select case coalesce(current_setting('jurat.account', true), '')
        when '*' then true
        when '' then false
        else owner = current_setting('jurat.account', true) end
$$;

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
    account_id text collate "C" not null,
    execution_id text collate "C" not null,
    round_id text collate "C" not null,
    captured_at bigint not null,
    primary key (account_id, execution_id)
);

insert into execution_captures (account_id, execution_id, round_id, captured_at)
select rounds.account_id, rounds.step::json ->> 'execution_id', rounds.id,
    credit_transfers.created_at
from credit_transfers join rounds
on rounds.account_id = credit_transfers.account_id and rounds.id = credit_transfers.round_id
where credit_transfers.movement = 'capture' and rounds.step is not null
order by credit_transfers.account_id, credit_transfers.id
on conflict do nothing;

alter table execution_captures enable row level security;
create policy of_account on execution_captures using (jurat_sees(account_id));

-- The earlier rounds of a step are found by what is on record of them, which no caller writes.
create index rounds_by_execution on rounds (account_id, (step::json ->> 'execution_id'))
where step is not null;
-- What was asked in a round, beside its decision entry, which holds the digest of it alone. A row of
-- its own, so that it can be erased and goes when it is old.
create table round_payloads (
    account_id text collate "C" not null,
    round_id text collate "C" not null,
    -- A line for lists.
    asked text not null,
    -- The canonical JSON of the request; null where it is too large to be kept.
    request text,
    created_at bigint not null,
    primary key (account_id, round_id)
);

create index round_payloads_by_age on round_payloads (account_id, created_at);
create index idempotency_by_age on idempotency (account_id, created_at);
create index rounds_by_end on rounds (account_id, closed_at) where closed_at is not null and erased_at is null;

-- When the events of a task or a run were removed because they were old; only then may they go.
alter table tasks add column events_pruned_at bigint;
alter table task_runs add column events_pruned_at bigint;

create index tasks_by_end on tasks (account_id, ended_at) where ended_at is not null and events_pruned_at is null;
create index task_runs_by_end on task_runs (account_id, finished_at) where finished_at is not null and events_pruned_at is null;

drop trigger task_events_never_change on task_events;
create trigger task_events_never_change before update or truncate on task_events
for each statement execute function task_events_refuse_change();

create function task_events_refuse_removal() returns trigger language plpgsql as $$
begin
    if not exists (
        select 1 from tasks where tasks.account_id = old.account_id and tasks.id = old.task_id
        and tasks.events_pruned_at is not null)
    then
        raise exception 'events of tasks are append-only';
    end if;
    return old;
end
$$;

create trigger task_events_never_go before delete on task_events
for each row execute function task_events_refuse_removal();

drop trigger task_run_events_never_change on task_run_events;
create trigger task_run_events_never_change before update or truncate on task_run_events
for each statement execute function task_run_events_refuse_change();

create function task_run_events_refuse_removal() returns trigger language plpgsql as $$
begin
    if not exists (
        select 1 from task_runs where task_runs.account_id = old.account_id
        and task_runs.id = old.run_id and task_runs.events_pruned_at is not null)
    then
        raise exception 'events of runs are append-only';
    end if;
    return old;
end
$$;

create trigger task_run_events_never_go before delete on task_run_events
for each row execute function task_run_events_refuse_removal();

-- How many bytes an account has in the store, counted with every statement that writes or removes
-- rows, so that nobody fills it. Decision entries and the ledger are not counted: they never go. Nor
-- is the cache of fetched evidence, which has a bound of its own. A count is the sum of its rows:
-- whoever writes adds one and waits for nobody, and now and then they are summed up.
create table account_storage (
    account_id text collate "C" not null,
    bytes bigint not null
);

create index account_storage_by_account on account_storage (account_id);

do $$
declare
    named text;
begin
    foreach named in array array['round_payloads', 'account_storage']
    loop
        execute format('alter table %I enable row level security', named);
        execute format('create policy of_account on %I using (jurat_sees(account_id))', named);
    end loop;
end
$$;

-- Each table counts its texts, as the owner of the tables, so that no sight of the writer matters.
do $$
declare
    counted record;
    measured text;
begin
    for counted in select * from (values
        ('rounds', array['seats', 'run', 'consensus', 'step']),
        ('replicas', array['document']),
        ('round_payloads', array['asked', 'request']),
        ('idempotency', array['key', 'answer']),
        ('api_keys', array['name', 'scopes']),
        ('verifier_versions', array['description', 'config']),
        ('verifier_measurements', array['document', 'cases']),
        ('verifier_runs', array['provenance', 'error_message', 'reasoning']),
        ('known_verdicts', array['document']),
        ('workflows', array['description', 'outcome', 'tags', 'search_text', 'search_body']),
        ('workflow_versions', array['description', 'outcome', 'tags', 'body', 'bindings']),
        ('workflow_files', array['path']),
        ('workflow_blobs', array['content']),
        ('tasks', array['contract', 'panel', 'state']),
        ('task_events', array['body']),
        ('task_candidates', array['output', 'evidence_inline', 'evidence_refs']),
        ('task_ballots', array['ballot']),
        ('knowledge', array['words', 'output']),
        ('task_runs', array['spec', 'explored', 'result', 'error']),
        ('task_run_steps', array['output', 'error']),
        ('task_run_events', array['body']),
        ('agent_events', array['body', 'decision', 'last_error'])
    ) as tables (name, texts)
    loop
        select '200 + ' || string_agg(format('coalesce(octet_length(%I), 0)', name), ' + ')
        into measured from unnest(counted.texts) as name;
        execute format(
            'insert into account_storage (account_id, bytes) '
            'select account_id, sum(%s) from %I group by account_id', measured, counted.name);
        execute format(
            'create function %1$I() returns trigger language plpgsql '
            'security definer set search_path from current as $count$ begin '
            'if tg_op = ''INSERT'' then '
            'insert into account_storage (account_id, bytes) '
            'select account_id, sum(%2$s) from new_rows group by account_id; '
            'elsif tg_op = ''DELETE'' then '
            'insert into account_storage (account_id, bytes) '
            'select account_id, -sum(%2$s) from old_rows group by account_id; '
            'else '
            'insert into account_storage (account_id, bytes) '
            'select account_id, sum(size) from ( '
            'select account_id, %2$s as size from new_rows union all '
            'select account_id, -(%2$s) from old_rows) as changed '
            'group by account_id having sum(size) <> 0; '
            'end if; return null; end $count$',
            counted.name || '_count_stored', measured);
        execute format(
            'create trigger stored after insert on %I referencing new table as new_rows '
            'for each statement execute function %I()',
            counted.name, counted.name || '_count_stored');
        execute format(
            'create trigger unstored after delete on %I referencing old table as old_rows '
            'for each statement execute function %I()',
            counted.name, counted.name || '_count_stored');
        execute format(
            'create trigger restored after update on %I '
            'referencing old table as old_rows new table as new_rows '
            'for each statement execute function %I()',
            counted.name, counted.name || '_count_stored');
    end loop;
end
$$;
-- The verifier whose judges have a say in a round: what they said is erased with the verifier.
alter table rounds add column verifier_id text collate "C";

create index rounds_by_verifier on rounds (verifier_id) where verifier_id is not null;

-- Whoever shares a workflow names the other side, and is shown that name and no other, so that an
-- address and a handle never turn into each other. An address that nobody registered is kept like
-- one that somebody did, and finds its account when that is made. What an account may do follows
-- from all its names, and is in `workflow_grants`.
create table named_grants (
    account_id text collate "C" not null,
    workflow_id text collate "C" not null,
    -- An address, `@` and a handle, or the id of an account.
    granted_to text collate "C" not null,
    -- A user or a team; null while the address is nobody's.
    grantee_id text collate "C",
    role text collate "C" not null,
    floor_version bigint not null,
    granted_by text collate "C" not null,
    granted_at bigint not null,
    primary key (account_id, workflow_id, granted_to)
);

create index named_grants_by_name on named_grants (granted_to, account_id);
create index named_grants_by_grantee on named_grants (grantee_id);

-- What was granted waits until whoever has it accepts or declines it: `pending`, `accepted` or
-- `declined`. What a team has is accepted at once.
alter table workflow_grants add column state text not null default 'pending';

-- Owners whose grants an account does not want.
create table share_blocks (
    account_id text collate "C" not null,
    blocked_id text collate "C" not null,
    created_at bigint not null,
    primary key (account_id, blocked_id)
);

-- How many grants an account made in a day, also those that it took back since.
create table grant_days (
    account_id text collate "C" not null,
    day bigint not null,
    made bigint not null,
    primary key (account_id, day)
);

alter table named_grants enable row level security;
create policy of_account on named_grants
using (jurat_sees(account_id) or jurat_shares_workflow(account_id, workflow_id));

-- Whoever grants for an owner must see whether the owner is blocked: the owner, and those who may
-- share what is the owner's. Only the account that blocks changes it.
create function jurat_granted_by(owner text) returns boolean
language sql stable security definer as $$
    select exists (
        select 1 from workflow_grants
        where account_id = owner and (
            grantee_id = current_setting('jurat.account', true) or grantee_id in (
                select team_id from team_members
                where account_id = current_setting('jurat.account', true))))
$$;

do $$
begin
    execute format(
        'alter function jurat_granted_by(text) set search_path = %I, pg_temp', current_schema());
end
$$;

alter table share_blocks enable row level security;
create policy of_blocked on share_blocks for select
using (jurat_sees(blocked_id) or jurat_granted_by(blocked_id));
create policy of_account on share_blocks using (jurat_sees(account_id));

alter table grant_days enable row level security;
create policy of_account on grant_days using (jurat_sees(account_id));
