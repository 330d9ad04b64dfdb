//! Writes that happen once: what is kept of them under the caller's idempotency key.

use std::{any::Any, fmt, sync::Arc};

use jurat_core::{
    account::ledger::{AccountState, Balance},
    id::{AccountId, RoundId},
    idempotency::SavedAnswer,
    time::Timestamp,
    verifier::{Verifier, registry::DeployedVersion},
};

use crate::ops::key::KeySuccession;

/// What a write leaves behind, in the transaction that does it.
#[derive(Debug, Clone)]
pub struct IdempotencyRecord {
    pub account: AccountId,
    pub key: String,
    pub operation: String,
    /// Tells whether a later request with the key is the same one.
    pub request_digest: String,
    pub answer: IdempotencyAnswer,
    pub at: Timestamp,
}

/// How a result that is known only after the write is answered.
pub(crate) type AnswerFn<T> = Arc<dyn Fn(&T) -> SavedAnswer + Send + Sync>;

/// How a result of any type is answered; nothing for a type that is not meant.
type AnyAnswerFn = Arc<dyn Fn(&dyn Any) -> Option<SavedAnswer> + Send + Sync>;

/// What is answered to those who ask again.
#[derive(Clone)]
pub enum IdempotencyAnswer {
    /// A round is its own answer.
    Round,
    /// A round that takes the place of the one that was noted, which came to nothing because its
    /// node stopped. It is repeated where another took that place before.
    RoundInsteadOf(RoundId),
    Known(SavedAnswer),
    /// Written down when it is known which sessions went along with an executor.
    OfRemoval(AnswerFn<[String]>),
    /// Written down when it is known which key a new one takes the place of.
    OfRotation(AnswerFn<KeySuccession>),
    /// Written down when it is known which version was added.
    OfDeployment(AnswerFn<DeployedVersion>),
    /// Written down when it is known which verifier is gone.
    OfVerifier(AnswerFn<Verifier>),
    /// Written down when it is known what the account has.
    OfBalance(AnswerFn<Balance>),
    /// Written down when it is known how the account stands.
    OfAccount(AnswerFn<AccountState>),
    /// Written down when the write is done, whatever its result is; nothing for another type.
    OfResult(AnyAnswerFn),
}

impl IdempotencyAnswer {
    /// The answer that is known before the write.
    pub(crate) fn known(&self) -> Option<SavedAnswer> {
        if let Self::Known(answer) = self { Some(answer.clone()) } else { None }
    }

    pub(crate) fn of_removal(&self, sessions: &[String]) -> Option<SavedAnswer> {
        if let Self::OfRemoval(answer) = self { Some(answer(sessions)) } else { self.known() }
    }

    pub(crate) fn of_rotation(&self, succession: &KeySuccession) -> Option<SavedAnswer> {
        if let Self::OfRotation(answer) = self { Some(answer(succession)) } else { self.known() }
    }

    pub(crate) fn of_deployment(&self, deployment: &DeployedVersion) -> Option<SavedAnswer> {
        if let Self::OfDeployment(answer) = self { Some(answer(deployment)) } else { self.known() }
    }

    pub(crate) fn of_verifier(&self, verifier: &Verifier) -> Option<SavedAnswer> {
        if let Self::OfVerifier(answer) = self { Some(answer(verifier)) } else { self.known() }
    }

    pub(crate) fn of_balance(&self, balance: &Balance) -> Option<SavedAnswer> {
        if let Self::OfBalance(answer) = self { Some(answer(balance)) } else { self.known() }
    }

    pub(crate) fn of_account(&self, account: &AccountState) -> Option<SavedAnswer> {
        if let Self::OfAccount(answer) = self { Some(answer(account)) } else { self.known() }
    }
}

impl IdempotencyAnswer {
    /// The answer to a result of any type.
    pub(crate) fn of_result(&self, result: &dyn Any) -> Option<SavedAnswer> {
        if let Self::OfResult(answer) = self { answer(result) } else { self.known() }
    }
}

impl fmt::Debug for IdempotencyAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Round => "Round",
            Self::RoundInsteadOf(_) => "RoundInsteadOf",
            Self::Known(_) => "Known",
            Self::OfRemoval(_) => "OfRemoval",
            Self::OfRotation(_) => "OfRotation",
            Self::OfDeployment(_) => "OfDeployment",
            Self::OfVerifier(_) => "OfVerifier",
            Self::OfBalance(_) => "OfBalance",
            Self::OfAccount(_) => "OfAccount",
            Self::OfResult(_) => "OfResult",
        })
    }
}

/// What was done before under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorWrite {
    pub operation: String,
    pub request_digest: String,
    pub round: Option<RoundId>,
    pub answer: Option<SavedAnswer>,
    pub at: Timestamp,
}
