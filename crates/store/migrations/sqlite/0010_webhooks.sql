-- Webhooks: the addresses of an account that receive its events, and the outbox of deliveries. A
-- delivery is written with the fact that it announces, so nothing is lost or invented. The previous
-- binary does not know these tables, and announces nothing while it runs.
create table webhooks (
    account_id text not null,
    id text not null,
    url text not null,
    description text,
    -- `*`, or the types of events with a comma before and after each.
    events text not null,
    -- The round or task that it is about; null for everything in the account.
    subject text,
    -- `standard`: signed with the secret; `token`: the secret is a token of the receiver.
    scheme text not null,
    secret text not null,
    -- The secret before the last rotation signs, too, until a time.
    previous_secret text,
    previous_until bigint,
    -- `enabled` or `disabled`.
    state text not null,
    disabled_at bigint,
    disabled_reason text,
    -- The first failure after the last success.
    failing_since bigint,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (account_id, id)
);

create index webhooks_disabled on webhooks (disabled_at) where disabled_at is not null;

create table webhook_deliveries (
    account_id text not null,
    id text not null,
    webhook_id text not null,
    -- The same on every attempt and for every webhook of the account.
    event_id text not null,
    event_type text not null,
    subject text,
    body text not null,
    -- `pending`, `delivered` or `failed`.
    state text not null,
    -- How often it was taken to be sent; the node that took it last knows it by this number.
    attempts bigint not null,
    -- The attempts before it was replayed, which do not count towards the limit.
    attempts_before bigint not null,
    -- When it is sent; null when it is not sent any more.
    next_at bigint,
    -- The status and the beginning of the last answer.
    status bigint,
    reply text,
    last_error text,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (account_id, id)
);

create index webhook_deliveries_due on webhook_deliveries (next_at) where next_at is not null;
create index webhook_deliveries_by_age on webhook_deliveries (account_id, created_at, id);
create index webhook_deliveries_by_webhook
on webhook_deliveries (account_id, webhook_id, created_at, id);
create index webhook_deliveries_by_state
on webhook_deliveries (account_id, webhook_id, state, created_at, id);

-- Both count towards the storage of their account.
create trigger webhooks_stored after insert on webhooks
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.url), 0) + coalesce(octet_length(new.description), 0) + coalesce(octet_length(new.events), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger webhooks_restored after update of account_id, url, description, events on webhooks
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.url), 0) + coalesce(octet_length(old.description), 0) + coalesce(octet_length(old.events), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.url), 0) + coalesce(octet_length(new.description), 0) + coalesce(octet_length(new.events), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger webhooks_unstored after delete on webhooks
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.url), 0) + coalesce(octet_length(old.description), 0) + coalesce(octet_length(old.events), 0)) where account_id = old.account_id;
end;
create trigger webhook_deliveries_stored after insert on webhook_deliveries
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.body), 0) + coalesce(octet_length(new.reply), 0) + coalesce(octet_length(new.last_error), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger webhook_deliveries_restored after update of account_id, body, reply, last_error on webhook_deliveries
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.body), 0) + coalesce(octet_length(old.reply), 0) + coalesce(octet_length(old.last_error), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, 200 + coalesce(octet_length(new.body), 0) + coalesce(octet_length(new.reply), 0) + coalesce(octet_length(new.last_error), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger webhook_deliveries_unstored after delete on webhook_deliveries
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.body), 0) + coalesce(octet_length(old.reply), 0) + coalesce(octet_length(old.last_error), 0)) where account_id = old.account_id;
end;
