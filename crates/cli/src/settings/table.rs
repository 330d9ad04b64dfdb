//! The table of settings. What is not in it cannot be set.

mod shares;

pub(crate) use self::shares::{
    CALLS_PER_EXECUTOR, LAG_MS, MEMORY_MIB, MEMORY_MIB_PER_ACCOUNT, PROBE_FRESH_MS,
    REQUESTS_PER_MINUTE_PER_ACCOUNT, REQUESTS_PER_MINUTE_PER_KEY, ROUNDS, ROUNDS_PER_ACCOUNT,
    ROUNDS_PER_KEY, STORAGE_EVENT_DAYS, STORAGE_IDEMPOTENCY_DAYS, STORAGE_KEEP_REQUESTS,
    STORAGE_PAYLOAD_DAYS, STORAGE_QUOTA_MIB,
};
use super::{Setting, SettingKind, SettingPrivacy};

/// In the order in which they are shown.
pub(crate) static ALL: &[&Setting] = &[
    &STATE_DIR,
    &LISTEN,
    &TRUSTED_PROXIES,
    &STORE,
    &MIGRATE_URL,
    &LOG_FILTER,
    &LOG_FORMAT,
    &OTLP_ENDPOINT,
    &SAMPLE_RATIO,
    &ROUNDS,
    &CALLS_PER_EXECUTOR,
    &PROBE_FRESH_MS,
    &LAG_MS,
    &REQUESTS_PER_MINUTE_PER_KEY,
    &ROUNDS_PER_KEY,
    &REQUESTS_PER_MINUTE_PER_ACCOUNT,
    &ROUNDS_PER_ACCOUNT,
    &MEMORY_MIB,
    &MEMORY_MIB_PER_ACCOUNT,
    &STORAGE_QUOTA_MIB,
    &STORAGE_IDEMPOTENCY_DAYS,
    &STORAGE_PAYLOAD_DAYS,
    &STORAGE_EVENT_DAYS,
    &STORAGE_KEEP_REQUESTS,
    &TASKS_AT_ONCE,
    &TASKS_OPEN_PER_ACCOUNT,
    &RUNS_WORKER,
    &RUNS_AT_ONCE,
    &RUNS_PER_EXECUTOR,
    &RUNS_OPEN_PER_ACCOUNT,
    &RUNS_LEASE_MS,
    &AGENT_EVENTS_TIMEOUT_MS,
    &AGENT_EVENTS_ATTEMPTS,
    &AGENT_EVENTS_BACKOFF_MS,
    &AGENT_EVENTS_EXPIRES_MS,
    &AGENT_EVENTS_PENDING,
    &AGENT_EVENTS_KEEP_DAYS,
    &MAX_CONNECTIONS,
    &MAX_CONNECTIONS_PER_ADDRESS,
    &HEADER_TIMEOUT_MS,
    &IDLE_TIMEOUT_MS,
    &BODY_TIMEOUT_MS,
    &MIN_BODY_RATE,
    &WRITE_TIMEOUT_MS,
    &DRAIN_SECONDS,
    &DELAY_SECONDS,
    &MCP_HOSTS,
    &DEFAULT_MODEL,
    &PANEL,
    &MARGIN_PERCENT,
    &CACHE_SECONDS,
    &CACHE_MOST,
    &MEDIA_ALLOW,
    &ANONYMOUS_GRANT_USD,
    &ANONYMOUS_DAILY_CAP_USD,
    &REGISTRATION,
    &GRANT_USD,
    &PUBLIC_URL,
    &SMTP_URL,
    &MAIL_FROM,
    &SERVER,
    &KEY,
];

pub(crate) static STATE_DIR: Setting = Setting {
    name: "state.dir",
    variable: "JURAT_STATE_DIR",
    flag: Some("--state-dir"),
    kind: SettingKind::Folder,
    default: Some("./.jurat"),
    about: "Folder with the store, the keys and the lock; a config file in that folder cannot set it.",
    example: "/var/lib/jurat",
    privacy: SettingPrivacy::Open,
};

pub(crate) static LISTEN: Setting = Setting {
    name: "server.listen",
    variable: "JURAT_LISTEN",
    flag: Some("--listen"),
    kind: SettingKind::Listen,
    default: Some("127.0.0.1:5872"),
    about: "Address that `jurat serve` listens on; port 0 picks a free port.",
    example: "0.0.0.0:5872",
    privacy: SettingPrivacy::Open,
};

pub(crate) static STORE: Setting = Setting {
    name: "store.location",
    variable: "JURAT_STORE",
    flag: Some("--store"),
    kind: SettingKind::Store,
    default: Some("jurat.db"),
    about: "Store of the data: a file name in the state folder, a path, or a postgres:// URL.",
    example: "postgres://jurat_app@db.example.com/jurat",
    privacy: SettingPrivacy::Address,
};

pub(crate) static MIGRATE_URL: Setting = Setting {
    name: "store.migrate_url",
    variable: "JURAT_MIGRATE_URL",
    flag: Some("--migrate-url"),
    kind: SettingKind::Postgres,
    default: None,
    about: "PostgreSQL URL of the role that owns and migrates the tables.",
    example: "postgres://jurat_owner@db.example.com/jurat",
    privacy: SettingPrivacy::Address,
};

pub(crate) static LOG_FILTER: Setting = Setting {
    name: "log.filter",
    variable: "JURAT_LOG",
    flag: None,
    kind: SettingKind::Filter,
    default: None,
    about: "Log filter for standard error; without it, `warn,jurat=info` for a server and `error` for a command.",
    example: "info",
    privacy: SettingPrivacy::Open,
};

pub(crate) static LOG_FORMAT: Setting = Setting {
    name: "log.format",
    variable: "JURAT_LOG_FORMAT",
    flag: Some("--log-format"),
    kind: SettingKind::Word(&["text", "json"]),
    default: Some("text"),
    about: "Log format of `jurat serve` and `jurat runtime`.",
    example: "json",
    privacy: SettingPrivacy::Open,
};

pub(crate) static OTLP_ENDPOINT: Setting = Setting {
    name: "telemetry.otlp_endpoint",
    variable: "JURAT_TELEMETRY_OTLP_ENDPOINT",
    flag: None,
    kind: SettingKind::Url,
    default: None,
    about: "OpenTelemetry collector for the traces and evaluation events of `jurat serve`; without it, `OTEL_EXPORTER_OTLP_ENDPOINT` is used.",
    example: "http://127.0.0.1:4318",
    privacy: SettingPrivacy::Address,
};

pub(crate) static SAMPLE_RATIO: Setting = Setting {
    name: "telemetry.sample_ratio",
    variable: "JURAT_TELEMETRY_SAMPLE_RATIO",
    flag: None,
    kind: SettingKind::Share,
    default: Some("1.0"),
    about: "Share of traces to keep, unless the caller started the trace.",
    example: "0.1",
    privacy: SettingPrivacy::Open,
};

pub(crate) static TASKS_AT_ONCE: Setting = Setting {
    name: "tasks.at_once",
    variable: "JURAT_TASKS_AT_ONCE",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 10_000 },
    default: Some("256"),
    about: "Maximum number of concurrent tasks on this node; further ones wait.",
    example: "64",
    privacy: SettingPrivacy::Open,
};

pub(crate) static TASKS_OPEN_PER_ACCOUNT: Setting = Setting {
    name: "tasks.open_per_account",
    variable: "JURAT_TASKS_OPEN_PER_ACCOUNT",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000 },
    default: Some("10000"),
    about: "Maximum number of open tasks per account; further ones are refused with `conflict`.",
    example: "500",
    privacy: SettingPrivacy::Open,
};

pub(crate) static RUNS_WORKER: Setting = Setting {
    name: "runs.worker",
    variable: "JURAT_RUNS_WORKER",
    flag: None,
    kind: SettingKind::Word(&["on", "off"]),
    default: Some("on"),
    about: "Whether `jurat serve` works on runs itself; `off` leaves them to `jurat run worker` on the same PostgreSQL.",
    example: "off",
    privacy: SettingPrivacy::Open,
};

pub(crate) static RUNS_AT_ONCE: Setting = Setting {
    name: "runs.at_once",
    variable: "JURAT_RUNS_AT_ONCE",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 10_000 },
    default: Some("64"),
    about: "Maximum number of concurrent run steps of `jurat serve`.",
    example: "16",
    privacy: SettingPrivacy::Open,
};

pub(crate) static RUNS_PER_EXECUTOR: Setting = Setting {
    name: "runs.per_executor",
    variable: "JURAT_RUNS_PER_EXECUTOR",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 10_000 },
    default: Some("8"),
    about: "Maximum number of concurrent run steps per executor, across all nodes and workers.",
    example: "2",
    privacy: SettingPrivacy::Open,
};

pub(crate) static RUNS_OPEN_PER_ACCOUNT: Setting = Setting {
    name: "runs.open_per_account",
    variable: "JURAT_RUNS_OPEN_PER_ACCOUNT",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000 },
    default: Some("10000"),
    about: "Maximum number of open runs per account; further ones are refused with `conflict`.",
    example: "100",
    privacy: SettingPrivacy::Open,
};

pub(crate) static RUNS_LEASE_MS: Setting = Setting {
    name: "runs.lease_ms",
    variable: "JURAT_RUNS_LEASE_MS",
    flag: None,
    kind: SettingKind::Count { least: 300, most: 3_600_000 },
    default: Some("30000"),
    about: "Lease of `jurat serve` on a run step, in milliseconds; without a renewal, another node takes the step.",
    example: "10000",
    privacy: SettingPrivacy::Open,
};

pub(crate) static AGENT_EVENTS_TIMEOUT_MS: Setting = Setting {
    name: "agent_events.timeout_ms",
    variable: "JURAT_AGENT_EVENTS_TIMEOUT_MS",
    flag: None,
    kind: SettingKind::Count { least: 100, most: 600_000 },
    default: Some("60000"),
    about: "Timeout for an executor to answer an event, in milliseconds.",
    example: "10000",
    privacy: SettingPrivacy::Open,
};

pub(crate) static AGENT_EVENTS_ATTEMPTS: Setting = Setting {
    name: "agent_events.attempts",
    variable: "JURAT_AGENT_EVENTS_ATTEMPTS",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 8 },
    default: Some("3"),
    about: "Maximum number of attempts to deliver an event.",
    example: "5",
    privacy: SettingPrivacy::Open,
};

pub(crate) static AGENT_EVENTS_BACKOFF_MS: Setting = Setting {
    name: "agent_events.backoff_ms",
    variable: "JURAT_AGENT_EVENTS_BACKOFF_MS",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 3_600_000 },
    default: Some("1000"),
    about: "Wait before the second delivery attempt, in milliseconds; it doubles with each further attempt.",
    example: "5000",
    privacy: SettingPrivacy::Open,
};

pub(crate) static AGENT_EVENTS_EXPIRES_MS: Setting = Setting {
    name: "agent_events.expires_ms",
    variable: "JURAT_AGENT_EVENTS_EXPIRES_MS",
    flag: None,
    kind: SettingKind::Count { least: 1_000, most: 2_592_000_000 },
    default: Some("86400000"),
    about: "Maximum age of an event to deliver, in milliseconds.",
    example: "3600000",
    privacy: SettingPrivacy::Open,
};

pub(crate) static AGENT_EVENTS_PENDING: Setting = Setting {
    name: "agent_events.pending",
    variable: "JURAT_AGENT_EVENTS_PENDING",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 100_000 },
    default: Some("1000"),
    about: "Maximum number of undelivered events per account and executor; beyond it, task events are dropped and others refused.",
    example: "100",
    privacy: SettingPrivacy::Open,
};

pub(crate) static AGENT_EVENTS_KEEP_DAYS: Setting = Setting {
    name: "agent_events.keep_days",
    variable: "JURAT_AGENT_EVENTS_KEEP_DAYS",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 3_650 },
    default: Some("30"),
    about: "Days until an event with a final delivery state is deleted, counted from its creation.",
    example: "7",
    privacy: SettingPrivacy::Open,
};

pub(crate) static MAX_CONNECTIONS: Setting = Setting {
    name: "inbound.max_connections",
    variable: "JURAT_INBOUND_MAX_CONNECTIONS",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000 },
    default: Some("4096"),
    about: "Maximum number of concurrent connections; further ones are told to retry and closed.",
    example: "1024",
    privacy: SettingPrivacy::Open,
};

pub(crate) static MAX_CONNECTIONS_PER_ADDRESS: Setting = Setting {
    name: "inbound.max_connections_per_address",
    variable: "JURAT_INBOUND_MAX_CONNECTIONS_PER_ADDRESS",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000 },
    default: Some("256"),
    about: "Maximum number of concurrent connections per remote address; loopback has no such limit.",
    example: "4096",
    privacy: SettingPrivacy::Open,
};

pub(crate) static TRUSTED_PROXIES: Setting = Setting {
    name: "server.trusted_proxies",
    variable: "JURAT_SERVER_TRUSTED_PROXIES",
    flag: None,
    kind: SettingKind::Ranges,
    default: None,
    about: "Address ranges of the proxies whose X-Forwarded-For or Forwarded header names the client, separated by commas; without it, the peer of the connection is the client.",
    example: "10.0.0.0/8",
    privacy: SettingPrivacy::Open,
};

pub(crate) static HEADER_TIMEOUT_MS: Setting = Setting {
    name: "inbound.header_timeout_ms",
    variable: "JURAT_INBOUND_HEADER_TIMEOUT_MS",
    flag: None,
    kind: SettingKind::Count { least: 100, most: 600_000 },
    default: Some("10000"),
    about: "Timeout for the head of a request, in milliseconds.",
    example: "5000",
    privacy: SettingPrivacy::Open,
};

pub(crate) static IDLE_TIMEOUT_MS: Setting = Setting {
    name: "inbound.idle_timeout_ms",
    variable: "JURAT_INBOUND_IDLE_TIMEOUT_MS",
    flag: None,
    kind: SettingKind::Count { least: 100, most: 3_600_000 },
    default: Some("60000"),
    about: "Timeout of an idle connection, in milliseconds.",
    example: "15000",
    privacy: SettingPrivacy::Open,
};

pub(crate) static BODY_TIMEOUT_MS: Setting = Setting {
    name: "inbound.body_timeout_ms",
    variable: "JURAT_INBOUND_BODY_TIMEOUT_MS",
    flag: None,
    kind: SettingKind::Count { least: 100, most: 600_000 },
    default: Some("30000"),
    about: "Timeout for the whole body of a request, in milliseconds.",
    example: "10000",
    privacy: SettingPrivacy::Open,
};

pub(crate) static MIN_BODY_RATE: Setting = Setting {
    name: "inbound.min_body_rate",
    variable: "JURAT_INBOUND_MIN_BODY_RATE",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000_000 },
    default: Some("1024"),
    about: "Minimum rate in bytes per second for sending a request body and for reading a reply.",
    example: "4096",
    privacy: SettingPrivacy::Open,
};

pub(crate) static WRITE_TIMEOUT_MS: Setting = Setting {
    name: "inbound.write_timeout_ms",
    variable: "JURAT_INBOUND_WRITE_TIMEOUT_MS",
    flag: None,
    kind: SettingKind::Count { least: 100, most: 600_000 },
    default: Some("30000"),
    about: "Timeout for a peer that does not read its reply, in milliseconds.",
    example: "10000",
    privacy: SettingPrivacy::Open,
};

pub(crate) static DRAIN_SECONDS: Setting = Setting {
    name: "shutdown.drain_seconds",
    variable: "JURAT_SHUTDOWN_DRAIN_SECONDS",
    flag: None,
    kind: SettingKind::Count { least: 0, most: 3_600 },
    default: Some("25"),
    about: "Seconds that rounds in progress may take once the server stops; then they are released.",
    example: "600",
    privacy: SettingPrivacy::Open,
};

pub(crate) static DELAY_SECONDS: Setting = Setting {
    name: "shutdown.delay_seconds",
    variable: "JURAT_SHUTDOWN_DELAY_SECONDS",
    flag: None,
    kind: SettingKind::Count { least: 0, most: 600 },
    default: Some("0"),
    about: "Seconds that a stopping server continues to serve, so that load balancers notice.",
    example: "5",
    privacy: SettingPrivacy::Open,
};

pub(crate) static MCP_HOSTS: Setting = Setting {
    name: "mcp.hosts",
    variable: "JURAT_MCP_HOSTS",
    flag: None,
    kind: SettingKind::Hosts,
    default: None,
    about: "Host names that Model Context Protocol clients use for `/mcp`, separated by commas; `localhost` and the address of `server.listen` are always accepted.",
    example: "jurat.example.com",
    privacy: SettingPrivacy::Open,
};

pub(crate) static DEFAULT_MODEL: Setting = Setting {
    name: "judges.default_model",
    variable: "JURAT_JUDGES_DEFAULT_MODEL",
    flag: None,
    kind: SettingKind::Model,
    default: None,
    about: "Default judge of verifiers; without it, the built-in judge, which follows rules and calls no model.",
    example: "builtin/rules",
    privacy: SettingPrivacy::Open,
};

pub(crate) static PANEL: Setting = Setting {
    name: "judges.panel",
    variable: "JURAT_JUDGES_PANEL",
    flag: None,
    kind: SettingKind::Models,
    default: None,
    about: "Default judges of verifier runs with several judges, separated by commas.",
    example: "builtin/rules",
    privacy: SettingPrivacy::Open,
};

pub(crate) static MARGIN_PERCENT: Setting = Setting {
    name: "judges.margin_percent",
    variable: "JURAT_JUDGES_MARGIN_PERCENT",
    flag: None,
    kind: SettingKind::Count { least: 0, most: 10_000 },
    default: Some("0"),
    about: "Percentage that accounts pay on top of the providers' prices.",
    example: "10",
    privacy: SettingPrivacy::Open,
};

pub(crate) static CACHE_SECONDS: Setting = Setting {
    name: "judges.cache_seconds",
    variable: "JURAT_JUDGES_CACHE_SECONDS",
    flag: None,
    kind: SettingKind::Count { least: 0, most: 315_360_000 },
    default: Some("2592000"),
    about: "Seconds that a verdict on the same inputs is cached; 0 asks the judge each time.",
    example: "86400",
    privacy: SettingPrivacy::Open,
};

pub(crate) static CACHE_MOST: Setting = Setting {
    name: "judges.cache_most",
    variable: "JURAT_JUDGES_CACHE_MOST",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 100_000_000 },
    default: Some("100000"),
    about: "Maximum number of cached verdicts of all accounts together; the oldest are evicted first.",
    example: "1000000",
    privacy: SettingPrivacy::Open,
};

pub(crate) static MEDIA_ALLOW: Setting = Setting {
    name: "judges.media_allow",
    variable: "JURAT_JUDGES_MEDIA_ALLOW",
    flag: None,
    kind: SettingKind::Ranges,
    default: None,
    about: "Private address ranges that images and evidence may be fetched from, separated by commas; without it, only public addresses.",
    example: "10.20.0.0/16",
    privacy: SettingPrivacy::Open,
};

pub(crate) static ANONYMOUS_GRANT_USD: Setting = Setting {
    name: "anonymous.grant_usd",
    variable: "JURAT_ANONYMOUS_GRANT_USD",
    flag: None,
    kind: SettingKind::Amount,
    default: Some("0.10"),
    about: "Monthly credit of a network address without a key, for running published verifiers.",
    example: "0.50",
    privacy: SettingPrivacy::Open,
};

pub(crate) static ANONYMOUS_DAILY_CAP_USD: Setting = Setting {
    name: "anonymous.daily_cap_usd",
    variable: "JURAT_ANONYMOUS_DAILY_CAP_USD",
    flag: None,
    kind: SettingKind::Amount,
    default: Some("1.00"),
    about: "Daily credit limit for all callers without a key together; 0 refuses all paid runs.",
    example: "5.00",
    privacy: SettingPrivacy::Open,
};

pub(crate) static REGISTRATION: Setting = Setting {
    name: "accounts.registration",
    variable: "JURAT_ACCOUNTS_REGISTRATION",
    flag: None,
    kind: SettingKind::Word(&["open", "closed"]),
    default: Some("closed"),
    about: "Whether anyone with an e-mail address can register; otherwise the operator creates accounts.",
    example: "open",
    privacy: SettingPrivacy::Open,
};

pub(crate) static GRANT_USD: Setting = Setting {
    name: "accounts.grant_usd",
    variable: "JURAT_ACCOUNTS_GRANT_USD",
    flag: None,
    kind: SettingKind::Amount,
    default: Some("0"),
    about: "Credit of a new account, in US dollars.",
    example: "5.00",
    privacy: SettingPrivacy::Open,
};

pub(crate) static PUBLIC_URL: Setting = Setting {
    name: "accounts.public_url",
    variable: "JURAT_ACCOUNTS_PUBLIC_URL",
    flag: None,
    kind: SettingKind::Url,
    default: None,
    about: "Public URL of this server, for the links that it gives to programs; without it, the URL of the request.",
    example: "https://jurat.example.com",
    privacy: SettingPrivacy::Open,
};

pub(crate) static SMTP_URL: Setting = Setting {
    name: "mail.smtp_url",
    variable: "JURAT_MAIL_SMTP_URL",
    flag: None,
    kind: SettingKind::Text,
    default: None,
    about: "Mail server, as smtps://user:password@host or smtp://host:port; without it, mail is written to the folder `mail` in the state folder.",
    example: "smtps://jurat:secret@mail.example.com",
    privacy: SettingPrivacy::Address,
};

pub(crate) static MAIL_FROM: Setting = Setting {
    name: "mail.from",
    variable: "JURAT_MAIL_FROM",
    flag: None,
    kind: SettingKind::Text,
    default: None,
    about: "Sender address of mail.",
    example: "Jurat <jurat@example.com>",
    privacy: SettingPrivacy::Open,
};

pub(crate) static SERVER: Setting = Setting {
    name: "client.server",
    variable: "JURAT_SERVER",
    flag: Some("--server"),
    kind: SettingKind::Url,
    default: None,
    about: "Server that commands use, instead of the one of the state folder.",
    example: "https://jurat.example.com",
    privacy: SettingPrivacy::Address,
};

pub(crate) static KEY: Setting = Setting {
    name: "client.key",
    variable: "JURAT_KEY",
    flag: None,
    kind: SettingKind::Text,
    default: None,
    about: "API key that commands send; without it, the one in `admin.key` of the state folder.",
    example: "jrt_live_…",
    privacy: SettingPrivacy::Hidden,
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings::value::parse;

    #[test]
    fn names_and_variables_are_unique_and_well_formed() {
        let names: BTreeSet<&str> = ALL.iter().map(|setting| setting.name).collect();
        let variables: BTreeSet<&str> = ALL.iter().map(|setting| setting.variable).collect();
        assert_eq!((names.len(), variables.len()), (ALL.len(), ALL.len()));
        for setting in ALL {
            assert_eq!(setting.name.split('.').count(), 2, "{}", setting.name);
            assert!(setting.variable.starts_with("JURAT_"), "{}", setting.variable);
            assert!(setting.about.ends_with('.'), "{}", setting.name);
        }
    }

    #[test]
    fn defaults_and_examples_are_values() {
        for setting in ALL {
            let given = setting.default.into_iter().chain([setting.example]);
            for text in given {
                assert!(parse(setting.kind, text).is_ok(), "{} = {text}", setting.name);
            }
            assert_ne!(setting.default, Some(setting.example), "{}", setting.name);
        }
    }
}
