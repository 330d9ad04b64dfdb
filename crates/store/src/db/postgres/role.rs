//! What the serving role must not be able to do.

use sqlx::{PgConnection, Row as _};

use crate::{Result, StoreError, error::DatabaseRefusal};

/// Whether the role of the connection is above the policies of the tables: because it bypasses them,
/// or because it owns a table, or could become somebody who does.
const ROLE: &str = "\
    select current_user::text as role, \
    coalesce((select rolsuper or rolbypassrls from pg_roles where rolname = current_user), true) \
    as is_above, exists ( \
        select 1 from pg_class where relnamespace = current_schema()::regnamespace \
        and relkind = 'r' and pg_has_role(current_user, relowner, 'member')) as is_owner";

/// Refuses a role for which row security would be no second line.
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
