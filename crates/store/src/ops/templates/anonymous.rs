//! Visitors: their accounts, and their monthly credit.

use std::convert::Infallible;

use crate::{
    CreditGrant, Result,
    db::{
        rows::ledger::read_balance,
        sql::ledger as sql,
        tx::{Tx, args},
    },
    ops::credit::give,
};

const ACCOUNT: &str = "\
    insert into accounts (id, created_at, kind) values ($1, $2, 'anonymous') \
    on conflict (id) do nothing";
const MONTH: &str = "\
    insert into anonymous_grants (account_id, month) values ($1, $2) on conflict do nothing";

pub(super) async fn admit(
    tx: &mut impl Tx,
    monthly: &CreditGrant,
) -> Result<Result<(), Infallible>> {
    let CreditGrant { account, micros, note, at } = monthly;
    let (month, _) = at.month();
    if tx.run(MONTH, args![account, month]).await? == 0 {
        return Ok(Ok(()));
    }
    tx.run(ACCOUNT, args![account, *at]).await?;
    let read = |cells: &dyn crate::db::rows::DbRow| read_balance(&cells);
    let balance = tx.first(sql::BALANCE_GET, args![account], read).await?;
    // The grant restores the monthly amount and is not added to the rest; a debt is paid from it.
    let available = balance.map_or(0, |(balance, _)| balance.available.max(0));
    let grant = CreditGrant {
        account: account.clone(),
        micros: micros.saturating_sub(available).max(0),
        note: note.clone(),
        at: *at,
    };
    give(tx, &grant).await?;
    Ok(Ok(()))
}
