//! Logins by mail: a person without a key proves their address with a code.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use jurat_core::{
    account::{
        self, AccountProfile,
        caller::Scope,
        key::{Key, LOGIN_NAME},
        login::{CODE_MICROS, CODE_TRIES, LoginPurpose, code_hash, mail_code, salt_of, typed},
    },
    code::ProblemCode,
    id::{AccountId, uuid},
    time::Timestamp,
};
use jurat_guard::mail::{Mail, Mailer, NullMailer};
use jurat_store::{
    Behalf, KeyNameTaken, KeyRecord, KeyRevocation, LiveKeys, LoginCodeOutcome, LoginCodeRefusal,
    LoginCodeTry, LoginCodeUse, LoginEntrant, NewLoginCode, WriteOutcome,
};
use subtle::ConstantTimeEq as _;

use super::visitors::visitor_network;
use crate::{Engine, EngineError, IssuedKey, LimitExceeded};

/// How people get accounts and mail.
#[derive(Debug, Clone)]
pub struct AccountSettings {
    pub mailer: Arc<dyn Mailer>,
    /// Whether anybody with an address may register.
    pub is_open: bool,
    /// The credit of a new account.
    pub grant_micros: i64,
    /// The public address of this installation, if it differs from where it listens.
    pub public_url: Option<String>,
}

impl Default for AccountSettings {
    fn default() -> Self {
        Self { mailer: Arc::new(NullMailer), is_open: false, grant_micros: 0, public_url: None }
    }
}

/// The window in which requests without a key are counted.
const KEYLESS_WINDOW: Duration = Duration::from_mins(10);
/// How much more this machine itself may request: all clients behind a local proxy look alike.
const LOCAL_FACTOR: u32 = 10;
/// How many login keys an account may have; a new one revokes the oldest.
const MOST_LOGIN_KEYS: usize = 20;
const KEYS_READ: u32 = 1_000;

/// A kind of request without a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum KeylessRequest {
    /// A login, a registration, or a device login.
    Login,
    /// A poll of a device login, every few seconds.
    Poll,
    /// A read of something published.
    Visit,
    /// A login with a code sent to this address.
    Code(String),
}

impl KeylessRequest {
    /// How many such requests one network address may send within the window.
    const fn most(&self) -> u32 {
        match self {
            Self::Login => 60,
            Self::Poll | Self::Visit => 600,
            Self::Code(_) => CODE_TRIES,
        }
    }
}

/// Requests without a key, by network address.
pub(crate) struct KeylessLimits(
    moka::sync::Cache<(Option<IpAddr>, KeylessRequest), Arc<AtomicU32>>,
);

impl KeylessLimits {
    pub(crate) fn new() -> Self {
        Self(moka::sync::Cache::builder().max_capacity(50_000).time_to_live(KEYLESS_WINDOW).build())
    }

    /// Counts a request; `false` if there were too many.
    fn count(&self, from: Option<IpAddr>, knock: KeylessRequest) -> bool {
        let from = from.map(|address| address.to_canonical());
        let is_here = from.is_none_or(|address| address.is_loopback());
        // Guessing codes has no higher limit for a local address.
        let is_hidden = is_here && !matches!(knock, KeylessRequest::Code(_));
        let most = knock.most().saturating_mul(if is_hidden { LOCAL_FACTOR } else { 1 });
        let counted = self.0.get_with((from.map(visitor_network), knock), Arc::default);
        counted.fetch_add(1, Ordering::Relaxed) < most
    }
}

impl Engine {
    /// Counts a request without a key.
    pub(crate) fn admit_keyless(
        &self,
        from: Option<IpAddr>,
        knock: KeylessRequest,
    ) -> Result<(), EngineError> {
        let is_in_bounds = self.inner.keyless_limits.count(from, knock);
        is_in_bounds.then_some(()).ok_or(EngineError::Limited(LimitExceeded::Address))
    }

    /// Sends a code to an address. The reply and its duration do not reveal whether the account
    /// exists; the mail does.
    pub async fn login_begin(
        &self,
        purpose: LoginPurpose,
        address: &str,
        from: Option<IpAddr>,
    ) -> Result<(), EngineError> {
        self.admit_keyless(from, KeylessRequest::Login)?;
        let is_open = self.inner.accounts.is_open;
        if purpose == LoginPurpose::Register && !is_open {
            return Err(EngineError::denied(
                "this installation has no self-registration; ask its operator for an account",
            ));
        }
        let email = email(address)?;
        let (clock, at) = (&self.inner.clock, self.inner.clock.now());
        let code = mail_code(clock.bits());
        let new = NewLoginCode {
            code_hash: code_hash(&format!("{:032x}", clock.bits()), &email, &typed(&code)),
            email,
            purpose,
            at,
            expires_at: Timestamp::from_micros(at.micros().saturating_add(CODE_MICROS)),
        };
        let logins = self.inner.store.logins();
        match code_result(logins.put_code(&Behalf::Platform, &new, None).await?)? {
            // The code sent a moment ago is kept: requesting codes for another address can neither
            // flood it nor invalidate its code.
            LoginCodeOutcome::Kept => {}
            LoginCodeOutcome::Replaced { is_known } => {
                if is_known || purpose == LoginPurpose::Register {
                    self.mail(code_mail(uuid(at, clock.bits()), &new.email, &code));
                }
            }
        }
        Ok(())
    }

    /// Sends a mail in the background: its duration would reveal whether the account exists.
    pub(crate) fn mail(&self, mail: Mail) {
        let mailer = Arc::clone(&self.inner.accounts.mailer);
        let _sending = self.inner.background.spawn(async move {
            if let Err(error) = mailer.send(&mail).await {
                tracing::error!(error = %error, "could not send a mail");
            }
        });
    }

    /// Gives a new key to whoever has the code sent to the address.
    pub async fn login_verify(
        &self,
        address: &str,
        code: &str,
        from: Option<IpAddr>,
    ) -> Result<IssuedKey, EngineError> {
        let profile = self.profile_by_code(address, code, from).await?;
        let name = format!("{LOGIN_NAME}{}", self.inner.clock.now().date());
        self.login_key(profile.account, &name).await
    }

    /// The account of whoever has the code sent to the address.
    pub(crate) async fn profile_by_code(
        &self,
        address: &str,
        code: &str,
        from: Option<IpAddr>,
    ) -> Result<AccountProfile, EngineError> {
        self.admit_keyless(from, KeylessRequest::Login)?;
        let (email, at) = (email(address)?, self.inner.clock.now());
        // Tries count per network: an attacker uses up only their own.
        if self.admit_keyless(from, KeylessRequest::Code(email.clone())).is_err() {
            return Err(wrong_code());
        }
        let logins = self.inner.store.logins();
        // The try counts before the code is compared, so that concurrent tries count, too.
        let tried = LoginCodeTry { email: email.clone(), at };
        let stored = code_result(logins.try_code(&Behalf::Platform, &tried, None).await?)?;
        let stored = stored.unwrap_or_default();
        let given = code_hash(salt_of(&stored), &email, &typed(code));
        if !bool::from(given.as_bytes().ct_eq(stored.as_bytes())) {
            return Err(wrong_code());
        }
        let account = AccountId::new(at, self.inner.clock.bits());
        let grant_micros = self.inner.accounts.grant_micros;
        let used = LoginCodeUse { email, code_hash: stored, account, grant_micros, at };
        let LoginEntrant { profile, is_new } =
            code_result(logins.use_code(&Behalf::Platform, &used, None).await?)?;
        if is_new {
            tracing::info!(account.id = %profile.account, "registered an account");
        }
        Ok(profile)
    }

    /// Creates a key for a login.
    pub(crate) async fn login_key(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<IssuedKey, EngineError> {
        let clear = self.draw_key();
        let key = Key {
            id: clear.id().to_owned(),
            account,
            // The live keys of an account have different names.
            name: format!("{name} {}", clear.id().get(..6).unwrap_or_default()),
            scopes: Scope::OWN.into_iter().collect::<BTreeSet<_>>(),
            rate_per_minute: None,
            concurrent_rounds: None,
            created_at: self.inner.clock.now(),
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        };
        let record = KeyRecord { key, secret_hash: clear.secret_hash(), suspended: false };
        match self.inner.store.keys().add(&Behalf::Platform, &record, None).await? {
            WriteOutcome::Done(()) => {}
            WriteOutcome::Repeated | WriteOutcome::Refused(KeyNameTaken) => {
                return Err(EngineError::Bug("the name of a login's key is taken"));
            }
        }
        tracing::info!(jurat.key.id = %record.key.id, "created a key for a login");
        self.revoke_oldest_logins(&record.key).await?;
        Ok(IssuedKey { key: record.key, clear, replaces: None })
    }

    /// Revokes the oldest login keys beyond the limit of an account.
    async fn revoke_oldest_logins(&self, newest: &Key) -> Result<(), EngineError> {
        let (store, now) = (&self.inner.store, self.inner.clock.now());
        let wanted = LiveKeys {
            account: newest.account.clone(),
            now,
            name_prefix: LOGIN_NAME.to_owned(),
            admins_only: false,
            limit: KEYS_READ,
        };
        let keys = store
            .keys()
            .live(&Behalf::Platform, &wanted)
            .await?
            .into_iter()
            .map(|record| record.key);
        for old in keys.filter(Key::is_of_login).skip(MOST_LOGIN_KEYS) {
            let revocation = KeyRevocation {
                account: old.account,
                id_or_name: old.id.clone(),
                at: now,
                by: newest.id.clone(),
                within: None,
            };
            store.keys().revoke(&Behalf::Platform, &revocation, None).await?;
            self.inner.keys.forget(&old.id);
        }
        Ok(())
    }
}

fn email(text: &str) -> Result<String, EngineError> {
    account::email(text).ok_or_else(|| {
        EngineError::invalid("email", "must be an e-mail address, such as ann@example.com")
    })
}

fn wrong_code() -> EngineError {
    EngineError::refused(ProblemCode::InvalidCredentials, "the code is wrong or expired")
}

fn code_result<T>(written: WriteOutcome<T, LoginCodeRefusal>) -> Result<T, EngineError> {
    match written {
        WriteOutcome::Done(value) => Ok(value),
        WriteOutcome::Refused(LoginCodeRefusal::Gone) => Err(wrong_code()),
        WriteOutcome::Repeated => Err(EngineError::Bug("a code has no idempotency key")),
    }
}

fn code_mail(id: String, to: &str, code: &str) -> Mail {
    let minutes = CODE_MICROS / 60_000_000;
    let text = format!(
        "Your code is {code}\n\nIt is valid for {minutes} minutes and gives access to your account.\nIf you did not request it, you can ignore this message.\n"
    );
    Mail { id, to: to.to_owned(), subject: "Your code for Jurat".to_owned(), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_is_counted_separately() {
        let doors = KeylessLimits::new();
        let asks = |from: &str| doors.count(Some(from.parse().unwrap()), KeylessRequest::Login);
        for _ in 0..KeylessRequest::Login.most() {
            assert!(asks("::ffff:192.0.2.1"));
        }
        assert!(!asks("192.0.2.1"), "the same in the words of version 4");
        assert!(asks("::ffff:192.0.2.2"), "a neighbour has a count of his own");
        for _ in 0..LOCAL_FACTOR * KeylessRequest::Login.most() {
            assert!(asks("127.0.0.1"));
        }
        assert!(!asks("::ffff:127.0.0.1"), "a proxy on this machine hides many, but not all");
    }
}
