//! The configuration from the settings. This is the only module that reads the environment.

mod judges;
pub(crate) mod node;
pub(crate) mod payments;
mod webhooks;

use std::{
    io::{IsTerminal as _, Write as _, stdout},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ipnet::IpNet;
use jurat_core::{id::AccountId, task::agent_event::RetryTerms};
use jurat_engine::{
    AgentEventTerms, ConsensusProfiles, EngineLimits, Failpoints, JudgesConfig, RunWorkerSettings,
    StorageTerms, WebhookSettings,
};
use jurat_server::{InboundLimits, PeerOptions};
use jurat_store::StoreLocation;
use jurat_wire::api::{
    agent_registration::{AgentProfile, AgentRegistration},
    openai::profile::built_in,
};
use parking_lot::Mutex;

use self::node::NodeEndpoint;
use crate::settings::{
    AGENT_DESCRIPTION, AGENT_EVENTS_ATTEMPTS, AGENT_EVENTS_BACKOFF_MS, AGENT_EVENTS_EXPIRES_MS,
    AGENT_EVENTS_KEEP_DAYS, AGENT_EVENTS_PENDING, AGENT_EVENTS_TIMEOUT_MS, AGENT_IMAGE, AGENT_NAME,
    AGENT_REGISTRATIONS, ANONYMOUS_DAILY_CAP_USD, ANONYMOUS_GRANT_USD, BODY_TIMEOUT_MS,
    CALLS_PER_EXECUTOR, DELAY_SECONDS, DRAIN_SECONDS, GRANT_USD, HEADER_TIMEOUT_MS,
    IDLE_TIMEOUT_MS, KEY, LAG_MS, LISTEN, LOG_FILTER, LOG_FORMAT, LOOPBACK_ACCOUNT, MAIL_FROM,
    MAX_CONNECTIONS, MAX_CONNECTIONS_PER_ADDRESS, MCP_HOSTS, MCP_TOOLS, MEMORY_MIB,
    MEMORY_MIB_PER_ACCOUNT, MIGRATE_URL, MIN_BODY_RATE, OTLP_ENDPOINT, PROBE_FRESH_MS, PUBLIC_URL,
    REGISTRATION, REQUESTS_PER_MINUTE_PER_ACCOUNT, REQUESTS_PER_MINUTE_PER_KEY, ROUNDS,
    ROUNDS_PER_ACCOUNT, ROUNDS_PER_KEY, RUNS_AT_ONCE, RUNS_LEASE_MS, RUNS_OPEN_PER_ACCOUNT,
    RUNS_PER_EXECUTOR, RUNS_WORKER, SAMPLE_RATIO, SERVER, SHIMS_REPLICAS, SMTP_URL, STATE_DIR,
    STORAGE_EVENT_DAYS, STORAGE_IDEMPOTENCY_DAYS, STORAGE_KEEP_REQUESTS, STORAGE_PAYLOAD_DAYS,
    STORAGE_QUOTA_MIB, STORE, SettingOrigin, Settings, TASKS_AT_ONCE, TASKS_OPEN_PER_ACCOUNT,
    TRUSTED_PROXIES, WRITE_TIMEOUT_MS,
};
use crate::{settings, telemetry};

const MIB: usize = 1024 * 1024;
/// What the registration file says if the operator says nothing.
const AGENT_ABOUT: &str = "Delegates jobs and judges claims with several independent executors.";

/// The configuration that results from the settings.
#[derive(Clone)]
pub(crate) struct CliConfig {
    pub(crate) settings: Settings,
    pub(crate) state_dir: PathBuf,
    pub(crate) store: StoreLocation,
    pub(crate) store_chosen: StoreChoice,
    /// Only for `jurat serve`; other commands do not migrate as another role.
    pub(crate) migrate_url: Option<String>,
    pub(crate) listen: String,
    pub(crate) server: Option<String>,
    /// The API key that commands send.
    pub(crate) key: Option<String>,
    /// The log filter, if one is set.
    pub(crate) log_filter: Option<String>,
    pub(crate) log_format: LogFormat,
    /// The collector of traces, if there is one.
    pub(crate) telemetry: Option<telemetry::TelemetryOptions>,
    pub(crate) limits: EngineLimits,
    /// How a server works on the steps of runs; `None` leaves them to other workers.
    pub(crate) runs: Option<RunWorkerSettings>,
    pub(crate) judges: JudgesConfig,
    /// The consensus profiles that chat clients select as models.
    pub(crate) profiles: ConsensusProfiles,
    pub(crate) accounts: AccountTerms,
    pub(crate) webhooks: WebhookSettings,
    pub(crate) inbound: InboundLimits,
    /// Host names of the server.
    pub(crate) hosts: Vec<String>,
    /// Sets of tools for models; none names all.
    pub(crate) tools: Vec<String>,
    /// Proxies that are trusted to name the client of a request.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// What is on for clients and registries of other systems.
    pub(crate) peers: PeerOptions,
    /// The endpoint for other nodes, which only `jurat serve` opens.
    pub(crate) node: Option<NodeEndpoint>,
}

/// The terms for new accounts, and the settings for mail.
#[derive(Debug, Clone)]
pub(crate) struct AccountTerms {
    pub(crate) is_open: bool,
    pub(crate) grant_micros: i64,
    pub(crate) public_url: Option<String>,
    pub(crate) smtp_url: Option<String>,
    pub(crate) from: Option<String>,
}

fn account_terms(settings: &Settings) -> AccountTerms {
    let text = |setting| settings.text(setting).map(str::to_owned);
    AccountTerms {
        is_open: settings.text(&REGISTRATION) == Some("open"),
        grant_micros: settings.micros(&GRANT_USD),
        public_url: text(&PUBLIC_URL),
        smtp_url: text(&SMTP_URL),
        from: text(&MAIL_FROM),
    }
}

/// The origin of the choice of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreChoice {
    /// The user, with `--store` or the variable.
    ByUser,
    /// The config file or the default; the store of a running server takes precedence.
    ByDefault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColourMode {
    On,
    Off,
}

impl CliConfig {
    pub(crate) fn new(settings: Settings) -> Self {
        let text = |setting| settings.text(setting).map(str::to_owned);
        let number = |setting| u32::try_from(settings.count(setting)).unwrap_or(u32::MAX);
        let state_dir = PathBuf::from(text(&STATE_DIR).unwrap_or_default());
        Self {
            store: location(&text(&STORE).unwrap_or_default(), &state_dir),
            store_chosen: match settings.origin(&STORE) {
                SettingOrigin::Flag(_) | SettingOrigin::Environment(_) => StoreChoice::ByUser,
                SettingOrigin::File { .. } | SettingOrigin::Default => StoreChoice::ByDefault,
            },
            state_dir,
            migrate_url: text(&MIGRATE_URL),
            listen: text(&LISTEN).unwrap_or_default(),
            server: text(&SERVER),
            key: text(&KEY),
            log_filter: text(&LOG_FILTER),
            log_format: log_format(settings.text(&LOG_FORMAT)),
            telemetry: telemetry_options(&settings),
            runs: (settings.text(&RUNS_WORKER) != Some("off")).then(|| RunWorkerSettings {
                lease_ms: settings.count(&RUNS_LEASE_MS),
                ..RunWorkerSettings::of_a_node(settings.size(&RUNS_AT_ONCE))
            }),
            limits: EngineLimits {
                rounds: settings.size(&ROUNDS),
                calls_per_executor: settings.size(&CALLS_PER_EXECUTOR),
                probe_fresh_ms: settings.count(&PROBE_FRESH_MS),
                requests_per_minute_per_key: settings
                    .text(&REQUESTS_PER_MINUTE_PER_KEY)
                    .and_then(|text| text.parse().ok()),
                rounds_per_key: settings.size(&ROUNDS_PER_KEY),
                requests_per_minute_per_account: settings
                    .text(&REQUESTS_PER_MINUTE_PER_ACCOUNT)
                    .and_then(|text| text.parse().ok()),
                rounds_per_account: settings.size(&ROUNDS_PER_ACCOUNT),
                bytes: settings.size(&MEMORY_MIB).saturating_mul(MIB),
                bytes_per_account: settings.size(&MEMORY_MIB_PER_ACCOUNT).saturating_mul(MIB),
                tasks: settings.size(&TASKS_AT_ONCE),
                open_tasks: number(&TASKS_OPEN_PER_ACCOUNT),
                open_agent_runs: number(&RUNS_OPEN_PER_ACCOUNT),
                steps_per_executor: number(&RUNS_PER_EXECUTOR),
                lag: Some(Duration::from_millis(settings.count(&LAG_MS)))
                    .filter(|lag| !lag.is_zero()),
                anonymous_grant_micros: settings.micros(&ANONYMOUS_GRANT_USD),
                anonymous_day_micros: settings.micros(&ANONYMOUS_DAILY_CAP_USD),
                agent_events: agent_event_terms(&settings),
                storage: storage_terms(&settings),
            },
            judges: judges::judges(&settings),
            profiles: built_in().with(settings.profiles().iter().map(|it| it.profile.clone())),
            accounts: account_terms(&settings),
            webhooks: webhooks::webhooks(&settings),
            inbound: inbound(&settings),
            hosts: hosts(&settings),
            tools: tools(&settings),
            trusted_proxies: trusted_proxies(&settings),
            peers: peers(&settings),
            node: node::endpoint(&settings),
            settings,
        }
    }
}

fn storage_terms(settings: &Settings) -> StorageTerms {
    let days = |setting| Duration::from_hours(settings.count(setting).saturating_mul(24));
    StorageTerms {
        quota_bytes: settings.count(&STORAGE_QUOTA_MIB).saturating_mul(1024 * 1024),
        reserve_bytes: StorageTerms::default().reserve_bytes,
        answers: days(&STORAGE_IDEMPOTENCY_DAYS),
        texts: days(&STORAGE_PAYLOAD_DAYS),
        events: days(&STORAGE_EVENT_DAYS),
        keeps_requests: settings.text(&STORAGE_KEEP_REQUESTS) == Some("on"),
    }
}

fn agent_event_terms(settings: &Settings) -> AgentEventTerms {
    AgentEventTerms {
        timeout: Duration::from_millis(settings.count(&AGENT_EVENTS_TIMEOUT_MS)),
        retry_terms: RetryTerms {
            attempts: u32::try_from(settings.count(&AGENT_EVENTS_ATTEMPTS)).unwrap_or(u32::MAX),
            backoff_ms: settings.count(&AGENT_EVENTS_BACKOFF_MS),
            expires_ms: settings.count(&AGENT_EVENTS_EXPIRES_MS),
        },
        pending: u32::try_from(settings.count(&AGENT_EVENTS_PENDING)).unwrap_or(u32::MAX),
        keep: Duration::from_hours(settings.count(&AGENT_EVENTS_KEEP_DAYS).saturating_mul(24)),
    }
}

/// The endpoint is the setting, or else the standard variable of OpenTelemetry.
fn telemetry_options(settings: &Settings) -> Option<telemetry::TelemetryOptions> {
    let given = settings.text(&OTLP_ENDPOINT).map(str::to_owned);
    let endpoint = given.or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"))?;
    let sample_ratio = settings.text(&SAMPLE_RATIO).and_then(|text| text.parse().ok());
    Some(telemetry::TelemetryOptions { endpoint, sample_ratio: sample_ratio.unwrap_or(1.0) })
}

fn inbound(settings: &Settings) -> InboundLimits {
    let millis = |setting| Duration::from_millis(settings.count(setting));
    InboundLimits {
        max_connections: settings.size(&MAX_CONNECTIONS),
        max_connections_per_address: settings.size(&MAX_CONNECTIONS_PER_ADDRESS),
        header_timeout: millis(&HEADER_TIMEOUT_MS),
        idle_timeout: millis(&IDLE_TIMEOUT_MS),
        body_timeout: millis(&BODY_TIMEOUT_MS),
        min_body_rate: settings.count(&MIN_BODY_RATE),
        write_timeout: millis(&WRITE_TIMEOUT_MS),
        drain: Duration::from_secs(settings.count(&DRAIN_SECONDS)),
        shutdown_delay: Duration::from_secs(settings.count(&DELAY_SECONDS)),
        ..InboundLimits::default()
    }
}

fn trusted_proxies(settings: &Settings) -> Vec<IpNet> {
    let given = settings.text(&TRUSTED_PROXIES).map(settings::listed).into_iter().flatten();
    given.filter_map(settings::range).collect()
}

/// The values have already been checked.
fn peers(settings: &Settings) -> PeerOptions {
    let text = |setting| settings.text(setting).map(str::to_owned);
    let usual = PeerOptions::default();
    let registrations =
        settings.text(&AGENT_REGISTRATIONS).map(settings::listed).into_iter().flatten();
    PeerOptions {
        replicas: settings
            .text(&SHIMS_REPLICAS)
            .and_then(|count| count.parse().ok())
            .unwrap_or(usual.replicas),
        loopback_account: settings.text(&LOOPBACK_ACCOUNT).and_then(|id| AccountId::parse(id).ok()),
        agent: text(&PUBLIC_URL).map(|url| AgentProfile {
            url,
            name: text(&AGENT_NAME).unwrap_or_default(),
            description: text(&AGENT_DESCRIPTION).unwrap_or_else(|| AGENT_ABOUT.to_owned()),
            image: text(&AGENT_IMAGE),
            registrations: registrations.filter_map(AgentRegistration::parse).collect(),
        }),
    }
}

/// The configured host names, and the host of the listen address, which may be an IP address.
fn hosts(settings: &Settings) -> Vec<String> {
    let given = settings.text(&MCP_HOSTS).map(settings::listed).into_iter().flatten();
    let listen = settings.text(&LISTEN).and_then(|text| text.rsplit_once(':'));
    given.chain(listen.map(|(host, _)| host)).map(str::to_owned).collect()
}

fn tools(settings: &Settings) -> Vec<String> {
    settings
        .text(&MCP_TOOLS)
        .map(settings::listed)
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect()
}

pub(crate) fn log_format(word: Option<&str>) -> LogFormat {
    if word == Some("json") { LogFormat::Json } else { LogFormat::Text }
}

/// Colours are on for a terminal, unless `NO_COLOR` is set.
pub(crate) fn colours() -> ColourMode {
    let is_plain = variable("NO_COLOR").is_some() || !stdout().is_terminal();
    if is_plain { ColourMode::Off } else { ColourMode::On }
}

/// The program as the user started it, quoted for a shell.
pub(crate) fn program() -> String {
    let name = std::env::args_os().next();
    let name = name.map(|name| name.to_string_lossy().into_owned());
    quoted(&name.filter(|name| !name.is_empty()).unwrap_or_else(|| "jurat".to_owned()))
}

fn quoted(word: &str) -> String {
    let is_plain = |symbol: char| symbol.is_alphanumeric() || "/._-+@%,:=".contains(symbol);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The value of an environment variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads the environment")]
    let value = std::env::var(name);
    value.ok().filter(|value| !value.is_empty())
}

/// The fail points of this process. `JURAT_TEST_KILL_AT` is the number of a point, counted from 1,
/// or its name: the process ends when it first passes that point. `JURAT_TEST_POINTS` is a file
/// that lists the points passed. A release build has no fail points.
pub(crate) fn points() -> Failpoints {
    if !cfg!(debug_assertions) {
        return Failpoints::default();
    }
    let last = variable("JURAT_TEST_KILL_AT");
    let file = variable("JURAT_TEST_POINTS");
    if last.is_none() && file.is_none() {
        return Failpoints::default();
    }
    let passed = Mutex::new(0_u64);
    Failpoints::new(Arc::new(move |name| {
        // Held to the end, so no other thread passes a point after the last one.
        let mut passed = passed.lock();
        *passed += 1;
        if let Some(path) = &file {
            let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let line = format!("{name}\n");
            let _noted = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        }
        if last.as_ref().is_some_and(|last| *last == passed.to_string() || last == name) {
            let _never = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
    }))
}

/// A message for each variable that looks like a setting but is not, with a likely name if any.
pub(crate) fn unknown_variables() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter_map(|name| settings::unknown_variable(&name)).collect()
}

/// A bare name is a file in the state folder. The value has already been checked.
fn location(store: &str, state_dir: &Path) -> StoreLocation {
    if store.starts_with("postgres://") || store.starts_with("postgresql://") {
        return StoreLocation::Postgres { url: store.to_owned(), migrate_url: None };
    }
    let path = Path::new(store);
    let is_bare = path.components().count() == 1 && !store.contains('/');
    StoreLocation::File(if is_bare { state_dir.join(path) } else { path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_path_with_a_space_is_quoted() {
        assert_eq!(quoted("target/release/jurat"), "target/release/jurat");
        assert_eq!(quoted("/my tools/jurat"), "'/my tools/jurat'");
        assert_eq!(quoted("it's/jurat"), r"'it'\''s/jurat'");
    }

    #[test]
    fn the_defaults_of_the_table_are_those_of_the_code() {
        let config = CliConfig::new(Settings::defaults());
        assert_eq!(config.inbound, InboundLimits::default());
        assert_eq!(config.peers, PeerOptions::default());
        assert_eq!(format!("{:?}", config.limits), format!("{:?}", EngineLimits::default()));
        assert_eq!(config.webhooks.terms, WebhookSettings::default().terms);
        assert!(config.node.is_none());
    }

    #[test]
    fn a_bare_name_is_in_the_state_folder() {
        let state = Path::new("/s");
        let file = |path: &str| StoreLocation::File(PathBuf::from(path));
        let location = |store| location(store, state);
        assert_eq!(location("jurat.db"), file("/s/jurat.db"));
        assert_eq!(location("./jurat.db"), file("./jurat.db"));
        assert_eq!(location("./a:b.db"), file("./a:b.db"));
        assert_eq!(location("/data/j.db"), file("/data/j.db"));
        let postgres =
            StoreLocation::Postgres { url: "postgres://h/d".to_owned(), migrate_url: None };
        assert_eq!(location("postgres://h/d"), postgres);
    }
}
