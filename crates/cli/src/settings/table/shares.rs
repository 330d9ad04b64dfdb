//! Settings of what keys and accounts may use of a node, and of what is kept for them.

use crate::settings::{Kind, Privacy, Setting};

pub(crate) static ROUNDS: Setting = Setting {
    name: "limits.rounds",
    variable: "JURAT_LIMITS_ROUNDS",
    flag: None,
    kind: Kind::Count { least: 1, most: 1_000_000 },
    default: Some("1024"),
    about: "Rounds under way on this node; more are refused with `overloaded`.",
    example: "256",
    privacy: Privacy::Open,
};

pub(crate) static CALLS_PER_EXECUTOR: Setting = Setting {
    name: "limits.calls_per_executor",
    variable: "JURAT_LIMITS_CALLS_PER_EXECUTOR",
    flag: None,
    kind: Kind::Count { least: 1, most: 1_000_000 },
    default: Some("256"),
    about: "Calls under way to one executor from this node; more wait for their turn.",
    example: "16",
    privacy: Privacy::Open,
};

pub(crate) static PROBE_FRESH_MS: Setting = Setting {
    name: "limits.probe_fresh_ms",
    variable: "JURAT_LIMITS_PROBE_FRESH_MS",
    flag: None,
    kind: Kind::Count { least: 100, most: 86_400_000 },
    default: Some("15000"),
    about: "How many milliseconds what a check of an executor found is believed; after that, `/health` and `/capabilities` are asked before it is used.",
    example: "5000",
    privacy: Privacy::Open,
};

pub(crate) static LAG_MS: Setting = Setting {
    name: "limits.lag_ms",
    variable: "JURAT_LIMITS_LAG_MS",
    flag: None,
    kind: Kind::Count { least: 0, most: 60_000 },
    default: Some("2"),
    about: "How many milliseconds work that is ready may wait for its turn before new rounds are refused; 0 refuses none for that.",
    example: "10",
    privacy: Privacy::Open,
};

pub(crate) static REQUESTS_PER_MINUTE_PER_KEY: Setting = Setting {
    name: "limits.requests_per_minute_per_key",
    variable: "JURAT_LIMITS_REQUESTS_PER_MINUTE_PER_KEY",
    flag: None,
    kind: Kind::Count { least: 1, most: 1_000_000 },
    default: None,
    about: "Requests a minute on this node of a key that has no limit of its own; without it as many as it likes.",
    example: "600",
    privacy: Privacy::Open,
};

pub(crate) static ROUNDS_PER_KEY: Setting = Setting {
    name: "limits.rounds_per_key",
    variable: "JURAT_LIMITS_ROUNDS_PER_KEY",
    flag: None,
    kind: Kind::Count { least: 1, most: 1_000_000 },
    default: Some("256"),
    about: "Rounds under way on this node of a key that has no limit of its own; more are refused with `rate_limited`.",
    example: "32",
    privacy: Privacy::Open,
};

pub(crate) static REQUESTS_PER_MINUTE_PER_ACCOUNT: Setting = Setting {
    name: "limits.requests_per_minute_per_account",
    variable: "JURAT_LIMITS_REQUESTS_PER_MINUTE_PER_ACCOUNT",
    flag: None,
    kind: Kind::Count { least: 1, most: 1_000_000 },
    default: None,
    about: "Requests a minute on this node of all keys of an account together; without it as many as they like.",
    example: "3000",
    privacy: Privacy::Open,
};

pub(crate) static ROUNDS_PER_ACCOUNT: Setting = Setting {
    name: "limits.rounds_per_account",
    variable: "JURAT_LIMITS_ROUNDS_PER_ACCOUNT",
    flag: None,
    kind: Kind::Count { least: 1, most: 1_000_000 },
    default: Some("512"),
    about: "Rounds under way on this node of all keys of an account together; more are refused with `rate_limited`.",
    example: "64",
    privacy: Privacy::Open,
};

pub(crate) static MEMORY_MIB: Setting = Setting {
    name: "limits.memory_mib",
    variable: "JURAT_LIMITS_MEMORY_MIB",
    flag: None,
    kind: Kind::Count { least: 16, most: 1_000_000 },
    default: Some("512"),
    about: "Memory that requests and rounds under way may take on this node, in MiB; more are refused with `overloaded`.",
    example: "2048",
    privacy: Privacy::Open,
};

pub(crate) static MEMORY_MIB_PER_ACCOUNT: Setting = Setting {
    name: "limits.memory_mib_per_account",
    variable: "JURAT_LIMITS_MEMORY_MIB_PER_ACCOUNT",
    flag: None,
    kind: Kind::Count { least: 1, most: 1_000_000 },
    default: Some("128"),
    about: "The same for those of one account, in MiB; more are refused with `rate_limited`.",
    example: "32",
    privacy: Privacy::Open,
};

pub(crate) static STORAGE_QUOTA_MIB: Setting = Setting {
    name: "storage.quota_mib",
    variable: "JURAT_STORAGE_QUOTA_MIB",
    flag: None,
    kind: Kind::Count { least: 1, most: 1_000_000_000 },
    default: Some("1024"),
    about: "What one account may have stored, in MiB; more is refused with `quota_exceeded`. Decisions and the ledger do not count, and the account of the operator has no limit.",
    example: "10240",
    privacy: Privacy::Open,
};

pub(crate) static STORAGE_IDEMPOTENCY_DAYS: Setting = Setting {
    name: "storage.idempotency_days",
    variable: "JURAT_STORAGE_IDEMPOTENCY_DAYS",
    flag: None,
    kind: Kind::Count { least: 1, most: 36_500 },
    default: Some("30"),
    about: "How many days the answer to a request is kept for whoever sends its `Idempotency-Key` again; later the request is done anew.",
    example: "7",
    privacy: Privacy::Open,
};

pub(crate) static STORAGE_PAYLOAD_DAYS: Setting = Setting {
    name: "storage.payload_days",
    variable: "JURAT_STORAGE_PAYLOAD_DAYS",
    flag: None,
    kind: Kind::Count { least: 1, most: 36_500 },
    default: Some("90"),
    about: "How many days it is kept what was asked and said in a round that has ended; its decision is kept for ever.",
    example: "30",
    privacy: Privacy::Open,
};

pub(crate) static STORAGE_EVENT_DAYS: Setting = Setting {
    name: "storage.event_days",
    variable: "JURAT_STORAGE_EVENT_DAYS",
    flag: None,
    kind: Kind::Count { least: 1, most: 36_500 },
    default: Some("90"),
    about: "How many days the events of a task or a run of several agents are kept when it has ended.",
    example: "365",
    privacy: Privacy::Open,
};

pub(crate) static STORAGE_KEEP_REQUESTS: Setting = Setting {
    name: "storage.keep_requests",
    variable: "JURAT_STORAGE_KEEP_REQUESTS",
    flag: None,
    kind: Kind::Word(&["on", "off"]),
    default: Some("on"),
    about: "Whether what was asked in a round is kept, so that lists and `rounds show` say it; digests are kept in any case.",
    example: "off",
    privacy: Privacy::Open,
};
