//! Checks the endpoint for other nodes, and asks every hired peer for what it lends.

use futures::{StreamExt as _, stream};
use jurat_client::{node, peers};
use jurat_core::{checkup::CheckupFinding, peer::PeerStanding};
use jurat_wire::api::nodes::{NodeBody, PeerBody};

use crate::{
    client::{ApiClient, ClientError},
    output::counted,
};

const CHECK: &str = "peers";
/// How many peers are asked, and how many of them at a time.
const MOST_ASKED: u32 = 200;
const AT_ONCE: usize = 8;

/// The findings about a running server. A command without one has no endpoint.
pub(super) async fn check(client: &ApiClient) -> Result<Vec<CheckupFinding>, ClientError> {
    if client.is_in_process() {
        return Ok(Vec::new());
    }
    let node = match client.send(node::show()).await {
        Ok(reply) => reply.value,
        // A server of an earlier version.
        Err(ClientError::Refused(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let known = client.send(peers::list().page(Some(MOST_ASKED), None)).await?.value.items;
    let is_hired =
        |peer: &&PeerBody<'_>| peer.standing.0 == PeerStanding::Trusted && peer.terms.hires;
    let hired: Vec<&PeerBody<'_>> = known.iter().filter(is_hired).collect();
    if !node.enabled {
        return Ok(vec![without_endpoint(hired.len())]);
    }
    let asked = stream::iter(hired).map(|peer| answers(client, peer)).buffered(AT_ONCE);
    let mut findings = vec![listening(&node)];
    findings.extend(asked.collect::<Vec<_>>().await);
    Ok(findings)
}

fn without_endpoint(hired: usize) -> CheckupFinding {
    if hired == 0 {
        return CheckupFinding::ok(CHECK, "there is no endpoint for other nodes");
    }
    let detail = format!(
        "there is no endpoint for other nodes, but {} may be hired",
        counted(hired, "peer")
    );
    let advice = "Set `node.listen` and restart the server, or remove the peers with `jurat node remove ID`.";
    CheckupFinding::warning(CHECK, detail, advice)
}

fn listening(node: &NodeBody<'_>) -> CheckupFinding {
    let NodeBody { addresses, trusted_peers, blocked_peers, .. } = node;
    let detail = format!(
        "other nodes reach this one at {}; trusted peers: {trusted_peers}, blocked: {blocked_peers}",
        addresses.join(", ")
    );
    CheckupFinding::ok(CHECK, detail)
}

async fn answers(client: &ApiClient, peer: &PeerBody<'_>) -> CheckupFinding {
    let name = peer.name.as_deref().unwrap_or(&peer.id);
    match client.send(peers::offers(&peer.id)).await {
        Ok(reply) => {
            let count = counted(reply.value.offers.len(), "session");
            CheckupFinding::ok(CHECK, format!("`{name}` answers and lends {count}"))
        }
        Err(error) => {
            let advice = format!(
                "Check that it runs and trusts this node, and then run `jurat node offers {}`.",
                peer.id
            );
            CheckupFinding::warning(CHECK, format!("`{name}` lends nothing: {error}"), advice)
        }
    }
}
