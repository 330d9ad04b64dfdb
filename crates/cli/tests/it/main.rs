//! Tests of the real binary, as its users run it.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::panic, reason = "a test may stop at the first surprise")]

mod agent_events;
mod agent_runs;
mod commands;
mod coverage;
mod credit;
mod demo;
mod doctor;
mod e2e;
mod first_contact;
mod guides;
mod home;
mod http;
mod junit;
mod keys;
mod log_canary;
mod mcp;
mod measure;
mod newer_server;
mod people;
mod postgres;
mod prune;
mod redact;
mod samples;
mod scripted;
mod settings;
mod surfaces;
mod tasks;
mod telemetry;
mod templates;
mod terminal;
mod verifier_life;
mod verifiers;
mod watch;
mod webhooks;
mod workflows;
