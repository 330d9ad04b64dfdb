//! The files that lie beside the body of a workflow.

use std::{collections::BTreeSet, str::FromStr};

use sha2::{Digest as _, Sha256};

use crate::round::job::words;

pub const PATH_CHARS: usize = 512;
pub const PURPOSE_CHARS: usize = 256;
/// The most files of one version.
pub const MOST_FILES: usize = 200;
pub const FILE_BYTES: usize = 2 * 1024 * 1024;
/// The most bytes of all files of one version.
pub const ALL_FILES_BYTES: u64 = 5 * 1024 * 1024;

words!(
    /// Whether a file reads as text.
    ContentKind { Text => "text", Binary => "binary" }
);

impl ContentKind {
    pub fn of(content: &[u8]) -> Self {
        let is_text = !content.contains(&0) && std::str::from_utf8(content).is_ok();
        if is_text { Self::Text } else { Self::Binary }
    }
}

/// A file of a version, without what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    pub path: String,
    /// In hex.
    pub sha256: String,
    pub size_bytes: u64,
    pub is_executable: bool,
    pub kind: ContentKind,
    /// What it is for; empty when nobody said.
    pub purpose: String,
}

/// A file to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    pub path: String,
    pub content: FileContent,
    /// As it was, or not, when left out.
    pub is_executable: Option<bool>,
    /// As it was, or none, when left out.
    pub purpose: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    Bytes(Vec<u8>),
    /// What is kept already, by its digest in hex.
    Known(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("must have 1 to {PATH_CHARS} characters")]
    PathLength,
    #[error("must be relative, with `/` between its parts and no `..`, `.` or empty part")]
    PathForm,
    #[error("contains a character that is not allowed in a path")]
    PathCharacter,
    #[error("must be 64 hexadecimal digits")]
    Digest,
    #[error("must have at most {PURPOSE_CHARS} characters and no control characters")]
    Purpose,
    #[error("has more than {FILE_BYTES} bytes")]
    TooLarge,
}

impl NewFile {
    /// Names the field that is wrong, and why.
    pub fn check(&self) -> Result<(), (&'static str, FileError)> {
        check_path(&self.path).map_err(|error| ("path", error))?;
        let purpose = self.purpose.as_deref().unwrap_or_default();
        if purpose.chars().count() > PURPOSE_CHARS || purpose.chars().any(char::is_control) {
            return Err(("purpose", FileError::Purpose));
        }
        match &self.content {
            FileContent::Bytes(bytes) if bytes.len() > FILE_BYTES => {
                Err(("content", FileError::TooLarge))
            }
            FileContent::Known(digest) if !is_digest(digest) => Err(("sha256", FileError::Digest)),
            FileContent::Bytes(_) | FileContent::Known(_) => Ok(()),
        }
    }
}

/// Whether a path leads from the folder of the workflow to a place within it.
pub fn check_path(path: &str) -> Result<(), FileError> {
    if path.is_empty() || path.chars().count() > PATH_CHARS {
        return Err(FileError::PathLength);
    }
    if path.chars().any(|c| c.is_control() || c == '\\') {
        return Err(FileError::PathCharacter);
    }
    let is_drive = path.as_bytes().get(1) == Some(&b':');
    let is_formed = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if is_formed && !is_drive { Ok(()) } else { Err(FileError::PathForm) }
}

/// The first path that is a folder of another one too: no disk holds both.
pub fn also_folder<'a>(paths: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let paths: BTreeSet<&str> = paths.collect();
    let folders = |path: &'a str| path.match_indices('/').map(move |(end, _)| &path[..end]);
    paths.iter().flat_map(|path| folders(path)).find(|folder| paths.contains(folder))
}

pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The SHA-256 of a content, in hex.
pub fn digest(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_its_folder() {
        for path in ["a", "a/b.md", "a b/ü.txt", ".hidden", "a/..b"] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        for path in ["/a", "a/", "a//b", "../a", "a/../b", "./a", "c:/a"] {
            assert_eq!(check_path(path), Err(FileError::PathForm), "{path}");
        }
        for path in ["a\\b", "a\0b", "a\nb"] {
            assert_eq!(check_path(path), Err(FileError::PathCharacter), "{path:?}");
        }
        for path in ["", &"a".repeat(513)] {
            assert_eq!(check_path(path), Err(FileError::PathLength), "{path}");
        }
    }

    #[test]
    fn a_file_is_no_folder() {
        assert_eq!(also_folder(["a", "ab/c", "b/c", "b/d"].into_iter()), None);
        assert_eq!(also_folder(["a/b/c", "x", "a/b"].into_iter()), Some("a/b"));
    }

    #[test]
    fn text_is_what_reads_as_text() {
        assert_eq!(ContentKind::of("grün".as_bytes()), ContentKind::Text);
        assert_eq!(ContentKind::of(b"a\0b"), ContentKind::Binary);
        assert_eq!(ContentKind::of(&[0xff, 0xfe]), ContentKind::Binary);
    }

    #[test]
    fn a_digest_is_small_hex() {
        assert!(is_digest(&digest(b"")));
        assert!(!is_digest(&digest(b"").to_uppercase()));
        assert!(!is_digest("abc"));
    }
}
