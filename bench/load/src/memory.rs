//! The memory of a process, as the kernel counts it.

use std::fs;

use anyhow::{Context as _, Result};

/// The resident memory of a process, in bytes.
pub fn resident(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse(&status).with_context(|| format!("cannot understand {path}"))
}

fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_resident_memory_is_found() {
        assert_eq!(parse("Name:\tx\nVmHWM:\t  9 kB\nVmRSS:\t    12 kB\n"), Some(12 * 1_024));
        assert_eq!(parse("Name:\tx\n"), None);
        assert!(0 < resident(std::process::id()).unwrap());
    }
}
