-- Queries must not search the text of JSON documents: whether a key has the scope `admin`, and whether a
-- measurement speaks for its version, are columns. The database derives them, so that the previous
-- binary, which does not know them, fills them too. Rows that are there get them with this migration.
alter table api_keys add column is_admin integer generated always as (
    case when instr(scopes, '"admin"') > 0 then 1 else 0 end) virtual;
-- Null for a document without the member.
alter table verifier_measurements add column is_own integer generated always as (
    json_extract(document, '$.own')) virtual;
