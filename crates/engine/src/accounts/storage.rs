//! Enforces storage quotas, stores the payloads of rounds, and prunes old data.

use std::time::Duration;

use jurat_core::{
    account::caller::{Caller, CreditMode, Scope},
    code::ProblemCode,
    id::{AccountId, RoundId},
    round::{RetainedRequest, Round, RoundRequest, RoundSummary},
    time::Timestamp,
};
use jurat_store::{
    Behalf, ErasureRefusal, PruneCounts, PruneOrder, RoundErasure, RoundKey, RoundKeys,
    StorageFull, StorageUsage,
};

use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves,
    access::{require_key, require_scope},
};

/// Rows of each kind that are removed in one transaction.
const AT_ONCE: u32 = 200;
/// The upper limit of a count for a dry run.
const MOST_COUNTED: u32 = 1_000_000;
/// A cached total is trusted while at least this much is left.
const AMPLE_BYTES: u64 = 64 * 1024 * 1024;
/// Beyond this many parts a sum is slow, so the parts are merged.
const MANY_PARTS: u64 = 1_000;
const STORED_FRESH_FOR: Duration = Duration::from_secs(1);

/// How much accounts may store, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageTerms {
    /// The quota of one account; the operator's own account has none.
    pub quota_bytes: u64,
    /// How far replies to writes that free storage may exceed the quota. More than one write can
    /// take an account past it.
    pub reserve_bytes: u32,
    /// How long replies are kept for a repeated idempotency key.
    pub answers: Duration,
    /// How long requests and answers of ended rounds are kept.
    pub texts: Duration,
    /// How long ended tasks and runs are kept in full.
    pub events: Duration,
    /// Whether requests are kept.
    pub keeps_requests: bool,
}

impl Default for StorageTerms {
    fn default() -> Self {
        let days = |days: u64| Duration::from_hours(24 * days);
        Self {
            quota_bytes: 1024 * 1024 * 1024,
            reserve_bytes: 16 * 1024 * 1024,
            answers: days(30),
            texts: days(90),
            events: days(90),
            keeps_requests: true,
        }
    }
}

/// The stored bytes of accounts, read a moment ago.
pub(crate) struct StoredBytesCache(moka::sync::Cache<AccountId, u64>);

impl StoredBytesCache {
    pub(crate) fn new() -> Self {
        Self(
            moka::sync::Cache::builder()
                .max_capacity(10_000)
                .time_to_live(STORED_FRESH_FOR)
                .build(),
        )
    }
}

/// The rows that were removed, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneReport {
    pub pruned: PruneCounts,
    /// Accounts with removed rows.
    pub accounts: u64,
}

impl Engine {
    /// Refuses to store more for an account that has reached its quota.
    pub(crate) async fn require_storage(&self, caller: &Caller) -> Result<(), EngineError> {
        self.require_room_within(caller, self.quota_of(caller)).await
    }

    /// Lets a write that frees storage keep its reply in a full account, up to the reserve. Without
    /// that limit, revoking the same object under new keys would fill the store.
    pub(crate) async fn require_reserve(&self, caller: &Caller) -> Result<(), EngineError> {
        let quota_bytes = self.quota_of(caller);
        let StorageTerms { reserve_bytes, .. } = self.inner.limits.storage;
        self.require_room_within(caller, quota_bytes.saturating_add(reserve_bytes.into())).await
    }

    /// The quota of the caller's account; payers without an account have one of their own.
    fn quota_of(&self, caller: &Caller) -> u64 {
        let quota_bytes = self.inner.limits.storage.quota_bytes;
        let is_payer = caller.credit() == CreditMode::Prepaid;
        let settings = self.inner.payments.as_ref().filter(|_| is_payer);
        settings.map_or(quota_bytes, |it| it.limits.quota_bytes.min(quota_bytes))
    }

    async fn require_room_within(&self, caller: &Caller, most: u64) -> Result<(), EngineError> {
        if caller.credit() == CreditMode::Unmetered {
            return Ok(());
        }
        let account = caller.account();
        let known = self.inner.stored_bytes.0.get(account);
        if known.is_some_and(|bytes| bytes.saturating_add(AMPLE_BYTES) < most) {
            return Ok(());
        }
        let behalf = Behalf::Account(account.clone());
        let StorageUsage { bytes, parts } =
            self.inner.store.storage().bytes(&behalf, account).await?;
        if MANY_PARTS < parts {
            self.inner.store.storage().sum(&behalf, account).await?;
        }
        self.inner.stored_bytes.0.insert(account.clone(), bytes);
        if bytes < most {
            return Ok(());
        }
        let quota_bytes = self.quota_of(caller);
        Err(full(&StorageFull { account: account.clone(), bytes, quota_bytes }))
    }

    /// How many bytes the caller's account has stored, and its quota; the operator's own account
    /// has none.
    pub async fn storage_show(&self, caller: &Caller) -> Result<(u64, Option<u64>), EngineError> {
        let account = caller.account();
        let behalf = Behalf::Account(account.clone());
        let stored = self.inner.store.storage().bytes(&behalf, account).await?;
        let quota = self.inner.limits.storage.quota_bytes;
        Ok((stored.bytes, (caller.credit() != CreditMode::Unmetered).then_some(quota)))
    }

    /// Whether the requests of rounds are kept.
    pub fn keeps_requests(&self) -> bool {
        self.inner.limits.storage.keeps_requests
    }

    /// The payload to keep for a round. Rounds of visitors and of payers without an account keep
    /// none, because nobody can read them.
    pub(crate) fn kept_content(
        &self,
        caller: &Caller,
        asked: impl FnOnce() -> RoundRequest,
    ) -> RetainedRequest {
        // Callers without a key cannot ask for it again.
        let has_reader = !matches!(
            caller.credit(),
            CreditMode::Anonymous | CreditMode::Prepaid | CreditMode::Booked
        );
        let is_kept = self.inner.limits.storage.keeps_requests && has_reader;
        RetainedRequest { asked: is_kept.then(asked), erased_at: None }
    }

    /// Adds the stored payload to a round.
    pub(crate) async fn with_kept_content(&self, mut round: Round) -> Result<Round, EngineError> {
        let account = round.open.account.clone();
        let of = RoundKey { account: account.clone(), round: round.open.id.clone() };
        let behalf = Behalf::Account(account);
        round.open.kept = self.inner.store.storage().retained(&behalf, &of).await?;
        Ok(round)
    }

    /// Adds the summary of the request to each line.
    pub(crate) async fn with_asked_lines(
        &self,
        account: &AccountId,
        mut rounds: Vec<RoundSummary>,
    ) -> Result<Vec<RoundSummary>, EngineError> {
        let ids = rounds.iter().map(|round| round.open.id.clone()).collect();
        let of = RoundKeys { account: account.clone(), rounds: ids };
        let behalf = Behalf::Account(account.clone());
        for (id, line) in self.inner.store.storage().request_lines(&behalf, &of).await? {
            let round = rounds.iter_mut().find(|round| round.open.id == id);
            if let Some(round) = round {
                round.open.kept.asked = Some(RoundRequest { line, request: None });
            }
        }
        Ok(rounds)
    }

    /// Erases the request and the answers of an ended round. Its decision stays, with the digests
    /// of the erased data. Erasing is permanent.
    pub async fn round_erase(
        &self,
        caller: &Caller,
        id: &RoundId,
        keyed: Option<IdempotentWrite<Timestamp>>,
    ) -> Result<IdempotentOutcome<Timestamp>, EngineError> {
        require_scope(caller, Scope::RoundsCreate)?;
        require_key(caller)?;
        let account = caller.account();
        let round = self.round_of(account, id).await?;
        if let Some(step) = &round.open.step
            && self.is_task_open(account, &step.task_id).await?
        {
            return Err(EngineError::Conflict(format!(
                "the round belongs to the task `{}`, which has not ended",
                step.task_id
            )));
        }
        let at = self.inner.clock.now();
        let erasing = RoundErasure { account: account.clone(), round: id.clone(), at };
        let behalf = Behalf::Account(account.clone());
        let storage = self.inner.store.storage();
        let erased = self
            .write_idempotent(caller, keyed.as_ref(), Leaves::Less, async |once| {
                let writing = storage.erase_round(&behalf, &erasing, once);
                self.inner.metrics.write("round_erase", writing).await
            })
            .await?;
        erased.map_err(|refused| match refused {
            ErasureRefusal::Unknown => EngineError::NotFound { what: "round", id: id.to_string() },
            ErasureRefusal::Open => EngineError::Conflict(format!(
                "the round `{id}` has not ended; cancel it, or wait until it ends"
            )),
        })
    }

    /// Prunes the old data of all accounts, or counts it.
    pub async fn prune(&self, caller: &Caller, is_dry: bool) -> Result<PruneReport, EngineError> {
        require_scope(caller, Scope::Admin)?;
        if is_dry { self.prune_accounts(is_dry).await } else { self.prune_stored().await }
    }

    /// Prunes old data. Concurrent nodes remove different rows.
    pub(crate) async fn prune_stored(&self) -> Result<PruneReport, EngineError> {
        let mut report = self.prune_accounts(false).await?;
        report.pruned.agent_events = self.prune_agent_events().await?;
        report.pruned.webhook_deliveries = self.prune_webhook_deliveries().await?;
        Ok(report)
    }

    async fn prune_accounts(&self, is_dry: bool) -> Result<PruneReport, EngineError> {
        let storage = self.inner.store.storage();
        let (mut after, mut report) = (String::new(), PruneReport::default());
        while let Some(account) = storage.account_after(&Behalf::Platform, &after).await? {
            after = account.as_str().to_owned();
            let pruned = if is_dry {
                let order = self.prune_order(&account, MOST_COUNTED);
                storage.prunable(&Behalf::Account(account), &order).await?
            } else {
                self.prune_account(&account).await?
            };
            report.accounts += u64::from(0 < pruned.most());
            report.pruned = report.pruned.and(pruned);
            if self.is_stopping() {
                break;
            }
        }
        Ok(report)
    }

    async fn prune_account(&self, account: &AccountId) -> Result<PruneCounts, EngineError> {
        let storage = self.inner.store.storage();
        let order = self.prune_order(account, AT_ONCE);
        let behalf = Behalf::Account(account.clone());
        let mut all = PruneCounts::default();
        if !self.has_something_to_prune(&behalf, account).await? {
            return Ok(all);
        }
        loop {
            let writing = storage.prune(&behalf, &order);
            let pruned = self.inner.metrics.write("prune", writing).await?;
            all = all.and(pruned);
            if pruned.most() < u64::from(AT_ONCE) || self.is_stopping() {
                return Ok(all);
            }
        }
    }

    /// Whether an account has old data or many parts: most accounts have neither, and a read is
    /// cheaper than a write.
    async fn has_something_to_prune(
        &self,
        behalf: &Behalf,
        account: &AccountId,
    ) -> Result<bool, EngineError> {
        let storage = self.inner.store.storage();
        let found = storage.prunable(behalf, &self.prune_order(account, 1)).await?;
        // Agent events and webhook deliveries have pruning operations of their own.
        if 0 < (PruneCounts { agent_events: 0, webhook_deliveries: 0, ..found }).most() {
            return Ok(true);
        }
        let StorageUsage { parts, .. } = storage.bytes(behalf, account).await?;
        Ok(MANY_PARTS < parts)
    }

    fn prune_order(&self, account: &AccountId, limit: u32) -> PruneOrder {
        let (terms, now) = (&self.inner.limits.storage, self.inner.clock.now());
        let before = |keep: Duration| {
            let keep = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
            Timestamp::from_micros(now.micros().saturating_sub(keep))
        };
        PruneOrder {
            account: account.clone(),
            at: now,
            answers_before: before(terms.answers),
            texts_before: before(terms.texts),
            events_before: before(terms.events),
            agent_events_before: before(self.inner.limits.agent_events.keep),
            deliveries_before: before(self.inner.webhooks.terms().keep),
            limit,
        }
    }
}

/// The error for an account without room, for the account itself.
pub(crate) fn full(full: &StorageFull) -> EngineError {
    let StorageFull { bytes, quota_bytes, .. } = full;
    let detail =
        format!("the account has stored {bytes} bytes, and its quota is {quota_bytes} bytes");
    EngineError::refused(ProblemCode::QuotaExceeded, detail)
}

/// The error for a caller that adds to something of another account. It does not reveal how much
/// the owner has stored.
pub(crate) fn no_room(caller: &Caller, found: &StorageFull, what: &str) -> EngineError {
    if found.account == *caller.account() {
        return full(found);
    }
    let detail = format!(
        "the owner of the {what} has used up their storage quota, which new versions count against; ask them to free space"
    );
    EngineError::refused(ProblemCode::QuotaExceeded, detail)
}
