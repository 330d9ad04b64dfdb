//! The resources `/v1/me` and `/v1/accounts`: the caller, its credit and its ledger. Amounts are in
//! US dollars, as decimal text.

use std::borrow::Cow;

use jurat_core::{
    account::{
        AccountProfile,
        key::Key,
        ledger::{self, AccountState, Balance, Transfer, usd},
        placeholder_email,
    },
    code::ProblemCode,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::{
    request::{self, FieldFault, request, text, values, values::text_of},
    time::Time,
    words,
};
use crate::problem::Problem;

const LONGEST_NOTE: usize = 500;
/// Pattern of an amount other than zero.
const AMOUNT: &str = r"^-?([1-9][0-9]{0,8}(\.[0-9]{1,6})?|0\.([1-9][0-9]{0,5}|0[1-9][0-9]{0,4}|00[1-9][0-9]{0,3}|000[1-9][0-9]{0,2}|0000[1-9][0-9]?|00000[1-9]))$";
/// Maximum number of digits before the decimal point.
const MOST_DIGITS: usize = 9;
const NOTHING: &str = "0.00";

request! {
    /// Credit to grant or take back.
    pub strict struct GrantRequest, draft GrantDraft {
        /// US dollars as text, with up to six decimal places; negative to take back available credit.
        amount_usd: UsdAmount,
        /// Reason, recorded in the ledger.
        note: Option<GrantNote>,
    }
}

values! {
    /// An amount other than zero, in millionths of a credit.
    pub struct UsdAmount(i64 as String): text().pattern(Some(AMOUNT)) => amount;

    /// The reason for a grant.
    pub struct GrantNote(String): text().max_length(Some(LONGEST_NOTE)) => note;
}

/// Reads the granted amount, in millionths of a credit, and the reason.
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
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Me)]
pub struct MeBody<'a> {
    /// The account.
    pub id: Cow<'a, str>,
    /// E-mail address of the account. An account created by an operator shows an address that
    /// receives no mail but can be used to share with the account.
    pub email: Cow<'a, str>,
    /// Public name of the account; null if it has not claimed one.
    #[schema(required = true)]
    pub handle: Option<Cow<'a, str>>,
    /// When the account got the handle.
    #[schema(required = true)]
    pub handle_claimed_at: Option<Time>,
    pub key: KeyOfMe<'a>,
    pub scopes: Vec<words::Scope>,
    /// Whether the account is suspended: paid work is refused.
    pub suspended: bool,
}

/// The key of the request.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct KeyOfMe<'a> {
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
}

/// The caller, with its key and account.
pub fn me<'a>(key: &'a Key, profile: &'a AccountProfile, suspended: bool) -> MeBody<'a> {
    MeBody {
        id: Cow::Borrowed(key.account.as_str()),
        email: profile
            .email
            .as_deref()
            .map_or_else(|| Cow::Owned(placeholder_email(&key.account)), Cow::Borrowed),
        handle: profile.handle.as_deref().map(Cow::Borrowed),
        handle_claimed_at: profile.handle_claimed_at.map(Time),
        key: KeyOfMe { id: Cow::Borrowed(&key.id), name: Cow::Borrowed(&key.name) },
        scopes: key.scopes.iter().copied().map(words::Scope).collect(),
        suspended,
    }
}

/// Credit and usage of the account this month.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Usage)]
pub struct AccountUsageBody {
    /// `metered`, or `unmetered` for the account of the operator.
    pub tier: Cow<'static, str>,
    /// Whether paid work is refused when the account has no credit.
    pub metered: bool,
    /// Credit that can be spent now.
    pub available_usd: String,
    /// Credit held for rounds in progress.
    pub held_usd: String,
    /// Total credit spent.
    pub spent_usd: String,
    /// Always zero: there is no recurring credit.
    pub monthly_remaining_usd: Cow<'static, str>,
    pub monthly_refill_usd: Cow<'static, str>,
    pub monthly_refill_at: Time,
    /// Remaining credit granted by the operator.
    pub purchased_remaining_usd: String,
    /// Debt: spending beyond the credit, which the next grant pays first.
    pub unpaid_balance_usd: String,
    pub referral_remaining_usd: Cow<'static, str>,
    /// Start of the month, in UTC.
    pub period_start: Time,
    /// Start of the next month.
    pub period_end: Time,
    /// Credit for this month: remaining, held and used.
    pub granted_usd: String,
    /// Credit spent this month.
    pub used_usd: String,
    pub remaining_usd: String,
    /// Rounds that cost something this month.
    pub charged_rounds: i64,
}

/// Usage in one month.
#[derive(Debug, Clone, Copy)]
pub struct UsageMonth {
    pub since: Timestamp,
    pub until: Timestamp,
    pub used_micros: i64,
    pub charged_rounds: i64,
}

/// The account's credit, and its usage in a month.
pub fn usage(balance: Balance, is_metered: bool, month: UsageMonth) -> AccountUsageBody {
    let Balance { available, held, spent, .. } = balance;
    AccountUsageBody {
        tier: Cow::Borrowed(if is_metered { "metered" } else { "unmetered" }),
        metered: is_metered,
        available_usd: usd(available),
        held_usd: usd(held),
        spent_usd: usd(spent),
        monthly_remaining_usd: Cow::Borrowed(NOTHING),
        monthly_refill_usd: Cow::Borrowed(NOTHING),
        monthly_refill_at: Time(month.until),
        purchased_remaining_usd: usd(available.max(0)),
        unpaid_balance_usd: usd(available.saturating_neg().max(0)),
        referral_remaining_usd: Cow::Borrowed(NOTHING),
        period_start: Time(month.since),
        period_end: Time(month.until),
        granted_usd: usd(available.saturating_add(held).saturating_add(month.used_micros)),
        used_usd: usd(month.used_micros),
        remaining_usd: usd(available),
        charged_rounds: month.charged_rounds,
    }
}

/// A line of the ledger.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Transfer)]
pub struct TransferBody<'a> {
    pub id: Cow<'a, str>,
    pub movement: words::Movement,
    pub from: words::Place,
    pub to: words::Place,
    /// Negative if a grant was taken back, a round cost more than it held, or its cost was
    /// corrected.
    pub amount_usd: String,
    /// The round that the credit was for.
    #[schema(required = true)]
    pub round_id: Option<Cow<'a, str>>,
    /// Reason for the grant, for taking it back, or for correcting a cost.
    #[schema(required = true)]
    pub note: Option<Cow<'a, str>>,
    pub at: Time,
}

/// A line of the ledger.
pub fn transfer(line: &Transfer) -> TransferBody<'_> {
    let (from, to) = line.movement.buckets();
    TransferBody {
        id: Cow::Borrowed(&line.id),
        movement: words::Movement(line.movement),
        from: words::Place(from),
        to: words::Place(to),
        amount_usd: usd(line.micros),
        round_id: line.round.as_ref().map(jurat_core::id::RoundId::as_str).map(Cow::Borrowed),
        note: line.note.as_deref().map(Cow::Borrowed),
        at: Time(line.at),
    }
}

/// An account, as shown to the operator.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Account)]
pub struct AccountBody<'a> {
    pub id: Cow<'a, str>,
    pub created_at: Time,
    /// Null unless the account is suspended.
    #[schema(required = true)]
    pub suspended_at: Option<Time>,
    pub granted_usd: String,
    pub available_usd: String,
    pub held_usd: String,
    pub spent_usd: String,
}

/// An account with its balance.
pub fn account(state: &AccountState) -> AccountBody<'_> {
    AccountBody {
        id: Cow::Borrowed(state.account.as_str()),
        created_at: Time(state.created_at),
        suspended_at: state.suspended_at.map(Time),
        granted_usd: usd(state.balance.granted),
        available_usd: usd(state.balance.available),
        held_usd: usd(state.balance.held),
        spent_usd: usd(state.balance.spent),
    }
}

/// The account's credit after a grant.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Grant)]
pub struct GrantBody<'a> {
    /// The account.
    pub id: Cow<'a, str>,
    pub amount_usd: String,
    #[schema(required = true)]
    pub note: Option<Cow<'a, str>>,
    pub granted_usd: String,
    pub available_usd: String,
    pub held_usd: String,
    pub spent_usd: String,
}

/// A grant, with the balance after it.
pub fn grant<'a>(
    account: &'a str,
    micros: i64,
    note: Option<&'a str>,
    balance: &Balance,
) -> GrantBody<'a> {
    GrantBody {
        id: Cow::Borrowed(account),
        amount_usd: usd(micros),
        note: note.map(Cow::Borrowed),
        granted_usd: usd(balance.granted),
        available_usd: usd(balance.available),
        held_usd: usd(balance.held),
        spent_usd: usd(balance.spent),
    }
}
