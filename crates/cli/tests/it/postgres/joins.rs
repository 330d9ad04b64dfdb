//! Nodes that share a database, and who may operate it.

use jurat_testkit::postgres::TestSchema;

use crate::home::{Home, Process};

fn serve(home: &Home, url: &str, more: &[&str]) -> Process {
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", url];
    home.start(&[&args[..], more].concat()).listening()
}

fn key_of(home: &Home) -> Option<String> {
    std::fs::read_to_string(home.state().join("admin.key")).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_adds_no_key_of_its_own() {
    let schema = TestSchema::served().await;
    let url = schema.serving_url();
    let (first, second) = (Home::new(), Home::new());
    let keys = || first.run(&["keys", "list", "--store", &url, "--json"]).ok().json();
    serve(&first, &url, &[]).kill();
    assert_eq!(keys()["items"].as_array().unwrap().len(), 1);

    let joined = serve(&second, &url, &[]);
    assert_eq!(key_of(&second), None);
    let refused = second.run(&["keys", "list"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("--new-admin-key"), "{}", refused.err);
    joined.kill();
    assert_eq!(keys()["items"].as_array().unwrap().len(), 1);

    // A folder with a key of another installation does not bring it along.
    let stranger = Home::new();
    serve(&stranger, "own.db", &[]).kill();
    serve(&stranger, &url, &[]).kill();
    assert_eq!(keys()["items"].as_array().unwrap().len(), 1);

    // A command without a server says what is missing.
    let refused = second.run(&["keys", "list", "--store", &url]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("--new-admin-key"), "{}", refused.err);

    // An operator who may start a node may create a key.
    serve(&second, &url, &["--new-admin-key"]).kill();
    assert!(key_of(&second).is_some());
    let listed = second.run(&["keys", "list", "--store", &url, "--json"]).ok().json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    schema.drop().await;
}
