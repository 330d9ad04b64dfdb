-- Templates count against what their owner may store, and what is pruned does not count any more: its
-- skeleton belongs to a decision, which is kept for ever. The previous binary runs on the result.

-- When what was asked and said was removed, because it was old or because its account wanted it. Such
-- a row counts nothing. Of rounds that were erased before there is no such mark: they are pruned once
-- more when they are old, and so are the tasks and runs of which only the events are gone.
alter table rounds add column pruned_at bigint;
alter table replicas add column pruned_at bigint;
alter table verifier_runs add column pruned_at bigint;
alter table tasks add column pruned_at bigint;
alter table task_runs add column pruned_at bigint;
alter table task_run_steps add column pruned_at bigint;
create index rounds_to_prune on rounds (account_id, closed_at) where closed_at is not null and pruned_at is null;
create index tasks_to_prune on tasks (account_id, ended_at) where ended_at is not null and pruned_at is null;
create index task_runs_to_prune on task_runs (account_id, finished_at) where finished_at is not null and pruned_at is null;
-- Live keys are found without those that have ended.
create index api_keys_live on api_keys (account_id, created_at) where revoked_at is null;

-- A row that is marked counts nothing, and marking it is a change.
do $$
declare
    counted record;
    measured text;
begin
    for counted in select * from (values
        ('rounds', array['seats', 'run', 'consensus', 'step']),
        ('replicas', array['document']),
        ('verifier_runs', array['provenance', 'error_message', 'reasoning']),
        ('tasks', array['contract', 'panel', 'state']),
        ('task_runs', array['spec', 'explored', 'result', 'error']),
        ('task_run_steps', array['output', 'error'])
    ) as tables (name, texts)
    loop
        select 'case when pruned_at is null then 200 + '
            || string_agg(format('coalesce(octet_length(%I), 0)', name), ' + ') || ' else 0 end'
        into measured from unnest(counted.texts) as name;
        execute format(
            'create or replace function %1$I() returns trigger language plpgsql '
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
    end loop;
end
$$;

-- Templates. One that is given away takes its versions and files with it.
insert into account_storage (account_id, bytes)
select account_id, sum(200 + coalesce(octet_length(slug), 0) + coalesce(octet_length(archive_reason), 0)) from templates group by account_id;

create function templates_count_stored() returns trigger
language plpgsql security definer set search_path from current as $$
begin
    if tg_op = 'INSERT' then
        insert into account_storage (account_id, bytes)
        select account_id, sum(200 + coalesce(octet_length(slug), 0) + coalesce(octet_length(archive_reason), 0)) from new_rows group by account_id;
    elsif tg_op = 'DELETE' then
        insert into account_storage (account_id, bytes)
        select account_id, -sum(200 + coalesce(octet_length(slug), 0) + coalesce(octet_length(archive_reason), 0)) from old_rows group by account_id;
    else
        insert into account_storage (account_id, bytes)
        select account_id, sum(size) from (
            select account_id, 200 + coalesce(octet_length(slug), 0) + coalesce(octet_length(archive_reason), 0) as size from new_rows
            union all select account_id, -(200 + coalesce(octet_length(slug), 0) + coalesce(octet_length(archive_reason), 0)) from old_rows
            union all select moved.account_id, coalesce((select sum(200 + coalesce(octet_length(template_versions.summary), 0) + coalesce(octet_length(template_versions.document), 0) + coalesce(octet_length(template_versions.search_name), 0) + coalesce(octet_length(template_versions.search_text), 0) + coalesce(octet_length(template_versions.search_body), 0) + coalesce(octet_length(template_versions.deprecation_message), 0)) from template_versions where template_versions.template_id = moved.id), 0) + coalesce((select sum(200 + coalesce(octet_length(template_files.path), 0) + coalesce(octet_length(template_files.content), 0)) from template_files where template_files.template_id = moved.id), 0)
            from new_rows as moved join old_rows on old_rows.id = moved.id
            where old_rows.account_id <> moved.account_id
            union all select moved.account_id, -(coalesce((select sum(200 + coalesce(octet_length(template_versions.summary), 0) + coalesce(octet_length(template_versions.document), 0) + coalesce(octet_length(template_versions.search_name), 0) + coalesce(octet_length(template_versions.search_text), 0) + coalesce(octet_length(template_versions.search_body), 0) + coalesce(octet_length(template_versions.deprecation_message), 0)) from template_versions where template_versions.template_id = moved.id), 0) + coalesce((select sum(200 + coalesce(octet_length(template_files.path), 0) + coalesce(octet_length(template_files.content), 0)) from template_files where template_files.template_id = moved.id), 0))
            from old_rows as moved join new_rows on new_rows.id = moved.id
            where new_rows.account_id <> moved.account_id
        ) as changed group by account_id having sum(size) <> 0;
    end if;
    return null;
end
$$;

-- What belongs to accounts through their templates.
do $$
declare
    counted record;
    measured text;
begin
    for counted in select * from (values
        ('template_versions', array['summary', 'document', 'search_name', 'search_text', 'search_body', 'deprecation_message']),
        ('template_files', array['path', 'content'])
    ) as tables (name, texts)
    loop
        select '200 + ' || string_agg(format('coalesce(octet_length(part.%I), 0)', name), ' + ')
        into measured from unnest(counted.texts) as name;
        execute format(
            'insert into account_storage (account_id, bytes) '
            'select templates.account_id, sum(%s) from %I as part '
            'join templates on templates.id = part.template_id group by templates.account_id',
            measured, counted.name);
        execute format(
            'create function %1$I() returns trigger language plpgsql '
            'security definer set search_path from current as $count$ begin '
            'if tg_op = ''INSERT'' then '
            'insert into account_storage (account_id, bytes) '
            'select templates.account_id, sum(%2$s) from new_rows as part '
            'join templates on templates.id = part.template_id group by templates.account_id; '
            'elsif tg_op = ''DELETE'' then '
            'insert into account_storage (account_id, bytes) '
            'select templates.account_id, -sum(%2$s) from old_rows as part '
            'join templates on templates.id = part.template_id group by templates.account_id; '
            'else '
            'insert into account_storage (account_id, bytes) '
            'select templates.account_id, sum(size) from ( '
            'select part.template_id, %2$s as size from new_rows as part union all '
            'select part.template_id, -(%2$s) from old_rows as part) as changed '
            'join templates on templates.id = changed.template_id '
            'group by templates.account_id having sum(size) <> 0; '
            'end if; return null; end $count$',
            counted.name || '_count_stored', measured);
    end loop;
end
$$;

do $$
declare
    named text;
begin
    foreach named in array array['templates', 'template_versions', 'template_files']
    loop
        execute format(
            'create trigger stored after insert on %I referencing new table as new_rows '
            'for each statement execute function %I()', named, named || '_count_stored');
        execute format(
            'create trigger unstored after delete on %I referencing old table as old_rows '
            'for each statement execute function %I()', named, named || '_count_stored');
        execute format(
            'create trigger restored after update on %I '
            'referencing old table as old_rows new table as new_rows '
            'for each statement execute function %I()', named, named || '_count_stored');
    end loop;
end
$$;

-- Whoever adds to what is another's must see whether its owner has room: the owner, and those who
-- were granted something of the owner's.
create function jurat_stored(owner text) returns bigint language sql stable security definer as $$
    select coalesce(sum(bytes), 0)::bigint from account_storage
    where account_id = owner and (jurat_sees(owner) or jurat_granted_by(owner))
$$;

do $$
begin
    execute format(
        'alter function jurat_stored(text) set search_path = %I, pg_temp', current_schema());
end
$$;
