//! What the flags and the environment say. Nothing else reads the environment.

use std::{
    io::{IsTerminal as _, stdout},
    path::{Path, PathBuf},
};

use jurat_store::Location;

use crate::args::Global;

#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) state_dir: PathBuf,
    pub(crate) store: Location,
    pub(crate) server: Option<String>,
    /// The key of `JURAT_KEY`.
    pub(crate) key: Option<String>,
    /// The filter of `JURAT_LOG`.
    pub(crate) log: Option<String>,
    pub(crate) colours: Colours,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    On,
    Off,
}

impl Config {
    pub(crate) fn new(global: &Global) -> Self {
        let is_plain = variable("NO_COLOR").is_some() || !stdout().is_terminal();
        Self {
            state_dir: global.state_dir.clone(),
            store: location(&global.store, &global.state_dir),
            server: global.server.as_deref().map(|url| url.trim_end_matches('/').to_owned()),
            key: variable("JURAT_KEY").map(|key| key.trim().to_owned()),
            log: variable("JURAT_LOG"),
            colours: if is_plain { Colours::Off } else { Colours::On },
        }
    }
}

/// The value of an environment variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads the environment")]
    let value = std::env::var(name);
    value.ok().filter(|value| !value.is_empty())
}

/// A bare name is a file in the state folder.
fn location(store: &str, state_dir: &Path) -> Location {
    if store.starts_with("postgres://") || store.starts_with("postgresql://") {
        return Location::Postgres { url: store.to_owned(), migrate_url: None };
    }
    let path = Path::new(store);
    let is_bare = path.components().count() == 1 && !store.contains('/');
    Location::File(if is_bare { state_dir.join(path) } else { path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_in_the_state_folder() {
        let state = Path::new("/s");
        let file = |path: &str| Location::File(PathBuf::from(path));
        assert_eq!(location("jurat.db", state), file("/s/jurat.db"));
        assert_eq!(location("./jurat.db", state), file("./jurat.db"));
        assert_eq!(location("/data/j.db", state), file("/data/j.db"));
        let postgres = Location::Postgres { url: "postgres://h/d".to_owned(), migrate_url: None };
        assert_eq!(location("postgres://h/d", state), postgres);
    }
}
