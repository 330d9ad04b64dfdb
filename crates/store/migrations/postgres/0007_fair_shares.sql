-- What an account uses, is owed and has accepted is counted where nobody else can write it.
-- The previous binary runs on the result.

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
