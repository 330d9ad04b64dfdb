//! The registry of metrics: their names, labels and meanings, for `/metrics` and its page.

/// The kind of a metric, in the words of OpenMetrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

impl MetricKind {
    /// The name of the kind in the exposition format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// One metric with its labels. Every label has a limited set of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricSpec {
    /// Without the suffixes that the format adds, such as `_total`.
    pub name: &'static str,
    pub shape: MetricKind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

impl MetricSpec {
    /// The names of its samples.
    pub fn samples(&self) -> Vec<String> {
        let endings: &[&str] = match self.shape {
            MetricKind::Counter => &["_total"],
            MetricKind::Gauge => &[""],
            MetricKind::Histogram => &["_bucket", "_sum", "_count"],
            MetricKind::Info => &["_info"],
        };
        endings.iter().map(|ending| format!("{}{ending}", self.name)).collect()
    }
}

macro_rules! metrics {
    ($($constant:ident: $shape:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(
            pub const $constant: MetricSpec = MetricSpec {
                name: $name,
                shape: MetricKind::$shape,
                labels: &[$($label),*],
                help: $help,
            };
        )+

        /// Every metric.
        pub const ALL: &[MetricSpec] = &[$($constant),+];
    };
}

metrics! {
    REQUESTS: Counter "jurat_http_requests" ["method", "route", "status"]
        "Finished requests, by route template and status class. `gone` means that the client disconnected before the response.";
    REQUEST_SECONDS: Histogram "jurat_http_request_duration_seconds" ["method", "route"]
        "Time from the request head to the response head.";
    REQUESTS_IN_FLIGHT: Gauge "jurat_http_requests_in_flight" []
        "Requests in progress.";
    REQUESTS_SHED: Counter "jurat_requests_shed" ["code"]
        "Requests refused because the node was overloaded (`overloaded`) or shutting down (`shutting_down`).";
    CONNECTIONS: Gauge "jurat_connections" []
        "Open connections.";
    CONNECTIONS_REFUSED: Counter "jurat_connections_refused" []
        "Connections refused because there were too many in total or from one address.";
    KEY_REFUSALS: Counter "jurat_key_refusals" ["reason"]
        "Requests refused because of their key: `unauthenticated`, `forbidden` or `rate_limited`.";
    ROUNDS: Counter "jurat_rounds" ["kind", "outcome"]
        "Finished rounds, by outcome; the votes of `expired` and `cancelled` rounds were not counted.";
    ROUND_ERRORS: Counter "jurat_round_errors" ["kind", "code"]
        "Rounds that were refused or failed, by error code.";
    ROUNDS_IN_FLIGHT: Gauge "jurat_rounds_in_flight" []
        "Rounds in progress on this node.";
    ROUNDS_LIMIT: Gauge "jurat_rounds_limit" []
        "Most rounds that may be in progress on this node; more are refused.";
    ROUND_SECONDS: Histogram "jurat_round_duration_seconds" ["kind"]
        "Time from opening a round to its decision.";
    AGREEMENT: Histogram "jurat_round_agreement_ratio" ["kind"]
        "Share of the called replicas that agree with the winner.";
    CONFIDENCE: Histogram "jurat_round_confidence_ratio" ["kind"]
        "Confidence in the result of a round.";
    REPLICAS: Counter "jurat_replicas" ["executor", "label"]
        "Finished replicas, by executor and label.";
    REPLICA_SECONDS: Histogram "jurat_replica_duration_seconds" ["executor"]
        "Time until a replica finished, including the wait for a free permit and the check of its answer.";
    REPLICA_FAILURES: Counter "jurat_replica_failures" ["executor", "code"]
        "Replicas without a verdict, by executor and reason.";
    EXECUTOR_CIRCUIT: Gauge "jurat_executor_circuit" ["executor", "state"]
        "1 for the current state of the executor's circuit breaker: `closed`, `open` or `half_open`.";
    EXECUTOR_UP: Gauge "jurat_executor_up" ["executor"]
        "1 if the last probe found the executor healthy, 0 if not or if it was never probed.";
    EXECUTOR_PROBE_AGE: Gauge "jurat_executor_probe_age_seconds" ["executor"]
        "Time since the last probe of the executor.";
    TASKS: Counter "jurat_tasks" ["state"]
        "Tasks that ended on this node, by state: `finalized`, `failed`, `expired` or `cancelled`. A continuous task counts once per decision.";
    TASK_SECONDS: Histogram "jurat_task_duration_seconds" ["state"]
        "Time from the submission of a task to its end; for a later epoch, from the start of its first work.";
    TASKS_IN_FLIGHT: Gauge "jurat_tasks_in_flight" []
        "Tasks that this node drives.";
    TASKS_LIMIT: Gauge "jurat_tasks_limit" []
        "Most tasks that this node drives concurrently; more wait.";
    TASKS_OVERDUE: Gauge "jurat_tasks_overdue_seconds" []
        "How long the most overdue task has been waiting for a node, across all nodes; 0 when none is overdue.";
    TASKS_OPEN: Gauge "jurat_tasks_open" ["state"]
        "Open tasks of all accounts, by state, read from the store within the last 10 seconds; every node reports the same value.";
    TASK_CLAIMS_RELEASED: Counter "jurat_task_claims_released" ["reason"]
        "Leases to propose or to vote that ended without a result: the call `failed`, the lease expired (`lease_ran_out`), or the work was `given_up`.";
    RUNS: Counter "jurat_runs" ["status"]
        "Agent runs that ended on this node, by status.";
    RUN_SECONDS: Histogram "jurat_run_duration_seconds" ["status"]
        "Time from the start of an agent run to its end.";
    RUN_STEPS: Counter "jurat_run_steps" ["outcome"]
        "Attempts at steps of agent runs that ended on this node: `succeeded`, `failed` permanently, `retried` later, `cancelled`, or `released` for other workers.";
    RUNS_OPEN: Gauge "jurat_runs_open" ["status"]
        "Open agent runs of all accounts, by status, read from the store within the last 10 seconds; every node reports the same value.";
    RUN_STEPS_QUEUED: Gauge "jurat_run_steps_queued" []
        "Steps of agent runs that no worker has taken, counted up to 10,000, read from the store within the last 10 seconds; every node reports the same value.";
    AGENT_EVENTS_PENDING: Gauge "jurat_agent_events_pending" []
        "Undelivered events to executors, counted up to 100,000, read from the store within the last 10 seconds; every node reports the same value.";
    AGENT_EVENTS: Counter "jurat_agent_events" ["outcome"]
        "Events to executors that this node finished: `acked`, `completed`, `delivered`, `failed` or `expired`; with too many events waiting for the executor, `crowded` if a task's event was dropped and `refused` if a sent event was not accepted.";
    WEBHOOK_DELIVERIES: Counter "jurat_webhook_deliveries" ["outcome"]
        "Attempts to deliver webhooks that ended on this node: `delivered`, `retried` later, `failed` permanently, or `disabled` when the webhook was disabled with it.";
    WEBHOOK_DELIVERIES_PENDING: Gauge "jurat_webhook_deliveries_pending" []
        "Waiting webhook deliveries, counted up to 100,000, read from the store within the last 10 seconds; every node reports the same value.";
    PAYMENTS: Counter "jurat_payments" ["state"]
        "Attempts of this node to settle payments, by the state after them: `settled`, `failed_final` or `unknown`; and purchases that were not charged, as `released`.";
    FACILITATOR_CALLS: Counter "jurat_facilitator_calls" ["call", "outcome"]
        "Calls of this node to the payment facilitator: `verify` or `settle`, which answered `yes`, `no`, or nothing usable (`unclear`).";
    PEER_REQUESTS: Counter "jurat_peer_requests" ["request"]
        "Requests of trusted nodes that reached this one: `presence`, `job`, `join` or `statement`.";
    PEER_REFUSALS: Counter "jurat_peer_refusals" ["code"]
        "Requests of other nodes that this one refused, by the code of the refusal, such as `not_trusted`, `rate_limited` or `bad_message`.";
    POLICY_VERDICTS: Counter "jurat_policy_verdicts" ["policy", "status"]
        "Candidates that this node checked, by policy and verdict.";
    JUDGE_CALLS: Counter "jurat_judge_calls" ["provider", "outcome"]
        "Requests to judge providers, each attempt counted, by outcome: `answered`, `rate_limited` (429), `refused` (another status below 500), `failed` (500 and above), `timeout`, `unreachable`, `unreadable`, or `broken_off` when its round ended first.";
    JUDGE_CALL_SECONDS: Histogram "jurat_judge_call_duration_seconds" ["provider"]
        "Duration of a request to a judge provider, without the wait for a permit.";
    JUDGE_TOKENS: Counter "jurat_judge_tokens" ["provider", "direction"]
        "Tokens that judges read (`input`) and wrote (`output`), as the provider counts them, or estimated if it does not.";
    JUDGE_COST: Counter "jurat_judge_cost_microcredits" ["provider"]
        "Cost of judgments in micro-credits, including the margin.";
    JUDGE_LOOKUPS: Counter "jurat_judge_cache_lookups" ["provider", "result"]
        "Lookups of cached verdicts: `hit`, or `miss` when the judge had to be called.";
    STORE_WRITE_SECONDS: Histogram "jurat_store_write_duration_seconds" ["write"]
        "Time until a write was on disk, including its wait in the queue.";
    STORE_WRITES_WAITING: Gauge "jurat_store_writes_waiting" []
        "Writes waiting for SQLite's single writer thread; 0 with PostgreSQL.";
    STORE_COMMIT_WRITES: Histogram "jurat_store_commit_writes" []
        "Writes per commit. SQLite only.";
    STORE_CONNECTIONS: Gauge "jurat_store_connections" ["state"]
        "Connections to PostgreSQL, `used` or `idle`. PostgreSQL only.";
    CHECKS_WAITING: Gauge "jurat_checks_waiting" []
        "Schema and policy checks waiting for a thread.";
    CHECKS_REFUSED: Counter "jurat_checks_refused" []
        "Checks refused because too many were waiting.";
    BUILD: Info "jurat_build" ["version"]
        "The version of the program.";
    PROCESS_MEMORY: Gauge "process_resident_memory_bytes" []
        "Resident memory of the process.";
    PROCESS_FDS: Gauge "process_open_fds" []
        "Open file descriptors of the process.";
    PROCESS_CPU: Counter "process_cpu_seconds" []
        "CPU time used by the process.";
    PROCESS_START: Gauge "process_start_time_seconds" []
        "Start time of the process, in seconds since 1970.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_names_are_plain_and_unique() {
        let mut names: Vec<&str> = ALL.iter().map(|metric| metric.name).collect();
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.iter().all(|metric| metric.help.ends_with('.')));
    }
}
