//! Who takes the seats of a round: sessions of executors, or the judges of a verifier.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jurat_core::{
    caller::{Caller, Credit},
    consensus::reliability_prior,
    executor::Capabilities,
    job::{Job, Kind, PoolEntry},
    ledger::Hold,
    policy::SEMANTIC,
    round::Seat,
    select::{Lane, select},
    session::{BUILTIN_LANE, NODE_FAMILY, NODE_MODEL, Session},
    time::Timestamp,
    verifier::{ModelRef, VerifierVersion},
};
use url::Url;

use crate::{
    Engine, EngineError,
    ask::Checks,
    judge::{BUILTIN, ProviderSettings},
    pool::{Address, PoolView, lanes},
    semantic::Bound,
};

/// What the names of judges' lanes begin with.
pub(crate) const JUDGE_PREFIX: &str = "judge:";

/// What a node decides by itself is computed, not judged.
pub(crate) const NODE_RELIABILITY: f64 = 0.99;

/// Where a chosen session is, and how it wants to be asked.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: Arc<Address>,
    pub(crate) profile: String,
    /// The executor's own name for the task type; validation has none.
    pub(crate) task_type: Option<String>,
    pub(crate) price_micros: u64,
    /// Provider and model as declared, for answers that leave them out.
    pub(crate) declared: jurat_core::executor::Independence,
}

/// Behind each seat, in its order.
#[derive(Debug)]
pub(crate) enum Places {
    Executors(Vec<Place>),
    Judges(Vec<ModelRef>),
    /// This node, in the one seat there is.
    Node,
}

impl Places {
    pub(crate) fn are_executors(&self) -> bool {
        matches!(self, Self::Executors(_))
    }
}

/// Who may take the seats of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takers {
    Executors,
    /// The judges of a verifier. Where the candidate is yet to come, executors take the seats, and
    /// what they answer is judged.
    Judges,
    /// This node, which decides by a policy that needs nobody else.
    Node,
}

impl Takers {
    pub(crate) fn of(job: &Job) -> Self {
        let is_node =
            |entry: &PoolEntry| matches!(entry, PoolEntry::Session(id) if id == BUILTIN_LANE);
        match (job.work.kind(), job.terms.pool.as_slice()) {
            (Kind::Validate, _) if job.policy.policy_id == SEMANTIC => Self::Judges,
            (Kind::Validate, [entry]) if is_node(entry) => Self::Node,
            (Kind::Delegate | Kind::Validate | Kind::Factcheck, _) => Self::Executors,
        }
    }
}

/// The judges that may take seats, as lanes like those of sessions.
struct Panel {
    models: Vec<ModelRef>,
    sessions: Vec<Session>,
    capabilities: Vec<Capabilities>,
    hosts: Vec<String>,
    reliability: Vec<f64>,
}

impl Engine {
    /// Chooses who answers. A verifier is judged beside the registry: its criterion never leaves.
    pub(crate) fn choose(
        &self,
        job: &Job,
        view: &PoolView,
        verifier: Option<&Bound>,
        seed: u64,
    ) -> Result<(Vec<Seat>, Places), EngineError> {
        match (Takers::of(job), verifier) {
            (Takers::Judges, Some(bound)) => self.choose_judges(job, bound, seed),
            (Takers::Judges, None) => Err(EngineError::Bug("there is no verifier to judge by")),
            (Takers::Node, _) => choose_node(job, seed),
            (Takers::Executors, _) => self.choose_executors(job, view, seed),
        }
    }

    fn choose_executors(
        &self,
        job: &Job,
        view: &PoolView,
        seed: u64,
    ) -> Result<(Vec<Seat>, Places), EngineError> {
        let standings = self.standings();
        let plain = plain_lanes(job, view);
        let lanes = lanes(view, &plain, &standings);
        let chosen = select(job, &lanes, seed)?;
        let mut seats = Vec::with_capacity(chosen.len());
        let mut places = Vec::with_capacity(chosen.len());
        for index in chosen {
            let lane = &lanes[index];
            let Some(address) = view.addresses.get(&lane.session.executor) else {
                return Err(EngineError::Bug("a chosen session has no address"));
            };
            seats.push(seat(lane));
            places.push(Place {
                address: Arc::clone(address),
                profile: lane.session.profile.clone(),
                task_type: job
                    .work
                    .task_type()
                    .map(|wanted| lane.session.task_type(wanted).to_owned()),
                price_micros: lane.session.price_micros,
                declared: lane.independence(),
            });
        }
        Ok((seats, Places::Executors(places)))
    }

    fn choose_judges(
        &self,
        job: &Job,
        bound: &Bound,
        seed: u64,
    ) -> Result<(Vec<Seat>, Places), EngineError> {
        let panel = self.panel(job, bound);
        let lanes = panel.lanes();
        let chosen = select(job, &lanes, seed)?;
        let seats = chosen.iter().map(|index| seat(&lanes[*index])).collect();
        let models = chosen.iter().map(|index| panel.models[*index].clone()).collect();
        Ok((seats, Places::Judges(models)))
    }

    /// The judge that the verifier pins, those that the caller names, and for several replicas
    /// those that the operator keeps ready.
    fn panel(&self, job: &Job, bound: &Bound) -> Panel {
        let named = job.terms.pool.iter().filter_map(|entry| match entry {
            PoolEntry::Session(id) => id.strip_prefix(JUDGE_PREFIX)?.parse().ok(),
            PoolEntry::Label(_) | PoolEntry::Profile(_) | PoolEntry::Executor { .. } => None,
        });
        let mut models: Vec<ModelRef> = vec![bound.judge().clone()];
        let kept: &[ModelRef] = if job.terms.replicas > 1 { &self.judges().panel } else { &[] };
        for model in named.chain(kept.iter().cloned()) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        let mut panel = Panel {
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

    /// How many judges a run can have that names none: the version's own and the operator's panel.
    pub(crate) fn judges_ready(&self, version: &VerifierVersion) -> usize {
        let own = &version.config.judge.model;
        self.judges().panel.iter().chain([own]).collect::<BTreeSet<_>>().len()
    }

    pub(crate) fn is_judge_known(&self, model: &ModelRef) -> bool {
        model.provider == BUILTIN || self.judges().providers.contains_key(&model.provider)
    }

    /// Tells judges at the same host from others. The host itself is the operator's, and callers
    /// see this, so that it goes by the first provider there.
    fn host_of_judge(&self, model: &ModelRef) -> String {
        let providers = &self.judges().providers;
        let host = |settings: &ProviderSettings| {
            let url = Url::parse(&settings.base_url).ok()?;
            url.host_str().map(str::to_owned)
        };
        let own = providers.get(&model.provider).and_then(host);
        let first = providers.iter().find(|(_, settings)| own.is_some() && host(settings) == own);
        first.map_or(&model.provider, |(name, _)| name).clone()
    }

    /// The credit that a round sets aside: the most that it can cost. Nothing for one that is free.
    pub(crate) fn hold(&self, caller: &Caller, places: &Places, checks: &Checks) -> Option<Hold> {
        let micros: i64 = match places {
            Places::Executors(places) => {
                let judged = checks.review.as_ref().map_or(0, |review| review.most_micros);
                let price = |place: &Place| i64::try_from(place.price_micros).unwrap_or(i64::MAX);
                let each = |place: &Place| price(place).saturating_add(judged);
                places.iter().map(each).fold(0, i64::saturating_add)
            }
            Places::Judges(models) => models
                .iter()
                .filter_map(|model| Some(self.judge_bound(checks.judging.as_ref()?, model)))
                .fold(0, i64::saturating_add),
            Places::Node => 0,
        };
        let is_limited = caller.credit() != Credit::Unmetered;
        let day_cap_micros = (caller.credit() == Credit::Anonymous)
            .then_some(self.inner.limits.anonymous_day_micros);
        (0 < micros).then_some(Hold { micros, is_limited, day_cap_micros })
    }
}

impl Panel {
    fn lanes(&self) -> Vec<Lane<'_>> {
        let lane = |index: usize| Lane {
            session: &self.sessions[index],
            host: &self.hosts[index],
            standing: Ok(&self.capabilities[index]),
            reliability: self.reliability[index],
        };
        (0..self.models.len()).map(lane).collect()
    }
}

fn seat(lane: &Lane<'_>) -> Seat {
    Seat {
        session_id: lane.session.id.clone(),
        executor: lane.session.executor.clone(),
        independence: lane.independence(),
        reliability: lane.reliability,
    }
}

/// Lanes to executors that the job names and that have no session with that profile.
fn plain_lanes(job: &Job, view: &PoolView) -> Vec<Session> {
    let lane = |entry: &PoolEntry| {
        let PoolEntry::Executor { name, profile } = entry else { return None };
        let is_lane = |it: &Session| it.executor == *name && it.profile == *profile;
        let has_lane = view.pool.sessions.values().any(is_lane);
        (!has_lane).then(|| Session::plain(name, profile))
    };
    job.terms.pool.iter().filter_map(lane).collect()
}

/// The node as the one lane of its pool.
fn choose_node(job: &Job, seed: u64) -> Result<(Vec<Seat>, Places), EngineError> {
    let session = lane_session(BUILTIN_LANE.to_owned(), BUILTIN_LANE.to_owned());
    let capabilities = Capabilities {
        task_types: Vec::new(),
        profiles: Vec::new(),
        provider_family: NODE_FAMILY.to_owned(),
        model_id: NODE_MODEL.to_owned(),
        policies: Vec::new(),
    };
    let lane = Lane {
        session: &session,
        host: NODE_FAMILY,
        standing: Ok(&capabilities),
        reliability: NODE_RELIABILITY,
    };
    let chosen = select(job, std::slice::from_ref(&lane), seed)?;
    Ok((chosen.iter().map(|_| seat(&lane)).collect(), Places::Node))
}

fn judge_session(model: &ModelRef, is_configured: bool) -> Session {
    // Callers name models, so only providers that the operator knows become names of executors.
    let provider = if is_configured { &model.provider } else { "unknown" };
    lane_session(format!("{JUDGE_PREFIX}{model}"), format!("{JUDGE_PREFIX}{provider}"))
}

/// A session that nobody registered.
fn lane_session(id: String, executor: String) -> Session {
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
