//! Measures the capacity, then a part of it, all of it and more, then stalled connections besides a
//! part.

use std::time::Duration;

use anyhow::{Result, ensure};
use jurat_bench_load::{
    LoadPlan, LoadStop, Method, OfferedLoad, OpenLoopOutcome, RequestVariation, RunningRole,
    Target, cpu, load, memory, offer, spawn_on,
};
use jurat_bench_round::{executors, request};

use crate::{OverloadBenchArgs, report};

pub(crate) const SUBJECTS: [&str; 2] = ["plain", "jurat"];
/// The offered load, as a share of the capacity.
pub(crate) const SHARES: [f64; 3] = [0.7, 1.0, 5.0];
const SETTLE: Duration = Duration::from_secs(1);
/// A caller leaves after this time.
const TIMEOUT: Duration = Duration::from_secs(2);

/// One load on one subject.
#[derive(Debug, Clone)]
pub(crate) struct LoadPhase {
    pub(crate) subject: &'static str,
    pub(crate) name: String,
    pub(crate) offered: f64,
    pub(crate) outcome: OpenLoopOutcome,
    /// CPU seconds of the server per second.
    pub(crate) cpu: f64,
    /// Bytes, at the end of the phase.
    pub(crate) resident: u64,
}

/// All measurements of one pass.
#[derive(Debug, Clone)]
pub(crate) struct OverloadResult {
    pub(crate) capacity: f64,
    /// Rounds per CPU second at that rate.
    pub(crate) per_cpu: f64,
    pub(crate) phases: Vec<LoadPhase>,
}

struct OverloadSubject {
    name: &'static str,
    target: Target,
    role: RunningRole,
}

pub(crate) async fn run(arguments: &OverloadBenchArgs) -> Result<()> {
    ensure!(0 < arguments.rounds, "`--rounds` must be at least 1");
    let mut rounds = Vec::new();
    for _ in 0..arguments.rounds {
        rounds.push(measure(arguments).await?);
    }
    report::print(&rounds, arguments.json);
    Ok(())
}

/// Starts new processes for every pass, so that none profits from the previous one.
async fn measure(arguments: &OverloadBenchArgs) -> Result<OverloadResult> {
    let (own, shared) = if arguments.apart { (Some(1), Some(0)) } else { (None, None) };
    let words = ["executors".to_owned(), arguments.replicas.to_string()];
    let executors = spawn_on(shared, &words).await?;
    let urls = executors::urls(&executors);
    let mut subjects = Vec::new();
    for name in SUBJECTS {
        let mut words = vec![name.to_owned()];
        words.extend(urls.clone());
        if arguments.memory {
            words.push("--memory".to_owned());
        }
        let role = spawn_on(own, &words).await?;
        let target = Target {
            address: role.address,
            method: Method::POST,
            path: "/api/v3/validate".to_owned(),
            headers: request::headers(&role.note)?,
            body: request::body(arguments.replicas),
            vary: RequestVariation::Nothing,
            marker: r#""verdict":"VALID""#.to_owned(),
        };
        subjects.push(OverloadSubject { name, target, role });
    }
    let seconds = Duration::from_secs_f64(arguments.seconds);
    // No caller is refused there, so this is the capacity of the handlers.
    let plan = LoadPlan { connections: 32, warm_up: 20, stop: LoadStop::After(seconds) };
    let closed = load::run(&subjects[0].target, &plan, &[subjects[0].role.pid]).await?;
    let capacity = closed.per_second();
    let per_cpu = 1e6 / closed.cpu_us_per_request(0).max(1.0);
    let mut phases = Vec::new();
    for share in SHARES {
        for subject in &subjects {
            phases.push(phase(subject, &format!("{share}×"), capacity * share, arguments).await?);
        }
    }
    for subject in &subjects {
        let address = subject.role.address.to_string();
        let words = ["stall".to_owned(), address, arguments.stalled.to_string()];
        let _stalled = spawn_on(shared, &words).await?;
        let name = format!("{}× and {} stalled", SHARES[0], arguments.stalled);
        phases.push(phase(subject, &name, capacity * SHARES[0], arguments).await?);
    }
    Ok(OverloadResult { capacity, per_cpu, phases })
}

async fn phase(
    subject: &OverloadSubject,
    name: &str,
    rate: f64,
    arguments: &OverloadBenchArgs,
) -> Result<LoadPhase> {
    let plan = OfferedLoad {
        rate,
        lanes: arguments.lanes,
        settle: SETTLE,
        counted: Duration::from_secs_f64(arguments.seconds),
        timeout: TIMEOUT,
    };
    let (before, start) = (cpu::of_process(subject.role.pid)?, load::now());
    let outcome = offer(&subject.target, &plan).await?;
    let spent = cpu::of_process(subject.role.pid)?.saturating_sub(before);
    let cpu = spent.as_secs_f64() / (load::now() - start).as_secs_f64();
    Ok(LoadPhase {
        subject: subject.name,
        name: name.to_owned(),
        offered: rate,
        outcome,
        cpu,
        resident: memory::resident(subject.role.pid)?,
    })
}
