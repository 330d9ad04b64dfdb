//! Has an executor of another node called by that node, for one seat of a round.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use jurat_core::{
    peer::{
        Peer,
        book::{BookSide, PeerBooking},
    },
    round::{
        candidate::InlineEvidence,
        replica::{FailureCode, ReplicaFailure},
    },
};
use jurat_guard::client::HttpReply;
use jurat_wire::mesh::{
    AnswerOutcome, JobAnswer, JobCall, JobRequest, NodeReply, NodeRequest, body_digest,
};

use super::message::{PeerCallError, ReplyLimits, SignedReply, address_of};
use crate::{
    Engine,
    executors::pool::PeerRoute,
    rounds::{
        ask::{ExecutorReply, excerpt},
        seats::SeatTarget,
    },
};

/// The largest reply of an executor, as for one that is called directly.
const MOST_REPLY_BYTES: usize = 2 * 1024 * 1024;
/// The media type of the proof that another node answered, among the evidence of an answer.
pub(crate) const PROOF_MIME: &str = "application/vnd.jurat.answer+json";
/// A little less than the time that is left, so that an answer at the last moment still arrives.
const RETURN_MS: u64 = 50;

/// One call of an executor through its node.
#[derive(Debug)]
pub(crate) struct PeerCall<'a> {
    pub(crate) route: &'a PeerRoute,
    pub(crate) round: &'a str,
    pub(crate) replica: usize,
    pub(crate) execution_id: String,
    pub(crate) call: JobCall,
    pub(crate) body: Bytes,
    pub(crate) left: Duration,
}

impl Engine {
    /// Sends the job, and returns the executor's reply if its node signed it for this seat.
    pub(crate) async fn call_peer(
        &self,
        place: &SeatTarget,
        job: PeerCall<'_>,
    ) -> Result<ExecutorReply, ReplicaFailure> {
        let peer = self.hireable(&job.route.node).await.map_err(|error| error.failure())?;
        let within_ms = u64::try_from(job.left.as_millis()).unwrap_or(u64::MAX);
        let request = JobRequest {
            route: self.route_to(&peer.id),
            round: job.round.to_owned(),
            replica: job.replica as u64,
            execution_id: job.execution_id.clone(),
            call: job.call,
            executor: job.route.executor.clone(),
            profile: place.profile.clone(),
            most_price_micros: peer.terms.most_price(place.price_micros),
            within_ms: within_ms.saturating_sub(RETURN_MS).max(1),
            body_digest: body_digest(&job.body),
        };
        let limits = ReplyLimits { within: job.left, most_body: MOST_REPLY_BYTES };
        let asked = NodeRequest::Job(request.clone());
        let replied = self.ask_node(&address_of(&peer), &asked, job.body, limits).await;
        let replied = replied.map_err(|error| error.failure())?;
        self.read_answer(&peer, &request, replied)
    }

    fn read_answer(
        &self,
        peer: &Peer,
        asked: &JobRequest,
        replied: SignedReply,
    ) -> Result<ExecutorReply, ReplicaFailure> {
        let SignedReply { reply, proof, body } = replied;
        let NodeReply::Answer(answer) = reply else {
            return Err(PeerCallError::Foreign("the reply is no answer to a job").failure());
        };
        check_answer(asked, &answer)?;
        let status = match &answer.outcome {
            AnswerOutcome::Answered { status } => *status,
            AnswerOutcome::Failed { code, detail } => return Err(remote_failure(code, detail)),
        };
        let status = StatusCode::from_u16(status).map_err(|_| {
            ReplicaFailure::new(FailureCode::BadShape, "the answer has no HTTP status")
        })?;
        let booking = PeerBooking {
            peer: peer.id.clone(),
            side: BookSide::Owed,
            origin: self.own_peer_id(),
            execution_id: asked.execution_id.clone(),
            price_micros: answer.price_micros,
        };
        Ok(ExecutorReply {
            http: HttpReply { status, headers: HeaderMap::new(), body },
            price_micros: answer.price_micros,
            proof: Some(InlineEvidence { mime: PROOF_MIME.to_owned(), content: proof }),
            booking: Some(booking),
        })
    }
}

/// An answer must be bound to the seat that asked, and must not cost more than was agreed.
fn check_answer(asked: &JobRequest, answer: &JobAnswer) -> Result<(), ReplicaFailure> {
    let is_ours = answer.round == asked.round
        && answer.replica == asked.replica
        && answer.execution_id == asked.execution_id;
    if !is_ours {
        return Err(PeerCallError::Foreign("the answer is for another round or replica").failure());
    }
    let (most, price) = (asked.most_price_micros, answer.price_micros);
    if most < price {
        let detail = format!("the node asks {price} micro-credits, and at most {most} were agreed");
        return Err(ReplicaFailure::new(FailureCode::Overpriced, detail));
    }
    Ok(())
}

/// The failure of an executor of another node, as that node reports it.
fn remote_failure(code: &str, detail: &str) -> ReplicaFailure {
    let detail = format!("on its node: {}", excerpt(detail.as_bytes()));
    let code = match code.parse() {
        // What ended the work over there is no end of the round here.
        Ok(FailureCode::Cancelled | FailureCode::NodeStopped | FailureCode::Internal) => {
            FailureCode::Unavailable
        }
        Ok(code) => code,
        Err(()) => FailureCode::BadShape,
    };
    ReplicaFailure::new(code, detail)
}

#[cfg(test)]
mod tests {
    use jurat_wire::mesh::Route;

    use super::*;

    fn asked() -> JobRequest {
        JobRequest {
            route: Route::new("a", "b", 1),
            round: "rnd_1".to_owned(),
            replica: 1,
            execution_id: "exec-1".to_owned(),
            call: JobCall::Execute,
            executor: "http://127.0.0.1:1".to_owned(),
            profile: "default".to_owned(),
            most_price_micros: 10,
            within_ms: 1,
            body_digest: String::new(),
        }
    }

    fn answer() -> JobAnswer {
        JobAnswer {
            route: Route::new("b", "a", 1),
            request: String::new(),
            round: "rnd_1".to_owned(),
            replica: 1,
            execution_id: "exec-1".to_owned(),
            outcome: AnswerOutcome::Answered { status: 200 },
            price_micros: 10,
            served_by: None,
            body_digest: String::new(),
        }
    }

    #[test]
    fn an_answer_counts_only_for_its_own_seat_and_at_the_agreed_price() {
        let code = |answer: &JobAnswer| check_answer(&asked(), answer).map_err(|it| it.code);
        assert_eq!(code(&answer()), Ok(()));
        for foreign in [
            JobAnswer { round: "rnd_2".to_owned(), ..answer() },
            JobAnswer { replica: 0, ..answer() },
            JobAnswer { execution_id: "exec-2".to_owned(), ..answer() },
        ] {
            assert_eq!(code(&foreign), Err(FailureCode::ForeignAnswer));
        }
        assert_eq!(code(&JobAnswer { price_micros: 11, ..answer() }), Err(FailureCode::Overpriced));
    }

    #[test]
    fn a_failure_over_there_never_ends_the_round_here() {
        assert_eq!(remote_failure("timeout", "x").code, FailureCode::Timeout);
        assert_eq!(remote_failure("cancelled", "x").code, FailureCode::Unavailable);
        assert_eq!(remote_failure("node_stopped", "x").code, FailureCode::Unavailable);
        assert_eq!(remote_failure("nonsense", "x").code, FailureCode::BadShape);
        let long = remote_failure("timeout", &"x\n".repeat(9_999));
        assert!(long.detail.len() < 300 && !long.detail.contains('\n'));
    }
}
