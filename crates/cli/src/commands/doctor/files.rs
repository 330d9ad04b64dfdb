//! Checks the owners and permissions of the files in the state folder.

use std::{
    fs::Metadata,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use jurat_core::checkup::CheckupFinding;

/// Permissions that other users must not have on a private file.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

/// How sensitive a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileSensitivity {
    /// A key, which anyone who can read the file can use.
    Secret,
    /// Private data.
    Data,
    /// Data that anyone may read, but only the owner may write.
    Public,
}

/// Problems with the owner or the mode of a file; none if the file does not exist.
pub(super) fn access(
    check: &'static str,
    path: &Path,
    holds: FileSensitivity,
) -> Vec<CheckupFinding> {
    let name = path.display();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            let text = format!("cannot read the permissions of `{name}`: {error}");
            return vec![CheckupFinding::problem(
                check,
                text,
                "Run this command as the server's user.",
            )];
        }
    };
    let mut findings = Vec::new();
    let us = rustix::process::geteuid().as_raw();
    if metadata.uid() != us {
        let owner = metadata.uid();
        let text = format!("`{name}` belongs to user {owner}, but this command runs as user {us}");
        let advice = "Run commands as the server's user, or change the owner with `chown`.";
        findings.push(CheckupFinding::warning(check, text, advice));
    }
    let mode = metadata.permissions().mode() & 0o777;
    let wanted = wanted(&metadata);
    let advice = format!("Run `chmod {wanted:o} '{name}'`.");
    let text = format!("`{name}` has mode {mode:04o}, so other users can access it");
    if mode & OTHERS_WRITE != 0 || holds == FileSensitivity::Secret && mode & OTHERS != 0 {
        let advice = match holds {
            FileSensitivity::Secret => {
                format!("{advice} If other users had access to the machine, rotate the key too.")
            }
            FileSensitivity::Data | FileSensitivity::Public => advice,
        };
        findings.push(CheckupFinding::problem(check, text, advice));
    } else if holds == FileSensitivity::Data && mode & OTHERS != 0 {
        findings.push(CheckupFinding::warning(check, text, advice));
    }
    findings
}

fn wanted(metadata: &Metadata) -> u32 {
    if metadata.is_dir() { 0o700 } else { 0o600 }
}
