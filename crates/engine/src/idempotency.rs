//! Makes a write under an idempotency key happen once, whatever gets lost on the way.

use std::{fmt, sync::Arc};

use jurat_core::{
    account::caller::Caller, code::ProblemCode, id::RoundId, idempotency::SavedAnswer, round::Round,
};
use jurat_store::{
    Behalf, IdempotencyAnswer, IdempotencyRecord, PriorWrite, RoundOpening, StoreError,
    WriteOutcome,
};

use crate::{Engine, EngineError};

/// The caller's key, and the operation that it is used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    pub operation: &'static str,
    /// Covers the address and the body: reusing a key for another request is an error.
    pub request_digest: String,
}

/// A write under a key, and the encoding of its reply, which is stored for repeated requests.
#[derive(Debug)]
pub struct IdempotentWrite<T> {
    pub key: IdempotencyKey,
    pub encoder: AnswerEncoder<T>,
}

/// How the surface encodes a reply.
pub struct AnswerEncoder<T>(Arc<dyn Fn(&T) -> SavedAnswer + Send + Sync>);

impl<T> Clone for AnswerEncoder<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for AnswerEncoder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerEncoder").finish_non_exhaustive()
    }
}

impl<T> AnswerEncoder<T> {
    pub fn new(encode: impl Fn(&T) -> SavedAnswer + Send + Sync + 'static) -> Self {
        Self(Arc::new(encode))
    }

    pub(crate) fn encode(&self, result: &T) -> SavedAnswer {
        (self.0)(result)
    }
}

/// What a write stores in the account of its caller, which decides whether it needs room there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Rows of its own.
    Rows,
    /// Only the record of its idempotency key.
    Note,
    /// Less than before: only the record of its key needs room, in the reserve of a full account.
    Less,
}

/// Done now, or found done.
#[derive(Debug)]
pub enum IdempotentOutcome<T> {
    Now(T),
    Before(SavedAnswer),
}

impl Engine {
    /// The reply to the same request, if it was done before. A new request needs room for what it
    /// stores.
    pub(crate) async fn done_already<T>(
        &self,
        caller: &Caller,
        keyed: Option<&IdempotentWrite<T>>,
        leaves: Leaves,
    ) -> Result<Option<SavedAnswer>, EngineError> {
        let answer = self.saved_answer(caller, keyed).await?;
        if answer.is_some() {
            return Ok(answer);
        }
        match leaves {
            Leaves::Rows => self.require_storage(caller).await?,
            Leaves::Note if keyed.is_some() => self.require_storage(caller).await?,
            Leaves::Less if keyed.is_some() => self.require_reserve(caller).await?,
            Leaves::Note | Leaves::Less => {}
        }
        Ok(None)
    }

    async fn saved_answer<T>(
        &self,
        caller: &Caller,
        keyed: Option<&IdempotentWrite<T>>,
    ) -> Result<Option<SavedAnswer>, EngineError> {
        let Some(keyed) = keyed else { return Ok(None) };
        let found = self.find_record(caller, &keyed.key).await?;
        Ok(found.and_then(|found| found.answer))
    }

    /// The reply of a concurrent request with the same key.
    pub(crate) async fn concurrent_answer<T>(
        &self,
        caller: &Caller,
        keyed: Option<&IdempotentWrite<T>>,
    ) -> Result<IdempotentOutcome<T>, EngineError> {
        let answer = self.saved_answer(caller, keyed).await?;
        answer
            .map(IdempotentOutcome::Before)
            .ok_or(EngineError::Bug("a repeated write has no answer"))
    }

    /// The idempotency record of a write, with the reply as far as it is known.
    pub(crate) fn idempotency_record<T, R>(
        &self,
        caller: &Caller,
        keyed: Option<&IdempotentWrite<T>>,
        result: &T,
    ) -> Option<IdempotencyRecord<R>> {
        let known =
            |keyed: &IdempotentWrite<T>| IdempotencyAnswer::Known(keyed.encoder.encode(result));
        keyed.map(|keyed| self.record_for(caller, &keyed.key, known(keyed)))
    }

    /// The idempotency record of a write whose result is the reply.
    pub(crate) fn result_record<T: 'static>(
        &self,
        caller: &Caller,
        keyed: Option<&IdempotentWrite<T>>,
    ) -> Option<IdempotencyRecord<T>> {
        self.pending_record(caller, keyed, |encoder| {
            IdempotencyAnswer::of(move |result| encoder.encode(result))
        })
    }

    /// The idempotency record of a write whose reply is made of its result.
    pub(crate) fn pending_record<T, R>(
        &self,
        caller: &Caller,
        keyed: Option<&IdempotentWrite<T>>,
        answer: impl FnOnce(AnswerEncoder<T>) -> IdempotencyAnswer<R>,
    ) -> Option<IdempotencyRecord<R>> {
        keyed.map(|keyed| self.record_for(caller, &keyed.key, answer(keyed.encoder.clone())))
    }

    /// Does a write once: finds it done before, or does it and records its reply with it. The inner
    /// error says why the store refused it.
    pub(crate) async fn write_idempotent<T: 'static, R>(
        &self,
        caller: &Caller,
        keyed: Option<&IdempotentWrite<T>>,
        leaves: Leaves,
        write: impl AsyncFnOnce(Option<&IdempotencyRecord<T>>) -> Result<WriteOutcome<T, R>, StoreError>,
    ) -> Result<Result<IdempotentOutcome<T>, R>, EngineError> {
        if let Some(answer) = self.done_already(caller, keyed, leaves).await? {
            return Ok(Ok(IdempotentOutcome::Before(answer)));
        }
        let once = self.result_record(caller, keyed);
        Ok(match write(once.as_ref()).await? {
            WriteOutcome::Done(result) => Ok(IdempotentOutcome::Now(result)),
            WriteOutcome::Refused(refused) => Err(refused),
            WriteOutcome::Repeated => Ok(self.concurrent_answer(caller, keyed).await?),
        })
    }

    /// Replaces the recorded reply by the complete one.
    pub(crate) async fn complete_record<T>(
        &self,
        caller: &Caller,
        keyed: Option<&IdempotentWrite<T>>,
        result: &T,
    ) {
        let Some(keyed) = keyed else { return };
        let (key, answer) = (&keyed.key.key, keyed.encoder.encode(result));
        if let Err(error) = self
            .inner
            .store
            .idempotency()
            .set_answer(&Behalf::from(caller.account()), caller.account(), key, &answer)
            .await
        {
            // The record itself exists, so nothing is done twice.
            tracing::warn!(error = %error, "could not complete a reply under its idempotency key");
        }
    }

    /// The round that the same request started before, in its current state.
    pub(crate) async fn round_under_key(
        &self,
        caller: &Caller,
        once: Option<&IdempotencyKey>,
    ) -> Result<Option<Round>, EngineError> {
        let Some(once) = once else { return Ok(None) };
        let Some(found) = self.find_record(caller, once).await? else { return Ok(None) };
        let id = found.round.ok_or(EngineError::Bug("a repeated round has no round"))?;
        let round = self
            .inner
            .store
            .rounds()
            .get(&Behalf::from(caller.account()), caller.account(), &id)
            .await?;
        round.map(Some).ok_or(EngineError::Bug("a noted round is not there"))
    }

    /// The idempotency record of a round, which may replace a round that its node abandoned.
    pub(crate) fn round_record(
        &self,
        caller: &Caller,
        once: &IdempotencyKey,
        instead_of: Option<RoundId>,
    ) -> IdempotencyRecord<RoundOpening> {
        let answer = instead_of.map_or(IdempotencyAnswer::Round, IdempotencyAnswer::RoundInsteadOf);
        self.record_for(caller, once, answer)
    }

    async fn find_record(
        &self,
        caller: &Caller,
        once: &IdempotencyKey,
    ) -> Result<Option<PriorWrite>, EngineError> {
        let found = self
            .inner
            .store
            .idempotency()
            .get(&Behalf::from(caller.account()), caller.account(), &once.key)
            .await?;
        let is_other = |found: &PriorWrite| found.request_digest != once.request_digest;
        if found.as_ref().is_some_and(is_other) {
            return Err(EngineError::refused(
                ProblemCode::IdempotencyMismatch,
                format!("the idempotency key `{}` was used for another request", once.key),
            ));
        }
        Ok(found)
    }

    fn record_for<T>(
        &self,
        caller: &Caller,
        once: &IdempotencyKey,
        answer: IdempotencyAnswer<T>,
    ) -> IdempotencyRecord<T> {
        IdempotencyRecord {
            account: caller.account().clone(),
            key: once.key.clone(),
            operation: once.operation.to_owned(),
            request_digest: once.request_digest.clone(),
            answer,
            at: self.inner.clock.now(),
        }
    }
}
