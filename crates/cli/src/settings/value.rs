//! Reads the text of a value, or reports its fault.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
};

use ipnet::IpNet;
use jurat_core::{
    account::ledger, id::AccountId, payment::EvmAddress, peer::scope::NodeScope, verifier::ModelRef,
};
use jurat_wire::api::agent_registration::AgentRegistration;
use tracing_subscriber::EnvFilter;
use url::Url;

use super::SettingKind;

/// Maximum number of judges in a panel: more than any run asks.
const MOST_JUDGES: usize = 15;
/// The most addresses and relays of a node, all of which an invitation names.
const MOST_SOCKETS: usize = 8;
/// The longest name of a node or a network.
const LONGEST_NAME: usize = 100;
/// Shown instead of a URL that cannot be parsed and may hold a password.
const UNREADABLE: &str = "(hidden, because it is not a valid URL)";

/// The requirement on a value, worded to follow `must be`.
pub(super) fn expected(kind: SettingKind) -> String {
    match kind {
        SettingKind::Text => "text".to_owned(),
        SettingKind::Folder => "the path of a folder".to_owned(),
        SettingKind::Listen => {
            "an address and a port, like 127.0.0.1:5872 or [::1]:5872".to_owned()
        }
        SettingKind::Sockets => {
            "addresses and ports like 127.0.0.1:5873 or [::1]:5873, at most 8, separated by commas"
                .to_owned()
        }
        SettingKind::Name => "one line of at most 100 characters".to_owned(),
        SettingKind::NodeScopes => {
            "scopes like global, region:eu or group:lab, separated by commas".to_owned()
        }
        SettingKind::Url => "a URL like http://127.0.0.1:5872".to_owned(),
        SettingKind::Urls => {
            "URLs like https://relay.example.com, at most 8, separated by commas".to_owned()
        }
        SettingKind::EvmAddress => "`0x` and 40 hexadecimal digits".to_owned(),
        SettingKind::Hosts => {
            "host names like jurat.example.com, separated by commas, without http:// and ports"
                .to_owned()
        }
        SettingKind::Store => "a file or a postgres:// URL".to_owned(),
        SettingKind::Postgres => "a URL that starts with postgres://".to_owned(),
        SettingKind::Filter => "a filter like `debug` or `warn,jurat=info`".to_owned(),
        SettingKind::Variable => "the name of an environment variable".to_owned(),
        SettingKind::Model => "a provider and a model, like `openai/gpt-5.4-mini`".to_owned(),
        SettingKind::Models => {
            "judges like `openai/gpt-5.4-mini`, at most 15, separated by commas".to_owned()
        }
        SettingKind::Ranges => "address ranges like 10.0.0.0/8, separated by commas".to_owned(),
        SettingKind::Account => "the id of an account, like acct_admin".to_owned(),
        SettingKind::AgentRegistrations => {
            "registrations like 22@eip155:1:0x8004, separated by commas".to_owned()
        }
        SettingKind::Word(words) => one_of(words),
        SettingKind::Words(words) => format!("some of {}, separated by commas", one_of(words)),
        SettingKind::Amount => "an amount like 0.10, with up to six decimal places".to_owned(),
        SettingKind::Share => "a number from 0 to 1".to_owned(),
        SettingKind::Count { least, most } => format!("a whole number from {least} to {most}"),
    }
}

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(" or ")
}

/// The value in its normal form, or its fault, worded to follow the name of the setting.
pub(super) fn parse(kind: SettingKind, text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(format!("is empty; it must be {}, or be left out", expected(kind)));
    }
    match kind {
        _ if is_list(kind, text) => Ok(joined(text)),
        SettingKind::Text | SettingKind::Folder => Ok(text.to_owned()),
        SettingKind::Listen if is_listen(text) => Ok(text.to_owned()),
        SettingKind::Name if is_name(text) => Ok(text.to_owned()),
        SettingKind::Url => url(text).map(|()| text.trim_end_matches('/').to_owned()),
        SettingKind::EvmAddress if text.parse::<EvmAddress>().is_ok() => Ok(text.to_owned()),
        SettingKind::Store => store(text).map(|()| text.to_owned()),
        SettingKind::Postgres if is_postgres(text) => Ok(text.to_owned()),
        // Does not repeat the given text, which may be a misplaced password.
        SettingKind::Postgres => Err(format!("must be {}", expected(kind))),
        SettingKind::Filter => match EnvFilter::try_new(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => Err(format!("must be {}: {error}", expected(kind))),
        },
        SettingKind::Variable if is_variable(text) => Ok(text.to_owned()),
        // Does not repeat the given text, which may be the key itself.
        SettingKind::Variable => {
            Err("must be the name of an environment variable, like OPENAI_API_KEY, and never the key itself"
                .to_owned())
        }
        SettingKind::Model if is_model(text) => Ok(text.to_owned()),
        SettingKind::Account if AccountId::parse(text).is_ok() => Ok(text.to_owned()),
        SettingKind::Word(words) if words.contains(&text) => Ok(text.to_owned()),
        SettingKind::Share if text.parse().is_ok_and(|share: f64| (0.0..=1.0).contains(&share)) => {
            Ok(text.to_owned())
        }
        SettingKind::Amount if ledger::micros(text).is_some_and(|micros| 0 <= micros) => {
            Ok(text.to_owned())
        }
        SettingKind::Count { least, most } => match text.replace('_', "").parse::<u64>() {
            Ok(count) if least <= count && count <= most => Ok(count.to_string()),
            Ok(_) | Err(_) => Err(refused(kind, text)),
        },
        SettingKind::Listen
        | SettingKind::Sockets
        | SettingKind::Name
        | SettingKind::NodeScopes
        | SettingKind::Urls
        | SettingKind::EvmAddress
        | SettingKind::Hosts
        | SettingKind::Model
        | SettingKind::Models
        | SettingKind::Ranges
        | SettingKind::Account
        | SettingKind::AgentRegistrations
        | SettingKind::Word(_)
        | SettingKind::Words(_)
        | SettingKind::Amount
        | SettingKind::Share => Err(refused(kind, text)),
    }
}

/// Whether a text is a list of this kind.
fn is_list(kind: SettingKind, text: &str) -> bool {
    match kind {
        SettingKind::Sockets => are_sockets(text),
        SettingKind::NodeScopes => listed(text).all(|it| node_scope(it).is_some()),
        SettingKind::Urls => are_urls(text),
        SettingKind::Hosts => listed(text).all(is_host),
        SettingKind::Models => is_panel(text),
        SettingKind::Ranges => listed(text).all(|it| range(it).is_some()),
        SettingKind::AgentRegistrations => {
            listed(text).all(|it| AgentRegistration::parse(it).is_some())
        }
        SettingKind::Words(words) => listed(text).all(|word| words.contains(&word)),
        SettingKind::Text
        | SettingKind::Folder
        | SettingKind::Listen
        | SettingKind::Name
        | SettingKind::Url
        | SettingKind::EvmAddress
        | SettingKind::Store
        | SettingKind::Postgres
        | SettingKind::Filter
        | SettingKind::Variable
        | SettingKind::Model
        | SettingKind::Account
        | SettingKind::Word(_)
        | SettingKind::Amount
        | SettingKind::Share
        | SettingKind::Count { .. } => false,
    }
}

fn refused(kind: SettingKind, text: &str) -> String {
    format!("must be {}, and is `{}`", expected(kind), crate::output::shortened(text, 60))
}

fn is_variable(text: &str) -> bool {
    let is_symbol = |symbol: char| symbol.is_ascii_alphanumeric() || symbol == '_';
    // Most keys are longer or have hyphens, so they do not pass for a name.
    text.len() <= 64
        && text.chars().all(is_symbol)
        && !text.starts_with(|it: char| it.is_ascii_digit())
}

fn is_model(text: &str) -> bool {
    text.parse::<ModelRef>().is_ok()
}

/// Whether every judge of a panel is a model, and none is listed twice.
fn is_panel(text: &str) -> bool {
    let judges: BTreeSet<&str> = listed(text).collect();
    let count = listed(text).count();
    judges.len() == count && count <= MOST_JUDGES && listed(text).all(is_model)
}

/// The items of a list that is separated by commas.
pub(crate) fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

fn joined(text: &str) -> String {
    listed(text).collect::<Vec<_>>().join(",")
}

/// A range of addresses, or one address.
pub(crate) fn range(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse().ok().map(|address: IpAddr| address.into()))
}

/// Addresses, each once. Port 0 takes a free one.
fn are_sockets(text: &str) -> bool {
    let sockets: Option<BTreeSet<SocketAddr>> = listed(text).map(|it| it.parse().ok()).collect();
    let count = listed(text).count();
    sockets.is_some_and(|it| it.len() == count) && count <= MOST_SOCKETS
}

fn is_name(text: &str) -> bool {
    text.chars().count() <= LONGEST_NAME && !text.chars().any(char::is_control)
}

/// A scope that a node may serve: itself needs no name.
pub(crate) fn node_scope(text: &str) -> Option<NodeScope> {
    text.parse().ok().filter(|scope| !matches!(scope, NodeScope::Node(_)))
}

fn are_urls(text: &str) -> bool {
    listed(text).count() <= MOST_SOCKETS && listed(text).all(|it| url(it).is_ok())
}

/// Checks only the form; host names are looked up later.
fn is_listen(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let is_host = !host.is_empty() && (!host.contains(':') || host.starts_with('['));
        is_host && port.parse::<u16>().is_ok()
    })
}

fn is_host(name: &str) -> bool {
    let is_symbol = |symbol: char| symbol.is_ascii_alphanumeric() || "-._:".contains(symbol);
    // Only an IPv6 address may have colons: a name with a port would never match.
    let is_address = name.parse::<std::net::Ipv6Addr>().is_ok();
    !name.is_empty() && name.chars().all(is_symbol) && (is_address || !name.contains(':'))
}

fn url(text: &str) -> Result<(), String> {
    let is_web = Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
    if is_web { Ok(()) } else { Err(format!("must be {}", expected(SettingKind::Url))) }
}

pub(super) fn is_postgres(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

fn store(text: &str) -> Result<(), String> {
    if is_postgres(text) {
        return Ok(());
    }
    // Repeats only the scheme, because the rest of a URL may hold a password.
    match text.split_once(':').filter(|(scheme, _)| !scheme.contains('/')) {
        None => Ok(()),
        Some((scheme, _)) => Err(format!(
            "cannot start with `{scheme}:`; name a postgres:// URL or a file, and write `./` before a file name with a colon"
        )),
    }
}

/// A URL without its password; other text unchanged.
pub(super) fn without_password(text: &str) -> String {
    if !text.contains("://") {
        return text.to_owned();
    }
    let Ok(mut url) = Url::parse(text) else { return UNREADABLE.to_owned() };
    let had_password = url.password().is_some();
    if had_password && url.set_password(None).is_err() {
        return UNREADABLE.to_owned();
    }
    // PostgreSQL accepts a password in the query too, and services accept keys there.
    let is_secret =
        |name: &str| ["password", "key", "token", "secret"].iter().any(|it| name.contains(it));
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    if pairs.iter().any(|(name, _)| is_secret(name)) {
        let kept = pairs.iter().filter(|(name, _)| !is_secret(name));
        url.query_pairs_mut().clear().extend_pairs(kept);
        return url.to_string();
    }
    if had_password { url.to_string() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_reported_with_the_valid_form() {
        let count = SettingKind::Count { least: 1, most: 10 };
        for (kind, text, expected) in [
            (count, "many", "must be a whole number from 1 to 10, and is `many`"),
            (count, "0", "must be a whole number from 1 to 10, and is `0`"),
            (count, "-1", "must be a whole number from 1 to 10, and is `-1`"),
            (SettingKind::Word(&["text", "json"]), "xml", "must be `text` or `json`, and is `xml`"),
            (SettingKind::Share, "1.5", "must be a number from 0 to 1, and is `1.5`"),
            (SettingKind::Url, "ftp://h", "must be a URL like http://127.0.0.1:5872"),
            (
                SettingKind::Hosts,
                "a.example,http://b",
                "must be host names like jurat.example.com, separated by commas, without http:// and ports, and is `a.example,http://b`",
            ),
            (SettingKind::Postgres, "s3cret", "must be a URL that starts with postgres://"),
            (
                SettingKind::Model,
                "gpt",
                "must be a provider and a model, like `openai/gpt-5.4-mini`, and is `gpt`",
            ),
            (SettingKind::Text, " ", "is empty; it must be text, or be left out"),
            (
                SettingKind::Sockets,
                "5873",
                "must be addresses and ports like 127.0.0.1:5873 or [::1]:5873, at most 8, separated by commas, and is `5873`",
            ),
            (SettingKind::Name, "a\nb", "must be one line of at most 100 characters, and is `a b`"),
        ] {
            assert_eq!(parse(kind, text).unwrap_err(), expected);
        }
        assert_eq!(parse(count, "1_0").unwrap(), "10");
        assert_eq!(parse(SettingKind::Hosts, "a.example, ::1").unwrap(), "a.example,::1");
        assert!(parse(SettingKind::Hosts, "a.example:80").is_err());
        assert_eq!(parse(SettingKind::Models, "a/b, c/d").unwrap(), "a/b,c/d");
        assert_eq!(parse(SettingKind::Ranges, "10.0.0.0/8, ::1").unwrap(), "10.0.0.0/8,::1");
        assert_eq!(parse(SettingKind::Words(&["a", "b"]), "b, a").unwrap(), "b,a");
        assert_eq!(parse(SettingKind::Sockets, "0.0.0.0:0, [::1]:1").unwrap(), "0.0.0.0:0,[::1]:1");
        let scopes = "global, region:eu, group:lab";
        assert_eq!(parse(SettingKind::NodeScopes, scopes).unwrap(), "global,region:eu,group:lab");
        for (kind, text) in [
            (SettingKind::Words(&["a", "b"]), "a,c"),
            (SettingKind::Models, "a/b,,c/d"),
            (SettingKind::Models, "a/b,a/b"),
            (SettingKind::Ranges, "10.0.0.0/33"),
            (SettingKind::Ranges, "example.com"),
            (SettingKind::Variable, "sk-live-abc"),
            (SettingKind::Sockets, "127.0.0.1:1,127.0.0.1:1"),
            (SettingKind::Sockets, "localhost:5873"),
            (SettingKind::NodeScopes, "zone:eu"),
            (SettingKind::NodeScopes, &format!("global,node:{}", "ab".repeat(32))),
            (SettingKind::Urls, "https://a.example,b.example"),
        ] {
            let fault = parse(kind, text).unwrap_err();
            assert!(fault.starts_with("must be "), "{text}: {fault}");
            assert!(kind != SettingKind::Variable || !fault.contains(text), "{fault}");
        }
        assert!(
            parse(SettingKind::Filter, "jurat=loud").unwrap_err().starts_with("must be a filter")
        );
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (text, expected) in [
            ("postgres://me:s3cret@h/d", "postgres://me@h/d"),
            ("postgres://me@h/d?password=s3cret&x=1", "postgres://me@h/d?x=1"),
            (
                "postgres://h/d?options[search_path]=jurat",
                "postgres://h/d?options[search_path]=jurat",
            ),
            ("jurat.db", "jurat.db"),
            ("postgres://me:s3cret@:x/d", UNREADABLE),
        ] {
            assert_eq!(without_password(text), expected);
        }
    }
}
