//! The progress of each replica: bars on a terminal, lines elsewhere.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, stderr},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jurat_wire::api::{
    consensus_reply::ReplicaBody,
    events::{self, DecidedEvent, ReplicaStarted},
};

use super::{Output, OutputFormat, Verbosity, complain, table::said};
use crate::client::SseEvent;
use crate::commands::rounds::show::label;

#[derive(Debug)]
pub(crate) enum RoundProgressDisplay {
    Silent,
    Lines,
    Bars { all: MultiProgress, bars: BTreeMap<usize, ProgressBar> },
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
        let Some(step) = RoundStep::read(event) else { return };
        match self {
            Self::Silent => {}
            Self::Lines => complain(&step.line()),
            Self::Bars { all, bars } => match step {
                RoundStep::Started(started) => {
                    let bar = all.add(ProgressBar::new_spinner());
                    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                        bar.set_style(style);
                    }
                    bar.set_message(format!("asking {}", said(&started.session_id)));
                    bar.enable_steady_tick(Duration::from_millis(100));
                    bars.insert(started.replica_id, bar);
                }
                RoundStep::Done(replica) => {
                    if let Some(bar) = bars.get(&replica.replica_id) {
                        bar.finish_with_message(done(&replica));
                    }
                }
                RoundStep::Decided(_) => {}
            },
        }
    }

    /// Removes the bars; the table that follows shows the same.
    pub(crate) fn finish(self) {
        if let Self::Bars { all, .. } = self {
            drop(all.clear());
        }
    }
}

/// An event of a round that is shown to people.
enum RoundStep {
    Started(ReplicaStarted<'static>),
    Done(Box<ReplicaBody<'static>>),
    Decided(Box<DecidedEvent<'static>>),
}

impl RoundStep {
    fn read(event: &SseEvent) -> Option<Self> {
        match event.name.as_str() {
            events::REPLICA_STARTED => event.read().map(Self::Started),
            events::REPLICA_DONE => event.read().map(|it| Self::Done(Box::new(it))),
            events::DECIDED => event.read().map(|it| Self::Decided(Box::new(it))),
            _ => None,
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Started(it) => {
                let (session, round) = (said(&it.session_id), said(&it.round_id));
                format!("replica {}: asking {session} in round {round}", it.replica_id + 1)
            }
            Self::Done(replica) => format!("replica {}: {}", replica.replica_id + 1, done(replica)),
            Self::Decided(it) => format!("decided: {}", said(&it.consensus.outcome)),
        }
    }
}

fn done(replica: &ReplicaBody<'_>) -> String {
    let (session, word) = (said(&replica.session_id), said(&label(replica)));
    format!("{session}: {word} after {} ms", replica.latency_ms)
}
