//! Callers without a key: their accounts, and the credit of a month.

use std::convert::Infallible;

use crate::{
    Grant, Result,
    both::{Arg, Tx, args},
    rows::ledger::{Posting, read_balance},
    sql::ledger as sql,
};

const ACCOUNT: &str = "\
    insert into accounts (id, created_at, kind) values ($1, $2, 'anonymous') \
    on conflict (id) do nothing";
const MONTH: &str = "\
    insert into anonymous_grants (account_id, month) values ($1, $2) on conflict do nothing";

pub(super) async fn admit(tx: &mut impl Tx, monthly: &Grant) -> Result<Result<(), Infallible>> {
    let Grant { account, micros, note, at } = monthly;
    let (month, _) = at.month();
    if tx.run(MONTH, args![account, month]).await? == 0 {
        return Ok(Ok(()));
    }
    tx.run(ACCOUNT, args![account, *at]).await?;
    tx.run(sql::BALANCE_MAKE, args![account]).await?;
    let read = |cells: &dyn crate::rows::Cells| read_balance(&cells);
    let balance = tx.first(sql::BALANCE_GET, args![account], read).await?;
    // What is left of the month before is made up to the whole, and not added to it.
    let available = balance.map_or(0, |(balance, _)| balance.available);
    let grant = Grant {
        account: account.clone(),
        micros: micros.saturating_sub(available).max(0),
        note: note.clone(),
        at: *at,
    };
    post(tx, &Posting::of_grant(&grant)).await?;
    Ok(Ok(()))
}

/// Writes lines and changes the balance, which is there.
async fn post(tx: &mut impl Tx, posting: &Posting) -> Result<()> {
    if !posting.moves_something() {
        return Ok(());
    }
    let change = posting.change;
    let args = args![
        change.granted,
        change.available,
        change.held,
        change.spent,
        posting.count(),
        &posting.account_id,
        Arg::Number(posting.needed)
    ];
    let read = |cells: &dyn crate::rows::Cells| read_balance(&cells);
    let Some((_, last)) = tx.first(sql::BALANCE_CHANGE, args, read).await? else { return Ok(()) };
    for (id, line) in posting.numbered(last) {
        let args = args![
            &posting.account_id,
            id,
            line.movement,
            line.micros,
            posting.round_id.as_deref(),
            posting.note.as_deref(),
            posting.at
        ];
        tx.run(sql::TRANSFER_ADD, args).await?;
    }
    Ok(())
}
