//! Device logins: a person with an account approves a program that has no key.

use std::net::IpAddr;

use jurat_core::{
    account::{
        caller::{Caller, Scope},
        key::LOGIN_NAME,
        login::{DEVICE_MICROS, DeviceState, read_user_code, secret_hash, user_code},
    },
    code::ProblemCode,
    id::AccountId,
    time::Timestamp,
};
use jurat_store::{
    Behalf, DeviceAnswer, DeviceLookup, DevicePoll, DevicePollOutcome, DeviceRefusal, DeviceUse,
    NewDevice, WriteOutcome,
};

use super::logins::KeylessRequest;
use crate::{Engine, EngineError, IssuedKey, LimitExceeded, access::require_scope};

/// A device login as the program sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLogin {
    /// The secret of the program.
    pub device_code: String,
    /// The code that a person types.
    pub user_code: String,
    pub expires_in_s: i64,
}

/// The state of a device login, as its program sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceLoginStatus {
    Pending,
    SlowDown,
    Denied,
    /// Unknown, used or expired.
    Gone,
    /// The token that the program exchanges for a key.
    Token(String),
}

/// Who approves a program on its page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceApprover {
    /// With a key.
    Key(String),
    /// With a code sent by mail.
    Mail { email: String, code: String },
}

impl Engine {
    /// The public address of this installation, if it differs from where it listens.
    pub fn public_url(&self) -> Option<&str> {
        self.inner.accounts.public_url.as_deref()
    }

    /// Starts a device login.
    pub async fn device_begin(&self, from: Option<IpAddr>) -> Result<DeviceLogin, EngineError> {
        self.admit_keyless(from, KeylessRequest::Login)?;
        let (clock, at) = (&self.inner.clock, self.inner.clock.now());
        let device_code = format!("{:032x}{:032x}", clock.bits(), clock.bits());
        let new = NewDevice {
            device_hash: secret_hash(&device_code),
            user_code: user_code(clock.bits()),
            at,
            expires_at: Timestamp::from_micros(at.micros().saturating_add(DEVICE_MICROS)),
        };
        let begun = self.inner.store.logins().begin_device(&Behalf::Platform, &new, None).await?;
        match begun {
            WriteOutcome::Done(()) => Ok(DeviceLogin {
                device_code,
                user_code: new.user_code,
                expires_in_s: DEVICE_MICROS / 1_000_000,
            }),
            WriteOutcome::Refused(_) => Err(EngineError::Limited(LimitExceeded::Address)),
            WriteOutcome::Repeated => Err(EngineError::Bug("a device has no idempotency key")),
        }
    }

    /// The state of a device login.
    pub async fn device_poll(
        &self,
        device_code: &str,
        from: Option<IpAddr>,
    ) -> Result<DeviceLoginStatus, EngineError> {
        // Programs that poll too often get this answer without a read from the store.
        if self.admit_keyless(from, KeylessRequest::Poll).is_err() {
            return Ok(DeviceLoginStatus::SlowDown);
        }
        let clock = &self.inner.clock;
        let token = format!("{:032x}{:032x}", clock.bits(), clock.bits());
        let poll = DevicePoll {
            device_hash: secret_hash(device_code),
            token_hash: secret_hash(&token),
            at: clock.now(),
        };
        let polled = self.inner.store.logins().poll_device(&Behalf::Platform, &poll, None).await?;
        Ok(match polled {
            WriteOutcome::Done(DevicePollOutcome::Pending) => DeviceLoginStatus::Pending,
            WriteOutcome::Done(DevicePollOutcome::TooSoon) => DeviceLoginStatus::SlowDown,
            WriteOutcome::Done(DevicePollOutcome::Denied) => DeviceLoginStatus::Denied,
            WriteOutcome::Done(DevicePollOutcome::Approved) => DeviceLoginStatus::Token(token),
            WriteOutcome::Refused(_) | WriteOutcome::Repeated => DeviceLoginStatus::Gone,
        })
    }

    /// Gives an approved program its key, once.
    pub async fn device_exchange(
        &self,
        token: &str,
        hostname: Option<&str>,
        from: Option<IpAddr>,
    ) -> Result<IssuedKey, EngineError> {
        self.admit_keyless(from, KeylessRequest::Login)?;
        let at = self.inner.clock.now();
        let used = DeviceUse { token_hash: secret_hash(token), at };
        match self.inner.store.logins().use_device(&Behalf::Platform, &used, None).await? {
            WriteOutcome::Done(account) => {
                let name = format!("{LOGIN_NAME}{} {}", plain_hostname(hostname), at.date());
                self.login_key(account, name.replace("  ", " ").trim()).await
            }
            WriteOutcome::Refused(_) | WriteOutcome::Repeated => Err(EngineError::refused(
                ProblemCode::InvalidCredentials,
                "the token is wrong, used or expired",
            )),
        }
    }

    /// Whether a device login waits under the typed code.
    pub async fn device_waits(&self, user_code: &str) -> Result<bool, EngineError> {
        let Some(user_code) = read_user_code(user_code) else { return Ok(false) };
        let asked = DeviceLookup { user_code, at: self.inner.clock.now() };
        let found = self.inner.store.logins().device(&Behalf::Platform, &asked).await?;
        Ok(found == Some(DeviceState::Pending))
    }

    /// Approves a program for the caller's account, or denies it.
    pub async fn device_answer(
        &self,
        caller: &Caller,
        user_code: &str,
        is_approved: bool,
    ) -> Result<(), EngineError> {
        // The program gets a key, so the approver must have the right to create one.
        for scope in Scope::OWN {
            require_scope(caller, scope)?;
        }
        self.answer_device(caller.account(), user_code, is_approved).await
    }

    /// Like [`Engine::device_answer`], for a person who shows a key or a code instead of
    /// authenticating.
    pub async fn device_answer_by(
        &self,
        approver: &DeviceApprover,
        user_code: &str,
        is_approved: bool,
        from: Option<IpAddr>,
    ) -> Result<(), EngineError> {
        if !self.device_waits(user_code).await? {
            return Err(unknown_code(user_code));
        }
        let account = match approver {
            DeviceApprover::Mail { email, code } => {
                self.profile_by_code(email, code, from).await?.account
            }
            DeviceApprover::Key(key) => {
                self.admit_keyless(from, KeylessRequest::Login)?;
                let wrong = || {
                    EngineError::refused(ProblemCode::InvalidCredentials, "the key is not valid")
                };
                let admitted = self.key_admit(key).await?.ok_or_else(wrong)?;
                let has = |scope: &Scope| {
                    admitted.scopes.contains(&Scope::Admin) || admitted.scopes.contains(scope)
                };
                if let Some(scope) = Scope::OWN.into_iter().find(|scope| !has(scope)) {
                    return Err(EngineError::missing_scope(scope));
                }
                admitted.account
            }
        };
        self.answer_device(&account, user_code, is_approved).await
    }

    async fn answer_device(
        &self,
        account: &AccountId,
        typed: &str,
        is_approved: bool,
    ) -> Result<(), EngineError> {
        let user_code = read_user_code(typed).ok_or_else(|| unknown_code(typed))?;
        let (account, at) = (account.clone(), self.inner.clock.now());
        let answer = DeviceAnswer { user_code, account, is_approved, at };
        let logins = self.inner.store.logins();
        match logins.answer_device(&Behalf::Platform, &answer, None).await? {
            WriteOutcome::Done(()) => Ok(()),
            WriteOutcome::Refused(DeviceRefusal::Unknown | DeviceRefusal::TooMany)
            | WriteOutcome::Repeated => Err(unknown_code(typed)),
        }
    }
}

fn unknown_code(code: &str) -> EngineError {
    EngineError::NotFound {
        what: "pending login with the code",
        id: code.chars().take(20).collect(),
    }
}

/// The name of a machine, as far as the name of a key can hold it.
fn plain_hostname(hostname: Option<&str>) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '.' || *c == '-' || *c == '_';
    hostname.unwrap_or_default().chars().filter(is_plain).take(32).collect()
}
