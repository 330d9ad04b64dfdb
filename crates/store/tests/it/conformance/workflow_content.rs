//! The content of workflows: searched bodies, and files.

use jurat_core::{
    account::AccountName,
    id::{AccountId, uuid},
    workflow::{
        AccessRole, FileContent, NewFile, OwnershipFilter, VersionSource, WorkflowSelector,
        operation::WorkflowFilter,
    },
};
use jurat_store::{
    FilesPatch, NameMatch, SaveTarget, WorkflowGrantOrder, WorkflowLookup, WorkflowRefusal,
    WorkflowSave, WorkflowWordSearch, WriteOutcome, WrongField,
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
        let wanted =
            WorkflowWordSearch { caller: caller.clone(), whose, tag: None, words, limit: 50 };
        store.workflows().search(&behalf(caller), &wanted).await.unwrap()
    };
    let found = search(&alice, &["ölwechsel"], OwnershipFilter::All).await;
    assert_eq!((found.len(), found[0].0.workflow.name.as_str()), (50, "Ölwechsel"));
    assert_eq!(found[1].1, "and do it name the then ölwechsel", "the words of the body");
    assert_eq!(search(&alice, &["ölwechsel"], OwnershipFilter::SharedWithMe).await, []);
    assert_eq!(search(&alice, &["nothing", "here"], OwnershipFilter::All).await, []);
    assert_eq!(search(&bob, &["ölwechsel"], OwnershipFilter::All).await, []);
    let id = WorkflowSelector::Id(uuid(at(5), 5));
    let order = WorkflowGrantOrder {
        caller: alice.clone(),
        which: id.clone(),
        grantee: AccountName::Id(bob.clone()),
        role: AccessRole::View,
        with_history: false,
        at: at(99),
    };
    store.workflows().grant(&behalf(&alice), &order, None).await.unwrap();
    let shared = search(&bob, &["ölwechsel", "body"], OwnershipFilter::SharedWithMe).await;
    assert_eq!(shared.len(), 1);
    // A new version is found only by its new words.
    let before = match store
        .workflows()
        .find(&behalf(&alice), &WorkflowLookup { caller: alice.clone(), which: id, version: None })
        .await
        .unwrap()
    {
        NameMatch::One(reached) => reached.workflow,
        other => panic!("{other:?}"),
    };
    let target = SaveTarget::Id(before.id.clone());
    let expected_token = Some(before.version_token);
    let anew = WorkflowSave { target, expected_token, ..draft(&alice, "other 5", 70) };
    saved(store, &anew).await;
    assert_eq!(search(&bob, &["ölwechsel"], OwnershipFilter::SharedWithMe).await, []);
    assert_eq!(search(&bob, &["body"], OwnershipFilter::SharedWithMe).await.len(), 1);
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
    let refused = WriteOutcome::Refused(WorkflowRefusal::Field(WrongField::PathIsFolder {
        path: "a".to_owned(),
    }));
    let files = Some(vec![file("a"), file("a/b")]);
    let both = WorkflowSave { files, ..draft(&alice, "Both", 1) };
    assert_eq!(try_save(store, &both).await, refused);
    let one = saved(store, &WorkflowSave { files: Some(vec![file("a")]), ..both }).await;
    let patch = FilesPatch {
        caller: alice.clone(),
        which: WorkflowSelector::Id(one.workflow.id),
        expected_token: Some(one.workflow.version_token),
        files: vec![file("a/b")],
        delete_paths: Vec::new(),
        body: None,
        source: VersionSource::Manual,
        new_token: "next".to_owned(),
        quota_bytes: u64::MAX,
        at: at(2),
    };
    let patched = store.workflows().patch_files(&behalf(&alice), &patch, None).await;
    assert_eq!(patched.unwrap(), refused);
    let patch = FilesPatch { delete_paths: vec!["a".to_owned()], ..patch };
    let patched = store.workflows().patch_files(&behalf(&alice), &patch, None).await;
    assert!(
        matches!(patched.unwrap(), WriteOutcome::Done(_)),
        "the folder takes the place of the file"
    );
}

pub(crate) async fn workflows_are_listed_by_every_filter_newest_first(backend: &Backend) {
    let store = &*backend.store;
    let alice = user(store, "alice").await;
    for (number, name, tag) in [(1, "First", "sre"), (2, "Second", "web"), (3, "Größe", "sre")] {
        let tags = Some(vec![tag.to_owned()]);
        saved(store, &WorkflowSave { tags, ..draft(&alice, name, number) }).await;
    }
    let names = async |filter: WorkflowFilter| {
        let found = store.workflows().list(&behalf(&alice), &alice, &filter).await.unwrap();
        found.into_iter().map(|it| it.workflow.name).collect::<Vec<_>>()
    };
    let all = WorkflowFilter {
        whose: OwnershipFilter::All,
        with_archived: false,
        tag: None,
        search: None,
        before: None,
        limit: 2,
    };
    assert_eq!(names(all.clone()).await, ["Größe", "Second"]);
    let before = Some(uuid(at(2), 2));
    assert_eq!(names(WorkflowFilter { before, ..all.clone() }).await, ["First"]);
    let tag = Some("sre".to_owned());
    assert_eq!(names(WorkflowFilter { tag, ..all.clone() }).await, ["Größe", "First"]);
    let search = Some("GRÖSSE".to_owned());
    assert_eq!(names(WorkflowFilter { search, ..all.clone() }).await, Vec::<String>::new());
    let search = Some("GRÖß".to_owned());
    assert_eq!(names(WorkflowFilter { search, ..all.clone() }).await, ["Größe"]);
    let search = Some("%".to_owned());
    assert_eq!(names(WorkflowFilter { search, ..all }).await, Vec::<String>::new());
}
