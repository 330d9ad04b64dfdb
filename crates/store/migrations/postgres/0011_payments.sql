-- Requests that are paid one by one need a record of each payment: the authorization that was used, so
-- that it is used once, the reply that was paid for, so that it can be fetched again, and how far the
-- settlement got, so that another process can finish it.
create table payments (
    account_id text collate "C" not null,
    id text collate "C" not null,
    network text collate "C" not null,
    asset text collate "C" not null,
    payer text collate "C" not null,
    nonce text collate "C" not null,
    protocol text collate "C" not null,
    amount bigint not null,
    request_digest text collate "C" not null,
    payment_digest text collate "C" not null,
    identifier text collate "C",
    state text collate "C" not null,
    settle_request text not null,
    valid_before bigint not null,
    round_id text collate "C",
    status bigint,
    answer text,
    transaction_id text,
    reason text,
    -- Attempts to settle that may have reached the facilitator.
    attempts bigint not null,
    -- Whose turn it is to settle, and when another may try.
    lease_token bigint,
    next_at bigint,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (account_id, id)
);
create unique index payments_by_id on payments (id);
create unique index payments_once on payments (network, asset, payer, nonce);
-- A payment that failed for good leaves its name to the next one.
create unique index payments_by_identifier on payments (account_id, identifier)
where identifier is not null and state <> 'failed_final';
create index payments_due on payments (next_at) where next_at is not null;
create index payments_by_state on payments (state, updated_at);

-- Nobody but its account sees any of it, as elsewhere.
alter table payments enable row level security;
create policy of_account on payments using (jurat_sees(account_id));

-- They count against what their account may store.
create function payments_count_stored() returns trigger language plpgsql
security definer set search_path from current as $count$
begin
    if tg_op = 'INSERT' then
        insert into account_storage (account_id, bytes)
        select account_id, sum(200 + coalesce(octet_length(settle_request), 0) + coalesce(octet_length(answer), 0))
        from new_rows group by account_id;
    elsif tg_op = 'DELETE' then
        insert into account_storage (account_id, bytes)
        select account_id, -sum(200 + coalesce(octet_length(settle_request), 0) + coalesce(octet_length(answer), 0))
        from old_rows group by account_id;
    else
        insert into account_storage (account_id, bytes)
        select account_id, sum(size) from (
            select account_id, 200 + coalesce(octet_length(settle_request), 0) + coalesce(octet_length(answer), 0) as size
            from new_rows union all
            select account_id, -(200 + coalesce(octet_length(settle_request), 0) + coalesce(octet_length(answer), 0))
            from old_rows) as changed
        group by account_id having sum(size) <> 0;
    end if;
    return null;
end
$count$;
create trigger stored after insert on payments referencing new table as new_rows
for each statement execute function payments_count_stored();
create trigger unstored after delete on payments referencing old table as old_rows
for each statement execute function payments_count_stored();
create trigger restored after update on payments
referencing old table as old_rows new table as new_rows
for each statement execute function payments_count_stored();
