//! The operations of the store, one module for each kind of data; each method is one transaction.

pub(crate) mod agent_events;
pub(crate) mod agent_runs;
pub(crate) mod checkup;
pub(crate) mod credit;
pub(crate) mod evidence;
pub(crate) mod invitations;
pub(crate) mod judge_calls;
pub(crate) mod key;
pub(crate) mod knowledge;
pub(crate) mod logins;
pub(crate) mod open_work;
pub(crate) mod people;
pub(crate) mod registry;
pub(crate) mod shares;
pub(crate) mod storage;
pub(crate) mod tasks;
pub(crate) mod teams;
pub(crate) mod templates;
pub(crate) mod verifiers;
pub(crate) mod workflows;
