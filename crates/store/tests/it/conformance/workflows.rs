//! Workflows: saved, read, shared, archived and transferred.

use jurat_core::{
    account::AccountName,
    id::{AccountId, uuid},
    verifier::{VerifierRef, VerifierSelector, run::VerifierRunVerdict},
    workflow::{
        AccessRole, FileContent, NewBinding, NewFile, OwnershipFilter, ReachableWorkflow, Slug,
        VerifierBinding, VerifierRole, VersionSource, WorkflowRef, WorkflowSelector,
        file::digest,
        operation::{WorkflowFilter, WorkflowGrantResult, WorkflowSaveResult, WorkflowView},
    },
};
use jurat_store::{
    Behalf, DeployRefusal, FilesPatch, GrantRevocation, NameMatch, NewVerifierVersion,
    OwnershipChange, RoundOpenRefusal, RoundOpening, SaveTarget, ShareUse, Store, VerifierRemoval,
    VerifierRemoveRefusal, WorkflowChange, WorkflowFilesLookup, WorkflowGrantOrder, WorkflowLookup,
    WorkflowRefusal, WorkflowSave, WriteOutcome, WrongField,
};

use crate::{
    backend::Backend,
    conformance::verifiers::deployed,
    samples::{
        account, at, close_round, deploy, find_round, judged, open_round, reached, run, verifier,
        verifiers,
    },
};

pub(super) async fn user(store: &Store, name: &str) -> AccountId {
    let account = account(name);
    store.accounts().ensure(&Behalf::Platform, &account, &at(0)).await.unwrap();
    account
}

pub(super) async fn team(backend: &Backend, name: &str) -> AccountId {
    let account = account(name);
    let sql =
        format!("insert into accounts (id, created_at, kind) values ('{account}', 0, 'team')");
    backend.tamper(&sql).await.unwrap();
    account
}

pub(super) async fn join(backend: &Backend, team: &AccountId, member: &AccountId) {
    let sql = format!(
        "insert into team_members (team_id, account_id, role, since) \
         values ('{team}', '{member}', 'member', 0)"
    );
    backend.tamper(&sql).await.unwrap();
}

pub(super) fn behalf(account: &AccountId) -> Behalf {
    Behalf::Account(account.clone())
}

pub(super) fn draft(caller: &AccountId, name: &str, number: u32) -> WorkflowSave {
    WorkflowSave {
        caller: caller.clone(),
        target: SaveTarget::Slug(Slug::of_name(name).unwrap()),
        expected_token: None,
        name: Some(name.to_owned()),
        description: Some(format!("the {number}th")),
        outcome: None,
        tags: None,
        body: format!("# Body {number}"),
        source: VersionSource::Manual,
        bindings: None,
        files: None,
        new_id: uuid(at(i64::from(number)), u128::from(number)),
        new_token: format!("token-{number}"),
        quota_bytes: u64::MAX,
        at: at(i64::from(number)),
    }
}

pub(super) fn next(save: WorkflowSave, before: &WorkflowSaveResult) -> WorkflowSave {
    let target = SaveTarget::Id(before.workflow.id.clone());
    WorkflowSave { target, expected_token: Some(before.workflow.version_token.clone()), ..save }
}

pub(super) async fn try_save(
    store: &Store,
    save: &WorkflowSave,
) -> WriteOutcome<WorkflowSaveResult, WorkflowRefusal> {
    store.workflows().save(&behalf(&save.caller), save, None).await.unwrap()
}

pub(super) async fn saved(store: &Store, save: &WorkflowSave) -> WorkflowSaveResult {
    match try_save(store, save).await {
        WriteOutcome::Done(saved) => saved,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn refused(store: &Store, save: &WorkflowSave) -> WorkflowRefusal {
    match try_save(store, save).await {
        WriteOutcome::Refused(refused) => refused,
        other => panic!("{other:?}"),
    }
}

pub(super) fn id(saved: &WorkflowSaveResult) -> WorkflowSelector {
    WorkflowSelector::Id(saved.workflow.id.clone())
}

pub(super) fn slug(text: &str) -> WorkflowSelector {
    WorkflowRef::parse(text).unwrap().which
}

pub(super) async fn view(
    store: &Store,
    caller: &AccountId,
    which: &WorkflowSelector,
    version: Option<u32>,
) -> NameMatch<WorkflowView> {
    let asked = WorkflowLookup { caller: caller.clone(), which: which.clone(), version };
    store.workflows().get(&behalf(caller), &asked).await.unwrap()
}

pub(super) async fn seen(
    store: &Store,
    caller: &AccountId,
    which: &WorkflowSelector,
    version: Option<u32>,
) -> WorkflowView {
    match view(store, caller, which, version).await {
        NameMatch::One(view) => *view,
        other => panic!("{other:?}"),
    }
}

pub(super) fn grant_of(
    caller: &AccountId,
    which: WorkflowSelector,
    grantee: &AccountId,
    role: AccessRole,
) -> WorkflowGrantOrder {
    WorkflowGrantOrder {
        caller: caller.clone(),
        which,
        grantee: AccountName::Id(grantee.clone()),
        role,
        with_history: false,
        at: at(50),
    }
}

pub(super) async fn grant(
    store: &Store,
    order: &WorkflowGrantOrder,
) -> WriteOutcome<WorkflowGrantResult, WorkflowRefusal> {
    store.workflows().grant(&behalf(&order.caller), order, None).await.unwrap()
}

pub(super) async fn revoke(
    store: &Store,
    caller: &AccountId,
    which: WorkflowSelector,
    grantee: &AccountId,
) -> Result<bool, WorkflowRefusal> {
    let grantee = AccountName::Id(grantee.clone());
    let order = GrantRevocation { caller: caller.clone(), which, grantee, at: at(60) };
    match store.workflows().revoke(&behalf(caller), &order, None).await.unwrap() {
        WriteOutcome::Done(revoking) => Ok(revoking.was_there),
        WriteOutcome::Refused(refused) => Err(refused),
        WriteOutcome::Repeated => panic!(),
    }
}

pub(super) fn change(caller: &AccountId, which: WorkflowSelector) -> WorkflowChange {
    WorkflowChange { caller: caller.clone(), which, version: None, at: at(70) }
}

pub(super) async fn listed(
    store: &Store,
    caller: &AccountId,
    whose: OwnershipFilter,
) -> Vec<ReachableWorkflow> {
    let filter = WorkflowFilter {
        whose,
        with_archived: false,
        tag: None,
        search: None,
        before: None,
        limit: 100,
    };
    store.workflows().list(&behalf(caller), caller, &filter).await.unwrap()
}

pub(super) fn text(path: &str, content: &str) -> NewFile {
    NewFile {
        path: path.to_owned(),
        content: FileContent::Bytes(content.as_bytes().to_vec()),
        is_executable: None,
        purpose: None,
    }
}

pub(super) fn binding(name: &str, verifier: &str) -> NewBinding {
    NewBinding { name: name.to_owned(), verifier: VerifierRef::parse(verifier).unwrap() }
}

fn paths(saved: &WorkflowSaveResult) -> Vec<&str> {
    saved.files.iter().map(|file| file.path.as_str()).collect()
}

pub(crate) async fn a_workflow_is_saved_and_read_back_by_id_and_slug(backend: &Backend) {
    let store = &*backend.store;
    let alice = user(store, "alice").await;
    let tags = Some(vec!["sre".to_owned()]);
    let first = saved(store, &WorkflowSave { tags, ..draft(&alice, "My Report", 1) }).await;
    assert_eq!((first.workflow.slug.as_str(), first.workflow.current_version), ("my-report", 1));
    let second = next(WorkflowSave { name: None, ..draft(&alice, "x", 2) }, &first);
    let second = saved(store, &second).await;
    assert_eq!(second.workflow.current_version, 2);
    assert_eq!(second.workflow.version_token, "token-2");
    for which in [id(&first), slug("my-report"), slug("My report")] {
        let view = seen(store, &alice, &which, None).await;
        assert_eq!((view.version.version, view.version.body.as_str()), (2, "# Body 2"));
        // Absent members are carried forward.
        assert_eq!(view.version.name, "My Report");
        assert_eq!(view.version.tags, ["sre"]);
        assert_eq!(view.reached.role, AccessRole::Owner);
        let old = seen(store, &alice, &which, Some(1)).await;
        assert_eq!((old.version.version, old.version.body.as_str()), (1, "# Body 1"));
    }
    assert_eq!(view(store, &alice, &id(&first), Some(3)).await, NameMatch::Nothing);
    assert_eq!(view(store, &alice, &slug("other"), None).await, NameMatch::Nothing);
    let error = backend.tamper("update workflow_versions set body = 'x'").await.unwrap_err();
    assert!(error.contains("never change"), "{error}");
}

pub(crate) async fn a_save_needs_the_token_of_the_current_version(backend: &Backend) {
    let store = &*backend.store;
    let alice = user(store, "alice").await;
    let with = |token: &str, number| WorkflowSave {
        expected_token: Some(token.to_owned()),
        ..draft(&alice, "report", number)
    };
    assert_eq!(refused(store, &with("any", 1)).await, WorkflowRefusal::TokenUnexpected);
    let nameless = WorkflowSave { name: None, ..draft(&alice, "report", 1) };
    assert_eq!(refused(store, &nameless).await, WorkflowRefusal::Field(WrongField::NameMissing));
    saved(store, &draft(&alice, "report", 1)).await;
    let current = "token-1".to_owned();
    let missing = refused(store, &draft(&alice, "Report", 2)).await;
    assert_eq!(missing, WorkflowRefusal::TokenMissing { current: current.clone() });
    let stale = refused(store, &with("other", 2)).await;
    assert_eq!(stale, WorkflowRefusal::TokenStale { current });
    assert_eq!(saved(store, &with("token-1", 2)).await.workflow.current_version, 2);
}

pub(crate) async fn files_are_carried_forward_cleared_and_patched(backend: &Backend) {
    let store = &*backend.store;
    let alice = user(store, "alice").await;
    let files = Some(vec![text("a.txt", "one"), text("b/c.txt", "two")]);
    let first = saved(store, &WorkflowSave { files, ..draft(&alice, "report", 1) }).await;
    assert_eq!((paths(&first), first.changed.len()), (vec!["a.txt", "b/c.txt"], 2));
    let second = saved(store, &next(draft(&alice, "report", 2), &first)).await;
    assert_eq!((paths(&second), second.changed.len()), (vec!["a.txt", "b/c.txt"], 0));
    let patch = FilesPatch {
        caller: alice.clone(),
        which: id(&first),
        expected_token: Some("token-2".to_owned()),
        files: vec![text("a.txt", "three"), text("d.txt", "four")],
        delete_paths: vec!["b/c.txt".to_owned()],
        body: None,
        source: VersionSource::Manual,
        new_token: "token-3".to_owned(),
        quota_bytes: u64::MAX,
        at: at(3),
    };
    let patched = store.workflows().patch_files(&behalf(&alice), &patch, None).await;
    let WriteOutcome::Done(third) = patched.unwrap() else { panic!() };
    assert_eq!(third.changed, ["a.txt", "d.txt"]);
    assert_eq!(third.deleted, ["b/c.txt"]);
    assert_eq!(third.body, "# Body 2");
    let read = async |version, path: &str| {
        let asked = WorkflowLookup { caller: alice.clone(), which: id(&first), version };
        let asked = WorkflowFilesLookup { asked, paths: vec![path.to_owned(), "no".to_owned()] };
        let found = store.workflows().files(&behalf(&alice), &asked).await.unwrap();
        let NameMatch::One(files) = found else { panic!() };
        files
            .files
            .into_iter()
            .map(|file| String::from_utf8(file.content).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(read(None, "a.txt").await, ["three"]);
    assert_eq!(read(Some(1), "a.txt").await, ["one"]);
    assert_eq!(read(None, "b/c.txt").await, Vec::<String>::new());
    // A stored content is named by its digest; the list is the whole tree.
    let known = |content: &str| NewFile {
        content: FileContent::Known(digest(content.as_bytes())),
        ..text("e.txt", "")
    };
    let files = Some(vec![known("two")]);
    let fourth = next(WorkflowSave { files, ..draft(&alice, "report", 4) }, &third);
    let fourth = saved(store, &fourth).await;
    assert_eq!(paths(&fourth), ["e.txt"]);
    assert_eq!(read(None, "e.txt").await, ["two"]);
    let files = Some(vec![known("never kept")]);
    let unknown = next(WorkflowSave { files, ..draft(&alice, "report", 5) }, &fourth);
    let path = "e.txt".to_owned();
    assert_eq!(
        refused(store, &unknown).await,
        WorkflowRefusal::Field(WrongField::ContentUnknown { path })
    );
    let files = Some(Vec::new());
    let cleared = next(WorkflowSave { files, ..draft(&alice, "report", 5) }, &fourth);
    assert_eq!(paths(&saved(store, &cleared).await), Vec::<&str>::new());
}

pub(crate) async fn a_grant_opens_a_workflow_from_its_floor_on(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let first = saved(store, &draft(&alice, "report", 1)).await;
    let second = saved(store, &next(draft(&alice, "report", 2), &first)).await;
    let which = id(&first);
    assert_eq!(view(store, &bob, &which, None).await, NameMatch::Nothing);
    grant(store, &grant_of(&alice, which.clone(), &bob, AccessRole::View)).await;
    let view_now = seen(store, &bob, &slug("@acct_alice/report"), None).await;
    assert_eq!((view_now.reached.role, view_now.reached.floor), (AccessRole::View, 2));
    assert_eq!(view(store, &bob, &which, Some(1)).await, NameMatch::Nothing);
    assert_eq!(listed(store, &bob, OwnershipFilter::Mine).await, []);
    assert_eq!(listed(store, &bob, OwnershipFilter::SharedWithMe).await.len(), 1);
    // A reader cannot save.
    let by_bob = next(draft(&bob, "report", 3), &second);
    let low = WorkflowRefusal::RoleTooLow { has: AccessRole::View, needs: AccessRole::Edit };
    assert_eq!(refused(store, &by_bob).await, low);
    // A grant of a team adds to the own one: the highest role and the lowest floor.
    let reds = team(backend, "reds").await;
    join(backend, &reds, &bob).await;
    join(backend, &reds, &alice).await;
    let edit = grant_of(&alice, which.clone(), &reds, AccessRole::Edit);
    grant(store, &WorkflowGrantOrder { with_history: true, ..edit }).await;
    let view_now = seen(store, &bob, &which, Some(1)).await;
    assert_eq!((view_now.reached.role, view_now.reached.floor), (AccessRole::Edit, 0));
    let third = saved(store, &by_bob).await;
    assert_eq!(third.workflow.account, alice);
    let view_now = seen(store, &alice, &which, None).await;
    assert_eq!((view_now.version.version, view_now.version.created_by), (3, bob.clone()));
    // Contents of others are named by their digests only if they are visible.
    assert_eq!(revoke(store, &alice, which.clone(), &reds).await, Ok(true));
    assert_eq!(revoke(store, &alice, which.clone(), &reds).await, Ok(false));
    assert_eq!(revoke(store, &alice, which.clone(), &bob).await, Ok(true));
    assert_eq!(view(store, &bob, &which, None).await, NameMatch::Nothing);
}

pub(crate) async fn an_editor_changes_files_and_not_bindings(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let cites = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    let bindings = Some(vec![binding("cites", &cites.id)]);
    let files = Some(vec![text("old.txt", "secret")]);
    let first = WorkflowSave { files, bindings: bindings.clone(), ..draft(&alice, "report", 1) };
    let first = saved(store, &first).await;
    let files = Some(vec![text("new.txt", "open")]);
    let second = next(WorkflowSave { files, ..draft(&alice, "report", 2) }, &first);
    let second = saved(store, &second).await;
    grant(store, &grant_of(&alice, id(&first), &bob, AccessRole::Edit)).await;
    let by_bob = next(draft(&bob, "report", 3), &second);
    let other = Some(vec![binding("other", &cites.id)]);
    let rebound = WorkflowSave { bindings: other, ..by_bob.clone() };
    assert_eq!(refused(store, &rebound).await, WorkflowRefusal::BindingsAreOwners);
    let known = |content: &str| NewFile {
        content: FileContent::Known(digest(content.as_bytes())),
        ..text("a.txt", "")
    };
    let below = WorkflowSave { files: Some(vec![known("secret")]), ..by_bob.clone() };
    let unknown = WorkflowRefusal::Field(WrongField::ContentUnknown { path: "a.txt".to_owned() });
    assert_eq!(refused(store, &below).await, unknown);
    let files = Some(vec![known("open"), text("b.txt", "mine")]);
    let third = saved(store, &WorkflowSave { files, bindings, ..by_bob }).await;
    assert_eq!(third.bindings.len(), 1);
    assert_eq!(paths(&third), ["a.txt", "b.txt"]);
}

pub(crate) async fn nobody_grants_a_higher_role_than_their_own(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob, carol) =
        (user(store, "alice").await, user(store, "bob").await, user(store, "carol").await);
    let first = saved(store, &draft(&alice, "report", 1)).await;
    let which = id(&first);
    let order = |caller: &AccountId, grantee: &AccountId, role| {
        grant_of(caller, which.clone(), grantee, role)
    };
    let unseen = grant(store, &order(&bob, &carol, AccessRole::View)).await;
    assert_eq!(unseen, WriteOutcome::Refused(WorkflowRefusal::NotFound));
    grant(store, &order(&alice, &bob, AccessRole::Edit)).await;
    let low = grant(store, &order(&bob, &carol, AccessRole::View)).await;
    let too_low = WorkflowRefusal::RoleTooLow { has: AccessRole::Edit, needs: AccessRole::Admin };
    assert_eq!(low, WriteOutcome::Refused(too_low));
    grant(store, &order(&alice, &bob, AccessRole::Admin)).await;
    let above = grant(store, &order(&bob, &carol, AccessRole::Owner)).await;
    let above_own = WorkflowRefusal::RoleAboveOwn { has: AccessRole::Admin };
    assert_eq!(above, WriteOutcome::Refused(above_own));
    let WriteOutcome::Done(granted) = grant(store, &order(&bob, &carol, AccessRole::Admin)).await
    else {
        panic!()
    };
    assert_eq!((granted.role, granted.floor), (AccessRole::Admin, 1));
    let owner = grant(store, &order(&bob, &alice, AccessRole::View)).await;
    assert_eq!(owner, WriteOutcome::Refused(WorkflowRefusal::Field(WrongField::GranteeIsOwner)));
    let nobody = grant(store, &order(&bob, &account("nobody"), AccessRole::View)).await;
    assert_eq!(nobody, WriteOutcome::Refused(WorkflowRefusal::GranteeUnknown));
    let reds = team(backend, "reds").await;
    let foreign = grant(store, &order(&bob, &reds, AccessRole::View)).await;
    assert_eq!(foreign, WriteOutcome::Refused(WorkflowRefusal::GranteeUnknown));
    let asked = |caller: &AccountId| WorkflowLookup {
        caller: caller.clone(),
        which: which.clone(),
        version: None,
    };
    let grants = async |caller: &AccountId| match store
        .workflows()
        .grants(&behalf(caller), &asked(caller))
        .await
        .unwrap()
    {
        NameMatch::One(lines) => lines.into_iter().map(|line| line.granted_to).collect(),
        _ => Vec::new(),
    };
    let leaving = async |who: &AccountId| {
        let order = change(who, which.clone());
        store.workflows().leave(&behalf(who), &order, None).await.unwrap()
    };
    grant(store, &order(&alice, &carol, AccessRole::View)).await;
    assert_eq!(grants(&alice).await, [bob.to_string(), carol.to_string()]);
    assert_eq!(grants(&carol).await, [carol.to_string()]);
    let WriteOutcome::Done(left) = leaving(&carol).await else { panic!() };
    assert_eq!(left.removed, 1);
    assert_eq!(grants(&carol).await, Vec::<String>::new());
    let owner = leaving(&alice).await;
    assert_eq!(owner, WriteOutcome::Refused(WorkflowRefusal::OwnerStays));
}

pub(crate) async fn an_archived_workflow_is_hidden_from_others_and_can_return(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let first = saved(store, &draft(&alice, "report", 1)).await;
    let which = id(&first);
    grant(store, &grant_of(&alice, which.clone(), &bob, AccessRole::Admin)).await;
    let workflows = store.workflows();
    let by_bob = workflows.archive(&behalf(&bob), &change(&bob, which.clone()), None).await;
    let low = WorkflowRefusal::RoleTooLow { has: AccessRole::Admin, needs: AccessRole::Owner };
    assert_eq!(by_bob.unwrap(), WriteOutcome::Refused(low));
    let order = change(&alice, which.clone());
    let away = workflows.archive(&behalf(&alice), &order, None).await.unwrap();
    assert!(matches!(away, WriteOutcome::Done(workflow) if workflow.archived_at == Some(at(70))));
    for which in [which.clone(), slug("report")] {
        assert_eq!(view(store, &bob, &which, None).await, NameMatch::Nothing);
        let asked = WorkflowLookup { caller: bob.clone(), which, version: None };
        let grants = workflows.grants(&behalf(&bob), &asked).await.unwrap();
        assert_eq!(grants, NameMatch::Nothing);
    }
    for caller in [&alice, &bob] {
        assert_eq!(listed(store, caller, OwnershipFilter::All).await, []);
    }
    seen(store, &alice, &which, None).await;
    let save = refused(store, &next(draft(&alice, "report", 2), &first)).await;
    assert_eq!(save, WorkflowRefusal::Archived);
    workflows.unarchive(&behalf(&alice), &order, None).await.unwrap();
    assert_eq!(seen(store, &bob, &which, None).await.reached.role, AccessRole::Admin);
}

pub(crate) async fn a_deleted_workflow_leaves_nothing(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let files = Some(vec![text("a.txt", "kept once")]);
    let first = saved(store, &WorkflowSave { files, ..draft(&alice, "report", 1) }).await;
    let second = next(WorkflowSave { files: Some(vec![]), ..draft(&alice, "report", 2) }, &first);
    saved(store, &second).await;
    grant(store, &grant_of(&alice, id(&first), &bob, AccessRole::View)).await;
    let workflows = store.workflows();
    let version = |version| WorkflowChange { version, ..change(&alice, id(&first)) };
    let erase = async |change: WorkflowChange| {
        workflows.delete_version(&behalf(&alice), &change, None).await.unwrap()
    };
    let current = erase(version(Some(2))).await;
    assert_eq!(current, WriteOutcome::Refused(WorkflowRefusal::VersionIsCurrent));
    assert_eq!(erase(version(Some(7))).await, WriteOutcome::Refused(WorkflowRefusal::NotFound));
    assert!(matches!(erase(version(Some(1))).await, WriteOutcome::Done(_)));
    assert_eq!(view(store, &alice, &id(&first), Some(1)).await, NameMatch::Nothing);
    // Its content is deleted with it.
    let known = NewFile { content: FileContent::Known(digest(b"kept once")), ..text("a.txt", "") };
    let other = WorkflowSave { files: Some(vec![known]), ..draft(&alice, "other", 3) };
    let unknown = WorkflowRefusal::Field(WrongField::ContentUnknown { path: "a.txt".to_owned() });
    assert_eq!(refused(store, &other).await, unknown);
    let gone = workflows.delete(&behalf(&alice), &change(&alice, id(&first)), None).await;
    assert!(matches!(gone.unwrap(), WriteOutcome::Done(_)));
    assert_eq!(view(store, &alice, &id(&first), None).await, NameMatch::Nothing);
    assert_eq!(listed(store, &bob, OwnershipFilter::All).await, []);
    // The slug is free again, and nobody has a grant on its next owner.
    saved(store, &draft(&alice, "report", 4)).await;
    assert_eq!(view(store, &bob, &slug("report"), None).await, NameMatch::Nothing);
}

pub(crate) async fn a_token_selects_the_shared_workflow_to_save(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob, carol) =
        (user(store, "alice").await, user(store, "bob").await, user(store, "carol").await);
    let of_alice = saved(store, &draft(&alice, "report", 1)).await;
    let of_bob = saved(store, &draft(&bob, "report", 2)).await;
    for (owner, saved) in [(&alice, &of_alice), (&bob, &of_bob)] {
        grant(store, &grant_of(owner, id(saved), &carol, AccessRole::Edit)).await;
    }
    let names = vec!["@acct_alice/report".to_owned(), "@acct_bob/report".to_owned()];
    let elsewhere = NameMatch::Elsewhere(names.clone());
    assert_eq!(view(store, &carol, &slug("report"), None).await, elsewhere);
    let named = |token: &str| WorkflowSave {
        expected_token: Some(token.to_owned()),
        ..draft(&carol, "report", 3)
    };
    // Neither a foreign token nor one of an unaccepted workflow leads anywhere.
    for token in ["other", "token-2"] {
        let of_none = WorkflowRefusal::TokenOfNone(names.clone());
        assert_eq!(refused(store, &named(token)).await, of_none);
    }
    used(store, &carol, &of_bob).await;
    assert_eq!(saved(store, &named("token-2")).await.workflow.id, of_bob.workflow.id);
    // An own one comes before those of others.
    let own = saved(store, &draft(&carol, "report", 4)).await;
    assert_eq!(seen(store, &carol, &slug("report"), None).await.reached.workflow, own.workflow);
}

/// Somebody reads what was granted to them, which accepts it.
pub(super) async fn used(store: &Store, caller: &AccountId, saved: &WorkflowSaveResult) {
    let used = ShareUse {
        caller: caller.clone(),
        owner: saved.workflow.account.clone(),
        workflow_id: saved.workflow.id.clone(),
    };
    let done = store.shares().note_use(&behalf(caller), &used, None).await.unwrap();
    assert_eq!(done, WriteOutcome::Done(()));
}

pub(crate) async fn a_workflow_shares_the_verifiers_that_it_names(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let made = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    let which = VerifierSelector::Id(made.id.clone());
    let bad = [binding("a", "unknown"), binding("a", &format!("{}@2", made.id))];
    for bad in bad {
        let save = WorkflowSave { bindings: Some(vec![bad]), ..draft(&alice, "report", 1) };
        assert_eq!(
            refused(store, &save).await,
            WorkflowRefusal::Field(WrongField::BindingUnknown { place: 0 })
        );
    }
    let bindings = Some(vec![binding("main", "cites@1")]);
    let first = saved(store, &WorkflowSave { bindings, ..draft(&alice, "report", 1) }).await;
    let bound =
        VerifierBinding { name: "main".to_owned(), verifier_id: made.id.clone(), version: Some(1) };
    assert_eq!(first.bindings, [bound]);
    let role = async |needs| match reached(store, &bob, (&which, None), needs).await {
        NameMatch::One(reached) => Some((reached.role, reached.shared.map(|it| it.workflow))),
        _ => None,
    };
    assert_eq!(role(VerifierRole::Exec).await, None);
    grant(store, &grant_of(&alice, id(&first), &bob, AccessRole::View)).await;
    let through = Some(first.workflow.id.clone());
    assert_eq!(role(VerifierRole::Exec).await, Some((VerifierRole::Exec, through.clone())));
    assert_eq!(role(VerifierRole::Tune).await, None);
    grant(store, &grant_of(&alice, id(&first), &bob, AccessRole::Edit)).await;
    assert_eq!(role(VerifierRole::Tune).await, Some((VerifierRole::Tune, through)));
    let named = VerifierSelector::Name("cites".to_owned());
    assert!(verifier(store, &bob, &named, None).await.is_none());
    // An account that may tune it and accepted it deploys the next version, which stays its
    // owner's.
    let by_bob =
        NewVerifierVersion { expected_token: Some("token-1".into()), ..deploy(&bob, "cites", 2) };
    let of_none =
        WriteOutcome::Refused(DeployRefusal::TokenOfNone(vec!["@acct_alice/cites".to_owned()]));
    assert_eq!(
        store.verifiers().deploy(&Behalf::from(&by_bob.account), &by_bob, None).await.unwrap(),
        of_none
    );
    used(store, &bob, &first).await;
    let next = deployed(store, &by_bob).await.verifier;
    assert_eq!((next.account, next.id, next.current_version), (alice.clone(), made.id.clone(), 2));
    let stale =
        store.verifiers().deploy(&Behalf::from(&by_bob.account), &by_bob, None).await.unwrap();
    assert_eq!(stale, of_none);
    // Without a token it is a new one of the caller, which alone has the bare name.
    let own = deployed(store, &deploy(&bob, "cites", 3)).await.verifier;
    assert_eq!(own.account, bob);
    assert_eq!(verifier(store, &bob, &named, None).await.unwrap().verifier.id, own.id);
    assert_eq!(verifiers(store, &bob, &crate::samples::page(None, 10)).await.len(), 2);
    // A removed binding ends the access to its verifier.
    let second = WorkflowSave { bindings: Some(vec![]), ..draft(&alice, "report", 5) };
    saved(store, &self::next(second, &first)).await;
    assert_eq!(role(VerifierRole::Exec).await, None);
}

pub(crate) async fn a_deleted_verifier_is_erased_for_all_who_ran_it(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let made = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    let bindings = Some(vec![binding("main", &made.id)]);
    let first = saved(store, &WorkflowSave { bindings, ..draft(&alice, "report", 1) }).await;
    grant(store, &grant_of(&alice, id(&first), &bob, AccessRole::View)).await;
    // A grant to one account does not let another run it.
    let stranger = run(&account("carol"), &made.id, 2);
    assert_eq!(
        open_round(store, &stranger).await,
        WriteOutcome::Refused(RoundOpenRefusal::VerifierGone)
    );
    let open = run(&bob, &made.id, 1);
    assert_eq!(open_round(store, &open).await, WriteOutcome::Done(RoundOpening::Whole));
    close_round(store, &open, &judged(&open, VerifierRunVerdict::Passed, 0)).await;
    let ticket = open.run.as_ref().unwrap();
    assert!(
        store.verifier_runs().get(&Behalf::from(&bob), &bob, &ticket.id).await.unwrap().is_some()
    );
    let which = VerifierSelector::Id(made.id.clone());
    let foreign = VerifierRemoval { account: bob.clone(), which: which.clone(), at: at(500) };
    assert_eq!(
        store.verifiers().delete(&Behalf::Platform, &foreign, None).await.unwrap(),
        WriteOutcome::Refused(VerifierRemoveRefusal::Unknown)
    );
    let removal = VerifierRemoval { account: alice.clone(), which, at: at(500) };
    assert!(matches!(
        store.verifiers().delete(&Behalf::Platform, &removal, None).await.unwrap(),
        WriteOutcome::Done(_)
    ));
    assert_eq!(
        store.verifier_runs().get(&Behalf::from(&bob), &bob, &ticket.id).await.unwrap(),
        None
    );
    let round = find_round(store, &bob, &open.id).await.unwrap();
    let said = round
        .closing
        .unwrap()
        .replicas
        .iter()
        .any(|replica| replica.answer.content().is_some_and(|said| said.output.is_some()));
    assert!(!said);
    assert_eq!(seen(store, &alice, &id(&first), None).await.version.bindings, []);
}

pub(crate) async fn a_workflow_is_transferred_with_its_verifiers(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob, carol) =
        (user(store, "alice").await, user(store, "bob").await, user(store, "carol").await);
    let made = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    let bindings = Some(vec![binding("main", &made.id)]);
    let files = Some(vec![text("a.txt", "inside")]);
    let save = WorkflowSave { files, bindings: bindings.clone(), ..draft(&alice, "report", 1) };
    let first = saved(store, &save).await;
    grant(store, &grant_of(&alice, id(&first), &carol, AccessRole::View)).await;
    grant(store, &grant_of(&alice, id(&first), &bob, AccessRole::View)).await;
    let giving = OwnershipChange {
        workflow_id: first.workflow.id.clone(),
        from: alice.clone(),
        to: bob.clone(),
        at: at(90),
    };
    let give = async || {
        let given = store.workflows().give(&Behalf::Platform, &giving, None).await;
        match given.unwrap() {
            WriteOutcome::Done(()) => Ok(()),
            WriteOutcome::Refused(why) => Err(why),
            WriteOutcome::Repeated => panic!(),
        }
    };
    let other = WorkflowSave { bindings, ..draft(&alice, "other", 2) };
    let other = saved(store, &other).await;
    assert!(give().await.unwrap_err().contains("`cites` is also named by the workflow `other`"));
    let workflows = store.workflows();
    workflows.delete(&behalf(&alice), &change(&alice, id(&other)), None).await.unwrap();
    let in_the_way = saved(store, &draft(&bob, "report", 3)).await;
    assert!(give().await.unwrap_err().contains("already has a workflow `report`"));
    workflows.delete(&behalf(&bob), &change(&bob, id(&in_the_way)), None).await.unwrap();
    assert_eq!(give().await, Ok(()));
    assert_eq!(view(store, &alice, &id(&first), None).await, NameMatch::Nothing);
    let view_now = seen(store, &bob, &id(&first), None).await;
    assert_eq!(view_now.reached.role, AccessRole::Owner);
    assert_eq!(view_now.version.files.len(), 1);
    assert_eq!(view_now.version.bindings.len(), 1);
    assert_eq!(seen(store, &carol, &id(&first), None).await.reached.role, AccessRole::View);
    let which = VerifierSelector::Id(made.id.clone());
    assert_eq!(verifier(store, &alice, &which, None).await, None);
    assert_eq!(verifier(store, &bob, &which, None).await.unwrap().verifier.account, bob);
    let asked = WorkflowLookup { caller: bob.clone(), which: id(&first), version: None };
    let asked = WorkflowFilesLookup { asked, paths: vec!["a.txt".to_owned()] };
    let NameMatch::One(files) = workflows.files(&behalf(&bob), &asked).await.unwrap() else {
        panic!()
    };
    assert_eq!(files.files[0].content, b"inside");
    saved(store, &next(draft(&bob, "report", 9), &first)).await;
    assert_eq!(give().await, Err("the workflow no longer exists".to_owned()));
}
