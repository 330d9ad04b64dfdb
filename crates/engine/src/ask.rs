//! Asks one session: the request it gets, and what its reply amounts to.

mod check;
mod execute;
mod judge;
mod node;
mod review;
mod verify;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use jurat_core::{
    conduct::Seen,
    evidence::amend_answer,
    id::{AccountId, RoundId},
    job::{Job, Work},
    replica::{Answer, Failure, FailureCode, Usage},
    round::{OpenRound, Seat},
    time::Timestamp,
};
use jurat_guard::client::{CallError, Reply};
use jurat_wire::strict;
use serde_json::{Value, value::RawValue};
use tokio::time::Instant;

pub(crate) use self::{check::Checks, judge::Judging};
use crate::{
    Engine,
    evidence::{self, SharedFindings},
    judge::{AtHand, Bill, Tab},
    places::{Choice, Place, Places},
    probe::headers,
    signature::{CONTENT_DIGEST, Covered, SIGNATURE, SIGNATURE_INPUT, content_digest},
    trace,
};

const ROUND: HeaderName = HeaderName::from_static("x-jurat-round");
const REPLICA: HeaderName = HeaderName::from_static("x-jurat-replica");
/// Values that the answer of an executor may hold, each list and object counted.
const MOST_VALUES: usize = 100_000;
pub(crate) const CORRELATION: HeaderName = HeaderName::from_static("x-correlation-id");

/// What every replica of a round is sent out with.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) round: RoundId,
    pub(crate) job: Job,
    pub(crate) checks: Checks,
    pub(crate) places: Places,
    /// Those who may take the seat of one that fails.
    pub(crate) spares: Vec<Seat>,
    pub(crate) opened_at: Timestamp,
    pub(crate) deadline: Instant,
    pub(crate) account: AccountId,
    /// What is found for the candidate, where its references are to be looked at.
    pub(crate) findings: Option<SharedFindings>,
    /// What was at hand for each seat of a judge before the round opened.
    at_hand: Vec<AtHand>,
    /// What judge calls cost.
    pub(crate) tab: Arc<Tab>,
    /// The body of `/verify`, the same for all replicas.
    verify: Option<Letter>,
    /// What `/execute` is given, the same for all replicas.
    inputs: Option<Box<RawValue>>,
}

/// A body with its digest.
#[derive(Debug, Clone)]
struct Letter {
    body: Bytes,
    digest: String,
}

impl Letter {
    fn new(body: Vec<u8>) -> Self {
        let digest = content_digest(&body);
        Self { body: body.into(), digest }
    }
}

impl Errand {
    pub(crate) fn new(
        open: &OpenRound,
        mut job: Job,
        checks: Checks,
        (choice, at_hand): (Choice, Vec<AtHand>),
        deadline: Instant,
    ) -> Self {
        let Choice { places, spares, .. } = choice;
        let verify = match (&job.work, &places) {
            (Work::Validate { .. }, Places::Executors(_)) => {
                Some(Letter::new(verify::request(open, &job, &checks)))
            }
            _ => None,
        };
        // From here on the candidate is in the checks alone.
        if let Work::Validate { output, .. } = &mut job.work {
            *output = Value::Null;
        }
        Self {
            inputs: execute::take_inputs(&mut job),
            round: open.id.clone(),
            account: open.account.clone(),
            findings: evidence::asked_for(&job),
            job,
            checks,
            places,
            spares,
            opened_at: open.opened_at,
            deadline,
            verify,
            at_hand,
            tab: Tab::new(open),
        }
    }

    /// Where the judge calls of a seat are charged.
    fn bill(&self, seat: usize) -> Bill {
        Bill { tab: Arc::clone(&self.tab), seat }
    }
}

/// What one session said, and what that costs.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) answer: Answer,
    pub(crate) cost_micros: u64,
    pub(crate) usage: Option<Usage>,
}

impl Asked {
    /// An answer that is none, after which only what was sent to judges is paid.
    pub(crate) fn cut_off(answer: Answer, cost_micros: u64) -> Self {
        Self { answer, cost_micros, usage: None }
    }
}

impl From<Answer> for Asked {
    /// An answer that nobody is paid for.
    fn from(answer: Answer) -> Self {
        Self { answer, cost_micros: 0, usage: None }
    }
}

impl Engine {
    /// What one session says, in the light of the evidence. Never fails: whatever goes wrong is the
    /// answer.
    pub(crate) async fn ask(&self, errand: &Arc<Errand>, index: usize) -> Asked {
        let (mut asked, findings) =
            tokio::join!(self.ask_seat(errand, index), self.findings(errand));
        if let Some(findings) = findings {
            asked.answer = amend_answer(asked.answer, findings);
        }
        asked
    }

    async fn ask_seat(&self, errand: &Arc<Errand>, index: usize) -> Asked {
        match &errand.places {
            Places::Judges(models) => self.ask_judge(errand, index, &models[index]).await,
            Places::Node => node::answer(&errand.checks).into(),
            Places::Executors(places) => {
                let place = &places[index];
                if let Some(problem) = &place.problem {
                    return Answer::nothing(FailureCode::Unavailable, problem).into();
                }
                let mut asked = self.ask_executor(errand, index, place).await;
                // Who did not answer is not paid.
                if asked.answer.said().is_some() {
                    asked.cost_micros = asked.cost_micros.saturating_add(place.price_micros);
                }
                asked
            }
        }
    }

    async fn ask_executor(&self, errand: &Arc<Errand>, index: usize, place: &Place) -> Asked {
        let (path, letter) = match &errand.verify {
            Some(letter) => ("/verify", letter.clone()),
            None => ("/execute", Letter::new(execute::request(errand, index, place))),
        };
        let turn = place.address.calls.take(&errand.account);
        let Ok(_turn) = tokio::time::timeout_at(errand.deadline, turn).await else {
            return Answer::nothing(
                FailureCode::Busy,
                "the executor was at its limit of concurrent calls until the deadline",
            )
            .into();
        };
        let headers = self.letter_heads(errand, index, place, (path, &letter));
        let url = match errand.verify {
            Some(_) => &place.address.verify,
            None => &place.address.execute,
        };
        let sent_at = Instant::now();
        let left = errand.deadline.saturating_duration_since(sent_at);
        let replied = self.inner.client.post_json(url, headers, letter.body, left).await;
        let took = sent_at.elapsed();
        trace::replied(&place.address, &replied);
        let asked: Asked = match replied {
            Ok(reply) if errand.verify.is_some() => verify::read(errand, place, &reply).into(),
            Ok(reply) => execute::read(self, errand, index, &reply).await,
            Err(error) => failed_call(&error, errand.job.timeout_ms).into(),
        };
        self.note_call(errand, &place.declared.executor, &asked.answer, took);
        asked
    }

    /// Remembers how a call went, so that an executor that fails is left alone for a while.
    fn note_call(&self, errand: &Errand, executor: &str, answer: &Answer, took: Duration) {
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let seen = match answer.failure().map(|failure| failure.code) {
            None => Seen::Answered { took_ms },
            Some(FailureCode::Timeout) => Seen::Silent { given_ms: took_ms },
            Some(FailureCode::Unreachable) => Seen::Unreachable,
            Some(code) if code.is_executors_fault() => Seen::Failed,
            Some(_) if answer.said().is_some() => Seen::Answered { took_ms },
            Some(_) => return,
        };
        let now = self.inner.clock.now();
        self.inner.pool.update(executor, |standing| {
            standing.conduct.after_call(&errand.account, seen, now);
        });
    }

    fn letter_heads(
        &self,
        errand: &Errand,
        index: usize,
        place: &Place,
        (path, letter): (&str, &Letter),
    ) -> HeaderMap {
        let address = &place.address;
        let replica = index.to_string();
        let full_path = format!("{}{path}", address.prefix);
        let signed = self.inner.node_key.sign(&Covered {
            authority: &address.authority,
            path: &full_path,
            content_digest: &letter.digest,
            about: &[(ROUND.as_str(), errand.round.as_str()), (REPLICA.as_str(), &replica)],
            created: errand.opened_at,
        });
        let mut heads = headers(address);
        let correlation = format!("{}-{replica}", errand.round);
        for (name, value) in [
            (ROUND, errand.round.as_str()),
            (REPLICA, &replica),
            (CORRELATION, &correlation),
            (CONTENT_DIGEST, &letter.digest),
            (SIGNATURE_INPUT, &signed.input),
            (SIGNATURE, &signed.signature),
        ] {
            if let Ok(value) = HeaderValue::from_str(value) {
                heads.insert(name, value);
            }
        }
        // Not covered by the signature, because whoever passes a trace on writes it anew.
        trace::inject(&mut heads);
        heads
    }
}

/// The JSON of a reply that went well, or why there is none.
fn content(reply: &Reply) -> Result<Value, Failure> {
    if !reply.status.is_success() {
        let detail = format!("the executor answered {}: {}", reply.status, beginning(&reply.body));
        return Err(Failure::new(FailureCode::HttpStatus, detail));
    }
    strict::parse_within(&reply.body, MOST_VALUES)
        .map_err(|error| Failure::new(FailureCode::NotJson, error.to_string()))
}

/// The first words of a body, for people who look for the cause.
pub(crate) fn beginning(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(400)]);
    let plain: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    if plain.is_empty() { "(no text)".to_owned() } else { plain }
}

fn failed_call(error: &CallError, timeout_ms: u64) -> Answer {
    let code = match error {
        CallError::Timeout => {
            let seconds = Duration::from_millis(timeout_ms).as_secs_f64();
            let detail = format!("no answer within the {seconds} s of the round");
            return Answer::nothing(FailureCode::Timeout, detail);
        }
        CallError::Unreachable(_) => FailureCode::Unreachable,
        CallError::Disconnected(_) => FailureCode::Disconnected,
        CallError::TooLarge { .. } => FailureCode::TooLarge,
        CallError::Encoded { .. } => FailureCode::EncodedReply,
        CallError::Redirect { host } => {
            tracing::warn!(host, "executor answered with a redirect, which is not followed");
            FailureCode::Redirect
        }
        CallError::Tls(_) => FailureCode::Internal,
    };
    Answer::nothing(code, error.to_string())
}
