//! Our own resources, a file per resource.

pub(crate) mod agent_events;
mod agent_runs;
mod api_keys;
mod credits;
mod cursors;
mod doctor;
mod executors;
mod knowledge;
pub(crate) mod logins;
mod peers;
mod people;
mod rounds;
mod sessions;
mod settlement;
mod shares;
pub(crate) mod tasks;
pub(crate) mod templates;
pub(crate) mod verifiers;
pub(crate) mod webhooks;
mod workflows;
