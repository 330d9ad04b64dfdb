//! What workflows hold: bodies that are searched, and files that lie beside each other.

use jurat_core::{
    account::AccountName,
    id::{AccountId, uuid},
    workflow::{FileContent, NewFile, Role, Source, Whose, WorkflowWhich},
};
use jurat_store::{
    FilesPatch, Found, GrantOrder, SaveTarget, WorkflowAsked, WorkflowRefused, WorkflowSave,
    WorkflowWords, Written, WrongField,
};

use super::workflows::{behalf, draft, saved, try_save, user};
use crate::{backend::Backend, samples::at};

pub(crate) async fn an_old_name_is_found_before_newer_bodies(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    saved(store, &draft(&alice, "Ölwechsel", 1)).await;
    for number in 2..62 {
        let name = format!("other {number}");
        let body = "Then do the ÖLWECHSEL, and `name` it.".to_owned();
        saved(store, &WorkflowSave { body, ..draft(&alice, &name, number) }).await;
    }
    let search = async |caller: &AccountId, words: &[&str], whose| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let wanted = WorkflowWords { caller: caller.clone(), whose, tag: None, words, limit: 50 };
        store.sharing().workflow_search(&behalf(caller), &wanted).await.unwrap()
    };
    let found = search(&alice, &["ölwechsel"], Whose::All).await;
    assert_eq!((found.len(), found[0].0.workflow.name.as_str()), (50, "Ölwechsel"));
    assert_eq!(found[1].1, "and do it name the then ölwechsel", "the words of the body");
    assert_eq!(search(&alice, &["ölwechsel"], Whose::SharedWithMe).await, []);
    assert_eq!(search(&alice, &["nothing", "here"], Whose::All).await, []);
    assert_eq!(search(&bob, &["ölwechsel"], Whose::All).await, []);
    let id = WorkflowWhich::Id(uuid(at(5), 5));
    let order = GrantOrder {
        caller: alice.clone(),
        which: id.clone(),
        grantee: AccountName::Id(bob.clone()),
        role: Role::View,
        with_history: false,
        at: at(99),
    };
    store.sharing().workflow_grant(&behalf(&alice), &order, None).await.unwrap();
    let shared = search(&bob, &["ölwechsel", "body"], Whose::SharedWithMe).await;
    assert_eq!(shared.len(), 1);
    // What is saved anew is found by its new words alone.
    let before = match store
        .sharing()
        .workflow_find(
            &behalf(&alice),
            &WorkflowAsked { caller: alice.clone(), which: id, version: None },
        )
        .await
        .unwrap()
    {
        Found::One(reached) => reached.workflow,
        other => panic!("{other:?}"),
    };
    let target = SaveTarget::Id(before.id.clone());
    let expected_token = Some(before.version_token);
    let anew = WorkflowSave { target, expected_token, ..draft(&alice, "other 5", 70) };
    saved(store, &anew).await;
    assert_eq!(search(&bob, &["ölwechsel"], Whose::SharedWithMe).await, []);
    assert_eq!(search(&bob, &["body"], Whose::SharedWithMe).await.len(), 1);
}

pub(crate) async fn a_path_is_a_file_or_a_folder(backend: &Backend) {
    let store = &*backend.store;
    let alice = user(store, "alice").await;
    let file = |path: &str| NewFile {
        path: path.to_owned(),
        content: FileContent::Bytes(b"x".to_vec()),
        is_executable: None,
        purpose: None,
    };
    let refused =
        Written::Refused(WorkflowRefused::Field(WrongField::PathIsFolder { path: "a".to_owned() }));
    let files = Some(vec![file("a"), file("a/b")]);
    let both = WorkflowSave { files, ..draft(&alice, "Both", 1) };
    assert_eq!(try_save(store, &both).await, refused);
    let one = saved(store, &WorkflowSave { files: Some(vec![file("a")]), ..both }).await;
    let patch = FilesPatch {
        caller: alice.clone(),
        which: WorkflowWhich::Id(one.workflow.id),
        expected_token: Some(one.workflow.version_token),
        files: vec![file("a/b")],
        delete_paths: Vec::new(),
        body: None,
        source: Source::Manual,
        new_token: "next".to_owned(),
        quota_bytes: u64::MAX,
        at: at(2),
    };
    let patched = store.sharing().workflow_patch_files(&behalf(&alice), &patch, None).await;
    assert_eq!(patched.unwrap(), refused);
    let patch = FilesPatch { delete_paths: vec!["a".to_owned()], ..patch };
    let patched = store.sharing().workflow_patch_files(&behalf(&alice), &patch, None).await;
    assert!(matches!(patched.unwrap(), Written::Done(_)), "the folder takes the place of the file");
}
