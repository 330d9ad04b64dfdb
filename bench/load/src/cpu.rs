//! The CPU time of a process or of some of its threads, as the kernel counts it.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// A tick of `/proc/<pid>/stat`: the kernel's interface fixes a hundred per second.
const TICK: Duration = Duration::from_millis(10);

/// User and system time of all threads of the process, including ended ones.
pub fn of_process(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse(&stat).with_context(|| format!("cannot understand {path}"))
}

/// User and system time of the living threads whose name has this prefix.
pub fn of_threads(pid: u32, prefix: &str) -> Result<Duration> {
    let folder = format!("/proc/{pid}/task");
    let mut sum = Duration::ZERO;
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))? {
        // The thread ended between the listing and the reading.
        let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else { continue };
        if name(&stat).is_some_and(|name| name.starts_with(prefix)) {
            sum += parse(&stat).with_context(|| format!("cannot understand {folder}"))?;
        }
    }
    Ok(sum)
}

/// The name is in parentheses and may contain some itself, so the last one ends it.
fn name(stat: &str) -> Option<&str> {
    let (start, end) = (stat.find('(')?, stat.rfind(')')?);
    stat.get(start + 1..end)
}

fn parse(stat: &str) -> Option<Duration> {
    let mut after_name = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    // Fields 14 and 15 of the line; the name is the second.
    let user: u32 = after_name.nth(11)?.parse().ok()?;
    let system: u32 = after_name.next()?.parse().ok()?;
    Some(TICK * (user + system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 5 6 7";
        assert_eq!(parse(stat), Some(Duration::from_secs(3)));
        assert_eq!(name(stat), Some("a (b) c"));
        assert_eq!(parse("7 (short) S 1"), None);
    }

    #[test]
    fn work_of_a_thread_is_counted_for_it_and_for_its_process() {
        let pid = std::process::id();
        let worker = std::thread::Builder::new().name("counted".to_owned()).spawn(move || {
            let mut x = 1_u64;
            while of_threads(pid, "counted").unwrap() < Duration::from_millis(50) {
                x = std::hint::black_box(x.rotate_left(7) ^ 0x9e37);
            }
            (of_process(pid).unwrap(), of_threads(pid, "somebody else").unwrap())
        });
        let (process, others) = worker.unwrap().join().unwrap();
        assert!(Duration::from_millis(40) < process, "{process:?}");
        assert_eq!(others, Duration::ZERO);
    }
}
