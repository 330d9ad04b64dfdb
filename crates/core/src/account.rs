//! Accounts as people see them: users and teams, with e-mail addresses and handles.

pub mod caller;
pub mod fair_queue;
pub mod fair_share;
pub mod key;
pub mod ledger;
pub mod login;
pub mod team;

use std::{fmt, str::FromStr};

use crate::{id::AccountId, round::job::words, time::Timestamp};

words!(
    /// The kind of an account.
    AccountKind {
        User => "user",
        Team => "team",
        /// The account of a network address that sends requests without a key.
        Anonymous => "anonymous",
        /// The account of an address that pays for single requests.
        Payer => "payer",
        /// The account of a node whose jobs are done here.
        Peer => "peer",
    }
);

/// The names of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountProfile {
    pub account: AccountId,
    pub kind: AccountKind,
    /// In lower case. Only users have one, and a user that an admin created may have none.
    pub email: Option<String>,
    pub handle: Option<String>,
    /// When the account last took or changed its handle.
    pub handle_claimed_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl AccountProfile {
    /// The name that others see: the handle, or else the e-mail address, or else a placeholder.
    pub fn label(&self) -> String {
        match (&self.handle, &self.email) {
            (Some(handle), _) => format!("@{handle}"),
            (None, Some(email)) => email.clone(),
            (None, None) => self.account.to_string(),
        }
    }
}

/// An account as a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountName {
    Id(AccountId),
    Email(String),
    /// Without the leading `@`.
    Handle(String),
}

impl AccountName {
    /// Reads `acct_…`, a placeholder address, an e-mail address, or a handle with or without `@`.
    /// The result is in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(handle) = text.strip_prefix('@') {
            return handle_of(handle);
        }
        let bare = text.strip_suffix(NO_MAIL).unwrap_or(text);
        if let Ok(id) = AccountId::parse(bare) {
            return Some(Self::Id(id));
        }
        email(text).map(Self::Email).or_else(|| handle_of(text))
    }

    /// Reads the owner in `@owner/name`: a handle, or the id of an account without a handle.
    pub fn owner(text: &str) -> Option<Self> {
        AccountId::parse(text).ok().map(Self::Id).or_else(|| handle_of(text))
    }

    /// The bare text of an owner's name, as references and SQL statements use it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Id(id) => id.as_str(),
            Self::Email(text) | Self::Handle(text) => text,
        }
    }
}

impl fmt::Display for AccountName {
    /// Writes the name as people do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handle(handle) => write!(f, "@{handle}"),
            Self::Id(_) | Self::Email(_) => f.write_str(self.as_str()),
        }
    }
}

fn handle_of(text: &str) -> Option<AccountName> {
    let handle = text.to_ascii_lowercase();
    is_handle(&handle).then_some(AccountName::Handle(handle))
}

/// The name of something for those who do not own it: `@owner/name`. The owner is `@handle` or an
/// id.
pub fn full_name(owner: &str, name: &str) -> String {
    format!("@{}/{name}", owner.trim_start_matches('@'))
}

/// Splits `@owner/name`; `None` if the text has another form.
pub fn owned(text: &str) -> Option<(AccountName, &str)> {
    let (owner, name) = text.strip_prefix('@')?.split_once('/')?;
    Some((AccountName::owner(owner)?, name))
}

/// The domain of placeholder addresses.
const NO_MAIL: &str = "@jurat.invalid";

/// The address shown for an account without one. It identifies the account as well as its id does.
pub fn placeholder_email(account: &AccountId) -> String {
    format!("{account}{NO_MAIL}")
}

/// The longest e-mail address that mail servers take.
const EMAIL_CHARS: usize = 254;

/// Returns the e-mail address in lower case, or `None` if the text is not an address.
pub fn email(text: &str) -> Option<String> {
    let text = text.trim();
    let (name, host) = text.rsplit_once('@')?;
    let is_plain = |b: u8| b.is_ascii_graphic() && !b"\"(),:;<>@[\\]".contains(&b);
    let is_host = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    let is_formed = text.len() <= EMAIL_CHARS
        && !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(is_plain)
        && host.split('.').all(|part| !part.is_empty())
        && host.bytes().all(is_host);
    is_formed.then(|| text.to_ascii_lowercase())
}

/// The minimum and maximum length of a handle, in characters.
pub const HANDLE_CHARS: (usize, usize) = (3, 40);

/// Handles that could be mistaken for parts of a URL or for an official account.
const RESERVED: [&str; 24] = [
    "about",
    "account",
    "accounts",
    "admin",
    "administrator",
    "anonymous",
    "api",
    "auth",
    "docs",
    "health",
    "help",
    "jurat",
    "login",
    "mail",
    "me",
    "public",
    "register",
    "root",
    "search",
    "settings",
    "support",
    "system",
    "teams",
    "templates",
];

/// Whether the text is a handle: lower-case letters, digits and hyphens, with no hyphen at either
/// end.
pub fn is_handle(text: &str) -> bool {
    let (fewest, most) = HANDLE_CHARS;
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (fewest..=most).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Whether the handle is reserved, so that no account can claim it.
pub fn is_reserved(handle: &str) -> bool {
    RESERVED.contains(&handle)
}

/// How long a former handle still leads to the account, and the minimum time between two changes.
pub const HANDLE_REST_MICROS: i64 = 90 * 24 * 3_600 * 1_000_000;
/// How many times an account may change its handle in a calendar year.
pub const RENAMES_A_YEAR: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_has_lower_case_letters_digits_and_inner_hyphens() {
        for handle in ["abc", "a-b", "0x0", &"a".repeat(40)] {
            assert!(is_handle(handle), "{handle}");
        }
        for text in ["ab", "-ab", "ab-", "Abc", "a_b", "a b", "äbc", &"a".repeat(41)] {
            assert!(!is_handle(text), "{text}");
        }
    }

    #[test]
    fn an_email_address_is_read_in_lower_case() {
        assert_eq!(email(" Ann@Example.COM "), Some("ann@example.com".to_owned()));
        for text in ["", "ann", "@example.com", "ann@", "a b@example.com", "ann@ex..com", "a@b@c"] {
            assert_eq!(email(text), None, "{text}");
        }
    }

    #[test]
    fn an_account_is_named_in_three_ways() {
        let named = |text| AccountName::parse(text);
        assert_eq!(named("acct_admin"), Some(AccountName::Id(AccountId::admin())));
        assert_eq!(named("Ann@example.com"), Some(AccountName::Email("ann@example.com".into())));
        assert_eq!(named("@Ann"), Some(AccountName::Handle("ann".into())));
        assert_eq!(named("Ann"), Some(AccountName::Handle("ann".into())));
        let placeholder = placeholder_email(&AccountId::admin());
        assert_eq!(AccountName::parse(&placeholder), Some(AccountName::Id(AccountId::admin())));
        assert_eq!(named("@an"), None);
        assert_eq!(named("an"), None);
        for text in ["acct_admin", "ann@example.com", "@ann"] {
            assert_eq!(named(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_owner_is_a_handle_or_an_account() {
        assert_eq!(owned("@ann/report"), Some((AccountName::Handle("ann".into()), "report")));
        assert_eq!(
            owned("@acct_admin/report"),
            Some((AccountName::Id(AccountId::admin()), "report"))
        );
        for text in ["ann/report", "@ann", "@a/report", "@ann@example.com/report"] {
            assert_eq!(owned(text), None, "{text}");
        }
    }
}
