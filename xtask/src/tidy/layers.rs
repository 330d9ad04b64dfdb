//! Checks the layers: which of our crates may depend on which, and who may use which library.

use std::path::Path;

use anyhow::Result;

use super::{
    Violation,
    metadata::{Dependency, Metadata, Package},
};
use crate::tree;

/// The crates of ours that each crate may use. Dependencies of tests are free.
const LAYERS: &[(&str, &[&str])] = &[
    ("jurat-limits", &[]),
    ("jurat-core", &["jurat-limits"]),
    ("jurat-wire", &["jurat-core"]),
    ("jurat-client", &["jurat-core", "jurat-wire"]),
    ("jurat-store", &["jurat-core"]),
    ("jurat-guard", &["jurat-core"]),
    ("jurat-mesh", &[]),
    ("jurat-engine", &["jurat-core", "jurat-wire", "jurat-store", "jurat-guard", "jurat-mesh"]),
    ("jurat-server", &["jurat-core", "jurat-wire", "jurat-engine"]),
    ("jurat-runtime", &["jurat-core", "jurat-wire", "jurat-guard"]),
    (
        "jurat",
        &[
            "jurat-client",
            "jurat-core",
            "jurat-wire",
            "jurat-store",
            "jurat-guard",
            "jurat-mesh",
            "jurat-engine",
            "jurat-server",
            "jurat-runtime",
        ],
    ),
    (
        TESTKIT,
        &[
            "jurat-client",
            "jurat-core",
            "jurat-wire",
            "jurat-store",
            "jurat-guard",
            "jurat-mesh",
            "jurat-engine",
            "jurat-server",
            "jurat-runtime",
        ],
    ),
    ("xtask", &["jurat-core"]),
];

const TESTKIT: &str = "jurat-testkit";

/// Measurements may use anything.
const BENCH_PREFIX: &str = "jurat-bench-";

/// All libraries that the core may use.
const CORE_ALLOWED: &[&str] = &[
    "crc32fast",
    "hex",
    "jsonpath-rust",
    "regex",
    "ryu-js",
    "serde",
    "serde-saphyr",
    "serde_json",
    "serde_json_canonicalizer",
    "sha2",
    "thiserror",
    "ulid",
    "unicode-normalization",
];

/// Libraries that are reserved for some crates, with the reason.
const RESERVED: &[(&str, &[&str], &str)] = &[
    ("anyhow", &["jurat", "xtask", TESTKIT], "a library has an error type of its own"),
    ("axum", &["jurat", "jurat-server", "jurat-runtime", TESTKIT], "only a surface listens"),
    ("hyper-rustls", &["jurat-guard"], "only guard builds an HTTP client"),
    ("iroh", &["jurat-mesh"], "only the mesh speaks QUIC"),
    ("lettre", &["jurat-guard"], "only guard sends mail"),
    ("reqwest", &[], "only guard builds an HTTP client, and it uses another"),
    ("rusqlite", &["jurat-store"], "only the store knows its database"),
    ("sqlx", &["jurat-store", "jurat-testkit"], "only the store knows its database"),
];

pub(super) fn check(root: &Path, metadata: &Metadata) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for package in metadata.members().filter(|package| !package.name.starts_with(BENCH_PREFIX)) {
        let path = tree::relative(root, &package.manifest_path);
        let manifest = tree::read(&package.manifest_path)?;
        let Some(allowed) = layer(&package.name) else {
            let text = format!(
                "the crate `{}` is not in the layer table of xtask/src/tidy/layers.rs",
                package.name
            );
            found.push(Violation::new(path, 1, text));
            continue;
        };
        for dependency in &package.dependencies {
            if let Some(text) = objection(package, dependency, allowed, metadata) {
                found.push(Violation::new(
                    path.as_str(),
                    line_of(&manifest, &dependency.name),
                    text,
                ));
            }
        }
    }
    Ok(found)
}

fn layer(name: &str) -> Option<&'static [&'static str]> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, allowed)| *allowed)
}

/// Why this dependency is not allowed, if it is not.
fn objection(
    package: &Package,
    dependency: &Dependency,
    allowed: &[&str],
    metadata: &Metadata,
) -> Option<String> {
    let user = package.name.as_str();
    let used = dependency.name.as_str();
    if used == "jsonschema" && dependency.uses_default_features {
        return Some(
            "`jsonschema` needs `default-features = false`: they fetch what a schema refers to"
                .into(),
        );
    }
    if dependency.is_for_tests() {
        return None;
    }
    if metadata.members().any(|member| member.name == used) {
        let because = if used == TESTKIT { "it is for tests only" } else { "the layers forbid it" };
        return (!allowed.contains(&used))
            .then(|| format!("`{user}` may not use `{used}`: {because}"));
    }
    if user == "jurat-core" && !CORE_ALLOWED.contains(&used) {
        return Some(format!(
            "the core may not use `{used}`: it is not on the core's list of dependencies"
        ));
    }
    let (_, _, reason) =
        RESERVED.iter().find(|(name, users, _)| *name == used && !users.contains(&user))?;
    Some(format!("`{user}` may not use `{used}`: {reason}"))
}

/// The line of the manifest that names the dependency.
fn line_of(manifest: &str, dependency: &str) -> usize {
    let names_it = |line: &str| {
        line.strip_prefix(dependency).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    manifest.lines().position(names_it).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn package(name: &str) -> Package {
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            license: None,
            source: None,
            manifest_path: PathBuf::new(),
            dependencies: Vec::new(),
        }
    }

    fn dependency(name: &str, kind: Option<&str>) -> Dependency {
        Dependency {
            name: name.to_owned(),
            kind: kind.map(str::to_owned),
            req: "^1".to_owned(),
            path: None,
            uses_default_features: false,
        }
    }

    #[track_caller]
    fn check(user: &str, used: &str, kind: Option<&str>, expected: Option<&str>) {
        let packages: Vec<Package> = LAYERS.iter().map(|(name, _)| package(name)).collect();
        let workspace_members = packages.iter().map(|it| it.id.clone()).collect();
        let metadata = Metadata { packages, workspace_members };
        let allowed = layer(user).unwrap();
        let found = objection(&package(user), &dependency(used, kind), allowed, &metadata);
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn an_edge_outside_the_table_is_named() {
        check("jurat-engine", "jurat-store", None, None);
        check(
            "jurat-server",
            "jurat-store",
            None,
            Some("`jurat-server` may not use `jurat-store`: the layers forbid it"),
        );
        check("jurat-server", "jurat-store", Some("dev"), None);
    }

    #[test]
    fn the_testkit_is_only_for_tests() {
        check(
            "jurat",
            "jurat-testkit",
            None,
            Some("`jurat` may not use `jurat-testkit`: it is for tests only"),
        );
        check("jurat", "jurat-testkit", Some("dev"), None);
    }

    #[test]
    fn the_core_has_a_list_and_others_have_reserved_crates() {
        check("jurat-core", "sha2", None, None);
        check(
            "jurat-core",
            "tokio",
            None,
            Some("the core may not use `tokio`: it is not on the core's list of dependencies"),
        );
        check(
            "jurat-engine",
            "anyhow",
            None,
            Some("`jurat-engine` may not use `anyhow`: a library has an error type of its own"),
        );
    }

    #[test]
    fn the_line_of_a_dependency_is_found_by_its_whole_name() {
        let manifest = "[dependencies]\nserde_json.workspace = true\nserde = \"1\"\n";
        assert_eq!(line_of(manifest, "serde"), 3);
        assert_eq!(line_of(manifest, "serde_json"), 2);
        assert_eq!(line_of(manifest, "absent"), 1);
    }
}
