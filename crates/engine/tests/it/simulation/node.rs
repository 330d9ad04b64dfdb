//! A machine of a simulated world, on which one process after another runs the real scheduler and
//! driver.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use jurat_engine::tasks::{DriverContext, TaskScheduler, TasksInFlight};

use super::{
    plan::Mishap,
    store::SimStore,
    workers::SimWorkers,
    world::{SimClock, World, pause},
};

pub(super) struct Node {
    pub(super) world: Arc<World>,
    pub(super) index: usize,
}

impl Node {
    pub(super) async fn live(self, mishaps: Vec<Mishap>) {
        let mut process = self.process();
        for mishap in mishaps {
            match mishap {
                Mishap::Crash { after, back_after } => {
                    process.run_for(after).await;
                    drop(process);
                    pause(Duration::from_millis(back_after)).await;
                    process = self.process();
                }
                Mishap::Stop { after, back_after } => {
                    process.run_for(after).await;
                    process.under_way.stop.cancel();
                    process.run_for(back_after).await;
                    process = self.process();
                }
                Mishap::Pause { after, span } => {
                    process.run_for(after).await;
                    let from = self.world.millis();
                    pause(Duration::from_millis(span)).await;
                    let machine = &self.world.machines[self.index];
                    machine.pauses.lock().push((from, self.world.millis()));
                }
                Mishap::Clock { after, ahead_ms } => {
                    process.run_for(after).await;
                    let machine = &self.world.machines[self.index];
                    machine.ahead_ms.store(ahead_ms, Ordering::SeqCst);
                }
            }
        }
        process.running.await;
    }

    fn process(&self) -> Process {
        let (world, node) = (Arc::clone(&self.world), self.index);
        let under_way = Arc::new(TasksInFlight::default());
        *world.machines[node].under_way.lock() = Arc::clone(&under_way);
        let (name, shared) = (format!("node-{node}"), Arc::clone(&under_way));
        let skew_ms = world.draw(|chance| chance.between(0, 20));
        let running = async move {
            let store = SimStore { world: Arc::clone(&world), node };
            let workers = SimWorkers { world: Arc::clone(&world), node };
            let clock = SimClock { world, node, skew_ms };
            let driver =
                DriverContext { store: &store, workers: &workers, clock: &clock, node: &name };
            let schedule = TaskScheduler {
                store: &store,
                driver: &driver,
                clock: &clock,
                in_flight: &shared,
                at_once: 8,
                longest_sleep: Duration::from_secs(1),
            };
            schedule.run().await;
        };
        Process { under_way, running: Box::pin(running) }
    }
}

/// A process: it progresses only while it is polled, and is gone when it is dropped.
struct Process {
    under_way: Arc<TasksInFlight>,
    running: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Process {
    async fn run_for(&mut self, millis: u64) {
        let until = Duration::from_millis(millis);
        let running = Fused { running: &mut self.running };
        let _elapsed = tokio::time::timeout(until, running).await;
    }
}

/// Never ends, so that a process that ended by itself only waits.
struct Fused<'a> {
    running: &'a mut Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Future for Fused<'_> {
    type Output = std::convert::Infallible;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.running.as_mut().poll(context).is_ready() {
            *self.running = Box::pin(std::future::pending());
        }
        Poll::Pending
    }
}
