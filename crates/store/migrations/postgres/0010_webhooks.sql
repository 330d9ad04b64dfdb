-- Webhooks: the addresses of an account that receive its events, and the outbox of deliveries. A
-- delivery is written with the fact that it announces, so nothing is lost or invented. The previous
-- binary does not know these tables, and announces nothing while it runs.
create table webhooks (
    account_id text collate "C" not null,
    id text collate "C" not null,
    url text not null,
    description text,
    -- `*`, or the types of events with a comma before and after each.
    events text not null,
    -- The round or task that it is about; null for everything in the account.
    subject text collate "C",
    -- `standard`: signed with the secret; `token`: the secret is a token of the receiver.
    scheme text collate "C" not null,
    secret text not null,
    -- The secret before the last rotation signs, too, until a time.
    previous_secret text,
    previous_until bigint,
    -- `enabled` or `disabled`.
    state text collate "C" not null,
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
    account_id text collate "C" not null,
    id text collate "C" not null,
    webhook_id text collate "C" not null,
    -- The same on every attempt and for every webhook of the account.
    event_id text collate "C" not null,
    event_type text collate "C" not null,
    subject text collate "C",
    body text not null,
    -- `pending`, `delivered` or `failed`.
    state text collate "C" not null,
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

-- Nobody but its account sees any of it, as elsewhere.
do $$
declare
    named text;
begin
    foreach named in array array['webhooks', 'webhook_deliveries']
    loop
        execute format('alter table %I enable row level security', named);
        execute format('create policy of_account on %I using (jurat_sees(account_id))', named);
    end loop;
end
$$;

-- Both count towards the storage of their account. They are counted by row and not by statement: the
-- statement that closes a round announces it, and costs nothing more if there is no webhook.
do $$
declare
    counted record;
    measured_new text;
    measured_old text;
begin
    for counted in select * from (values
        ('webhooks', array['url', 'description', 'events']),
        ('webhook_deliveries', array['body', 'reply', 'last_error'])
    ) as tables (name, texts)
    loop
        select '200 + ' || string_agg(format('coalesce(octet_length(new.%I), 0)', name), ' + ')
        into measured_new from unnest(counted.texts) as name;
        select '200 + ' || string_agg(format('coalesce(octet_length(old.%I), 0)', name), ' + ')
        into measured_old from unnest(counted.texts) as name;
        execute format(
            'create function %1$I() returns trigger language plpgsql '
            'security definer set search_path from current as $count$ '
            'declare changed bigint; begin '
            'if tg_op = ''INSERT'' then '
            'insert into account_storage (account_id, bytes) values (new.account_id, %2$s); '
            'elsif tg_op = ''DELETE'' then '
            'insert into account_storage (account_id, bytes) values (old.account_id, -(%3$s)); '
            'else changed := (%2$s) - (%3$s); '
            'if changed <> 0 then '
            'insert into account_storage (account_id, bytes) values (new.account_id, changed); '
            'end if; end if; return null; end $count$',
            counted.name || '_count_stored', measured_new, measured_old);
        execute format(
            'create trigger stored after insert on %I '
            'for each row execute function %I()', counted.name, counted.name || '_count_stored');
        execute format(
            'create trigger restored after update on %I '
            'for each row execute function %I()', counted.name, counted.name || '_count_stored');
        execute format(
            'create trigger unstored after delete on %I '
            'for each row execute function %I()', counted.name, counted.name || '_count_stored');
    end loop;
end
$$;
