//! Finds the client's address behind trusted proxies.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, header::FORWARDED};
use ipnet::IpNet;

const X_FORWARDED_FOR: &str = "x-forwarded-for";
/// More hops than any request has.
const MOST_HOPS: usize = 32;

/// The address of the client: that of the connection, or the right-most one that proxies name and
/// that is not a proxy. Only trusted proxies are believed.
pub(crate) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let peer = peer.to_canonical();
    let is_proxy = |address: IpAddr| trusted.iter().any(|range| range.contains(&address));
    if !is_proxy(peer) {
        return peer;
    }
    let walked = |hops: Option<Vec<&str>>| {
        let hops = hops?;
        let mut last = peer;
        for hop in hops.into_iter().rev().take(MOST_HOPS) {
            // Left of an invalid address are only claims of others.
            let Some(address) = address(hop) else { return Some(last) };
            last = address;
            if !is_proxy(address) {
                break;
            }
        }
        Some(last)
    };
    match (walked(forwarded_for(headers)), walked(forwarded(headers))) {
        // A proxy writes one of both, and passes the other on as the client sent it.
        (Some(one), Some(other)) if one != other => peer,
        (one, other) => one.or(other).unwrap_or(peer),
    }
}

/// All values of a header in order, or `None` without it.
fn values<'a>(headers: &'a HeaderMap, name: &str) -> Option<Vec<&'a str>> {
    let mut values = Vec::new();
    for value in headers.get_all(name) {
        // An unreadable value ends the search, like an invalid address.
        values.push(value.to_str().unwrap_or("?"));
    }
    (!values.is_empty()).then_some(values)
}

fn forwarded_for(headers: &HeaderMap) -> Option<Vec<&str>> {
    let values = values(headers, X_FORWARDED_FOR)?;
    Some(values.into_iter().flat_map(|value| value.split(',')).collect())
}

/// The `for` of every element (RFC 7239). An element without it is an unknown hop.
fn forwarded(headers: &HeaderMap) -> Option<Vec<&str>> {
    let values = values(headers, FORWARDED.as_str())?;
    let elements = values.into_iter().flat_map(|value| value.split(','));
    Some(elements.map(of_client).collect())
}

fn of_client(element: &str) -> &str {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let mut nodes = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    nodes.next().map_or("unknown", |(_, node)| node)
}

/// An address as proxies write it: with a port or without, in quotes and brackets or without.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let text = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let parsed = bare.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    parsed.or_else(with_port).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(peer: &str, lines: &[(&'static str, &str)], expect: &str) {
        let trusted: Vec<IpNet> =
            ["10.0.0.0/8", "fd00::/8"].iter().map(|text| text.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        let found = client(peer.parse().unwrap(), &headers, &trusted);
        assert_eq!(found.to_string(), expect, "{lines:?}");
    }

    const XFF: &str = X_FORWARDED_FOR;

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        check("203.0.113.9", &[(XFF, "198.51.100.7")], "203.0.113.9");
        check("203.0.113.9", &[("forwarded", "for=198.51.100.7")], "203.0.113.9");
        check("10.0.0.1", &[], "10.0.0.1");
        check("::ffff:10.0.0.1", &[(XFF, "198.51.100.7")], "198.51.100.7");
    }

    #[test]
    fn the_right_most_address_that_is_not_a_proxy_is_the_client() {
        check("10.0.0.1", &[(XFF, "198.51.100.7")], "198.51.100.7");
        check("10.0.0.1", &[(XFF, "192.0.2.1, 198.51.100.7, 10.0.0.2")], "198.51.100.7");
        check("10.0.0.1", &[(XFF, "192.0.2.1"), (XFF, "198.51.100.7")], "198.51.100.7");
        check("10.0.0.1", &[(XFF, "10.0.0.3, 10.0.0.2")], "10.0.0.3");
        check("fd00::1", &[(XFF, "2001:db8::7")], "2001:db8::7");
        check("10.0.0.1", &[(XFF, "198.51.100.7:4711")], "198.51.100.7");
    }

    #[test]
    fn both_headers_are_read_and_must_agree() {
        let node = "for=192.0.2.1;proto=https, For=\"[2001:db8::7]:4711\";by=10.0.0.1";
        check("10.0.0.1", &[("forwarded", node)], "2001:db8::7");
        check(
            "10.0.0.1",
            &[("forwarded", "for=198.51.100.7"), (XFF, "198.51.100.7")],
            "198.51.100.7",
        );
        check("10.0.0.1", &[("forwarded", "for=192.0.2.1"), (XFF, "198.51.100.7")], "10.0.0.1");
    }

    #[test]
    fn an_invalid_address_ends_the_search() {
        check("10.0.0.1", &[(XFF, "")], "10.0.0.1");
        check("10.0.0.1", &[(XFF, "192.0.2.1, unknown")], "10.0.0.1");
        check("10.0.0.1", &[(XFF, "192.0.2.1, x, 10.0.0.2")], "10.0.0.2");
        check("10.0.0.1", &[("forwarded", "for=192.0.2.1, for=_hidden")], "10.0.0.1");
        check("10.0.0.1", &[("forwarded", "for=192.0.2.1, proto=https")], "10.0.0.1");
        let many = format!("192.0.2.1{}", ", 10.0.0.2".repeat(40));
        check("10.0.0.1", &[(XFF, &many)], "10.0.0.2");
    }
}
