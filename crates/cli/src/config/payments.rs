//! The settings for requests that are paid one by one.

use std::time::Duration;

use jurat_engine::{PayerLimits, PaymentSettings, PaymentTimeouts};
use jurat_wire::x402::required::IdentifierRule;

use crate::settings::{
    Settings, X402_FACILITATOR_URL, X402_NETWORK, X402_PAY_TO, X402_PRICE_PER_REPLICA,
    X402_REQUESTS_PER_MINUTE, X402_REQUIRE_PAYMENT_IDENTIFIER, X402_ROUNDS_PER_PAYER, X402_RPC_URL,
    X402_STORAGE_MIB, X402_TIMEOUT_MS, X402_UNCHARGED_ROUNDS,
};

/// How many payers may each have reached their limit on uncharged rounds before new ones wait.
const UNCHARGED_PAYERS: u32 = 10;

/// How payments are accepted; `None` if no address to pay is set.
pub(crate) fn payments(settings: &Settings) -> Result<Option<PaymentSettings>, String> {
    let Some(pay_to) = settings.text(&X402_PAY_TO) else { return Ok(None) };
    let wrong = |name: &str| format!("`{name}` is not usable");
    let Some(facilitator) = settings.text(&X402_FACILITATOR_URL) else {
        return Err("`x402.pay_to` needs `x402.facilitator_url`, which settles payments".to_owned());
    };
    let rpc = settings.text(&X402_RPC_URL).map(str::parse).transpose();
    let uncharged_rounds =
        u32::try_from(settings.count(&X402_UNCHARGED_ROUNDS)).unwrap_or(u32::MAX);
    let is_required = settings.text(&X402_REQUIRE_PAYMENT_IDENTIFIER) == Some("on");
    Ok(Some(PaymentSettings {
        network: settings
            .text(&X402_NETWORK)
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| wrong("x402.network"))?,
        pay_to: pay_to.parse().map_err(|_| wrong("x402.pay_to"))?,
        facilitator: facilitator.parse().map_err(|_| wrong("x402.facilitator_url"))?,
        rpc: rpc.map_err(|_| wrong("x402.rpc_url"))?,
        price_per_replica: settings.count(&X402_PRICE_PER_REPLICA),
        identifier: if is_required { IdentifierRule::Required } else { IdentifierRule::Optional },
        limits: PayerLimits {
            rounds: settings.size(&X402_ROUNDS_PER_PAYER),
            requests_per_minute: u32::try_from(settings.count(&X402_REQUESTS_PER_MINUTE))
                .unwrap_or(u32::MAX),
            uncharged_rounds,
            uncharged_of_all: uncharged_rounds.saturating_mul(UNCHARGED_PAYERS),
            quota_bytes: settings.count(&X402_STORAGE_MIB).saturating_mul(1024 * 1024),
        },
        timeouts: PaymentTimeouts::of_settlement(Duration::from_millis(
            settings.count(&X402_TIMEOUT_MS),
        )),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_sold_by_default() {
        assert!(payments(&Settings::defaults()).unwrap().is_none());
    }
}
