//! Who takes the seats of a round: sessions of executors, or the judges of a verifier.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jurat_core::{
    caller::{Caller, Credit},
    consensus::reliability_prior,
    executor::Capabilities,
    job::{Job, PoolEntry},
    ledger::Hold,
    round::Seat,
    select::{Lane, select},
    session::Session,
    time::Timestamp,
    verifier::{ModelRef, VerifierVersion},
};
use url::Url;

use crate::{
    Engine, EngineError,
    ask::Checks,
    judge::BUILTIN,
    pool::{Address, PoolView, lanes},
    semantic::Bound,
};

/// What the names of judges' lanes begin with.
pub(crate) const JUDGE_PREFIX: &str = "judge:";

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
}

impl Places {
    pub(crate) fn are_executors(&self) -> bool {
        matches!(self, Self::Executors(_))
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
        match verifier.filter(|_| Bound::takes_seats(job)) {
            None => self.choose_executors(job, view, seed),
            Some(bound) => self.choose_judges(job, bound, seed),
        }
    }

    fn choose_executors(
        &self,
        job: &Job,
        view: &PoolView,
        seed: u64,
    ) -> Result<(Vec<Seat>, Places), EngineError> {
        let standings = self.standings();
        let lanes = lanes(view, &standings);
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
            PoolEntry::Label(_) | PoolEntry::Profile(_) => None,
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

    fn is_judge_known(&self, model: &ModelRef) -> bool {
        model.provider == BUILTIN || self.judges().providers.contains_key(&model.provider)
    }

    fn host_of_judge(&self, model: &ModelRef) -> String {
        let provider = self.judges().providers.get(&model.provider);
        let url = provider.and_then(|provider| Url::parse(&provider.base_url).ok());
        let host = url.and_then(|url| url.host_str().map(str::to_owned));
        host.unwrap_or_else(|| model.provider.clone())
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
        };
        let is_limited = caller.credit() != Credit::Unmetered;
        (0 < micros).then_some(Hold { micros, is_limited })
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

fn judge_session(model: &ModelRef, is_configured: bool) -> Session {
    // Callers name models, so only providers that the operator knows become names of executors.
    let provider = if is_configured { &model.provider } else { "unknown" };
    Session {
        id: format!("{JUDGE_PREFIX}{model}"),
        executor: format!("{JUDGE_PREFIX}{provider}"),
        profile: "judge".to_owned(),
        tier: None,
        labels: BTreeSet::new(),
        task_types: BTreeMap::new(),
        reliability_permille: None,
        price_micros: 0,
        created_at: Timestamp::from_micros(0),
    }
}
