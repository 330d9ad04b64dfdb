//! Runs a verifier: a round of its judges, with a row of its own in the registry.

use std::collections::BTreeMap;

use jurat_core::{
    account::caller::{Caller, Scope},
    canonical::{canonical, sha256_hex},
    id,
    judge::Question,
    policy::{PolicyBinding, SEMANTIC},
    round::{
        Round,
        candidate::Evidence,
        job::{AgreementTerms, Job, JobWork, PoolEntry},
    },
    verifier::{
        ModelRef, VerifierRef, VerifierVersion,
        registry::Measurement,
        run::{Provenance, VerifierRun, VerifierRunEnd, VerifierRunPurpose, VerifierRunTicket},
    },
};
use serde_json::{Map, Value, json};

use crate::{
    Engine, EngineError, IdempotencyKey, RoundHandle, RoundWatcher,
    access::require_scope,
    accounts::visitors,
    rounds::{seats::JUDGE_PREFIX, semantic::ResolvedVerifier, walk::RoundStart},
};

/// The request for a verifier run.
#[derive(Debug, Clone)]
pub struct VerifierRunOrder {
    pub reference: VerifierRef,
    pub inputs: BTreeMap<String, String>,
    pub media_url: Option<String>,
    /// 1, 3 or 5 judges.
    pub replicas: u8,
    /// The judges; if empty, the verifier's own judge and the operator's panel.
    pub judges: Vec<ModelRef>,
    /// Whether the verdict cache is skipped.
    pub is_fresh: bool,
    /// Overrides the setting of the verifier.
    pub commit_first: Option<bool>,
    pub timeout_ms: u64,
    pub provenance: Provenance,
    pub request_digest: String,
    /// Notes of the caller that are stored with the inputs.
    pub notes: Map<String, Value>,
    pub purpose: VerifierRunPurpose,
    /// The calibration example under test, which the judge does not see.
    pub leave_out: Option<usize>,
}

/// An ended run, with all its details.
#[derive(Debug, Clone)]
pub struct VerifierRunView {
    pub run: VerifierRun,
    pub round: Round,
    pub verifier_name: String,
    pub measured: Vec<Measurement>,
    /// Whether an earlier request with the same idempotency key started it.
    pub is_repeated: bool,
}

/// A begun verifier run.
#[derive(Debug)]
pub struct VerifierRunHandle {
    /// Its round.
    pub begun: RoundHandle,
    found: ResolvedVerifier,
}

impl VerifierRunHandle {
    /// Waits for the end of the run.
    pub async fn wait(self) -> Result<VerifierRunView, EngineError> {
        let (round, is_repeated) = self.begun.wait_or_retry().await?;
        verifier_run_view(round, &self.found, is_repeated)
    }
}

impl Engine {
    /// Lets the judge of a verifier decide. A failure of the judge is the end of a run, not an
    /// error; inputs that do not fit the contract are an error, and leave no trace.
    pub async fn verifier_run(
        &self,
        caller: &Caller,
        request: VerifierRunOrder,
        watcher: RoundWatcher,
        once: Option<IdempotencyKey>,
    ) -> Result<VerifierRunView, EngineError> {
        self.verifier_run_begin(caller, request, watcher, once).await?.wait().await
    }

    /// Begins the round of a verifier run, and lets it run.
    pub async fn verifier_run_begin(
        &self,
        caller: &Caller,
        mut request: VerifierRunOrder,
        watcher: RoundWatcher,
        once: Option<IdempotencyKey>,
    ) -> Result<VerifierRunHandle, EngineError> {
        require_scope(caller, Scope::VerifiersRun)?;
        let version = self.verifier_resolve(caller, &request.reference).await?;
        request.provenance = self.provenance_checked(caller, &request.provenance).await?;
        self.check_verifier_run(caller, &version, &request)?;
        visitors::check_visitor_timeout(caller, request.timeout_ms)?;
        self.grant_visitor_credit(caller).await?;
        let found = self.with_measurements(version).await?;
        let ticket = self.verifier_run_ticket(&found.version, &request);
        let start = RoundStart {
            caller: caller.clone(),
            job: verifier_run_job(&found.version, &request),
            watcher,
            idempotency_key: once,
            verifier_run: Some((ticket, found.clone())),
        };
        Ok(VerifierRunHandle { begun: self.begin_round(start).await?, found })
    }

    /// Checks that the request fits the contract of the version, and names judges that may be
    /// asked.
    fn check_verifier_run(
        &self,
        caller: &Caller,
        version: &VerifierVersion,
        request: &VerifierRunOrder,
    ) -> Result<(), EngineError> {
        version.config.check_inputs(&request.inputs, request.media_url.as_deref())?;
        Question::check_length(version.config.contract, &request.inputs)?;
        let wrong = |field: &str, problem: String| Err(EngineError::invalid(field, problem));
        self.check_media_url("media_url", request.media_url.as_deref())?;
        if let Some(twice) = repeated_judge(&request.judges) {
            return wrong("judges", format!("names `{twice}` twice; each judge has one vote"));
        }
        let (named, wanted) = (request.judges.len(), usize::from(request.replicas));
        if 0 < named && named < wanted {
            let problem = format!("names {named}, but `replicas` asks for {wanted}");
            return wrong("judges", problem);
        }
        let own = std::slice::from_ref(&version.config.judge.model);
        let asked = if named == 0 { own } else { &request.judges };
        for judge in asked {
            if let Err(unpriced) = self.check_priced(caller.credit(), judge) {
                return wrong("judges", format!("cannot be asked: {unpriced}"));
            }
        }
        let ready = self.judges_ready(version);
        if named == 0 && ready < wanted {
            let problem = format!(
                "asks for {wanted} judges, with only {ready} available; name others in `judges`, or ask the operator to add more to the setting `judges.panel`"
            );
            return wrong("replicas", problem);
        }
        Ok(())
    }

    fn verifier_run_ticket(
        &self,
        version: &VerifierVersion,
        request: &VerifierRunOrder,
    ) -> VerifierRunTicket {
        let clock = &self.inner.clock;
        VerifierRunTicket {
            id: id::uuid(clock.now(), clock.bits()),
            verifier_id: version.verifier.id.clone(),
            version: version.version,
            purpose: request.purpose,
            provenance: request.provenance.clone(),
            inputs_digest: sha256_hex(&canonical(&candidate(request))),
        }
    }
}

fn repeated_judge(judges: &[ModelRef]) -> Option<&ModelRef> {
    judges.iter().enumerate().find(|(at, model)| judges[..*at].contains(model)).map(|(_, it)| it)
}

/// The judged inputs, as a candidate.
fn candidate(request: &VerifierRunOrder) -> Value {
    let mut members: Map<String, Value> =
        request.inputs.iter().map(|(field, text)| (field.clone(), json!(text))).collect();
    if let Some(url) = &request.media_url {
        members.insert("media_url".to_owned(), json!(url));
    }
    Value::Object(members)
}

fn verifier_run_job(version: &VerifierVersion, request: &VerifierRunOrder) -> Job {
    let mut params = Map::new();
    let pinned = format!("{}@{}", version.verifier.id, version.version);
    params.insert("verifier".to_owned(), json!(pinned));
    let stored = (!request.notes.is_empty()).then(|| {
        let mut stored = request.notes.clone();
        stored.insert("verifier".to_owned(), json!(pinned));
        stored.insert("inputs".to_owned(), candidate(request));
        Value::Object(stored)
    });
    if let Some(commit_first) = request.commit_first {
        params.insert("commit_first".to_owned(), json!(commit_first));
    }
    if request.is_fresh {
        params.insert("fresh".to_owned(), json!(true));
    }
    if let Some(index) = request.leave_out {
        params.insert("leave_out".to_owned(), json!(index));
    }
    let pool =
        request.judges.iter().map(|model| PoolEntry::Session(format!("{JUDGE_PREFIX}{model}")));
    Job {
        work: JobWork::Validate { output: candidate(request), evidence: Evidence::default() },
        policy: PolicyBinding::new(SEMANTIC, Value::Object(params)),
        output_schema: json!({}),
        has_schema: false,
        context: None,
        passed_on: Map::new(),
        tier: None,
        labels: std::collections::BTreeSet::new(),
        terms: AgreementTerms::plain(request.replicas, pool.collect()),
        timeout_ms: request.timeout_ms,
        max_steps: None,
        request_digest: request.request_digest.clone(),
        // Without notes, the round stores the same by itself.
        request: stored.and_then(|it| String::from_utf8(canonical(&it)).ok()),
        step: None,
        relayed: None,
    }
}

fn verifier_run_view(
    round: Round,
    found: &ResolvedVerifier,
    is_repeated: bool,
) -> Result<VerifierRunView, EngineError> {
    let (Some(ticket), Some(closing)) = (&round.open.run, &round.closing) else {
        return Err(EngineError::Bug("a run has no ticket or no end"));
    };
    let run = VerifierRun {
        account: round.open.account.clone(),
        ticket: ticket.clone(),
        round: round.open.id.clone(),
        created_at: round.open.opened_at,
        end: Some(VerifierRunEnd::of(&round.open, closing)),
    };
    Ok(VerifierRunView {
        run,
        round,
        verifier_name: found.version.verifier.name.clone(),
        measured: found.measured.to_vec(),
        is_repeated,
    })
}
