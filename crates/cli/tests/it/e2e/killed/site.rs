//! Stores on which one process after the other works and dies.

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    process::{Command, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use jurat_store::{Store, StoreLocation};
use jurat_testkit::postgres::TestSchema;

use crate::home::{Home, Process};

/// The price of each executor's answer.
pub(super) const PRICE: i64 = 1_000;

/// Where the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Postgres,
}

/// Prepares stores with executors and nothing else.
pub(super) struct Prepared {
    executors: Vec<(String, String)>,
    /// A store in a file is created once and copied.
    ready: Option<Home>,
}

impl Prepared {
    pub(super) fn new(kind: Kind, executors: Vec<(String, String)>) -> Self {
        let ready = (kind == Kind::File).then(Home::new);
        if let Some(home) = &ready {
            add(home, None, &executors);
        }
        Self { executors, ready }
    }

    pub(super) async fn site(&self) -> Site {
        let home = Home::new();
        let Some(ready) = &self.ready else {
            let schema = TestSchema::served().await;
            let url = schema.serving_url();
            add(&home, Some(&url), &self.executors);
            let location = StoreLocation::Postgres { url: url.clone(), migrate_url: None };
            return Site { home, schema: Some((schema, url)), location, spent: AtomicI64::new(0) };
        };
        fs::create_dir_all(home.state()).unwrap();
        for file in fs::read_dir(ready.state()).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), home.state().join(file.file_name())).unwrap();
        }
        let location = StoreLocation::File(home.state().join("jurat.db"));
        Site { home, schema: None, location, spent: AtomicI64::new(0) }
    }
}

fn add(home: &Home, url: Option<&str>, executors: &[(String, String)]) {
    let price = PRICE.to_string();
    for (name, address) in executors {
        let mut add = home.command(&["executors", "add", name, address]);
        add.args(["--price-micros", &price]);
        add.args(url.iter().flat_map(|url| ["--store", url]));
        let added = add.output().unwrap();
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }
}

/// A store, and the folder of the processes that work on it.
pub(super) struct Site {
    pub(super) home: Home,
    schema: Option<(TestSchema, String)>,
    location: StoreLocation,
    /// What the account had paid at the last look.
    spent: AtomicI64,
}

impl Site {
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.args(self.schema.iter().flat_map(|(_, url)| ["--store", url]));
        // A build for tests is late on a machine that is busy with other tests.
        command.env("JURAT_LIMITS_LAG_MS", "0");
        command
    }

    /// A command that records the points it passes, and dies at one of them, counted from 1.
    pub(super) fn mortal(&self, args: &[&str], dies_at: Option<usize>) -> Command {
        let points = self.home.path().join("points");
        fs::write(&points, "").unwrap();
        let mut command = self.command(args);
        command.env("JURAT_TEST_POINTS", points);
        if let Some(number) = dies_at {
            command.env("JURAT_TEST_KILL_AT", number.to_string());
        }
        command
    }

    /// The points that the last mortal process passed.
    pub(super) fn points(&self) -> Vec<String> {
        let passed = fs::read_to_string(self.home.path().join("points")).unwrap();
        passed.lines().map(str::to_owned).collect()
    }

    /// The address of its schema in PostgreSQL.
    pub(super) fn url(&self) -> &str {
        self.schema.as_ref().map(|(_, url)| url.as_str()).unwrap()
    }

    pub(super) async fn store(&self) -> Arc<Store> {
        jurat_store::open(&self.location).await.unwrap()
    }

    /// What was paid since the last look.
    pub(super) fn paid_since(&self, spent: i64) -> i64 {
        spent - self.spent.swap(spent, Ordering::SeqCst)
    }

    /// A process that did not die must have finished before it reached the point.
    pub(super) fn assert_died(&self, ended: ExitStatus, at: usize) {
        let passed = self.points().len();
        if ended.signal().is_none() {
            assert!(ended.success(), "it ended otherwise: {ended}");
            assert!(passed < at, "it passed {passed} points and lived");
        } else {
            assert_eq!((ended.signal(), passed), (Some(9), at), "it died elsewhere");
        }
    }

    pub(super) async fn drop(self) {
        if let Some((schema, _)) = self.schema {
            schema.drop().await;
        }
    }
}

/// A server on a site.
pub(super) fn serve(mut command: Command) -> Process {
    command.args(["--listen", "127.0.0.1:0"]);
    Process::new(command).listening()
}
