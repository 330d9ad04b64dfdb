//! Deploys a version of a verifier.

use const_format::concatcp;
use jurat_core::{
    account::full_name,
    verifier::{Verifier, VerifierStanding, registry::DeployedVersion},
};

use super::{
    DeployRefusal, NewVerifierVersion,
    remove::{BY_ID, BY_NAME, find},
    rows::{COLUMNS, OWNER_HANDLE, REACH, VERIFIER_ADD, VERSION_ADD, read_verifier, verifier_gone},
};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, json},
        tx::{Tx, args},
    },
    ops::{storage::room, workflows::label},
};

/// Shared verifiers that the caller may tune.
const TUNABLE_BY_NAME: &str = concatcp!(
    "select ",
    COLUMNS,
    ", reach.via, ",
    OWNER_HANDLE,
    " from ",
    REACH,
    " join verifiers on verifiers.account_id = reach.account_id \
     and verifiers.id = reach.verifier_id where verifiers.standing = 'active' \
     and reach.via >= '2' and verifiers.name = $2 order by verifiers.id"
);
const DEPLOYED: &str = "\
    update verifiers set description = $1, current_version = $2, version_token = $3, \
    updated_at = $4 where account_id = $5 and id = $6";

pub(super) async fn deploy(
    tx: &mut Tx<'_>,
    deploy: &NewVerifierVersion,
) -> Result<Result<DeployedVersion, DeployRefusal>> {
    let verifier = match next(tx, deploy).await? {
        Ok(verifier) => verifier,
        Err(refused) => return Ok(Err(refused)),
    };
    let config_hash = deploy.config.hash();
    let args = args![
        &verifier.account,
        &verifier.id,
        verifier.current_version,
        &verifier.description,
        json(&deploy.config.document())?,
        &config_hash,
        deploy.at
    ];
    tx.run(VERSION_ADD, args).await?;
    Ok(Ok(DeployedVersion { verifier, config_hash }))
}

/// Writes the verifier as it is after the deploy, or returns the refusal.
async fn next(
    tx: &mut Tx<'_>,
    deploy: &NewVerifierVersion,
) -> Result<Result<Verifier, DeployRefusal>> {
    let mut found = find(tx, tx.own(BY_NAME), &deploy.account, &deploy.name).await?;
    if let (None, Some(token)) = (&found, &deploy.expected_token) {
        found = match tunable(tx, deploy, token).await? {
            Ok(found) => found,
            Err(refused) => return Ok(Err(refused)),
        };
    }
    let verifier = match deploy.next(found) {
        Ok(verifier) => verifier,
        Err(refused) => return Ok(Err(refused)),
    };
    if let Err(full) = room(tx, &verifier.account, deploy.quota_bytes).await? {
        return Ok(Err(DeployRefusal::Full(full)));
    }
    if verifier.current_version > 1 {
        let args = args![
            &verifier.description,
            verifier.current_version,
            &verifier.version_token,
            verifier.updated_at,
            &verifier.account,
            &verifier.id
        ];
        tx.run(DEPLOYED, args).await?;
        return Ok(Ok(verifier));
    }
    if add(tx, &verifier).await? {
        return Ok(Ok(verifier));
    }
    // Another deploy came first, and is visible now.
    let found = find(tx, tx.own(BY_NAME), &deploy.account, &deploy.name).await?;
    match deploy.next(found) {
        Err(refused) => Ok(Err(refused)),
        // The verifier was deployed and deleted in the meantime.
        Ok(_) => Err(verifier_gone()),
    }
}

async fn add(tx: &mut Tx<'_>, verifier: &Verifier) -> Result<bool> {
    let args = args![
        &verifier.account,
        &verifier.id,
        &verifier.name,
        &verifier.description,
        verifier.current_version,
        &verifier.version_token,
        verifier.standing.as_str(),
        verifier.created_at,
        verifier.updated_at
    ];
    Ok(tx.run(VERIFIER_ADD, args).await? == 1)
}

impl NewVerifierVersion {
    /// The verifier as it is after the deploy, or the refusal.
    fn next(&self, found: Option<Verifier>) -> Result<Verifier, DeployRefusal> {
        let Some(found) = found else {
            return if self.expected_token.is_some() {
                Err(DeployRefusal::TokenUnexpected)
            } else {
                Ok(self.first())
            };
        };
        if found.standing == VerifierStanding::Revoked {
            return Err(DeployRefusal::NameRevoked);
        }
        match &self.expected_token {
            None => Err(DeployRefusal::TokenMissing { current: found.version_token }),
            Some(given) if *given != found.version_token => {
                Err(DeployRefusal::TokenStale { current: found.version_token })
            }
            Some(_) => Ok(Verifier {
                description: self.description.clone(),
                current_version: found.current_version.saturating_add(1),
                version_token: self.new_token.clone(),
                updated_at: self.at,
                ..found
            }),
        }
    }

    fn first(&self) -> Verifier {
        Verifier {
            account: self.account.clone(),
            id: self.new_id.clone(),
            name: self.name.clone(),
            description: self.description.clone(),
            current_version: 1,
            version_token: self.new_token.clone(),
            standing: VerifierStanding::Active,
            created_at: self.at,
            updated_at: self.at,
        }
    }
}

/// A shared verifier that the caller may tune.
struct TunableVerifier {
    verifier: Verifier,
    is_accepted: bool,
    full_name: String,
}

fn read_tunable(cells: &dyn DbRow) -> Result<TunableVerifier> {
    let columns = RowReader::new(cells, "verifiers", "id")?;
    let verifier = read_verifier(cells)?;
    let owner = label(columns.maybe_text("owner_handle")?, verifier.account.as_str());
    Ok(TunableVerifier {
        is_accepted: columns.text("via")?.starts_with("2 1 "),
        full_name: full_name(&owner, &verifier.name),
        verifier,
    })
}

/// The shared verifier that a deploy means: the accepted one with this name and token. Other tokens
/// are not revealed, because the text of the deploy would go to another owner.
async fn tunable(
    tx: &mut Tx<'_>,
    deploy: &NewVerifierVersion,
    token: &str,
) -> Result<Result<Option<Verifier>, DeployRefusal>> {
    let args = args![&deploy.account, &deploy.name];
    let shared = tx.all(TUNABLE_BY_NAME, args, read_tunable).await?;
    if shared.is_empty() {
        return Ok(Ok(None));
    }
    let is_meant = |it: &TunableVerifier| it.is_accepted && it.verifier.version_token == token;
    let names = shared.iter().map(|it| it.full_name.clone()).collect();
    let Some(TunableVerifier { verifier, .. }) = shared.into_iter().find(is_meant) else {
        return Ok(Err(DeployRefusal::TokenOfNone(names)));
    };
    find(tx, tx.own(BY_ID), &verifier.account, &verifier.id).await.map(Ok)
}
