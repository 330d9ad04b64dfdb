//! What the flags and the environment say. Nothing else reads the environment.

use std::{
    io::{IsTerminal as _, stdout},
    path::{Path, PathBuf},
};

use jurat_store::Location;

use crate::{args::Global, failure::Failure};

/// The store when neither a flag nor a server names another.
const STORE: &str = "jurat.db";

#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) state_dir: PathBuf,
    pub(crate) store: Location,
    pub(crate) store_chosen: StoreChosen,
    pub(crate) server: Option<String>,
    /// The key of `JURAT_KEY`.
    pub(crate) key: Option<String>,
    /// The filter of `JURAT_LOG`.
    pub(crate) log: Option<String>,
}

/// Who chose the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreChosen {
    /// `--store` or `JURAT_STORE`.
    ByUser,
    /// Nobody; a server that runs knows better.
    ByDefault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    On,
    Off,
}

impl Config {
    pub(crate) fn new(global: &Global) -> anyhow::Result<Self> {
        Ok(Self {
            state_dir: global.state_dir.clone(),
            store: location(global.store.as_deref().unwrap_or(STORE), &global.state_dir)?,
            store_chosen: match global.store {
                Some(_) => StoreChosen::ByUser,
                None => StoreChosen::ByDefault,
            },
            server: global.server.as_deref().map(|url| url.trim_end_matches('/').to_owned()),
            key: variable("JURAT_KEY").map(|key| key.trim().to_owned()),
            log: variable("JURAT_LOG"),
        })
    }
}

/// Colours are for people, unless they want none.
pub(crate) fn colours() -> Colours {
    let is_plain = variable("NO_COLOR").is_some() || !stdout().is_terminal();
    if is_plain { Colours::Off } else { Colours::On }
}

/// The program as its user started it, to be typed again in a shell.
pub(crate) fn program() -> String {
    let name = std::env::args_os().next();
    let name = name.map(|name| name.to_string_lossy().into_owned());
    quoted(&name.filter(|name| !name.is_empty()).unwrap_or_else(|| "jurat".to_owned()))
}

fn quoted(word: &str) -> String {
    let is_plain = |symbol: char| symbol.is_alphanumeric() || "/._-+@%,:=".contains(symbol);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The value of an environment variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads the environment")]
    let value = std::env::var(name);
    value.ok().filter(|value| !value.is_empty())
}

/// A bare name is a file in the state folder.
fn location(store: &str, state_dir: &Path) -> anyhow::Result<Location> {
    if store.trim().is_empty() {
        return Err(Failure::usage(
            "`--store` is empty; name a file or a postgres:// address, or leave it out",
        ));
    }
    if store.starts_with("postgres://") || store.starts_with("postgresql://") {
        return Ok(Location::Postgres { url: store.to_owned(), migrate_url: None });
    }
    // The rest of an address may hold a password.
    if let Some((scheme, _)) = store.split_once(':').filter(|(scheme, _)| !scheme.contains('/')) {
        return Err(Failure::usage(format!(
            "`--store` cannot begin with `{scheme}:`; name a postgres:// address or a file, and write `./` before a file with a colon in its name"
        )));
    }
    let path = Path::new(store);
    let is_bare = path.components().count() == 1 && !store.contains('/');
    Ok(Location::File(if is_bare { state_dir.join(path) } else { path.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_a_folder_with_a_space_can_be_typed_again() {
        assert_eq!(quoted("target/release/jurat"), "target/release/jurat");
        assert_eq!(quoted("/my tools/jurat"), "'/my tools/jurat'");
        assert_eq!(quoted("it's/jurat"), r"'it'\''s/jurat'");
    }

    #[test]
    fn a_bare_name_is_in_the_state_folder() {
        let state = Path::new("/s");
        let file = |path: &str| Location::File(PathBuf::from(path));
        let location = |store| location(store, state).unwrap();
        assert_eq!(location("jurat.db"), file("/s/jurat.db"));
        assert_eq!(location("./jurat.db"), file("./jurat.db"));
        assert_eq!(location("./a:b.db"), file("./a:b.db"));
        assert_eq!(location("/data/j.db"), file("/data/j.db"));
        let postgres = Location::Postgres { url: "postgres://h/d".to_owned(), migrate_url: None };
        assert_eq!(location("postgres://h/d"), postgres);
    }
}
