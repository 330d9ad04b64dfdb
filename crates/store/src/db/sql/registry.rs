//! The SQL of verifiers, their versions and measurements, and of verdicts that are known.

macro_rules! verifier_columns {
    () => {
        "verifiers.account_id, verifiers.id, verifiers.name, verifiers.description, \
         verifiers.current_version, verifiers.version_token, verifiers.standing, \
         verifiers.created_at, verifiers.updated_at"
    };
}
pub(crate) use verifier_columns;

macro_rules! verifier_by_id {
    () => {
        concat!(
            "select ",
            $crate::db::sql::registry::verifier_columns!(),
            " from verifiers where verifiers.account_id = $1 and verifiers.id = $2"
        )
    };
}
pub(crate) use verifier_by_id;

macro_rules! verifier_by_name {
    () => {
        concat!(
            "select ",
            $crate::db::sql::registry::verifier_columns!(),
            " from verifiers where verifiers.account_id = $1 and verifiers.name = $2"
        )
    };
}
pub(crate) use verifier_by_name;

/// One of the caller's own, by its name and an owner `$3`, who must be the caller.
macro_rules! verifier_by_full_name {
    () => {
        concat!(
            $crate::db::sql::registry::verifier_by_name!(),
            " and verifiers.account_id in ",
            $crate::ops::workflows::of_owner!("$3")
        )
    };
}
pub(crate) use verifier_by_full_name;

pub(crate) const VERIFIER_BY_ID: &str = verifier_by_id!();
pub(crate) const VERIFIER_BY_NAME: &str = verifier_by_name!();
pub(crate) const VERIFIER_BY_FULL_NAME: &str = verifier_by_full_name!();
/// The verifiers that the caller reaches through grants, each once: `via` begins with `2` where it
/// may be tuned and with `1` where it may only be run, goes on with `1` where the grant is accepted
/// and with `0` where it is not, and then names a workflow.
macro_rules! reaches {
    ($rest:literal) => {
        concat!(
            "select workflow_bindings.account_id, workflow_bindings.verifier_id, \
             max(case workflow_grants.role when 'view' then '1 ' else '2 ' end \
             || case when ",
            $crate::ops::workflows::is_accepted!(),
            " then '1 ' else '0 ' end || workflows.id) as via from workflow_grants join workflows \
             on workflows.account_id = workflow_grants.account_id \
             and workflows.id = workflow_grants.workflow_id and workflows.archived_at is null \
             join workflow_bindings on workflow_bindings.account_id = workflows.account_id \
             and workflow_bindings.workflow_id = workflows.id \
             where workflow_grants.account_id <> $1 and workflow_grants.state <> 'declined' \
             and workflow_grants.grantee_id in ",
            $crate::ops::workflows::principals!(),
            $rest,
            " group by workflow_bindings.account_id, workflow_bindings.verifier_id"
        )
    };
}
pub(crate) use reaches;

macro_rules! reach {
    () => {
        concat!("(", $crate::db::sql::registry::reaches!(""), ") as reach")
    };
}
pub(crate) use reach;

/// The handle of whoever owns a verifier.
macro_rules! owner_handle {
    () => {
        "(select owners.handle from accounts as owners where owners.id = verifiers.account_id) \
         as owner_handle"
    };
}
pub(crate) use owner_handle;

/// Verifiers of others that the caller may tune.
pub(crate) const TUNED_BY_NAME: &str = concat!(
    "select ",
    verifier_columns!(),
    ", reach.via, ",
    owner_handle!(),
    " from ",
    reach!(),
    " join verifiers on verifiers.account_id = reach.account_id \
     and verifiers.id = reach.verifier_id where verifiers.standing = 'active' \
     and reach.via >= '2' and verifiers.name = $2 order by verifiers.id"
);
/// Another who deploys the same name at the same time may be first.
pub(crate) const VERIFIER_ADD: &str = "\
    insert into verifiers (account_id, id, name, description, current_version, version_token, \
    standing, created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
    on conflict (account_id, name) do nothing";
pub(crate) const VERIFIER_DEPLOYED: &str = "\
    update verifiers set description = $1, current_version = $2, version_token = $3, \
    updated_at = $4 where account_id = $5 and id = $6";
pub(crate) const VERIFIER_REVOKE: &str = "\
    update verifiers set standing = 'revoked', updated_at = $1 \
    where account_id = $2 and id = $3 and standing = 'active'";

pub(crate) const VERSION_ADD: &str = "\
    insert into verifier_versions (\
        account_id, verifier_id, version, description, config, config_hash, deployed_at) \
    values ($1, $2, $3, $4, $5, $6, $7)";

macro_rules! measurement_columns {
    () => {
        "id, verifier_id, version, purpose, data_digest, document, created_at"
    };
}

macro_rules! newest_measurements {
    ($purpose:literal, $own:literal, $most:literal) => {
        concat!(
            "select * from (select ",
            measurement_columns!(),
            " from verifier_measurements where account_id = $1 and verifier_id = $2 \
             and version = $3 and purpose = '",
            $purpose,
            "' and document like '%\"own\":",
            $own,
            "%' order by id desc limit ",
            $most,
            ") as newest"
        )
    };
}

pub(crate) const MEASUREMENT_GET: &str = concat!(
    "select ",
    measurement_columns!(),
    ", cases from verifier_measurements where account_id = $1 and verifier_id = $2 \
     and version = $3 and purpose = $4 and document like '%\"own\":true%' \
     order by id desc limit 1"
);
/// The newest own one of each purpose that measures, then tests with other judges, newest first;
/// all without their cases. A quote within a text of a document is escaped, so that no text can
/// look like the member.
pub(crate) const MEASUREMENTS: &str = concat!(
    newest_measurements!("test", "true", "1"),
    " union all ",
    newest_measurements!("attack", "true", "1"),
    " union all ",
    newest_measurements!("test", "false", "20"),
    " order by purpose desc, id desc"
);

pub(crate) const VERDICT_GET: &str = "\
    select digest, document, created_at from known_verdicts \
    where account_id = $1 and digest = $2 and created_at >= $3";

/// Removes the oldest known verdicts that the condition names; `$2` is the most that go. The last
/// argument is what PostgreSQL needs to wait for nobody. They are chosen once: PostgreSQL may run
/// a plain subquery again for every row.
macro_rules! verdicts_gone {
    ($oldest:expr, $locks:literal) => {
        concat!(
            "with gone as materialized ( \
             select account_id, digest from known_verdicts ",
            $oldest,
            $locks,
            ") delete from known_verdicts \
             where (account_id, digest) in (select account_id, digest from gone)"
        )
    };
}
pub(crate) use verdicts_gone;

macro_rules! verdicts_old {
    () => {
        "where created_at < $1 order by created_at limit $2"
    };
}
pub(crate) use verdicts_old;

/// A negative limit would be none at all in SQLite, and an error in PostgreSQL.
macro_rules! verdicts_many {
    () => {
        "order by created_at limit ( \
         select case when count(*) <= $1 then 0 when count(*) - $1 < $2 then count(*) - $1 \
         else $2 end from known_verdicts)"
    };
}
pub(crate) use verdicts_many;

/// Whether a verifier is the caller's, is shared with it, or is for everybody.
macro_rules! usable {
    () => {
        concat!(
            "(verifiers.account_id = $1 or exists (select 1 from workflow_bindings \
             join workflows on workflows.account_id = workflow_bindings.account_id \
             and workflows.id = workflow_bindings.workflow_id and workflows.archived_at is null \
             join workflow_grants on workflow_grants.account_id = workflows.account_id \
             and workflow_grants.workflow_id = workflows.id \
             where workflow_bindings.account_id = verifiers.account_id \
             and workflow_bindings.verifier_id = verifiers.id \
             and workflow_grants.state <> 'declined' and workflow_grants.grantee_id in ",
            $crate::ops::workflows::principals!(),
            ") or exists (select 1 from template_pins join template_versions \
             on template_versions.template_id = template_pins.template_id \
             and template_versions.version = template_pins.version \
             join templates on templates.id = template_pins.template_id \
             where template_pins.verifier_id = verifiers.id \
             and template_versions.unpublished_at is null and templates.archived_at is null))"
        )
    };
}
pub(crate) use usable;

/// What belongs to a verifier is written only while the verifier is there, which the statement
/// itself checks. PostgreSQL also keeps the verifier from being deleted meanwhile. The third text
/// is for verifiers that are not in the store.
macro_rules! guarded {
    ($plain:ident, $locking:ident, $system:ident: $head:expr, $values:expr, $tail:expr) => {
        pub(crate) const $plain: &str = concat!(
            $head,
            " select ",
            $values,
            " from verifiers where verifiers.id = $2 and ",
            $crate::db::sql::registry::usable!(),
            " ",
            $tail
        );
        pub(crate) const $locking: &str = concat!(
            $head,
            " select ",
            $values,
            " from verifiers where verifiers.id = $2 and ",
            $crate::db::sql::registry::usable!(),
            " for key share of verifiers ",
            $tail
        );
        pub(crate) const $system: &str = concat!($head, " values (", $values, ") ", $tail);
    };
}
pub(crate) use guarded;

guarded!(
    MEASUREMENT_ADD, MEASUREMENT_ADD_LOCKING, SYSTEM_MEASUREMENT_ADD:
    "insert into verifier_measurements (account_id, verifier_id, id, version, purpose, \
     data_digest, document, cases, created_at)",
    "$1, $2, $3, $4, $5, $6, $7, $8, $9",
    ""
);
guarded!(
    VERDICT_PUT, VERDICT_PUT_LOCKING, SYSTEM_VERDICT_PUT:
    "insert into known_verdicts (account_id, verifier_id, digest, document, created_at)",
    "$1, $2, $3, $4, $5",
    "on conflict (account_id, digest) do update set verifier_id = excluded.verifier_id, \
     document = excluded.document, created_at = excluded.created_at"
);

/// What is left of a replica's answer when what was said is erased: the label and the code of a
/// failure, which are columns. `rows/documents.rs` makes the same for a round that ends later.
macro_rules! erased_answer {
    () => {
        concat!(
            "case when failure is not null then '{\"nothing\":{\"detail\":\"erased\",\"said\":null}}' \
             when label in ('RETRY', 'NEEDS_SPEC') then '{\"abstained\":",
            $crate::db::sql::registry::nothing_said!(),
            "}' else '{\"vote\":",
            $crate::db::sql::registry::nothing_said!(),
            "}' end"
        )
    };
}
pub(crate) use erased_answer;

macro_rules! nothing_said {
    () => {
        "{\"score\":null,\"reason_codes\":[],\"evidence_inline\":[],\"evidence_refs\":[],\
         \"result_hash\":null,\"notes\":[]}"
    };
}
pub(crate) use nothing_said;

/// The rounds in which the judges of the verifier had a say: as a run of it, or under a policy that
/// names it. The argument is its id.
macro_rules! judged_rounds {
    ($verifier:literal) => {
        concat!(
            "select account_id, round_id from verifier_runs where verifier_id = ",
            $verifier,
            " union select account_id, id from rounds where verifier_id = ",
            $verifier
        )
    };
}
pub(crate) use judged_rounds;

/// What all who ran a verifier have of it, by its id; the rounds of its runs are dealt with before.
pub(crate) const DELETIONS_OF_ALL: [&str; 3] = [
    "delete from verifier_runs where verifier_id = $1",
    "delete from known_verdicts where verifier_id = $1",
    "delete from judge_history where verifier_id = $1",
];
/// What its owner has of it, in this order.
pub(crate) const DELETIONS: [&str; 4] = [
    "delete from workflow_bindings where account_id = $1 and verifier_id = $2",
    "delete from verifier_measurements where account_id = $1 and verifier_id = $2",
    "delete from verifier_versions where account_id = $1 and verifier_id = $2",
    "delete from verifiers where account_id = $1 and id = $2",
];

/// A document that PostgreSQL can take apart: it refuses those with a NUL in some text. Such texts
/// are only in what is erased.
macro_rules! readable {
    ($column:literal) => {
        concat!("regexp_replace(", $column, r", '(?<!\\)((?:\\\\)*)\\u0000', '\1', 'g')::json")
    };
}
pub(crate) use readable;
