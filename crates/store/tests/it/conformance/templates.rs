//! Templates: published once, visible while they are live, and never changed.

use jurat_core::{
    account::{AccountName, team::InvitationOutcome},
    id::{AccountId, uuid},
    time::Timestamp,
    verifier::{VerifierSelector, VerifierVersion},
    workflow::{
        VerifierRole,
        operation::OfferOutcome,
        template::{
            ChangedTemplate, DesignChecks, ForkNotes, SafetyStatus, TemplateChangeKind,
            TemplateContent, TemplateFilter, TemplatePublication, TemplateSafety, TemplateSelector,
            TemplateVersion, TemplateVersionSummary, VerifierSnapshot,
        },
    },
};
use jurat_store::{
    Behalf, ForkedVerifier, HandleChange, InvitationAnswer, NameMatch, NewVerifierVersion,
    PublishRefusal, PublishedVerifierLookup, RoundOpening, Store, TemplateChange,
    TemplateChangeRefusal, TemplateFileLookup, TemplateFork, TemplateLookup, TemplateOffer,
    TemplatePublish, TemplateWordSearch, VerifierLookup, VerifierRemoval, VerifierRemoveRefusal,
    WriteOutcome,
};

use super::{storage::miscounted, verifiers::deployed};
use crate::{
    backend::Backend,
    samples::{account, at, config, deploy, open_round, run},
};

const ALL: Behalf = Behalf::Platform;

/// A user with a handle, a workflow with a file, and a verifier that it binds.
struct Author {
    account: AccountId,
    workflow: String,
    verifier: String,
    number: u32,
}

async fn author(backend: &Backend, handle: &str, number: u32) -> Author {
    let store = &*backend.store;
    let account = account(handle);
    store.accounts().ensure(&Behalf::Platform, &account, &at(0)).await.unwrap();
    let claim = HandleChange { account: account.clone(), handle: handle.to_owned(), at: at(0) };
    store.people().claim_handle(&ALL, &claim, None).await.unwrap();
    let verifier = deployed(store, &deploy(&account, "cites", number)).await.verifier.id;
    let workflow = uuid(at(i64::from(number)), 7);
    let (a, w) = (&account, &workflow);
    let sql = format!(
        "insert into workflows (account_id, id, slug, name, description, outcome, tags, \
         search_text, current_version, version_token, created_at, updated_at) \
         values ('{a}', '{w}', 'report', 'Report', 'd', 'o', '[\"x\"]', '', 2, 't', 1, 1); \
         insert into workflow_versions (account_id, workflow_id, version, name, description, \
         outcome, tags, body, source, bindings, created_by, created_at) \
         values ('{a}', '{w}', 2, 'Report', 'd', 'o', '[\"x\"]', 'the body', 'manual', '[]', '{a}', 1); \
         insert into workflow_blobs (account_id, sha256, content, created_at) \
         values ('{a}', 'ab', cast('hello' as {bytes}), 1); \
         insert into workflow_files (account_id, workflow_id, version, path, sha256, size_bytes, \
         is_executable, content_kind, purpose) values ('{a}', '{w}', 2, 'a.md', 'ab', 5, 0, 'text', ''), \
         ('{a}', '{w}', 2, 'b.md', 'ab', 5, 1, 'text', ''); \
         insert into workflow_bindings (account_id, workflow_id, name, verifier_id) \
         values ('{a}', '{w}', 'cites', '{verifier}');",
        bytes = if backend.is_postgres() { "bytea" } else { "blob" }
    );
    backend.tamper(&sql).await.unwrap();
    Author { account, workflow, verifier, number }
}

fn summary() -> TemplateVersionSummary {
    TemplateVersionSummary {
        name: "Report".to_owned(),
        description: "Makes a 50% report".to_owned(),
        outcome: "o".to_owned(),
        tags: vec!["x".to_owned()],
        safety: TemplateSafety {
            status: SafetyStatus::Clean,
            advisory_run_id: None,
            advisory_reasoning: None,
        },
        design: DesignChecks::not_checked("no judge"),
    }
}

fn publication(author: &Author, number: u32) -> TemplatePublish {
    let config = config(&format!("criterion {}", author.number));
    let snapshot = VerifierSnapshot {
        name: "cites".to_owned(),
        verifier_id: author.verifier.clone(),
        verifier_name: "cites".to_owned(),
        description: "d".to_owned(),
        version: 1,
        config_hash: config.hash(),
        config,
    };
    TemplatePublish {
        account: author.account.clone(),
        workflow_id: author.workflow.clone(),
        workflow_version: 2,
        slug: "report".to_owned(),
        summary: summary(),
        content: TemplateContent {
            body: "the body".to_owned(),
            release_notes: Some(format!("the {number}th")),
            workflow_version: 2,
            snapshots: vec![snapshot],
        },
        notes: vec!["look".to_owned()],
        new_id: uuid(at(i64::from(number)), u128::from(number)),
        at: at(10),
    }
}

async fn try_publish(
    store: &Store,
    publish: &TemplatePublish,
) -> WriteOutcome<TemplatePublication, PublishRefusal> {
    store.templates().publish(&ALL, publish, None).await.unwrap()
}

async fn published(store: &Store, author: &Author, number: u32) -> TemplatePublication {
    done(try_publish(store, &publication(author, number)).await).unwrap()
}

fn named(handle: &str) -> TemplateSelector {
    TemplateSelector::Named { handle: handle.to_owned(), slug: "report".to_owned() }
}

async fn seen(
    store: &Store,
    which: &TemplateSelector,
    version: Option<u32>,
    viewer: Option<&AccountId>,
) -> Option<TemplateVersion> {
    let asked =
        TemplateLookup { which: which.clone(), version, viewer: viewer.cloned(), now: at(20) };
    store.templates().get(&ALL, &asked).await.unwrap()
}

async fn owned(
    store: &Store,
    caller: &AccountId,
    which: &VerifierSelector,
) -> Option<VerifierVersion> {
    let needs = VerifierRole::Owner;
    let asked =
        VerifierLookup { caller: caller.clone(), which: which.clone(), version: None, needs };
    match store.verifiers().get(&ALL, &asked).await.unwrap() {
        NameMatch::One(reached) => Some(reached.version),
        NameMatch::Nothing | NameMatch::Elsewhere(_) => None,
    }
}

fn wanted(template: &str, version: u32, path: &str) -> TemplateFileLookup {
    let (template, path) = (template.to_owned(), path.to_owned());
    TemplateFileLookup { template, version, path, viewer: None }
}

async fn changed(
    store: &Store,
    account: &AccountId,
    change: TemplateChangeKind,
) -> WriteOutcome<ChangedTemplate, TemplateChangeRefusal> {
    let change =
        TemplateChange { account: account.clone(), which: named("ann"), change, at: at(30) };
    store.templates().change(&ALL, &change, None).await.unwrap()
}

fn done<T, R>(written: WriteOutcome<T, R>) -> Option<T> {
    if let WriteOutcome::Done(result) = written { Some(result) } else { None }
}

fn is_done(written: &WriteOutcome<ChangedTemplate, TemplateChangeRefusal>) -> bool {
    matches!(written, WriteOutcome::Done(_))
}

pub(crate) async fn a_version_is_published_and_never_changes(backend: &Backend) {
    let store = &*backend.store;
    let ann = author(backend, "ann", 1).await;
    let look = store.templates().publishable(&ALL, &ann.account, "report").await.unwrap().unwrap();
    assert_eq!((look.version, look.body.as_str()), (2, "the body"));
    assert_eq!(look.bindings, [("cites".to_owned(), ann.verifier.clone(), None)]);
    assert_eq!(
        look.files.iter().map(|it| it.content.as_slice()).collect::<Vec<_>>(),
        [b"hello", b"hello"]
    );
    let first = published(store, &ann, 9).await;
    assert_eq!((first.version, first.template.publishing_handle.as_str()), (1, "ann"));
    let second = published(store, &ann, 10).await;
    assert_eq!((second.version, &second.template.id), (2, &first.template.id));
    // The workflow is deleted, and the template stays.
    let gone = format!("delete from workflows where id = '{}'", ann.workflow);
    backend.tamper(&gone).await.unwrap();
    let found = seen(store, &named("ann"), Some(1), None).await.unwrap();
    assert_eq!(found.content, publication(&ann, 9).content);
    assert_eq!(found.summary, summary());
    assert_eq!(found.files.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["a.md", "b.md"]);
    let file = store.templates().file(&ALL, &wanted(&first.template.id, 1, "b.md")).await;
    let (meta, bytes) = file.unwrap().unwrap();
    assert_eq!((meta.is_executable, bytes.as_slice()), (true, &b"hello"[..]));
    let newest = seen(store, &TemplateSelector::Id(first.template.id), None, None).await.unwrap();
    assert_eq!(newest.release.version, 2);
}

pub(crate) async fn nothing_is_published_that_changed_after_screening(backend: &Backend) {
    let store = &*backend.store;
    let ann = author(backend, "ann", 1).await;
    let good = publication(&ann, 9);
    let bob = account("bob");
    store.accounts().ensure(&Behalf::Platform, &bob, &at(0)).await.unwrap();
    let mut gone = good.clone();
    gone.content.snapshots[0].version = 2;
    let mut other = good.clone();
    "00".clone_into(&mut other.content.snapshots[0].config_hash);
    for (publish, refused) in [
        (TemplatePublish { account: bob, ..good.clone() }, PublishRefusal::HandleNotClaimed),
        (
            TemplatePublish { workflow_id: "w".to_owned(), ..good.clone() },
            PublishRefusal::WorkflowUnknown,
        ),
        (TemplatePublish { workflow_version: 1, ..good.clone() }, PublishRefusal::WorkflowChanged),
        (gone, PublishRefusal::VerifierGone("cites".to_owned())),
        (other, PublishRefusal::VerifierGone("cites".to_owned())),
    ] {
        assert_eq!(try_publish(store, &publish).await, WriteOutcome::Refused(refused));
    }
    assert_eq!(seen(store, &named("ann"), None, Some(&ann.account)).await, None);
    published(store, &ann, 9).await;
    assert!(is_done(&changed(store, &ann.account, TemplateChangeKind::Archive(None)).await));
    let refused = try_publish(store, &publication(&ann, 10)).await;
    assert_eq!(refused, WriteOutcome::Refused(PublishRefusal::Archived));
}

pub(crate) async fn only_what_is_live_is_seen_by_others(backend: &Backend) {
    let store = &*backend.store;
    let ann = author(backend, "ann", 1).await;
    let id = published(store, &ann, 9).await.template.id;
    published(store, &ann, 10).await;
    let (owner, which) = (&ann.account, named("ann"));
    assert!(is_done(&changed(store, owner, TemplateChangeKind::Unpublish(2)).await));
    assert_eq!(seen(store, &which, Some(2), None).await, None);
    assert_eq!(seen(store, &which, None, None).await.unwrap().release.version, 1);
    assert_eq!(seen(store, &which, Some(2), Some(owner)).await.unwrap().release.version, 2);
    let file = store.templates().file(&ALL, &wanted(&id, 2, "a.md")).await.unwrap();
    assert_eq!(file, None);
    assert!(is_done(
        &changed(store, owner, TemplateChangeKind::Archive(Some("old".to_owned()))).await
    ));
    assert_eq!(seen(store, &which, None, None).await, None);
    assert!(seen(store, &which, None, Some(owner)).await.is_some());
    assert!(is_done(&changed(store, owner, TemplateChangeKind::Unarchive).await));
    let why = Some("use another".to_owned());
    assert!(is_done(&changed(store, owner, TemplateChangeKind::Deprecate(1, why.clone())).await));
    let found = seen(store, &which, None, Some(&account("bob"))).await.unwrap();
    assert_eq!(found.release.deprecation_message, why);
    let foreign = changed(store, &account("bob"), TemplateChangeKind::Unarchive).await;
    assert_eq!(foreign, WriteOutcome::Refused(TemplateChangeRefusal::Unknown));
}

pub(crate) async fn a_template_is_found_under_its_old_name(backend: &Backend) {
    let store = &*backend.store;
    let ann = author(backend, "ann", 1).await;
    published(store, &ann, 9).await;
    let claim =
        HandleChange { account: ann.account.clone(), handle: "anna".to_owned(), at: at(11) };
    store.people().rename_handle(&ALL, &claim, None).await.unwrap();
    let found = seen(store, &named("ann"), None, None).await.unwrap();
    assert_eq!(
        (found.template.handle.as_str(), found.template.publishing_handle.as_str()),
        ("anna", "ann")
    );
    // It was published under the handle, so the handle redirects for ever, and no other account
    // gets it.
    let far = Timestamp::from_micros(i64::MAX / 2);
    let asked = TemplateLookup { which: named("ann"), version: None, viewer: None, now: far };
    let late = store.templates().get(&ALL, &asked).await.unwrap();
    assert!(late.is_some());
    let bob = account("bob");
    store.accounts().ensure(&Behalf::Platform, &bob, &at(0)).await.unwrap();
    let claim = HandleChange { account: bob, handle: "ann".to_owned(), at: far };
    let refused = store.people().claim_handle(&ALL, &claim, None).await.unwrap();
    assert!(matches!(refused, WriteOutcome::Refused(_)));
}

pub(crate) async fn a_verifier_of_a_live_template_cannot_be_deleted(backend: &Backend) {
    let store = &*backend.store;
    let ann = author(backend, "ann", 1).await;
    published(store, &ann, 9).await;
    let removal = VerifierRemoval {
        account: ann.account.clone(),
        which: VerifierSelector::Id(ann.verifier.clone()),
        at: at(40),
    };
    let refused = store.verifiers().delete(&Behalf::Platform, &removal, None).await.unwrap();
    assert_eq!(
        refused,
        WriteOutcome::Refused(VerifierRemoveRefusal::Serving(vec!["@ann/report@v1".to_owned()]))
    );
    assert!(owned(store, &ann.account, &removal.which).await.is_some());
    // A deprecated version may still be in use.
    assert!(is_done(&changed(store, &ann.account, TemplateChangeKind::Deprecate(1, None)).await));
    assert_eq!(store.verifiers().delete(&Behalf::Platform, &removal, None).await.unwrap(), refused);
    assert!(is_done(&changed(store, &ann.account, TemplateChangeKind::Unpublish(1)).await));
    assert!(matches!(
        store.verifiers().delete(&Behalf::Platform, &removal, None).await.unwrap(),
        WriteOutcome::Done(_)
    ));
}

pub(crate) async fn exactly_the_published_pair_can_be_run_by_anybody(backend: &Backend) {
    let store = &*backend.store;
    let ann = author(backend, "ann", 1).await;
    let pair = async |version: Option<u32>| {
        let pair = PublishedVerifierLookup { verifier: ann.verifier.clone(), version };
        let found = store.templates().published_verifier(&ALL, &pair).await;
        found.unwrap().map(|found| found.version)
    };
    let mut number = 0;
    let mut runs = async || {
        number += 1;
        let open = run(&account("eve"), &ann.verifier, number);
        open_round(store, &open).await == WriteOutcome::Done(RoundOpening::Whole)
    };
    assert_eq!((pair(Some(1)).await, runs().await), (None, false));
    published(store, &ann, 9).await;
    assert_eq!((pair(Some(1)).await, pair(None).await), (Some(1), Some(1)));
    assert!(runs().await);
    let next = NewVerifierVersion {
        expected_token: Some("token-1".to_owned()),
        ..deploy(&ann.account, "cites", 2)
    };
    deployed(store, &next).await;
    // The current version is another one now, and not published.
    assert_eq!((pair(Some(1)).await, pair(Some(2)).await, pair(None).await), (Some(1), None, None));
    changed(store, &ann.account, TemplateChangeKind::Archive(None)).await;
    assert_eq!((pair(Some(1)).await, runs().await), (None, false));
    changed(store, &ann.account, TemplateChangeKind::Unarchive).await;
    assert_eq!((pair(Some(1)).await, runs().await), (Some(1), true));
    let removal = VerifierRemoval {
        account: ann.account.clone(),
        which: VerifierSelector::Id(ann.verifier.clone()),
        at: at(40),
    };
    store.verifiers().revoke(&Behalf::from(&removal.account), &removal, None).await.unwrap();
    assert_eq!(pair(Some(1)).await, None);
    changed(store, &ann.account, TemplateChangeKind::Unpublish(1)).await;
    assert!(!runs().await);
}

fn forking(id: &str, by: &AccountId, number: u32) -> TemplateFork {
    TemplateFork {
        account: by.clone(),
        template_id: id.to_owned(),
        version: 1,
        name: "Report".to_owned(),
        slug: "report".to_owned(),
        summary: summary(),
        body: "another body".to_owned(),
        verifiers: vec![ForkedVerifier {
            binding: "cites".to_owned(),
            name: "cites".to_owned(),
            description: "d".to_owned(),
            config: config("criterion 1"),
            id: uuid(at(i64::from(number)), 1_000 + u128::from(number)),
            token: format!("fork-{number}"),
        }],
        workflow_id: uuid(at(i64::from(number)), 2_000 + u128::from(number)),
        workflow_token: "wt".to_owned(),
        notes: ForkNotes::default(),
        at: at(50),
    }
}

pub(crate) async fn a_fork_has_verifiers_and_names_of_its_own(backend: &Backend) {
    let store = &*backend.store;
    let ann = author(backend, "ann", 1).await;
    let bob = author(backend, "bob", 2).await;
    let id = published(store, &ann, 9).await.template.id;
    for (number, slug, name) in [(1, "report-2", "cites-2"), (2, "report-3", "cites-3")] {
        let fork = forking(&id, &bob.account, number);
        let written = store.templates().fork(&ALL, &fork, None).await.unwrap();
        let forked = done(written).unwrap();
        assert_eq!(forked.slug, slug);
        let which = VerifierSelector::Id(fork.verifiers[0].id.clone());
        let own = owned(store, &bob.account, &which).await.unwrap();
        assert_eq!((own.verifier.name.as_str(), own.config), (name, config("criterion 1")));
        let look = store.templates().publishable(&ALL, &bob.account, slug).await.unwrap().unwrap();
        assert_eq!((look.body.as_str(), look.files.len()), ("another body", 2));
        assert_eq!(look.bindings, [("cites".to_owned(), fork.verifiers[0].id.clone(), None)]);
    }
    changed(store, &ann.account, TemplateChangeKind::Unpublish(1)).await;
    let fork = forking(&id, &bob.account, 3);
    let refused = store.templates().fork(&ALL, &fork, None).await.unwrap();
    assert!(matches!(refused, WriteOutcome::Refused(_)));
}

pub(crate) async fn a_live_template_cannot_be_deleted(backend: &Backend) {
    let store = &*backend.store;
    let ann = author(backend, "ann", 1).await;
    let owner = &ann.account;
    published(store, &ann, 9).await;
    published(store, &ann, 10).await;
    let refused = |refused| WriteOutcome::Refused(refused);
    assert_eq!(
        changed(store, owner, TemplateChangeKind::Delete).await,
        refused(TemplateChangeRefusal::Live)
    );
    let still = changed(store, owner, TemplateChangeKind::DeleteVersion(1)).await;
    assert_eq!(still, refused(TemplateChangeRefusal::StillPublished));
    let absent = changed(store, owner, TemplateChangeKind::DeleteVersion(3)).await;
    assert_eq!(absent, refused(TemplateChangeRefusal::VersionUnknown));
    changed(store, owner, TemplateChangeKind::Unpublish(1)).await;
    assert!(is_done(&changed(store, owner, TemplateChangeKind::DeleteVersion(1)).await));
    assert_eq!(seen(store, &named("ann"), Some(1), Some(owner)).await, None);
    // The number of a deleted version is never used again.
    assert_eq!(published(store, &ann, 11).await.version, 3);
    changed(store, owner, TemplateChangeKind::Archive(None)).await;
    assert!(is_done(&changed(store, owner, TemplateChangeKind::Delete).await));
    assert_eq!(seen(store, &named("ann"), None, Some(owner)).await, None);
}

pub(crate) async fn templates_are_listed_and_searched(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (author(backend, "ann", 1).await, author(backend, "bob", 2).await);
    let older = published(store, &ann, 9).await.template.id;
    let newer = published(store, &bob, 10).await.template.id;
    let list = async |filter: TemplateFilter| {
        let filter = TemplateFilter { limit: 10, ..filter };
        let found = store.templates().list(&ALL, &filter).await.unwrap();
        found.into_iter().map(|line| line.template.id).collect::<Vec<_>>()
    };
    let all = TemplateFilter::default;
    assert_eq!(list(all()).await, [newer.clone(), older.clone()]);
    let behind = TemplateFilter { before: Some(newer.clone()), ..all() };
    assert_eq!(list(behind).await, std::slice::from_ref(&older));
    for (text, count) in [("REPORT", 2), ("50%", 2), ("5_%", 0), ("poem", 0)] {
        let filter = TemplateFilter { search: Some(text.to_owned()), ..all() };
        assert_eq!(list(filter).await.len(), count, "{text}");
    }
    let found = async |word: &str, viewer: Option<AccountId>| {
        let (words, is_mine) = (vec![word.to_owned()], viewer.is_some());
        let wanted = TemplateWordSearch { viewer, is_mine, words, limit: 10 };
        let found = store.templates().search(&ALL, &wanted).await.unwrap();
        found.into_iter().map(|(line, _)| line.template.id).collect::<Vec<_>>()
    };
    assert_eq!(found("report", None).await, [newer.clone(), older.clone()]);
    assert_eq!(found("epor", Some(ann.account.clone())).await, std::slice::from_ref(&older));
    assert_eq!(found("criteria", None).await, [] as [String; 0], "what is beside the texts");
    let viewer = Some(ann.account.clone());
    let mine = TemplateFilter { viewer: viewer.clone(), is_mine: true, ..all() };
    assert_eq!(list(mine.clone()).await, std::slice::from_ref(&older));
    changed(store, &ann.account, TemplateChangeKind::Archive(None)).await;
    assert_eq!(list(mine.clone()).await, [] as [String; 0]);
    assert_eq!(list(TemplateFilter { with_archived: true, ..mine }).await, [older]);
    let others = TemplateFilter { with_archived: true, ..all() };
    assert_eq!(list(others).await, [newer]);
}

pub(crate) async fn a_transferred_template_redirects(backend: &Backend) {
    let store = &*backend.store;
    let ann = author(backend, "ann", 1).await;
    let bob = account("bob");
    store.accounts().ensure(&Behalf::Platform, &bob, &at(0)).await.unwrap();
    let id = published(store, &ann, 9).await.template.id;
    let mut count = 0;
    let mut give = async |from: &AccountId, to: &AccountId| {
        count += 1;
        let offer = TemplateOffer {
            account: from.clone(),
            which: TemplateSelector::Id(id.clone()),
            to: AccountName::Id(to.clone()),
            invitation_id: uuid(at(count), 9),
            at: at(12),
        };
        let offered = store.templates().offer(&ALL, &offer, None).await.unwrap();
        let WriteOutcome::Done(OfferOutcome::Invitation(invitation)) = offered else {
            return false;
        };
        let answer = InvitationAnswer {
            id: invitation.id.clone(),
            by: to.clone(),
            resolution: InvitationOutcome::Accepted,
            at: at(13),
        };
        let taken = store.invitations().answer(&ALL, &answer, None).await.unwrap();
        let is_taken = matches!(taken, WriteOutcome::Done(_));
        if !is_taken {
            let (by, resolution) = (from.clone(), InvitationOutcome::Cancelled);
            let back = InvitationAnswer { by, resolution, ..answer };
            store.invitations().answer(&ALL, &back, None).await.unwrap();
        }
        is_taken
    };
    // An account without a handle cannot have one.
    assert!(!give(&ann.account, &bob).await);
    let claim = HandleChange { account: bob.clone(), handle: "bob".to_owned(), at: at(0) };
    store.people().claim_handle(&ALL, &claim, None).await.unwrap();
    assert!(!give(&bob, &ann.account).await);
    assert!(!give(&ann.account, &ann.account).await, "it is theirs already");
    let cat = author(backend, "cat", 3).await;
    published(store, &cat, 10).await;
    let stored =
        async |account: &AccountId| store.storage().bytes(&ALL, account).await.unwrap().bytes;
    let (of_ann, of_bob) = (stored(&ann.account).await, stored(&bob).await);
    assert!(give(&ann.account, &bob).await);
    let moved = of_ann - stored(&ann.account).await;
    assert!(400 < moved, "{moved}");
    assert_eq!(stored(&bob).await, of_bob + moved, "it counts for its new owner");
    assert_eq!(backend.texts(&miscounted()).await, [""; 0]);
    let other = seen(store, &named("cat"), None, None).await.unwrap();
    assert_eq!(other.template.account, cat.account, "only what is given goes");
    let found = seen(store, &named("ann"), None, None).await.unwrap();
    assert_eq!((found.template.handle.as_str(), &found.template.account), ("bob", &bob));
    assert_eq!(seen(store, &named("bob"), None, None).await, Some(found));
    assert!(give(&bob, &ann.account).await);
    assert_eq!(seen(store, &named("bob"), None, None).await.unwrap().template.handle, "ann");
}

/// A copy of an existing version would use storage without adding anything.
pub(crate) async fn a_version_is_published_once(backend: &Backend) {
    let store = &*backend.store;
    let ann = author(backend, "ann", 1).await;
    let first = published(store, &ann, 9).await;
    assert_eq!(backend.texts(&miscounted()).await, [""; 0]);
    let again = TemplatePublish { new_id: "other".to_owned(), at: at(99), ..publication(&ann, 9) };
    let again = done(try_publish(store, &again).await).unwrap();
    assert_eq!((&again.template.id, again.version), (&first.template.id, 1));
    let versions = backend.texts("select template_id from template_versions").await;
    assert_eq!(versions, [first.template.id.as_str()]);
    // A changed version is a new one, and so is one that was unpublished meanwhile.
    assert_eq!(published(store, &ann, 10).await.version, 2);
    let gone = changed(store, &ann.account, TemplateChangeKind::Unpublish(2)).await;
    assert!(is_done(&gone));
    assert_eq!(published(store, &ann, 10).await.version, 3);
    assert_eq!(backend.texts(&miscounted()).await, [""; 0]);
    for change in [
        TemplateChangeKind::Deprecate(3, Some("old".to_owned())),
        TemplateChangeKind::DeleteVersion(2),
    ] {
        changed(store, &ann.account, change).await;
        assert_eq!(backend.texts(&miscounted()).await, [""; 0]);
    }
}

/// The actions of one author do not affect the templates of another.
pub(crate) async fn nobody_publishes_or_changes_the_workflows_of_others(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (author(backend, "ann", 1).await, author(backend, "bob", 2).await);
    // Neither a workflow nor a verifier of another author is published.
    let theirs = TemplatePublish { workflow_id: ann.workflow.clone(), ..publication(&bob, 9) };
    let refused = try_publish(store, &theirs).await;
    assert_eq!(refused, WriteOutcome::Refused(PublishRefusal::WorkflowUnknown));
    let content = publication(&ann, 9).content;
    let theirs = TemplatePublish { content, ..publication(&bob, 9) };
    let refused = try_publish(store, &theirs).await;
    assert_eq!(refused, WriteOutcome::Refused(PublishRefusal::VerifierGone("cites".to_owned())));
    let look = store.templates().publishable(&ALL, &bob.account, &ann.workflow).await.unwrap();
    assert_eq!(look, None);
    let hers = published(store, &ann, 9).await.template.id;
    assert_eq!(seen(store, &named("bob"), None, None).await, None, "it is under one handle");
    let his = published(store, &bob, 10).await.template.id;
    let both = async || {
        let mut found = Vec::new();
        for (handle, id) in [("ann", &hers), ("bob", &his)] {
            let one = seen(store, &named(handle), None, None).await;
            assert!(one.as_ref().is_none_or(|one| one.template.id == *id), "{handle}");
            found.push(one.is_some());
        }
        (found[0], found[1])
    };
    assert_eq!(both().await, (true, true));
    for change in [
        TemplateChangeKind::Unpublish(1),
        TemplateChangeKind::Archive(None),
        TemplateChangeKind::Delete,
    ] {
        let which = TemplateSelector::Id(hers.clone());
        let foreign = TemplateChange { account: bob.account.clone(), which, change, at: at(20) };
        let foreign = store.templates().change(&ALL, &foreign, None).await.unwrap();
        assert_eq!(foreign, WriteOutcome::Refused(TemplateChangeRefusal::Unknown));
    }
    assert_eq!(both().await, (true, true));
    let own = async |change| {
        let which = TemplateSelector::Id(hers.clone());
        let own = TemplateChange { account: ann.account.clone(), which, change, at: at(20) };
        assert!(is_done(&store.templates().change(&ALL, &own, None).await.unwrap()));
    };
    own(TemplateChangeKind::Archive(None)).await;
    assert_eq!(both().await, (false, true));
    let fork = forking(&hers, &bob.account, 3);
    let refused = store.templates().fork(&ALL, &fork, None).await.unwrap();
    assert!(matches!(refused, WriteOutcome::Refused(_)), "what is archived is not forked");
    own(TemplateChangeKind::Unarchive).await;
    own(TemplateChangeKind::Unpublish(1)).await;
    assert_eq!(both().await, (false, true));
    own(TemplateChangeKind::Delete).await;
    assert_eq!(both().await, (false, true));
}

pub(crate) async fn each_version_and_each_verifier_is_published_separately(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (author(backend, "ann", 1).await, author(backend, "bob", 2).await);
    let id = published(store, &ann, 9).await.template.id;
    let pair = PublishedVerifierLookup { verifier: bob.verifier.clone(), version: Some(1) };
    assert_eq!(store.templates().published_verifier(&ALL, &pair).await.unwrap(), None);
    let other = "update workflow_files set path = 'c.md' where path = 'b.md'";
    backend.tamper(other).await.unwrap();
    assert_eq!(published(store, &ann, 10).await.version, 2);
    let file = async |version, path: &str| {
        store.templates().file(&ALL, &wanted(&id, version, path)).await.unwrap().is_some()
    };
    assert!(file(1, "b.md").await && file(2, "c.md").await);
    assert!(!file(2, "b.md").await && !file(1, "c.md").await);
    let fork = forking(&id, &bob.account, 3);
    let forked = done(store.templates().fork(&ALL, &fork, None).await.unwrap()).unwrap();
    let look = store.templates().publishable(&ALL, &bob.account, &forked.slug).await.unwrap();
    let paths: Vec<String> = look.unwrap().files.into_iter().map(|it| it.file.path).collect();
    assert_eq!(paths, ["a.md", "b.md"]);
}
