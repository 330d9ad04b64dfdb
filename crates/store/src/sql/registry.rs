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
            $crate::sql::registry::verifier_columns!(),
            " from verifiers where verifiers.account_id = $1 and verifiers.id = $2"
        )
    };
}
pub(crate) use verifier_by_id;

macro_rules! verifier_by_name {
    () => {
        concat!(
            "select ",
            $crate::sql::registry::verifier_columns!(),
            " from verifiers where verifiers.account_id = $1 and verifiers.name = $2"
        )
    };
}
pub(crate) use verifier_by_name;

pub(crate) const VERIFIER_BY_ID: &str = verifier_by_id!();
pub(crate) const VERIFIER_BY_NAME: &str = verifier_by_name!();
pub(crate) const VERIFIER_LIST: &str = concat!(
    "select ",
    verifier_columns!(),
    " from verifiers where verifiers.account_id = $1 and verifiers.standing = 'active' \
     and verifiers.name > $2 order by verifiers.name limit $3"
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

macro_rules! version {
    () => {
        concat!(
            "select ",
            verifier_columns!(),
            ", verifier_versions.version, verifier_versions.description as version_description, \
             verifier_versions.config, verifier_versions.config_hash, \
             verifier_versions.deployed_at from verifiers join verifier_versions \
             on verifier_versions.account_id = verifiers.account_id \
             and verifier_versions.verifier_id = verifiers.id \
             where verifiers.standing = 'active' and verifiers.account_id = $1 and verifiers."
        )
    };
}

/// With the current version where none is named.
pub(crate) const VERSION_BY_ID: &str = concat!(
    version!(),
    "id = $2 and verifier_versions.version = coalesce($3, verifiers.current_version)"
);
pub(crate) const VERSION_BY_NAME: &str = concat!(
    version!(),
    "name = $2 and verifier_versions.version = coalesce($3, verifiers.current_version)"
);
pub(crate) const VERSION_LIST: &str = "\
    select verifier_versions.verifier_id, verifier_versions.version, \
    verifier_versions.description, verifier_versions.config_hash, verifier_versions.deployed_at \
    from verifiers join verifier_versions \
    on verifier_versions.account_id = verifiers.account_id \
    and verifier_versions.verifier_id = verifiers.id \
    where verifiers.standing = 'active' and verifiers.account_id = $1 and verifiers.id = $2 \
    and verifier_versions.version < $3 order by verifier_versions.version desc limit $4";

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

/// What belongs to a verifier is written only while the verifier is there, which the statement
/// itself checks. PostgreSQL also keeps the verifier from being deleted meanwhile. The third text
/// is for verifiers that are not in the store.
macro_rules! guarded {
    ($plain:ident, $locking:ident, $system:ident: $head:expr, $values:expr, $tail:expr) => {
        pub(crate) const $plain: &str = concat!(
            $head,
            " select ",
            $values,
            " from verifiers where verifiers.account_id = $1 and verifiers.id = $2 ",
            $tail
        );
        pub(crate) const $locking: &str = concat!(
            $head,
            " select ",
            $values,
            " from verifiers where verifiers.account_id = $1 and verifiers.id = $2 \
             for key share ",
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
            $crate::sql::registry::nothing_said!(),
            "}' else '{\"vote\":",
            $crate::sql::registry::nothing_said!(),
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

/// All that goes with a verifier, in this order; the rounds of its runs are dealt with before.
pub(crate) const DELETIONS: [&str; 5] = [
    "delete from verifier_runs where account_id = $1 and verifier_id = $2",
    "delete from known_verdicts where account_id = $1 and verifier_id = $2",
    "delete from verifier_measurements where account_id = $1 and verifier_id = $2",
    "delete from verifier_versions where account_id = $1 and verifier_id = $2",
    "delete from verifiers where account_id = $1 and id = $2",
];
