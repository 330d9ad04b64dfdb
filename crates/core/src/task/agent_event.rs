//! Events that executors are told of, and what they decide about them.

use std::str::FromStr;

use crate::{round::job::words, time::Timestamp};

words!(
    /// What happened.
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
    /// Where an event comes from.
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
    /// Where events of this type come from.
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

    /// What an executor may decide about such an event; nothing where it is only told.
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

    /// Whether a caller may send such an event; those of tasks are caused by tasks alone.
    pub fn is_sendable(self) -> bool {
        self.source() != AgentEventSource::TaskLifecycle
    }
}

words!(
    /// What an executor decides.
    AgentAction {
        /// Takes a claim, or declines it.
        DecideClaim => "decide_claim",
        AcceptResult => "accept_result",
        RejectResult => "reject_result",
        RequestRetry => "request_retry",
        /// A person is to look at it.
        HumanReview => "human_review",
        Reply => "reply",
        Ignore => "ignore",
    }
);

words!(
    /// Who is to act on a decision.
    DecisionRoute {
        /// Nobody.
        Noop => "noop",
        /// Somebody else, who reads it here.
        WattetheriaCommit => "wattetheria_commit",
        /// The node that told of the event.
        WattswarmDirect => "wattswarm_direct",
    }
);

words!(
    /// Which way an event goes.
    EventDirection {
        /// To an executor.
        Out => "out",
        /// From an executor, or from somebody else for one.
        In => "in",
    }
);

words!(
    /// How far the telling of an event has come.
    Delivery {
        Pending => "pending",
        /// It was taken, without a word that could be read.
        Delivered => "delivered",
        Acked => "acked",
        /// What was decided about it is done.
        Completed => "completed",
        Failed => "failed",
        /// It was too old to be told.
        Expired => "expired",
    }
);

impl Delivery {
    /// Whether it is not told any more.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Pending)
    }
}

/// How an attempt to tell of an event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// Taken, and the answer says so.
    Acked,
    /// Taken, and the answer says that it is of no use.
    Refused,
    /// Taken, and the answer cannot be read.
    Unread,
    /// Answered with a status that another attempt may change: 408, 429 or 5xx.
    Busy,
    /// Answered with another status.
    Status,
    /// Not reached, or no answer.
    Unreachable,
}

impl DeliveryOutcome {
    /// What an answer with a status amounts to; `ok` is what its body says, where it can be read.
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

/// How often and how long an event is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryTerms {
    /// With the first attempt.
    pub attempts: u32,
    /// Before the second attempt; twice as long before each that follows.
    pub backoff_ms: u64,
    /// Older events are not told any more.
    pub expires_ms: u64,
}

impl Default for RetryTerms {
    fn default() -> Self {
        Self { attempts: 3, backoff_ms: 1_000, expires_ms: 86_400_000 }
    }
}

/// What follows from an attempt, the `attempts`th one, counted from 1.
pub fn after_attempt(
    told: DeliveryOutcome,
    attempts: u32,
    patience: RetryTerms,
    (created_at, now): (Timestamp, Timestamp),
) -> (Delivery, Option<Timestamp>) {
    match told {
        DeliveryOutcome::Acked => (Delivery::Acked, None),
        DeliveryOutcome::Unread => (Delivery::Delivered, None),
        DeliveryOutcome::Refused | DeliveryOutcome::Status => (Delivery::Failed, None),
        DeliveryOutcome::Busy | DeliveryOutcome::Unreachable if patience.attempts <= attempts => {
            (Delivery::Failed, None)
        }
        DeliveryOutcome::Busy | DeliveryOutcome::Unreachable => {
            let doublings = attempts.saturating_sub(1).min(16);
            let next = now.plus_millis(patience.backoff_ms.saturating_mul(1 << doublings));
            if created_at.plus_millis(patience.expires_ms) < next {
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

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn what_may_pass_is_tried_again_and_waits_twice_as_long() {
        let tried =
            |told, attempts| after_attempt(told, attempts, RetryTerms::default(), (at(0), at(100)));
        assert_eq!(tried(DeliveryOutcome::Busy, 1), (Delivery::Pending, Some(at(1_100))));
        assert_eq!(tried(DeliveryOutcome::Unreachable, 2), (Delivery::Pending, Some(at(2_100))));
        assert_eq!(tried(DeliveryOutcome::Unreachable, 3), (Delivery::Failed, None));
        assert_eq!(tried(DeliveryOutcome::Status, 1), (Delivery::Failed, None));
        assert_eq!(tried(DeliveryOutcome::Acked, 1), (Delivery::Acked, None));
    }

    #[test]
    fn an_old_event_is_not_told_any_more() {
        let patience = RetryTerms { expires_ms: 500, ..RetryTerms::default() };
        let tried = after_attempt(DeliveryOutcome::Busy, 1, patience, (at(0), at(100)));
        assert_eq!(tried, (Delivery::Expired, None));
    }

    #[test]
    fn the_status_and_the_word_of_an_answer_decide() {
        assert_eq!(DeliveryOutcome::of(200, Some(true)), DeliveryOutcome::Acked);
        assert_eq!(DeliveryOutcome::of(204, None), DeliveryOutcome::Unread);
        assert_eq!(DeliveryOutcome::of(200, Some(false)), DeliveryOutcome::Refused);
        assert_eq!(DeliveryOutcome::of(429, None), DeliveryOutcome::Busy);
        assert_eq!(DeliveryOutcome::of(503, Some(true)), DeliveryOutcome::Busy);
        assert_eq!(DeliveryOutcome::of(404, None), DeliveryOutcome::Status);
        assert_eq!(DeliveryOutcome::of(302, None), DeliveryOutcome::Status);
    }
}
