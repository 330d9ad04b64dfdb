//! The state folder: the keys, the lock, and where the running server is.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use jurat_core::key::ApiKey;
use jurat_engine::{Clock, NodeKey, SystemClock};
use jurat_store::Location;
use serde::{Deserialize, Serialize};

const ADMIN_KEY: &str = "admin.key";
const NODE_KEY: &str = "node.key";
const LOCK: &str = "lock";
const SERVER: &str = "server.json";

#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("cannot use `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` is in use by {holder}; {advice}", path.display())]
    Locked { path: PathBuf, holder: String, advice: &'static str },
    #[error("`{}` does not hold a key; remove it, and the next start writes a new one", path.display())]
    Key { path: PathBuf },
    #[error(
        "the server of this state folder keeps its data in `{running}`, not in `{wanted}`; leave out `--store`, or use another `--state-dir`"
    )]
    OtherStore { running: String, wanted: String },
}

/// The folder, made if it was not there.
#[derive(Debug, Clone)]
pub(crate) struct State {
    dir: PathBuf,
}

/// Where the running server is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerFile {
    pub(crate) url: String,
    pub(crate) pid: u32,
    pub(crate) store: String,
}

/// Nobody else uses the store while this lives.
#[derive(Debug)]
pub(crate) struct Lock {
    _files: Vec<File>,
}

/// The server can be found while this lives.
#[derive(Debug)]
pub(crate) struct Announced {
    path: PathBuf,
}

impl Drop for Announced {
    fn drop(&mut self) {
        // A file that stays is harmless: it is not believed unless someone holds the lock or answers.
        drop(std::fs::remove_file(&self.path));
    }
}

impl State {
    pub(crate) fn open(dir: &Path) -> Result<Self, StateError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|source| StateError::Io { path: dir.to_owned(), source })?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// The folder as it is, for those who only look.
    pub(crate) fn existing(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Takes the lock where the store needs one: PostgreSQL serves many, a file only one.
    pub(crate) fn lock(&self, store: &Location) -> Result<Option<Lock>, StateError> {
        let Location::File(file) = store else { return Ok(None) };
        let mut files = vec![self.lock_file(&self.dir.join(LOCK))?];
        if file.parent() != Some(&self.dir) {
            // Two state folders may name the same file.
            let mut beside = file.clone().into_os_string();
            beside.push(".lock");
            files.push(self.lock_file(Path::new(&beside))?);
        }
        Ok(Some(Lock { _files: files }))
    }

    fn lock_file(&self, path: &Path) -> Result<File, StateError> {
        let wrong = |source| StateError::Io { path: path.to_owned(), source };
        let opened =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
        let file = opened.map_err(wrong)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::Error(source)) => Err(wrong(source)),
            Err(TryLockError::WouldBlock) => Err(self.locked()),
        }
    }

    fn locked(&self) -> StateError {
        let (holder, advice) = match self.server() {
            Some(server) => (
                format!("the server with pid {} at {}", server.pid, server.url),
                "stop it, or use another `--state-dir`",
            ),
            None => (
                "another jurat command".to_owned(),
                "wait until it has ended, or start `jurat serve` and let commands share it",
            ),
        };
        StateError::Locked { path: self.dir.clone(), holder, advice }
    }

    /// The key of the operator, drawn when there is none.
    pub(crate) fn admin_key(&self) -> Result<ApiKey, StateError> {
        let clock = SystemClock;
        let fresh = || ApiKey::new(clock.bits(), [clock.bits(), clock.bits()]).reveal();
        let text = self.read_or_write(ADMIN_KEY, fresh)?;
        ApiKey::parse(&text).ok_or_else(|| StateError::Key { path: self.dir.join(ADMIN_KEY) })
    }

    /// The key of the operator, if it was drawn.
    pub(crate) fn admin_key_text(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.dir.join(ADMIN_KEY)).ok()?;
        Some(text.trim().to_owned())
    }

    pub(crate) fn node_key(&self) -> Result<NodeKey, StateError> {
        let clock = SystemClock;
        let fresh = || format!("{:032x}{:032x}", clock.bits(), clock.bits());
        let text = self.read_or_write(NODE_KEY, fresh)?;
        let key = seed(&text).and_then(|seed| NodeKey::from_seed(&seed));
        key.ok_or_else(|| StateError::Key { path: self.dir.join(NODE_KEY) })
    }

    pub(crate) fn server(&self) -> Option<ServerFile> {
        let text = std::fs::read(self.dir.join(SERVER)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub(crate) fn announce(&self, server: &ServerFile) -> Result<Announced, StateError> {
        let path = self.dir.join(SERVER);
        let wrong = |source: io::Error| StateError::Io { path: path.clone(), source };
        let text = serde_json::to_string(server).map_err(|error| wrong(error.into()))?;
        let file = self.written(&text).map_err(wrong)?;
        file.persist(&path).map_err(|error| wrong(error.error))?;
        Ok(Announced { path })
    }

    fn read_or_write(
        &self,
        name: &str,
        fresh: impl FnOnce() -> String,
    ) -> Result<String, StateError> {
        let path = self.dir.join(name);
        let wrong = |source| StateError::Io { path: path.clone(), source };
        if !path.exists() {
            let file = self.written(&fresh()).map_err(wrong)?;
            match file.persist_noclobber(&path) {
                Ok(_) => {}
                // Another process was quicker; its key is as good.
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(wrong(error.error)),
            }
        }
        Ok(std::fs::read_to_string(&path).map_err(wrong)?.trim().to_owned())
    }

    /// A file that only the owner may read, whole before it has its name.
    fn written(&self, text: &str) -> io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
        writeln!(file, "{text}")?;
        file.as_file().sync_all()?;
        Ok(file)
    }
}

/// How a store is called in `server.json`. An address of a database may hold a password.
pub(crate) fn store_name(store: &Location) -> String {
    match store {
        Location::Memory => "memory".to_owned(),
        Location::File(path) => {
            std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string()
        }
        Location::Postgres { .. } => "postgresql".to_owned(),
    }
}

fn seed(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let (left, right) = text.split_at(32);
    let mut seed = [0; 32];
    seed[..16].copy_from_slice(&u128::from_str_radix(left, 16).ok()?.to_be_bytes());
    seed[16..].copy_from_slice(&u128::from_str_radix(right, 16).ok()?.to_be_bytes());
    Some(seed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn keys_are_drawn_once_and_only_the_owner_may_read_them() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("state");
        let state = State::open(&dir).unwrap();
        let key = state.admin_key().unwrap();
        let node = state.node_key().unwrap();
        assert_eq!(state.admin_key().unwrap(), key);
        assert_eq!(state.node_key().unwrap().id(), node.id());
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(&dir.join(ADMIN_KEY)), 0o600);
        assert_eq!(mode(&dir.join(NODE_KEY)), 0o600);
    }

    #[test]
    fn a_key_file_that_was_damaged_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let state = State::open(temp.path()).unwrap();
        std::fs::write(temp.path().join(NODE_KEY), "+".repeat(64)).unwrap();
        let error = state.node_key().unwrap_err().to_string();
        assert!(error.contains("node.key"), "{error}");
    }

    #[test]
    fn one_at_a_time_takes_the_lock_of_a_file() {
        let temp = tempfile::tempdir().unwrap();
        let state = State::open(temp.path()).unwrap();
        let inside = Location::File(temp.path().join("jurat.db"));
        let held = state.lock(&inside).unwrap();
        assert!(held.is_some());
        assert!(matches!(state.lock(&inside), Err(StateError::Locked { .. })));
        let postgres = Location::Postgres { url: "postgres://h/d".to_owned(), migrate_url: None };
        assert!(state.lock(&postgres).unwrap().is_none());
        drop(held);
        assert!(state.lock(&inside).unwrap().is_some());
    }

    #[test]
    fn two_state_folders_do_not_share_a_file() {
        let temp = tempfile::tempdir().unwrap();
        let shared = Location::File(temp.path().join("shared.db"));
        let left = State::open(&temp.path().join("a")).unwrap();
        let right = State::open(&temp.path().join("b")).unwrap();
        let _held = left.lock(&shared).unwrap();
        assert!(matches!(right.lock(&shared), Err(StateError::Locked { .. })));
    }
}
