//! Turns the key of a request into a `Caller`. Nothing else creates one.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts},
    middleware::Next,
    response::Response,
};
use ipnet::IpNet;
use jurat_core::{
    account::caller::{Caller, CreditMode},
    code::ProblemCode,
    id::AccountId,
};
use jurat_engine::{Allowance, Engine, EngineError, LimitExceeded};
use jurat_wire::problem::Problem;

use super::{base_url::base, encode};
use crate::{mcp::AllowedHosts, peers::PeerOptions};

/// Where RFC 9728 puts the metadata of a protected resource; the path of the resource follows.
pub(crate) const METADATA: &str = "/.well-known/oauth-protected-resource";
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Marks the reply to a caller whose key is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValidKeyMark;

/// Admits a request only with a valid key within its limits, and passes the caller to the handler.
/// The body is not read before.
pub(crate) async fn require_key(
    State(engine): State<Engine>,
    mut request: Request,
    next: Next,
) -> Response {
    let challenge = challenge(&engine, &request);
    let admitted = match (loopback_account(&request), key(request.headers())) {
        (Some(account), _) => engine.admit_loopback(account).await,
        (None, Some(key)) => engine.key_admit(key).await,
        (None, None) => return unauthorized("the request has no key", challenge),
    };
    match admitted {
        Ok(Some(admitted)) => {
            // Every log line of the request names the key from here on.
            tracing::Span::current().record("jurat.key.id", admitted.key.id.as_str());
            #[expect(clippy::disallowed_methods, reason = "this is where callers are made")]
            let caller = Caller::authenticated(
                admitted.account,
                admitted.scopes,
                admitted.key,
                admitted.credit,
            );
            request.extensions_mut().insert(VisitorCaller::Known(caller.clone()));
            let memory = Arc::new(engine.request_memory(&caller));
            request.extensions_mut().insert(Arc::clone(&memory));
            request.extensions_mut().insert(caller);
            let mut response = next.run(request).await;
            // Counted until there is a reply.
            drop(memory);
            response.extensions_mut().insert(ValidKeyMark);
            if let Some(allowance) = admitted.allowance {
                tell(response.headers_mut(), allowance);
            }
            response
        }
        Ok(None) => unauthorized("the key is not valid", challenge),
        Err(error) => refused(&error),
    }
}

/// The challenge to a client of the Model Context Protocol, which finds out how to ask for access
/// from the metadata of RFC 9728.
fn challenge(engine: &Engine, request: &Request) -> Option<HeaderValue> {
    let path = request.uri().path();
    if path != "/mcp" {
        return None;
    }
    let base = base(engine, request.headers());
    HeaderValue::from_str(&format!("Bearer resource_metadata=\"{base}{METADATA}{path}\"")).ok()
}

fn unauthorized(detail: &str, challenge: Option<HeaderValue>) -> Response {
    let mut response = encode::problem(&Problem::new(ProblemCode::AuthRequired, detail));
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Marks a request that comes from a program on this machine, and from no other through it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoopbackMark;

/// Headers that a proxy adds, or a browser for a web page.
const OF_OTHERS: [&str; 8] = [
    "via",
    "cdn-loop",
    "cf-ray",
    "proxy-connection",
    "x-rewrite-url",
    "origin",
    "sec-fetch-site",
    // A webhook, whose address anybody may choose.
    "webhook-id",
];
/// How the user agent of a server of this kind begins: it sends requests to addresses that its
/// callers choose.
const OWN_AGENT: &[u8] = b"jurat/";
/// The beginnings of the names of headers that a proxy adds.
const OF_PROXIES: [&str; 3] = ["x-original-", "x-envoy-", "x-arr-"];
/// What the names of headers contain in which a proxy names its client, such as `X-Forwarded-Proto`
/// and `CF-Connecting-IP`.
const OF_CLIENTS: [&str; 6] =
    ["forwarded", "real-ip", "client-ip", "clientip", "connecting-ip", "user-ip"];

/// Whether a connection from this machine carries a request of this machine: a proxy passes on
/// requests of others, a browser those of web pages, and a server like this one those of callers.
pub(crate) fn is_from_this_machine(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> bool {
    let peer = peer.to_canonical();
    let is_proxy = trusted.iter().any(|range| range.contains(&peer));
    let mut agents = headers.get_all(header::USER_AGENT).iter();
    let is_jurat = agents.any(|agent| {
        let beginning = agent.as_bytes().get(..OWN_AGENT.len());
        beginning.is_some_and(|it| it.eq_ignore_ascii_case(OWN_AGENT))
    });
    let is_for_others = is_jurat || headers.keys().any(|name| is_of_others(name.as_str()));
    peer.is_loopback() && !is_proxy && !is_for_others
}

fn is_of_others(name: &str) -> bool {
    OF_OTHERS.contains(&name)
        || OF_PROXIES.iter().any(|beginning| name.starts_with(beginning))
        || OF_CLIENTS.iter().any(|part| name.contains(part))
}

/// What programs that were written for the Cortensor router send if they are given no key.
const NO_KEY: &str = "default-dev-token";

/// The headers of keys that a request has.
fn key_headers(headers: &HeaderMap) -> usize {
    headers.get_all(header::AUTHORIZATION).iter().count()
        + headers.get_all("x-api-key").iter().count()
}

/// The account of a request without a key: only from this machine, under a name of this machine, if
/// the operator named an account.
fn loopback_account(request: &Request) -> Option<&AccountId> {
    let extensions = request.extensions();
    let headers = request.headers();
    match key_headers(headers) {
        0 => {}
        1 if key(headers) == Some(NO_KEY) => {}
        _ => return None,
    }
    extensions.get::<LoopbackMark>()?;
    if !AllowedHosts::names_this_machine(request.uri(), headers) {
        return None;
    }
    extensions.get::<Arc<PeerOptions>>()?.loopback_account.as_ref()
}

/// The sender of a request on a route that needs no key: the caller of its key, or its network
/// address.
#[derive(Debug, Clone)]
pub(crate) enum VisitorCaller {
    Known(Caller),
    Anonymous(Caller),
}

impl VisitorCaller {
    /// The caller, if the request has a key.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        match self {
            Self::Known(caller) => Some(caller),
            Self::Anonymous(_) => None,
        }
    }

    /// The account that pays for the request.
    pub(crate) fn payer(&self) -> &Caller {
        match self {
            Self::Known(caller) | Self::Anonymous(caller) => caller,
        }
    }
}

/// The network address of a request.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub IpAddr);

/// Admits a request without a key. A key that is sent must be valid: its sender wants to be known
/// by it.
pub(crate) async fn know_key(
    State(engine): State<Engine>,
    request: Request,
    next: Next,
) -> Response {
    know(engine, request, next, CreditMode::Anonymous).await
}

/// The same for a request that is paid for by itself, which shares capacity with payers and not
/// with visitors.
pub(crate) async fn know_payer(
    State(engine): State<Engine>,
    request: Request,
    next: Next,
) -> Response {
    know(engine, request, next, CreditMode::Prepaid).await
}

async fn know(
    engine: Engine,
    mut request: Request,
    next: Next,
    without_key: CreditMode,
) -> Response {
    // The key of a program on this machine that was given none is none here, too.
    if 0 < key_headers(request.headers()) && loopback_account(&request).is_none() {
        return require_key(State(engine), request, next).await;
    }
    let peer = request.extensions().get::<PeerAddress>();
    let address = peer.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |PeerAddress(address)| *address);
    let admitted = match engine.admit_visitor(address) {
        Ok(admitted) => admitted,
        Err(error) => return refused(&error),
    };
    #[expect(clippy::disallowed_methods, reason = "this is where callers are made")]
    let caller =
        Caller::authenticated(admitted.account, admitted.scopes, admitted.key, without_key);
    let memory = Arc::new(engine.request_memory(&caller));
    request.extensions_mut().insert(Arc::clone(&memory));
    request.extensions_mut().insert(VisitorCaller::Anonymous(caller));
    let response = next.run(request).await;
    // Counted until there is a reply.
    drop(memory);
    response
}

/// Counts the memory of a request on a route that ignores keys.
pub(crate) async fn know_nobody(
    State(engine): State<Engine>,
    mut request: Request,
    next: Next,
) -> Response {
    let memory = Arc::new(engine.visitor_memory());
    request.extensions_mut().insert(Arc::clone(&memory));
    let response = next.run(request).await;
    // Counted until there is a reply.
    drop(memory);
    response
}

/// The network address of a request, if it is known.
#[derive(Debug)]
pub(crate) struct MaybePeerAddress(pub(crate) Option<IpAddr>);

impl<S: Send + Sync> FromRequestParts<S> for MaybePeerAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get::<PeerAddress>().map(|PeerAddress(address)| *address)))
    }
}

fn refused(error: &EngineError) -> Response {
    let mut response = encode::engine_error(error);
    if let EngineError::Limited(
        LimitExceeded::Rate(allowance) | LimitExceeded::AccountRate(allowance),
    ) = error
    {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from(allowance.more_in_s));
        tell(headers, *allowance);
    }
    response
}

/// The limit of the key and what is left of it, as structured fields.
fn tell(headers: &mut HeaderMap, allowance: Allowance) {
    let Allowance { per_minute, remaining, more_in_s } = allowance;
    let policy = format!("\"default\";q={per_minute};w=60");
    let left = format!("\"default\";r={remaining};t={more_in_s}");
    for (name, text) in [(RATE_LIMIT_POLICY, policy), (RATE_LIMIT, left)] {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    }
}

/// The key in `Authorization: Bearer`, or in `X-API-Key`, which some clients send.
pub(crate) fn key(headers: &HeaderMap) -> Option<&str> {
    // With two keys, a proxy may have checked the other one.
    let stands_twice = |name: HeaderName| 1 < headers.get_all(name).iter().count();
    if stands_twice(header::AUTHORIZATION) || stands_twice(HeaderName::from_static("x-api-key")) {
        return None;
    }
    let bearer =
        headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|text| {
            let (scheme, key) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
        });
    bearer.or_else(|| headers.get("x-api-key").and_then(|value| value.to_str().ok()))
}
