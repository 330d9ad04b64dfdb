//! Lists what the engine cannot do. A fault of an executor is not an error: it is data.

use jurat_core::{
    account::caller::Scope, code::ProblemCode, policy::BindError, round::select::SelectError,
    schema::SchemaError, time::Timestamp, verifier::InputError,
};
use jurat_guard::sandbox::{PolicyRefusal, SandboxError, SchemaRefusal};
use jurat_store::{StoreError, StoreErrorKind};

use crate::LimitExceeded;

/// The reason why an operation failed. A variant exists for each kind that callers tell apart.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A field of the request is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("there is no {what} `{id}`")]
    NotFound { what: &'static str, id: String },
    #[error("{0}")]
    Conflict(String),
    /// A rule with a code of its own forbids it.
    #[error("{0}")]
    Refused(Box<EngineRefusal>),
    #[error(transparent)]
    Select(#[from] SelectError),
    #[error("the output schema is refused: {0}")]
    Schema(SchemaError),
    #[error("the policy is refused: {0}")]
    Policy(BindError),
    #[error(transparent)]
    Limited(#[from] LimitExceeded),
    /// This node has too much to do.
    #[error("{0}")]
    Busy(&'static str),
    /// Work in the background lost the key that submitted it. A request under such a key is not
    /// admitted at all.
    #[error("the key that submitted it was revoked or has expired")]
    KeyEnded,
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a defect: {0}")]
    Bug(&'static str),
}

/// A rule that forbids a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct EngineRefusal {
    pub code: ProblemCode,
    /// The field of the request that is wrong, if there is one.
    pub field: Option<&'static str>,
    pub detail: String,
    pub context: Option<RefusalContext>,
}

/// What helps a caller after a refusal, besides its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalContext {
    /// The token of the current version, with the verb that needs it: `deploy` or `save`.
    CurrentToken {
        verb: &'static str,
        token: String,
    },
    /// The caller has none with this name; these are the full names of those shared with it.
    SharedNames {
        what: &'static str,
        id: String,
        names: Vec<String>,
    },
    /// The token belongs to none that the caller may change; these are the full names of others.
    TokenOfNone {
        what: &'static str,
        names: Vec<String>,
    },
    /// A user with a higher role may do it.
    HigherRole,
    /// Executors must be healthy first.
    Unhealthy,
    ResetsAt(Timestamp),
    /// The judgment that stopped a publication.
    Judgment {
        reasoning: String,
        run_id: String,
    },
}

impl EngineError {
    pub(crate) const CHECKS_BUSY: Self = Self::Busy("too many checks are waiting");

    /// A rule with a code of its own forbids it.
    pub(crate) fn refused(code: ProblemCode, detail: impl Into<String>) -> Self {
        let (field, detail, context) = (None, detail.into(), None);
        Self::Refused(Box::new(EngineRefusal { code, field, detail, context }))
    }

    /// Adds the field that is wrong to a refusal.
    pub(crate) fn at(mut self, field: &'static str) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.field = Some(field);
        }
        self
    }

    /// Adds what helps the caller to a refusal.
    pub(crate) fn with(mut self, context: RefusalContext) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.context = Some(context);
        }
        self
    }

    /// A field of the request is wrong.
    pub(crate) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Input(InputError { field: field.into(), problem: problem.into() })
    }

    /// A field of the request asks for more than this server can do.
    pub(crate) fn not_supported(field: &'static str, reason: &str) -> Self {
        Self::refused(ProblemCode::NotSupported, format!("`{field}` {reason}")).at(field)
    }

    /// The key of the caller lacks a scope.
    pub fn missing_scope(scope: Scope) -> Self {
        let detail = format!("the key lacks the scope `{}`", scope.as_str());
        Self::refused(ProblemCode::Forbidden, detail)
    }

    /// The scope suffices, and still the caller may not do it.
    pub(crate) fn denied(detail: &str) -> Self {
        Self::refused(ProblemCode::Forbidden, detail)
    }

    /// A deploy or save does not follow the current version.
    pub(crate) fn token_conflict(
        verb: &'static str,
        detail: String,
        current: Option<String>,
    ) -> Self {
        let refused = Self::refused(ProblemCode::Conflict, detail);
        match current {
            Some(token) => refused.with(RefusalContext::CurrentToken { verb, token }),
            None => refused,
        }
    }

    /// The caller has none with the name, and reaches those of others by these full names.
    pub(crate) fn named_elsewhere(what: &'static str, id: String, names: Vec<String>) -> Self {
        Self::refused(ProblemCode::NotFound, format!("you have no {what} `{id}`"))
            .with(RefusalContext::SharedNames { what, id, names })
    }

    /// A token leads to nothing that the caller may change by a bare name.
    pub(crate) fn token_of_none(what: &'static str, id: &str, names: Vec<String>) -> Self {
        let detail = format!(
            "`expected_version_token` does not belong to a {what} `{id}` that you accepted and may change"
        );
        Self::refused(ProblemCode::Conflict, detail)
            .with(RefusalContext::TokenOfNone { what, names })
    }

    pub(crate) fn suspended() -> Self {
        Self::refused(ProblemCode::AccountSuspended, "the account is suspended")
    }

    pub(crate) fn credit_in_use() -> Self {
        let detail = "the account's credit covers one call at a time, and others were in progress until the deadline";
        Self::refused(ProblemCode::BudgetExhausted, detail)
    }

    pub(crate) fn user_not_found() -> Self {
        Self::refused(ProblemCode::UserNotFound, "there is no user or team with this name")
    }

    /// To a caller who names a verifier in a policy, what does not fit it is a wrong parameter.
    pub(crate) fn invalid_parameter(error: InputError) -> Self {
        Self::Policy(BindError::Params { field: error.field, problem: error.problem })
    }

    /// What helps the caller after a refusal.
    pub fn context(&self) -> Option<&RefusalContext> {
        if let Self::Refused(refusal) = self { refusal.context.as_ref() } else { None }
    }

    pub fn code(&self) -> ProblemCode {
        match self {
            Self::Input(_) => ProblemCode::ValidationError,
            Self::NotFound { .. } => ProblemCode::NotFound,
            Self::Conflict(_) => ProblemCode::Conflict,
            Self::Refused(refusal) => refusal.code,
            Self::Select(error) => select_code(error),
            Self::Schema(_) => ProblemCode::SchemaRefused,
            Self::Policy(_) => ProblemCode::PolicyInvalid,
            Self::Limited(_) => ProblemCode::RateLimited,
            Self::Busy(_) => ProblemCode::Overloaded,
            Self::KeyEnded => ProblemCode::Forbidden,
            Self::ShuttingDown => ProblemCode::ShuttingDown,
            Self::Store(StoreError { kind: StoreErrorKind::Unavailable, .. }) => {
                ProblemCode::StoreUnavailable
            }
            Self::Store(_) | Self::Bug(_) => ProblemCode::Internal,
        }
    }

    /// The field of the request that is wrong, if there is one.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::Input(error) => Some(error.field.clone()),
            Self::Refused(refusal) => refusal.field.map(str::to_owned),
            Self::Select(SelectError::Unavailable { .. })
            | Self::NotFound { .. }
            | Self::Conflict(_)
            | Self::Limited(_)
            | Self::Busy(_)
            | Self::KeyEnded
            | Self::ShuttingDown
            | Self::Store(_)
            | Self::Bug(_) => None,
            Self::Select(_) => Some("consensus.session_pool".to_owned()),
            Self::Schema(_) => Some("output_schema".to_owned()),
            Self::Policy(BindError::Params { field, .. }) => Some(format!("policy.{field}")),
            Self::Policy(_) => Some("policy".to_owned()),
        }
    }
}

const fn select_code(error: &SelectError) -> ProblemCode {
    match error {
        SelectError::Unknown(_)
        | SelectError::NoExecutor(_)
        | SelectError::NoSession { .. }
        | SelectError::Unpriced { .. }
        | SelectError::UnpricedJudge { .. }
        | SelectError::Empty(_) => ProblemCode::SessionUnknown,
        SelectError::Twice(_) => ProblemCode::RequestInvalid,
        SelectError::TooSmall { .. } => ProblemCode::SessionPoolTooSmall,
        SelectError::Unavailable { .. } => ProblemCode::SessionsUnavailable,
    }
}

impl From<SchemaRefusal> for EngineError {
    fn from(refusal: SchemaRefusal) -> Self {
        match refusal {
            SchemaRefusal::Schema(error) => Self::Schema(error),
            SchemaRefusal::Busy => Self::CHECKS_BUSY,
            SchemaRefusal::Crashed => Self::Bug("a schema could not be compiled"),
        }
    }
}

impl From<PolicyRefusal> for EngineError {
    fn from(refusal: PolicyRefusal) -> Self {
        match refusal {
            PolicyRefusal::Policy(error) => Self::Policy(error),
            PolicyRefusal::NotDone(SandboxError::Busy) => Self::CHECKS_BUSY,
            PolicyRefusal::NotDone(SandboxError::Crashed) => {
                Self::Bug("a policy could not be compiled")
            }
        }
    }
}
