//! Agent events, and the decisions of executors about them.

mod record;

use std::str::FromStr;

pub use self::record::{
    AgentEventAddition, AgentEventFilter, AgentEventOrder, AgentEventRecord, NewAgentEvent,
};
use crate::{round::job::words, time::Timestamp};

words!(
    /// The type of an agent event.
    AgentEventType {
        FriendRequest => "friend_request",
        DmReceived => "dm_received",
        PaymentRequest => "payment_request",
        PaymentUpdate => "payment_update",
        TaskClaimReceived => "task_claim_received",
        TaskClaimDecisionReceived => "task_claim_decision_received",
        TaskResultReceived => "task_result_received",
        TaskCompletionDecisionReceived => "task_completion_decision_received",
        TaskSettledReceived => "task_settled_received",
        TopicMessageRequiresReply => "topic_message_requires_reply",
        ThirdPartyResult => "third_party_result",
    }
);

words!(
    /// The source of an event.
    AgentEventSource {
        PeerRelationship => "peer_relationship",
        PeerDirectMessage => "peer_direct_message",
        PaymentSummary => "payment_summary",
        TaskLifecycle => "task_lifecycle",
        TopicMessage => "topic_message",
        ServiceNetResult => "service_net_result",
    }
);

impl AgentEventType {
    /// The source of events of this type.
    pub const fn source(self) -> AgentEventSource {
        match self {
            Self::FriendRequest => AgentEventSource::PeerRelationship,
            Self::DmReceived => AgentEventSource::PeerDirectMessage,
            Self::PaymentRequest | Self::PaymentUpdate => AgentEventSource::PaymentSummary,
            Self::TaskClaimReceived
            | Self::TaskClaimDecisionReceived
            | Self::TaskResultReceived
            | Self::TaskCompletionDecisionReceived
            | Self::TaskSettledReceived => AgentEventSource::TaskLifecycle,
            Self::TopicMessageRequiresReply => AgentEventSource::TopicMessage,
            Self::ThirdPartyResult => AgentEventSource::ServiceNetResult,
        }
    }

    /// The decisions that an executor may make about such an event; empty if it is only notified.
    pub const fn actions(self) -> &'static [AgentAction] {
        match self {
            Self::TaskClaimReceived => &[AgentAction::DecideClaim, AgentAction::HumanReview],
            Self::TaskResultReceived => &[
                AgentAction::AcceptResult,
                AgentAction::RejectResult,
                AgentAction::RequestRetry,
                AgentAction::HumanReview,
            ],
            Self::TopicMessageRequiresReply => &[AgentAction::Reply, AgentAction::Ignore],
            Self::FriendRequest
            | Self::DmReceived
            | Self::PaymentRequest
            | Self::PaymentUpdate
            | Self::TaskClaimDecisionReceived
            | Self::TaskCompletionDecisionReceived
            | Self::TaskSettledReceived
            | Self::ThirdPartyResult => &[],
        }
    }

    /// Whether a caller may send such an event; only tasks cause the events of tasks.
    pub fn is_sendable(self) -> bool {
        self.source() != AgentEventSource::TaskLifecycle
    }
}

words!(
    /// A decision of an executor.
    AgentAction {
        /// Takes or declines a lease.
        DecideClaim => "decide_claim",
        AcceptResult => "accept_result",
        RejectResult => "reject_result",
        RequestRetry => "request_retry",
        /// Asks for a review by a person.
        HumanReview => "human_review",
        Reply => "reply",
        Ignore => "ignore",
    }
);

words!(
    /// Who carries out a decision.
    DecisionRoute {
        /// Nobody.
        Noop => "noop",
        /// Another system, which reads the decision here.
        WattetheriaCommit => "wattetheria_commit",
        /// The node that sent the event.
        WattswarmDirect => "wattswarm_direct",
    }
);

words!(
    /// The direction of an event.
    EventDirection {
        /// To an executor.
        Out => "out",
        /// From an executor, or from a caller on its behalf.
        In => "in",
    }
);

words!(
    /// The state of a delivery.
    Delivery {
        Pending => "pending",
        /// The executor accepted it, with an unreadable answer.
        Delivered => "delivered",
        Acked => "acked",
        /// The executor's decision was carried out.
        Completed => "completed",
        Failed => "failed",
        /// It was too old to be delivered.
        Expired => "expired",
    }
);

impl Delivery {
    /// Whether no further attempt is made.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Pending)
    }
}

/// How an attempt to deliver an event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// Accepted, and the answer confirms it.
    Acked,
    /// Accepted, and the answer refuses it.
    Refused,
    /// Accepted, and the answer cannot be read.
    Unread,
    /// Answered with a status that another attempt may change: 408, 429 or 5xx.
    Busy,
    /// Answered with another status.
    Status,
    /// Not reached, or no answer.
    Unreachable,
}

impl DeliveryOutcome {
    /// The outcome of an answer; `ok` is the member of its body, if it can be read.
    pub const fn of(status: u16, ok: Option<bool>) -> Self {
        match (status, ok) {
            (200..=299, Some(true)) => Self::Acked,
            (200..=299, Some(false)) => Self::Refused,
            (200..=299, None) => Self::Unread,
            (408 | 429 | 500..=599, _) => Self::Busy,
            (_, _) => Self::Status,
        }
    }
}

/// How often and how long delivery is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryTerms {
    /// Including the first attempt.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles before each further attempt.
    pub backoff_ms: u64,
    /// The age at which an event expires.
    pub expires_ms: u64,
}

impl Default for RetryTerms {
    fn default() -> Self {
        Self { attempts: 3, backoff_ms: 1_000, expires_ms: 86_400_000 }
    }
}

/// When an event was created, and when its attempt ended.
#[derive(Debug, Clone, Copy)]
pub struct AttemptTimes {
    pub created_at: Timestamp,
    pub now: Timestamp,
}

/// Decides what follows an attempt; `attempts` counts from 1.
pub fn after_attempt(
    told: DeliveryOutcome,
    attempts: u32,
    terms: RetryTerms,
    times: AttemptTimes,
) -> (Delivery, Option<Timestamp>) {
    match told {
        DeliveryOutcome::Acked => (Delivery::Acked, None),
        DeliveryOutcome::Unread => (Delivery::Delivered, None),
        DeliveryOutcome::Refused | DeliveryOutcome::Status => (Delivery::Failed, None),
        DeliveryOutcome::Busy | DeliveryOutcome::Unreachable if terms.attempts <= attempts => {
            (Delivery::Failed, None)
        }
        DeliveryOutcome::Busy | DeliveryOutcome::Unreachable => {
            let doublings = attempts.saturating_sub(1).min(16);
            let next = times.now.plus_millis(terms.backoff_ms.saturating_mul(1 << doublings));
            if times.created_at.plus_millis(terms.expires_ms) < next {
                (Delivery::Expired, None)
            } else {
                (Delivery::Pending, Some(next))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: AttemptTimes = AttemptTimes { created_at: at(0), now: at(100) };

    const fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn temporary_failures_are_retried_with_doubled_waits() {
        let tried = |told, attempts| after_attempt(told, attempts, RetryTerms::default(), TIMES);
        assert_eq!(tried(DeliveryOutcome::Busy, 1), (Delivery::Pending, Some(at(1_100))));
        assert_eq!(tried(DeliveryOutcome::Unreachable, 2), (Delivery::Pending, Some(at(2_100))));
        assert_eq!(tried(DeliveryOutcome::Unreachable, 3), (Delivery::Failed, None));
        assert_eq!(tried(DeliveryOutcome::Status, 1), (Delivery::Failed, None));
        assert_eq!(tried(DeliveryOutcome::Acked, 1), (Delivery::Acked, None));
    }

    #[test]
    fn an_old_event_expires() {
        let terms = RetryTerms { expires_ms: 500, ..RetryTerms::default() };
        let tried = after_attempt(DeliveryOutcome::Busy, 1, terms, TIMES);
        assert_eq!(tried, (Delivery::Expired, None));
    }

    #[test]
    fn the_status_and_the_body_of_an_answer_decide() {
        assert_eq!(DeliveryOutcome::of(200, Some(true)), DeliveryOutcome::Acked);
        assert_eq!(DeliveryOutcome::of(204, None), DeliveryOutcome::Unread);
        assert_eq!(DeliveryOutcome::of(200, Some(false)), DeliveryOutcome::Refused);
        assert_eq!(DeliveryOutcome::of(429, None), DeliveryOutcome::Busy);
        assert_eq!(DeliveryOutcome::of(503, Some(true)), DeliveryOutcome::Busy);
        assert_eq!(DeliveryOutcome::of(404, None), DeliveryOutcome::Status);
        assert_eq!(DeliveryOutcome::of(302, None), DeliveryOutcome::Status);
    }
}
