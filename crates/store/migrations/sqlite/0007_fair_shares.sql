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
-- What was asked in a round, beside its decision entry, which holds the digest of it alone. A row of
-- its own, so that it can be erased and goes when it is old.
create table round_payloads (
    account_id text not null,
    round_id text not null,
    -- A line for lists.
    asked text not null,
    -- The canonical JSON of the request; null where it is too large to be kept.
    request text,
    created_at bigint not null,
    primary key (account_id, round_id)
) without rowid;

create index round_payloads_by_age on round_payloads (account_id, created_at);
create index idempotency_by_age on idempotency (account_id, created_at);
create index rounds_by_end on rounds (account_id, closed_at) where closed_at is not null and erased_at is null;

-- When the events of a task or a run were removed because they were old; only then may they go.
alter table tasks add column events_pruned_at bigint;
alter table task_runs add column events_pruned_at bigint;

create index tasks_by_end on tasks (account_id, ended_at) where ended_at is not null and events_pruned_at is null;
create index task_runs_by_end on task_runs (account_id, finished_at) where finished_at is not null and events_pruned_at is null;

drop trigger task_events_never_go;
create trigger task_events_never_go before delete on task_events
when not exists (select 1 from tasks where tasks.account_id = old.account_id and tasks.id = old.task_id and tasks.events_pruned_at is not null)
begin
    select raise(abort, 'events of tasks are append-only');
end;

drop trigger task_run_events_never_go;
create trigger task_run_events_never_go before delete on task_run_events
when not exists (select 1 from task_runs where task_runs.account_id = old.account_id and task_runs.id = old.run_id and task_runs.events_pruned_at is not null)
begin
    select raise(abort, 'events of runs are append-only');
end;

-- How many bytes an account has in the store, counted with every row that is written or goes, so
-- that nobody fills it. Decision entries and the ledger are not counted: they never go. Nor is the
-- cache of fetched evidence, which has a bound of its own.
create table account_storage (
    account_id text not null primary key,
    bytes bigint not null
) without rowid;

insert into account_storage (account_id, bytes)
select account_id, sum(size) from (
    select account_id, 200 + coalesce(octet_length(seats), 0) + coalesce(octet_length(run), 0) + coalesce(octet_length(consensus), 0) + coalesce(octet_length(step), 0) as size from rounds
    union all select account_id, 200 + coalesce(octet_length(document), 0) as size from replicas
    union all select account_id, 200 + coalesce(octet_length(key), 0) + coalesce(octet_length(answer), 0) as size from idempotency
    union all select account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(scopes), 0) as size from api_keys
    union all select account_id, 200 + coalesce(octet_length(description), 0) + coalesce(octet_length(config), 0) as size from verifier_versions
    union all select account_id, 200 + coalesce(octet_length(document), 0) + coalesce(octet_length(cases), 0) as size from verifier_measurements
    union all select account_id, 200 + coalesce(octet_length(provenance), 0) + coalesce(octet_length(error_message), 0) + coalesce(octet_length(reasoning), 0) as size from verifier_runs
    union all select account_id, 200 + coalesce(octet_length(document), 0) as size from known_verdicts
    union all select account_id, 200 + coalesce(octet_length(description), 0) + coalesce(octet_length(outcome), 0) + coalesce(octet_length(tags), 0) + coalesce(octet_length(search_text), 0) + coalesce(octet_length(search_body), 0) as size from workflows
    union all select account_id, 200 + coalesce(octet_length(description), 0) + coalesce(octet_length(outcome), 0) + coalesce(octet_length(tags), 0) + coalesce(octet_length(body), 0) + coalesce(octet_length(bindings), 0) as size from workflow_versions
    union all select account_id, 200 + coalesce(octet_length(path), 0) as size from workflow_files
    union all select account_id, 200 + coalesce(octet_length(content), 0) as size from workflow_blobs
    union all select account_id, 200 + coalesce(octet_length(contract), 0) + coalesce(octet_length(panel), 0) + coalesce(octet_length(state), 0) as size from tasks
    union all select account_id, 200 + coalesce(octet_length(body), 0) as size from task_events
    union all select account_id, 200 + coalesce(octet_length(output), 0) + coalesce(octet_length(evidence_inline), 0) + coalesce(octet_length(evidence_refs), 0) as size from task_candidates
    union all select account_id, 200 + coalesce(octet_length(ballot), 0) as size from task_ballots
    union all select account_id, 200 + coalesce(octet_length(words), 0) + coalesce(octet_length(output), 0) as size from knowledge
    union all select account_id, 200 + coalesce(octet_length(spec), 0) + coalesce(octet_length(explored), 0) + coalesce(octet_length(result), 0) + coalesce(octet_length(error), 0) as size from task_runs
    union all select account_id, 200 + coalesce(octet_length(output), 0) + coalesce(octet_length(error), 0) as size from task_run_steps
    union all select account_id, 200 + coalesce(octet_length(body), 0) as size from task_run_events
    union all select account_id, 200 + coalesce(octet_length(body), 0) + coalesce(octet_length(decision), 0) + coalesce(octet_length(last_error), 0) as size from agent_events
) as stored group by account_id;

create trigger rounds_stored after insert on rounds
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.seats), 0) + coalesce(octet_length(new.run), 0) + coalesce(octet_length(new.consensus), 0) + coalesce(octet_length(new.step), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger rounds_restored after update of account_id, seats, run, consensus, step on rounds
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.seats), 0) + coalesce(octet_length(old.run), 0) + coalesce(octet_length(old.consensus), 0) + coalesce(octet_length(old.step), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.seats), 0) + coalesce(octet_length(new.run), 0) + coalesce(octet_length(new.consensus), 0) + coalesce(octet_length(new.step), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger rounds_unstored after delete on rounds
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.seats), 0) + coalesce(octet_length(old.run), 0) + coalesce(octet_length(old.consensus), 0) + coalesce(octet_length(old.step), 0)) where account_id = old.account_id;
end;

create trigger replicas_stored after insert on replicas
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.document), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger replicas_restored after update of account_id, document on replicas
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.document), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.document), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger replicas_unstored after delete on replicas
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.document), 0)) where account_id = old.account_id;
end;

create trigger round_payloads_stored after insert on round_payloads
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.asked), 0) + coalesce(octet_length(new.request), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger round_payloads_restored after update of account_id, asked, request on round_payloads
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.asked), 0) + coalesce(octet_length(old.request), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.asked), 0) + coalesce(octet_length(new.request), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger round_payloads_unstored after delete on round_payloads
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.asked), 0) + coalesce(octet_length(old.request), 0)) where account_id = old.account_id;
end;

create trigger idempotency_stored after insert on idempotency
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.key), 0) + coalesce(octet_length(new.answer), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger idempotency_restored after update of account_id, key, answer on idempotency
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.key), 0) + coalesce(octet_length(old.answer), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.key), 0) + coalesce(octet_length(new.answer), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger idempotency_unstored after delete on idempotency
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.key), 0) + coalesce(octet_length(old.answer), 0)) where account_id = old.account_id;
end;

create trigger api_keys_stored after insert on api_keys
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.name), 0) + coalesce(octet_length(new.scopes), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger api_keys_restored after update of account_id, name, scopes on api_keys
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.name), 0) + coalesce(octet_length(old.scopes), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.name), 0) + coalesce(octet_length(new.scopes), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger api_keys_unstored after delete on api_keys
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.name), 0) + coalesce(octet_length(old.scopes), 0)) where account_id = old.account_id;
end;

create trigger verifier_versions_stored after insert on verifier_versions
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.description), 0) + coalesce(octet_length(new.config), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger verifier_versions_restored after update of account_id, description, config on verifier_versions
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.description), 0) + coalesce(octet_length(old.config), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.description), 0) + coalesce(octet_length(new.config), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger verifier_versions_unstored after delete on verifier_versions
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.description), 0) + coalesce(octet_length(old.config), 0)) where account_id = old.account_id;
end;

create trigger verifier_measurements_stored after insert on verifier_measurements
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.document), 0) + coalesce(octet_length(new.cases), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger verifier_measurements_restored after update of account_id, document, cases on verifier_measurements
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.document), 0) + coalesce(octet_length(old.cases), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.document), 0) + coalesce(octet_length(new.cases), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger verifier_measurements_unstored after delete on verifier_measurements
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.document), 0) + coalesce(octet_length(old.cases), 0)) where account_id = old.account_id;
end;

create trigger verifier_runs_stored after insert on verifier_runs
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.provenance), 0) + coalesce(octet_length(new.error_message), 0) + coalesce(octet_length(new.reasoning), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger verifier_runs_restored after update of account_id, provenance, error_message, reasoning on verifier_runs
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.provenance), 0) + coalesce(octet_length(old.error_message), 0) + coalesce(octet_length(old.reasoning), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.provenance), 0) + coalesce(octet_length(new.error_message), 0) + coalesce(octet_length(new.reasoning), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger verifier_runs_unstored after delete on verifier_runs
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.provenance), 0) + coalesce(octet_length(old.error_message), 0) + coalesce(octet_length(old.reasoning), 0)) where account_id = old.account_id;
end;

create trigger known_verdicts_stored after insert on known_verdicts
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.document), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger known_verdicts_restored after update of account_id, document on known_verdicts
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.document), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.document), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger known_verdicts_unstored after delete on known_verdicts
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.document), 0)) where account_id = old.account_id;
end;

create trigger workflows_stored after insert on workflows
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.description), 0) + coalesce(octet_length(new.outcome), 0) + coalesce(octet_length(new.tags), 0) + coalesce(octet_length(new.search_text), 0) + coalesce(octet_length(new.search_body), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger workflows_restored after update of account_id, description, outcome, tags, search_text, search_body on workflows
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.description), 0) + coalesce(octet_length(old.outcome), 0) + coalesce(octet_length(old.tags), 0) + coalesce(octet_length(old.search_text), 0) + coalesce(octet_length(old.search_body), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.description), 0) + coalesce(octet_length(new.outcome), 0) + coalesce(octet_length(new.tags), 0) + coalesce(octet_length(new.search_text), 0) + coalesce(octet_length(new.search_body), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger workflows_unstored after delete on workflows
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.description), 0) + coalesce(octet_length(old.outcome), 0) + coalesce(octet_length(old.tags), 0) + coalesce(octet_length(old.search_text), 0) + coalesce(octet_length(old.search_body), 0)) where account_id = old.account_id;
end;

create trigger workflow_versions_stored after insert on workflow_versions
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.description), 0) + coalesce(octet_length(new.outcome), 0) + coalesce(octet_length(new.tags), 0) + coalesce(octet_length(new.body), 0) + coalesce(octet_length(new.bindings), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger workflow_versions_restored after update of account_id, description, outcome, tags, body, bindings on workflow_versions
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.description), 0) + coalesce(octet_length(old.outcome), 0) + coalesce(octet_length(old.tags), 0) + coalesce(octet_length(old.body), 0) + coalesce(octet_length(old.bindings), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.description), 0) + coalesce(octet_length(new.outcome), 0) + coalesce(octet_length(new.tags), 0) + coalesce(octet_length(new.body), 0) + coalesce(octet_length(new.bindings), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger workflow_versions_unstored after delete on workflow_versions
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.description), 0) + coalesce(octet_length(old.outcome), 0) + coalesce(octet_length(old.tags), 0) + coalesce(octet_length(old.body), 0) + coalesce(octet_length(old.bindings), 0)) where account_id = old.account_id;
end;

create trigger workflow_files_stored after insert on workflow_files
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.path), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger workflow_files_restored after update of account_id, path on workflow_files
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.path), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.path), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger workflow_files_unstored after delete on workflow_files
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.path), 0)) where account_id = old.account_id;
end;

create trigger workflow_blobs_stored after insert on workflow_blobs
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.content), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger workflow_blobs_restored after update of account_id, content on workflow_blobs
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.content), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.content), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger workflow_blobs_unstored after delete on workflow_blobs
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.content), 0)) where account_id = old.account_id;
end;

create trigger tasks_stored after insert on tasks
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.contract), 0) + coalesce(octet_length(new.panel), 0) + coalesce(octet_length(new.state), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger tasks_restored after update of account_id, contract, panel, state on tasks
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.contract), 0) + coalesce(octet_length(old.panel), 0) + coalesce(octet_length(old.state), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.contract), 0) + coalesce(octet_length(new.panel), 0) + coalesce(octet_length(new.state), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger tasks_unstored after delete on tasks
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.contract), 0) + coalesce(octet_length(old.panel), 0) + coalesce(octet_length(old.state), 0)) where account_id = old.account_id;
end;

create trigger task_events_stored after insert on task_events
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.body), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_events_restored after update of account_id, body on task_events
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.body), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.body), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_events_unstored after delete on task_events
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.body), 0)) where account_id = old.account_id;
end;

create trigger task_candidates_stored after insert on task_candidates
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.output), 0) + coalesce(octet_length(new.evidence_inline), 0) + coalesce(octet_length(new.evidence_refs), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_candidates_restored after update of account_id, output, evidence_inline, evidence_refs on task_candidates
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.output), 0) + coalesce(octet_length(old.evidence_inline), 0) + coalesce(octet_length(old.evidence_refs), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.output), 0) + coalesce(octet_length(new.evidence_inline), 0) + coalesce(octet_length(new.evidence_refs), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_candidates_unstored after delete on task_candidates
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.output), 0) + coalesce(octet_length(old.evidence_inline), 0) + coalesce(octet_length(old.evidence_refs), 0)) where account_id = old.account_id;
end;

create trigger task_ballots_stored after insert on task_ballots
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.ballot), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_ballots_restored after update of account_id, ballot on task_ballots
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.ballot), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.ballot), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_ballots_unstored after delete on task_ballots
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.ballot), 0)) where account_id = old.account_id;
end;

create trigger knowledge_stored after insert on knowledge
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.words), 0) + coalesce(octet_length(new.output), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger knowledge_restored after update of account_id, words, output on knowledge
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.words), 0) + coalesce(octet_length(old.output), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.words), 0) + coalesce(octet_length(new.output), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger knowledge_unstored after delete on knowledge
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.words), 0) + coalesce(octet_length(old.output), 0)) where account_id = old.account_id;
end;

create trigger task_runs_stored after insert on task_runs
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.spec), 0) + coalesce(octet_length(new.explored), 0) + coalesce(octet_length(new.result), 0) + coalesce(octet_length(new.error), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_runs_restored after update of account_id, spec, explored, result, error on task_runs
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.spec), 0) + coalesce(octet_length(old.explored), 0) + coalesce(octet_length(old.result), 0) + coalesce(octet_length(old.error), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.spec), 0) + coalesce(octet_length(new.explored), 0) + coalesce(octet_length(new.result), 0) + coalesce(octet_length(new.error), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_runs_unstored after delete on task_runs
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.spec), 0) + coalesce(octet_length(old.explored), 0) + coalesce(octet_length(old.result), 0) + coalesce(octet_length(old.error), 0)) where account_id = old.account_id;
end;

create trigger task_run_steps_stored after insert on task_run_steps
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.output), 0) + coalesce(octet_length(new.error), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_run_steps_restored after update of account_id, output, error on task_run_steps
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.output), 0) + coalesce(octet_length(old.error), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.output), 0) + coalesce(octet_length(new.error), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_run_steps_unstored after delete on task_run_steps
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.output), 0) + coalesce(octet_length(old.error), 0)) where account_id = old.account_id;
end;

create trigger task_run_events_stored after insert on task_run_events
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.body), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_run_events_restored after update of account_id, body on task_run_events
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.body), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.body), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_run_events_unstored after delete on task_run_events
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.body), 0)) where account_id = old.account_id;
end;

create trigger agent_events_stored after insert on agent_events
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.body), 0) + coalesce(octet_length(new.decision), 0) + coalesce(octet_length(new.last_error), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger agent_events_restored after update of account_id, body, decision, last_error on agent_events
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.body), 0) + coalesce(octet_length(old.decision), 0) + coalesce(octet_length(old.last_error), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.body), 0) + coalesce(octet_length(new.decision), 0) + coalesce(octet_length(new.last_error), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger agent_events_unstored after delete on agent_events
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.body), 0) + coalesce(octet_length(old.decision), 0) + coalesce(octet_length(old.last_error), 0)) where account_id = old.account_id;
end;
-- The verifier whose judges have a say in a round: what they said is erased with the verifier.
alter table rounds add column verifier_id text;

create index rounds_by_verifier on rounds (verifier_id) where verifier_id is not null;

-- Whoever shares a workflow names the other side, and is shown that name and no other, so that an
-- address and a handle never turn into each other. An address that nobody registered is kept like
-- one that somebody did, and finds its account when that is made. What an account may do follows
-- from all its names, and is in `workflow_grants`.
create table named_grants (
    account_id text not null,
    workflow_id text not null,
    -- An address, `@` and a handle, or the id of an account.
    granted_to text not null,
    -- A user or a team; null while the address is nobody's.
    grantee_id text,
    role text not null,
    floor_version bigint not null,
    granted_by text not null,
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
    account_id text not null,
    blocked_id text not null,
    created_at bigint not null,
    primary key (account_id, blocked_id)
);

-- How many grants an account made in a day, also those that it took back since.
create table grant_days (
    account_id text not null,
    day bigint not null,
    made bigint not null,
    primary key (account_id, day)
);
