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
