//! The state folder: the keys, the lock, and the address of the running server.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use jurat_core::account::key::ApiKey;
use jurat_engine::{Clock, NodeSigningKey, SystemClock};
use jurat_store::StoreLocation;
use serde::{Deserialize, Serialize};

use crate::output::Output;

pub(crate) const ADMIN_KEY: &str = "admin.key";
pub(crate) const NODE_KEY: &str = "node.key";
/// Advice for a node key that cannot be read.
pub(crate) const NODE_KEY_ADVICE: &str = "restore it from a backup; if you remove it, the node gets a new identity, and executors need its new public key (`jurat node` prints it)";
pub(crate) const LOGIN_KEY: &str = "login.key";
const LOCK: &str = "lock";
const SERVER: &str = "server.json";

#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error(
        "there is no state folder `{}`, so there is neither a server nor a store; change to the folder where `jurat serve` was started, name its state folder with `--state-dir`, name a server with `--server`, or start `jurat serve` here", path.display()
    )]
    NoState { path: PathBuf },
    #[error("cannot use `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "`{}` is in use by another jurat command; wait for it to end, or start `jurat serve` so that commands can share it", path.display()
    )]
    Locked { path: PathBuf },
    #[error(
        "`{}` is in use by the server with pid {pid} at {url}; stop it, or use another `--state-dir`", path.display()
    )]
    Served { path: PathBuf, pid: u32, url: String },
    #[error(
        "the folder `{}` for the store does not exist; create it, or name another `--store`", path.display()
    )]
    NoFolder { path: PathBuf },
    #[error(
        "the store `{}` is in use by another jurat process with a different state folder; stop it, use its `--state-dir`, or choose another `--store`", path.display()
    )]
    StoreLocked { path: PathBuf },
    #[error(
        "the server of this state folder (pid {pid}, {url}) does not answer; wait for it, stop it, or name the store with `--store`"
    )]
    Silent { pid: u32, url: String },
    #[error(
        "`{}` does not contain a key; restore it from a backup, or remove it so that the next start of `jurat serve` writes a new one", path.display()
    )]
    AdminKey { path: PathBuf },
    #[error("`{}` does not contain a key; restore it from a backup, or set JURAT_KEY", path.display())]
    NothingToSend { path: PathBuf },
    #[error("`{}` does not contain a key; {NODE_KEY_ADVICE}", path.display())]
    NodeKey { path: PathBuf },
    #[error(
        "`{}` does not exist; the first start of `jurat serve` writes it, and `--state-dir` names the folder", path.display()
    )]
    NoNodeKey { path: PathBuf },
    #[error(
        "the server of this state folder keeps its data in `{running}`, not in `{wanted}`; leave out `--store`, or use another `--state-dir`"
    )]
    OtherStore { running: String, wanted: String },
}

/// The state folder. Only a command that owns its contents creates it, and says so.
#[derive(Debug, Clone)]
pub(crate) struct StateFolder {
    dir: PathBuf,
}

/// The address and the store of the running server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerFile {
    pub(crate) url: String,
    pub(crate) pid: u32,
    pub(crate) store: String,
}

/// The key that a login stored.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct LoginKey {
    /// The server of the key; empty for the server of this folder.
    pub(crate) server: String,
    pub(crate) key: String,
}

/// No other process uses the store while this lives.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _files: [File; 2],
}

/// Commands can find the server while this lives.
#[derive(Debug)]
pub(crate) struct ServerAnnouncement {
    path: PathBuf,
    /// Its lock ends with the process, so a file without a lock is only a leftover.
    _file: File,
}

impl Drop for ServerAnnouncement {
    fn drop(&mut self) {
        // A leftover file is harmless: without a lock it does not count.
        drop(std::fs::remove_file(&self.path));
    }
}

impl StateFolder {
    /// The folder for a command that owns its contents, created if it does not exist.
    pub(crate) fn open(dir: &Path) -> Result<Self, StateError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|source| StateError::Io { path: dir.to_owned(), source })?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// Like `open`, with a note if the folder is new: a command run elsewhere would not find it.
    pub(crate) fn open_saying(dir: &Path, out: Output) -> Result<Self, StateError> {
        let is_new = !dir.exists();
        let state = Self::open(dir)?;
        if is_new {
            out.note(&format!("created the state folder {}", absolute(dir).display()));
        }
        Ok(state)
    }

    /// The folder that another command created; an error if there is none.
    pub(crate) fn of_another(dir: &Path) -> Result<Self, StateError> {
        if dir.is_dir() {
            return Ok(Self::existing(dir));
        }
        Err(StateError::NoState { path: absolute(dir) })
    }

    /// The folder as it is: neither created nor checked.
    pub(crate) fn existing(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Takes the lock if the store needs one: PostgreSQL serves many processes, a file only one.
    pub(crate) fn lock(&self, store: &StoreLocation) -> Result<Option<StoreLock>, StateError> {
        let StoreLocation::File(file) = store else { return Ok(None) };
        let folder = try_lock(&self.dir.join(LOCK))?.ok_or_else(|| self.locked())?;
        // Another state folder may name the same file, even by another path. Only a file that
        // exists has a canonical path.
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            return Err(StateError::NoFolder { path: parent.to_owned() });
        }
        open_or_make(file)?;
        let path = canonical(file)?;
        let mut beside = path.clone().into_os_string();
        beside.push(".lock");
        let store = try_lock(Path::new(&beside))?.ok_or(StateError::StoreLocked { path })?;
        Ok(Some(StoreLock { _files: [folder, store] }))
    }

    fn locked(&self) -> StateError {
        let path = self.dir.clone();
        match self.server() {
            Some(ServerFile { pid, url, .. }) => StateError::Served { path, pid, url },
            None => StateError::Locked { path },
        }
    }

    /// A new key.
    pub(crate) fn fresh_key() -> ApiKey {
        let clock = SystemClock;
        ApiKey::new(clock.bits(), [clock.bits(), clock.bits()])
    }

    /// The operator's key, generated if there is none.
    pub(crate) fn admin_key(&self) -> Result<ApiKey, StateError> {
        let text = self.read_or_write(ADMIN_KEY, || Self::fresh_key().reveal())?;
        ApiKey::parse(&text).ok_or_else(|| StateError::AdminKey { path: self.dir.join(ADMIN_KEY) })
    }

    /// The operator's key, if its file exists and can be read. A file without a key is an error.
    pub(crate) fn existing_admin_key(&self) -> Result<Option<ApiKey>, StateError> {
        let path = self.dir.join(ADMIN_KEY);
        let Ok(bytes) = std::fs::read(&path) else { return Ok(None) };
        let key = ApiKey::parse(String::from_utf8_lossy(&bytes).trim());
        key.ok_or(StateError::NothingToSend { path }).map(Some)
    }

    /// Replaces the operator's key in its file.
    pub(crate) fn replace_admin_key(&self, text: &str) -> Result<(), StateError> {
        let path = self.dir.join(ADMIN_KEY);
        let wrong = |source: io::Error| StateError::Io { path: path.clone(), source };
        let file = self.written(text).map_err(wrong)?;
        file.persist(&path).map_err(|error| wrong(error.error)).map(drop)
    }

    /// The key that a login stored, if there is one.
    pub(crate) fn login(&self) -> Option<LoginKey> {
        let bytes = std::fs::read(self.dir.join(LOGIN_KEY)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The key that a login stored for a server; an empty name is the server of this folder.
    pub(crate) fn login_for(&self, server: &str) -> Option<String> {
        self.login().filter(|kept| kept.server == server).map(|kept| kept.key)
    }

    pub(crate) fn keep_login(&self, kept: &LoginKey) -> Result<(), StateError> {
        let path = self.dir.join(LOGIN_KEY);
        let wrong = |source: io::Error| StateError::Io { path: path.clone(), source };
        let text = serde_json::to_string(kept).map_err(|error| wrong(error.into()))?;
        let file = self.written(&text).map_err(wrong)?;
        file.persist(&path).map_err(|error| wrong(error.error)).map(drop)
    }

    pub(crate) fn forget_login(&self) -> Result<(), StateError> {
        let path = self.dir.join(LOGIN_KEY);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(StateError::Io { path, source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The key of this node, generated if there is none.
    pub(crate) fn node_key(&self) -> Result<NodeSigningKey, StateError> {
        let key = NodeSigningKey::from_seed(&self.node_seed()?);
        key.ok_or_else(|| StateError::NodeKey { path: self.dir.join(NODE_KEY) })
    }

    /// The seed of the key of this node, generated if there is none.
    pub(crate) fn node_seed(&self) -> Result<[u8; 32], StateError> {
        let clock = SystemClock;
        let fresh = || format!("{:032x}{:032x}", clock.bits(), clock.bits());
        let text = self.read_or_write(NODE_KEY, fresh)?;
        seed(&text).ok_or_else(|| StateError::NodeKey { path: self.dir.join(NODE_KEY) })
    }

    /// The key of this node; an error if there is none.
    pub(crate) fn existing_node_key(&self) -> Result<NodeSigningKey, StateError> {
        let path = self.dir.join(NODE_KEY);
        if path.exists() { self.node_key() } else { Err(StateError::NoNodeKey { path }) }
    }

    /// The running server. A file that a crashed server left behind does not count.
    pub(crate) fn server(&self) -> Option<ServerFile> {
        let mut file = File::open(self.dir.join(SERVER)).ok()?;
        if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return None;
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub(crate) fn announce(&self, server: &ServerFile) -> Result<ServerAnnouncement, StateError> {
        let path = self.dir.join(SERVER);
        let wrong = |source: io::Error| StateError::Io { path: path.clone(), source };
        let text = serde_json::to_string(server).map_err(|error| wrong(error.into()))?;
        let file = self.written(&text).map_err(wrong)?;
        file.as_file().lock().map_err(wrong)?;
        let file = file.persist(&path).map_err(|error| wrong(error.error))?;
        Ok(ServerAnnouncement { path, _file: file })
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

    /// A file that only the owner may read, complete before it gets its final name.
    fn written(&self, text: &str) -> io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
        writeln!(file, "{text}")?;
        file.as_file().sync_all()?;
        Ok(file)
    }
}

/// The locked file; `None` if another process holds the lock.
fn try_lock(path: &Path) -> Result<Option<File>, StateError> {
    let file = open_or_make(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::Error(source)) => Err(StateError::Io { path: path.to_owned(), source }),
        Err(TryLockError::WouldBlock) => Ok(None),
    }
}

fn open_or_make(path: &Path) -> Result<File, StateError> {
    let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
    opened.map_err(|source| StateError::Io { path: path.to_owned(), source })
}

/// The absolute path, for users who are in another folder than they think.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn canonical(path: &Path) -> Result<PathBuf, StateError> {
    path.canonicalize().map_err(|source| StateError::Io { path: path.to_owned(), source })
}

/// The name of a store in `server.json`. It leaves out database URLs, which may hold a password.
pub(crate) fn store_name(store: &StoreLocation) -> String {
    match store {
        StoreLocation::Memory => "memory".to_owned(),
        StoreLocation::File(path) => {
            let known = canonical(path).or_else(|_| std::path::absolute(path));
            known.unwrap_or_else(|_| path.clone()).display().to_string()
        }
        StoreLocation::Postgres { .. } => "postgresql".to_owned(),
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
        let state = StateFolder::open(&dir).unwrap();
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
        let state = StateFolder::open(temp.path()).unwrap();
        std::fs::write(temp.path().join(NODE_KEY), "+".repeat(64)).unwrap();
        let error = state.node_key().unwrap_err().to_string();
        assert!(error.contains("node.key"), "{error}");
    }

    #[test]
    fn only_one_process_holds_the_lock_of_a_file() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateFolder::open(temp.path()).unwrap();
        let inside = StoreLocation::File(temp.path().join("jurat.db"));
        let held = state.lock(&inside).unwrap();
        assert!(held.is_some());
        assert!(matches!(state.lock(&inside), Err(StateError::Locked { .. })));
        let postgres =
            StoreLocation::Postgres { url: "postgres://h/d".to_owned(), migrate_url: None };
        assert!(state.lock(&postgres).unwrap().is_none());
        drop(held);
        assert!(state.lock(&inside).unwrap().is_some());
    }

    #[test]
    fn two_state_folders_do_not_share_a_file() {
        let temp = tempfile::tempdir().unwrap();
        let shared = StoreLocation::File(temp.path().join("shared.db"));
        let left = StateFolder::open(&temp.path().join("a")).unwrap();
        let right = StateFolder::open(&temp.path().join("b")).unwrap();
        let _held = left.lock(&shared).unwrap();
        assert!(matches!(right.lock(&shared), Err(StateError::StoreLocked { .. })));
    }

    #[test]
    fn the_file_of_one_state_folder_is_not_shared_with_another_by_any_path() {
        let temp = tempfile::tempdir().unwrap();
        let left = StateFolder::open(&temp.path().join("a")).unwrap();
        let right = StateFolder::open(&temp.path().join("b")).unwrap();
        let store = temp.path().join("a/jurat.db");
        let link = temp.path().join("link.db");
        std::os::unix::fs::symlink(&store, &link).unwrap();
        let held = left.lock(&StoreLocation::File(store.clone())).unwrap();
        for path in [store, temp.path().join("b/../a/jurat.db"), link.clone()] {
            let refused = right.lock(&StoreLocation::File(path));
            assert!(matches!(refused, Err(StateError::StoreLocked { .. })), "{refused:?}");
        }
        drop(held);
        assert!(right.lock(&StoreLocation::File(link)).unwrap().is_some());
    }

    #[test]
    fn a_server_is_known_only_while_it_lives() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateFolder::open(temp.path()).unwrap();
        let server = ServerFile { url: "http://h".to_owned(), pid: 4711, store: "x".to_owned() };
        let announced = state.announce(&server).unwrap();
        assert_eq!(state.server().unwrap().pid, 4711);
        drop(announced);
        assert!(state.server().is_none());
        // The file as a crash leaves it.
        let text = serde_json::to_string(&server).unwrap();
        std::fs::write(temp.path().join(SERVER), text).unwrap();
        assert!(state.server().is_none());
    }
}
