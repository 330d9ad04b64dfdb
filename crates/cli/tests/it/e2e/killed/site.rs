//! Stores that are made ready once and copied for each process that is to die.

use std::{fs, os::unix::process::ExitStatusExt as _, process::Command, sync::Arc};

use jurat_store::{Location, Store};
use jurat_testkit::postgres::Schema;

use crate::home::{Home, Process};

/// What each executor takes for an answer.
pub(super) const PRICE: i64 = 1_000;

/// Where the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Postgres,
}

/// A store with executors and nothing else.
pub(super) struct Prepared {
    home: Home,
    /// The schema stands for its server here; the other is the database to copy.
    database: Option<(Schema, String)>,
}

impl Prepared {
    pub(super) async fn new(kind: Kind, executors: &[(&str, String)]) -> Self {
        let home = Home::new();
        let (mut database, mut url) = (None, None);
        if kind == Kind::Postgres {
            let schema = Schema::new().await;
            let name = format!("{}_ready", schema.name);
            schema.execute(&format!("create database {name}")).await.unwrap();
            url = Some(schema.serve_database(&name).await);
            database = Some((schema, name));
        }
        let price = PRICE.to_string();
        for (name, address) in executors {
            let mut add = home.command(&["executors", "add", name, address]);
            add.args(["--price-micros", &price]);
            add.args(url.iter().flat_map(|url| ["--store", url]));
            let added = add.output().unwrap();
            assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        }
        Self { home, database }
    }

    /// A copy for one death.
    pub(super) async fn copied(&self, number: usize) -> Site {
        let home = Home::new();
        fs::create_dir(home.state()).unwrap();
        for file in fs::read_dir(self.home.state()).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), home.state().join(file.file_name())).unwrap();
        }
        let url = match &self.database {
            None => None,
            Some((schema, ready)) => {
                let name = format!("{ready}_{number}");
                let create = format!("create database {name} template {ready}");
                schema.execute(&create).await.unwrap();
                Some(schema.serve_database(&name).await)
            }
        };
        let location = match &url {
            None => Location::File(home.state().join("jurat.db")),
            Some(url) => Location::Postgres { url: url.clone(), migrate_url: None },
        };
        Site { home, url, location }
    }

    /// Removes all copies of that many.
    pub(super) async fn drop(self, copies: usize) {
        let Some((schema, ready)) = self.database else { return };
        let names = (0..copies).map(|number| format!("{ready}_{number}"));
        for name in names.chain([ready.clone()]) {
            let dropped = format!("drop database if exists {name} with (force)");
            schema.execute(&dropped).await.unwrap();
        }
        schema.drop().await;
    }
}

/// A store of its own, on which one process works after the other.
pub(super) struct Site {
    pub(super) home: Home,
    url: Option<String>,
    location: Location,
}

impl Site {
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.args(self.url.iter().flat_map(|url| ["--store", url]));
        // A build for tests is late on any machine that is busy with other tests.
        command.env("JURAT_LIMITS_LAG_MS", "0");
        command
    }

    /// A command that writes down which points it passes, and dies at one of them, counted from 1.
    pub(super) fn mortal(&self, args: &[&str], dies_at: Option<usize>) -> Command {
        let mut command = self.command(args);
        command.env("JURAT_TEST_POINTS", self.home.path().join("points"));
        if let Some(number) = dies_at {
            command.env("JURAT_TEST_KILL_AT", number.to_string());
        }
        command
    }

    /// The points that the mortal process passed.
    pub(super) fn points(&self) -> Vec<String> {
        let passed = fs::read_to_string(self.home.path().join("points")).unwrap_or_default();
        passed.lines().map(str::to_owned).collect()
    }

    pub(super) async fn store(&self) -> Arc<dyn Store> {
        jurat_store::open(&self.location).await.unwrap()
    }

    /// A process that was to die and did not must have ended well before it came to the point.
    pub(super) fn assert_died(&self, ended: std::process::ExitStatus, at: usize) {
        let passed = self.points().len();
        if ended.signal().is_none() {
            assert!(ended.success(), "it ended otherwise: {ended}");
            assert!(passed < at, "it passed {passed} points and lived");
        } else {
            assert_eq!((ended.signal(), passed), (Some(9), at), "it died elsewhere");
        }
    }
}

/// A server on a site.
pub(super) fn serve(mut command: Command) -> Process {
    command.args(["--listen", "127.0.0.1:0"]);
    Process::new(command).listening()
}
