//! The host names that requests may use. A web page that points its own name here is refused.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, Uri, header, uri::Authority};
use jurat_core::code::ProblemCode;
use jurat_wire::problem::Problem;

/// The port of a URL that names none.
const HTTP_PORT: u16 = 80;

/// The names and addresses that requests may carry in `Host` and `Origin`.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowedHosts {
    /// The address that the server listens on; `None` within one process.
    address: Option<IpAddr>,
    /// Additional names, in lower case.
    names: Vec<String>,
}

impl AllowedHosts {
    pub(crate) fn new(address: IpAddr, names: &[String]) -> Self {
        let names = names.iter().map(|name| plain(name)).collect();
        Self { address: Some(address), names }
    }

    /// The problem with the host or the origin of a request, if there is one.
    pub(crate) fn objection(&self, uri: &Uri, headers: &HeaderMap) -> Option<Problem> {
        // A request without a host is allowed: calls within one process have none, and every
        // browser sends one.
        let named = uri.authority().map(|authority| self.knows(authority.host()));
        let mut hosts = headers.get_all(header::HOST).iter();
        let is_known = |value| authority(value).is_some_and(|it| self.knows(it.host()));
        if named == Some(false) || !hosts.all(is_known) {
            let detail = "the header `Host` names a host that this server does not serve";
            return Some(Problem::new(ProblemCode::HostRefused, detail).at("Host"));
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        if !origins.all(|value| origin(value).is_some_and(|it| self.knows(it.host()))) {
            let detail = "the header `Origin` names a web page that may not call this server";
            return Some(Problem::new(ProblemCode::HostRefused, detail).at("Origin"));
        }
        None
    }

    /// Whether the host of an authority is this server itself: a configured name, the address that
    /// it listens on or at which a request arrived, or this machine.
    pub(crate) fn owns(&self, authority: &str, arrived: Option<SocketAddr>) -> bool {
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        let host = plain(authority.host());
        let own = [self.address, arrived.map(|at| at.ip().to_canonical())];
        let is_own = |asked: IpAddr| asked.is_loopback() || own.contains(&Some(asked));
        self.is_named(&host) || host.parse().is_ok_and(is_own)
    }

    /// Whether a request names this machine as its host, and nothing else.
    pub(crate) fn names_this_machine(uri: &Uri, headers: &HeaderMap) -> bool {
        let of_uri = uri.authority().map(|authority| is_local(authority.host()));
        let hosts = headers.get_all(header::HOST).iter();
        let of_headers = hosts.map(|value| authority(value).is_some_and(|it| is_local(it.host())));
        let named: Vec<bool> = of_uri.into_iter().chain(of_headers).collect();
        !named.is_empty() && named.into_iter().all(|is_local| is_local)
    }

    /// Whether an authority names the port at which a request arrived: at another one of the same
    /// host, another program may listen. A call within this process arrives at no port.
    pub(crate) fn is_port_of(authority: &str, arrived: Option<SocketAddr>) -> bool {
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        let port = authority.port_u16().unwrap_or(HTTP_PORT);
        arrived.is_none_or(|at| at.port() == port)
    }

    fn is_named(&self, host: &str) -> bool {
        host == "localhost" || self.names.iter().any(|name| name == host)
    }

    fn knows(&self, host: &str) -> bool {
        let host = plain(host);
        if self.is_named(&host) {
            return true;
        }
        // An IP address cannot be made to point elsewhere, so a server that listens on all
        // addresses accepts any of them.
        host.parse().is_ok_and(|asked: IpAddr| {
            let listens = |address: IpAddr| address.is_unspecified() || address == asked;
            asked.is_loopback() || self.address.is_some_and(listens)
        })
    }
}

/// Whether a host is this machine under any configuration.
fn is_local(host: &str) -> bool {
    let host = plain(host);
    host == "localhost" || host.parse().is_ok_and(|asked: IpAddr| asked.is_loopback())
}

/// A host in lower case, without the brackets of an address.
fn plain(host: &str) -> String {
    host.trim_matches(['[', ']']).to_ascii_lowercase()
}

fn authority(value: &axum::http::HeaderValue) -> Option<Authority> {
    Authority::try_from(value.as_bytes()).ok()
}

fn origin(value: &axum::http::HeaderValue) -> Option<Authority> {
    let uri = Uri::try_from(value.as_bytes()).ok()?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    uri.into_parts().authority.filter(|_| is_web)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(hosts: &AllowedHosts, name: &'static str, value: &'static str, is_taken: bool) {
        let headers = HeaderMap::from_iter([(
            axum::http::HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )]);
        let objection = hosts.objection(&Uri::from_static("/mcp"), &headers);
        assert_eq!(objection.is_none(), is_taken, "{name}: {value}");
    }

    #[test]
    fn a_server_on_loopback_answers_for_this_machine_only() {
        let hosts = AllowedHosts::new(IpAddr::from([127, 0, 0, 1]), &[]);
        for host in ["localhost", "LocalHost:5872", "127.0.0.1:1", "127.8.8.8", "[::1]:5872"] {
            check(&hosts, "host", host, true);
        }
        for host in ["evil.example", "localhost.evil.example:5872", "192.168.1.5", "10.0.0.1:1", ""]
        {
            check(&hosts, "host", host, false);
        }
        for origin in ["http://localhost", "https://localhost:6274", "http://[::1]:80"] {
            check(&hosts, "origin", origin, true);
        }
        for origin in ["http://evil.example", "null", "", "file://localhost", "localhost"] {
            check(&hosts, "origin", origin, false);
        }
    }

    #[test]
    fn a_server_answers_for_its_address_and_its_configured_names() {
        let names = ["Jurat.Example".to_owned()];
        let hosts = AllowedHosts::new(IpAddr::from([192, 168, 1, 5]), &names);
        check(&hosts, "host", "192.168.1.5:5872", true);
        check(&hosts, "host", "jurat.example", true);
        check(&hosts, "origin", "https://jurat.example", true);
        check(&hosts, "host", "192.168.1.6", false);
        check(&hosts, "host", "other.example", false);
        let all = AllowedHosts::new(IpAddr::from([0, 0, 0, 0]), &names);
        check(&all, "host", "192.168.1.6", true);
        check(&all, "host", "other.example", false);
    }

    #[test]
    fn a_server_on_all_addresses_owns_only_those_that_it_was_called_at() {
        let hosts = AllowedHosts::new(IpAddr::from([0, 0, 0, 0]), &["Jurat.Example".to_owned()]);
        let arrived = Some(SocketAddr::from(([192, 168, 1, 5], 5872)));
        for own in ["jurat.example", "192.168.1.5:5872", "localhost:1", "127.0.0.1", "[::1]:5872"] {
            assert!(hosts.owns(own, arrived), "{own}");
        }
        for foreign in ["evil.example", "192.168.1.6", "192.168.1.5.evil.example", "", "[::2]:80"] {
            assert!(!hosts.owns(foreign, arrived), "{foreign}");
        }
        assert!(!hosts.owns("192.168.1.5", None));
    }

    #[test]
    fn only_loopback_names_are_this_machine() {
        let is_local = |uri: &'static str, hosts: &[&'static str]| {
            let hosts = hosts.iter().map(|it| (header::HOST, HeaderValue::from_static(it)));
            let headers: HeaderMap = hosts.collect();
            AllowedHosts::names_this_machine(&Uri::from_static(uri), &headers)
        };
        for host in ["localhost", "LocalHost:5872", "127.0.0.1:1", "127.8.8.8", "[::1]:5872"] {
            assert!(is_local("/mcp", &[host]), "{host}");
        }
        for host in ["jurat.example", "192.168.1.5", "localhost.evil.example", "a@b", ""] {
            assert!(!is_local("/mcp", &[host]), "{host}");
            assert!(!is_local("http://localhost/mcp", &[host]), "{host}");
        }
        assert!(is_local("http://localhost/mcp", &[]));
        assert!(!is_local("http://jurat.example/mcp", &["localhost"]));
        assert!(!is_local("/mcp", &[]), "a client of HTTP 1.1 names its host");
    }

    #[test]
    fn another_port_of_the_same_host_is_not_that_of_the_request() {
        let arrived = |port| Some(SocketAddr::from(([127, 0, 0, 1], port)));
        for own in ["localhost:5872", "127.0.0.1:5872", "[::1]:5872"] {
            assert!(AllowedHosts::is_port_of(own, arrived(5872)), "{own}");
        }
        for foreign in ["localhost:5873", "localhost", "[::1]", "localhost:99999", ""] {
            assert!(!AllowedHosts::is_port_of(foreign, arrived(5872)), "{foreign}");
        }
        assert!(AllowedHosts::is_port_of("jurat.example", arrived(80)));
        assert!(AllowedHosts::is_port_of("localhost:1", None));
    }

    #[test]
    fn a_foreign_name_in_the_address_is_found_too() {
        let hosts = AllowedHosts::default();
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost"))]);
        let uri = Uri::from_static("http://evil.example/mcp");
        assert!(hosts.objection(&uri, &headers).is_some());
        assert!(hosts.objection(&Uri::from_static("/mcp"), &HeaderMap::new()).is_none());
    }
}
