-- Tasks under contracts with their events, what is remembered of them, runs of several agents, and
-- the events that agents are sent.

create table tasks (
    account_id text collate "C" not null,
    -- Chosen by whoever submits it.
    id text collate "C" not null,
    task_type text collate "C" not null,
    phase text collate "C" not null,
    contract text not null,
    contract_digest text collate "C" not null,
    -- Who proposes and who verifies.
    panel text not null,
    -- What the events made of the task.
    state text not null,
    -- How many events there are.
    seq bigint not null,
    -- When somebody must look at it; null when nothing more happens by itself.
    due_at bigint,
    created_at bigint not null,
    updated_at bigint not null,
    ended_at bigint,
    -- Why it ended without a decision.
    reason text,
    primary key (account_id, id)
);

create index tasks_due on tasks (due_at) where due_at is not null;
create index tasks_open on tasks (account_id) where ended_at is null;
create index tasks_by_age on tasks (account_id, created_at, id);
create index tasks_by_phase on tasks (account_id, phase, created_at, id);
create index tasks_by_type on tasks (account_id, task_type, created_at, id);
create index tasks_by_type_and_phase on tasks (account_id, task_type, phase, created_at, id);

-- The step of a task that a round is.
alter table rounds add column step text;

create table task_events (
    account_id text collate "C" not null,
    task_id text collate "C" not null,
    seq bigint not null,
    kind text not null,
    body text not null,
    at bigint not null,
    primary key (account_id, task_id, seq)
);

create function task_events_refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'events of tasks are append-only';
end
$$;

create trigger task_events_never_change before update or delete or truncate on task_events
for each statement execute function task_events_refuse_change();

create table task_candidates (
    account_id text collate "C" not null,
    task_id text collate "C" not null,
    candidate_id text collate "C" not null,
    execution_id text collate "C" not null,
    executor text collate "C" not null,
    -- The round in which it was made.
    round_id text collate "C",
    output text not null,
    evidence_inline text not null,
    evidence_refs text not null,
    -- Of the output.
    digest text collate "C" not null,
    created_at bigint not null,
    primary key (account_id, task_id, candidate_id)
);

-- Votes that are committed, sealed until all of a turn are in.
create table task_ballots (
    account_id text collate "C" not null,
    task_id text collate "C" not null,
    candidate_id text collate "C" not null,
    -- How often the verification began anew before.
    turn bigint not null,
    voter text collate "C" not null,
    ballot text not null,
    salt text not null,
    round_id text collate "C",
    created_at bigint not null,
    primary key (account_id, task_id, candidate_id, turn, voter)
);

-- What was found where evidence refers to, once for each account: nobody learns from the time that
-- an answer takes what others looked at.
create table evidence_blobs (
    account_id text collate "C" not null,
    digest text collate "C" not null,
    size bigint not null,
    mime text not null,
    bytes bytea not null,
    fetched_at bigint not null,
    primary key (account_id, digest)
);

create index evidence_blobs_by_age on evidence_blobs (fetched_at);
create index evidence_blobs_by_account on evidence_blobs (account_id, fetched_at, digest, size);

-- Decisions that are final, to be found by those who ask for the same or the like.
create table knowledge (
    account_id text collate "C" not null,
    task_id text collate "C" not null,
    epoch bigint not null,
    task_type text collate "C" not null,
    policy_id text collate "C" not null,
    input_digest text collate "C" not null,
    schema_digest text collate "C" not null,
    params_digest text collate "C" not null,
    -- What similar inputs are known by.
    words text not null,
    candidate_id text collate "C" not null,
    output_digest text collate "C" not null,
    profile text collate "C" not null,
    -- Everybody who proposed it.
    proposers text not null,
    -- The decision that it was taken from, where nobody proposed it anew.
    source_task text collate "C",
    source_epoch bigint,
    reason_codes text not null,
    -- A number as JSON writes it.
    confidence text not null,
    quorum text not null,
    final_hash text not null,
    created_at bigint not null,
    -- Since when it is not to be used any more.
    deprecated_at bigint,
    -- It may be large, and stands last so that all else is read without it.
    output text not null,
    primary key (account_id, task_id, epoch)
);

create index knowledge_exact on knowledge (
    account_id, task_type, input_digest, schema_digest, policy_id, params_digest, created_at
) where deprecated_at is null;
create index knowledge_recent on knowledge (account_id, task_type, created_at)
where deprecated_at is null;
create index knowledge_by_type on knowledge (account_id, task_type, created_at, task_id, epoch);

-- Runs of several agents.
create table task_runs (
    account_id text collate "C" not null,
    -- Chosen by whoever submits it.
    id text collate "C" not null,
    task_type text collate "C" not null,
    -- `CREATED`, `QUEUED`, `RUNNING`, `CANCELLING`, `CANCELLED`, `FINALIZED` or `FAILED`.
    status text collate "C" not null,
    spec text not null,
    spec_digest text collate "C" not null,
    -- How many events there are.
    seq bigint not null,
    -- How often its agents were asked once more.
    iteration bigint not null,
    -- What that has brought, and why it is done.
    explored text not null,
    result text,
    error text,
    created_at bigint not null,
    updated_at bigint not null,
    started_at bigint,
    finished_at bigint,
    primary key (account_id, id)
);

create index task_runs_open on task_runs (account_id) where finished_at is null;
create index task_runs_by_age on task_runs (account_id, created_at, id);
create index task_runs_by_status on task_runs (account_id, status, created_at, id);

create table task_run_steps (
    account_id text collate "C" not null,
    run_id text collate "C" not null,
    -- The agent.
    id text collate "C" not null,
    -- In the order of the agents.
    position bigint not null,
    executor text collate "C" not null,
    -- Within the run.
    priority bigint not null,
    -- How many steps of the run are with the executor at a time.
    at_once bigint,
    -- `CREATED`, `QUEUED`, `LEASED`, `RETRY_WAIT`, `SUCCEEDED`, `FAILED` or `CANCELLED`.
    status text collate "C" not null,
    -- From one in each iteration; each has a task of its own.
    attempt bigint not null,
    -- After this one it has failed for good.
    last_attempt bigint not null,
    -- Not before this time.
    run_at bigint not null,
    -- When a worker took this attempt first.
    begun_at bigint,
    lease_token text collate "C",
    lease_until bigint,
    worker text collate "C",
    output text,
    error text,
    updated_at bigint not null,
    primary key (account_id, run_id, id)
);

create index task_run_steps_queued on task_run_steps (executor, run_at, priority desc, account_id, run_id, id)
where status = 'QUEUED';
create index task_run_steps_leased on task_run_steps (executor, lease_until) where status = 'LEASED';
create index task_run_steps_leases on task_run_steps (lease_until) where status = 'LEASED';
create index task_run_steps_waiting on task_run_steps (run_at) where status = 'RETRY_WAIT';

create table task_run_events (
    account_id text collate "C" not null,
    run_id text collate "C" not null,
    seq bigint not null,
    kind text not null,
    body text not null,
    at bigint not null,
    primary key (account_id, run_id, seq)
);

create function task_run_events_refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'events of runs are append-only';
end
$$;

create trigger task_run_events_never_change before update or delete or truncate on task_run_events
for each statement execute function task_run_events_refuse_change();

-- What agents are to be told, and what they or others told.
create table agent_events (
    account_id text collate "C" not null,
    id text collate "C" not null,
    -- `out` to an agent, `in` from one.
    direction text collate "C" not null,
    executor text collate "C" not null,
    event_type text collate "C" not null,
    source_kind text not null,
    dedupe_key text collate "C",
    body text not null,
    -- `pending`, `delivered`, `acked`, `completed`, `failed` or `expired`.
    state text collate "C" not null,
    -- How often it was taken to be sent; who took it last knows it by this number.
    attempts bigint not null,
    -- When it is to be sent; null when nothing is to be done any more.
    next_at bigint,
    decision text,
    last_error text,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (account_id, id)
);

create unique index agent_events_once on agent_events (account_id, direction, executor, dedupe_key)
where dedupe_key is not null;
create index agent_events_due on agent_events (next_at) where next_at is not null;
create index agent_events_by_age on agent_events (account_id, created_at, id);
create index agent_events_by_state on agent_events (account_id, state, created_at, id);
create index agent_events_by_executor on agent_events (account_id, executor, created_at, id);
create index agent_events_by_executor_and_state
on agent_events (account_id, executor, state, created_at, id);

-- Nobody but its account sees any of it, as elsewhere.
do $$
declare
    named text;
begin
    foreach named in array array[
        'tasks', 'task_events', 'task_candidates', 'task_ballots', 'evidence_blobs', 'knowledge',
        'task_runs', 'task_run_steps', 'task_run_events', 'agent_events']
    loop
        execute format('alter table %I enable row level security', named);
        execute format('create policy of_account on %I using (jurat_sees(account_id))', named);
    end loop;
end
$$;
