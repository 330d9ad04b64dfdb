//! What one account does with its own leaves what others have, and what else it has, as it was.

use jurat_core::{
    id::AccountId,
    job::Kind,
    run::RunVerdict,
    verifier::{VerifierRef, Which},
    workflow::{FileContent, NewFile, Role, VerifierRole, WorkflowWhich, file::digest},
};
use jurat_store::{
    Behalf, Deploy, Deployed, FilesAsked, Found, Giving, GrantOrder, Once, OnceAnswer, Opened,
    Removal, RoundFilter, RunFilter, SavedAnswer, Store, VerifierGone, WorkflowAsked,
    WorkflowChange, WorkflowRefused, WorkflowSave, Written, WrongField,
};

use super::{
    rounds::read,
    runs,
    verifiers::{deployed, known as verdict},
    workflows::{
        behalf, binding, change, draft, grant, grant_of, id, next, refused, revoke, saved, seen,
        text, user, view,
    },
};
use crate::{
    backend::Backend,
    samples::{
        account, at, closing, deploy, expiry, grant as credit, holding, judged, newest, page,
        reached, round, run, verifier, verifiers, versions,
    },
};

fn known(content: &str) -> NewFile {
    NewFile { content: FileContent::Known(digest(content.as_bytes())), ..text("a.txt", "") }
}

pub(crate) async fn a_content_is_known_only_to_those_who_see_it(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let files = |content: &str| Some(vec![text("a.txt", content)]);
    let hidden =
        saved(store, &WorkflowSave { files: files("hidden"), ..draft(&alice, "hidden", 1) }).await;
    let open =
        saved(store, &WorkflowSave { files: files("open"), ..draft(&alice, "open", 2) }).await;
    grant(store, &grant_of(&alice, id(&open), &bob, Role::Edit)).await;
    let unknown = WorkflowRefused::Field(WrongField::ContentUnknown { path: "a.txt".to_owned() });
    // In a workflow of one's own, what others have is not known, shared or not.
    for content in ["hidden", "open"] {
        let own = WorkflowSave { files: Some(vec![known(content)]), ..draft(&bob, "own", 3) };
        assert_eq!(refused(store, &own).await, unknown, "{content}");
    }
    // In one that is shared, what stands in another of its owner is not.
    let save = next(draft(&bob, "open", 4), &open);
    let named = WorkflowSave { files: Some(vec![known("hidden")]), ..save.clone() };
    assert_eq!(refused(store, &named).await, unknown);
    saved(store, &WorkflowSave { files: Some(vec![known("open")]), ..save }).await;
    // Its owner knows both.
    let both = WorkflowSave { files: Some(vec![known("open")]), ..draft(&alice, "hidden", 5) };
    saved(store, &next(both, &hidden)).await;
}

pub(crate) async fn nobody_names_the_verifiers_of_others(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let cites = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    for verifier in [cites.id.as_str(), "cites"] {
        let bindings = Some(vec![binding("main", verifier)]);
        let save = WorkflowSave { bindings, ..draft(&bob, "report", 1) };
        let unknown = WorkflowRefused::Field(WrongField::BindingUnknown { place: 0 });
        assert_eq!(refused(store, &save).await, unknown, "{verifier}");
    }
}

pub(crate) async fn a_verifier_that_is_shared_opens_no_other_and_no_more(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let one = deployed(store, &deploy(&alice, "one", 1)).await.verifier;
    let two = deployed(store, &deploy(&alice, "two", 2)).await.verifier;
    let bindings = Some(vec![binding("main", &one.id)]);
    let made = saved(store, &WorkflowSave { bindings, ..draft(&alice, "report", 1) }).await;
    grant(store, &grant_of(&alice, id(&made), &bob, Role::View)).await;
    let found = async |which: Which, needs| match reached(store, &bob, (&which, None), needs).await
    {
        Found::One(reached) => Some(reached.version.verifier.name),
        Found::Nothing => None,
        Found::Elsewhere(names) => panic!("{names:?}"),
    };
    let full = |name: &str| VerifierRef::parse(&format!("@{alice}/{name}")).unwrap().which;
    for which in [Which::Id(one.id.clone()), full("one")] {
        assert_eq!(found(which.clone(), VerifierRole::Exec).await.as_deref(), Some("one"));
        assert_eq!(found(which, VerifierRole::Tune).await, None, "it is only run");
    }
    for which in [Which::Id(two.id), full("two"), Which::Name("two".to_owned())] {
        assert_eq!(found(which, VerifierRole::Exec).await, None);
    }
    assert_eq!(versions(store, &bob, &one.id, (None, 10)).await, []);
    assert_eq!(versions(store, &alice, &one.id, (None, 10)).await.len(), 1);
    // Nor is it deployed by who only runs it, even with its token.
    let next = |by: &AccountId| Deploy {
        expected_token: Some(one.version_token.clone()),
        ..deploy(by, "one", 3)
    };
    let by_bob = store.verifier_deploy(&next(&bob), None).await.unwrap();
    assert!(!matches!(by_bob, Deployed::Done(_)), "{by_bob:?}");
    assert_eq!(deployed(store, &next(&alice)).await.verifier.current_version, 2);
    let other = verifier(store, &alice, &Which::Name("two".to_owned()), None).await.unwrap();
    assert_eq!((other.verifier.current_version, other.version), (1, 1));
    // What is put away takes along what it shares.
    let away = change(&alice, id(&made));
    store.sharing().workflow_archive(&behalf(&alice), &away, None).await.unwrap();
    for which in [Which::Id(one.id.clone()), full("one"), Which::Name("one".to_owned())] {
        assert_eq!(found(which, VerifierRole::Exec).await, None);
    }
    let open = run(&bob, &one.id, 9);
    assert_eq!(store.round_open(&open, None).await.unwrap(), Opened::VerifierGone);
}

/// What is left of a workflow: its files, verifiers and grants.
async fn whole(store: &dyn Store, caller: &AccountId, which: &WorkflowWhich) -> [usize; 3] {
    let view = seen(store, caller, which, None).await;
    let asked = WorkflowAsked { caller: caller.clone(), which: which.clone(), version: None };
    let grants = store.sharing().workflow_grants(&behalf(caller), &asked).await.unwrap();
    let Found::One(grants) = grants else { panic!("{grants:?}") };
    let asked = FilesAsked { asked, paths: vec!["a.txt".to_owned()] };
    let files = store.sharing().workflow_files(&behalf(caller), &asked).await.unwrap();
    let Found::One(files) = files else { panic!("{files:?}") };
    [files.files.len(), view.version.bindings.len(), grants.len()]
}

pub(crate) async fn what_ends_for_one_workflow_stays_for_another(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob, carol) =
        (user(store, "alice").await, user(store, "bob").await, user(store, "carol").await);
    let mut made = Vec::new();
    for (number, name) in [(1, "one"), (2, "two"), (3, "three"), (4, "four")] {
        let verifier = deployed(store, &deploy(&alice, name, number)).await.verifier;
        let files = Some(vec![text("a.txt", name)]);
        let bindings = Some(vec![binding(name, &verifier.id)]);
        let save = WorkflowSave { files, bindings, ..draft(&alice, name, number) };
        let first = saved(store, &save).await;
        let second = saved(store, &next(draft(&alice, name, 10 + number), &first)).await;
        for whom in [&bob, &carol] {
            grant(store, &grant_of(&alice, id(&second), whom, Role::View)).await;
        }
        made.push(id(&second));
    }
    let [one, two, three, four] = &made[..] else { panic!() };
    let stays = async |which| assert_eq!(whole(store, &alice, which).await, [1, 1, 2]);
    assert_eq!(revoke(store, &alice, one.clone(), &bob).await, Ok(true));
    assert_eq!(whole(store, &alice, one).await, [1, 1, 1], "that of Carol stays");
    stays(two).await;
    let sharing = store.sharing();
    let old = WorkflowChange { version: Some(1), ..change(&alice, two.clone()) };
    sharing.workflow_version_delete(&behalf(&alice), &old, None).await.unwrap();
    assert_eq!(view(store, &alice, two, Some(1)).await, Found::Nothing);
    seen(store, &alice, three, Some(1)).await;
    sharing.workflow_delete(&behalf(&alice), &change(&alice, two.clone()), None).await.unwrap();
    stays(three).await;
    let WorkflowWhich::Id(workflow_id) = three.clone() else { panic!() };
    let giving = Giving { workflow_id, from: alice.clone(), to: bob.clone(), at: at(90) };
    let given = sharing.workflow_give(&Behalf::Platform, &giving, None).await.unwrap();
    assert_eq!(given, Written::Done(()));
    assert_eq!(whole(store, &bob, three).await, [1, 1, 1]);
    stays(four).await;
    // Whoever does not own it any more does not give it away.
    let again = sharing.workflow_give(&Behalf::Platform, &giving, None).await.unwrap();
    assert!(matches!(again, Written::Refused(_)), "{again:?}");
    assert_eq!(seen(store, &bob, three, None).await.reached.role, Role::Owner);
}

pub(crate) async fn the_history_of_one_workflow_opens_that_of_no_other(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    for (number, name, with_history) in [(1, "one", true), (2, "two", false)] {
        let first = saved(store, &draft(&alice, name, number)).await;
        let second = saved(store, &next(draft(&alice, name, 10 + number), &first)).await;
        let order = grant_of(&alice, id(&second), &bob, Role::View);
        grant(store, &GrantOrder { with_history, ..order }).await;
        let is_seen = view(store, &bob, &id(&second), Some(1)).await != Found::Nothing;
        assert_eq!(is_seen, with_history, "{name}");
    }
}

/// A filter for each way in which rounds are looked for.
fn filters() -> Vec<RoundFilter> {
    use jurat_core::{consensus::Outcome, round::State};
    let all = newest(10);
    let mut filters =
        vec![all.clone(), RoundFilter { outcome: Some(Outcome::Agreed), ..all.clone() }];
    for kind in Kind::ALL.iter().copied() {
        let of_kind = RoundFilter { kind: Some(kind), ..all.clone() };
        let both = RoundFilter { outcome: Some(Outcome::Agreed), ..of_kind.clone() };
        filters.extend([of_kind, both]);
    }
    for state in [State::Open, State::Closed, State::Expired, State::Cancelled] {
        filters.push(RoundFilter { state: Some(state), ..all.clone() });
    }
    filters
}

pub(crate) async fn another_account_finds_no_round_in_any_way(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    let mut seen = 0;
    for (number, end) in [(1, None), (2, Some(closing as fn(&_) -> _)), (3, Some(expiry))] {
        let open = round(&alice, number);
        store.round_open(&open, None).await.unwrap();
        if let Some(end) = end {
            store.round_close(&open, &end(&open)).await.unwrap();
        }
    }
    for filter in filters() {
        seen += store.round_list(&alice, &filter).await.unwrap().len();
        assert_eq!(store.round_list(&bob, &filter).await.unwrap(), [], "{filter:?}");
    }
    assert!(8 < seen, "{seen} were found");
}

/// Identifiers of rounds and runs, and keys of requests, are each account's own.
pub(crate) async fn two_accounts_have_the_same_names_for_different_things(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let mut opens = Vec::new();
    for (owner, cost) in [(&alice, 15), (&bob, 20)] {
        store.credit_grant(&credit(owner, 100), None).await.unwrap();
        let verifier = deployed(store, &deploy(owner, "cites", 1)).await.verifier;
        let open = holding(run(owner, &verifier.id, 1), 40, true);
        let once = Once {
            account: owner.clone(),
            key: "key".to_owned(),
            operation: "operation".to_owned(),
            request_digest: "digest".to_owned(),
            answer: OnceAnswer::Round,
            at: at(5),
        };
        assert_eq!(store.round_open(&open, Some(&once)).await.unwrap(), Opened::Opened);
        opens.push((open, cost));
    }
    let [(hers, cost), (his, other)] = &opens[..] else { panic!() };
    let ticket = hers.run.as_ref().unwrap();
    assert_eq!((&hers.id, &ticket.id), (&his.id, &his.run.as_ref().unwrap().id));
    let end = judged(hers, RunVerdict::Passed, *cost);
    store.round_close(hers, &end).await.unwrap();
    let judged_as = async |who: &AccountId| {
        store.run_get(who, &ticket.id).await.unwrap().unwrap().end.map(|end| end.verdict)
    };
    assert_eq!(judged_as(&alice).await, Some(Ok(true)));
    assert_eq!(judged_as(&bob).await, None, "his is under way");
    let answer = SavedAnswer { status: 200, text: "hers".to_owned() };
    store.once_answer(&alice, "key", &answer).await.unwrap();
    let kept = async |who: &AccountId| store.once_get(who, "key").await.unwrap().unwrap().answer;
    assert_eq!((kept(&alice).await, kept(&bob).await), (Some(answer), None));
    let his_end = judged(his, RunVerdict::Failed, *other);
    store.round_close(his, &his_end).await.unwrap();
    assert_eq!(read(backend, hers).await.closing, Some(end));
    assert_eq!(read(backend, his).await.closing, Some(his_end));
    for (who, spent) in [(&alice, 15), (&bob, 20)] {
        let spending = store.credit_spent(who, at(0)).await.unwrap();
        assert_eq!((spending.micros, spending.rounds), (spent, 1));
        assert_eq!(store.credit_transfers(who, None, 10).await.unwrap().len(), 4);
    }
}

pub(crate) async fn what_ends_for_one_verifier_stays_for_another(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let mut made = Vec::new();
    for (owner, name, number) in [(&alice, "one", 1), (&alice, "two", 2), (&bob, "his", 3)] {
        let verifier = deployed(store, &deploy(owner, name, number)).await.verifier;
        let open = run(owner, &verifier.id, number);
        store.round_open(&open, None).await.unwrap();
        store.round_close(&open, &judged(&open, RunVerdict::Passed, 0)).await.unwrap();
        store.verdict_put(owner, &verifier.id, &verdict(name, 1)).await.unwrap();
        made.push((verifier, open));
    }
    let removal =
        Removal { account: alice.clone(), which: Which::Id(made[0].0.id.clone()), at: at(500) };
    store.verifier_revoke(&removal, None).await.unwrap();
    let left = verifiers(store, &alice, &page(None, 10)).await;
    assert_eq!(left.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["two"]);
    let gone = store.verifier_delete(&removal, None).await.unwrap();
    assert!(matches!(gone, VerifierGone::Gone(_)), "{gone:?}");
    for (verifier, open) in &made[1..] {
        let owner = &verifier.account;
        let ticket = open.run.as_ref().unwrap();
        assert!(store.run_get(owner, &ticket.id).await.unwrap().is_some(), "{}", verifier.name);
        let known = store.verdict_get(owner, &verifier.name, at(0)).await.unwrap();
        assert!(known.is_some(), "{}", verifier.name);
        let closing = read(backend, open).await.closing.unwrap();
        let says = |it: &jurat_core::replica::Replica| {
            it.answer.said().is_some_and(|said| said.output.is_some())
        };
        assert!(closing.replicas.iter().any(says), "{}", verifier.name);
    }
    // A list by version reads along another way than those by verdict and purpose.
    let of_version = |id: &str| RunFilter {
        verifier_id: Some(id.to_owned()),
        version: Some(1),
        ..runs::newest(10)
    };
    let (two, his) = (&made[1].0.id, &made[2].0.id);
    assert_eq!(store.run_list(&alice, &of_version(two)).await.unwrap().len(), 1);
    assert_eq!(store.run_list(&alice, &of_version(his)).await.unwrap(), []);
}
