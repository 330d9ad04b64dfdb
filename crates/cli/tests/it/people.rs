//! Accounts of people, in processes of their own.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use jurat_testkit::mail::{FakeSmtp, code_in};

use crate::home::{Home, Ran};

const OPEN: (&str, &str) = ("JURAT_ACCOUNTS_REGISTRATION", "open");
const EMAIL: &str = "ann@example.com";

fn run(home: &Home, args: &[&str]) -> Ran {
    home.command(args).env(OPEN.0, OPEN.1).output().unwrap().into()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_user_registers_claims_a_handle_and_creates_a_team() {
    let home = Home::new();
    let closed = home.run(&["auth", "register", EMAIL]);
    assert_eq!(closed.code, 1);
    assert!(closed.err.contains("has no self-registration"), "{}", closed.err);
    let asked = run(&home, &["auth", "register", EMAIL]).ok();
    assert!(asked.err.contains("jurat auth register-verify"), "{}", asked.err);
    let mails: Vec<_> = fs::read_dir(home.state().join("mail")).unwrap().collect();
    let [Ok(mail)] = &mails[..] else { panic!("{mails:?}") };
    assert_eq!(mode(&mail.path()), 0o600);
    let code = code_in(&fs::read_to_string(mail.path()).unwrap());
    let wrong = run(&home, &["auth", "register-verify", EMAIL, "00000000"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.err.contains("the code is wrong"), "{}", wrong.err);
    run(&home, &["auth", "register-verify", EMAIL, &code]).ok();
    assert_eq!(mode(&home.state().join("login.key")), 0o600);

    let me = home.run(&["me", "show", "--json"]).ok().json();
    assert_eq!(me["email"], EMAIL, "commands speak for who logged in");
    home.run(&["me", "claim-handle", "ann"]).ok();
    let shown = home.run(&["whoami"]).ok();
    assert!(shown.out.contains("@ann") && shown.out.contains(EMAIL), "{}", shown.out);
    home.run(&["teams", "create", "crew"]).ok();
    let teams = home.run(&["teams", "list", "--filter", "mine", "--json"]).ok().json();
    assert_eq!(teams["items"][0]["handle"], "crew");
    let invited = home.run(&["teams", "add-member", "crew", "bob@example.com"]).ok();
    assert!(invited.out.contains("jurat invitations accept"), "{}", invited.out);
    let sent = home.run(&["invitations", "list", "--filter", "sent", "--json"]).ok().json();
    let id = sent["items"][0]["id"].as_str().unwrap();
    home.run(&["invitations", "cancel", id]).ok();
    let own = home.run(&["teams", "leave", "crew"]);
    assert!(own.code == 1 && own.err.contains("cannot leave"), "{}", own.err);
    home.run(&["teams", "delete", "crew", "--yes"]).ok();

    let key = fs::read_to_string(home.state().join("login.key")).unwrap();
    let key: serde_json::Value = serde_json::from_str(&key).unwrap();
    let out = home.run(&["auth", "logout", "--json"]).ok().json();
    assert_eq!((&out["was_logged_in"], &out["revoked"]), (&true.into(), &true.into()));
    let mut command = home.command(&["whoami"]);
    let ended = Ran::from(command.env("JURAT_KEY", key["key"].as_str().unwrap()).output().unwrap());
    assert!(ended.code == 1 && ended.err.contains("the key is not valid"), "{}", ended.err);
    let again = home.run(&["auth", "logout"]).ok();
    assert!(again.out.contains("not logged in"), "{}", again.out);
    let admin = home.run(&["whoami", "--json"]).ok().json();
    assert_eq!(admin["id"], "acct_admin");
}

#[tokio::test]
async fn mail_goes_to_the_configured_server() {
    let smtp = FakeSmtp::start().await;
    let home = Home::new();
    let mut command = home.command(&["auth", "register", EMAIL]);
    command.env(OPEN.0, OPEN.1).env("JURAT_MAIL_SMTP_URL", smtp.url());
    command.env("JURAT_MAIL_FROM", "Jurat <jurat@example.org>");
    let running = tokio::task::spawn_blocking(move || Ran::from(command.output().unwrap()));
    let (mail, ran) = tokio::join!(smtp.next(), running);
    ran.unwrap().ok();
    for text in ["MAIL FROM:<jurat@example.org>", "RCPT TO:<ann@example.com>", "Subject: Your code"]
    {
        assert!(mail.contains(text), "{text}: {mail}");
    }
    assert_eq!(code_in(&mail).len(), 10);
    let half = home.command(&["whoami"]).env("JURAT_MAIL_SMTP_URL", smtp.url()).output();
    let half = Ran::from(half.unwrap());
    assert!(half.code == 2 && half.err.contains("mail.from"), "{} {}", half.code, half.err);
}

#[test]
fn shares_are_listed_accepted_declined_and_blocked() {
    let home = Home::new();
    let key = |name: &str| {
        let account = format!("acct_{name}");
        let made = home.run(&["keys", "create", name, "--account", &account, "--quiet"]).ok();
        made.out.trim().to_owned()
    };
    let (ann, bob) = (key("ann"), key("bob"));
    let with = |key: &str, args: &[&str]| -> Ran {
        home.command(args).env("JURAT_KEY", key).output().unwrap().into()
    };
    with(&ann, &["me", "claim-handle", "ann"]).ok();
    fs::write(home.path().join("report.md"), "# Do").unwrap();
    let publish =
        ["workflows", "publish", "report.md", "--name", "Report", "--description", "Writes one."];
    with(&ann, &publish).ok();
    with(&ann, &["workflows", "grant", "report", "acct_bob", "view"]).ok();

    let listed = with(&bob, &["shares", "list", "--state", "pending", "--json"]).ok().json();
    assert_eq!(listed["items"][0]["reference"], "@ann/report", "{listed}");
    let id = listed["items"][0]["id"].as_str().unwrap();
    for (verb, said) in [
        ("accept", "accepted @ann/report"),
        ("decline", "declined @ann/report"),
        ("block", "blocked @ann: all their shares are declined"),
    ] {
        let answered = with(&bob, &["shares", verb, id]).ok();
        assert!(answered.out.contains(said), "{verb}: {}", answered.out);
    }
    let left = with(&bob, &["shares", "list"]).ok();
    assert!(left.err.contains("no workflows are shared with you"), "{}", left.err);
    let declined = with(&bob, &["shares", "list", "--state", "declined", "--json"]).ok().json();
    assert_eq!(declined["items"][0]["blocked"], true, "{declined}");
}
