//! The registry of stable error codes, shared by every surface.

use std::str::FromStr;

use crate::round::job::words;

words!(
    /// A stable name for an error. Each code has a page under `docs/reference/errors/`.
    ProblemCode {
        /// The key is missing or invalid.
        AuthRequired => "auth_required",
        /// The key lacks a scope.
        Forbidden => "forbidden",
        /// The request names a host, or comes from a web page, that the server does not serve.
        HostRefused => "host_refused",
        /// The body is not JSON, or two parsers could read it differently.
        InvalidJson => "invalid_json",
        /// A field of one of our own resources is wrong.
        ValidationError => "validation_error",
        /// A field of a consensus request is wrong.
        RequestInvalid => "request_invalid",
        /// A known feature that is not implemented.
        NotSupported => "not_supported",
        /// The schema exceeds the limits or refers to something outside itself.
        SchemaRefused => "schema_refused",
        /// The policy does not exist, or its hash or parameters are wrong.
        PolicyInvalid => "policy_invalid",
        NotFound => "not_found",
        /// No account that the caller may know of has the name.
        UserNotFound => "user_not_found",
        MethodNotAllowed => "method_not_allowed",
        /// The name is taken, or the object is in use.
        Conflict => "conflict",
        /// The owner of a workflow cannot leave it.
        WorkflowOwnershipMustTransfer => "workflow_ownership_must_transfer",
        /// The idempotency key was used for another request.
        IdempotencyMismatch => "idempotency_mismatch",
        /// The account has too little credit.
        BudgetExhausted => "budget_exhausted",
        /// The account is suspended: paid work is refused.
        AccountSuspended => "account_suspended",
        /// All visitors together have reached their daily spending limit.
        AnonymousDailyCap => "anonymous_daily_cap",
        /// The request is paid for each time, and has no payment that can be accepted.
        PaymentRequired => "payment_required",
        /// The payment cannot be checked now; nothing was paid.
        PaymentUnavailable => "payment_unavailable",
        /// A judge refused to let it be published.
        SafetyVerificationFailed => "safety_verification_failed",
        /// No judge could decide whether it may be published.
        SafetyVerificationUnavailable => "safety_verification_unavailable",
        /// A code from a mail is wrong or has expired.
        InvalidCredentials => "invalid_credentials",
        /// The text is not a valid handle.
        HandleInvalid => "handle_invalid",
        /// Another account has the handle.
        HandleTaken => "handle_taken",
        /// The handle is reserved.
        HandleReserved => "handle_reserved",
        /// The account already has a handle.
        HandleAlreadyClaimed => "handle_already_claimed",
        /// The account has no handle yet.
        HandleNotClaimed => "handle_not_claimed",
        /// The handle was changed less than 90 days ago.
        HandleRenameTooSoon => "handle_rename_too_soon",
        /// The handle was changed three times this year.
        HandleRenameLimitExceeded => "handle_rename_limit_exceeded",
        /// The invitation was not answered in time.
        InvitationExpired => "invitation_expired",
        /// The invitation was answered or withdrawn.
        InvitationAlreadyResolved => "invitation_already_resolved",
        /// The same invitation is still open.
        InvitationAlreadyPending => "invitation_already_pending",
        /// The account has reached a quota.
        QuotaExceeded => "quota_exceeded",
        /// A session in the pool does not exist.
        SessionUnknown => "session_unknown",
        /// The pool has fewer sessions than replicas.
        SessionPoolTooSmall => "session_pool_too_small",
        /// Too few sessions are live and capable.
        SessionsUnavailable => "sessions_unavailable",
        /// An executor must answer to be registered, and does not.
        ExecutorUnavailable => "executor_unavailable",
        /// Another node cannot be reached, or refuses.
        PeerUnavailable => "peer_unavailable",
        /// `fail_hard` is set, and the replicas disagree.
        ConsensusDisagreement => "consensus_disagreement",
        /// The body arrived too slowly.
        RequestTimeout => "request_timeout",
        PayloadTooLarge => "payload_too_large",
        UnsupportedMediaType => "unsupported_media_type",
        /// The key exceeds its limits.
        RateLimited => "rate_limited",
        /// The server has too much work in progress.
        Overloaded => "overloaded",
        /// The server is shutting down.
        ShuttingDown => "shutting_down",
        StoreUnavailable => "store_unavailable",
        Internal => "internal_error",
    }
);

impl ProblemCode {
    /// The status of the HTTP reply.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::InvalidJson | Self::ValidationError | Self::HandleInvalid => 400,
            Self::AuthRequired | Self::InvalidCredentials => 401,
            Self::BudgetExhausted | Self::AnonymousDailyCap | Self::PaymentRequired => 402,
            Self::Forbidden | Self::AccountSuspended | Self::HostRefused => 403,
            Self::NotFound | Self::UserNotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::Conflict
            | Self::WorkflowOwnershipMustTransfer
            | Self::IdempotencyMismatch
            | Self::ConsensusDisagreement
            | Self::HandleTaken
            | Self::HandleReserved
            | Self::HandleAlreadyClaimed
            | Self::HandleNotClaimed
            | Self::InvitationAlreadyResolved
            | Self::InvitationAlreadyPending => 409,
            Self::InvitationExpired => 410,
            Self::PayloadTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::RequestInvalid
            | Self::NotSupported
            | Self::SchemaRefused
            | Self::PolicyInvalid
            | Self::SessionUnknown
            | Self::SafetyVerificationFailed
            | Self::SessionPoolTooSmall
            | Self::ExecutorUnavailable
            | Self::PeerUnavailable
            | Self::QuotaExceeded => 422,
            Self::RateLimited | Self::HandleRenameTooSoon | Self::HandleRenameLimitExceeded => 429,
            Self::Internal => 500,
            Self::SessionsUnavailable
            | Self::SafetyVerificationUnavailable
            | Self::PaymentUnavailable
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
            | Self::SafetyVerificationFailed
            | Self::SessionPoolTooSmall
            | Self::HandleInvalid => 2,
            Self::AuthRequired
            | Self::Forbidden
            | Self::HostRefused
            | Self::NotFound
            | Self::UserNotFound
            | Self::WorkflowOwnershipMustTransfer
            | Self::MethodNotAllowed
            | Self::Conflict
            | Self::IdempotencyMismatch
            | Self::RequestTimeout
            | Self::RateLimited
            | Self::AnonymousDailyCap
            | Self::PaymentRequired
            | Self::PaymentUnavailable
            | Self::SafetyVerificationUnavailable
            | Self::ShuttingDown
            | Self::BudgetExhausted
            | Self::AccountSuspended
            | Self::ConsensusDisagreement
            | Self::PayloadTooLarge
            | Self::UnsupportedMediaType
            | Self::SessionsUnavailable
            | Self::ExecutorUnavailable
            | Self::PeerUnavailable
            | Self::Overloaded
            | Self::StoreUnavailable
            | Self::InvalidCredentials
            | Self::HandleTaken
            | Self::HandleReserved
            | Self::HandleAlreadyClaimed
            | Self::HandleNotClaimed
            | Self::HandleRenameTooSoon
            | Self::HandleRenameLimitExceeded
            | Self::InvitationExpired
            | Self::InvitationAlreadyResolved
            | Self::InvitationAlreadyPending
            | Self::QuotaExceeded
            | Self::Internal => 1,
        }
    }

    /// The suggested next step, in one sentence.
    #[expect(clippy::too_many_lines, reason = "it is a table with one line for each code")]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::AuthRequired => {
                "Send `Authorization: Bearer <key>`; the first start writes an admin key to `admin.key` in the state folder."
            }
            Self::Forbidden => "Use a key with the scope that the message names.",
            Self::HostRefused => {
                "Call the server as `localhost` or by its IP address, or ask the operator to add the name to `mcp.hosts`."
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
            Self::UserNotFound => {
                "Check the e-mail address or handle; you must be a member of the team."
            }
            Self::WorkflowOwnershipMustTransfer => {
                "Transfer the workflow to another account, archive it, or delete it."
            }
            Self::MethodNotAllowed => "Use the method that the `Allow` header names.",
            Self::Conflict => "Read the current state, then change the request to match it.",
            Self::AnonymousDailyCap => "Use a key, or try again after `resets_at`.",
            Self::PaymentRequired => {
                "Sign a payment for one of `accepts` and send the request again with it."
            }
            Self::PaymentUnavailable => {
                "Send the request again later with the same payment header; do not sign another."
            }
            Self::SafetyVerificationFailed => {
                "Read `reasoning`, fix the problems it names, and publish again."
            }
            Self::SafetyVerificationUnavailable => {
                "Try again later; the operator sets the judge with `judges.default_model`."
            }
            Self::BudgetExhausted => {
                "Ask the operator for credit (`jurat admin grant`); `jurat usage` shows the remaining credit."
            }
            Self::AccountSuspended => {
                "Ask the operator to lift the suspension with `jurat admin resume`."
            }
            Self::InvalidCredentials => "Request a new code and enter it before it expires.",
            Self::HandleInvalid => {
                "Use 3 to 40 lowercase letters, digits and hyphens, with no hyphen at either end."
            }
            Self::HandleTaken | Self::HandleReserved => "Choose another handle.",
            Self::HandleAlreadyClaimed => "Change the handle with `jurat me rename-handle`.",
            Self::HandleNotClaimed => "Claim a handle first, with `jurat me claim-handle`.",
            Self::HandleRenameTooSoon => {
                "Wait until the time in the message before changing the handle again."
            }
            Self::HandleRenameLimitExceeded => {
                "Wait until the next calendar year (UTC) before changing the handle again."
            }
            Self::InvitationExpired => "Ask for a new invitation.",
            Self::InvitationAlreadyResolved => "List invitations to see how it ended.",
            Self::InvitationAlreadyPending => {
                "Wait for an answer, or cancel the pending invitation."
            }
            Self::QuotaExceeded => "Remove what you no longer need, or wait as the message says.",
            Self::SessionUnknown => "List the sessions with `jurat sessions list`.",
            Self::SessionPoolTooSmall => {
                "Name at least as many sessions as replicas, or request fewer replicas."
            }
            Self::SessionsUnavailable => {
                "Run `jurat executors list`, fix the executors that are down, and try again."
            }
            Self::ExecutorUnavailable => {
                "Start the executor and send the request again, or leave out `must_answer` to register it anyway."
            }
            Self::PeerUnavailable => {
                "Check that the other node is running and that its address is reachable from here; if it refuses, ask its operator."
            }
            Self::ConsensusDisagreement => {
                "Read `consensus` and `replicas`, or send the request with `disagreement_policy` `return_all`."
            }
            Self::IdempotencyMismatch => {
                "Use a new `Idempotency-Key` for a new request; repeat a request without changes."
            }
            Self::RequestTimeout => "Send the whole body without pauses, on a faster connection.",
            Self::RateLimited => {
                "Wait for the number of seconds in `Retry-After`, or ask the operator for higher limits on the key."
            }
            Self::ShuttingDown => {
                "Try again after the number of seconds in `Retry-After`, or on another node."
            }
            Self::PayloadTooLarge => "Send a smaller body.",
            Self::UnsupportedMediaType => {
                "Send `Content-Type: application/json` and no `Content-Encoding`."
            }
            Self::Overloaded => "Try again after the number of seconds in `Retry-After`.",
            Self::StoreUnavailable => "Check that the database is up, then try again.",
            Self::Internal => {
                "Report the request id to the operator, who can find the cause in the log."
            }
        }
    }
}
