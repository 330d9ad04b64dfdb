//! Checks the free disk space and the limit on open files.

use std::path::Path;

use jurat_core::checkup::CheckupFinding;
use rustix::process::{Resource, getrlimit};

/// Minimum free space: with less, the disk may fill up within hours.
const LEAST_BYTES: u64 = 1024 * 1024 * 1024;
const LEAST_PERCENT: u64 = 5;
/// Files that a server has open besides the connections of its callers.
const OTHER_FILES: u64 = 256;

/// Checks the free space and the free inodes of the disk that holds the folder.
pub(super) fn space(folder: &Path) -> Vec<CheckupFinding> {
    let name = folder.display();
    let found = match rustix::fs::statvfs(folder) {
        Ok(found) => found,
        Err(error) => {
            let text = format!("cannot read the disk usage of `{name}`: {error}");
            return vec![CheckupFinding::warning("disk", text, "Check it with `df`.")];
        }
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let whole = found.f_blocks.saturating_mul(found.f_frsize);
    let mut findings = Vec::new();
    let text = format!("{} of {} free for `{name}`", size(free), size(whole));
    findings.push(if free < LEAST_BYTES || is_little(free, whole) {
        let advice = "Free some space, or move the state folder; a full disk stops every write.";
        CheckupFinding::warning("disk", text, advice)
    } else {
        CheckupFinding::ok("disk", text)
    });
    // Some file systems do not count inodes.
    if 0 < found.f_files && is_little(found.f_favail, found.f_files) {
        let text = format!("{} of {} inodes free for `{name}`", found.f_favail, found.f_files);
        findings.push(CheckupFinding::warning("disk", text, "Delete unneeded files."));
    }
    findings
}

fn is_little(free: u64, whole: u64) -> bool {
    free < whole / 100 * LEAST_PERCENT
}

fn size(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    if bytes < 10 * 1024 * MIB {
        format!("{} MiB", bytes / MIB)
    } else {
        format!("{} GiB", bytes / 1024 / MIB)
    }
}

/// Checks that the limit on open files allows the maximum number of connections.
pub(super) fn open_files(server: Option<u32>, connections: u64) -> CheckupFinding {
    let of_server =
        server.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/limits")).ok());
    let (whose, limit) = match of_server.as_deref().and_then(soft_limit) {
        Some(limit) => ("the server", limit),
        None => ("this shell", getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)),
    };
    let needed = connections.saturating_add(OTHER_FILES);
    if limit < needed {
        let text =
            format!("{whose} can open {limit} files, but {connections} connections need {needed}");
        let advice = format!(
            "Start the server with `ulimit -n {needed}` or more, or lower `inbound.max_connections`."
        );
        return CheckupFinding::warning("files", text, advice);
    }
    CheckupFinding::ok(
        "files",
        format!("{whose} can open enough files for {connections} connections"),
    )
}

/// The soft limit: the first number in the line for open files.
fn soft_limit(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_limit_of_a_process_is_read() {
        let text = "Limit  Soft Limit  Hard Limit  Units\nMax processes 1 2 processes\nMax open files            1024                 524288               files\n";
        assert_eq!(soft_limit(text), Some(1024));
        assert_eq!(soft_limit("Max open files   unlimited  unlimited  files"), Some(u64::MAX));
        assert_eq!(soft_limit("nothing"), None);
    }

    #[test]
    fn little_space_is_less_than_a_twentieth() {
        assert!(is_little(49_000, 1_000_000) && !is_little(51_000, 1_000_000));
        assert_eq!((size(5 << 20), size(20 << 30)), ("5 MiB".to_owned(), "20 GiB".to_owned()));
    }
}
