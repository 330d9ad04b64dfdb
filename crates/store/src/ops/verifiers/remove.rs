//! Revokes and deletes verifiers.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    verifier::{Verifier, VerifierSelector},
};

use super::{
    VerifierRemoval, VerifierRemoveRefusal,
    rows::{COLUMNS, read_verifier},
};
use crate::{
    Result,
    db::tx::{Tx, args},
    ops::{
        erasure::{
            ERASED_ANSWER, READABLE_CONSENSUS, READABLE_DOCUMENT, WITHOUT_WORDS_POSTGRES,
            WITHOUT_WORDS_SQLITE,
        },
        templates::{SERVING, read_serving, verifier_lock},
        workflows::of_owner,
    },
};

const OWN_BY_ID: &str = concatcp!(
    "select ",
    COLUMNS,
    " from verifiers where verifiers.account_id = $1 and verifiers.id = $2"
);
const OWN_BY_NAME: &str = concatcp!(
    "select ",
    COLUMNS,
    " from verifiers where verifiers.account_id = $1 and verifiers.name = $2"
);
/// One of the caller's own verifiers, by its name and an owner `$3`, who must be the caller.
const OWN_BY_FULL_NAME: &str =
    concatcp!(OWN_BY_NAME, " and verifiers.account_id in ", of_owner!("$3"));

// Deploys and revocations of a verifier wait for each other; new runs of it do not wait.
const LOCKED: &str = " for no key update";
pub(super) const BY_ID: (&str, &str) = (OWN_BY_ID, concatcp!(OWN_BY_ID, LOCKED));
pub(super) const BY_NAME: (&str, &str) = (OWN_BY_NAME, concatcp!(OWN_BY_NAME, LOCKED));
const BY_FULL_NAME: (&str, &str) = (OWN_BY_FULL_NAME, concatcp!(OWN_BY_FULL_NAME, LOCKED));

// No more rows that belong to the verifier can be added.
const GOING: &str = " for update";
const BY_ID_GOING: (&str, &str) = (OWN_BY_ID, concatcp!(OWN_BY_ID, GOING));
const BY_NAME_GOING: (&str, &str) = (OWN_BY_NAME, concatcp!(OWN_BY_NAME, GOING));
const BY_FULL_NAME_GOING: (&str, &str) = (OWN_BY_FULL_NAME, concatcp!(OWN_BY_FULL_NAME, GOING));

const REVOKE: &str = "\
    update verifiers set standing = 'revoked', updated_at = $1 \
    where account_id = $2 and id = $3 and standing = 'active'";

// The rounds in which judges of a verifier answered: its runs, and rounds under a policy that names
// it. Open rounds are included, and are erased when they end. Rounds come before the replicas, so
// that both statements see a round that ends at this moment. The answers of executors in a delegate
// stay.
const ERASE_ROUNDS: (&str, &str) = (
    concatcp!(
        "update rounds set erased_at = $1, run = null, consensus = case when kind = 'validate' \
         then json_remove(consensus, '$.output') else consensus end where (account_id, id) in (",
        JUDGED_ROUNDS_2,
        ")"
    ),
    concatcp!(
        "update rounds set erased_at = $1, run = null, consensus = case when kind = 'validate' \
         then (select json_object_agg(key, value)::text from json_each(",
        READABLE_CONSENSUS,
        ") where key <> 'output') else consensus end where (account_id, id) in (",
        JUDGED_ROUNDS_2,
        ")"
    ),
);
const ERASE_REPLICAS: (&str, &str) = (
    concatcp!(
        IF_VALIDATE,
        "json_set(document, '$.answer', json(",
        ERASED_ANSWER,
        ")) else ",
        WITHOUT_WORDS_SQLITE,
        " end where (account_id, round_id) in (",
        JUDGED_ROUNDS_1,
        ")"
    ),
    concatcp!(
        IF_VALIDATE,
        "(select json_object_agg(key, case when key = 'answer' then (",
        ERASED_ANSWER,
        ")::json else value end)::text from json_each(",
        READABLE_DOCUMENT,
        ")) else ",
        WITHOUT_WORDS_POSTGRES,
        " end where (account_id, round_id) in (",
        JUDGED_ROUNDS_1,
        ")"
    ),
);
const IF_VALIDATE: &str = "\
    update replicas set document = case when exists (select 1 from rounds \
    where rounds.account_id = replicas.account_id and rounds.id = replicas.round_id \
    and rounds.kind = 'validate') then ";
const JUDGED_ROUNDS_1: &str = "\
    select account_id, round_id from verifier_runs where verifier_id = $1 \
    union select account_id, id from rounds where verifier_id = $1";
const JUDGED_ROUNDS_2: &str = "\
    select account_id, round_id from verifier_runs where verifier_id = $2 \
    union select account_id, id from rounds where verifier_id = $2";

/// The rows of a verifier in all accounts that ran it; the rounds of its runs are erased first.
const DELETIONS_OF_ALL: [&str; 3] = [
    "delete from verifier_runs where verifier_id = $1",
    "delete from known_verdicts where verifier_id = $1",
    "delete from judge_history where verifier_id = $1",
];
/// The rows of its owner, in this order.
const DELETIONS: [&str; 4] = [
    "delete from workflow_bindings where account_id = $1 and verifier_id = $2",
    "delete from verifier_measurements where account_id = $1 and verifier_id = $2",
    "delete from verifier_versions where account_id = $1 and verifier_id = $2",
    "delete from verifiers where account_id = $1 and id = $2",
];

pub(super) async fn revoke(
    tx: &mut Tx<'_>,
    removal: &VerifierRemoval,
) -> Result<Result<Verifier, VerifierRemoveRefusal>> {
    let VerifierRemoval { account, which, at } = removal;
    let found = match which {
        VerifierSelector::Id(id) => find(tx, tx.own(BY_ID), account, id).await?,
        VerifierSelector::Name(name) => find(tx, tx.own(BY_NAME), account, name).await?,
        VerifierSelector::Of { owner, name } => {
            let args = args![account, name, owner.as_str()];
            tx.first(tx.own(BY_FULL_NAME), args, read_verifier).await?
        }
        VerifierSelector::System(_) => None,
    };
    let Some(verifier) = found else { return Ok(Err(VerifierRemoveRefusal::Unknown)) };
    tx.run(REVOKE, args![*at, account, &verifier.id]).await?;
    Ok(Ok(verifier))
}

pub(super) async fn delete(
    tx: &mut Tx<'_>,
    removal: &VerifierRemoval,
) -> Result<Result<Verifier, VerifierRemoveRefusal>> {
    let VerifierRemoval { account, which, at } = removal;
    let found = match which {
        VerifierSelector::Id(id) => {
            tx.lock(&verifier_lock(id)).await?;
            find(tx, tx.own(BY_ID_GOING), account, id).await?
        }
        VerifierSelector::Name(name) => find(tx, tx.own(BY_NAME_GOING), account, name).await?,
        VerifierSelector::Of { owner, name } => {
            let args = args![account, name, owner.as_str()];
            tx.first(tx.own(BY_FULL_NAME_GOING), args, read_verifier).await?
        }
        VerifierSelector::System(_) => None,
    };
    let Some(verifier) = found else { return Ok(Err(VerifierRemoveRefusal::Unknown)) };
    let serving = tx.all(SERVING, args![&verifier.id], read_serving).await?;
    if !serving.is_empty() {
        return Ok(Err(VerifierRemoveRefusal::Serving(serving)));
    }
    // A verifier may have very many runs.
    tx.allow_long_statements().await?;
    tx.run(tx.own(ERASE_ROUNDS), args![*at, &verifier.id]).await?;
    for text in [tx.own(ERASE_REPLICAS)].into_iter().chain(DELETIONS_OF_ALL) {
        tx.run(text, args![&verifier.id]).await?;
    }
    for text in DELETIONS {
        tx.run(text, args![account, &verifier.id]).await?;
    }
    Ok(Ok(verifier))
}

/// A verifier by a statement that takes its account, and its identifier or its name.
pub(super) async fn find(
    tx: &mut Tx<'_>,
    text: &'static str,
    account: &AccountId,
    key: &str,
) -> Result<Option<Verifier>> {
    tx.first(text, args![account, key], read_verifier).await
}
