//! The metrics of this process, as the system reports them. A metric that it does not report is
//! left out.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
};

use jurat_core::{metric, time::Timestamp};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{LabelPairs, register, seconds};

#[derive(Debug, Default)]
pub(super) struct ProcessMetrics {
    /// Families without labels, because empty families are left out.
    memory: Family<LabelPairs<0>, Gauge>,
    fds: Family<LabelPairs<0>, Gauge>,
    cpu: Family<LabelPairs<0>, Counter<f64, AtomicU64>>,
    start: Gauge<f64, AtomicU64>,
}

impl ProcessMetrics {
    pub(super) fn new(registry: &mut Registry, now: Timestamp) -> Self {
        let figures = Self::default();
        register(registry, &metric::PROCESS_MEMORY, figures.memory.clone());
        register(registry, &metric::PROCESS_FDS, figures.fds.clone());
        register(registry, &metric::PROCESS_CPU, figures.cpu.clone());
        register(registry, &metric::PROCESS_START, figures.start.clone());
        figures.start.set(seconds(now.millis().unsigned_abs()));
        figures
    }

    pub(super) fn refresh(&self) {
        if let Some(bytes) = resident_bytes() {
            self.memory.get_or_create(&[]).set(bytes);
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // The listing itself is one of them.
            let count = i64::try_from(open.count()).unwrap_or(i64::MAX) - 1;
            self.fds.get_or_create(&[]).set(count);
        }
        if let Some(seconds) = cpu_seconds() {
            self.cpu.get_or_create(&[]).inner().store(seconds.to_bits(), Ordering::Relaxed);
        }
    }
}

fn resident_bytes() -> Option<i64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: i64 = text.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(i64::try_from(rustix::param::page_size()).ok()?)
}

#[expect(clippy::cast_precision_loss, reason = "ticks of a few centuries fit")]
fn cpu_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program is in parentheses, and may contain spaces.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / rustix::param::clock_ticks_per_second() as f64)
}
