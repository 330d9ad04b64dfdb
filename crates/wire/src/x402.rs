//! The payment protocol x402, versions 1 and 2: the demand, the payment, and the facilitator.

pub mod facilitator;
pub mod payment;
pub mod required;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::Value;

/// Some clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A document as the value of a header.
pub fn header_text(document: &Value) -> String {
    BASE64.encode(document.to_string())
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.trim()).ok()
}
