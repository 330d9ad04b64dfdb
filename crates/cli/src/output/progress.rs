//! What each replica does while it does it: bars on a terminal, lines elsewhere.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, stderr},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jurat_wire::api::events;
use serde_json::Value;

use super::{Output, OutputFormat, Verbosity, complain, table::said};
use crate::client::SseEvent;
use crate::commands::rounds::show::label;

#[derive(Debug)]
pub(crate) enum RoundProgressDisplay {
    Silent,
    Lines,
    Bars { all: MultiProgress, bars: BTreeMap<u64, ProgressBar> },
}

impl RoundProgressDisplay {
    pub(crate) fn new(out: Output) -> Self {
        if out.format == OutputFormat::Json || out.chatter == Verbosity::Quiet {
            Self::Silent
        } else if stderr().is_terminal() {
            Self::Bars { all: MultiProgress::new(), bars: BTreeMap::new() }
        } else {
            Self::Lines
        }
    }

    pub(crate) fn show(&mut self, event: &SseEvent) {
        let body = event.value();
        let index = body["replica_id"].as_u64().unwrap_or(0);
        match self {
            Self::Silent => {}
            Self::Lines => {
                if let Some(line) = line(&event.name, index, &body) {
                    complain(&line);
                }
            }
            Self::Bars { all, bars } => match event.name.as_str() {
                events::REPLICA_STARTED => {
                    let bar = all.add(ProgressBar::new_spinner());
                    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                        bar.set_style(style);
                    }
                    bar.set_message(format!("asking {}", said(&body["session_id"])));
                    bar.enable_steady_tick(Duration::from_millis(100));
                    bars.insert(index, bar);
                }
                events::REPLICA_DONE => {
                    if let Some(bar) = bars.get(&index) {
                        bar.finish_with_message(done(&body));
                    }
                }
                _ => {}
            },
        }
    }

    /// Takes the bars away; the table that follows says the same.
    pub(crate) fn finish(self) {
        if let Self::Bars { all, .. } = self {
            drop(all.clear());
        }
    }
}

fn line(name: &str, index: u64, body: &Value) -> Option<String> {
    let number = index + 1;
    match name {
        events::REPLICA_STARTED => {
            let round = said(&body["round_id"]);
            Some(format!("replica {number}: asking {} in round {round}", said(&body["session_id"])))
        }
        events::REPLICA_DONE => Some(format!("replica {number}: {}", done(body))),
        events::DECIDED => Some(format!("decided: {}", said(&body["consensus"]["outcome"]))),
        _ => None,
    }
}

fn done(body: &Value) -> String {
    let (session, word) = (said(&body["session_id"]), said(label(body)));
    format!("{session}: {word} after {} ms", body["latency_ms"])
}
