//! The part of the network in which an executor of another node is looked for.

use std::{fmt, str::FromStr};

use super::PeerId;

/// The longest name of a region or a group.
const NAME_CHARS: usize = 64;

/// The nodes among which an executor is looked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeScope {
    /// Every node.
    Global,
    /// The nodes of a region.
    Region(String),
    /// The nodes of a group.
    Group(String),
    /// One node.
    Node(PeerId),
}

/// The text is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a scope; write `global`, `region:<name>`, `group:<name>` or `node:<public key>`"
)]
pub struct NodeScopeError {
    /// The beginning of the text.
    text: String,
}

/// Where the calls to an executor of another node go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteTarget {
    /// The node; `None` if any node of the scope may be asked.
    pub node: Option<PeerId>,
    pub scope: Option<NodeScope>,
}

impl NodeScope {
    fn read(text: &str) -> Option<Self> {
        if text == "global" {
            return Some(Self::Global);
        }
        let (kind, name) = text.split_once(':')?;
        match kind {
            "region" => is_name(name).then(|| Self::Region(name.to_owned())),
            "group" => is_name(name).then(|| Self::Group(name.to_owned())),
            "node" => PeerId::parse(name).ok().map(Self::Node),
            _ => None,
        }
    }
}

/// Whether a text may name a region or a group: 1 to 64 letters, digits, dots, underscores and
/// hyphens.
pub fn is_name(text: &str) -> bool {
    (1..=NAME_CHARS).contains(&text.len())
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_' | b'-'))
}

impl FromStr for NodeScope {
    type Err = NodeScopeError;

    fn from_str(text: &str) -> Result<Self, NodeScopeError> {
        let refused = || NodeScopeError { text: text.chars().take(80).collect() };
        Self::read(text).ok_or_else(refused)
    }
}

impl fmt::Display for NodeScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Region(name) => write!(f, "region:{name}"),
            Self::Group(name) => write!(f, "group:{name}"),
            Self::Node(id) => write!(f, "node:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scopes_are_read_strictly() {
        let id = "ab".repeat(32);
        let most = "x".repeat(64);
        for (text, expected) in [
            ("global", NodeScope::Global),
            ("region:eu-west.1", NodeScope::Region("eu-west.1".to_owned())),
            ("group:Lab_A", NodeScope::Group("Lab_A".to_owned())),
            (&format!("group:{most}"), NodeScope::Group(most.clone())),
            (&format!("node:{id}"), NodeScope::Node(PeerId::of_key(&[0xab; 32]))),
            (
                &format!("node:{}", id.to_ascii_uppercase()),
                NodeScope::Node(PeerId::of_key(&[0xab; 32])),
            ),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "Global",
            "global:",
            "global ",
            "region",
            "region:",
            "region:a b",
            "region:a:b",
            "region:é",
            &format!("group:{most}x"),
            "node:",
            "node:ab",
            "zone:eu",
        ] {
            assert!(text.parse::<NodeScope>().is_err(), "{text}");
        }
        assert_eq!(
            "zone:eu".parse::<NodeScope>().unwrap_err().to_string(),
            "`zone:eu` is not a scope; write `global`, `region:<name>`, `group:<name>` or `node:<public key>`"
        );
    }

    fn scopes() -> impl Strategy<Value = NodeScope> {
        let name = "[A-Za-z0-9._-]{1,64}";
        prop_oneof![
            Just(NodeScope::Global),
            name.prop_map(NodeScope::Region),
            name.prop_map(NodeScope::Group),
            any::<[u8; 32]>().prop_map(|key| NodeScope::Node(PeerId::of_key(&key))),
        ]
    }

    proptest! {
        #[test]
        fn every_scope_reads_back(scope in scopes()) {
            prop_assert_eq!(scope.to_string().parse(), Ok(scope));
        }

        #[test]
        fn what_is_read_is_written_the_same(text in "(global|region:|group:|node:)\\PC{0,3}") {
            if let Ok(scope) = text.parse::<NodeScope>() {
                prop_assert_eq!(scope.to_string(), text);
            }
        }
    }
}
