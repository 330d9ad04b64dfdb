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
drop trigger rounds_stored;
drop trigger rounds_restored;
drop trigger rounds_unstored;
create trigger rounds_stored after insert on rounds
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.seats), 0) + coalesce(octet_length(new.run), 0) + coalesce(octet_length(new.consensus), 0) + coalesce(octet_length(new.step), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger rounds_restored after update of account_id, seats, run, consensus, step, pruned_at on rounds
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.seats), 0) + coalesce(octet_length(old.run), 0) + coalesce(octet_length(old.consensus), 0) + coalesce(octet_length(old.step), 0) else 0 end) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.seats), 0) + coalesce(octet_length(new.run), 0) + coalesce(octet_length(new.consensus), 0) + coalesce(octet_length(new.step), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger rounds_unstored after delete on rounds
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.seats), 0) + coalesce(octet_length(old.run), 0) + coalesce(octet_length(old.consensus), 0) + coalesce(octet_length(old.step), 0) else 0 end) where account_id = old.account_id;
end;

drop trigger replicas_stored;
drop trigger replicas_restored;
drop trigger replicas_unstored;
create trigger replicas_stored after insert on replicas
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.document), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger replicas_restored after update of account_id, document, pruned_at on replicas
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.document), 0) else 0 end) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.document), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger replicas_unstored after delete on replicas
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.document), 0) else 0 end) where account_id = old.account_id;
end;

drop trigger verifier_runs_stored;
drop trigger verifier_runs_restored;
drop trigger verifier_runs_unstored;
create trigger verifier_runs_stored after insert on verifier_runs
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.provenance), 0) + coalesce(octet_length(new.error_message), 0) + coalesce(octet_length(new.reasoning), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger verifier_runs_restored after update of account_id, provenance, error_message, reasoning, pruned_at on verifier_runs
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.provenance), 0) + coalesce(octet_length(old.error_message), 0) + coalesce(octet_length(old.reasoning), 0) else 0 end) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.provenance), 0) + coalesce(octet_length(new.error_message), 0) + coalesce(octet_length(new.reasoning), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger verifier_runs_unstored after delete on verifier_runs
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.provenance), 0) + coalesce(octet_length(old.error_message), 0) + coalesce(octet_length(old.reasoning), 0) else 0 end) where account_id = old.account_id;
end;

drop trigger tasks_stored;
drop trigger tasks_restored;
drop trigger tasks_unstored;
create trigger tasks_stored after insert on tasks
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.contract), 0) + coalesce(octet_length(new.panel), 0) + coalesce(octet_length(new.state), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger tasks_restored after update of account_id, contract, panel, state, pruned_at on tasks
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.contract), 0) + coalesce(octet_length(old.panel), 0) + coalesce(octet_length(old.state), 0) else 0 end) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.contract), 0) + coalesce(octet_length(new.panel), 0) + coalesce(octet_length(new.state), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger tasks_unstored after delete on tasks
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.contract), 0) + coalesce(octet_length(old.panel), 0) + coalesce(octet_length(old.state), 0) else 0 end) where account_id = old.account_id;
end;

drop trigger task_runs_stored;
drop trigger task_runs_restored;
drop trigger task_runs_unstored;
create trigger task_runs_stored after insert on task_runs
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.spec), 0) + coalesce(octet_length(new.explored), 0) + coalesce(octet_length(new.result), 0) + coalesce(octet_length(new.error), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_runs_restored after update of account_id, spec, explored, result, error, pruned_at on task_runs
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.spec), 0) + coalesce(octet_length(old.explored), 0) + coalesce(octet_length(old.result), 0) + coalesce(octet_length(old.error), 0) else 0 end) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.spec), 0) + coalesce(octet_length(new.explored), 0) + coalesce(octet_length(new.result), 0) + coalesce(octet_length(new.error), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_runs_unstored after delete on task_runs
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.spec), 0) + coalesce(octet_length(old.explored), 0) + coalesce(octet_length(old.result), 0) + coalesce(octet_length(old.error), 0) else 0 end) where account_id = old.account_id;
end;

drop trigger task_run_steps_stored;
drop trigger task_run_steps_restored;
drop trigger task_run_steps_unstored;
create trigger task_run_steps_stored after insert on task_run_steps
begin
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.output), 0) + coalesce(octet_length(new.error), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_run_steps_restored after update of account_id, output, error, pruned_at on task_run_steps
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.output), 0) + coalesce(octet_length(old.error), 0) else 0 end) where account_id = old.account_id;
    insert into account_storage (account_id, bytes)
    values (new.account_id, case when new.pruned_at is null then 200 + coalesce(octet_length(new.output), 0) + coalesce(octet_length(new.error), 0) else 0 end)
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger task_run_steps_unstored after delete on task_run_steps
begin
    update account_storage set bytes = bytes - (case when old.pruned_at is null then 200 + coalesce(octet_length(old.output), 0) + coalesce(octet_length(old.error), 0) else 0 end) where account_id = old.account_id;
end;

-- Templates, and what belongs to their accounts through them.
insert into account_storage (account_id, bytes)
select account_id, sum(size) from (
    select account_id, 200 + coalesce(octet_length(slug), 0) + coalesce(octet_length(archive_reason), 0) as size from templates
    union all select templates.account_id, 200 + coalesce(octet_length(template_versions.summary), 0) + coalesce(octet_length(template_versions.document), 0) + coalesce(octet_length(template_versions.search_name), 0) + coalesce(octet_length(template_versions.search_text), 0) + coalesce(octet_length(template_versions.search_body), 0) + coalesce(octet_length(template_versions.deprecation_message), 0) as size from template_versions join templates on templates.id = template_versions.template_id
    union all select templates.account_id, 200 + coalesce(octet_length(template_files.path), 0) + coalesce(octet_length(template_files.content), 0) as size from template_files join templates on templates.id = template_files.template_id
) as stored where true group by account_id
on conflict (account_id) do update set bytes = bytes + excluded.bytes;

create trigger templates_stored after insert on templates
begin
    insert into account_storage (account_id, bytes) values (new.account_id, 200 + coalesce(octet_length(new.slug), 0) + coalesce(octet_length(new.archive_reason), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger templates_restored after update of slug, archive_reason on templates
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.slug), 0) + coalesce(octet_length(old.archive_reason), 0)) + (200 + coalesce(octet_length(new.slug), 0) + coalesce(octet_length(new.archive_reason), 0)) where account_id = old.account_id;
end;
-- One that is given away takes its versions and files with it.
create trigger templates_moved after update of account_id on templates when old.account_id <> new.account_id
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(new.slug), 0) + coalesce(octet_length(new.archive_reason), 0) + coalesce((select sum(200 + coalesce(octet_length(template_versions.summary), 0) + coalesce(octet_length(template_versions.document), 0) + coalesce(octet_length(template_versions.search_name), 0) + coalesce(octet_length(template_versions.search_text), 0) + coalesce(octet_length(template_versions.search_body), 0) + coalesce(octet_length(template_versions.deprecation_message), 0)) from template_versions where template_versions.template_id = new.id), 0) + coalesce((select sum(200 + coalesce(octet_length(template_files.path), 0) + coalesce(octet_length(template_files.content), 0)) from template_files where template_files.template_id = new.id), 0)) where account_id = old.account_id;
    insert into account_storage (account_id, bytes) values (new.account_id, 200 + coalesce(octet_length(new.slug), 0) + coalesce(octet_length(new.archive_reason), 0) + coalesce((select sum(200 + coalesce(octet_length(template_versions.summary), 0) + coalesce(octet_length(template_versions.document), 0) + coalesce(octet_length(template_versions.search_name), 0) + coalesce(octet_length(template_versions.search_text), 0) + coalesce(octet_length(template_versions.search_body), 0) + coalesce(octet_length(template_versions.deprecation_message), 0)) from template_versions where template_versions.template_id = new.id), 0) + coalesce((select sum(200 + coalesce(octet_length(template_files.path), 0) + coalesce(octet_length(template_files.content), 0)) from template_files where template_files.template_id = new.id), 0))
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger templates_unstored after delete on templates
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.slug), 0) + coalesce(octet_length(old.archive_reason), 0)) where account_id = old.account_id;
end;

create trigger template_versions_stored after insert on template_versions
begin
    insert into account_storage (account_id, bytes)
    select account_id, 200 + coalesce(octet_length(new.summary), 0) + coalesce(octet_length(new.document), 0) + coalesce(octet_length(new.search_name), 0) + coalesce(octet_length(new.search_text), 0) + coalesce(octet_length(new.search_body), 0) + coalesce(octet_length(new.deprecation_message), 0) from templates where id = new.template_id
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger template_versions_restored after update of summary, document, search_name, search_text, search_body, deprecation_message on template_versions
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.summary), 0) + coalesce(octet_length(old.document), 0) + coalesce(octet_length(old.search_name), 0) + coalesce(octet_length(old.search_text), 0) + coalesce(octet_length(old.search_body), 0) + coalesce(octet_length(old.deprecation_message), 0)) + (200 + coalesce(octet_length(new.summary), 0) + coalesce(octet_length(new.document), 0) + coalesce(octet_length(new.search_name), 0) + coalesce(octet_length(new.search_text), 0) + coalesce(octet_length(new.search_body), 0) + coalesce(octet_length(new.deprecation_message), 0))
    where account_id = (select account_id from templates where id = new.template_id);
end;
create trigger template_versions_unstored after delete on template_versions
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.summary), 0) + coalesce(octet_length(old.document), 0) + coalesce(octet_length(old.search_name), 0) + coalesce(octet_length(old.search_text), 0) + coalesce(octet_length(old.search_body), 0) + coalesce(octet_length(old.deprecation_message), 0))
    where account_id = (select account_id from templates where id = old.template_id);
end;

create trigger template_files_stored after insert on template_files
begin
    insert into account_storage (account_id, bytes)
    select account_id, 200 + coalesce(octet_length(new.path), 0) + coalesce(octet_length(new.content), 0) from templates where id = new.template_id
    on conflict (account_id) do update set bytes = bytes + excluded.bytes;
end;
create trigger template_files_restored after update of path, content on template_files
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.path), 0) + coalesce(octet_length(old.content), 0)) + (200 + coalesce(octet_length(new.path), 0) + coalesce(octet_length(new.content), 0))
    where account_id = (select account_id from templates where id = new.template_id);
end;
create trigger template_files_unstored after delete on template_files
begin
    update account_storage set bytes = bytes - (200 + coalesce(octet_length(old.path), 0) + coalesce(octet_length(old.content), 0))
    where account_id = (select account_id from templates where id = old.template_id);
end;
