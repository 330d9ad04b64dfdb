//! Checks whether payments end, and whether the price covers the sessions.

use jurat_core::{checkup::CheckupFinding, payment::record::PaymentProtocol};
use jurat_store::Behalf;

use crate::{Engine, EngineError, PaymentSettings};

/// An unknown settlement is usually known within this time.
const OVERDUE_AFTER_MS: u64 = 600_000;

impl Engine {
    /// The findings about payments; none if requests are not sold and none is open.
    pub(super) async fn payment_findings(&self) -> Result<Vec<CheckupFinding>, EngineError> {
        let now = self.inner.clock.now();
        let counts = self.inner.store.payments().counts(&Behalf::Platform).await?;
        let age = counts.first.map_or(0, |first| now.millis_since(first));
        let mut findings = Vec::new();
        let Ok(settings) = self.payment_settings() else {
            if 0 < counts.count {
                let text = format!(
                    "settlements that are not known: {}, the oldest for {} s, and nothing looks for them, because nothing is sold",
                    counts.count,
                    age / 1_000
                );
                let advice = "Set `x402.pay_to` and the other settings of `x402` again until none is left; the payers wait for their replies.";
                findings.push(CheckupFinding::warning("payments", text, advice));
            }
            return Ok(findings);
        };
        if OVERDUE_AFTER_MS < age {
            let text = format!(
                "settlements that are not known: {}, the oldest for {} s",
                counts.count,
                age / 1_000
            );
            let advice = "Check the facilitator, and set `x402.rpc_url`, so that the chain can be asked; the payers wait for their replies.";
            findings.push(CheckupFinding::warning("payments", text, advice));
        }
        findings.extend(self.chain_finding(settings).await);
        let view = self.pool_view().await?;
        let sessions = view.pool.sessions.values();
        let dear = sessions.filter(|it| settings.price_per_replica < it.price_micros).count();
        if dear != 0 {
            let text = format!("sessions that cost more than a paid replica: {dear}");
            let advice = "Raise `x402.price_per_replica`, or lower the price of the sessions.";
            findings.push(CheckupFinding::warning("payments", text, advice));
        }
        if findings.is_empty() {
            let text = format!(
                "accepted on {} (protocols {} and {}); settlements in progress: {}",
                settings.network,
                PaymentProtocol::V1,
                PaymentProtocol::V2,
                counts.count
            );
            findings.push(CheckupFinding::ok("payments", text));
        }
        Ok(findings)
    }

    /// What is wrong with the node of the chain.
    async fn chain_finding(&self, settings: &PaymentSettings) -> Option<CheckupFinding> {
        if settings.rpc.is_none() {
            let text = "the facilitator's word is the only proof of a payment";
            let advice = "Set `x402.rpc_url` to a node of the chain.";
            return Some(CheckupFinding::warning("payments", text, advice));
        }
        let (network, wanted) = (settings.network, settings.network.chain_id());
        match self.chain_id().await {
            Some(found) if found == wanted => {
                if self.chain_finds_logs().await {
                    return None;
                }
                let text = "the node of the chain finds no logs (`eth_getLogs`)";
                let advice = "Set `x402.rpc_url` to a node that does; until then, a transfer that the facilitator does not name is not found.";
                Some(CheckupFinding::warning("payments", text, advice))
            }
            Some(found) => {
                let text = format!(
                    "the node of the chain is on the chain {found}, and `{network}` is the chain {wanted}"
                );
                let advice = "Set `x402.rpc_url` to a node of the network in `x402.network`; until then, no payment is proven.";
                Some(CheckupFinding::problem("payments", text, advice))
            }
            None => {
                let text = "the node of the chain does not answer";
                let advice = "Check `x402.rpc_url`; until it answers, no payment is proven.";
                Some(CheckupFinding::warning("payments", text, advice))
            }
        }
    }
}
