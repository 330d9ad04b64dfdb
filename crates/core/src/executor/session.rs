//! Sessions: named routes to one executor, with a profile, a tier and a price.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use super::{Capabilities, Executor};
use crate::{round::consensus::reliability_prior, time::Timestamp};

/// The session through which the node itself decides, under policies that need no judge. Registered
/// sessions cannot have this name.
pub const BUILTIN_SESSION: &str = "builtin:policies";
/// The provider family of the node, in its own decisions.
pub const NODE_FAMILY: &str = "jurat";
/// The model id of the node, in its own decisions.
pub const NODE_MODEL: &str = "policies";

/// The prefix in the names of the sessions of judges. Registered sessions cannot have it.
pub const JUDGE_SESSION_PREFIX: &str = "judge:";

/// The prefix in the names of plain sessions. Registered sessions cannot have it.
pub const EXECUTOR_SESSION_PREFIX: &str = "executor:";

/// A named route to one executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: String,
    pub executor: String,
    pub profile: String,
    pub tier: Option<Tier>,
    pub labels: BTreeSet<String>,
    /// The executor's names for task types: `delegate` → `swarm`; the key `*` matches any type.
    pub task_types: BTreeMap<String, String>,
    /// How often its answers are right, in thousandths, according to the operator; without it, the
    /// prior of the tier applies.
    pub reliability_permille: Option<u16>,
    /// Price of one call in micro-credits.
    pub price_micros: u64,
    pub created_at: Timestamp,
}

impl Session {
    /// A route to an executor that has no session: without tier, labels and price. Since nobody set
    /// a price, only unmetered callers may use it.
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

/// A session, and whether its executor can be asked now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStanding {
    pub session: Session,
    /// The capabilities of its executor, or why it cannot be asked.
    pub standing: Result<Capabilities, String>,
}

/// The quality that a job asks for and a session offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Fast,
    Safe,
    Oracle,
}

impl Tier {
    /// Every tier, the lowest first.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Safe, Self::Oracle];

    /// The name of the tier in requests and replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Safe => "safe",
            Self::Oracle => "oracle",
        }
    }

    /// The default number of replicas.
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

/// The executors and sessions of the installation at one moment.
#[derive(Debug, Clone, Default)]
pub struct SessionPool {
    pub executors: BTreeMap<String, Executor>,
    pub sessions: BTreeMap<String, Session>,
}
