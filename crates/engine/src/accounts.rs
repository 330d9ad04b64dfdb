//! Accounts: people, keys, credit, and storage.

pub(crate) mod credits;
pub(crate) mod devices;
pub(crate) mod handles;
pub(crate) mod invitations;
pub(crate) mod keys;
pub(crate) mod logins;
pub(crate) mod storage;
pub(crate) mod teams;
pub(crate) mod visitors;
