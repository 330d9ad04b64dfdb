//! Files of a backup: checksums, copies that are synced before they are named, and paths.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{BackupError, BackupStage, BackupWatcher, FileRecord, Result, tell};

const CHUNK: usize = 1 << 20;

pub(super) fn wrong(path: &Path) -> impl Fn(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Io { path: path.clone(), source }
}

/// The manifest entry of a file.
pub(super) fn record(folder: &Path, name: &str, watch: BackupWatcher<'_>) -> Result<FileRecord> {
    copied(&folder.join(name), name, &mut io::sink(), watch)
}

/// Copies a file, and returns the manifest entry of the copy.
pub(super) fn copied(
    path: &Path,
    name: &str,
    to: &mut dyn Write,
    watch: BackupWatcher<'_>,
) -> Result<FileRecord> {
    let wrong = wrong(path);
    let mut from = File::open(path).map_err(&wrong)?;
    let total = from.metadata().map_err(&wrong)?.len();
    let mut hash = Sha256::new();
    let mut done = 0;
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = from.read(&mut chunk).map_err(&wrong)?;
        let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else { break };
        hash.update(part);
        to.write_all(part).map_err(&wrong)?;
        done += read as u64;
        tell(watch, BackupStage::Checksums, done, total)?;
    }
    Ok(FileRecord { name: name.to_owned(), size_bytes: done, sha256: hex::encode(hash.finalize()) })
}

/// Makes the entries of a folder survive a power failure.
pub(super) fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(wrong(path))
}

/// The folder that contains a path; for a bare name, the current folder.
pub(super) fn parent(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or_else(|| Path::new(".")).to_owned()
}

pub(super) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// A path, encoded for a `file:` URL.
pub(super) fn encoded(path: &Path) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push_str(&hex::encode([byte]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_special_characters_in_a_url() {
        assert_eq!(encoded(Path::new("/a b/é?#%.db")), "/a%20b/%c3%a9%3f%23%25.db");
    }

    #[test]
    fn a_bare_name_is_in_the_current_folder() {
        assert_eq!(parent(Path::new("monday")), Path::new("."));
        assert_eq!(parent(Path::new("/b/monday")), Path::new("/b"));
    }
}
