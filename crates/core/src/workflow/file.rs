//! The files of a workflow besides its body.

use std::{collections::BTreeSet, str::FromStr};

use sha2::{Digest as _, Sha256};

use crate::round::job::words;

/// The maximum length of a path, in characters.
pub const PATH_CHARS: usize = 512;
/// The maximum length of a purpose, in characters.
pub const PURPOSE_CHARS: usize = 256;
/// The maximum number of files in one version.
pub const MOST_FILES: usize = 200;
/// The maximum size of one file, in bytes.
pub const FILE_BYTES: usize = 2 * 1024 * 1024;
/// The maximum size of all files of one version, in bytes.
pub const ALL_FILES_BYTES: u64 = 5 * 1024 * 1024;

words!(
    /// Whether a file is text.
    ContentKind { Text => "text", Binary => "binary" }
);

impl ContentKind {
    /// Text if the content is UTF-8 without NUL bytes.
    pub fn of(content: &[u8]) -> Self {
        let is_text = !content.contains(&0) && std::str::from_utf8(content).is_ok();
        if is_text { Self::Text } else { Self::Binary }
    }
}

/// A file of a version, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    pub path: String,
    /// In hex.
    pub sha256: String,
    pub size_bytes: u64,
    pub is_executable: bool,
    pub kind: ContentKind,
    /// Its purpose; empty if the author gave none.
    pub purpose: String,
}

/// A file to save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    pub path: String,
    pub content: FileContent,
    /// If absent, as in the previous version, or false for a new file.
    pub is_executable: Option<bool>,
    /// If absent, as in the previous version, or none for a new file.
    pub purpose: Option<String>,
}

/// The content of a file to save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    Bytes(Vec<u8>),
    /// Content that is stored already, by its hex digest.
    Known(String),
}

/// Why a file cannot be saved.
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
    /// Checks the file, and names the faulty field.
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

/// Checks that a path stays inside the folder of the workflow.
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

/// The first path that is also a folder of another path, which no file system allows.
pub fn also_folder<'a>(paths: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let paths: BTreeSet<&str> = paths.collect();
    let folders = |path: &'a str| path.match_indices('/').map(move |(end, _)| &path[..end]);
    paths.iter().flat_map(|path| folders(path)).find(|folder| paths.contains(folder))
}

/// Whether the text is a SHA-256 in lower-case hex.
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
    fn a_file_is_not_a_folder() {
        assert_eq!(also_folder(["a", "ab/c", "b/c", "b/d"].into_iter()), None);
        assert_eq!(also_folder(["a/b/c", "x", "a/b"].into_iter()), Some("a/b"));
    }

    #[test]
    fn utf_8_without_nul_bytes_is_text() {
        assert_eq!(ContentKind::of("grün".as_bytes()), ContentKind::Text);
        assert_eq!(ContentKind::of(b"a\0b"), ContentKind::Binary);
        assert_eq!(ContentKind::of(&[0xff, 0xfe]), ContentKind::Binary);
    }

    #[test]
    fn a_digest_is_lower_case_hex() {
        assert!(is_digest(&digest(b"")));
        assert!(!is_digest(&digest(b"").to_uppercase()));
        assert!(!is_digest("abc"));
    }
}
