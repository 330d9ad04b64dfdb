//! Idempotency keys: what a write records under the caller's key.

use std::{any::Any, fmt, sync::Arc};

use jurat_core::{
    account::ledger::{AccountState, Balance},
    id::{AccountId, RoundId},
    idempotency::SavedAnswer,
    time::Timestamp,
    verifier::{Verifier, registry::DeployedVersion},
};

use crate::ops::key::KeySuccession;

/// The record of a write, in the transaction of the write.
#[derive(Debug, Clone)]
pub struct IdempotencyRecord {
    pub account: AccountId,
    pub key: String,
    pub operation: String,
    /// Identifies the request, to recognize a repetition.
    pub request_digest: String,
    pub answer: IdempotencyAnswer,
    pub at: Timestamp,
}

/// Builds the reply from a result that is known only after the write.
pub(crate) type AnswerFn<T> = Arc<dyn Fn(&T) -> SavedAnswer + Send + Sync>;

/// Builds the reply from a result of any type; `None` for an unexpected type.
type AnyAnswerFn = Arc<dyn Fn(&dyn Any) -> Option<SavedAnswer> + Send + Sync>;

/// The reply to a repeated request.
#[derive(Clone)]
pub enum IdempotencyAnswer {
    /// A round is its own reply.
    Round,
    /// A round that replaces the recorded one, which has no result because its node stopped. It
    /// counts as a repetition if another round replaced it before.
    RoundInsteadOf(RoundId),
    Known(SavedAnswer),
    /// Recorded once the removed sessions of an executor are known.
    OfRemoval(AnswerFn<[String]>),
    /// Recorded once the replaced key is known.
    OfRotation(AnswerFn<KeySuccession>),
    /// Recorded once the added version is known.
    OfDeployment(AnswerFn<DeployedVersion>),
    /// Recorded once the removed verifier is known.
    OfVerifier(AnswerFn<Verifier>),
    /// Recorded once the balance is known.
    OfBalance(AnswerFn<Balance>),
    /// Recorded once the state of the account is known.
    OfAccount(AnswerFn<AccountState>),
    /// Recorded when the write is done, for a result of this type.
    OfResult(AnyAnswerFn),
}

impl IdempotencyAnswer {
    /// The reply that is known before the write.
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
    /// The reply for a result of any type.
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

/// An earlier write under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorWrite {
    pub operation: String,
    pub request_digest: String,
    pub round: Option<RoundId>,
    pub answer: Option<SavedAnswer>,
    pub at: Timestamp,
}
