-- Queries must not search the text of JSON documents: whether a key has the scope `admin`, and whether a
-- measurement speaks for its version, are columns. The database derives them, so that the previous
-- binary, which does not know them, fills them too. Rows that are there get them with this migration.
alter table api_keys add column is_admin smallint generated always as (
    case when strpos(scopes, '"admin"') > 0 then 1 else 0 end) stored;
-- Null for a document without the member. PostgreSQL takes no document apart that has a NUL in some text,
-- so it looks for the member; a quote within a text is escaped, so that no text looks like it.
alter table verifier_measurements add column is_own smallint generated always as (
    case when strpos(document, '"own":true') > 0 then 1
    when strpos(document, '"own":false') > 0 then 0 end) stored;
