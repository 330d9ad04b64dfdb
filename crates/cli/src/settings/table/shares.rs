//! Settings of what keys and accounts may use of a node, and of what is kept for them.

use crate::settings::{Setting, SettingKind, SettingPrivacy};

pub(crate) static ROUNDS: Setting = Setting {
    name: "limits.rounds",
    variable: "JURAT_LIMITS_ROUNDS",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000 },
    default: Some("1024"),
    about: "Maximum number of concurrent rounds on this node; further ones are refused with `overloaded`.",
    example: "256",
    privacy: SettingPrivacy::Open,
};

pub(crate) static CALLS_PER_EXECUTOR: Setting = Setting {
    name: "limits.calls_per_executor",
    variable: "JURAT_LIMITS_CALLS_PER_EXECUTOR",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000 },
    default: Some("256"),
    about: "Maximum number of concurrent calls to one executor from this node; further ones wait.",
    example: "16",
    privacy: SettingPrivacy::Open,
};

pub(crate) static PROBE_FRESH_MS: Setting = Setting {
    name: "limits.probe_fresh_ms",
    variable: "JURAT_LIMITS_PROBE_FRESH_MS",
    flag: None,
    kind: SettingKind::Count { least: 100, most: 86_400_000 },
    default: Some("15000"),
    about: "Milliseconds that the result of a health probe stays valid; after that, the executor is probed again before it is used.",
    example: "5000",
    privacy: SettingPrivacy::Open,
};

pub(crate) static LAG_MS: Setting = Setting {
    name: "limits.lag_ms",
    variable: "JURAT_LIMITS_LAG_MS",
    flag: None,
    kind: SettingKind::Count { least: 0, most: 60_000 },
    default: Some("2"),
    about: "Scheduling delay in milliseconds beyond which new rounds are refused; 0 turns this limit off.",
    example: "10",
    privacy: SettingPrivacy::Open,
};

pub(crate) static REQUESTS_PER_MINUTE_PER_KEY: Setting = Setting {
    name: "limits.requests_per_minute_per_key",
    variable: "JURAT_LIMITS_REQUESTS_PER_MINUTE_PER_KEY",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000 },
    default: None,
    about: "Requests per minute and key on this node, for keys without their own limit; without it, unlimited.",
    example: "600",
    privacy: SettingPrivacy::Open,
};

pub(crate) static ROUNDS_PER_KEY: Setting = Setting {
    name: "limits.rounds_per_key",
    variable: "JURAT_LIMITS_ROUNDS_PER_KEY",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000 },
    default: Some("256"),
    about: "Maximum number of concurrent rounds per key on this node, for keys without their own limit; further ones are refused with `rate_limited`.",
    example: "32",
    privacy: SettingPrivacy::Open,
};

pub(crate) static REQUESTS_PER_MINUTE_PER_ACCOUNT: Setting = Setting {
    name: "limits.requests_per_minute_per_account",
    variable: "JURAT_LIMITS_REQUESTS_PER_MINUTE_PER_ACCOUNT",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000 },
    default: None,
    about: "Requests per minute and account on this node, for all its keys together; without it, unlimited.",
    example: "3000",
    privacy: SettingPrivacy::Open,
};

pub(crate) static ROUNDS_PER_ACCOUNT: Setting = Setting {
    name: "limits.rounds_per_account",
    variable: "JURAT_LIMITS_ROUNDS_PER_ACCOUNT",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000 },
    default: Some("512"),
    about: "Maximum number of concurrent rounds per account on this node; further ones are refused with `rate_limited`.",
    example: "64",
    privacy: SettingPrivacy::Open,
};

pub(crate) static MEMORY_MIB: Setting = Setting {
    name: "limits.memory_mib",
    variable: "JURAT_LIMITS_MEMORY_MIB",
    flag: None,
    kind: SettingKind::Count { least: 16, most: 1_000_000 },
    default: Some("512"),
    about: "Memory limit for the requests and rounds in progress on this node, in MiB; further ones are refused with `overloaded`.",
    example: "2048",
    privacy: SettingPrivacy::Open,
};

pub(crate) static MEMORY_MIB_PER_ACCOUNT: Setting = Setting {
    name: "limits.memory_mib_per_account",
    variable: "JURAT_LIMITS_MEMORY_MIB_PER_ACCOUNT",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000 },
    default: Some("128"),
    about: "Memory limit for the requests and rounds of one account, in MiB; further ones are refused with `rate_limited`.",
    example: "32",
    privacy: SettingPrivacy::Open,
};

pub(crate) static STORAGE_QUOTA_MIB: Setting = Setting {
    name: "storage.quota_mib",
    variable: "JURAT_STORAGE_QUOTA_MIB",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 1_000_000_000 },
    default: Some("1024"),
    about: "Storage quota per account, in MiB; beyond it, writes are refused with `quota_exceeded`. Decisions and the ledger do not count, and the operator's account has no quota.",
    example: "10240",
    privacy: SettingPrivacy::Open,
};

pub(crate) static STORAGE_IDEMPOTENCY_DAYS: Setting = Setting {
    name: "storage.idempotency_days",
    variable: "JURAT_STORAGE_IDEMPOTENCY_DAYS",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 36_500 },
    default: Some("30"),
    about: "Days that the reply to an `Idempotency-Key` is kept; after that, a retry runs the request again.",
    example: "7",
    privacy: SettingPrivacy::Open,
};

pub(crate) static STORAGE_PAYLOAD_DAYS: Setting = Setting {
    name: "storage.payload_days",
    variable: "JURAT_STORAGE_PAYLOAD_DAYS",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 36_500 },
    default: Some("90"),
    about: "Days that the question and the answers of an ended round are kept; its decision is kept forever.",
    example: "30",
    privacy: SettingPrivacy::Open,
};

pub(crate) static STORAGE_EVENT_DAYS: Setting = Setting {
    name: "storage.event_days",
    variable: "JURAT_STORAGE_EVENT_DAYS",
    flag: None,
    kind: SettingKind::Count { least: 1, most: 36_500 },
    default: Some("90"),
    about: "Days that the contract, candidates, results and events of an ended task or agent run are kept; its outcome is kept forever.",
    example: "365",
    privacy: SettingPrivacy::Open,
};

pub(crate) static STORAGE_KEEP_REQUESTS: Setting = Setting {
    name: "storage.keep_requests",
    variable: "JURAT_STORAGE_KEEP_REQUESTS",
    flag: None,
    kind: SettingKind::Word(&["on", "off"]),
    default: Some("on"),
    about: "Whether the question of a round is stored, so that lists and `rounds show` can show it; digests are always stored.",
    example: "off",
    privacy: SettingPrivacy::Open,
};
