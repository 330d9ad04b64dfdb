//! The HTTP API: requests decoded into domain types, domain types encoded into replies.

pub mod choices;
pub mod consensus_reply;
pub mod consensus_request;
pub mod credits;
#[cfg(test)]
mod described;
pub mod doctor;
pub mod events;
pub mod executors;
mod faults;
pub mod fields;
pub mod invitations;
pub mod keys;
pub mod knowledge;
pub mod logins;
pub mod mcp;
pub mod member;
pub mod packs;
pub mod page;
pub mod people;
pub mod policy_request;
pub mod rounds;
pub mod runs;
pub mod sessions;
pub mod status;
pub mod tasks;
pub mod teams;
pub mod templates;
pub mod terms;
pub mod time;
pub mod v2;
pub mod verifier_runs;
pub mod verifier_tests;
pub mod verifiers;
pub mod verify;
pub mod words;
pub mod workflows;
