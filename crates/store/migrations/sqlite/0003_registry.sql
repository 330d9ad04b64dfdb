-- The registry of verifiers with their versions and runs, and the ledger of credits.

-- Since when nothing that costs is done for the account; null while it may go on.
alter table accounts add column suspended_at bigint;

-- The run of a verifier that the round is, as it was recorded when the round opened.
alter table rounds add column run text;
-- The credit that was set aside for the round, and whether the account had to have as much.
alter table rounds add column held_micros bigint;
alter table rounds add column is_limited smallint;
-- When what was said in the round was erased; its decision entry stays.
alter table rounds add column erased_at bigint;

create table verifiers (
    account_id text not null,
    id text not null,
    name text not null,
    description text not null,
    current_version bigint not null,
    -- Must be given to deploy the next version; drawn anew with each.
    version_token text not null,
    -- `active` or `revoked`.
    standing text not null,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (account_id, id)
);

-- A verifier that was revoked keeps its name.
create unique index verifiers_by_name on verifiers (account_id, name);

-- A list shows only those that are active, and reads no others.
create index verifiers_active on verifiers (account_id, name) where standing = 'active';

create table verifier_versions (
    account_id text not null,
    verifier_id text not null,
    version bigint not null,
    description text not null,
    config text not null,
    config_hash text not null,
    deployed_at bigint not null,
    primary key (account_id, verifier_id, version)
);

-- A version goes only when its whole verifier is deleted.
create trigger verifier_versions_never_change before update on verifier_versions
begin
    select raise(abort, 'versions of verifiers never change');
end;

create table verifier_measurements (
    account_id text not null,
    id text not null,
    verifier_id text not null,
    version bigint not null,
    purpose text not null,
    data_digest text not null,
    document text not null,
    -- Large, and read only when somebody asks for them.
    cases text not null,
    created_at bigint not null,
    primary key (account_id, id)
);

create index verifier_measurements_newest on verifier_measurements (account_id, verifier_id, version, purpose, id);

-- Runs have identifiers that sort by time. Each index lets a list by what it begins with read no
-- more rows than it shows.
create table verifier_runs (
    account_id text not null,
    id text not null,
    verifier_id text not null,
    version bigint not null,
    purpose text not null,
    -- `running` until the round ends, then `passed`, `failed` or `error`.
    verdict text not null,
    round_id text not null,
    provenance text not null,
    inputs_digest text not null,
    created_at bigint not null,
    error_code text,
    error_message text,
    reasoning text,
    duration_ms bigint,
    cost_micros bigint,
    primary key (account_id, id)
);

create index verifier_runs_by_verifier on verifier_runs (account_id, verifier_id, id);
create index verifier_runs_by_version on verifier_runs (account_id, verifier_id, version, id);
create index verifier_runs_by_answer on verifier_runs (account_id, verifier_id, verdict, purpose, id);
create index verifier_runs_by_verdict on verifier_runs (account_id, verdict, purpose, id);

-- What judges said, by the digest of all that they were given.
create table known_verdicts (
    account_id text not null,
    digest text not null,
    verifier_id text not null,
    document text not null,
    created_at bigint not null,
    primary key (account_id, digest)
);

create index known_verdicts_by_verifier on known_verdicts (account_id, verifier_id);

-- The oldest go first when there are too many.
create index known_verdicts_by_age on known_verdicts (created_at);

-- Whole micro-credits. Nothing is made or lost: what was granted is what is left, held or spent.
create table credit_balances (
    account_id text not null primary key,
    granted bigint not null,
    -- Below zero only for an account that is not metered.
    available bigint not null,
    held bigint not null check (held >= 0),
    spent bigint not null check (spent >= 0),
    -- How many lines the ledger of the account has; the next one gets the next number.
    lines bigint not null,
    check (granted = available + held + spent)
);

create table credit_transfers (
    account_id text not null,
    id text not null,
    movement text not null,
    micros bigint not null,
    round_id text,
    note text,
    created_at bigint not null,
    primary key (account_id, id)
);

-- What an account spent since a point in time.
create index credit_transfers_spent on credit_transfers (account_id, created_at, micros) where movement = 'capture';

create trigger credit_transfers_never_change before update on credit_transfers
begin
    select raise(abort, 'transfers are append-only');
end;

create trigger credit_transfers_never_go before delete on credit_transfers
begin
    select raise(abort, 'transfers are append-only');
end;
