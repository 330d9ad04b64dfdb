//! The manifest of a backup: its contents, and the checksums that prove them unchanged.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::{BackupError, DATABASE, KEYS, Result, files};

/// The version of the manifest and of the folder's layout.
const FORMAT: &str = "jurat.backup.v1";
pub(super) const NAME: &str = "manifest.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    /// The version of the program that wrote the backup.
    pub program_version: String,
    pub schema_version: i64,
    /// The time of the backup, which contains every write that was acknowledged before.
    pub created_at: String,
    pub files: Vec<FileRecord>,
    pub rounds: u64,
    /// The number of rounds in progress; the next start expires them.
    pub open_rounds: u64,
    pub entries: u64,
    pub newest_round_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    pub name: String,
    pub size_bytes: u64,
    /// Lower-case hex.
    pub sha256: String,
}

/// The counts of the database itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) schema_version: i64,
    pub(super) rounds: u64,
    pub(super) open_rounds: u64,
    pub(super) entries: u64,
    pub(super) newest_round_id: Option<String>,
}

/// A later version may have other fields, so the version is read first.
#[derive(Deserialize)]
struct ManifestHead {
    format: String,
}

impl Manifest {
    pub(super) fn new(
        program_version: &str,
        created_at: &str,
        files: Vec<FileRecord>,
        counts: Counts,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            program_version: program_version.to_owned(),
            schema_version: counts.schema_version,
            created_at: created_at.to_owned(),
            files,
            rounds: counts.rounds,
            open_rounds: counts.open_rounds,
            entries: counts.entries,
            newest_round_id: counts.newest_round_id,
        }
    }

    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(BackupError::NoManifest { path });
            }
            Err(source) => return Err(BackupError::Io { path, source }),
        };
        let refused = |why: String| BackupError::Manifest { path: path.clone(), why };
        let head: ManifestHead =
            serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        if head.format != FORMAT {
            let why =
                format!("its format is `{}`, not `{FORMAT}`; use a newer program", head.format);
            return Err(refused(why));
        }
        let manifest: Self =
            serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        manifest.check_files().map_err(refused)?;
        Ok(manifest)
    }

    /// Allows only known files, so that no name leads out of the folder.
    fn check_files(&self) -> Result<(), String> {
        let mut missing: Vec<&str> = [&[DATABASE], &KEYS[..]].concat();
        for file in &self.files {
            let known = missing.iter().position(|name| *name == file.name);
            let known =
                known.ok_or_else(|| format!("it names `{}` or names it twice", file.name))?;
            missing.remove(known);
        }
        match missing.first() {
            Some(name) => Err(format!("it does not name `{name}`")),
            None => Ok(()),
        }
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(NAME);
        let wrong = files::wrong(&path);
        let text = serde_json::to_string_pretty(self).map_err(|error| wrong(error.into()))?;
        let opened = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
        let mut file = opened.map_err(&wrong)?;
        writeln!(file, "{text}").and_then(|()| file.sync_all()).map_err(&wrong)
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            schema_version: self.schema_version,
            rounds: self.rounds,
            open_rounds: self.open_rounds,
            entries: self.entries,
            newest_round_id: self.newest_round_id.clone(),
        }
    }

    /// The size of the whole backup, without the manifest.
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }
}
