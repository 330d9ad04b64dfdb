//! What agents are told, and what they tell.

use std::str::FromStr;

use crate::job::words;

words!(
    /// Which way an event goes.
    Direction {
        /// To an agent.
        Out => "out",
        /// From an agent, or from somebody else for one.
        In => "in",
    }
);

words!(
    /// How far an event has come.
    Delivery {
        /// It is to be sent.
        Pending => "pending",
        /// It arrived, and the answer said nothing that can be read.
        Delivered => "delivered",
        /// The agent has taken it.
        Acked => "acked",
        /// What the agent decided was done.
        Completed => "completed",
        Failed => "failed",
        /// Nobody took it in time.
        Expired => "expired",
    }
);

impl Delivery {
    /// Whether nothing can become of it any more.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Expired)
    }
}
