//! The actions of one account do not affect other accounts or its other objects.

use jurat_core::{
    id::AccountId,
    idempotency::SavedAnswer,
    round::{RoundFilter, job::JobKind},
    verifier::{
        VerifierRef, VerifierSelector,
        run::{VerifierRunFilter, VerifierRunVerdict},
    },
    workflow::{AccessRole, FileContent, NewFile, VerifierRole, WorkflowSelector, file::digest},
};
use jurat_store::{
    Behalf, IdempotencyAnswer, IdempotencyRecord, NameMatch, NewVerifierVersion, OwnershipChange,
    RoundOpenRefusal, RoundOpening, Store, VerifierRemoval, WorkflowChange, WorkflowFilesLookup,
    WorkflowGrantOrder, WorkflowLookup, WorkflowRefusal, WorkflowSave, WriteOutcome, WrongField,
};

use super::{
    rounds::read,
    verifier_runs,
    verifiers::{deployed, known as verdict},
    workflows::{
        behalf, binding, change, draft, grant, grant_of, id, next, refused, revoke, saved, seen,
        text, user, view,
    },
};
use crate::{
    backend::Backend,
    samples::{
        account, at, close_round, closing, deploy, expiry, grant as credit, holding, judged,
        newest, open_round, page, reached, round, run, verifier, verifiers, versions,
    },
};

fn known(content: &str) -> NewFile {
    NewFile { content: FileContent::Known(digest(content.as_bytes())), ..text("a.txt", "") }
}

pub(crate) async fn content_is_known_only_to_accounts_that_can_see_it(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let files = |content: &str| Some(vec![text("a.txt", content)]);
    let hidden =
        saved(store, &WorkflowSave { files: files("hidden"), ..draft(&alice, "hidden", 1) }).await;
    let open =
        saved(store, &WorkflowSave { files: files("open"), ..draft(&alice, "open", 2) }).await;
    grant(store, &grant_of(&alice, id(&open), &bob, AccessRole::Edit)).await;
    let unknown = WorkflowRefusal::Field(WrongField::ContentUnknown { path: "a.txt".to_owned() });
    // In an own workflow, the contents of others are unknown, shared or not.
    for content in ["hidden", "open"] {
        let own = WorkflowSave { files: Some(vec![known(content)]), ..draft(&bob, "own", 3) };
        assert_eq!(refused(store, &own).await, unknown, "{content}");
    }
    // In a shared one, the contents of the owner's other workflows are unknown.
    let save = next(draft(&bob, "open", 4), &open);
    let named = WorkflowSave { files: Some(vec![known("hidden")]), ..save.clone() };
    assert_eq!(refused(store, &named).await, unknown);
    saved(store, &WorkflowSave { files: Some(vec![known("open")]), ..save }).await;
    // Its owner knows both.
    let both = WorkflowSave { files: Some(vec![known("open")]), ..draft(&alice, "hidden", 5) };
    saved(store, &next(both, &hidden)).await;
}

pub(crate) async fn nobody_binds_the_verifiers_of_others(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let cites = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    for verifier in [cites.id.as_str(), "cites"] {
        let bindings = Some(vec![binding("main", verifier)]);
        let save = WorkflowSave { bindings, ..draft(&bob, "report", 1) };
        let unknown = WorkflowRefusal::Field(WrongField::BindingUnknown { place: 0 });
        assert_eq!(refused(store, &save).await, unknown, "{verifier}");
    }
}

pub(crate) async fn a_shared_verifier_opens_no_other_and_no_more(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let one = deployed(store, &deploy(&alice, "one", 1)).await.verifier;
    let two = deployed(store, &deploy(&alice, "two", 2)).await.verifier;
    let bindings = Some(vec![binding("main", &one.id)]);
    let made = saved(store, &WorkflowSave { bindings, ..draft(&alice, "report", 1) }).await;
    grant(store, &grant_of(&alice, id(&made), &bob, AccessRole::View)).await;
    let found =
        async |which: VerifierSelector, needs| match reached(store, &bob, (&which, None), needs)
            .await
        {
            NameMatch::One(reached) => Some(reached.version.verifier.name),
            NameMatch::Nothing => None,
            NameMatch::Elsewhere(names) => panic!("{names:?}"),
        };
    let full = |name: &str| VerifierRef::parse(&format!("@{alice}/{name}")).unwrap().which;
    for which in [VerifierSelector::Id(one.id.clone()), full("one")] {
        assert_eq!(found(which.clone(), VerifierRole::Exec).await.as_deref(), Some("one"));
        assert_eq!(found(which, VerifierRole::Tune).await, None, "it is only run");
    }
    for which in
        [VerifierSelector::Id(two.id), full("two"), VerifierSelector::Name("two".to_owned())]
    {
        assert_eq!(found(which, VerifierRole::Exec).await, None);
    }
    assert_eq!(versions(store, &bob, &one.id, (None, 10)).await, []);
    assert_eq!(versions(store, &alice, &one.id, (None, 10)).await.len(), 1);
    // An account that may only run it cannot deploy it, even with its token.
    let next = |by: &AccountId| NewVerifierVersion {
        expected_token: Some(one.version_token.clone()),
        ..deploy(by, "one", 3)
    };
    let by_bob = store
        .verifiers()
        .deploy(&Behalf::from(&next(&bob).account), &next(&bob), None)
        .await
        .unwrap();
    assert!(!matches!(by_bob, WriteOutcome::Done(_)), "{by_bob:?}");
    assert_eq!(deployed(store, &next(&alice)).await.verifier.current_version, 2);
    let other =
        verifier(store, &alice, &VerifierSelector::Name("two".to_owned()), None).await.unwrap();
    assert_eq!((other.verifier.current_version, other.version), (1, 1));
    // Archiving it ends what it shares.
    let away = change(&alice, id(&made));
    store.workflows().archive(&behalf(&alice), &away, None).await.unwrap();
    for which in [
        VerifierSelector::Id(one.id.clone()),
        full("one"),
        VerifierSelector::Name("one".to_owned()),
    ] {
        assert_eq!(found(which, VerifierRole::Exec).await, None);
    }
    let open = run(&bob, &one.id, 9);
    assert_eq!(
        open_round(store, &open).await,
        WriteOutcome::Refused(RoundOpenRefusal::VerifierGone)
    );
}

/// What is left of a workflow: its files, verifiers and grants.
async fn whole(store: &Store, caller: &AccountId, which: &WorkflowSelector) -> [usize; 3] {
    let view = seen(store, caller, which, None).await;
    let asked = WorkflowLookup { caller: caller.clone(), which: which.clone(), version: None };
    let grants = store.workflows().grants(&behalf(caller), &asked).await.unwrap();
    let NameMatch::One(grants) = grants else { panic!("{grants:?}") };
    let asked = WorkflowFilesLookup { asked, paths: vec!["a.txt".to_owned()] };
    let files = store.workflows().files(&behalf(caller), &asked).await.unwrap();
    let NameMatch::One(files) = files else { panic!("{files:?}") };
    [files.files.len(), view.version.bindings.len(), grants.len()]
}

pub(crate) async fn ending_a_grant_does_not_affect_other_workflows(backend: &Backend) {
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
            grant(store, &grant_of(&alice, id(&second), whom, AccessRole::View)).await;
        }
        made.push(id(&second));
    }
    let [one, two, three, four] = &made[..] else { panic!() };
    let stays = async |which: &WorkflowSelector| {
        assert_eq!(whole(store, &alice, which).await, [1, 1, 2]);
        for whom in [&bob, &carol] {
            seen(store, whom, which, None).await;
        }
    };
    assert_eq!(revoke(store, &alice, one.clone(), &bob).await, Ok(true));
    assert_eq!(whole(store, &alice, one).await, [1, 1, 1], "that of Carol stays");
    stays(two).await;
    let workflows = store.workflows();
    let old = WorkflowChange { version: Some(1), ..change(&alice, two.clone()) };
    workflows.delete_version(&behalf(&alice), &old, None).await.unwrap();
    assert_eq!(view(store, &alice, two, Some(1)).await, NameMatch::Nothing);
    seen(store, &alice, three, Some(1)).await;
    workflows.delete(&behalf(&alice), &change(&alice, two.clone()), None).await.unwrap();
    stays(three).await;
    let WorkflowSelector::Id(workflow_id) = three.clone() else { panic!() };
    let giving = OwnershipChange { workflow_id, from: alice.clone(), to: bob.clone(), at: at(90) };
    let given = workflows.give(&Behalf::Platform, &giving, None).await.unwrap();
    assert_eq!(given, WriteOutcome::Done(()));
    assert_eq!(whole(store, &bob, three).await, [1, 1, 1]);
    stays(four).await;
    // Whoever does not own it any more does not give it away.
    let again = workflows.give(&Behalf::Platform, &giving, None).await.unwrap();
    assert!(matches!(again, WriteOutcome::Refused(_)), "{again:?}");
    assert_eq!(seen(store, &bob, three, None).await.reached.role, AccessRole::Owner);
}

pub(crate) async fn the_history_of_one_workflow_opens_that_of_no_other(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    for (number, name, with_history) in [(1, "one", true), (2, "two", false)] {
        let first = saved(store, &draft(&alice, name, number)).await;
        let second = saved(store, &next(draft(&alice, name, 10 + number), &first)).await;
        let order = grant_of(&alice, id(&second), &bob, AccessRole::View);
        grant(store, &WorkflowGrantOrder { with_history, ..order }).await;
        let is_seen = view(store, &bob, &id(&second), Some(1)).await != NameMatch::Nothing;
        assert_eq!(is_seen, with_history, "{name}");
    }
}

/// A filter for each way to look for rounds.
fn filters() -> Vec<RoundFilter> {
    use jurat_core::round::{RoundStatus, consensus::Outcome};
    let all = newest(10);
    let mut filters =
        vec![all.clone(), RoundFilter { outcome: Some(Outcome::Agreed), ..all.clone() }];
    for kind in JobKind::ALL.iter().copied() {
        let of_kind = RoundFilter { kind: Some(kind), ..all.clone() };
        let both = RoundFilter { outcome: Some(Outcome::Agreed), ..of_kind.clone() };
        filters.extend([of_kind, both]);
    }
    for state in
        [RoundStatus::Open, RoundStatus::Closed, RoundStatus::Expired, RoundStatus::Cancelled]
    {
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
        open_round(store, &open).await;
        if let Some(end) = end {
            close_round(store, &open, &end(&open)).await;
        }
    }
    for filter in filters() {
        seen += store.rounds().list(&Behalf::from(&alice), &alice, &filter).await.unwrap().len();
        assert_eq!(
            store.rounds().list(&Behalf::from(&bob), &bob, &filter).await.unwrap(),
            [],
            "{filter:?}"
        );
    }
    assert!(8 < seen, "{seen} were found");
}

/// Ids of rounds and runs, and idempotency keys, belong to one account.
pub(crate) async fn two_accounts_have_the_same_names_for_different_things(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let mut opens = Vec::new();
    for (owner, cost) in [(&alice, 15), (&bob, 20)] {
        store.ledger().grant(&Behalf::Platform, &credit(owner, 100), None).await.unwrap();
        let verifier = deployed(store, &deploy(owner, "cites", 1)).await.verifier;
        let open = holding(run(owner, &verifier.id, 1), 40, true);
        let once = IdempotencyRecord {
            account: owner.clone(),
            key: "key".to_owned(),
            operation: "operation".to_owned(),
            request_digest: "digest".to_owned(),
            answer: IdempotencyAnswer::Round,
            at: at(5),
        };
        assert_eq!(
            store.rounds().open(&Behalf::from(&open.account), &open, Some(&once)).await.unwrap(),
            WriteOutcome::Done(RoundOpening::Whole)
        );
        opens.push((open, cost));
    }
    let [(hers, cost), (his, other)] = &opens[..] else { panic!() };
    let ticket = hers.run.as_ref().unwrap();
    assert_eq!((&hers.id, &ticket.id), (&his.id, &his.run.as_ref().unwrap().id));
    let end = judged(hers, VerifierRunVerdict::Passed, *cost);
    close_round(store, hers, &end).await;
    let judged_as = async |who: &AccountId| {
        store
            .verifier_runs()
            .get(&Behalf::from(who), who, &ticket.id)
            .await
            .unwrap()
            .unwrap()
            .end
            .map(|end| end.verdict)
    };
    assert_eq!(judged_as(&alice).await, Some(Ok(true)));
    assert_eq!(judged_as(&bob).await, None, "his is under way");
    let answer = SavedAnswer { tag: 200, text: "hers".to_owned() };
    store.idempotency().set_answer(&Behalf::from(&alice), &alice, "key", &answer).await.unwrap();
    let kept = async |who: &AccountId| {
        store.idempotency().get(&Behalf::from(who), who, "key").await.unwrap().unwrap().answer
    };
    assert_eq!((kept(&alice).await, kept(&bob).await), (Some(answer), None));
    let his_end = judged(his, VerifierRunVerdict::Failed, *other);
    close_round(store, his, &his_end).await;
    assert_eq!(read(backend, hers).await.closing, Some(end));
    assert_eq!(read(backend, his).await.closing, Some(his_end));
    for (who, spent) in [(&alice, 15), (&bob, 20)] {
        let spending = store.ledger().spending(&Behalf::from(who), who, &at(0)).await.unwrap();
        assert_eq!((spending.micros, spending.rounds), (spent, 1));
        assert_eq!(
            store.ledger().transfers(&Behalf::from(who), who, None, 10).await.unwrap().len(),
            4
        );
    }
}

pub(crate) async fn ending_access_does_not_affect_other_verifiers(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let mut made = Vec::new();
    for (owner, name, number) in [(&alice, "one", 1), (&alice, "two", 2), (&bob, "his", 3)] {
        let verifier = deployed(store, &deploy(owner, name, number)).await.verifier;
        let open = run(owner, &verifier.id, number);
        open_round(store, &open).await;
        close_round(store, &open, &judged(&open, VerifierRunVerdict::Passed, 0)).await;
        let (verdicts, behalf) = (store.verdicts(), Behalf::from(owner));
        verdicts.put(&behalf, owner, &verifier.id, &verdict(name, 1)).await.unwrap();
        made.push((verifier, open));
    }
    let removal = VerifierRemoval {
        account: alice.clone(),
        which: VerifierSelector::Id(made[0].0.id.clone()),
        at: at(500),
    };
    store.verifiers().revoke(&Behalf::from(&removal.account), &removal, None).await.unwrap();
    let left = verifiers(store, &alice, &page(None, 10)).await;
    assert_eq!(left.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["two"]);
    let gone = store.verifiers().delete(&Behalf::Platform, &removal, None).await.unwrap();
    assert!(matches!(gone, WriteOutcome::Done(_)), "{gone:?}");
    for (verifier, open) in &made[1..] {
        let owner = &verifier.account;
        let (ticket, behalf) = (open.run.as_ref().unwrap(), Behalf::from(owner));
        let run = store.verifier_runs().get(&behalf, owner, &ticket.id).await.unwrap();
        assert!(run.is_some(), "{}", verifier.name);
        let known = store.verdicts().get(&behalf, owner, &verifier.name, &at(0)).await.unwrap();
        assert!(known.is_some(), "{}", verifier.name);
        let closing = read(backend, open).await.closing.unwrap();
        let says = |it: &jurat_core::round::replica::Replica| {
            it.answer.content().is_some_and(|said| said.output.is_some())
        };
        assert!(closing.replicas.iter().any(says), "{}", verifier.name);
    }
    // A list by version reads another index than those by verdict and purpose.
    let of_version = |id: &str| VerifierRunFilter {
        verifier_id: Some(id.to_owned()),
        version: Some(1),
        ..verifier_runs::newest(10)
    };
    let (two, his) = (&made[1].0.id, &made[2].0.id);
    let (runs, behalf) = (store.verifier_runs(), Behalf::from(&alice));
    assert_eq!(runs.list(&behalf, &alice, &of_version(two)).await.unwrap().len(), 1);
    assert_eq!(runs.list(&behalf, &alice, &of_version(his)).await.unwrap(), []);
}
