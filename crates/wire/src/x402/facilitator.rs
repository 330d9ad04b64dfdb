//! The replies of a facilitator, and the receipt that a payer gets.

use jurat_core::payment::{EvmAddress, hex_of};
use serde_json::{Value, json};

/// The longest text of a facilitator that is passed on.
const LONGEST_REASON: usize = 200;

/// The answer of a facilitator to a request to verify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyReply {
    /// The payer is optional.
    Valid {
        payer: Option<EvmAddress>,
    },
    Invalid {
        reason: String,
    },
}

/// The answer of a facilitator to a request to settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleReply {
    /// The payer and the amount are optional.
    Success {
        payer: Option<EvmAddress>,
        transaction: String,
        network: String,
        amount: Option<String>,
    },
    Failure {
        reason: String,
    },
}

/// Reads the answer to a request to verify; `None` if it has another form.
pub fn verify_reply(document: &Value) -> Option<VerifyReply> {
    if document.get("isValid")?.as_bool()? {
        Some(VerifyReply::Valid { payer: payer(document).ok()? })
    } else {
        Some(VerifyReply::Invalid { reason: reason(document, "invalidReason") })
    }
}

/// Reads the answer to a request to settle; `None` if it has another form.
pub fn settle_reply(document: &Value) -> Option<SettleReply> {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    if document.get("success")?.as_bool()? {
        Some(SettleReply::Success {
            payer: payer(document).ok()?,
            transaction: hex_of(text("transaction")?, 32)?,
            network: text("network")?.to_owned(),
            amount: text("amount").filter(|it| !it.is_empty()).map(str::to_owned),
        })
    } else {
        Some(SettleReply::Failure { reason: reason(document, "errorReason") })
    }
}

/// The payer that an answer names, if any.
fn payer(document: &Value) -> Result<Option<EvmAddress>, &'static str> {
    let named = document.get("payer").filter(|it| !it.is_null());
    named.map(|it| it.as_str().unwrap_or_default().parse()).transpose()
}

/// The reason in the facilitator's words, which nothing depends on.
fn reason(document: &Value, name: &str) -> String {
    let text = document.get(name).and_then(Value::as_str).unwrap_or("unspecified");
    let is_plain = |it: &char| it.is_ascii_graphic() || *it == ' ';
    text.chars().filter(is_plain).take(LONGEST_REASON).collect()
}

/// The outcome of a payment, for the header `PAYMENT-RESPONSE`.
pub fn receipt(network: &str, payer: &EvmAddress, result: Result<&str, &str>) -> Value {
    let (transaction, reason) = match result {
        Ok(transaction) => (transaction, None),
        Err(reason) => ("", Some(reason)),
    };
    let mut receipt = json!({
        "success": result.is_ok(),
        "transaction": transaction,
        "network": network,
        "payer": payer.as_str(),
    });
    if let Some(reason) = reason {
        receipt["errorReason"] = json!(reason);
    }
    receipt
}
