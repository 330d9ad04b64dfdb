//! A session: a named lane to one executor with a profile, a tier and a price.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use super::Executor;
use crate::{round::consensus::reliability_prior, time::Timestamp};

/// The lane in which a node itself decides, by a policy that needs nobody's judgement. Sessions
/// that are registered cannot have such a name.
pub const BUILTIN_SESSION: &str = "builtin:policies";
/// What a node calls itself where it decides.
pub const NODE_FAMILY: &str = "jurat";
pub const NODE_MODEL: &str = "policies";

/// What the names of the lanes of judges begin with. Sessions that are registered cannot have such a
/// name.
pub const JUDGE_SESSION_PREFIX: &str = "judge:";

/// What the names of plain lanes begin with. Sessions that are registered cannot have such a name.
pub const EXECUTOR_SESSION_PREFIX: &str = "executor:";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: String,
    pub executor: String,
    pub profile: String,
    pub tier: Option<Tier>,
    pub labels: BTreeSet<String>,
    /// What a job's task type is called at the executor: `delegate` → `swarm`; the key `*` takes any.
    pub task_types: BTreeMap<String, String>,
    /// How often it is right, in thousandths, as its operator says; the tier's prior without it.
    pub reliability_permille: Option<u16>,
    /// Price of one call in micro-credits.
    pub price_micros: u64,
    pub created_at: Timestamp,
}

impl Session {
    /// A lane to an executor that has no session at all: without tier, label and price. Nobody set a
    /// price for it, so that only callers who are not metered may use it.
    pub fn plain(executor: &str, profile: &str) -> Self {
        Self {
            id: format!("{EXECUTOR_SESSION_PREFIX}{executor}"),
            executor: executor.to_owned(),
            profile: profile.to_owned(),
            tier: None,
            labels: BTreeSet::new(),
            task_types: BTreeMap::new(),
            reliability_permille: None,
            price_micros: 0,
            created_at: Timestamp::from_micros(0),
        }
    }

    /// The probability that an answer of this session is right, before anything is measured.
    pub fn reliability(&self) -> f64 {
        self.reliability_permille
            .map_or_else(|| reliability_prior(self.tier), |permille| f64::from(permille) / 1_000.0)
    }

    /// The executor's name for a task type.
    pub fn task_type<'a>(&'a self, wanted: &'a str) -> &'a str {
        self.task_types
            .get(wanted)
            .or_else(|| self.task_types.get("*"))
            .map_or(wanted, String::as_str)
    }
}

/// How much is expected of a session, and asked for by a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Fast,
    Safe,
    Oracle,
}

impl Tier {
    pub const ALL: [Self; 3] = [Self::Fast, Self::Safe, Self::Oracle];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Safe => "safe",
            Self::Oracle => "oracle",
        }
    }

    pub const fn replicas(self) -> u8 {
        match self {
            Self::Fast => 1,
            Self::Safe => 3,
            Self::Oracle => 5,
        }
    }
}

impl FromStr for Tier {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == text).ok_or(())
    }
}

/// Everything a selection needs to know of the installation, at one moment.
#[derive(Debug, Clone, Default)]
pub struct SessionPool {
    pub executors: BTreeMap<String, Executor>,
    pub sessions: BTreeMap<String, Session>,
}
