-- Searches read bodies, and rank what they find where it lies. What is searched is kept in small
-- letters: name and slug, all that lists show, and the words of the body.
alter table workflows add column search_name text not null default '';
alter table workflows add column search_body text not null default '';
alter table template_versions add column search_name text not null default '';
alter table template_versions add column search_text text not null default '';
alter table template_versions add column search_body text not null default '';

-- What is there already is found as well; the next version is kept word by word.
update workflows set
    search_name = lower(name || chr(10) || slug),
    search_body = coalesce((
        select lower(workflow_versions.body) from workflow_versions
        where workflow_versions.account_id = workflows.account_id
        and workflow_versions.workflow_id = workflows.id
        and workflow_versions.version = workflows.current_version), '');
update template_versions set
    search_name = coalesce((
        select lower(templates.slug) from templates
        where templates.id = template_versions.template_id), ''),
    search_text = lower(summary),
    search_body = lower(document);

-- What belongs to a template is seen with it: by its owner, and by everybody while it is published.
create function jurat_owns_template(template text) returns boolean
language sql stable security definer as $$
    select jurat_sees((select account_id from templates where id = template))
$$;

create function jurat_publishes(template text, which bigint) returns boolean
language sql stable security definer as $$
    select exists (
        select 1 from template_versions join templates
        on templates.id = template_versions.template_id
        where template_versions.template_id = template and template_versions.version = which
        and template_versions.unpublished_at is null and templates.archived_at is null)
$$;

-- What is put away is shared with nobody.
create or replace function jurat_shares_workflow(owner text, workflow text) returns boolean
language sql stable security definer as $$
    select exists (
        select 1 from workflow_grants join workflows
        on workflows.account_id = workflow_grants.account_id
        and workflows.id = workflow_grants.workflow_id and workflows.archived_at is null
        where workflow_grants.account_id = owner and workflow_grants.workflow_id = workflow and (
            workflow_grants.grantee_id = current_setting('jurat.account', true)
            or workflow_grants.grantee_id in (
                select team_id from team_members
                where account_id = current_setting('jurat.account', true))))
$$;

create or replace function jurat_shares_verifier(owner text, verifier text) returns boolean
language sql stable security definer as $$
    select exists (
        select 1 from workflow_bindings
        where account_id = owner and verifier_id = verifier
        and jurat_shares_workflow(owner, workflow_id)
    ) or exists (
        select 1 from template_pins
        where verifier_id = verifier and jurat_publishes(template_id, version))
$$;

do $$
declare
    named text;
begin
    -- A function that runs past the policies finds its tables here and nowhere else.
    foreach named in array array[
        'jurat_owns_template(text)', 'jurat_publishes(text, bigint)',
        'jurat_shares_workflow(text, text)', 'jurat_shares_verifier(text, text)']
    loop
        execute format('alter function %s set search_path = %I, pg_temp', named, current_schema());
    end loop;
    foreach named in array array['template_versions', 'template_files', 'template_pins'] loop
        execute format('alter table %I enable row level security', named);
        execute format(
            'create policy of_everybody on %I for select '
            'using (jurat_publishes(template_id, version))', named);
        execute format(
            'create policy of_account on %I using (jurat_owns_template(template_id))', named);
    end loop;
end
$$;
