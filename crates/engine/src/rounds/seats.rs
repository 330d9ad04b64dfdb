//! Decides who takes the seats of a round: sessions of executors, judges of a verifier, or the node
//! itself.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jurat_core::{
    account::{
        caller::{Caller, CreditMode},
        ledger::{CostEstimate, CreditHold},
    },
    executor::{
        Capabilities,
        session::{BUILTIN_SESSION, NODE_FAMILY, NODE_MODEL, Session, Tier},
    },
    policy::SEMANTIC,
    round::{
        Seat,
        consensus::reliability_prior,
        job::{Job, JobKind, PoolEntry},
        select::{EligibleSession, SelectError, Selection, missing_mode, select},
    },
    time::Timestamp,
    verifier::{ModelRef, VerifierVersion},
};
use tokio::time::Instant;
use url::Url;

use super::{ask::RoundChecks, prepare::RoundInputs, semantic::BoundVerifier};
use crate::{
    Engine, EngineError,
    executors::pool::{ExecutorAddress, PoolView, eligible_sessions},
    judges::{BUILTIN_PROVIDER, ProviderSettings, VerdictLookup},
};

pub(crate) use jurat_core::executor::session::JUDGE_SESSION_PREFIX as JUDGE_PREFIX;

/// The node's own evaluation proves the form of a candidate, not its truth: it counts no more than
/// an executor of the lowest tier.
pub(crate) const NODE_RELIABILITY: f64 = reliability_prior(Some(Tier::Fast));

/// The target of a chosen session, and how to ask it.
#[derive(Debug)]
pub(crate) struct SeatTarget {
    pub(crate) address: Arc<ExecutorAddress>,
    pub(crate) profile: String,
    /// The executor's own name for the task type; validation has none.
    pub(crate) task_type: Option<String>,
    pub(crate) price_micros: u64,
    /// Provider and model as declared, for answers that omit them.
    pub(crate) declared: jurat_core::executor::Independence,
    /// Why it cannot be asked, so that its seat has failed from the start.
    pub(crate) problem: Option<String>,
    /// Why it abstains without being asked.
    pub(crate) abstention: Option<String>,
}

/// The seats chosen for a round.
#[derive(Debug)]
pub(crate) struct SeatChoice {
    pub(crate) seats: Vec<Seat>,
    /// Sessions that may replace a failed one.
    pub(crate) spares: Vec<Seat>,
    /// The targets of all of them.
    pub(crate) targets: SeatTargets,
}

/// The targets of the seats in order, followed by those of the spares.
#[derive(Debug)]
pub(crate) enum SeatTargets {
    Executors(Vec<SeatTarget>),
    Judges(Vec<ModelRef>),
    /// This node, in its only seat.
    Node,
}

impl SeatTargets {
    /// Why the target of this seat is not asked.
    pub(crate) fn problem(&self, index: usize) -> Option<&str> {
        match self {
            Self::Executors(targets) => targets.get(index)?.problem.as_deref(),
            Self::Judges(_) | Self::Node => None,
        }
    }

    pub(crate) fn are_executors(&self) -> bool {
        matches!(self, Self::Executors(_))
    }
}

/// Who may take the seats of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeatCandidates {
    Executors,
    /// The judges of a verifier. If the candidate does not exist yet, executors take the seats, and
    /// their answers are judged.
    Judges,
    /// This node, under a policy that needs no judge.
    Node,
}

impl SeatCandidates {
    pub(crate) fn of(job: &Job) -> Self {
        let is_node =
            |entry: &PoolEntry| matches!(entry, PoolEntry::Session(id) if id == BUILTIN_SESSION);
        match (job.work.kind(), job.terms.pool.as_slice()) {
            (JobKind::Validate, _) if job.policy.policy_id == SEMANTIC => Self::Judges,
            (JobKind::Validate, [entry]) if is_node(entry) => Self::Node,
            (JobKind::Delegate | JobKind::Validate | JobKind::Factcheck, _) => Self::Executors,
        }
    }
}

/// The judges that may take seats, as eligible sessions.
struct JudgeSeats {
    models: Vec<ModelRef>,
    sessions: Vec<Session>,
    capabilities: Vec<Capabilities>,
    hosts: Vec<String>,
    reliability: Vec<f64>,
}

impl Engine {
    /// Chooses the seats. A verifier is judged on this node: its criterion never leaves the
    /// registry.
    pub(crate) fn choose_seats(
        &self,
        inputs: RoundInputs<'_>,
        seed: u64,
    ) -> Result<SeatChoice, EngineError> {
        let RoundInputs { caller, job, view, verifier, .. } = inputs;
        match (SeatCandidates::of(job), verifier) {
            (SeatCandidates::Judges, Some(bound)) => self.choose_judges(job, bound, seed),
            (SeatCandidates::Judges, None) => {
                Err(EngineError::Bug("there is no verifier to judge by"))
            }
            (SeatCandidates::Node, _) => choose_node(job, seed),
            (SeatCandidates::Executors, _) => self.choose_executors(job, caller, view, seed),
        }
    }

    fn choose_executors(
        &self,
        job: &Job,
        caller: &Caller,
        view: &PoolView,
        seed: u64,
    ) -> Result<SeatChoice, EngineError> {
        let standings = self.pool_health_for(caller.account());
        let plain = unregistered_sessions(job, view, caller.credit())?;
        let eligible = eligible_sessions(view, &plain, &standings);
        let Selection { seats, spares } = select(job, &eligible, seed)?;
        let spares_after = spares.iter().map(|index| (*index, None));
        let all = seats.iter().map(|seat| (seat.index, seat.problem.clone())).chain(spares_after);
        let targets = all.map(|(index, problem)| seat_target(job, view, &eligible[index], problem));
        Ok(SeatChoice {
            targets: SeatTargets::Executors(targets.collect::<Result<_, EngineError>>()?),
            seats: seats.iter().map(|it| seat_of_session(&eligible[it.index])).collect(),
            spares: spares.iter().map(|index| seat_of_session(&eligible[*index])).collect(),
        })
    }

    fn choose_judges(
        &self,
        job: &Job,
        bound: &BoundVerifier,
        seed: u64,
    ) -> Result<SeatChoice, EngineError> {
        let panel = self.judge_seats(job, bound);
        let eligible = panel.eligible_sessions();
        let Selection { seats, spares } = select(job, &eligible, seed)?;
        let all = seats.iter().map(|seat| seat.index).chain(spares.iter().copied());
        let models: Vec<ModelRef> = all.map(|index| panel.models[index].clone()).collect();
        for model in &models {
            bound.check_judge(self, model)?;
        }
        Ok(SeatChoice {
            targets: SeatTargets::Judges(models),
            seats: seats.iter().map(|it| seat_of_session(&eligible[it.index])).collect(),
            spares: spares.iter().map(|index| seat_of_session(&eligible[*index])).collect(),
        })
    }

    /// The judge that the verifier pins, those that the caller names, and for several replicas the
    /// operator's panel.
    fn judge_seats(&self, job: &Job, bound: &BoundVerifier) -> JudgeSeats {
        let named = job.terms.pool.iter().filter_map(|entry| match entry {
            PoolEntry::Session(id) => id.strip_prefix(JUDGE_PREFIX)?.parse().ok(),
            PoolEntry::Label(_) | PoolEntry::Profile(_) | PoolEntry::Executor { .. } => None,
        });
        let mut models: Vec<ModelRef> = vec![bound.judge().clone()];
        let kept: &[ModelRef] =
            if job.terms.replicas > 1 { &self.judges_config().panel } else { &[] };
        for model in named.chain(kept.iter().cloned()) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        let mut panel = JudgeSeats {
            sessions: Vec::new(),
            capabilities: Vec::new(),
            hosts: Vec::new(),
            reliability: Vec::new(),
            models: Vec::new(),
        };
        for model in models {
            panel.sessions.push(judge_session(&model, self.is_judge_known(&model)));
            panel.capabilities.push(Capabilities {
                task_types: Vec::new(),
                profiles: Vec::new(),
                provider_family: model.provider.clone(),
                model_id: model.model.clone(),
                policies: Vec::new(),
            });
            panel.hosts.push(self.host_of_judge(&model));
            panel.reliability.push(bound.reliability(&model).unwrap_or(reliability_prior(None)));
            panel.models.push(model);
        }
        panel
    }

    /// How many judges are available to a run that names none: the version's own and the operator's
    /// panel.
    pub(crate) fn judges_ready(&self, version: &VerifierVersion) -> usize {
        let own = &version.config.judge.model;
        self.judges_config().panel.iter().chain([own]).collect::<BTreeSet<_>>().len()
    }

    pub(crate) fn is_judge_known(&self, model: &ModelRef) -> bool {
        model.provider == BUILTIN_PROVIDER
            || self.judges_config().providers.contains_key(&model.provider)
    }

    /// Identifies judges at the same host. Callers see this value, and the host itself is private
    /// to the operator, so the first provider at the host is used.
    fn host_of_judge(&self, model: &ModelRef) -> String {
        let providers = &self.judges_config().providers;
        let host = |settings: &ProviderSettings| {
            let url = Url::parse(&settings.base_url).ok()?;
            url.host_str().map(str::to_owned)
        };
        let own = providers.get(&model.provider).and_then(host);
        let first = providers.iter().find(|(_, settings)| own.is_some() && host(settings) == own);
        first.map_or(&model.provider, |(name, _)| name).clone()
    }

    /// Looks up the verdicts of judges with a seat before the round opens; empty if others answer.
    pub(crate) async fn verdict_lookups(
        &self,
        choice: &SeatChoice,
        checks: &RoundChecks,
        deadline: Instant,
    ) -> Vec<VerdictLookup> {
        let (SeatTargets::Judges(models), Some(judging)) = (&choice.targets, &checks.judge_brief)
        else {
            return Vec::new();
        };
        let seated = models.iter().take(choice.seats.len());
        let tasks: Vec<_> =
            seated.map(|model| judging.question_for(model, deadline, None)).collect();
        self.look_up_verdicts(&tasks).await
    }

    /// The credit to hold for a round: its likely cost. `None` for a free round.
    pub(crate) async fn credit_hold(
        &self,
        caller: &Caller,
        choice: &SeatChoice,
        checks: &RoundChecks,
        at_hand: &[VerdictLookup],
    ) -> Option<CreditHold> {
        let mut estimate = CostEstimate::default();
        match (&choice.targets, &checks.judge_brief) {
            (SeatTargets::Executors(targets), _) => {
                let judged = checks.review.as_ref().map(|review| review.estimate);
                let price =
                    |target: &SeatTarget| i64::try_from(target.price_micros).unwrap_or(i64::MAX);
                let is_asked =
                    |target: &&SeatTarget| target.problem.is_none() && target.abstention.is_none();
                let able = targets.iter().filter(is_asked);
                let mut prices: Vec<i64> = able.map(price).collect();
                // A session that is replaced by a spare did not answer and is not paid, so each
                // seat is paid once, whoever answers in it.
                prices.sort_unstable_by(|left, right| right.cmp(left));
                for price in prices.into_iter().take(choice.seats.len()) {
                    let price = CostEstimate::firm(price).plus(judged.unwrap_or_default());
                    estimate = estimate.plus(price);
                }
            }
            (SeatTargets::Judges(models), Some(judging)) => {
                // A judge that misses the deadline is paid all the same, and so is its spare. Seats
                // with an available verdict never fail, and need no spare; a seat with a shared
                // failure may get one.
                let is_free = |index: usize| at_hand.get(index).is_some_and(VerdictLookup::is_free);
                let is_filled =
                    |index: usize| at_hand.get(index).is_some_and(VerdictLookup::is_verdict);
                let are_filled = (0..choice.seats.len()).all(is_filled);
                for (index, model) in models.iter().enumerate() {
                    if !are_filled && !is_free(index) {
                        estimate = estimate.plus(self.judge_brief_estimate(judging, model).await);
                    }
                }
            }
            (SeatTargets::Judges(_), None) | (SeatTargets::Node, _) => {}
        }
        let CostEstimate { micros, most_micros, least_micros } = estimate;
        let is_limited = caller.credit() != CreditMode::Unmetered;
        let day_cap_micros = (caller.credit() == CreditMode::Anonymous)
            .then_some(self.inner.limits.anonymous_day_micros);
        // A paid request was priced as a whole, and the jobs of another node are booked for it:
        // neither moves anything in the ledger.
        let is_outside = matches!(caller.credit(), CreditMode::Prepaid | CreditMode::Booked);
        let is_priced = 0 < micros && !is_outside;
        is_priced.then_some(CreditHold {
            micros,
            most_micros,
            least_micros,
            is_limited,
            day_cap_micros,
        })
    }
}

impl JudgeSeats {
    fn eligible_sessions(&self) -> Vec<EligibleSession<'_>> {
        let entry = |index: usize| EligibleSession {
            session: &self.sessions[index],
            host: &self.hosts[index],
            standing: Ok(&self.capabilities[index]),
            reliability: self.reliability[index],
        };
        (0..self.models.len()).map(entry).collect()
    }
}

fn seat_of_session(entry: &EligibleSession<'_>) -> Seat {
    Seat {
        session_id: entry.session.id.clone(),
        executor: entry.session.executor.clone(),
        independence: entry.independence(),
        reliability: entry.reliability,
    }
}

/// Sessions to executors that the job names and that have none.
fn unregistered_sessions(
    job: &Job,
    view: &PoolView,
    credit: CreditMode,
) -> Result<Vec<Session>, SelectError> {
    let mut plain = Vec::new();
    for entry in &job.terms.pool {
        let PoolEntry::Executor { name, profile } = entry else { continue };
        if let Cow::Owned(session) = view.session_to(name, profile, credit)? {
            plain.push(session);
        }
    }
    Ok(plain)
}

fn seat_target(
    job: &Job,
    view: &PoolView,
    entry: &EligibleSession<'_>,
    problem: Option<String>,
) -> Result<SeatTarget, EngineError> {
    let address = view.addresses.get(&entry.session.executor);
    let address = address.ok_or(EngineError::Bug("a chosen session has no address"))?;
    let task_type = job.work.task_type();
    Ok(SeatTarget {
        address: Arc::clone(address),
        profile: entry.session.profile.clone(),
        task_type: task_type.map(|wanted| entry.session.task_type(wanted).to_owned()),
        price_micros: entry.session.price_micros,
        declared: entry.independence(),
        abstention: missing_mode(job, entry),
        problem,
    })
}

/// The node as the only session of its pool.
fn choose_node(job: &Job, seed: u64) -> Result<SeatChoice, EngineError> {
    let session = unregistered_session(BUILTIN_SESSION.to_owned(), BUILTIN_SESSION.to_owned());
    let capabilities = Capabilities {
        task_types: Vec::new(),
        profiles: Vec::new(),
        provider_family: NODE_FAMILY.to_owned(),
        model_id: NODE_MODEL.to_owned(),
        policies: Vec::new(),
    };
    let entry = EligibleSession {
        session: &session,
        host: NODE_FAMILY,
        standing: Ok(&capabilities),
        reliability: NODE_RELIABILITY,
    };
    let chosen = select(job, std::slice::from_ref(&entry), seed)?;
    let seats = chosen.seats.iter().map(|_| seat_of_session(&entry)).collect();
    Ok(SeatChoice { seats, spares: Vec::new(), targets: SeatTargets::Node })
}

fn judge_session(model: &ModelRef, is_configured: bool) -> Session {
    // Callers name models, so only configured providers become names of executors.
    let provider = if is_configured { &model.provider } else { "unknown" };
    unregistered_session(format!("{JUDGE_PREFIX}{model}"), format!("{JUDGE_PREFIX}{provider}"))
}

/// A session that is not registered.
fn unregistered_session(id: String, executor: String) -> Session {
    Session {
        id,
        executor,
        profile: "judge".to_owned(),
        tier: None,
        labels: BTreeSet::new(),
        task_types: BTreeMap::new(),
        reliability_permille: None,
        price_micros: 0,
        created_at: Timestamp::from_micros(0),
    }
}
