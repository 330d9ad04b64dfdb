//! A payment as its payer sends it, in a header.

use jurat_core::{
    canonical::digest_json,
    payment::{
        AcceptedTerms, Authorization, PaymentDemand, hex_of, is_identifier, record::PaymentProtocol,
    },
    strict_json,
};
use serde_json::{Map, Value, json};

use super::{
    decoded,
    required::{self, PAYMENT_IDENTIFIER, PaidResource},
};

/// The longest signature in hexadecimal digits; those of smart wallets are long.
const LONGEST_SIGNATURE: usize = 16_384;

/// A payment that was read strictly. Nothing in it was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentMessage {
    pub protocol: PaymentProtocol,
    pub accepted: AcceptedTerms,
    pub authorization: Authorization,
    /// `0x` and lower-case hexadecimal digits.
    pub signature: String,
    /// The payer's own name for the payment.
    pub identifier: Option<String>,
}

/// What is wrong with a payment header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentMessageError {
    /// The path of the member, or nothing if the header as a whole is unreadable.
    pub member: Option<&'static str>,
    pub problem: &'static str,
}

impl PaymentMessage {
    /// Reads the value of the header of a protocol version.
    pub fn read(protocol: PaymentProtocol, text: &str) -> Result<Self, PaymentMessageError> {
        let whole = |problem| PaymentMessageError { member: None, problem };
        let bytes = decoded(text).ok_or_else(|| whole("is not base64"))?;
        let document =
            strict_json::parse_within(&bytes, 1_000).map_err(|_| whole("is not base64 of JSON"))?;
        let Value::Object(document) = document else {
            return Err(whole("is not base64 of a JSON object"));
        };
        if document.get("x402Version").and_then(Value::as_u64) != Some(protocol.number().into()) {
            let problem = "does not name the version of the protocol that the header belongs to";
            return Err(wrong("x402Version", problem));
        }
        let payload = object(&document, "payload")?;
        let signature = text_of(payload, "signature", "payload.signature")?;
        Ok(Self {
            protocol,
            accepted: accepted(protocol, &document)?,
            authorization: authorization(object(payload, "authorization")?)?,
            signature: signature_of(signature)?,
            identifier: identifier(&document)?,
        })
    }

    /// Identifies what the payer signed, with its signature.
    pub fn digest(&self) -> String {
        digest_json(&self.payload())
    }

    fn payload(&self) -> Value {
        let Authorization { from, to, value, valid_after, valid_before, nonce } =
            &self.authorization;
        json!({
            "signature": self.signature,
            "authorization": {
                "from": from.as_str(),
                "to": to.as_str(),
                "value": value.to_string(),
                "validAfter": valid_after.to_string(),
                "validBefore": valid_before.to_string(),
                "nonce": nonce,
            },
        })
    }

    /// The request to the facilitator to verify or settle. It holds only what was read and
    /// compared with the demand, so that nothing else in the header has a say.
    pub fn facilitator_request(&self, demand: &PaymentDemand, resource: &PaidResource) -> Value {
        match self.protocol {
            PaymentProtocol::V1 => json!({
                "x402Version": 1,
                "paymentPayload": {
                    "x402Version": 1,
                    "scheme": jurat_core::payment::SCHEME,
                    "network": demand.network.as_str(),
                    "payload": self.payload(),
                },
                "paymentRequirements": required::v1(demand, resource),
            }),
            PaymentProtocol::V2 => {
                let requirements = required::v2(demand);
                json!({
                    "x402Version": 2,
                    "paymentPayload": {
                        "x402Version": 2,
                        "resource": required::v2_resource(resource),
                        "accepted": requirements,
                        "payload": self.payload(),
                    },
                    "paymentRequirements": requirements,
                })
            }
        }
    }
}

fn wrong(member: &'static str, problem: &'static str) -> PaymentMessageError {
    PaymentMessageError { member: Some(member), problem }
}

fn object<'a>(
    of: &'a Map<String, Value>,
    name: &'static str,
) -> Result<&'a Map<String, Value>, PaymentMessageError> {
    of.get(name).and_then(Value::as_object).ok_or_else(|| wrong(name, "must be an object"))
}

fn text_of<'a>(
    of: &'a Map<String, Value>,
    name: &str,
    member: &'static str,
) -> Result<&'a str, PaymentMessageError> {
    of.get(name).and_then(Value::as_str).ok_or_else(|| wrong(member, "must be a text"))
}

fn accepted(
    protocol: PaymentProtocol,
    document: &Map<String, Value>,
) -> Result<AcceptedTerms, PaymentMessageError> {
    if protocol == PaymentProtocol::V1 {
        return Ok(AcceptedTerms {
            scheme: text_of(document, "scheme", "scheme")?.to_owned(),
            network: text_of(document, "network", "network")?.to_owned(),
            asset: None,
            pay_to: None,
            amount: None,
        });
    }
    let accepted = object(document, "accepted")?;
    Ok(AcceptedTerms {
        scheme: text_of(accepted, "scheme", "accepted.scheme")?.to_owned(),
        network: text_of(accepted, "network", "accepted.network")?.to_owned(),
        asset: Some(text_of(accepted, "asset", "accepted.asset")?.to_owned()),
        pay_to: Some(text_of(accepted, "payTo", "accepted.payTo")?.to_owned()),
        amount: Some(text_of(accepted, "amount", "accepted.amount")?.to_owned()),
    })
}

fn authorization(of: &Map<String, Value>) -> Result<Authorization, PaymentMessageError> {
    let from = text_of(of, "from", "payload.authorization.from")?;
    let to = text_of(of, "to", "payload.authorization.to")?;
    let nonce = text_of(of, "nonce", "payload.authorization.nonce")?;
    let whole = "must be a whole number in a text";
    Ok(Authorization {
        from: from.parse().map_err(|problem| wrong("payload.authorization.from", problem))?,
        to: to.parse().map_err(|problem| wrong("payload.authorization.to", problem))?,
        value: number(of, "value").ok_or_else(|| wrong("payload.authorization.value", whole))?,
        valid_after: seconds(of, "validAfter")
            .ok_or_else(|| wrong("payload.authorization.validAfter", whole))?,
        valid_before: seconds(of, "validBefore")
            .ok_or_else(|| wrong("payload.authorization.validBefore", whole))?,
        nonce: hex_of(nonce, 32).ok_or_else(|| {
            wrong("payload.authorization.nonce", "must be `0x` and 64 hexadecimal digits")
        })?,
    })
}

/// A number as text, without a sign; some clients send small numbers as numbers.
fn number(of: &Map<String, Value>, name: &str) -> Option<u128> {
    let value = of.get(name)?;
    if let Some(text) = value.as_str() {
        let is_plain = text.bytes().all(|it| it.is_ascii_digit());
        return text.parse().ok().filter(|_| is_plain);
    }
    value.as_u64().map(u128::from)
}

/// A time that is later than any we can write is as good as the latest.
fn seconds(of: &Map<String, Value>, name: &str) -> Option<u64> {
    number(of, name).map(|seconds| u64::try_from(seconds).unwrap_or(u64::MAX))
}

fn signature_of(text: &str) -> Result<String, PaymentMessageError> {
    let bytes = text.len().saturating_sub(2) / 2;
    let is_usable = 0 < bytes && text.len() <= LONGEST_SIGNATURE;
    hex_of(text, bytes)
        .filter(|_| is_usable)
        .ok_or_else(|| wrong("payload.signature", "must be `0x` and hexadecimal digits"))
}

fn identifier(document: &Map<String, Value>) -> Result<Option<String>, PaymentMessageError> {
    let extension = document.get("extensions").and_then(|it| it.get(PAYMENT_IDENTIFIER));
    let id = extension.and_then(|it| it.get("info")).and_then(|it| it.get("id"));
    let wrong = || {
        wrong(
            "extensions.payment-identifier.info.id",
            "must have 16 to 128 letters, digits, hyphens and underscores",
        )
    };
    match id {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if is_identifier(text) => Ok(Some(text.clone())),
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x402::header_text;

    fn sample(name: &str) -> Value {
        let payload = json!({
            "signature": format!("0x{}", "2d".repeat(65)),
            "authorization": {
                "from": "0x857b06519E91e3A54538791bDbb0E22373e36b66",
                "to": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
                "value": "10000",
                "validAfter": "1740672089",
                "validBefore": "1740672154",
                "nonce": format!("0x{}", "F3".repeat(32)),
            },
        });
        match name {
            "v1" => json!({
                "x402Version": 1,
                "scheme": "exact",
                "network": "base-sepolia",
                "payload": payload,
            }),
            _ => json!({
                "x402Version": 2,
                "accepted": {
                    "scheme": "exact",
                    "network": "eip155:84532",
                    "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
                    "payTo": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
                    "amount": "10000",
                    "maxTimeoutSeconds": 60,
                },
                "payload": payload,
                "extensions": {
                    "payment-identifier": { "info": { "required": false, "id": "x".repeat(16) } },
                },
            }),
        }
    }

    fn read(
        protocol: PaymentProtocol,
        document: &Value,
    ) -> Result<PaymentMessage, PaymentMessageError> {
        PaymentMessage::read(protocol, &header_text(document))
    }

    #[test]
    fn both_versions_are_read() {
        let first = read(PaymentProtocol::V1, &sample("v1")).unwrap();
        assert_eq!((first.accepted.asset.as_ref(), first.identifier.as_ref()), (None, None));
        assert_eq!(first.authorization.value, 10_000);
        assert!(first.authorization.nonce.starts_with("0xf3f3"));
        let second = read(PaymentProtocol::V2, &sample("v2")).unwrap();
        assert_eq!(second.accepted.amount.as_deref(), Some("10000"));
        assert_eq!(second.identifier, Some("x".repeat(16)));
        // The same signed transfer is the same payment in both.
        assert_eq!(first.digest(), second.digest());
    }

    #[test]
    fn a_broken_header_names_the_broken_member() {
        type Break = fn(&mut Value);
        let cases: [(Break, &str); 8] = [
            (|it| it["x402Version"] = json!(1), "x402Version"),
            (|it| it["payload"] = json!([]), "payload"),
            (|it| it["accepted"]["payTo"] = json!(7), "accepted.payTo"),
            (|it| it["payload"]["signature"] = json!("0xzz"), "payload.signature"),
            (
                |it| it["payload"]["authorization"]["value"] = json!("-1"),
                "payload.authorization.value",
            ),
            (
                |it| it["payload"]["authorization"]["nonce"] = json!("0x12"),
                "payload.authorization.nonce",
            ),
            (
                |it| it["payload"]["authorization"]["from"] = json!("nobody"),
                "payload.authorization.from",
            ),
            (
                |it| it["extensions"]["payment-identifier"]["info"]["id"] = json!("short"),
                "extensions.payment-identifier.info.id",
            ),
        ];
        for (change, member) in cases {
            let mut document = sample("v2");
            change(&mut document);
            let error = read(PaymentProtocol::V2, &document).unwrap_err();
            assert_eq!(error.member, Some(member));
        }
        for text in ["", "!!!", "bm90IGpzb24=", "W10="] {
            let error = PaymentMessage::read(PaymentProtocol::V2, text).unwrap_err();
            assert_eq!(error.member, None, "{text}");
        }
    }
}
