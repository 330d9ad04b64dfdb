//! The table of settings. A name that is not in it cannot be set.

use super::{Setting, SettingKind};

/// Declares each setting once, in the order in which they are shown.
macro_rules! settings {
    ($($name:ident = $setting:expr;)+) => {
        $(pub(crate) static $name: Setting = $setting;)+

        /// All settings, in the order in which they are shown.
        pub(crate) static ALL: &[&Setting] = &[$(&$name),+];
    };
}

/// A whole number within limits.
const fn count(least: u64, most: u64) -> SettingKind {
    SettingKind::Count { least, most }
}

settings! {
    STATE_DIR = Setting::new("state.dir", "JURAT_STATE_DIR", SettingKind::Folder)
        .about("Folder with the store, the keys and the lock; a config file in that folder cannot set it.")
        .flag("--state-dir").default("./.jurat").example("/var/lib/jurat");

    LISTEN = Setting::new("server.listen", "JURAT_LISTEN", SettingKind::Listen)
        .about("Address that `jurat serve` listens on; port 0 picks a free port.")
        .flag("--listen").default("127.0.0.1:5872").example("0.0.0.0:5872");

    TRUSTED_PROXIES =
        Setting::new("server.trusted_proxies", "JURAT_SERVER_TRUSTED_PROXIES", SettingKind::Ranges)
        .about("Address ranges of the proxies whose X-Forwarded-For or Forwarded header names the client, separated by commas; without it, the peer of the connection is the client.")
        .example("10.0.0.0/8");

    NODE_LISTEN = Setting::new("node.listen", "JURAT_NODE_LISTEN", SettingKind::Sockets)
        .about("Addresses of UDP that `jurat serve` listens on for other nodes, separated by commas; without it, 127.0.0.1:5873 and [::1]:5873 if another setting of `node` is set, and otherwise none.")
        .flag("--node-listen").example("0.0.0.0:5873");

    NODE_NAME = Setting::new("node.name", "JURAT_NODE_NAME", SettingKind::Name)
        .about("Name that this node proposes to nodes that it trusts.")
        .example("Lab");

    NODE_NETWORK = Setting::new("node.network", "JURAT_NODE_NETWORK", SettingKind::Name)
        .about("Name of the network that invitations of this node name; it takes no invitation for another network.")
        .example("example");

    NODE_SCOPES = Setting::new("node.scopes", "JURAT_NODE_SCOPES", SettingKind::NodeScopes)
        .about("Scopes that this node serves, such as `region:eu`, separated by commas; its peers are shown them.")
        .example("region:eu,group:lab");

    NODE_RELAYS = Setting::new("node.relays", "JURAT_NODE_RELAYS", SettingKind::Urls)
        .about("URLs of relays that this node uses to reach others and to be reached, separated by commas; no other relay is ever used.")
        .example("https://relay.example.com");

    NODE_FIND_LOCAL = Setting::new(
        "node.find_local",
        "JURAT_NODE_FIND_LOCAL",
        SettingKind::Word(&["off", "on"]),
    )
        .about("Whether the node announces itself on the local network and finds peers there, by multicast DNS.")
        .default("off").example("on");

    STORE = Setting::new("store.location", "JURAT_STORE", SettingKind::Store)
        .about("Store of the data: a file name in the state folder, a path, or a postgres:// URL.")
        .flag("--store")
        .default("jurat.db")
        .example("postgres://jurat_app@db.example.com/jurat")
        .shown_without_password();

    MIGRATE_URL = Setting::new("store.migrate_url", "JURAT_MIGRATE_URL", SettingKind::Postgres)
        .about("PostgreSQL URL of the role that owns and migrates the tables.")
        .flag("--migrate-url")
        .example("postgres://jurat_owner@db.example.com/jurat")
        .shown_without_password();

    LOG_FILTER = Setting::new("log.filter", "JURAT_LOG", SettingKind::Filter)
        .about("Log filter for standard error; without it, `warn,jurat=info` for a server and `error` for a command.")
        .example("info");

    LOG_FORMAT =
        Setting::new("log.format", "JURAT_LOG_FORMAT", SettingKind::Word(&["text", "json"]))
        .about("Log format of `jurat serve` and `jurat runtime`.")
        .flag("--log-format").default("text").example("json");

    OTLP_ENDPOINT =
        Setting::new("telemetry.otlp_endpoint", "JURAT_TELEMETRY_OTLP_ENDPOINT", SettingKind::Url)
        .about("OpenTelemetry collector for the traces and evaluation events of `jurat serve`; without it, `OTEL_EXPORTER_OTLP_ENDPOINT` is used.")
        .example("http://127.0.0.1:4318").shown_without_password();

    SAMPLE_RATIO =
        Setting::new("telemetry.sample_ratio", "JURAT_TELEMETRY_SAMPLE_RATIO", SettingKind::Share)
        .about("Share of traces to keep, unless the caller started the trace.")
        .default("1.0").example("0.1");

    ROUNDS = Setting::new("limits.rounds", "JURAT_LIMITS_ROUNDS", count(1, 1_000_000))
        .about("Maximum number of concurrent rounds on this node; further ones are refused with `overloaded`.")
        .default("1024").example("256");

    CALLS_PER_EXECUTOR = Setting::new(
        "limits.calls_per_executor",
        "JURAT_LIMITS_CALLS_PER_EXECUTOR",
        count(1, 1_000_000),
    )
        .about("Maximum number of concurrent calls to one executor from this node; further ones wait.")
        .default("256").example("16");

    PROBE_FRESH_MS =
        Setting::new("limits.probe_fresh_ms", "JURAT_LIMITS_PROBE_FRESH_MS", count(100, 86_400_000))
        .about("Milliseconds that the result of a health probe stays valid; after that, the executor is probed again before it is used.")
        .default("15000").example("5000");

    LAG_MS = Setting::new("limits.lag_ms", "JURAT_LIMITS_LAG_MS", count(0, 60_000))
        .about("Scheduling delay in milliseconds beyond which new rounds are refused; 0 turns this limit off.")
        .default("2").example("10");

    REQUESTS_PER_MINUTE_PER_KEY = Setting::new(
        "limits.requests_per_minute_per_key",
        "JURAT_LIMITS_REQUESTS_PER_MINUTE_PER_KEY",
        count(1, 1_000_000),
    )
        .about("Requests per minute and key on this node, for keys without their own limit; without it, unlimited.")
        .example("600");

    ROUNDS_PER_KEY =
        Setting::new("limits.rounds_per_key", "JURAT_LIMITS_ROUNDS_PER_KEY", count(1, 1_000_000))
        .about("Maximum number of concurrent rounds per key on this node, for keys without their own limit; further ones are refused with `rate_limited`.")
        .default("256").example("32");

    REQUESTS_PER_MINUTE_PER_ACCOUNT = Setting::new(
        "limits.requests_per_minute_per_account",
        "JURAT_LIMITS_REQUESTS_PER_MINUTE_PER_ACCOUNT",
        count(1, 1_000_000),
    )
        .about("Requests per minute and account on this node, for all its keys together; without it, unlimited.")
        .example("3000");

    ROUNDS_PER_ACCOUNT = Setting::new(
        "limits.rounds_per_account",
        "JURAT_LIMITS_ROUNDS_PER_ACCOUNT",
        count(1, 1_000_000),
    )
        .about("Maximum number of concurrent rounds per account on this node; further ones are refused with `rate_limited`.")
        .default("512").example("64");

    MEMORY_MIB = Setting::new("limits.memory_mib", "JURAT_LIMITS_MEMORY_MIB", count(16, 1_000_000))
        .about("Memory limit for the requests and rounds in progress on this node, in MiB; further ones are refused with `overloaded`.")
        .default("512").example("2048");

    MEMORY_MIB_PER_ACCOUNT = Setting::new(
        "limits.memory_mib_per_account",
        "JURAT_LIMITS_MEMORY_MIB_PER_ACCOUNT",
        count(1, 1_000_000),
    )
        .about("Memory limit for the requests and rounds of one account, in MiB; further ones are refused with `rate_limited`.")
        .default("128").example("32");

    STORAGE_QUOTA_MIB =
        Setting::new("storage.quota_mib", "JURAT_STORAGE_QUOTA_MIB", count(1, 1_000_000_000))
        .about("Storage quota per account, in MiB; beyond it, writes are refused with `quota_exceeded`. Decisions and the ledger do not count, and the operator's account has no quota.")
        .default("1024").example("10240");

    STORAGE_IDEMPOTENCY_DAYS =
        Setting::new("storage.idempotency_days", "JURAT_STORAGE_IDEMPOTENCY_DAYS", count(1, 36_500))
        .about("Days that the reply to an `Idempotency-Key` is kept; after that, a retry runs the request again.")
        .default("30").example("7");

    STORAGE_PAYLOAD_DAYS =
        Setting::new("storage.payload_days", "JURAT_STORAGE_PAYLOAD_DAYS", count(1, 36_500))
        .about("Days that the question and the answers of an ended round are kept; its decision is kept forever.")
        .default("90").example("30");

    STORAGE_EVENT_DAYS =
        Setting::new("storage.event_days", "JURAT_STORAGE_EVENT_DAYS", count(1, 36_500))
        .about("Days that the contract, candidates, results and events of an ended task or agent run are kept; its outcome is kept forever.")
        .default("90").example("365");

    STORAGE_KEEP_REQUESTS = Setting::new(
        "storage.keep_requests",
        "JURAT_STORAGE_KEEP_REQUESTS",
        SettingKind::Word(&["on", "off"]),
    )
        .about("Whether the question of a round is stored, so that lists and `rounds show` can show it; digests are always stored.")
        .default("on").example("off");

    TASKS_AT_ONCE = Setting::new("tasks.at_once", "JURAT_TASKS_AT_ONCE", count(1, 10_000))
        .about("Maximum number of concurrent tasks on this node; further ones wait.")
        .default("256").example("64");

    TASKS_OPEN_PER_ACCOUNT =
        Setting::new("tasks.open_per_account", "JURAT_TASKS_OPEN_PER_ACCOUNT", count(1, 1_000_000))
        .about("Maximum number of open tasks per account; further ones are refused with `conflict`.")
        .default("10000").example("500");

    RUNS_WORKER =
        Setting::new("runs.worker", "JURAT_RUNS_WORKER", SettingKind::Word(&["on", "off"]))
        .about("Whether `jurat serve` works on runs itself; `off` leaves them to `jurat run worker` on the same PostgreSQL.")
        .default("on").example("off");

    RUNS_AT_ONCE = Setting::new("runs.at_once", "JURAT_RUNS_AT_ONCE", count(1, 10_000))
        .about("Maximum number of concurrent run steps of `jurat serve`.")
        .default("64").example("16");

    RUNS_PER_EXECUTOR =
        Setting::new("runs.per_executor", "JURAT_RUNS_PER_EXECUTOR", count(1, 10_000))
        .about("Maximum number of concurrent run steps per executor, across all nodes and workers.")
        .default("8").example("2");

    RUNS_OPEN_PER_ACCOUNT =
        Setting::new("runs.open_per_account", "JURAT_RUNS_OPEN_PER_ACCOUNT", count(1, 1_000_000))
        .about("Maximum number of open runs per account; further ones are refused with `conflict`.")
        .default("10000").example("100");

    RUNS_LEASE_MS = Setting::new("runs.lease_ms", "JURAT_RUNS_LEASE_MS", count(300, 3_600_000))
        .about("Lease of `jurat serve` on a run step, in milliseconds; without a renewal, another node takes the step.")
        .default("30000").example("10000");

    AGENT_EVENTS_TIMEOUT_MS = Setting::new(
        "agent_events.timeout_ms",
        "JURAT_AGENT_EVENTS_TIMEOUT_MS",
        count(100, 600_000),
    )
        .about("Timeout for an executor to answer an event, in milliseconds.")
        .default("60000").example("10000");

    AGENT_EVENTS_ATTEMPTS =
        Setting::new("agent_events.attempts", "JURAT_AGENT_EVENTS_ATTEMPTS", count(1, 8))
        .about("Maximum number of attempts to deliver an event.")
        .default("3").example("5");

    AGENT_EVENTS_BACKOFF_MS = Setting::new(
        "agent_events.backoff_ms",
        "JURAT_AGENT_EVENTS_BACKOFF_MS",
        count(1, 3_600_000),
    )
        .about("Wait before the second delivery attempt, in milliseconds; it doubles with each further attempt.")
        .default("1000").example("5000");

    AGENT_EVENTS_EXPIRES_MS = Setting::new(
        "agent_events.expires_ms",
        "JURAT_AGENT_EVENTS_EXPIRES_MS",
        count(1_000, 2_592_000_000),
    )
        .about("Maximum age of an event to deliver, in milliseconds.")
        .default("86400000").example("3600000");

    AGENT_EVENTS_PENDING =
        Setting::new("agent_events.pending", "JURAT_AGENT_EVENTS_PENDING", count(1, 100_000))
        .about("Maximum number of undelivered events per account and executor; beyond it, task events are dropped and others refused.")
        .default("1000").example("100");

    AGENT_EVENTS_KEEP_DAYS =
        Setting::new("agent_events.keep_days", "JURAT_AGENT_EVENTS_KEEP_DAYS", count(1, 3_650))
        .about("Days until an event with a final delivery state is deleted, counted from its creation.")
        .default("30").example("7");

    WEBHOOKS_TIMEOUT_MS =
        Setting::new("webhooks.timeout_ms", "JURAT_WEBHOOKS_TIMEOUT_MS", count(100, 60_000))
        .about("Timeout for a webhook to answer, in milliseconds.")
        .default("15000").example("30000");

    WEBHOOKS_PER_ACCOUNT =
        Setting::new("webhooks.per_account", "JURAT_WEBHOOKS_PER_ACCOUNT", count(1, 1_000))
        .about("Maximum number of webhooks per account.")
        .default("10").example("50");

    WEBHOOKS_DELIVERIES_PER_MINUTE = Setting::new(
        "webhooks.deliveries_per_minute",
        "JURAT_WEBHOOKS_DELIVERIES_PER_MINUTE",
        count(1, 1_000_000),
    )
        .about("Maximum number of deliveries per minute, account and node; more wait.")
        .default("600").example("6000");

    WEBHOOKS_DISABLE_AFTER_HOURS = Setting::new(
        "webhooks.disable_after_hours",
        "JURAT_WEBHOOKS_DISABLE_AFTER_HOURS",
        count(1, 8_760),
    )
        .about("Hours that a webhook may fail before it is disabled.")
        .default("120").example("24");

    WEBHOOKS_KEEP_DAYS =
        Setting::new("webhooks.keep_days", "JURAT_WEBHOOKS_KEEP_DAYS", count(1, 3_650))
        .about("Days until a delivery that has ended is deleted, counted from its creation.")
        .default("30").example("7");

    WEBHOOKS_ALLOW = Setting::new("webhooks.allow", "JURAT_WEBHOOKS_ALLOW", SettingKind::Ranges)
        .about("Private address ranges that webhooks may be sent to, also without TLS, separated by commas; without it, only public addresses.")
        .example("10.20.0.0/16");

    MAX_CONNECTIONS = Setting::new(
        "inbound.max_connections",
        "JURAT_INBOUND_MAX_CONNECTIONS",
        count(1, 1_000_000),
    )
        .about("Maximum number of concurrent connections; further ones are told to retry and closed.")
        .default("4096").example("1024");

    MAX_CONNECTIONS_PER_ADDRESS = Setting::new(
        "inbound.max_connections_per_address",
        "JURAT_INBOUND_MAX_CONNECTIONS_PER_ADDRESS",
        count(1, 1_000_000),
    )
        .about("Maximum number of concurrent connections per remote address; loopback has no such limit.")
        .default("256").example("4096");

    HEADER_TIMEOUT_MS = Setting::new(
        "inbound.header_timeout_ms",
        "JURAT_INBOUND_HEADER_TIMEOUT_MS",
        count(100, 600_000),
    )
        .about("Timeout for the head of a request, in milliseconds.")
        .default("10000").example("5000");

    IDLE_TIMEOUT_MS = Setting::new(
        "inbound.idle_timeout_ms",
        "JURAT_INBOUND_IDLE_TIMEOUT_MS",
        count(100, 3_600_000),
    )
        .about("Timeout of an idle connection, in milliseconds.")
        .default("60000").example("15000");

    BODY_TIMEOUT_MS = Setting::new(
        "inbound.body_timeout_ms",
        "JURAT_INBOUND_BODY_TIMEOUT_MS",
        count(100, 600_000),
    )
        .about("Timeout for the whole body of a request, in milliseconds.")
        .default("30000").example("10000");

    MIN_BODY_RATE = Setting::new(
        "inbound.min_body_rate",
        "JURAT_INBOUND_MIN_BODY_RATE",
        count(1, 1_000_000_000),
    )
        .about("Minimum rate in bytes per second for sending a request body and for reading a reply.")
        .default("1024").example("4096");

    WRITE_TIMEOUT_MS = Setting::new(
        "inbound.write_timeout_ms",
        "JURAT_INBOUND_WRITE_TIMEOUT_MS",
        count(100, 600_000),
    )
        .about("Timeout for a peer that does not read its reply, in milliseconds.")
        .default("30000").example("10000");

    DRAIN_SECONDS =
        Setting::new("shutdown.drain_seconds", "JURAT_SHUTDOWN_DRAIN_SECONDS", count(0, 3_600))
        .about("Seconds that rounds in progress may take once the server stops; then they are released.")
        .default("25").example("600");

    DELAY_SECONDS =
        Setting::new("shutdown.delay_seconds", "JURAT_SHUTDOWN_DELAY_SECONDS", count(0, 600))
        .about("Seconds that a stopping server continues to serve, so that load balancers notice.")
        .default("0").example("5");

    MCP_HOSTS = Setting::new("mcp.hosts", "JURAT_MCP_HOSTS", SettingKind::Hosts)
        .about("Host names that Model Context Protocol clients use for `/mcp`, separated by commas; `localhost` and the address of `server.listen` are always accepted.")
        .example("jurat.example.com");

    MCP_TOOLS =
        Setting::new("mcp.tools", "JURAT_MCP_TOOLS", SettingKind::Words(&jurat_server::TOOL_SETS))
        .about("Sets of tools that Model Context Protocol clients can use, separated by commas; without it, all of them, and those of `cortensor` only for clients that name it.")
        .example("consensus,verifiers");

    LOOPBACK_ACCOUNT =
        Setting::new("auth.loopback_account", "JURAT_AUTH_LOOPBACK_ACCOUNT", SettingKind::Account)
        .about("Account of programs on this machine that send no key, or `default-dev-token`; they may start, read and cancel its rounds. Requests through proxies and from browsers always need a key. Without it, everybody does.")
        .example("acct_admin");

    SHIMS_REPLICAS = Setting::new(
        "shims.replicas",
        "JURAT_SHIMS_REPLICAS",
        SettingKind::Word(&["1", "3", "5"]),
    )
        .about("Number of replicas of completions and of requests to `/api/v1/delegate`, `/api/v1/validate` and `/api/v1/factcheck` that do not ask for one; fewer if fewer sessions can answer. Each replica is a call that costs what its session costs.")
        .default("3").example("5");

    AGENT_NAME = Setting::new("erc8004.name", "JURAT_ERC8004_NAME", SettingKind::Text)
        .about("Name in `/.well-known/agent-registration.json`, which exists if `accounts.public_url` is set.")
        .default("Jurat").example("Example Jurat");

    AGENT_DESCRIPTION =
        Setting::new("erc8004.description", "JURAT_ERC8004_DESCRIPTION", SettingKind::Text)
        .about("Description in `/.well-known/agent-registration.json`; without it, a sentence about Jurat.")
        .example("Judges claims for Example.");

    AGENT_IMAGE = Setting::new("erc8004.image", "JURAT_ERC8004_IMAGE", SettingKind::Url)
        .about("URL of the image in `/.well-known/agent-registration.json`; without it, there is none.")
        .example("https://jurat.example.com/agent.png");

    AGENT_REGISTRATIONS = Setting::new(
        "erc8004.registrations",
        "JURAT_ERC8004_REGISTRATIONS",
        SettingKind::AgentRegistrations,
    )
        .about("Entries of the agent in registries, as number@namespace:chain:address, separated by commas.")
        .example("22@eip155:1:0x8004a6090Cd10A7288092483047B097295Fb8847");

    DEFAULT_MODEL =
        Setting::new("judges.default_model", "JURAT_JUDGES_DEFAULT_MODEL", SettingKind::Model)
        .about("Default judge of verifiers; without it, the built-in judge, which follows rules and calls no model.")
        .example("builtin/rules");

    PANEL = Setting::new("judges.panel", "JURAT_JUDGES_PANEL", SettingKind::Models)
        .about("Default judges of verifier runs with several judges, separated by commas.")
        .example("builtin/rules");

    MARGIN_PERCENT =
        Setting::new("judges.margin_percent", "JURAT_JUDGES_MARGIN_PERCENT", count(0, 10_000))
        .about("Percentage that accounts pay on top of the providers' prices.")
        .default("0").example("10");

    CACHE_SECONDS =
        Setting::new("judges.cache_seconds", "JURAT_JUDGES_CACHE_SECONDS", count(0, 315_360_000))
        .about("Seconds that a verdict on the same inputs is cached; 0 asks the judge each time.")
        .default("2592000").example("86400");

    CACHE_MOST = Setting::new("judges.cache_most", "JURAT_JUDGES_CACHE_MOST", count(1, 100_000_000))
        .about("Maximum number of cached verdicts of all accounts together; the oldest are evicted first.")
        .default("100000").example("1000000");

    MEDIA_ALLOW =
        Setting::new("judges.media_allow", "JURAT_JUDGES_MEDIA_ALLOW", SettingKind::Ranges)
        .about("Private address ranges that images and evidence may be fetched from, separated by commas; without it, only public addresses.")
        .example("10.20.0.0/16");

    ANONYMOUS_GRANT_USD =
        Setting::new("anonymous.grant_usd", "JURAT_ANONYMOUS_GRANT_USD", SettingKind::Amount)
        .about("Monthly credit of a network address without a key, for running published verifiers.")
        .default("0.10").example("0.50");

    ANONYMOUS_DAILY_CAP_USD = Setting::new(
        "anonymous.daily_cap_usd",
        "JURAT_ANONYMOUS_DAILY_CAP_USD",
        SettingKind::Amount,
    )
        .about("Daily credit limit for all callers without a key together; 0 refuses all paid runs.")
        .default("1.00").example("5.00");

    X402_PAY_TO = Setting::new("x402.pay_to", "JURAT_X402_PAY_TO", SettingKind::EvmAddress)
        .about("Address on the chain that is paid for single requests under `/api/*/x402`; without it, those routes do not exist.")
        .example("0x209693Bc6afc0C5328bA36FaF03C514EF312287C");

    X402_FACILITATOR_URL =
        Setting::new("x402.facilitator_url", "JURAT_X402_FACILITATOR_URL", SettingKind::Url)
        .about("Facilitator that verifies and settles payments; required with `x402.pay_to`.")
        .example("https://facilitator.example.com").shown_without_password();

    X402_RPC_URL = Setting::new("x402.rpc_url", "JURAT_X402_RPC_URL", SettingKind::Url)
        .about("Node of the chain that proves what was paid; without it, the word of the facilitator counts.")
        .example("https://rpc.example.com").hidden();

    X402_NETWORK = Setting::new(
        "x402.network",
        "JURAT_X402_NETWORK",
        SettingKind::Word(&["base", "base-sepolia"]),
    )
        .about("Chain on which payments in USDC are accepted.")
        .default("base").example("base-sepolia");

    X402_TIMEOUT_MS =
        Setting::new("x402.timeout_ms", "JURAT_X402_TIMEOUT_MS", count(1_000, 300_000))
        .about("How long the facilitator may take to settle a payment, in milliseconds; if the node dies meanwhile, the settlement is repeated soon after that time.")
        .default("45000").example("90000");

    X402_PRICE_PER_REPLICA = Setting::new(
        "x402.price_per_replica",
        "JURAT_X402_PRICE_PER_REPLICA",
        count(1, 1_000_000_000_000),
    )
        .about("Price of each replica, and of each spare that a request asks for, in base units of the token; one unit of USDC is a millionth of a dollar.")
        .default("1000").example("5000");

    X402_REQUIRE_PAYMENT_IDENTIFIER = Setting::new(
        "x402.require_payment_identifier",
        "JURAT_X402_REQUIRE_PAYMENT_IDENTIFIER",
        SettingKind::Word(&["off", "on"]),
    )
        .about("Whether payers must name their payments, which only version 2 of the protocol can.")
        .default("off").example("on");

    X402_ROUNDS_PER_PAYER =
        Setting::new("x402.rounds_per_payer", "JURAT_X402_ROUNDS_PER_PAYER", count(1, 10_000))
        .about("Maximum number of concurrent rounds of one payer on this node, and of its payments whose settlement is not known.")
        .default("8").example("32");

    X402_REQUESTS_PER_MINUTE = Setting::new(
        "x402.requests_per_minute",
        "JURAT_X402_REQUESTS_PER_MINUTE",
        count(1, 1_000_000),
    )
        .about("Paid requests per minute and payer on this node.")
        .default("60").example("600");

    X402_UNCHARGED_ROUNDS =
        Setting::new("x402.uncharged_rounds", "JURAT_X402_UNCHARGED_ROUNDS", count(1, 1_000_000))
        .about("Rounds of one payer on this node within ten minutes that end without a charge, or whose payment fails or stays unknown; all payers who never paid have ten times as many together.")
        .default("3").example("10");

    X402_STORAGE_MIB =
        Setting::new("x402.storage_mib", "JURAT_X402_STORAGE_MIB", count(1, 1_000_000))
        .about("Storage quota of one payer, in MiB; never more than `storage.quota_mib`.")
        .default("64").example("256");

    REGISTRATION = Setting::new(
        "accounts.registration",
        "JURAT_ACCOUNTS_REGISTRATION",
        SettingKind::Word(&["open", "closed"]),
    )
        .about("Whether anyone with an e-mail address can register; otherwise the operator creates accounts.")
        .default("closed").example("open");

    GRANT_USD = Setting::new("accounts.grant_usd", "JURAT_ACCOUNTS_GRANT_USD", SettingKind::Amount)
        .about("Credit of a new account, in US dollars.")
        .default("0").example("5.00");

    PUBLIC_URL = Setting::new("accounts.public_url", "JURAT_ACCOUNTS_PUBLIC_URL", SettingKind::Url)
        .about("Public URL of this server, for the links that it gives to programs; without it, the URL of the request.")
        .example("https://jurat.example.com");

    SMTP_URL = Setting::new("mail.smtp_url", "JURAT_MAIL_SMTP_URL", SettingKind::Text)
        .about("Mail server, as smtps://user:password@host or smtp://host:port; without it, mail is written to the folder `mail` in the state folder.")
        .example("smtps://jurat:secret@mail.example.com").shown_without_password();

    MAIL_FROM = Setting::new("mail.from", "JURAT_MAIL_FROM", SettingKind::Text)
        .about("Sender address of mail.")
        .example("Jurat <jurat@example.com>");

    SERVER = Setting::new("client.server", "JURAT_SERVER", SettingKind::Url)
        .about("Server that commands use, instead of the one of the state folder.")
        .flag("--server").example("https://jurat.example.com").shown_without_password();

    KEY = Setting::new("client.key", "JURAT_KEY", SettingKind::Text)
        .about("API key that commands send; without it, the one in `admin.key` of the state folder.")
        .example("jrt_live_…").hidden();
}

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
