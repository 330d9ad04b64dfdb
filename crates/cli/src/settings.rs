//! Every setting of the program: its names, its type, its default and what it is for.

mod file;
mod nearest;
mod page;
pub(crate) mod providers;
mod resolve;
mod table;
mod value;

pub(crate) use self::{
    file::{FILE_NAME, read as read_file},
    nearest::unknown_variable,
    page::{example, topic},
    resolve::{CommandLineSettings, ResolvedSetting, SettingOrigin, Settings},
    table::{
        AGENT_EVENTS_ATTEMPTS, AGENT_EVENTS_BACKOFF_MS, AGENT_EVENTS_EXPIRES_MS,
        AGENT_EVENTS_KEEP_DAYS, AGENT_EVENTS_PENDING, AGENT_EVENTS_TIMEOUT_MS, ALL,
        ANONYMOUS_DAILY_CAP_USD, ANONYMOUS_GRANT_USD, BODY_TIMEOUT_MS, CACHE_MOST, CACHE_SECONDS,
        CALLS_PER_EXECUTOR, DEFAULT_MODEL, DELAY_SECONDS, DRAIN_SECONDS, GRANT_USD,
        HEADER_TIMEOUT_MS, IDLE_TIMEOUT_MS, KEY, LAG_MS, LISTEN, LOG_FILTER, LOG_FORMAT, MAIL_FROM,
        MARGIN_PERCENT, MAX_CONNECTIONS, MAX_CONNECTIONS_PER_ADDRESS, MCP_HOSTS, MEDIA_ALLOW,
        MEMORY_MIB, MEMORY_MIB_PER_ACCOUNT, MIGRATE_URL, MIN_BODY_RATE, OTLP_ENDPOINT, PANEL,
        PROBE_FRESH_MS, PUBLIC_URL, REGISTRATION, REQUESTS_PER_MINUTE_PER_ACCOUNT,
        REQUESTS_PER_MINUTE_PER_KEY, ROUNDS, ROUNDS_PER_ACCOUNT, ROUNDS_PER_KEY, RUNS_AT_ONCE,
        RUNS_LEASE_MS, RUNS_OPEN_PER_ACCOUNT, RUNS_PER_EXECUTOR, RUNS_WORKER, SAMPLE_RATIO, SERVER,
        SMTP_URL, STATE_DIR, STORAGE_EVENT_DAYS, STORAGE_IDEMPOTENCY_DAYS, STORAGE_KEEP_REQUESTS,
        STORAGE_PAYLOAD_DAYS, STORAGE_QUOTA_MIB, STORE, TASKS_AT_ONCE, TASKS_OPEN_PER_ACCOUNT,
        TRUSTED_PROXIES, WRITE_TIMEOUT_MS,
    },
    value::{listed, range},
};

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The dotted name, as the file has it.
    pub(crate) name: &'static str,
    pub(crate) variable: &'static str,
    pub(crate) flag: Option<&'static str>,
    pub(crate) kind: SettingKind,
    /// Without one, the setting has no value until somebody gives it one.
    pub(crate) default: Option<&'static str>,
    /// One sentence.
    pub(crate) about: &'static str,
    /// A value that differs from the default and could be meant, for the example file.
    pub(crate) example: &'static str,
    pub(crate) privacy: SettingPrivacy,
}

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingKind {
    Text,
    Folder,
    /// A host or an address, and a port.
    Listen,
    /// An http or https address.
    Url,
    /// Names of hosts with commas between them.
    Hosts,
    /// A file, or an address of PostgreSQL.
    Store,
    Postgres,
    /// What is logged.
    Filter,
    /// The name of an environment variable.
    Variable,
    /// A judge: provider and model.
    Model,
    /// Judges, with commas between them.
    Models,
    /// Ranges of network addresses, with commas between them.
    Ranges,
    Word(&'static [&'static str]),
    /// An amount of credits with up to six places.
    Amount,
    /// A number from 0 to 1.
    Share,
    Count {
        least: u64,
        most: u64,
    },
}

/// How much of a value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingPrivacy {
    Open,
    /// An address, which is shown without its password.
    Address,
    /// Only whether it is set.
    Hidden,
}

impl Setting {
    /// The value as anyone may see it.
    pub(crate) fn shown(&self, value: &str) -> String {
        match self.privacy {
            SettingPrivacy::Open => value.to_owned(),
            SettingPrivacy::Address => value::without_password(value),
            SettingPrivacy::Hidden => "(hidden)".to_owned(),
        }
    }

    /// The value in its plain form, or what is wrong with it.
    pub(crate) fn parse(&self, text: &str) -> Result<String, String> {
        value::parse(self.kind, text)
    }

    /// What a value must be, to be read behind the words `must be`.
    pub(crate) fn expects(&self) -> String {
        value::expected(self.kind)
    }
}
