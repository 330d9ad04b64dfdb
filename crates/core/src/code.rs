//! The registry of stable error codes. One registry serves every surface.

use std::str::FromStr;

use crate::job::words;

words!(
    /// A stable name for what went wrong. Each has a page under `docs/reference/errors/`.
    Code {
        /// No key, or one that is not valid.
        AuthRequired => "auth_required",
        /// The key lacks a scope.
        Forbidden => "forbidden",
        /// The request names a host, or comes from a web page, that the server does not serve.
        HostRefused => "host_refused",
        /// The body is not JSON, or has two readings.
        InvalidJson => "invalid_json",
        /// A field of one of our own resources is wrong.
        ValidationError => "validation_error",
        /// A field of a consensus request is wrong.
        RequestInvalid => "request_invalid",
        /// Known, and not built.
        NotSupported => "not_supported",
        /// The schema exceeds the bounds or refers to something outside itself.
        SchemaRefused => "schema_refused",
        /// The policy does not exist, or its hash or parameters are wrong.
        PolicyInvalid => "policy_invalid",
        NotFound => "not_found",
        MethodNotAllowed => "method_not_allowed",
        /// A name that is taken, or an object that is in use.
        Conflict => "conflict",
        /// An idempotency key that was used for another request.
        IdempotencyMismatch => "idempotency_mismatch",
        /// The credit of the account does not pay for it.
        BudgetExhausted => "budget_exhausted",
        /// The account may not have anything done that costs.
        AccountSuspended => "account_suspended",
        /// A session in the pool does not exist.
        SessionUnknown => "session_unknown",
        /// The pool has fewer sessions than replicas.
        SessionPoolTooSmall => "session_pool_too_small",
        /// Too few sessions are live and capable.
        SessionsUnavailable => "sessions_unavailable",
        /// `fail_hard`, and the replicas disagree.
        ConsensusDisagreement => "consensus_disagreement",
        /// The body came too slowly.
        RequestTimeout => "request_timeout",
        PayloadTooLarge => "payload_too_large",
        UnsupportedMediaType => "unsupported_media_type",
        /// The key asks for more than its limits allow.
        RateLimited => "rate_limited",
        /// Too much work at once.
        Overloaded => "overloaded",
        /// The server is about to end.
        ShuttingDown => "shutting_down",
        StoreUnavailable => "store_unavailable",
        Internal => "internal_error",
    }
);

impl Code {
    /// The status of the HTTP reply.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::InvalidJson | Self::ValidationError => 400,
            Self::AuthRequired => 401,
            Self::BudgetExhausted => 402,
            Self::Forbidden | Self::AccountSuspended | Self::HostRefused => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::Conflict | Self::IdempotencyMismatch | Self::ConsensusDisagreement => 409,
            Self::PayloadTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::RequestInvalid
            | Self::NotSupported
            | Self::SchemaRefused
            | Self::PolicyInvalid
            | Self::SessionUnknown
            | Self::SessionPoolTooSmall => 422,
            Self::RateLimited => 429,
            Self::Internal => 500,
            Self::SessionsUnavailable
            | Self::Overloaded
            | Self::ShuttingDown
            | Self::StoreUnavailable => 503,
        }
    }

    /// The exit code of the command line.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::InvalidJson
            | Self::ValidationError
            | Self::RequestInvalid
            | Self::NotSupported
            | Self::SchemaRefused
            | Self::PolicyInvalid
            | Self::SessionUnknown
            | Self::SessionPoolTooSmall => 2,
            Self::AuthRequired
            | Self::Forbidden
            | Self::HostRefused
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::Conflict
            | Self::IdempotencyMismatch
            | Self::RequestTimeout
            | Self::RateLimited
            | Self::ShuttingDown
            | Self::BudgetExhausted
            | Self::AccountSuspended
            | Self::ConsensusDisagreement
            | Self::PayloadTooLarge
            | Self::UnsupportedMediaType
            | Self::SessionsUnavailable
            | Self::Overloaded
            | Self::StoreUnavailable
            | Self::Internal => 1,
        }
    }

    /// What to try next, in one sentence.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::AuthRequired => {
                "Send `Authorization: Bearer <key>`; the first start writes an admin key to `admin.key` in the state folder."
            }
            Self::Forbidden => "Use a key with the scope that the message names.",
            Self::HostRefused => {
                "Call the server as `localhost` or by its address, or have the operator add the name to `mcp.hosts`."
            }
            Self::InvalidJson => "Send one JSON document in UTF-8 without duplicate keys.",
            Self::ValidationError | Self::RequestInvalid => {
                "Correct the field that the message names and send the request again."
            }
            Self::NotSupported => "Leave the option out, or choose one that the message names.",
            Self::SchemaRefused => {
                "Make the schema smaller, and keep every `$ref` within the document."
            }
            Self::PolicyInvalid => {
                "Leave `policy_hash` out, and check `policy_id` and `policy_params` against the policy's page."
            }
            Self::NotFound => "Check the address and the identifier.",
            Self::MethodNotAllowed => "Use the method that the `Allow` header names.",
            Self::Conflict => {
                "Read the current state, which contradicts the request, and change the request to fit it."
            }
            Self::BudgetExhausted => {
                "Ask the operator for credit, who grants it with `jurat admin grant`; `jurat usage` shows what is left."
            }
            Self::AccountSuspended => "Ask the operator, who lifts it with `jurat admin resume`.",
            Self::SessionUnknown => "List the sessions with `jurat sessions list`.",
            Self::SessionPoolTooSmall => {
                "Name at least as many sessions as replicas, or ask for fewer replicas."
            }
            Self::SessionsUnavailable => {
                "Look at `jurat executors list`, mend what is down, and try again."
            }
            Self::ConsensusDisagreement => {
                "Read `consensus` and `replicas`, or ask with `disagreement_policy` `return_all`."
            }
            Self::IdempotencyMismatch => {
                "Use a new `Idempotency-Key` for a new request; repeat a request only as it was."
            }
            Self::RequestTimeout => "Send the whole body at once, over a faster line.",
            Self::RateLimited => {
                "Wait for the seconds in `Retry-After`, or ask the operator for higher limits on the key."
            }
            Self::ShuttingDown => {
                "Try again after the seconds in `Retry-After`, or on another node."
            }
            Self::PayloadTooLarge => "Send a smaller body.",
            Self::UnsupportedMediaType => {
                "Send `Content-Type: application/json` and no `Content-Encoding`."
            }
            Self::Overloaded => "Try again after the seconds in `Retry-After`.",
            Self::StoreUnavailable => "Check that the database is up, then try again.",
            Self::Internal => "Report the request id to the operator; the log has the cause.",
        }
    }
}
