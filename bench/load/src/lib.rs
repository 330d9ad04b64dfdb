//! The shared parts of the measurements: roles in processes of their own, load, CPU time, and the
//! report.
//!
//! A measurement is one program that starts itself again for each role, so that the CPU time of
//! each role is counted separately. It puts the same load on the subjects in alternation, so that
//! other activity on the machine affects all of them alike.

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
