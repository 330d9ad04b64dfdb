//! A chain with one token, as far as a payment needs it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

const USED: &str = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
const CANCELED: &str = "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81";
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// A transfer of the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenTransfer {
    pub payer: String,
    pub to: String,
    pub value: u128,
    pub nonce: String,
    pub asset: String,
}

impl TokenTransfer {
    /// The transfer that a request to the facilitator is about.
    pub(super) fn asked(body: &Value) -> Self {
        let signed = &body["paymentPayload"]["payload"]["authorization"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_ascii_lowercase();
        Self {
            payer: text(&signed["from"]),
            to: text(&signed["to"]),
            value: text(&signed["value"]).parse().unwrap_or_default(),
            nonce: text(&signed["nonce"]),
            asset: text(&body["paymentRequirements"]["asset"]),
        }
    }
}

#[derive(Debug)]
enum Record {
    Moved { transfer: TokenTransfer, transaction: String },
    Cancelled,
}

/// The authorizations that were used, by payer and nonce.
#[derive(Debug, Default)]
pub(super) struct Chain {
    records: BTreeMap<(String, String), Record>,
}

impl Chain {
    pub(super) fn transfers(&self) -> Vec<TokenTransfer> {
        let moved = self.records.values().filter_map(|record| match record {
            Record::Moved { transfer, .. } => Some(transfer.clone()),
            Record::Cancelled => None,
        });
        moved.collect()
    }

    /// Why a transfer is not possible.
    pub(super) fn refusal(&self, transfer: &TokenTransfer, body: &Value) -> Option<String> {
        let signature = body["paymentPayload"]["payload"]["signature"].as_str().unwrap_or_default();
        let required = &body["paymentRequirements"];
        let amount = required["amount"].as_str().or(required["maxAmountRequired"].as_str());
        let is_used = self.records.contains_key(&(transfer.payer.clone(), transfer.nonce.clone()));
        if signature.starts_with("0x00") {
            Some("invalid_exact_evm_signature".to_owned())
        } else if is_used {
            Some("invalid_exact_evm_nonce_already_used".to_owned())
        } else if amount != Some(transfer.value.to_string().as_str()) {
            Some("invalid_exact_evm_payload_authorization_value".to_owned())
        } else {
            None
        }
    }

    pub(super) fn transfer(&mut self, transfer: TokenTransfer) -> String {
        let transaction = format!("0x{:064x}", self.records.len() + 1);
        let key = (transfer.payer.clone(), transfer.nonce.clone());
        self.records.insert(key, Record::Moved { transfer, transaction: transaction.clone() });
        transaction
    }

    pub(super) fn cancel(&mut self, payer: &str, nonce: &str) {
        self.records.insert((payer.to_owned(), nonce.to_owned()), Record::Cancelled);
    }

    /// Answers as a node of the chain.
    pub(super) fn rpc(&self, body: &Value) -> Value {
        let params = &body["params"];
        let result = match body["method"].as_str().unwrap_or_default() {
            "eth_blockNumber" => json!("0x10"),
            "eth_call" => {
                let data = params[0]["data"].as_str().unwrap_or_default();
                let (payer, nonce) = (&data[34..74], &data[74..138]);
                let key = (format!("0x{payer}"), format!("0x{nonce}"));
                json!(format!("0x{:064x}", u8::from(self.records.contains_key(&key))))
            }
            "eth_getLogs" => self.logs(&params[0]["topics"]),
            "eth_getTransactionReceipt" => self.receipt(params[0].as_str().unwrap_or_default()),
            _ => Value::Null,
        };
        json!({ "jsonrpc": "2.0", "id": body["id"], "result": result })
    }

    fn logs(&self, topics: &Value) -> Value {
        let found = self.records.iter().filter(|((payer, nonce), _)| {
            topics[1] == json!(word(payer)) && topics[2] == json!(nonce)
        });
        let logs = found.map(|((payer, nonce), record)| match record {
            Record::Moved { transaction, .. } => json!({
                "topics": [USED, word(payer), nonce], "transactionHash": transaction,
            }),
            Record::Cancelled => json!({ "topics": [CANCELED, word(payer), nonce] }),
        });
        logs.collect()
    }

    fn receipt(&self, wanted: &str) -> Value {
        let mut moved = self.records.values().filter_map(|record| match record {
            Record::Moved { transfer, transaction } => Some((transfer, transaction)),
            Record::Cancelled => None,
        });
        let Some((transfer, _)) = moved.find(|(_, transaction)| *transaction == wanted) else {
            return Value::Null;
        };
        let TokenTransfer { payer, to, value, nonce, asset } = transfer;
        json!({
            "status": "0x1",
            "logs": [
                { "address": asset, "topics": [USED, word(payer), nonce], "data": "0x" },
                {
                    "address": asset,
                    "topics": [TRANSFER, word(payer), word(to)],
                    "data": format!("0x{value:064x}"),
                },
            ],
        })
    }
}

fn word(address: &str) -> String {
    format!("0x{:0>64}", address.trim_start_matches("0x"))
}
