//! The check-up: the state of the store, the executors and the judges, and whether every decision
//! is intact.

mod executors;
mod judges;
mod open_work;
mod payments;
mod profiles;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jurat_core::{
    account::caller::{Caller, Scope},
    checkup::{CheckupFinding, clocks, faults},
    id::{AccountId, RoundId},
};
use jurat_store::{Behalf, EndedRoundsQuery, StoreCheckup, StoreError, StoreErrorKind};

use crate::{Engine, EngineError, access::require_scope};

/// How many records are read concurrently; each may hold several answers of executors.
const READ_AT_ONCE: usize = 4;
/// Clocks always differ a little.
const CLOCK_TOLERANCE_MS: u64 = 2_000;

/// The findings of a check-up.
#[derive(Debug, Clone)]
pub struct Diagnosis {
    pub findings: Vec<CheckupFinding>,
    /// How many decisions there are to check.
    pub ended_rounds: u64,
}

/// Selects the decisions to check.
#[derive(Debug, Clone)]
pub struct EntryCheckQuery {
    /// Starts after this round.
    pub after: Option<(AccountId, RoundId)>,
    /// Skips older rounds.
    pub since: Option<RoundId>,
    pub limit: u32,
}

/// The result of checking decisions.
#[derive(Debug, Clone)]
pub struct EntryCheckReport {
    pub checked: usize,
    pub faults: Vec<EntryFault>,
    /// The last checked round, if there may be more.
    pub next: Option<(AccountId, RoundId)>,
}

/// The fault of one round's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFault {
    pub account: AccountId,
    pub round: RoundId,
    pub fault: String,
}

impl Engine {
    /// Checks the store, the judges and the open work, and probes every executor.
    pub async fn doctor(&self, caller: &Caller) -> Result<Diagnosis, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let checkup = self.inner.store.checkup().run(&Behalf::Platform).await?;
        let mut findings = store_findings(&checkup);
        findings
            .extend(ledger_findings(&self.inner.store.ledger().faults(&Behalf::Platform).await?));
        findings.extend(self.clock_findings(&checkup));
        findings.extend(self.executor_findings().await?);
        findings.extend(self.profile_findings().await?);
        findings.extend(self.judge_findings().await?);
        findings.extend(self.work_findings().await?);
        findings.extend(self.payment_findings().await?);
        Ok(Diagnosis { findings, ended_rounds: checkup.ended_rounds })
    }

    /// The oldest of the newest decisions, `newest` of them.
    pub async fn doctor_since(
        &self,
        caller: &Caller,
        newest: u32,
    ) -> Result<Option<RoundId>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        Ok(self.inner.store.checkup().ended_since(&Behalf::Platform, &newest).await?)
    }

    /// Compares the decisions of all accounts with everything stored besides them.
    pub async fn doctor_entries(
        &self,
        caller: &Caller,
        query: EntryCheckQuery,
    ) -> Result<EntryCheckReport, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let EntryCheckQuery { after, since, limit } = query;
        let rounds = self
            .inner
            .store
            .checkup()
            .ended_rounds(&Behalf::Platform, &EndedRoundsQuery { after, since, limit })
            .await?;
        let checked = rounds.len();
        let is_full = u32::try_from(checked).is_ok_and(|checked| limit <= checked);
        let next = rounds.last().cloned().filter(|_| is_full);
        let found: Vec<Vec<EntryFault>> = stream::iter(rounds)
            .map(|(account, round)| self.entry_faults(account, round))
            .buffered(READ_AT_ONCE)
            .try_collect()
            .await?;
        Ok(EntryCheckReport { checked, faults: found.into_iter().flatten().collect(), next })
    }

    async fn entry_faults(
        &self,
        account: AccountId,
        round: RoundId,
    ) -> Result<Vec<EntryFault>, EngineError> {
        let texts = match self
            .inner
            .store
            .checkup()
            .record(&Behalf::from(&account), &account, &round)
            .await
        {
            Ok(None) => Vec::new(),
            Ok(Some(record)) => match &record.round.closing {
                None => Vec::new(),
                Some(closing) => {
                    let is_erased = record.erased_at.is_some();
                    let open = &record.round.open;
                    let mut texts = faults(open, closing, &record.listed, is_erased);
                    if record.entry_receipt_id != closing.receipt_id {
                        texts.push("its entry is stored under another receipt".to_owned());
                    }
                    texts
                }
            },
            // An unreadable row is a finding; a missing store is an error.
            Err(error @ StoreError { kind: StoreErrorKind::Corrupt { .. }, .. }) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                vec![format!("{error}: {}", source.unwrap_or_default())]
            }
            Err(error) => return Err(error.into()),
        };
        let fault = |fault| EntryFault { account: account.clone(), round: round.clone(), fault };
        Ok(texts.into_iter().map(fault).collect())
    }

    fn clock_findings(&self, checkup: &StoreCheckup) -> Vec<CheckupFinding> {
        let now = self.inner.clock.now();
        let mut findings = Vec::new();
        if let Some(clock) = checkup.clock {
            findings.push(clocks("the database", now, clock));
        }
        match checkup.newest {
            Some(newest) if CLOCK_TOLERANCE_MS < newest.millis_since(now) => {
                let seconds = newest.millis_since(now) / 1_000;
                findings.push(CheckupFinding::problem(
                    "clock",
                    format!("the newest round was opened {seconds} s in the future"),
                    "Correct the clock of this machine and keep it synchronized with NTP; otherwise ids and times of new rounds precede those of old ones.",
                ));
            }
            Some(_) | None => {
                findings.push(CheckupFinding::ok("clock", "no round is in the future"));
            }
        }
        findings
    }
}

fn ledger_findings(faults: &[String]) -> Vec<CheckupFinding> {
    if faults.is_empty() {
        return vec![CheckupFinding::ok("ledger", "every balance matches its ledger lines")];
    }
    let advice = "Find out what changed the database outside Jurat, and restore a backup. If earlier versions captured a charge twice, return it with a grant.";
    faults.iter().map(|fault| CheckupFinding::problem("ledger", fault, advice)).collect()
}

fn store_findings(checkup: &StoreCheckup) -> Vec<CheckupFinding> {
    let mut findings = Vec::new();
    let (found, needed) = (checkup.schema_version, checkup.schema_needed);
    findings.push(if found == needed {
        CheckupFinding::ok("store", format!("it answers; schema version {found}"))
    } else {
        CheckupFinding::warning(
            "store",
            format!("it has schema version {found}, but this program needs {needed}"),
            "Upgrade this node to the newer version of the program.",
        )
    });
    if checkup.faults.is_empty() {
        findings.push(CheckupFinding::ok("store", "the database reports no damage"));
    }
    findings.extend(checkup.faults.iter().map(|fault| {
        CheckupFinding::problem(
            "store",
            format!("the database is damaged: {fault}"),
            "Stop the server, keep a copy of the database, and restore a backup.",
        )
    }));
    findings.extend(checkup.risks.iter().map(|risk| {
        CheckupFinding::warning(
            "store",
            risk.clone(),
            "Turn it on; without it a power failure may lose acknowledged writes.",
        )
    }));
    findings.extend(checkup.strays.iter().map(|round| {
        CheckupFinding::problem(
            "entries",
            format!("round `{round}` has a decision entry but has not ended"),
            "Find out what changed the database outside Jurat, and restore a backup.",
        )
    }));
    findings
}
