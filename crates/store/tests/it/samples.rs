//! Values to store, with every part that a document can have.

use jurat_core::{
    candidate::{ArtifactRef, Evidence, InlineEvidence},
    consensus::{Consensus, Outcome, ScoreSummary},
    decision::DecisionEntry,
    executor::{Capabilities, Executor, Independence, Probe},
    id::{AccountId, NodeId, RoundId},
    job::{Disagreement, Kind, Toggle},
    key::Key,
    replica::{Answer, Failure, FailureCode, Label, Replica, Said, Vote},
    round::{Closing, ClosingSummary, Ending, OpenRound, RoundSummary, Seat},
    session::{Session, Tier},
    time::Timestamp,
};
use jurat_store::{Claim, KeyRecord, Orphans, Page, RoundFilter};
use serde_json::{Value, json};

pub(crate) const HOUR_MS: u64 = 3_600_000;

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + millis)
}

pub(crate) fn account(name: &str) -> AccountId {
    AccountId::parse(&format!("acct_{name}")).unwrap()
}

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::parse(&format!("node_{name}")).unwrap()
}

pub(crate) fn page(after: Option<&str>, limit: u32) -> Page {
    Page { after: after.map(str::to_owned), limit }
}

pub(crate) fn newest(limit: u32) -> RoundFilter {
    RoundFilter { kind: None, outcome: None, state: None, after: None, limit, before: None }
}

pub(crate) fn executor(name: &str) -> Executor {
    Executor {
        name: name.to_owned(),
        url: format!("http://127.0.0.1:9000/{name}"),
        token_env: None,
        agent_events_url: None,
        created_at: at(0),
        probe: None,
    }
}

pub(crate) fn well(millis: i64) -> Probe {
    Probe {
        at: at(millis),
        health_error: None,
        capabilities: Ok(Capabilities {
            task_types: vec!["swarm".to_owned(), "*".to_owned()],
            profiles: vec!["default".to_owned()],
            provider_family: "rules".to_owned(),
            model_id: "r-1 \"quoted\"".to_owned(),
            policies: vec!["vp.claim.v1".to_owned()],
        }),
    }
}

pub(crate) fn unwell(millis: i64) -> Probe {
    Probe {
        at: at(millis),
        health_error: Some("no answer within 2 s".to_owned()),
        capabilities: Err("not JSON\u{0} at all".to_owned()),
    }
}

pub(crate) fn session(id: &str, executor: &str) -> Session {
    Session {
        id: id.to_owned(),
        executor: executor.to_owned(),
        profile: "default".to_owned(),
        tier: Some(Tier::Safe),
        labels: ["heavy".to_owned(), "eu, \"west\"".to_owned()].into(),
        task_types: [("delegate".to_owned(), "swarm".to_owned())].into(),
        reliability_permille: Some(912),
        price_micros: 1_250,
        created_at: at(1),
    }
}

/// A key with every part, named like its identifier.
pub(crate) fn key(id: &str, account: &AccountId) -> KeyRecord {
    let key = Key {
        id: id.to_owned(),
        account: account.clone(),
        name: id.to_owned(),
        scopes: jurat_core::caller::Scope::ALL.into(),
        rate_per_minute: Some(60),
        concurrent_rounds: Some(4),
        created_at: at(2),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    };
    KeyRecord { key, secret_hash: std::array::from_fn(|index| u8::try_from(index * 8).unwrap()) }
}

/// A round of the account, opened `number` seconds after the first, with a lease of an hour.
pub(crate) fn round(account: &AccountId, number: u32) -> OpenRound {
    let opened_at = at(i64::from(number) * 1_000);
    OpenRound {
        id: RoundId::new(opened_at, u128::from(number)),
        account: account.clone(),
        kind: Kind::Validate,
        node: node("first"),
        // Above what a signed number holds.
        lease_token: u64::MAX - u64::from(number),
        lease_until: opened_at.plus_millis(HOUR_MS),
        request_digest: format!("sha256:{number:064x}"),
        policy_id: "vp.schema_only.v1".to_owned(),
        policy_hash: "sha256:00".to_owned(),
        disagreement: Disagreement::ReturnAll,
        traces: Toggle::On,
        seats: (0..3).map(seat).collect(),
        opened_at,
        deadline_at: opened_at.plus_millis(60_000),
        run: None,
        hold: None,
    }
}

/// The same round, with a lease that is over as soon as it begins.
pub(crate) fn abandoned(account: &AccountId, number: u32) -> OpenRound {
    let round = round(account, number);
    OpenRound { lease_until: round.opened_at, ..round }
}

fn seat(index: usize) -> Seat {
    Seat {
        session_id: format!("20{index}"),
        executor: format!("e{index}"),
        independence: independence(index),
        reliability: 0.7 + 0.1,
    }
}

fn independence(index: usize) -> Independence {
    Independence {
        provider_family: "rules".to_owned(),
        model_id: format!("r-{index}"),
        host: "127.0.0.1".to_owned(),
        executor: format!("e{index}"),
    }
}

pub(crate) fn claim(by: &str, orphans: Orphans) -> Claim {
    Claim {
        node: node(by),
        lease_token: 7,
        lease_until: at(900_000).plus_millis(HOUR_MS),
        now: at(900_000),
        limit: 100,
        orphans,
    }
}

/// How the round ends when its three replicas vote, abstain and fail.
pub(crate) fn closing(open: &OpenRound) -> Closing {
    ended(open, Ending::Closed, Outcome::Agreed, replicas())
}

pub(crate) fn expiry(open: &OpenRound) -> Closing {
    let nothing =
        |index| replica(index, Answer::nothing(FailureCode::NodeStopped, "the node stopped"));
    ended(open, Ending::Expired, Outcome::Failed, (0..3).map(nothing).collect())
}

pub(crate) fn ended(
    open: &OpenRound,
    ending: Ending,
    outcome: Outcome,
    replicas: Vec<Replica>,
) -> Closing {
    let closed_at = open.opened_at.plus_millis(250);
    let consensus = consensus(outcome, &replicas);
    let sealed = DecisionEntry::new(open, ending, &replicas, &consensus, closed_at).seal();
    Closing {
        ending,
        replicas,
        consensus,
        closed_at,
        receipt_id: sealed.digest,
        entry: sealed.text,
    }
}

/// The round as it is listed: the shares to four places.
pub(crate) fn summary(open: &OpenRound, closing: Option<&Closing>) -> RoundSummary {
    let closing = closing.map(|closing| ClosingSummary {
        agreement: 0.3333,
        confidence: 0.8123,
        ..ClosingSummary::from(closing)
    });
    RoundSummary { open: open.clone(), closing }
}

fn consensus(outcome: Outcome, replicas: &[Replica]) -> Consensus {
    Consensus {
        outcome,
        verdict: Some(Label::Valid),
        output: Some(json!({"answer": 0.1 + 0.2, "big": u64::MAX, "none": null, "text": "é\u{0}"})),
        verdicts: replicas.iter().map(|replica| replica.answer.label()).collect(),
        groups: vec![Some(0), None, None],
        winner: Some(0),
        asked: 3,
        started: 3,
        answered: 2,
        cancelled: 0,
        agreement: 1.0 / 3.0,
        agreement_answered: 0.5,
        strategy: "majority".to_owned(),
        equivalence: "canonical".to_owned(),
        score: Some(ScoreSummary {
            method: "mean".to_owned(),
            value: 0.1 + 0.7,
            min: 0.0,
            max: 1.0,
            deviation: 1e-17,
        }),
        confidence: 0.812_345_678_901_234_5,
        effective_votes: 1.0,
        disagreed: true,
        tie_broken: false,
    }
}

pub(crate) fn replicas() -> Vec<Replica> {
    let evidence = Evidence {
        inline: vec![InlineEvidence {
            mime: "text/plain".to_owned(),
            content: "line\n".to_owned(),
        }],
        refs: vec![ArtifactRef {
            uri: "https://example.org/a".to_owned(),
            digest: "sha256:11".to_owned(),
            size_bytes: u64::MAX,
            mime: "image/png".to_owned(),
            created_at: 12,
            producer: "e0".to_owned(),
        }],
    };
    let said = Said {
        output: Some(Value::Null),
        score: Some(0.1 + 0.2),
        reason_codes: vec![100, 999],
        evidence,
        result_hash: Some("sha256:22".to_owned()),
        notes: vec!["hash_missing".to_owned()],
    };
    let failure = Failure {
        code: FailureCode::PolicyContradicted,
        detail: "passed, and ours\u{0} fails".to_owned(),
    };
    vec![
        replica(0, Answer::Vote(Vote { label: Label::Valid, said: said.clone() })),
        replica(1, Answer::Abstained { label: Label::NeedsSpec, said: Said::default() }),
        replica(2, Answer::Nothing { label: Label::Error, failure, said: Some(said) }),
    ]
}

fn replica(index: usize, answer: Answer) -> Replica {
    Replica {
        index,
        session_id: format!("20{index}"),
        executor: format!("e{index}"),
        independence: independence(index),
        reliability: 1.0 / 3.0,
        answer,
        latency_ms: 42,
        cost_micros: 1_250,
        usage: None,
    }
}
