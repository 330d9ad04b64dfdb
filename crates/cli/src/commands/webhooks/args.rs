//! `jurat webhooks`.

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use jurat_core::webhook::{WebhookDeliveryState, WebhookEventType};

use crate::args::ListArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// Add an address that receives the events of the account
    Add(AddWebhookArgs),
    /// List the webhooks of the account
    #[command(after_help = "Examples:\n  jurat webhooks list\n  jurat webhooks list --json")]
    List {
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show a webhook and its state
    #[command(after_help = "Examples:\n  jurat webhooks show whk_01K5PB5KG0ZV3ZC2Q4R8T6M1NE")]
    Show { id: String },
    /// Enable a webhook again, and forget its failures
    #[command(after_help = "Examples:\n  jurat webhooks enable whk_01K5PB5KG0ZV3ZC2Q4R8T6M1NE")]
    Enable { id: String },
    /// Disable a webhook; waiting deliveries fail and can be replayed
    #[command(after_help = "Examples:\n  jurat webhooks disable whk_01K5PB5KG0ZV3ZC2Q4R8T6M1NE")]
    Disable { id: String },
    /// Replace the signing secret; both secrets sign for a while
    #[command(
        after_help = "Examples:\n  jurat webhooks rotate whk_01K5PB5KG0ZV3ZC2Q4R8T6M1NE\n  jurat webhooks rotate whk_01K5PB5KG0ZV3ZC2Q4R8T6M1NE --grace-seconds 3600"
    )]
    Rotate {
        id: String,
        /// How long the previous secret signs, too; one day by default
        #[arg(long, value_name = "SECONDS")]
        grace_seconds: Option<u64>,
    },
    /// Remove a webhook and its deliveries
    #[command(after_help = "Examples:\n  jurat webhooks remove whk_01K5PB5KG0ZV3ZC2Q4R8T6M1NE")]
    Remove { id: String },
    /// Send a test event to a webhook
    #[command(after_help = "Examples:\n  jurat webhooks test whk_01K5PB5KG0ZV3ZC2Q4R8T6M1NE")]
    Test { id: String },
    /// List the deliveries to a webhook, or show one of them
    Deliveries(WebhookDeliveriesArgs),
    /// Send an event again that was delivered or has failed
    #[command(
        after_help = "Examples:\n  jurat webhooks replay dlv_5f0c2a3b9e7d41c8a6b0d3e2f1a4c597_01K5PB5KG0ZV3ZC2Q4R8T6M1NE"
    )]
    Replay {
        /// Id of a delivery
        id: String,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat webhooks add https://example.com/jurat\n  jurat webhooks add https://example.com/jurat --event round.decided --event task.failed\n\nThe secret is shown only once. Verify deliveries with any Standard Webhooks library."
)]
pub(crate) struct AddWebhookArgs {
    /// Public HTTPS address that receives the events
    pub(crate) url: String,
    /// Type of event to send; repeat it for several, and leave it out for all
    #[arg(long = "event", value_name = "TYPE", value_parser = PossibleValuesParser::new(
        WebhookEventType::ALL.iter().map(|it| it.as_str())
    ))]
    pub(crate) events: Vec<String>,
    /// Note for people
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat webhooks deliveries whk_01K5PB5KG0ZV3ZC2Q4R8T6M1NE --state failed\n  jurat webhooks deliveries dlv_5f0c2a3b9e7d41c8a6b0d3e2f1a4c597_01K5PB5KG0ZV3ZC2Q4R8T6M1NE"
)]
pub(crate) struct WebhookDeliveriesArgs {
    /// Id of a webhook, or of one delivery
    pub(crate) id: String,
    /// Only deliveries in this state
    #[arg(long, value_parser = PossibleValuesParser::new(WebhookDeliveryState::ALL.iter().map(|it| it.as_str())))]
    pub(crate) state: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}
