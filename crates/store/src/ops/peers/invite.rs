//! Invitations of peers, each for one node.

use std::convert::Infallible;

use const_format::concatcp;
use jurat_core::{
    peer::{Peer, PeerId, PeerStanding, invitation::PeerInvitation},
    time::Timestamp,
};

use super::{
    PeerInvitationRefusal as Refusal, PeerInvitationUse,
    rows::{INVITATION_COLUMNS, TermsDocument, read_invitation},
};
use crate::{
    Result,
    db::{
        row::json,
        tx::{Tx, args, of_found},
    },
    ops::sessions::pool_changed,
};

const GET: &str =
    concatcp!("select ", INVITATION_COLUMNS, " from peer_invitations where secret_digest = $1");
const INVITE: &str = concatcp!(
    "insert into peer_invitations (",
    INVITATION_COLUMNS,
    ") values ($1, $2, $3, $4, $5, $6)"
);
const USE: &str = "\
    update peer_invitations set used_by = $1 where secret_digest = $2 and used_by is null";
const PRUNE: (&str, &str) = of_found!(
    "delete from peer_invitations",
    "peer_invitations where expires_at < $1 order by expires_at limit $2",
    ""
);

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[(GET, GET), (USE, USE), PRUNE];

pub(super) async fn get(tx: &mut Tx<'_>, secret_digest: &str) -> Result<Option<PeerInvitation>> {
    tx.first(GET, args![secret_digest], read_invitation).await
}

pub(super) async fn invite(
    tx: &mut Tx<'_>,
    invitation: &PeerInvitation,
) -> Result<Result<(), Infallible>> {
    let args = args![
        &invitation.secret_digest,
        invitation.name.as_ref(),
        json(&TermsDocument::from(&invitation.terms))?,
        invitation.created_at,
        invitation.expires_at,
        invitation.used_by.as_ref().map(PeerId::as_str)
    ];
    tx.run(INVITE, args).await?;
    Ok(Ok(()))
}

pub(super) async fn accept(
    tx: &mut Tx<'_>,
    used: &PeerInvitationUse,
) -> Result<Result<Peer, Refusal>> {
    // Whoever guesses secrets does not hold up those who change the pool.
    if get(tx, &used.secret_digest).await?.is_none() {
        return Ok(Err(Refusal::Unknown));
    }
    // From here on, no other transaction uses the invitation or changes the peer.
    pool_changed(tx).await?;
    let Some(invitation) = get(tx, &used.secret_digest).await? else {
        return Ok(Err(Refusal::Unknown));
    };
    let known = super::get(tx, &used.peer).await?;
    if known.as_ref().is_some_and(|peer| peer.standing == PeerStanding::Blocked) {
        return Ok(Err(Refusal::Blocked));
    }
    match (&invitation.used_by, known) {
        (Some(by), Some(known)) if *by == used.peer => Ok(Ok(known)),
        (Some(_), _) => Ok(Err(Refusal::Used)),
        (None, _) if invitation.is_expired(used.now) => Ok(Err(Refusal::Expired)),
        (None, known) => admit(tx, used, invitation, known).await,
    }
}

/// Marks the invitation, and stores the peer with its terms.
async fn admit(
    tx: &mut Tx<'_>,
    used: &PeerInvitationUse,
    invitation: PeerInvitation,
    known: Option<Peer>,
) -> Result<Result<Peer, Refusal>> {
    if tx.run(USE, args![used.peer.as_str(), &used.secret_digest]).await? == 0 {
        // It was pruned in the meantime.
        return Ok(Err(Refusal::Unknown));
    }
    let (name, added_at) = known.map_or((None, used.now), |peer| (peer.name, peer.added_at));
    let peer = Peer {
        id: used.peer.clone(),
        name: invitation.name.or(name),
        standing: PeerStanding::Trusted,
        direct: used.direct.clone(),
        relays: used.relays.clone(),
        network: used.network.clone(),
        terms: invitation.terms,
        added_at,
        changed_at: used.now,
    };
    super::store(tx, &peer).await?;
    Ok(Ok(peer))
}

pub(super) async fn prune(tx: &mut Tx<'_>, before: &Timestamp, limit: &u32) -> Result<u64> {
    tx.run(tx.own(PRUNE), args![*before, *limit]).await
}
