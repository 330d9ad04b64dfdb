//! Checks licences, bans and sources of every package in the lock file against `deny.toml`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

use super::{
    Violation,
    metadata::{Metadata, Package},
};

/// The part of `deny.toml` that can be checked without a network.
#[derive(Debug, Deserialize)]
pub(super) struct DenyRules {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

impl DenyRules {
    pub(super) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context("cannot read deny.toml")
    }

    fn allows(&self, license: &str) -> Result<bool, String> {
        // Older packages write `MIT/Apache-2.0`.
        let expression = Expression::parse_mode(license, ParseMode::LAX)
            .map_err(|error| format!("the licence `{license}` cannot be read: {}", error.reason))?;
        Ok(expression
            .evaluate(|requirement| self.licenses.allow.contains(&requirement.to_string())))
    }
}

pub(super) fn check(metadata: &Metadata, rules: &DenyRules, lock: &str) -> Vec<Violation> {
    let bans: BTreeMap<&str, &str> =
        rules.bans.deny.iter().map(|ban| (ban.name.as_str(), ban.reason.as_str())).collect();
    let mut found = Vec::new();
    for package in &metadata.packages {
        let ban = bans.get(package.name.as_str()).map(|reason| format!("it is banned: {reason}"));
        let wild = package.dependencies.iter().filter(|it| it.req == "*" && it.path.is_none());
        let wild = wild.map(|it| format!("it takes any version of `{}`: name one", it.name));
        let is_ours = package.source.is_none();
        let texts = [licence_objection(package, rules), source_objection(package), ban];
        for text in texts.into_iter().flatten().chain(wild.filter(|_| is_ours)) {
            let text = format!("`{} {}`: {text}", package.name, package.version);
            found.push(Violation::new("Cargo.lock", line_of(lock, package), text));
        }
    }
    found
}

/// The line of the lock file that names the package.
fn line_of(lock: &str, package: &Package) -> usize {
    let name = format!("name = \"{}\"", package.name);
    let version = format!("version = \"{}\"", package.version);
    let pairs = lock.lines().zip(lock.lines().skip(1));
    pairs
        .into_iter()
        .position(|(first, second)| first == name && second == version)
        .map_or(1, |index| index + 1)
}

fn licence_objection(package: &Package, rules: &DenyRules) -> Option<String> {
    let Some(license) = package.license.as_deref() else {
        return Some("no licence is declared".to_owned());
    };
    match rules.allows(license) {
        Ok(true) => None,
        Ok(false) => Some(format!("the licence `{license}` is not on the list in deny.toml")),
        Err(text) => Some(text),
    }
}

/// Packages come from this checkout or from the public registry, through any mirror.
fn source_objection(package: &Package) -> Option<String> {
    let source = package.source.as_deref()?;
    let is_known =
        source.starts_with("registry+") && source.ends_with("/rust-lang/crates.io-index");
    (!is_known).then(|| format!("the source `{source}` is not the public registry"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        [bans]
        deny = [{ crate = "openssl", reason = "TLS is rustls" }]
    "#;

    #[track_caller]
    fn check_package(json: &str, expected: &[&str]) {
        let package = serde_json::from_str(json).unwrap();
        let metadata = Metadata { packages: vec![package], workspace_members: Vec::new() };
        let found = check(&metadata, &DenyRules::parse(RULES).unwrap(), "");
        let texts: Vec<&str> = found.iter().map(|violation| violation.text.as_str()).collect();
        assert_eq!(texts, expected);
    }

    fn json(name: &str, license: &str, source: &str) -> String {
        format!(
            r#"{{"id":"x","name":"{name}","version":"1.0.0","license":{license},"source":{source},
                "manifest_path":"Cargo.toml","dependencies":[]}}"#
        )
    }

    #[test]
    fn an_or_needs_one_side_and_an_and_both() {
        check_package(&json("a", r#""GPL-3.0 OR MIT""#, "null"), &[]);
        check_package(&json("a", r#""MIT/Apache-2.0""#, "null"), &[]);
        check_package(&json("a", r#""Apache-2.0 WITH LLVM-exception""#, "null"), &[]);
        check_package(
            &json("a", r#""MIT AND ISC""#, "null"),
            &["`a 1.0.0`: the licence `MIT AND ISC` is not on the list in deny.toml"],
        );
        check_package(&json("a", "null", "null"), &["`a 1.0.0`: no licence is declared"]);
    }

    #[test]
    fn the_reported_line_is_that_of_the_version() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"0.9.0\"\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n";
        let package = serde_json::from_str(&json("a", "null", "null")).unwrap();
        assert_eq!(line_of(lock, &package), 6);
    }

    #[test]
    fn a_ban_and_a_foreign_source_are_named() {
        check_package(
            &json("openssl", r#""MIT""#, r#""git+ssh://elsewhere/openssl""#),
            &[
                "`openssl 1.0.0`: the source `git+ssh://elsewhere/openssl` is not the public registry",
                "`openssl 1.0.0`: it is banned: TLS is rustls",
            ],
        );
    }
}
