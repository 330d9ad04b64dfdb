-- People and teams, workflows and who may use them, and templates that everybody may read.

-- `user`, `team`, or `anonymous` for what one network address does without a key.
alter table accounts add column kind text not null default 'user';
-- In lower case; only users have one.
alter table accounts add column email text;
alter table accounts add column handle text;
alter table accounts add column handle_claimed_at bigint;

create unique index accounts_by_email on accounts (email);

-- Every handle that was ever claimed, of users and teams alike.
create table handles (
    handle text not null primary key,
    account_id text not null,
    claimed_at bigint not null,
    -- When its account took another one; it leads there for a while.
    left_at bigint,
    -- Whether a template was published under it: then it is nobody else's for ever.
    is_stamped smallint not null
);

create index handles_by_account on handles (account_id, left_at);

create table team_members (
    team_id text not null,
    account_id text not null,
    -- `owner` or `member`.
    role text not null,
    since bigint not null,
    primary key (team_id, account_id)
);

create index team_members_by_account on team_members (account_id, team_id);

create table invitations (
    id text not null primary key,
    kind text not null,
    target_id text not null,
    target_label text not null,
    from_id text not null,
    -- An account, or an e-mail address that has none yet.
    to_id text not null,
    -- As the one who invites named them.
    to_label text not null,
    created_at bigint not null,
    expires_at bigint not null,
    resolved_at bigint,
    -- `accepted`, `declined`, `cancelled` or `expired`.
    resolution text
);

create unique index invitations_pending on invitations (kind, target_id, to_id) where resolved_at is null;
create index invitations_received on invitations (to_id, id);
create index invitations_sent on invitations (from_id, id);

-- Codes that were sent by mail, as hashes.
create table login_codes (
    email text not null primary key,
    -- `register` or `login`.
    purpose text not null,
    code_hash text not null,
    tries bigint not null,
    -- How many codes the address was sent since then.
    sent bigint not null,
    sent_since bigint not null,
    created_at bigint not null,
    expires_at bigint not null
);

create index login_codes_by_end on login_codes (expires_at);

-- Programs that wait until somebody lets them in; secrets as hashes.
create table device_logins (
    device_hash text not null primary key,
    user_code text not null,
    -- `pending`, `approved`, `denied` or `used`.
    state text not null,
    account_id text,
    token_hash text,
    created_at bigint not null,
    expires_at bigint not null,
    polled_at bigint
);

create unique index device_logins_by_user_code on device_logins (user_code);
create unique index device_logins_by_token on device_logins (token_hash);
create index device_logins_by_end on device_logins (expires_at);

create table workflows (
    account_id text not null,
    id text not null,
    slug text not null,
    -- Those of the current version, for lists.
    name text not null,
    description text not null,
    outcome text not null,
    tags text not null,
    -- All of these and the slug in small letters, to be searched.
    search_text text not null,
    current_version bigint not null,
    -- Must be given to save the next version; drawn anew with each.
    version_token text not null,
    parent_template_id text,
    parent_template_version bigint,
    created_at bigint not null,
    updated_at bigint not null,
    archived_at bigint,
    primary key (account_id, id)
);

create unique index workflows_by_id on workflows (id);
create unique index workflows_by_slug on workflows (account_id, slug);

create table workflow_versions (
    account_id text not null,
    workflow_id text not null,
    version bigint not null,
    name text not null,
    description text not null,
    outcome text not null,
    tags text not null,
    body text not null,
    source text not null,
    -- The verifiers that the version names, as a document.
    bindings text not null,
    created_by text not null,
    created_at bigint not null,
    primary key (account_id, workflow_id, version)
);

create trigger workflow_versions_never_change before update on workflow_versions
begin
    select raise(abort, 'versions of workflows never change');
end;

create table workflow_files (
    account_id text not null,
    workflow_id text not null,
    version bigint not null,
    path text not null,
    sha256 text not null,
    size_bytes bigint not null,
    is_executable smallint not null,
    -- `text` or `binary`.
    content_kind text not null,
    purpose text not null,
    primary key (account_id, workflow_id, version, path)
);

create index workflow_files_by_content on workflow_files (account_id, sha256);

-- The contents of files, once for each account.
create table workflow_blobs (
    account_id text not null,
    sha256 text not null,
    content blob not null,
    created_at bigint not null,
    primary key (account_id, sha256)
);

-- The verifiers that the current version of each workflow names. Whoever may use a workflow may
-- use these, so nothing of it needs to be kept elsewhere.
create table workflow_bindings (
    account_id text not null,
    workflow_id text not null,
    name text not null,
    verifier_id text not null,
    pinned_version bigint,
    primary key (account_id, workflow_id, name)
);

create index workflow_bindings_by_verifier on workflow_bindings (account_id, verifier_id);

create table workflow_grants (
    account_id text not null,
    workflow_id text not null,
    -- A user or a team.
    grantee_id text not null,
    -- `view`, `edit` or `admin`.
    role text not null,
    -- The first version that is shared; zero for the whole history.
    floor_version bigint not null,
    granted_by text not null,
    granted_at bigint not null,
    primary key (account_id, workflow_id, grantee_id)
);

create index workflow_grants_by_grantee on workflow_grants (grantee_id, workflow_id);

create table templates (
    id text not null primary key,
    account_id text not null,
    slug text not null,
    -- The workflow that it is published from.
    workflow_id text not null,
    -- The handle of its owner when a version was last published.
    publishing_handle text not null,
    latest_version bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    archived_at bigint,
    archive_reason text
);

create unique index templates_by_slug on templates (account_id, slug);
create index templates_by_handle on templates (publishing_handle, slug);

-- Where a template was before its owner changed; it leads on from there.
create table template_moves (
    account_id text not null,
    slug text not null,
    template_id text not null,
    primary key (account_id, slug)
);

create index template_moves_by_template on template_moves (template_id);

create table template_versions (
    template_id text not null,
    version bigint not null,
    -- Name, description, outcome, tags and checks, for lists and searches.
    summary text not null,
    -- The body, and the verifiers as they were.
    document text not null,
    published_at bigint not null,
    unpublished_at bigint,
    deprecated_at bigint,
    deprecation_message text,
    primary key (template_id, version)
);

create table template_files (
    template_id text not null,
    version bigint not null,
    path text not null,
    sha256 text not null,
    size_bytes bigint not null,
    is_executable smallint not null,
    content_kind text not null,
    purpose text not null,
    content blob not null,
    primary key (template_id, version, path)
);

-- The versions of verifiers that a version of a template was published with: while it is live,
-- they can be run by anybody and not be deleted.
create table template_pins (
    template_id text not null,
    version bigint not null,
    name text not null,
    account_id text not null,
    verifier_id text not null,
    verifier_version bigint not null,
    primary key (template_id, version, name)
);

create index template_pins_by_verifier on template_pins (verifier_id, verifier_version);

-- What all who have no key caused and may still cause in a day, and what each address was given
-- in a month.
create table anonymous_days (
    day bigint not null primary key,
    micros bigint not null
);

-- What may be spent in a day by all who have no key together; null for a round with a key.
alter table rounds add column day_cap_micros bigint;

create table anonymous_grants (
    account_id text not null,
    month bigint not null,
    primary key (account_id, month)
);

-- A verifier is also run by those who may use a workflow that names it, and by anybody.
create index verifier_runs_of_all on verifier_runs (verifier_id, account_id);
create index known_verdicts_of_all on known_verdicts (verifier_id, account_id);
create index verifiers_by_id on verifiers (id);

-- The oldest verdicts go first.
create index known_verdicts_by_age on known_verdicts (created_at);
