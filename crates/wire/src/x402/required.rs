//! What a server demands for a request, in both versions of the protocol.

use std::borrow::Cow;

use jurat_core::payment::{PaymentDemand, SCHEME};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// The name of the extension by which payers name their payments.
pub const PAYMENT_IDENTIFIER: &str = "payment-identifier";

/// The paid address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaidResource {
    pub url: String,
    pub description: &'static str,
}

/// Whether a payer must name its payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentifierRule {
    Optional,
    Required,
}

/// A payment that the server accepts, in version 1 of the protocol.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRequirementsV1<'a> {
    /// `exact`: a transfer of exactly the amount.
    pub scheme: Cow<'a, str>,
    /// Name of the network, such as `base`.
    pub network: Cow<'a, str>,
    /// Amount in base units of the token.
    pub max_amount_required: String,
    /// Contract of the token.
    pub asset: Cow<'a, str>,
    /// Address that is paid.
    pub pay_to: String,
    /// URL of the paid request.
    pub resource: String,
    /// The operation, in words.
    pub description: Cow<'a, str>,
    /// Media type of the reply.
    pub mime_type: Cow<'a, str>,
    /// How long the authorization must be valid, in seconds.
    pub max_timeout_seconds: u64,
    /// Name and version of the token, which are part of the signed data.
    pub extra: TokenDomain<'a>,
}

/// The name and the version of a token, as payers sign them.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct TokenDomain<'a> {
    pub name: Cow<'a, str>,
    pub version: Cow<'a, str>,
}

fn domain(demand: &PaymentDemand) -> TokenDomain<'static> {
    TokenDomain {
        name: Cow::Borrowed(demand.network.asset_name()),
        version: Cow::Borrowed(demand.network.asset_version()),
    }
}

/// The demand in version 1 of the protocol. Clients refuse one whose description or media type is
/// null.
pub fn v1(demand: &PaymentDemand, resource: &PaidResource) -> PaymentRequirementsV1<'static> {
    PaymentRequirementsV1 {
        scheme: Cow::Borrowed(SCHEME),
        network: Cow::Borrowed(demand.network.as_str()),
        max_amount_required: demand.amount.to_string(),
        asset: Cow::Borrowed(demand.network.asset()),
        pay_to: demand.pay_to.to_string(),
        resource: resource.url.clone(),
        description: Cow::Borrowed(resource.description),
        mime_type: Cow::Borrowed("application/json"),
        max_timeout_seconds: demand.max_timeout_seconds(),
        extra: domain(demand),
    }
}

/// The demand in version 2 of the protocol.
pub fn v2(demand: &PaymentDemand) -> Value {
    json!({
        "scheme": SCHEME,
        "network": demand.network.caip2(),
        "amount": demand.amount.to_string(),
        "asset": demand.network.asset(),
        "payTo": demand.pay_to.as_str(),
        "maxTimeoutSeconds": demand.max_timeout_seconds(),
        "extra": domain(demand),
    })
}

/// The document of the header `PAYMENT-REQUIRED`.
pub fn v2_document(
    demand: &PaymentDemand,
    resource: &PaidResource,
    rule: IdentifierRule,
    error: &str,
) -> Value {
    json!({
        "x402Version": 2,
        "error": error,
        "resource": v2_resource(resource),
        "accepts": [v2(demand)],
        "extensions": { PAYMENT_IDENTIFIER: identifier_extension(rule) },
    })
}

pub(super) fn v2_resource(resource: &PaidResource) -> Value {
    json!({
        "url": resource.url,
        "description": resource.description,
        "mimeType": "application/json",
    })
}

fn identifier_extension(rule: IdentifierRule) -> Value {
    json!({
        "info": { "required": rule == IdentifierRule::Required },
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "required": { "type": "boolean" },
                "id": {
                    "type": "string",
                    "minLength": 16,
                    "maxLength": 128,
                    "pattern": "^[a-zA-Z0-9_-]+$",
                },
            },
            "required": ["required"],
        },
    })
}
