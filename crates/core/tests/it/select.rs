//! Selections of sessions, from case files: the installation, the job, and the selected sessions.

use std::{collections::BTreeMap, str::FromStr as _, thread};

use jurat_core::{
    executor::{
        Capabilities,
        session::{Session, Tier},
    },
    policy::PolicyBinding,
    round::{
        job::{FactcheckMode, Job, JobKind, JobWork, PoolEntry},
        select::{EligibleSession, SelectError, select},
    },
    time::Timestamp,
};
use serde_json::{Value, json};

use crate::{cases, consensus::terms};

/// Seeds under which a story must have the same result, unless it names one.
const SEEDS: [u64; 4] = [0, 1, 7, u64::MAX];

/// A session with everything that an eligible session borrows from.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) session: Session,
    pub(crate) host: String,
    pub(crate) standing: Result<Capabilities, String>,
    pub(crate) reliability: f64,
}

pub(crate) fn eligible(listed: &[Listed]) -> Vec<EligibleSession<'_>> {
    listed
        .iter()
        .map(|it| EligibleSession {
            session: &it.session,
            host: &it.host,
            standing: it.standing.as_ref().map_err(Clone::clone),
            reliability: it.reliability,
        })
        .collect()
}

pub(crate) fn session(id: &str, executor: &str) -> Session {
    Session {
        id: id.to_owned(),
        executor: executor.to_owned(),
        profile: "default".to_owned(),
        tier: None,
        labels: [].into(),
        task_types: BTreeMap::new(),
        reliability_permille: None,
        price_micros: 0,
        created_at: Timestamp::from_millis(0),
    }
}

pub(crate) fn capabilities(provider: &str, model: &str) -> Capabilities {
    Capabilities {
        task_types: vec!["delegate".to_owned(), "factcheck".to_owned()],
        profiles: vec!["default".to_owned()],
        provider_family: provider.to_owned(),
        model_id: model.to_owned(),
        policies: Vec::new(),
    }
}

pub(crate) fn job(work: JobWork, replicas: u8, pool: Vec<PoolEntry>) -> Job {
    let mut terms = terms();
    terms.replicas = replicas;
    terms.pool = pool;
    Job {
        work,
        policy: PolicyBinding::new("vp.schema_only.v1", json!({})),
        output_schema: json!({}),
        has_schema: false,
        context: None,
        passed_on: serde_json::Map::new(),
        tier: None,
        labels: [].into(),
        terms,
        timeout_ms: 60_000,
        max_steps: None,
        request_digest: "sha256:00".to_owned(),
        request: None,
        step: None,
        relayed: None,
    }
}

pub(crate) fn work(kind: &str, task_type: &str) -> JobWork {
    match JobKind::from_str(kind).unwrap() {
        JobKind::Delegate => JobWork::Delegate {
            objective: "anything".to_owned(),
            input: Value::Null,
            task_type: task_type.to_owned(),
        },
        JobKind::Validate => JobWork::Validate {
            output: Value::Null,
            evidence: jurat_core::round::candidate::Evidence::default(),
        },
        JobKind::Factcheck => JobWork::Factcheck {
            claim: json!("anything"),
            prompt: "anything".to_owned(),
            mode: FactcheckMode::Standard,
        },
    }
}

fn text<'a>(table: &'a toml::Table, name: &str) -> Option<&'a str> {
    table.get(name).map(|value| value.as_str().unwrap())
}

fn texts(table: &toml::Table, name: &str) -> Vec<String> {
    let list = table.get(name).map(|value| value.as_array().unwrap().as_slice());
    list.unwrap_or_default().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn tier(table: &toml::Table) -> Option<Tier> {
    text(table, "tier").map(|word| word.parse().unwrap())
}

fn read_job(given: &toml::Table) -> Job {
    let known = ["kind", "replicas", "pool", "spares", "tier", "labels", "task_type", "seed"];
    cases::refuse_others(given, &known);
    let entry = |text: &String| match text.split_once(':') {
        Some(("label", label)) => PoolEntry::Label(label.to_owned()),
        Some(("profile", profile)) => PoolEntry::Profile(profile.to_owned()),
        _ => PoolEntry::Session(text.clone()),
    };
    let work = work(text(given, "kind").unwrap(), text(given, "task_type").unwrap_or("delegate"));
    let replicas = given["replicas"].as_integer().unwrap();
    let pool = texts(given, "pool").iter().map(entry).collect();
    let mut job = job(work, u8::try_from(replicas).unwrap(), pool);
    // Most stories are about the seats.
    let spares = given.get("spares").map_or(0, |spares| spares.as_integer().unwrap());
    job.terms.spares = u8::try_from(spares).ok();
    job.tier = tier(given);
    job.labels = texts(given, "labels").into_iter().collect();
    job
}

fn read_session(given: &toml::Table) -> Listed {
    let known = [
        "id",
        "executor",
        "provider",
        "model",
        "host",
        "profile",
        "tier",
        "labels",
        "price",
        "reliability",
        "maps",
        "takes",
        "profiles",
        "problem",
    ];
    cases::refuse_others(given, &known);
    let id = text(given, "id").unwrap();
    let executor = text(given, "executor").unwrap_or(id);
    let mut session = session(id, executor);
    session.tier = tier(given);
    session.labels = texts(given, "labels").into_iter().collect();
    text(given, "profile").unwrap_or("default").clone_into(&mut session.profile);
    if let Some(price) = given.get("price") {
        session.price_micros = u64::try_from(price.as_integer().unwrap()).unwrap();
    }
    if let Some(maps) = given.get("maps") {
        let maps = maps.as_table().unwrap().iter();
        session.task_types =
            maps.map(|(from, to)| (from.clone(), to.as_str().unwrap().to_owned())).collect();
    }
    let mut capabilities = capabilities(
        text(given, "provider").unwrap_or(executor),
        text(given, "model").unwrap_or(executor),
    );
    if given.contains_key("takes") {
        capabilities.task_types = texts(given, "takes");
    }
    if given.contains_key("profiles") {
        capabilities.profiles = texts(given, "profiles");
    }
    Listed {
        session,
        host: text(given, "host").unwrap_or(executor).to_owned(),
        standing: text(given, "problem")
            .map_or(Ok(capabilities), |problem| Err(problem.to_owned())),
        reliability: given.get("reliability").map_or(0.75, |number| number.as_float().unwrap()),
    }
}

/// The result of the story under one seed, in the words of the file.
fn outcome(job: &Job, listed: &[Listed], seed: u64) -> toml::Table {
    let eligible = eligible(listed);
    let mut found = toml::Table::new();
    match select(job, &eligible, seed) {
        Ok(chosen) => {
            let ids: Vec<&str> =
                chosen.seats.iter().map(|seat| eligible[seat.index].session.id.as_str()).collect();
            found.insert("chosen".to_owned(), ids.into());
            let failed: Vec<String> = chosen
                .seats
                .iter()
                .filter_map(|seat| {
                    let problem = seat.problem.as_ref()?;
                    Some(format!("{}: {problem}", eligible[seat.index].session.id))
                })
                .collect();
            if !failed.is_empty() {
                found.insert("failed".to_owned(), failed.into());
            }
            if job.terms.spares != Some(0) {
                let ids: Vec<&str> = chosen
                    .spares
                    .iter()
                    .map(|index| eligible[*index].session.id.as_str())
                    .collect();
                found.insert("spares".to_owned(), ids.into());
            }
        }
        Err(error) => {
            found.insert("error".to_owned(), error.to_string().into());
            if let SelectError::Unavailable { problems, .. } = error {
                let lines: Vec<String> = problems
                    .iter()
                    .map(|problem| format!("{}: {}", problem.session_id, problem.problem))
                    .collect();
                found.insert("problems".to_owned(), lines.into());
            }
        }
    }
    found
}

fn decide(file: &toml::Table) -> toml::Table {
    cases::refuse_others(file, &["job", "session", "expect"]);
    let given = file["job"].as_table().unwrap();
    let job = read_job(given);
    let sessions = file.get("session").map(|list| list.as_array().unwrap().as_slice());
    let listed: Vec<Listed> = sessions
        .unwrap_or_default()
        .iter()
        .map(|session| read_session(session.as_table().unwrap()))
        .collect();
    let seed = given.get("seed").map(|seed| u64::try_from(seed.as_integer().unwrap()).unwrap());
    let found = outcome(&job, &listed, seed.unwrap_or(SEEDS[0]));
    if seed.is_none() {
        for seed in SEEDS {
            assert_eq!(outcome(&job, &listed, seed), found, "the seed {seed} decides otherwise");
        }
    }
    found
}

#[test]
fn the_sessions_are_chosen_as_written() {
    cases::check("select", 25, decide);
}

#[test]
fn two_threads_choose_the_same_sessions() {
    let all = || -> Vec<String> {
        cases::read("select").iter().map(|(_, file)| decide(file).to_string()).collect()
    };
    let (left, right) = thread::scope(|scope| {
        let (left, right) = (scope.spawn(all), scope.spawn(all));
        (left.join().unwrap(), right.join().unwrap())
    });
    assert_eq!(left, right);
}
