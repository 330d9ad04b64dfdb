//! The figures that a node counts: their names, labels and meanings, for `/metrics` and its page.

/// What kind of figure it is, in the words of OpenMetrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Counter,
    Gauge,
    Histogram,
    Info,
}

impl Shape {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// One figure with its labels. Every label has a bounded set of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    /// Without the endings that the format adds, such as `_total`.
    pub name: &'static str,
    pub shape: Shape,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

impl Figure {
    /// The names under which samples appear.
    pub fn samples(&self) -> Vec<String> {
        let endings: &[&str] = match self.shape {
            Shape::Counter => &["_total"],
            Shape::Gauge => &[""],
            Shape::Histogram => &["_bucket", "_sum", "_count"],
            Shape::Info => &["_info"],
        };
        endings.iter().map(|ending| format!("{}{ending}", self.name)).collect()
    }
}

macro_rules! figures {
    ($($constant:ident: $shape:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(
            pub const $constant: Figure = Figure {
                name: $name,
                shape: Shape::$shape,
                labels: &[$($label),*],
                help: $help,
            };
        )+

        /// Every figure.
        pub const ALL: &[Figure] = &[$($constant),+];
    };
}

figures! {
    REQUESTS: Counter "jurat_http_requests" ["method", "route", "status"]
        "Requests that ended, by route template and class of the status. `gone` means that the caller left before the answer.";
    REQUEST_SECONDS: Histogram "jurat_http_request_duration_seconds" ["method", "route"]
        "Time from the head of a request to the head of its answer.";
    REQUESTS_IN_FLIGHT: Gauge "jurat_http_requests_in_flight" []
        "Requests that wait for their answer.";
    REQUESTS_SHED: Counter "jurat_requests_shed" ["code"]
        "Requests refused because the node had too much to do (`overloaded`) or was about to stop (`shutting_down`).";
    CONNECTIONS: Gauge "jurat_connections" []
        "Connections that are open.";
    CONNECTIONS_REFUSED: Counter "jurat_connections_refused" []
        "Connections that were closed at once, because there were too many or too many of one address.";
    KEY_REFUSALS: Counter "jurat_key_refusals" ["reason"]
        "Requests refused because of their key: `unauthenticated`, `forbidden` or `rate_limited`.";
    ROUNDS: Counter "jurat_rounds" ["kind", "outcome"]
        "Rounds that ended, by what came of them; `expired` and `cancelled` ones were not counted out.";
    ROUND_ERRORS: Counter "jurat_round_errors" ["kind", "code"]
        "Rounds that were refused or broke off, by error code.";
    ROUNDS_IN_FLIGHT: Gauge "jurat_rounds_in_flight" []
        "Rounds under way on this node.";
    ROUNDS_LIMIT: Gauge "jurat_rounds_limit" []
        "Rounds that may be under way on this node; more are refused.";
    ROUND_SECONDS: Histogram "jurat_round_duration_seconds" ["kind"]
        "Time from the opening of a round to its decision.";
    AGREEMENT: Histogram "jurat_round_agreement_ratio" ["kind"]
        "Share of the replicas asked that are with the winner.";
    CONFIDENCE: Histogram "jurat_round_confidence_ratio" ["kind"]
        "Confidence in the answer of a round.";
    REPLICAS: Counter "jurat_replicas" ["executor", "label"]
        "Replicas that ended, by executor and by what they said.";
    REPLICA_SECONDS: Histogram "jurat_replica_duration_seconds" ["executor"]
        "Time until a replica had ended, with the wait for a free place and the check of its answer.";
    REPLICA_FAILURES: Counter "jurat_replica_failures" ["executor", "code"]
        "Replicas without a verdict, by executor and reason.";
    EXECUTOR_CIRCUIT: Gauge "jurat_executor_circuit" ["executor", "state"]
        "1 for the state in which the circuit breaker of the executor is: `closed`, `open` or `half_open`.";
    EXECUTOR_UP: Gauge "jurat_executor_up" ["executor"]
        "1 if the last probe found the executor well, 0 if not or if there was none yet.";
    EXECUTOR_PROBE_AGE: Gauge "jurat_executor_probe_age_seconds" ["executor"]
        "Time since the last probe of the executor.";
    TASKS: Counter "jurat_tasks" ["state"]
        "Tasks that this node saw end, by how: `finalized`, `failed`, `expired` or `cancelled`. A continuous task counts with each of its decisions.";
    TASK_SECONDS: Histogram "jurat_task_duration_seconds" ["state"]
        "Time from the submission of a task to its end; for a later epoch, from its first work.";
    TASKS_IN_FLIGHT: Gauge "jurat_tasks_in_flight" []
        "Tasks that this node drives.";
    TASKS_LIMIT: Gauge "jurat_tasks_limit" []
        "Tasks that this node drives at a time; more wait for their turn.";
    TASKS_OVERDUE: Gauge "jurat_tasks_overdue_seconds" []
        "For how long the task that has waited longest should have been looked at, on whichever node; 0 when none is late.";
    TASKS_OPEN: Gauge "jurat_tasks_open" ["state"]
        "Tasks of all accounts that are not over, by state, as the store had them within the last 10 seconds; the same on every node.";
    TASK_CLAIMS_RELEASED: Counter "jurat_task_claims_released" ["reason"]
        "Claims to propose or to verify that ended without what they were for: the call `failed`, the lease ran out (`lease_ran_out`), or the work was `given_up`.";
    RUNS: Counter "jurat_runs" ["status"]
        "Runs of several agents that this node saw end, by status.";
    RUN_SECONDS: Histogram "jurat_run_duration_seconds" ["status"]
        "Time from the beginning of a run to its end.";
    RUN_STEPS: Counter "jurat_run_steps" ["outcome"]
        "Attempts at steps of runs that ended on this node: `succeeded`, `failed` for good, `retried` later, `cancelled`, or `released` for others.";
    RUNS_OPEN: Gauge "jurat_runs_open" ["status"]
        "Runs of all accounts that are not over, by status, as the store had them within the last 10 seconds; the same on every node.";
    RUN_STEPS_QUEUED: Gauge "jurat_run_steps_queued" []
        "Steps of runs that no worker has taken, counted up to 10,000, as the store had them within the last 10 seconds; the same on every node.";
    AGENT_EVENTS_PENDING: Gauge "jurat_agent_events_pending" []
        "Events that executors are still to be told of, counted up to 100,000, as the store had them within the last 10 seconds; the same on every node.";
    AGENT_EVENTS: Counter "jurat_agent_events" ["outcome"]
        "Events to executors that this node is done with: `acked`, `completed`, `delivered`, `failed` or `expired`; `crowded` where a task's event was given up, and `refused` where one was not taken, because too many waited for the executor.";
    POLICY_VERDICTS: Counter "jurat_policy_verdicts" ["policy", "status"]
        "Candidates that this node checked, by policy and verdict.";
    JUDGE_CALLS: Counter "jurat_judge_calls" ["provider", "outcome"]
        "Requests to providers of judges, each try for itself, by what came of them: `answered`, `rate_limited` (429), `refused` (another status below 500), `failed` (500 and above), `timeout`, `unreachable`, `unreadable`, or `broken_off` with its round.";
    JUDGE_CALL_SECONDS: Histogram "jurat_judge_call_duration_seconds" ["provider"]
        "Time that a request to a provider of judges took, without the wait for its turn.";
    JUDGE_TOKENS: Counter "jurat_judge_tokens" ["provider", "direction"]
        "Tokens that judges read (`input`) and wrote (`output`), as the provider counts them, or estimated where it does not.";
    JUDGE_COST: Counter "jurat_judge_cost_microcredits" ["provider"]
        "What judgments cost, in micro-credits, with the margin.";
    JUDGE_LOOKUPS: Counter "jurat_judge_cache_lookups" ["provider", "result"]
        "Looks for a verdict that is known from before: `hit`, or `miss` when the judge had to be asked.";
    STORE_WRITE_SECONDS: Histogram "jurat_store_write_duration_seconds" ["write"]
        "Time until a write was on disk, with its wait in the queue.";
    STORE_WRITES_WAITING: Gauge "jurat_store_writes_waiting" []
        "Writes that wait for the one thread that writes to SQLite; 0 with PostgreSQL.";
    STORE_COMMIT_WRITES: Histogram "jurat_store_commit_writes" []
        "Writes that shared one commit. Only with SQLite.";
    STORE_CONNECTIONS: Gauge "jurat_store_connections" ["state"]
        "Connections to PostgreSQL, `used` or `idle`. Only with PostgreSQL.";
    CHECKS_WAITING: Gauge "jurat_checks_waiting" []
        "Checks of schemas and policies that wait for a thread.";
    CHECKS_REFUSED: Counter "jurat_checks_refused" []
        "Checks that were not made because too many waited.";
    BUILD: Info "jurat_build" ["version"]
        "The version of the program.";
    PROCESS_MEMORY: Gauge "process_resident_memory_bytes" []
        "Memory of the process that is in RAM.";
    PROCESS_FDS: Gauge "process_open_fds" []
        "Open file descriptors of the process.";
    PROCESS_CPU: Counter "process_cpu_seconds" []
        "Time that the process has spent on processors.";
    PROCESS_START: Gauge "process_start_time_seconds" []
        "When the process started, in seconds since 1970.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_nobody_has_two() {
        let mut names: Vec<&str> = ALL.iter().map(|figure| figure.name).collect();
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.iter().all(|figure| figure.help.ends_with('.')));
    }
}
