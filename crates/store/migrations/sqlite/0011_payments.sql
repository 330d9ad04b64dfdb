-- Requests that are paid one by one need a record of each payment: the authorization that was used, so
-- that it is used once, the reply that was paid for, so that it can be fetched again, and how far the
-- settlement got, so that another process can finish it.
create table payments (
    account_id text not null,
    id text not null,
    network text not null,
    asset text not null,
    payer text not null,
    nonce text not null,
    protocol text not null,
    amount bigint not null,
    request_digest text not null,
    payment_digest text not null,
    identifier text,
    state text not null,
    settle_request text not null,
    valid_before bigint not null,
    round_id text,
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

-- They count against what their account may store.
create trigger payments_stored after insert on payments
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.settle_request), 0) + coalesce(octet_length(new.answer), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger payments_restored after update of account_id, settle_request, answer on payments
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.settle_request), 0) + coalesce(octet_length(old.answer), 0))
    where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.settle_request), 0) + coalesce(octet_length(new.answer), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger payments_unstored after delete on payments
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.settle_request), 0) + coalesce(octet_length(old.answer), 0))
    where account_id = old.account_id;
end;
