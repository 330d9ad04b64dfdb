//! What the measurements share: roles in processes of their own, load, CPU time, and the report.
//!
//! A measurement is one program that starts itself again once for each role, so that the CPU time
//! of each is counted apart, and puts the same load on the subjects in turns, so that what else
//! happens on the machine hits all of them alike.

pub mod compare;
pub mod cpu;
pub mod load;
pub mod memory;
pub mod open_loop;
pub mod options;
pub mod report;
pub mod role;
pub mod stores;

pub use http::Method;

pub use self::compare::{LoadComparison, LoadSubject, compare};
pub use self::load::{LoadPlan, LoadSample, LoadStop, RequestVariation, Target};
pub use self::open_loop::{OfferedLoad, OpenLoopOutcome, offer};
pub use self::options::LoadOptions;
pub use self::report::print;
pub use self::role::{RunningRole, announce, spawn, spawn_on, until_parent_goes};
pub use self::stores::BenchStores;
