//! Requests that their callers want done once, whatever gets lost on the way.

use std::{fmt, sync::Arc};

use jurat_core::{caller::Caller, id::RoundId, round::Round};
use jurat_store::{DoneBefore, Once, OnceAnswer, SavedAnswer, StoreError, Written};

use crate::{Engine, EngineError};

/// The caller's key, and what it is asked for with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnceKey {
    pub key: String,
    pub operation: &'static str,
    /// Covers the address and the body: the same key with another one is a mistake.
    pub request_digest: String,
}

/// A write under a key, and how its answer reads, which is kept for those who ask again.
#[derive(Debug)]
pub struct Keyed<T> {
    pub once: OnceKey,
    pub saving: Saving<T>,
}

/// How an answer is written down.
pub struct Saving<T> {
    status: u16,
    answer: Arc<dyn Fn(&T) -> String + Send + Sync>,
}

impl<T> Clone for Saving<T> {
    fn clone(&self) -> Self {
        Self { status: self.status, answer: Arc::clone(&self.answer) }
    }
}

impl<T> fmt::Debug for Saving<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saving").field("status", &self.status).finish_non_exhaustive()
    }
}

impl<T> Saving<T> {
    pub fn new(status: u16, answer: impl Fn(&T) -> String + Send + Sync + 'static) -> Self {
        Self { status, answer: Arc::new(answer) }
    }

    pub(crate) fn of(&self, result: &T) -> SavedAnswer {
        SavedAnswer { status: self.status, text: (self.answer)(result) }
    }
}

/// What a write leaves behind in the account of its caller, which says whether it needs room there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Rows of its own.
    Rows,
    /// The note under its idempotency key, and nothing else that counts.
    Note,
    /// Less than before, or the end of something: only the note under its key needs some room, in
    /// the reserve of a full account.
    Less,
}

/// Done now, or found done.
#[derive(Debug)]
pub enum Done<T> {
    Now(T),
    Before(SavedAnswer),
}

impl Engine {
    /// What was answered to the same request before. One that is new needs room for what it leaves.
    pub(crate) async fn done_already<T>(
        &self,
        caller: &Caller,
        keyed: Option<&Keyed<T>>,
        leaves: Leaves,
    ) -> Result<Option<SavedAnswer>, EngineError> {
        let answer = self.answered_before(caller, keyed).await?;
        if answer.is_some() {
            return Ok(answer);
        }
        match leaves {
            Leaves::Rows => self.require_room(caller).await?,
            Leaves::Note if keyed.is_some() => self.require_room(caller).await?,
            Leaves::Less if keyed.is_some() => self.require_reserve(caller).await?,
            Leaves::Note | Leaves::Less => {}
        }
        Ok(None)
    }

    async fn answered_before<T>(
        &self,
        caller: &Caller,
        keyed: Option<&Keyed<T>>,
    ) -> Result<Option<SavedAnswer>, EngineError> {
        let Some(keyed) = keyed else { return Ok(None) };
        let found = self.done_before(caller, &keyed.once).await?;
        Ok(found.and_then(|found| found.answer))
    }

    /// The answer of whoever was quicker with the same key.
    pub(crate) async fn answered_meanwhile<T>(
        &self,
        caller: &Caller,
        keyed: Option<&Keyed<T>>,
    ) -> Result<Done<T>, EngineError> {
        let answer = self.answered_before(caller, keyed).await?;
        answer.map(Done::Before).ok_or(EngineError::Bug("a repeated write has no answer"))
    }

    /// What the store notes of a write, with the answer as far as it is known.
    pub(crate) fn note_of<T>(
        &self,
        caller: &Caller,
        keyed: Option<&Keyed<T>>,
        result: &T,
    ) -> Option<Once> {
        let known = |keyed: &Keyed<T>| OnceAnswer::Known(keyed.saving.of(result));
        keyed.map(|keyed| self.once(caller, &keyed.once, known(keyed)))
    }

    /// What the store notes of a write whose answer is known only when it is done.
    pub(crate) fn note_for<T>(
        &self,
        caller: &Caller,
        keyed: Option<&Keyed<T>>,
        answer: impl FnOnce(Saving<T>) -> OnceAnswer,
    ) -> Option<Once> {
        keyed.map(|keyed| self.once(caller, &keyed.once, answer(keyed.saving.clone())))
    }

    /// Does a write once: finds it done before, or does it and notes its answer with it. The inner
    /// error says why the store refused it.
    pub(crate) async fn write_once<T: 'static, R>(
        &self,
        caller: &Caller,
        keyed: Option<&Keyed<T>>,
        leaves: Leaves,
        write: impl AsyncFnOnce(Option<&Once>) -> Result<Written<T, R>, StoreError>,
    ) -> Result<Result<Done<T>, R>, EngineError> {
        if let Some(answer) = self.done_already(caller, keyed, leaves).await? {
            return Ok(Ok(Done::Before(answer)));
        }
        let once = self.note_for(caller, keyed, |saving: Saving<T>| {
            OnceAnswer::OfResult(Arc::new(move |result| {
                result.downcast_ref().map(|result| saving.of(result))
            }))
        });
        Ok(match write(once.as_ref()).await? {
            Written::Done(result) => Ok(Done::Now(result)),
            Written::Refused(refused) => Err(refused),
            Written::Repeated => Ok(self.answered_meanwhile(caller, keyed).await?),
        })
    }

    /// Replaces the noted answer by the whole one.
    pub(crate) async fn complete_note<T>(
        &self,
        caller: &Caller,
        keyed: Option<&Keyed<T>>,
        result: &T,
    ) {
        let Some(keyed) = keyed else { return };
        let (key, answer) = (&keyed.once.key, keyed.saving.of(result));
        if let Err(error) = self.inner.store.once_answer(caller.account(), key, &answer).await {
            // The note itself is there, so that nothing is done twice.
            tracing::warn!(error = %error, "could not complete a reply under its idempotency key");
        }
    }

    /// The round that the same request began before, as it is now.
    pub(crate) async fn round_before(
        &self,
        caller: &Caller,
        once: Option<&OnceKey>,
    ) -> Result<Option<Round>, EngineError> {
        let Some(once) = once else { return Ok(None) };
        let Some(found) = self.done_before(caller, once).await? else { return Ok(None) };
        let id = found.round.ok_or(EngineError::Bug("a repeated round has no round"))?;
        let round = self.inner.store.round_get(caller.account(), &id).await?;
        round.map(Some).ok_or(EngineError::Bug("a noted round is not there"))
    }

    /// What the store notes of a round, which may take the place of one that its node left.
    pub(crate) fn round_note(
        &self,
        caller: &Caller,
        once: &OnceKey,
        instead_of: Option<RoundId>,
    ) -> Once {
        let answer = instead_of.map_or(OnceAnswer::Round, OnceAnswer::RoundInsteadOf);
        self.once(caller, once, answer)
    }

    async fn done_before(
        &self,
        caller: &Caller,
        once: &OnceKey,
    ) -> Result<Option<DoneBefore>, EngineError> {
        let found = self.inner.store.once_get(caller.account(), &once.key).await?;
        let is_other = |found: &DoneBefore| found.request_digest != once.request_digest;
        if found.as_ref().is_some_and(is_other) {
            return Err(EngineError::KeyReused(once.key.clone()));
        }
        Ok(found)
    }

    fn once(&self, caller: &Caller, once: &OnceKey, answer: OnceAnswer) -> Once {
        Once {
            account: caller.account().clone(),
            key: once.key.clone(),
            operation: once.operation.to_owned(),
            request_digest: once.request_digest.clone(),
            answer,
            at: self.inner.clock.now(),
        }
    }
}
