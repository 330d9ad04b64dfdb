//! Sample values with every part that a document can have.

use jurat_core::{
    account::{key::Key, ledger::CreditHold},
    executor::{
        Capabilities, Executor, Independence, Probe,
        session::{Session, Tier},
    },
    id::{AccountId, NodeId, RoundId, uuid},
    list::ListPage,
    round::{
        ClosingSummary, OpenRound, RetainedRequest, Round, RoundClosing, RoundEnding, RoundFilter,
        RoundSummary, Seat,
        candidate::{ArtifactRef, Evidence, InlineEvidence},
        consensus::{Consensus, Outcome, ScoreSummary},
        decision::DecisionEntry,
        job::{Disagreement, JobKind, Toggle},
        replica::{
            AnswerContent, FailureCode, JudgeUsage, Label, Replica, ReplicaAnswer, ReplicaFailure,
            ReplicaVote,
        },
    },
    time::Timestamp,
    verifier::{
        Effort, InputContract, JudgeSettings, Verifier, VerifierConfig, VerifierExample,
        VerifierSelector, VerifierVersion,
        registry::VersionSummary,
        run::{Provenance, VerifierRunPurpose, VerifierRunTicket, VerifierRunVerdict},
    },
    workflow::VerifierRole,
};
use jurat_store::{
    Behalf, CreditGrant, KeyRecord, NameMatch, NewVerifierVersion, ReachedVersion, RoundCharge,
    RoundLost, RoundOpenRefusal, RoundOpening, RoundTakeover, Store, TakeoverScope, VerifierLookup,
    VerifierQuery, VersionQuery, WriteOutcome,
};
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

pub(crate) fn page(after: Option<&str>, limit: u32) -> ListPage {
    ListPage { after: after.map(str::to_owned), limit }
}

pub(crate) fn newest(limit: u32) -> RoundFilter {
    RoundFilter { limit, ..RoundFilter::default() }
}

pub(crate) fn executor(name: &str) -> Executor {
    Executor {
        name: name.to_owned(),
        url: format!("http://127.0.0.1:9000/{name}"),
        token_env: None,
        agent_events_url: None,
        remote: None,
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
        scopes: jurat_core::account::caller::Scope::ALL.into(),
        rate_per_minute: Some(60),
        concurrent_rounds: Some(4),
        created_at: at(2),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    };
    let secret_hash = std::array::from_fn(|index| u8::try_from(index * 8).unwrap());
    KeyRecord { key, secret_hash, suspended: false }
}

/// A round of the account, opened `number` seconds after the first, with a lease of an hour.
pub(crate) fn round(account: &AccountId, number: u32) -> OpenRound {
    let opened_at = at(i64::from(number) * 1_000);
    OpenRound {
        id: RoundId::new(opened_at, u128::from(number)),
        account: account.clone(),
        kind: JobKind::Validate,
        node: node("first"),
        // Beyond the range of a signed number.
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
        verifier: None,
        step: None,
        hold: None,
        kept: RetainedRequest::default(),
    }
}

/// The same round, with a lease that expires immediately.
pub(crate) fn abandoned(account: &AccountId, number: u32) -> OpenRound {
    let round = round(account, number);
    OpenRound { lease_until: round.opened_at, ..round }
}

pub(crate) fn seat(index: usize) -> Seat {
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

pub(crate) fn claim(by: &str, orphans: TakeoverScope) -> RoundTakeover {
    RoundTakeover {
        node: node(by),
        lease_token: 7,
        lease_until: at(900_000).plus_millis(HOUR_MS),
        now: at(900_000),
        limit: 100,
        orphans,
    }
}

/// How the round ends if its three replicas vote, abstain and fail.
pub(crate) fn closing(open: &OpenRound) -> RoundClosing {
    ended(open, RoundEnding::Closed, Outcome::Agreed, replicas())
}

pub(crate) fn expiry(open: &OpenRound) -> RoundClosing {
    let nothing = |index| {
        replica(index, ReplicaAnswer::nothing(FailureCode::NodeStopped, "the node stopped"))
    };
    ended(open, RoundEnding::Expired, Outcome::Failed, (0..3).map(nothing).collect())
}

pub(crate) fn ended(
    open: &OpenRound,
    ending: RoundEnding,
    outcome: Outcome,
    replicas: Vec<Replica>,
) -> RoundClosing {
    let closed_at = open.opened_at.plus_millis(250);
    let consensus = consensus(outcome, &replicas);
    let sealed =
        DecisionEntry::new(open, ending, &replicas, &consensus, closed_at).canonical_entry();
    RoundClosing {
        ending,
        replicas,
        consensus,
        closed_at,
        receipt_id: sealed.digest,
        entry: sealed.text,
        bookings: Vec::new(),
    }
}

/// The round in a list: shares have four decimals.
pub(crate) fn summary(open: &OpenRound, closing: Option<&RoundClosing>) -> RoundSummary {
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
        basis: None,
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
    let said = AnswerContent {
        output: Some(Value::Null),
        score: Some(0.1 + 0.2),
        reason_codes: vec![100, 999],
        evidence,
        result_hash: Some("sha256:22".to_owned()),
        notes: vec!["hash_missing".to_owned()],
    };
    let failure = ReplicaFailure {
        code: FailureCode::PolicyContradicted,
        detail: "passed, and ours\u{0} fails".to_owned(),
    };
    vec![
        replica(0, ReplicaAnswer::Vote(ReplicaVote { label: Label::Valid, said: said.clone() })),
        replica(
            1,
            ReplicaAnswer::Abstained { label: Label::NeedsSpec, said: AnswerContent::default() },
        ),
        replica(2, ReplicaAnswer::Nothing { label: Label::Error, failure, said: Some(said) }),
    ]
}

fn replica(index: usize, answer: ReplicaAnswer) -> Replica {
    Replica {
        index,
        seat: index,
        replaced_by: None,
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

/// The mark of a judge's text, which must be gone once it is erased.
pub(crate) const SAID: &str = "the judge's own words";

pub(crate) fn config(criterion: &str) -> VerifierConfig {
    let example = VerifierExample {
        inputs: [("response".to_owned(), "a 'quoted' \u{e9}".to_owned())].into(),
        media_url: Some("https://example.org/a.png".to_owned()),
        passed: true,
        reasoning: Some("because".to_owned()),
    };
    VerifierConfig {
        criterion: criterion.to_owned(),
        contract: InputContract::TextImage,
        fields: vec!["response".to_owned()],
        examples: vec![example],
        judge: JudgeSettings {
            model: "openai/gpt-5.4".parse().unwrap(),
            effort: Some(Effort::High),
            commit_first: true,
        },
    }
}

/// A deploy with a token, an id and a time that follow from its number.
pub(crate) fn deploy(account: &AccountId, name: &str, number: u32) -> NewVerifierVersion {
    NewVerifierVersion {
        account: account.clone(),
        name: name.to_owned(),
        description: format!("the {number}th"),
        config: config(&format!("criterion {number}")),
        expected_token: None,
        new_id: uuid(at(i64::from(number)), u128::from(number)),
        new_token: format!("token-{number}"),
        quota_bytes: u64::MAX,
        at: at(i64::from(number)),
    }
}

pub(crate) fn ticket(verifier_id: &str, number: u32) -> VerifierRunTicket {
    VerifierRunTicket {
        id: uuid(at(i64::from(number) * 1_000), u128::from(number)),
        verifier_id: verifier_id.to_owned(),
        version: 1,
        purpose: VerifierRunPurpose::Run,
        provenance: Provenance {
            workflow_id: Some("wf \u{e9}".to_owned()),
            workflow_version: Some(3),
            workflow_ref: None,
            run_id: Some("outer".to_owned()),
        },
        inputs_digest: format!("{number:064x}"),
    }
}

/// A round that is a run of the verifier.
pub(crate) fn run(account: &AccountId, verifier_id: &str, number: u32) -> OpenRound {
    let run = Some(ticket(verifier_id, number));
    OpenRound { run, seats: vec![seat(0)], ..round(account, number) }
}

/// The round with a hold.
pub(crate) fn holding(open: OpenRound, micros: i64, is_limited: bool) -> OpenRound {
    let hold = CreditHold {
        micros,
        most_micros: micros,
        least_micros: micros,
        is_limited,
        day_cap_micros: None,
    };
    OpenRound { hold: Some(hold), ..open }
}

/// How a round ends in which one judge decides, at this cost.
pub(crate) fn judged(
    open: &OpenRound,
    verdict: VerifierRunVerdict,
    cost_micros: u64,
) -> RoundClosing {
    let label = if verdict == VerifierRunVerdict::Passed { Label::Valid } else { Label::Invalid };
    let said = AnswerContent {
        output: Some(json!({"passed": label == Label::Valid, "reasoning": SAID, "odd": "\u{0}"})),
        notes: vec![SAID.to_owned()],
        ..replicas()[0].answer.content().cloned().unwrap()
    };
    let answer = if verdict == VerifierRunVerdict::Error {
        ReplicaAnswer::nothing(FailureCode::Timeout, format!("late: {SAID}"))
    } else {
        ReplicaAnswer::Vote(ReplicaVote { label, said })
    };
    let usage = JudgeUsage { input_tokens: 9, output_tokens: 2, calls: 1, is_cached: false };
    let judge = Replica { cost_micros, usage: Some(usage), ..replica(0, answer) };
    let outcome =
        if verdict == VerifierRunVerdict::Error { Outcome::Failed } else { Outcome::Agreed };
    let mut end = ended(open, RoundEnding::Closed, outcome, vec![judge]);
    end.consensus.verdict = (verdict != VerifierRunVerdict::Error).then_some(label);
    end.consensus.output = Some(json!({"reasoning": SAID, "odd": "\u{0}"}));
    end.consensus.groups = vec![Some(0)];
    sealed(open, end)
}

/// The same end with its decision entry.
fn sealed(open: &OpenRound, end: RoundClosing) -> RoundClosing {
    let entry = DecisionEntry::new(open, end.ending, &end.replicas, &end.consensus, end.closed_at)
        .canonical_entry();
    RoundClosing { receipt_id: entry.digest, entry: entry.text, ..end }
}

/// How a round ends if its replicas cost this much together.
pub(crate) fn costing(open: &OpenRound, ending: RoundEnding, cost_micros: u64) -> RoundClosing {
    let mut replicas = replicas();
    for replica in &mut replicas {
        replica.cost_micros = 0;
    }
    replicas[1].cost_micros = cost_micros;
    ended(open, ending, Outcome::Agreed, replicas)
}

pub(crate) fn grant(account: &AccountId, micros: i64) -> CreditGrant {
    CreditGrant { account: account.clone(), micros, note: Some("a gift".to_owned()), at: at(3) }
}

/// The result of a lookup for an action on a verifier.
pub(crate) async fn reached(
    store: &Store,
    caller: &AccountId,
    (which, version): (&VerifierSelector, Option<u32>),
    needs: VerifierRole,
) -> NameMatch<ReachedVersion> {
    let asked = VerifierLookup { caller: caller.clone(), which: which.clone(), version, needs };
    let behalf = Behalf::Account(caller.clone());
    store.verifiers().get(&behalf, &asked).await.unwrap()
}

/// A version that an account can see in full.
pub(crate) async fn verifier(
    store: &Store,
    caller: &AccountId,
    which: &VerifierSelector,
    version: Option<u32>,
) -> Option<VerifierVersion> {
    match reached(store, caller, (which, version), VerifierRole::Tune).await {
        NameMatch::One(reached) => Some(reached.version),
        NameMatch::Nothing | NameMatch::Elsewhere(_) => None,
    }
}

/// The verifiers that an account reaches, behind a name.
pub(crate) async fn verifiers(store: &Store, caller: &AccountId, page: &ListPage) -> Vec<Verifier> {
    let after = page.after.clone().map(|name| (name, "~".to_owned()));
    let query = VerifierQuery { caller: caller.clone(), after, limit: page.limit };
    let found = store.verifiers().list(&Behalf::Account(caller.clone()), &query).await;
    found.unwrap().into_iter().map(|reached| reached.verifier).collect()
}

pub(crate) async fn versions(
    store: &Store,
    caller: &AccountId,
    verifier_id: &str,
    (before, limit): (Option<u32>, u32),
) -> Vec<VersionSummary> {
    let (caller, verifier_id) = (caller.clone(), verifier_id.to_owned());
    let behalf = Behalf::Account(caller.clone());
    let query = VersionQuery { caller, verifier_id, before, limit };
    store.verifiers().versions(&behalf, &query).await.unwrap()
}

/// Opens a round without a key.
pub(crate) async fn open_round(
    store: &Store,
    round: &OpenRound,
) -> WriteOutcome<RoundOpening, RoundOpenRefusal> {
    store.rounds().open(&Behalf::from(&round.account), round, None).await.unwrap()
}

pub(crate) async fn close_round(
    store: &Store,
    round: &OpenRound,
    closing: &RoundClosing,
) -> WriteOutcome<RoundCharge, RoundLost> {
    store.rounds().close(&Behalf::from(&round.account), round, closing).await.unwrap()
}

pub(crate) async fn find_round(store: &Store, account: &AccountId, id: &RoundId) -> Option<Round> {
    store.rounds().get(&Behalf::from(account), account, id).await.unwrap()
}
