//! The resources `/v1/me` and `/v1/accounts`: the caller, its credit and its ledger. Amounts are US
//! dollars as decimal text.

use std::borrow::Cow;

use jurat_core::{
    account::{
        AccountProfile,
        caller::Scope,
        key::Key,
        ledger::{self, AccountState, Balance, Transfer, usd},
        placeholder_email,
    },
    code::ProblemCode,
    time::Timestamp,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::{
    request::{self, FieldFault, request, text, values, values::text_of},
    time::Time,
    words,
};
use crate::problem::Problem;

const LONGEST_NOTE: usize = 500;
/// An amount that is not zero.
const AMOUNT: &str = r"^-?([1-9][0-9]{0,8}(\.[0-9]{1,6})?|0\.([1-9][0-9]{0,5}|0[1-9][0-9]{0,4}|00[1-9][0-9]{0,3}|000[1-9][0-9]{0,2}|0000[1-9][0-9]?|00000[1-9]))$";
/// Digits before the point.
const MOST_DIGITS: usize = 9;
const NOTHING: &str = "0.00";

request! {
    /// Credit to grant or take back.
    pub strict struct GrantRequest {
        /// US dollars as text, with up to six decimal places; negative to take back available credit.
        amount_usd: UsdAmount,
        /// Reason, recorded in the ledger.
        note: Option<GrantNote>,
    }
}

values! {
    /// An amount other than zero, in millionths of a credit.
    pub struct UsdAmount(i64): text().pattern(Some(AMOUNT)) => amount;

    /// The reason for a grant.
    pub struct GrantNote(String): text().max_length(Some(LONGEST_NOTE)) => note;
}

/// The granted millionths of a credit, and the reason.
pub fn decode_grant(body: &Value) -> Result<(i64, Option<String>), Problem> {
    let grant: GrantRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok((grant.amount_usd.0, grant.note.map(|note| note.0)))
}

fn amount(value: &Value) -> Result<i64, FieldFault> {
    let text = text_of(value)?;
    let whole = text.trim_start_matches('-').split('.').next().unwrap_or_default();
    let is_plain = whole.len() <= MOST_DIGITS && (whole == "0" || !whole.starts_with('0'));
    let micros = ledger::micros(text).filter(|micros| is_plain && *micros != 0);
    micros.ok_or_else(|| {
        "must be an amount in US dollars other than zero, below a billion and with up to six decimal places, such as 5.00".into()
    })
}

fn note(value: &Value) -> Result<String, FieldFault> {
    let text = text_of(value)?;
    if text.chars().count() <= LONGEST_NOTE {
        Ok(text.to_owned())
    } else {
        Err(format!("must have at most {LONGEST_NOTE} characters").into())
    }
}

/// The caller.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Me)]
pub struct MeBody<'a> {
    /// The account.
    id: &'a str,
    /// E-mail address of the account. An account created by an operator shows an address that
    /// receives no mail but can be used to share with the account.
    email: Cow<'a, str>,
    /// Public name of the account; null if it has not claimed one.
    #[schema(required = true)]
    handle: Option<&'a str>,
    /// When the account got the handle.
    #[schema(required = true)]
    handle_claimed_at: Option<Time>,
    key: KeyOfMe<'a>,
    #[schema(value_type = Vec<words::Scope>)]
    scopes: Vec<&'static str>,
    /// Whether the account is suspended: paid work is refused.
    suspended: bool,
}

/// The key of the request.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyOfMe<'a> {
    id: &'a str,
    name: &'a str,
}

pub fn me<'a>(key: &'a Key, profile: &'a AccountProfile, suspended: bool) -> MeBody<'a> {
    MeBody {
        id: key.account.as_str(),
        email: profile
            .email
            .as_deref()
            .map_or_else(|| Cow::Owned(placeholder_email(&key.account)), Cow::Borrowed),
        handle: profile.handle.as_deref(),
        handle_claimed_at: profile.handle_claimed_at.map(Time),
        key: KeyOfMe { id: &key.id, name: &key.name },
        scopes: key.scopes.iter().map(|scope: &Scope| scope.as_str()).collect(),
        suspended,
    }
}

/// Credit and usage of the account this month.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Usage)]
pub struct AccountUsageBody {
    /// `metered`, or `unmetered` for the account of the operator.
    tier: &'static str,
    /// Whether paid work is refused when the account has no credit.
    metered: bool,
    /// Credit that can be spent now.
    available_usd: String,
    /// Credit held for rounds in progress.
    held_usd: String,
    /// Total credit spent.
    spent_usd: String,
    /// Always zero: there is no recurring credit.
    monthly_remaining_usd: &'static str,
    monthly_refill_usd: &'static str,
    monthly_refill_at: Time,
    /// Remaining credit granted by the operator.
    purchased_remaining_usd: String,
    /// Debt: spending beyond the credit, which the next grant pays first.
    unpaid_balance_usd: String,
    referral_remaining_usd: &'static str,
    /// Start of the month, in UTC.
    period_start: Time,
    /// Start of the next month.
    period_end: Time,
    /// Credit for this month: remaining, held and used.
    granted_usd: String,
    /// Credit spent this month.
    used_usd: String,
    remaining_usd: String,
    /// Rounds that cost something this month.
    charged_rounds: i64,
}

/// What was used in a month.
#[derive(Debug, Clone, Copy)]
pub struct UsageMonth {
    pub since: Timestamp,
    pub until: Timestamp,
    pub used_micros: i64,
    pub charged_rounds: i64,
}

pub fn usage(balance: Balance, is_metered: bool, month: UsageMonth) -> AccountUsageBody {
    let Balance { available, held, spent, .. } = balance;
    AccountUsageBody {
        tier: if is_metered { "metered" } else { "unmetered" },
        metered: is_metered,
        available_usd: usd(available),
        held_usd: usd(held),
        spent_usd: usd(spent),
        monthly_remaining_usd: NOTHING,
        monthly_refill_usd: NOTHING,
        monthly_refill_at: Time(month.until),
        purchased_remaining_usd: usd(available.max(0)),
        unpaid_balance_usd: usd(available.saturating_neg().max(0)),
        referral_remaining_usd: NOTHING,
        period_start: Time(month.since),
        period_end: Time(month.until),
        granted_usd: usd(available.saturating_add(held).saturating_add(month.used_micros)),
        used_usd: usd(month.used_micros),
        remaining_usd: usd(available),
        charged_rounds: month.charged_rounds,
    }
}

/// A line of the ledger.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Transfer)]
pub struct TransferBody<'a> {
    id: &'a str,
    movement: words::Movement,
    from: words::Place,
    to: words::Place,
    /// Negative if a grant was taken back, a round cost more than it held, or its cost was
    /// corrected.
    amount_usd: String,
    /// The round that the credit was for.
    #[schema(required = true)]
    round_id: Option<&'a str>,
    /// Reason for the grant, for taking it back, or for correcting a cost.
    #[schema(required = true)]
    note: Option<&'a str>,
    at: Time,
}

pub fn transfer(line: &Transfer) -> TransferBody<'_> {
    let (from, to) = line.movement.buckets();
    TransferBody {
        id: &line.id,
        movement: words::Movement(line.movement),
        from: words::Place(from),
        to: words::Place(to),
        amount_usd: usd(line.micros),
        round_id: line.round.as_ref().map(jurat_core::id::RoundId::as_str),
        note: line.note.as_deref(),
        at: Time(line.at),
    }
}

/// An account, as shown to the operator.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub struct AccountBody<'a> {
    id: &'a str,
    created_at: Time,
    /// Null unless the account is suspended.
    #[schema(required = true)]
    suspended_at: Option<Time>,
    granted_usd: String,
    available_usd: String,
    held_usd: String,
    spent_usd: String,
}

pub fn account(state: &AccountState) -> AccountBody<'_> {
    AccountBody {
        id: state.account.as_str(),
        created_at: Time(state.created_at),
        suspended_at: state.suspended_at.map(Time),
        granted_usd: usd(state.balance.granted),
        available_usd: usd(state.balance.available),
        held_usd: usd(state.balance.held),
        spent_usd: usd(state.balance.spent),
    }
}

/// The account's credit after a grant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Grant)]
pub struct GrantBody<'a> {
    /// The account.
    id: &'a str,
    amount_usd: String,
    #[schema(required = true)]
    note: Option<&'a str>,
    granted_usd: String,
    available_usd: String,
    held_usd: String,
    spent_usd: String,
}

pub fn grant<'a>(
    account: &'a str,
    micros: i64,
    note: Option<&'a str>,
    balance: &Balance,
) -> GrantBody<'a> {
    GrantBody {
        id: account,
        amount_usd: usd(micros),
        note,
        granted_usd: usd(balance.granted),
        available_usd: usd(balance.available),
        held_usd: usd(balance.held),
        spent_usd: usd(balance.spent),
    }
}
