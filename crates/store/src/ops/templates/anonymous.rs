//! Visitors: their accounts, and their monthly credit.

use crate::{
    CreditGrant, Result,
    db::tx::{Tx, args},
    ops::ledger::{give, locked_balance},
};

const ACCOUNT: &str = "\
    insert into accounts (id, created_at, kind) values ($1, $2, 'anonymous') \
    on conflict (id) do nothing";
const MONTH: &str = "\
    insert into anonymous_grants (account_id, month) values ($1, $2) on conflict do nothing";

pub(super) async fn admit(tx: &mut Tx<'_>, monthly: &CreditGrant) -> Result<()> {
    let CreditGrant { account, micros, note, at } = monthly;
    let (month, _) = at.month();
    if tx.run(MONTH, args![account, month]).await? == 0 {
        return Ok(());
    }
    tx.run(ACCOUNT, args![account, *at]).await?;
    // The rest of the previous month is topped up, not added to; a debt is paid from the credit.
    let available = locked_balance(tx, account.as_str()).await?.available.max(0);
    let grant = CreditGrant {
        account: account.clone(),
        micros: micros.saturating_sub(available).max(0),
        note: note.clone(),
        at: *at,
    };
    give(tx, &grant).await?;
    Ok(())
}
