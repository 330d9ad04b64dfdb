//! Checks that row security applies to the serving role.

use sqlx::{PgConnection, Row as _};

use crate::{Result, StoreError, error::DatabaseRefusal};

/// Whether the connection's role escapes the policies of the tables: it bypasses them, owns a
/// table, or is a member of a role that owns one.
const ROLE: &str = "\
    select current_user::text as role, \
    coalesce((select rolsuper or rolbypassrls from pg_roles where rolname = current_user), true) \
    as is_above, exists ( \
        select 1 from pg_class where relnamespace = current_schema()::regnamespace \
        and relkind = 'r' and pg_has_role(current_user, relowner, 'member')) as is_owner";

/// Refuses a role for which row security would not be a second line of defence.
pub(super) async fn check(db: &mut PgConnection) -> Result<()> {
    let row = sqlx::query(ROLE).fetch_one(db).await?;
    let (role, is_above): (String, bool) = (row.try_get("role")?, row.try_get("is_above")?);
    let is_owner: bool = row.try_get("is_owner")?;
    let why = match (is_above, is_owner) {
        (true, _) => "is a superuser or bypasses row security",
        (false, true) => "owns the tables",
        (false, false) => return Ok(()),
    };
    Err(StoreError::unavailable(DatabaseRefusal::RoleTooStrong { role, why }))
}
