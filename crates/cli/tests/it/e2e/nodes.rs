//! Two servers that hire each other's executors.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::home::{Home, Process, Ran};

const GUIDE: &str = include_str!("../../../../../docs/guide/nodes.md");

/// A server with an endpoint for other nodes.
fn serve(home: &Home, more: &[&str]) -> Process {
    let usual = ["serve", "--listen", "127.0.0.1:0", "--node-listen", "127.0.0.1:0"];
    let mut command = home.command(&[&usual[..], more].concat());
    // A build for tests is late on a machine that is busy with other tests.
    command.env("JURAT_LIMITS_LAG_MS", "0").env("JURAT_NODE_NAME", "a lab");
    // Only a test decides when an executor is looked at again.
    command.env("JURAT_LIMITS_PROBE_FRESH_MS", "600000");
    Process::new(command).listening()
}

fn node_id(home: &Home) -> String {
    home.run(&["node", "id"]).ok().out.trim().to_owned()
}

/// Two nodes that trust each other; the first has registered the executor of the second as `far`.
struct Neighbours {
    asker: Home,
    lender: Home,
    lender_id: String,
    _running: [Process; 3],
}

impl Neighbours {
    fn start(price: &str) -> Self {
        let (asker, lender) = (Home::new(), Home::new());
        let running = [serve(&asker, &[]), serve(&lender, &[])];
        let listen = ["runtime", "--listen", "127.0.0.1:0", "--model-id", "lent"];
        let executor = lender.start(&listen).listening();
        lender.run(&["executors", "add", "own", &executor.url, "--price-micros", price]).ok();
        let ticket = lender.run(&["node", "invite", "--name", "asker", "-q"]).ok().out;
        asker.run(&["node", "join", ticket.trim(), "--name", "lender"]).ok();
        let lender_id = node_id(&lender);
        let add = ["executors", "add", "far", &executor.url, "--remote", "--target-node"];
        let session = [&lender_id, "--scope", "region:eu", "--price-micros", "40"];
        asker.run(&[&add[..], &session.map(|it: &str| it)].concat()).ok();
        let [asking, lending] = running;
        Self { asker, lender, lender_id, _running: [asking, lending, executor] }
    }

    fn validate(&self) -> Value {
        let args = ["validate", "--claim", "12 * 12 = 144", "--session", "far", "--json"];
        self.asker.run(&args).ok().json()
    }
}

#[test]
fn an_executor_of_another_node_votes_and_is_booked_on_both_sides() {
    let nodes = Neighbours::start("25");
    let Neighbours { asker, lender, lender_id, .. } = &nodes;
    let shown = asker.run(&["executors", "show", "far"]).ok().out;
    assert!(shown.contains(lender_id) && shown.contains("region:eu"), "{shown}");
    let reply = nodes.validate();
    assert_eq!(reply["verdict"], "VALID", "{reply}");
    let replica = &reply["replicas"][0];
    assert_eq!((&replica["executor"], &replica["cost"]), (&json!("far"), &json!(25)), "{reply}");
    assert!(replica["independence"].as_str().unwrap().ends_with(lender_id), "{reply}");

    let statement = asker.run(&["node", "statement", lender_id]).ok().out;
    assert!(statement.ends_with("the books agree\n"), "{statement}");
    let stated = asker.run(&["node", "statement", lender_id, "--json"]).ok().json();
    assert_eq!((&stated["agrees"], &stated["ours"]["owed_micros"]), (&json!(true), &json!(25)));
    let owed = asker.run(&["node", "bookings", lender_id, "--json"]).ok().json();
    let earned = lender.run(&["node", "bookings", &node_id(asker), "--json"]).ok().json();
    let (owed, earned) = (&owed["items"][0], &earned["items"][0]);
    assert_eq!((&owed["side"], &earned["side"]), (&json!("owed"), &json!("earned")));
    assert_eq!(owed["execution_id"], earned["execution_id"]);
    assert_eq!(owed["round_id"], reply["round_id"]);

    let peers = asker.run(&["node", "peers"]).ok().out;
    assert!(peers.contains(lender_id) && peers.contains("lender"), "{peers}");
    let status = asker.run(&["node", "status"]).ok().out;
    assert!(status.contains("endpoint       on") && status.contains("a lab"), "{status}");
    let doctor = asker.run(&["doctor", "--json"]).ok().json();
    let found = doctor["checks"].as_array().unwrap().iter().filter(|it| it["check"] == "peers");
    let found: Vec<&str> = found.filter_map(|it| it["detail"].as_str()).collect();
    assert_eq!(found.len(), 2, "{doctor}");
    assert_eq!(found[1], "`lender` answers and lends 1 session");
}

#[test]
fn a_block_ends_the_work_with_a_reason() {
    let nodes = Neighbours::start("0");
    let Neighbours { asker, lender, lender_id, .. } = &nodes;
    assert_eq!(nodes.validate()["verdict"], "VALID");
    let blocked = lender.run(&["node", "block", &node_id(asker)]).ok();
    assert_eq!(blocked.out, "blocked asker\n");
    let reply = nodes.validate();
    let error = &reply["replicas"][0]["error"];
    assert_eq!((&reply["verdict"], &error["code"]), (&Value::Null, &json!("peer_refused")));
    assert!(error.to_string().contains("does not admit this node"), "{reply}");
    let ran = asker.run(&["node", "statement", lender_id]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("the book of the peer is not known"), "{}", ran.out);
    let ran = asker.run(&["node", "offers", lender_id]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("does not say what it lends"), "{}", ran.err);
    let doctor = asker.run(&["doctor"]).ok().out;
    assert!(doctor.contains("lends nothing"), "{doctor}");

    // Trust from the other side alone is enough again.
    lender.run(&["node", "trust", &node_id(asker)]).ok();
    asker.run(&["executors", "check", "far"]).ok();
    assert_eq!(nodes.validate()["verdict"], "VALID");
}

#[test]
fn a_ticket_works_once_and_is_the_only_output() {
    let homes = [Home::new(), Home::new(), Home::new()];
    let _servers = homes.each_ref().map(|home| serve(home, &[]));
    let [inviter, first, second] = &homes;
    let ran = inviter.run(&["node", "invite", "--valid-seconds", "600"]).ok();
    let ticket = ran.out.strip_suffix('\n').unwrap();
    assert!(ticket.starts_with("jurat") && !ticket.contains(char::is_whitespace), "{ticket}");
    assert!(ran.err.contains("run `jurat node join TICKET` on the other node"), "{}", ran.err);

    let mut joining = first.command(&["node", "join", "-", "--json"]);
    let mut joining = joining.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = joining.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, ticket.as_bytes()).unwrap();
    drop(stdin);
    let joined = Ran::from(joining.wait_with_output().unwrap()).ok().json();
    assert_eq!((&joined["id"], &joined["name"]), (&json!(node_id(inviter)), &json!("a lab")));

    let ran = second.run(&["node", "join", ticket]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("unknown, used or expired"), "{}", ran.err);
    assert!(!ran.err.contains(ticket), "{}", ran.err);
    let ran = inviter.run(&["node", "join", ticket]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("is an invitation of this node itself"), "{}", ran.err);
    let ran = second.run(&["node", "join", "nonsense"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("an invitation begins with `jurat`"), "{}", ran.err);
}

#[test]
fn an_address_that_is_taken_is_named() {
    let (home, other) = (Home::new(), Home::new());
    let server = serve(&home, &[]);
    let status = home.run(&["node", "status", "--json"]).ok().json();
    let taken = status["addresses"][0].as_str().unwrap().to_owned();
    let args = ["serve", "--listen", "127.0.0.1:0", "--node-listen", &taken];
    let ran = other.run(&args);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let expected = format!("cannot listen for other nodes on {taken}");
    assert!(ran.err.contains(&expected) && ran.err.contains("`--node-listen`"), "{}", ran.err);

    // A stopped server gives its address free.
    server.terminate();
    assert!(server.wait().success());
    let _server = Process::new(other.command(&args)).listening();
}

/// Settings of a node, with an endpoint on a free port.
fn settled(network: &str) -> Home {
    let home = Home::new();
    let text = format!(
        "[node]\nlisten = [\"127.0.0.1:0\"]\nname = \"lab\"\nnetwork = \"{network}\"\n\
         scopes = [\"region:eu\", \"group:lab\"]\n"
    );
    fs::write(home.state().join("jurat.toml"), text).unwrap();
    home
}

#[test]
fn a_node_says_of_itself_what_its_settings_say() {
    let (home, other) = (settled("one"), settled("two"));
    let _servers = [home.serve(), other.serve()];
    let status = home.run(&["node", "status", "--json"]).ok().json();
    assert_eq!((&status["name"], &status["network"]), (&json!("lab"), &json!("one")));
    assert_eq!(status["scopes"], json!(["region:eu", "group:lab"]));
    let ticket = home.run(&["node", "invite", "-q"]).ok().out;
    let ran = other.run(&["node", "join", ticket.trim()]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("is for the network `one`"), "{}", ran.err);
    for (variable, value, text) in [
        ("JURAT_NODE_SCOPES", &format!("node:{}", "ab".repeat(32)), "must be scopes like global"),
        ("JURAT_NODE_LISTEN", &"5873".to_owned(), "must be addresses and ports like 127.0.0.1"),
        ("JURAT_NODE_RELAYS", &"relay.example.com".to_owned(), "must be URLs like https://relay"),
        ("JURAT_NODE_FIND_LOCAL", &"yes".to_owned(), "must be `off` or `on`"),
    ] {
        let output = home.command(&["node", "status"]).env(variable, value).output();
        let ran = Ran::from(output.unwrap());
        assert_eq!(ran.code, 2, "{variable}");
        assert!(ran.err.contains(text), "{}", ran.err);
    }
}

#[test]
fn without_an_endpoint_other_nodes_are_refused_with_a_sentence() {
    let home = Home::new();
    let _server = home.serve();
    let status = home.run(&["node", "status"]).ok();
    assert!(status.out.contains("endpoint       off"), "{}", status.out);
    assert!(status.err.contains("jurat serve --node-listen"), "{}", status.err);
    let ran = home.run(&["node", "invite"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("set `node.listen`"), "{}", ran.err);
    let far = ["executors", "add", "far", "http://127.0.0.1:1", "--remote", "--target-node"];
    let ran = home.run(&[&far[..], &[&"ab".repeat(32)]].concat());
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("no endpoint for other nodes"), "{}", ran.err);
}

/// The commands of the first section of the guide, each after its machine and terminal.
fn typed() -> Vec<(String, String)> {
    let section = GUIDE.split("## Two nodes in five minutes").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut found = Vec::new();
    for block in section.split("```sh\n").skip(1) {
        let mut lines = block.split("```").next().unwrap().lines().map(str::trim);
        let machine = lines.next().unwrap().strip_prefix("# ").unwrap().to_owned();
        let lines = lines.filter(|line| !line.is_empty());
        found.extend(lines.map(|line| (machine.clone(), line.to_owned())));
    }
    found
}

/// A command in a shell, which finds the program by its name.
fn in_shell(home: &Home, line: &str) -> Command {
    let folder = Path::new(env!("CARGO_BIN_EXE_jurat")).parent().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {line}")]).env_clear().current_dir(home.path());
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    command.env("JURAT_STATE_DIR", home.state()).env("TMPDIR", home.path());
    command.env("JURAT_LISTEN", "127.0.0.1:0").env("JURAT_LIMITS_LAG_MS", "0");
    command.stdin(Stdio::null());
    command
}

#[test]
fn the_commands_of_the_guide_work_as_they_are_written() {
    let homes = BTreeMap::from([("A", Home::new()), ("B", Home::new())]);
    // What differs on the machine of a test, or comes from the output of an earlier command.
    let mut meant = vec![("0.0.0.0:5873".to_owned(), "127.0.0.1:0".to_owned())];
    let mut running = Vec::new();
    let mut said = String::new();
    for (machine, line) in typed() {
        let home = &homes[&machine["Machine ".len()..="Machine ".len()]];
        let mut line = line;
        for (written, here) in &meant {
            line = line.replace(written, here);
        }
        if line.starts_with("jurat serve") || line.starts_with("jurat runtime") {
            let free = line.replace("127.0.0.1:8787", "127.0.0.1:0");
            let process = Process::new(in_shell(home, &free)).listening();
            if line.starts_with("jurat runtime") {
                meant.push(("http://127.0.0.1:8787".to_owned(), process.url.clone()));
            }
            running.push(process);
            continue;
        }
        let ran = Ran::from(in_shell(home, &line).output().unwrap());
        assert_eq!(ran.code, 0, "{machine}: {line}\n{}\n{}", ran.out, ran.err);
        if line.starts_with("jurat node invite") {
            meant.push(("TICKET".to_owned(), ran.out.trim().to_owned()));
        }
        if line.starts_with("jurat node join") {
            let id = ran.out.split_whitespace().nth(1).unwrap().to_owned();
            meant.push(("ID".to_owned(), id));
        }
        said.push_str(&ran.out);
    }
    assert_eq!(running.len(), 3);
    for text in ["VALID  ·  1 of 1 agree", "the books agree", "jurat-echo/honest"] {
        assert!(said.contains(text), "{text}: {said}");
    }
    for home in homes.values() {
        let left = home.run(&["executors", "list", "--json"]).ok().json();
        assert_eq!(left["items"], json!([]));
    }
}
