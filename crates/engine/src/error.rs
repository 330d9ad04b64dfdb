//! The errors of the engine. Faults of executors are data, not errors.

use jurat_core::{
    account::{caller::Scope, ledger::usd},
    code::ProblemCode,
    policy::BindError,
    round::select::SelectError,
    schema::SchemaError,
    time::Timestamp,
    verifier::InputError,
    workflow::AccessRole,
};
use jurat_store::{StoreError, StoreErrorKind};

use crate::LimitExceeded;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the key lacks the scope `{}`", .0.as_str())]
    Forbidden(Scope),
    /// The key has the scope, but this operation is not allowed.
    #[error("{0}")]
    Denied(&'static str),
    #[error("there is no {what} `{id}`")]
    NotFound { what: &'static str, id: String },
    /// The caller has no object of this name, but reaches those of others by these full names.
    #[error("you have no {what} `{id}`")]
    NamedElsewhere { what: &'static str, id: String, names: Vec<String> },
    #[error("{0}")]
    Conflict(String),
    /// A rule with an error code of its own.
    #[error("{detail}")]
    Refused { code: ProblemCode, field: Option<&'static str>, detail: String },
    /// A deploy that does not follow the current version.
    #[error("{problem}")]
    Token { problem: String, current: Option<String> },
    /// A save that does not follow the current version.
    #[error("{problem}")]
    SaveToken { problem: String, current: Option<String> },
    /// A token of something that the caller cannot change by a bare name.
    #[error(
        "`expected_version_token` does not belong to a {what} `{id}` that you accepted and may change"
    )]
    TokenOfNone { what: &'static str, id: String, names: Vec<String> },
    #[error("there is no user or team with this name")]
    UserNotFound,
    #[error("the owner of a workflow cannot leave it")]
    OwnerStays,
    #[error("this needs the role `{needs}` on the workflow, but yours is `{has}`")]
    RoleTooLow { has: AccessRole, needs: AccessRole },
    #[error("you cannot grant a higher role than your own, which is `{0}`")]
    RoleAboveOwn(AccessRole),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("`{field}` {reason}")]
    Invalid { field: &'static str, reason: String },
    #[error("`{field}` {reason}")]
    NotSupported { field: &'static str, reason: String },
    #[error(transparent)]
    Select(#[from] SelectError),
    #[error("the output schema is refused: {0}")]
    Schema(SchemaError),
    #[error("too many checks are waiting")]
    ChecksBusy,
    #[error("the claim cannot be checked within the work limits: {0}")]
    TooMuchWork(String),
    #[error("the policy is refused: {0}")]
    Policy(BindError),
    #[error("the idempotency key `{0}` was used for another request")]
    KeyReused(String),
    #[error(
        "the account's credit is too low: this costs at least {} USD, and {} USD is available",
        usd(*needed_micros), usd(*available_micros)
    )]
    Overdrawn { needed_micros: i64, available_micros: i64 },
    #[error(
        "the account's credit covers one call at a time, and others were in progress until the deadline"
    )]
    CreditInUse,
    #[error("the account is suspended")]
    Suspended,
    /// For background work: a request under such a key is not admitted at all.
    #[error("the key that submitted it was revoked or has expired")]
    KeyEnded,
    #[error("the daily credit for callers without a key is spent or reserved")]
    DaySpent { resets_at: Timestamp },
    #[error("the template is not published: {reasoning}")]
    Unsafe { reasoning: String, run_id: String },
    #[error("the safety of the template could not be judged: {0}")]
    ScreenUnavailable(String),
    #[error("too many rounds are in progress")]
    Overloaded,
    #[error("{0}")]
    Late(&'static str),
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error(transparent)]
    Limited(#[from] LimitExceeded),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a defect: {0}")]
    Bug(&'static str),
}

impl EngineError {
    /// A rule with an error code of its own forbids it.
    pub(crate) fn refused(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self::Refused { code, field: None, detail: detail.into() }
    }

    /// For a caller that names a verifier in a policy, a misfit is an invalid parameter.
    pub(crate) fn invalid_parameter(error: InputError) -> Self {
        Self::Policy(BindError::Params { field: error.field, problem: error.problem })
    }

    pub fn code(&self) -> ProblemCode {
        match self {
            Self::Forbidden(_)
            | Self::Denied(_)
            | Self::KeyEnded
            | Self::RoleTooLow { .. }
            | Self::RoleAboveOwn(_) => ProblemCode::Forbidden,
            Self::NotFound { .. } | Self::NamedElsewhere { .. } => ProblemCode::NotFound,
            Self::Refused { code, .. } => *code,
            Self::UserNotFound => ProblemCode::UserNotFound,
            Self::OwnerStays => ProblemCode::WorkflowOwnershipMustTransfer,
            Self::Conflict(_)
            | Self::Token { .. }
            | Self::SaveToken { .. }
            | Self::TokenOfNone { .. } => ProblemCode::Conflict,
            Self::Invalid { .. } | Self::Input(_) => ProblemCode::ValidationError,
            Self::NotSupported { .. } => ProblemCode::NotSupported,
            Self::Select(
                SelectError::Unknown(_)
                | SelectError::NoExecutor(_)
                | SelectError::NoSession { .. }
                | SelectError::Unpriced { .. }
                | SelectError::UnpricedJudge { .. }
                | SelectError::Empty(_),
            ) => ProblemCode::SessionUnknown,
            Self::Select(SelectError::Twice(_)) => ProblemCode::RequestInvalid,
            Self::Select(SelectError::TooSmall { .. }) => ProblemCode::SessionPoolTooSmall,
            Self::Select(SelectError::Unavailable { .. }) => ProblemCode::SessionsUnavailable,
            Self::Schema(_) | Self::TooMuchWork(_) => ProblemCode::SchemaRefused,
            Self::Policy(_) => ProblemCode::PolicyInvalid,
            Self::KeyReused(_) => ProblemCode::IdempotencyMismatch,
            Self::Overdrawn { .. } | Self::CreditInUse => ProblemCode::BudgetExhausted,
            Self::Suspended => ProblemCode::AccountSuspended,
            Self::DaySpent { .. } => ProblemCode::AnonymousDailyCap,
            Self::Unsafe { .. } => ProblemCode::SafetyVerificationFailed,
            Self::ScreenUnavailable(_) => ProblemCode::SafetyVerificationUnavailable,
            Self::ChecksBusy | Self::Overloaded | Self::Late(_) => ProblemCode::Overloaded,
            Self::Limited(_) => ProblemCode::RateLimited,
            Self::ShuttingDown => ProblemCode::ShuttingDown,
            Self::Store(StoreError { kind: StoreErrorKind::Unavailable, .. }) => {
                ProblemCode::StoreUnavailable
            }
            Self::Store(_) | Self::Bug(_) => ProblemCode::Internal,
        }
    }

    /// The field of the request that is wrong, if there is one.
    pub fn field(&self) -> Option<String> {
        let field = match self {
            Self::Policy(BindError::Params { field, .. }) => {
                return Some(format!("policy.{field}"));
            }
            Self::Input(error) => return Some(error.field.clone()),
            Self::Refused { field, .. } => *field,
            Self::Invalid { field, .. } | Self::NotSupported { field, .. } => Some(*field),
            Self::Select(
                SelectError::Unknown(_)
                | SelectError::NoExecutor(_)
                | SelectError::NoSession { .. }
                | SelectError::Unpriced { .. }
                | SelectError::UnpricedJudge { .. }
                | SelectError::Empty(_)
                | SelectError::Twice(_)
                | SelectError::TooSmall { .. },
            ) => Some("consensus.session_pool"),
            Self::Schema(_) | Self::TooMuchWork(_) => Some("output_schema"),
            Self::Policy(_) => Some("policy"),
            Self::Forbidden(_)
            | Self::Denied(_)
            | Self::NotFound { .. }
            | Self::NamedElsewhere { .. }
            | Self::Conflict(_)
            | Self::Token { .. }
            | Self::SaveToken { .. }
            | Self::TokenOfNone { .. }
            | Self::UserNotFound
            | Self::OwnerStays
            | Self::RoleTooLow { .. }
            | Self::RoleAboveOwn(_)
            | Self::Select(SelectError::Unavailable { .. })
            | Self::KeyReused(_)
            | Self::Overdrawn { .. }
            | Self::CreditInUse
            | Self::Suspended
            | Self::KeyEnded
            | Self::DaySpent { .. }
            | Self::Unsafe { .. }
            | Self::ScreenUnavailable(_)
            | Self::ChecksBusy
            | Self::Overloaded
            | Self::Late(_)
            | Self::Limited(_)
            | Self::ShuttingDown
            | Self::Store(_)
            | Self::Bug(_) => None,
        };
        field.map(str::to_owned)
    }
}
