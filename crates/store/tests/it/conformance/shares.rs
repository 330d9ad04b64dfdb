//! Shares take no names of the recipient, wait to be accepted, and reveal no address.

use jurat_core::{
    account::{
        AccountName,
        login::{CODE_MICROS, LoginPurpose},
    },
    id::AccountId,
    time::Timestamp,
    verifier::{VerifierRef, VerifierSelector},
    workflow::{
        AccessRole, GRANTS_A_DAY, MOST_WAITING, OwnershipFilter, VerifierRole, WorkflowSelector,
        operation::WorkflowSaveResult,
        share::{Share, ShareAction, ShareFilter, ShareState},
    },
};
use jurat_store::{
    Behalf, DeployRefusal, GrantRevocation, LoginCodeUse, NameMatch, NewLoginCode,
    NewVerifierVersion, ShareAnswer, ShareRefusal, Store, WorkflowGrantOrder, WorkflowLookup,
    WorkflowRefusal, WorkflowSave, WorkflowWordSearch, WriteOutcome,
};

use super::workflows::{
    behalf, binding, draft, grant, grant_of, id, join, listed, refused, revoke, saved, seen, slug,
    team, used, user, view,
};
use crate::{
    backend::Backend,
    conformance::verifiers::deployed,
    samples::{at, deploy, reached},
};

fn name(text: &str) -> AccountName {
    AccountName::parse(text).unwrap()
}

/// An account with an address and a handle.
async fn person(backend: &Backend, handle: &str) -> AccountId {
    let account = user(&backend.store, handle).await;
    for sql in [
        format!(
            "update accounts set email = '{handle}@example.com', handle = '{handle}' \
             where id = '{account}'"
        ),
        format!(
            "insert into handles (handle, account_id, claimed_at, is_stamped) \
             values ('{handle}', '{account}', 0, 0)"
        ),
    ] {
        backend.tamper(&sql).await.unwrap();
    }
    account
}

/// A workflow that names a verifier, both of this owner.
async fn shared(store: &Store, owner: &AccountId, number: u32) -> (WorkflowSaveResult, String) {
    let cites = deployed(store, &deploy(owner, "cites", number)).await.verifier;
    let bindings = Some(vec![binding("cites", &cites.id)]);
    let saved = saved(store, &WorkflowSave { bindings, ..draft(owner, "report", number) }).await;
    (saved, cites.id)
}

async fn given(store: &Store, caller: &AccountId, saved: &WorkflowSaveResult, to: &str) -> bool {
    let order = WorkflowGrantOrder {
        grantee: name(to),
        ..grant_of(caller, id(saved), caller, AccessRole::View)
    };
    match grant(store, &order).await {
        WriteOutcome::Done(_) => true,
        WriteOutcome::Refused(_) => false,
        WriteOutcome::Repeated => panic!(),
    }
}

async fn shares(store: &Store, caller: &AccountId, state: Option<ShareState>) -> Vec<Share> {
    let filter = ShareFilter { state, before: None, limit: 100 };
    store.shares().list(&behalf(caller), caller, &filter).await.unwrap()
}

async fn answered(
    store: &Store,
    caller: &AccountId,
    saved: &WorkflowSaveResult,
    verb: ShareAction,
) -> Result<ShareState, ShareRefusal> {
    let id = saved.workflow.id.clone();
    let answer = ShareAnswer { caller: caller.clone(), id, verb, at: at(80) };
    match store.shares().answer(&behalf(caller), &answer, None).await.unwrap() {
        WriteOutcome::Done(share) => Ok(share.state),
        WriteOutcome::Refused(refused) => Err(refused),
        WriteOutcome::Repeated => panic!(),
    }
}

async fn hits(store: &Store, caller: &AccountId, whose: OwnershipFilter) -> usize {
    let words = vec!["report".to_owned()];
    let wanted = WorkflowWordSearch { caller: caller.clone(), whose, tag: None, words, limit: 10 };
    store.workflows().search(&behalf(caller), &wanted).await.unwrap().len()
}

async fn names(store: &Store, caller: &AccountId, which: &WorkflowSelector) -> Vec<String> {
    let asked = WorkflowLookup { caller: caller.clone(), which: which.clone(), version: None };
    match store.workflows().grants(&behalf(caller), &asked).await.unwrap() {
        NameMatch::One(lines) => lines.into_iter().map(|line| line.granted_to).collect(),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_grant_does_not_take_over_a_bare_name(backend: &Backend) {
    let store = &*backend.store;
    let (eve, ann) = (person(backend, "eve").await, person(backend, "ann").await);
    let bob = person(backend, "bob").await;
    let (report, cites) = shared(store, &eve, 1).await;
    assert!(given(store, &eve, &report, "ann@example.com").await);
    let bare = VerifierSelector::Name("cites".to_owned());
    let full = VerifierRef::parse("@eve/cites").unwrap().which;
    let found = async |who: &AccountId, which: &VerifierSelector| {
        reached(store, who, (which, None), VerifierRole::Exec).await
    };
    assert_eq!(found(&ann, &bare).await, NameMatch::Elsewhere(vec!["@eve/cites".to_owned()]));
    assert_eq!(
        view(store, &ann, &slug("report"), None).await,
        NameMatch::Elsewhere(vec!["@eve/report".to_owned()])
    );
    // Nobody else learns that it exists, by any name.
    for which in [&bare, &full, &VerifierSelector::Id(cites.clone())] {
        assert_eq!(found(&bob, which).await, NameMatch::Nothing);
    }
    for which in [slug("report"), slug("@eve/report"), id(&report)] {
        assert_eq!(view(store, &bob, &which, None).await, NameMatch::Nothing);
    }
    // The token of an unsolicited grant sends nobody's save to a stranger.
    let order = WorkflowGrantOrder {
        role: AccessRole::Edit,
        ..grant_of(&eve, id(&report), &ann, AccessRole::Edit)
    };
    grant(store, &order).await;
    let token = Some("token-1".to_owned());
    let deploys = NewVerifierVersion { expected_token: token.clone(), ..deploy(&ann, "cites", 2) };
    let of_none = WriteOutcome::Refused(DeployRefusal::TokenOfNone(vec!["@eve/cites".to_owned()]));
    assert_eq!(
        store.verifiers().deploy(&Behalf::from(&deploys.account), &deploys, None).await.unwrap(),
        of_none
    );
    let saves = WorkflowSave { expected_token: token, ..draft(&ann, "report", 2) };
    let of_none = WorkflowRefusal::TokenOfNone(vec!["@eve/report".to_owned()]);
    assert_eq!(refused(store, &saves).await, of_none);
    // It is reached by full name and by id, and an own one keeps the bare name.
    for which in [&full, &VerifierSelector::Id(cites.clone())] {
        let NameMatch::One(it) = found(&ann, which).await else { panic!() };
        assert_eq!(it.version.verifier.id, cites);
        let by = it.shared.unwrap().by;
        assert_eq!((by.owner.as_str(), by.is_accepted), ("@eve", false));
    }
    assert_eq!(seen(store, &ann, &slug("@eve/report"), None).await.reached.role, AccessRole::Edit);
    let (own, own_cites) = shared(store, &ann, 3).await;
    let NameMatch::One(it) = found(&ann, &bare).await else { panic!() };
    assert_eq!((it.version.verifier.id, it.shared), (own_cites, None));
    let view = seen(store, &ann, &slug("report"), None).await;
    assert_eq!((view.reached.workflow, view.reached.shared), (own.workflow, None));
    assert_eq!(seen(store, &ann, &slug("@ann/report"), None).await.reached.role, AccessRole::Owner);
}

pub(crate) async fn a_share_is_pending_until_it_is_used_or_answered(backend: &Backend) {
    let store = &*backend.store;
    let (eve, ann) = (person(backend, "eve").await, person(backend, "ann").await);
    let (report, _) = shared(store, &eve, 1).await;
    assert_eq!(
        answered(store, &ann, &report, ShareAction::Accept).await,
        Err(ShareRefusal::Unknown)
    );
    given(store, &eve, &report, "@ann").await;
    let [share] = &shares(store, &ann, None).await[..] else { panic!() };
    assert_eq!((share.reference().as_str(), share.state), ("@eve/report", ShareState::Pending));
    assert_eq!((share.role, share.is_blocked, &share.team), (AccessRole::View, false, &None));
    let found = async || {
        let all = hits(store, &ann, OwnershipFilter::All).await;
        (
            all,
            hits(store, &ann, OwnershipFilter::SharedWithMe).await,
            listed(store, &ann, OwnershipFilter::All).await.len(),
        )
    };
    assert_eq!(found().await, (0, 1, 1), "a list has it, and a search of all does not");
    used(store, &ann, &report).await;
    assert_eq!(found().await, (1, 1, 1));
    assert_eq!(shares(store, &ann, Some(ShareState::Pending)).await, []);
    // A declined share is hidden, even after it is granted again, until it is accepted.
    let declined = answered(store, &ann, &report, ShareAction::Decline).await;
    assert_eq!(declined, Ok(ShareState::Declined));
    given(store, &eve, &report, "@ann").await;
    used(store, &ann, &report).await;
    assert_eq!(found().await, (0, 0, 0));
    assert_eq!(view(store, &ann, &id(&report), None).await, NameMatch::Nothing);
    assert_eq!(view(store, &ann, &slug("report"), None).await, NameMatch::Nothing);
    assert_eq!(shares(store, &ann, None).await, []);
    assert_eq!(shares(store, &ann, Some(ShareState::Declined)).await.len(), 1);
    assert_eq!(names(store, &eve, &id(&report)).await, ["@ann"]);
    let accepted = answered(store, &ann, &report, ShareAction::Accept).await;
    assert_eq!(accepted, Ok(ShareState::Accepted));
    assert_eq!(found().await, (1, 1, 1));
    // A share of a team is accepted immediately, and ends only for members who leave the team.
    assert_eq!(revoke(store, &eve, id(&report), &ann).await, Ok(false));
    let order = GrantRevocation {
        caller: eve.clone(),
        which: id(&report),
        grantee: name("@ann"),
        at: at(60),
    };
    store.workflows().revoke(&behalf(&eve), &order, None).await.unwrap();
    assert_eq!(found().await, (0, 0, 0));
    let reds = team(backend, "reds").await;
    for member in [&eve, &ann] {
        join(backend, &reds, member).await;
    }
    grant(store, &grant_of(&eve, id(&report), &reds, AccessRole::View)).await;
    assert_eq!(found().await, (1, 1, 1));
    let declined = answered(store, &ann, &report, ShareAction::Decline).await;
    assert_eq!(declined, Err(ShareRefusal::OfTeam));
}

pub(crate) async fn a_blocked_owner_shares_nothing_more(backend: &Backend) {
    let store = &*backend.store;
    let (eve, ann) = (person(backend, "eve").await, person(backend, "ann").await);
    let (bob, cat) = (person(backend, "bob").await, person(backend, "cat").await);
    let (report, _) = shared(store, &eve, 1).await;
    let (of_bob, _) = shared(store, &bob, 2).await;
    given(store, &eve, &report, "@ann").await;
    given(store, &bob, &of_bob, "@ann").await;
    let blocked = answered(store, &ann, &report, ShareAction::Block).await;
    assert_eq!(blocked, Ok(ShareState::Declined));
    let more = saved(store, &draft(&eve, "more", 3)).await;
    assert!(given(store, &eve, &more, "@ann").await, "whoever is blocked does not learn of it");
    // Nor does another account bypass the block with the owner's workflow.
    grant(store, &grant_of(&eve, id(&more), &cat, AccessRole::Admin)).await;
    assert!(given(store, &cat, &more, "ann@example.com").await);
    assert_eq!(names(store, &eve, &id(&more)).await.len(), 3);
    let left: Vec<String> = shares(store, &ann, None).await.iter().map(Share::reference).collect();
    assert_eq!(left, ["@bob/report"]);
    assert_eq!(view(store, &ann, &id(&more), None).await, NameMatch::Nothing);
    let declined = shares(store, &ann, Some(ShareState::Declined)).await;
    assert!(declined.len() == 2 && declined.iter().all(|share| share.is_blocked));
    // Others are not affected, and accepting one share unblocks its owner.
    given(store, &eve, &more, "@bob").await;
    assert_eq!(shares(store, &bob, None).await.len(), 1);
    assert_eq!(answered(store, &ann, &more, ShareAction::Accept).await, Ok(ShareState::Accepted));
    let third = saved(store, &draft(&eve, "third", 4)).await;
    given(store, &eve, &third, "@ann").await;
    assert_eq!(shares(store, &ann, Some(ShareState::Pending)).await.len(), 2);
}

pub(crate) async fn a_grant_keeps_the_name_it_was_made_to(backend: &Backend) {
    let store = &*backend.store;
    let (eve, ann) = (person(backend, "eve").await, person(backend, "ann").await);
    let (report, _) = shared(store, &eve, 1).await;
    let which = id(&report);
    given(store, &eve, &report, "@ann").await;
    assert_eq!(names(store, &eve, &which).await, ["@ann"]);
    // An address of the same person is one more line, like that of another.
    given(store, &eve, &report, "ann@example.com").await;
    assert_eq!(names(store, &eve, &which).await, ["@ann", "ann@example.com"]);
    let revokes = async |text: &str| {
        let order = GrantRevocation {
            caller: eve.clone(),
            which: which.clone(),
            grantee: name(text),
            at: at(60),
        };
        match store.workflows().revoke(&behalf(&eve), &order, None).await.unwrap() {
            WriteOutcome::Done(revoking) => revoking.was_there,
            other => panic!("{other:?}"),
        }
    };
    assert!(revokes("@ann").await);
    assert!(!revokes("@ann").await);
    assert_eq!(names(store, &eve, &which).await, ["ann@example.com"]);
    assert_eq!(seen(store, &ann, &which, None).await.reached.role, AccessRole::View);
    assert!(!revokes(ann.as_str()).await, "no other name tells who has the address");
    assert!(!revokes("nobody@example.com").await);
    assert!(revokes("ann@example.com").await);
    assert_eq!(view(store, &ann, &which, None).await, NameMatch::Nothing);
    // The highest role and the lowest floor of all names count.
    let second = saved(store, &super::workflows::next(draft(&eve, "report", 2), &report)).await;
    let by = |text: &str, role, with_history| WorkflowGrantOrder {
        grantee: name(text),
        with_history,
        ..grant_of(&eve, id(&second), &eve, role)
    };
    grant(store, &by("@ann", AccessRole::Edit, false)).await;
    grant(store, &by("ann@example.com", AccessRole::View, true)).await;
    let view_now = seen(store, &ann, &which, Some(1)).await;
    assert_eq!((view_now.reached.role, view_now.reached.floor), (AccessRole::Edit, 0));
    // A grant made by the previous version is shown and revoked.
    let bob = person(backend, "bob").await;
    let old = format!(
        "insert into workflow_grants (account_id, workflow_id, grantee_id, role, floor_version, \
         granted_by, granted_at) values ('{eve}', '{}', '{bob}', 'view', 0, '{eve}', 1)",
        report.workflow.id
    );
    backend.tamper(&old).await.unwrap();
    assert_eq!(names(store, &eve, &which).await, ["@bob", "@ann", "ann@example.com"]);
    assert!(!revokes("bob@example.com").await);
    assert!(revokes("@bob").await);
    assert_eq!(view(store, &bob, &which, None).await, NameMatch::Nothing);
}

pub(crate) async fn a_grant_to_an_unknown_address_is_like_any_other(backend: &Backend) {
    let store = &*backend.store;
    let (eve, cat) = (person(backend, "eve").await, person(backend, "cat").await);
    let (report, _) = shared(store, &eve, 1).await;
    assert!(given(store, &eve, &report, "new@example.com").await);
    assert!(!given(store, &eve, &report, "@nobody").await);
    assert!(!given(store, &eve, &report, "eve@example.com").await, "the owner's own");
    assert_eq!(names(store, &eve, &id(&report)).await, ["new@example.com"]);
    // An administrator cannot probe the owner's addresses, either.
    grant(store, &grant_of(&eve, id(&report), &cat, AccessRole::Admin)).await;
    assert!(given(store, &cat, &report, "eve@example.com").await);
    assert!(!given(store, &cat, &report, "@eve").await);
    assert_eq!(seen(store, &eve, &id(&report), None).await.reached.role, AccessRole::Owner);
    // The grant finds its account once that is created.
    let code = NewLoginCode {
        email: "new@example.com".to_owned(),
        purpose: LoginPurpose::Register,
        code_hash: "h".to_owned(),
        at: at(90),
        expires_at: Timestamp::from_micros(at(90).micros() + CODE_MICROS),
    };
    store.logins().put_code(&Behalf::Platform, &code, None).await.unwrap();
    let used = LoginCodeUse {
        email: code.email.clone(),
        code_hash: code.code_hash.clone(),
        account: AccountId::new(at(90), 7),
        grant_micros: 1,
        at: at(90),
    };
    let entered = store.logins().use_code(&Behalf::Platform, &used, None).await.unwrap();
    let WriteOutcome::Done(entered) = entered else { panic!("{entered:?}") };
    let new = entered.profile.account;
    let [share] = &shares(store, &new, None).await[..] else { panic!() };
    assert_eq!((share.reference().as_str(), share.state), ("@eve/report", ShareState::Pending));
    assert_eq!(seen(store, &new, &id(&report), None).await.reached.role, AccessRole::View);
}

pub(crate) async fn grants_are_limited_per_day_and_by_pending_ones(backend: &Backend) {
    let store = &*backend.store;
    let (eve, ann) = (person(backend, "eve").await, person(backend, "ann").await);
    let mut made = Vec::new();
    for number in 1..=MOST_WAITING + 1 {
        made.push(saved(store, &draft(&eve, &format!("report {number}"), number)).await);
    }
    let last = made.last().unwrap();
    let waits = WorkflowRefusal::TooManyWaiting;
    // An unregistered address has the same limit as an account that does not answer.
    for to in ["ann@example.com", "nobody@example.com"] {
        for saved in &made[..made.len() - 1] {
            assert!(given(store, &eve, saved, to).await);
        }
        let order = WorkflowGrantOrder {
            grantee: name(to),
            ..grant_of(&eve, id(last), &eve, AccessRole::View)
        };
        assert_eq!(grant(store, &order).await, WriteOutcome::Refused(waits.clone()));
    }
    used(store, &ann, &made[0]).await;
    assert!(given(store, &eve, last, "ann@example.com").await);
    // The daily limit includes revoked grants; the next day starts over.
    let done = 2 * MOST_WAITING + 1;
    let order = |to: u32, at| WorkflowGrantOrder {
        grantee: name(&format!("p{to}@example.com")),
        at,
        ..grant_of(&eve, id(last), &eve, AccessRole::View)
    };
    for to in done..GRANTS_A_DAY {
        let order = order(to, at(50));
        assert!(matches!(grant(store, &order).await, WriteOutcome::Done(_)), "{to}");
        let back = GrantRevocation {
            caller: eve.clone(),
            which: id(last),
            grantee: order.grantee,
            at: at(60),
        };
        store.workflows().revoke(&behalf(&eve), &back, None).await.unwrap();
    }
    let over = WriteOutcome::Refused(WorkflowRefusal::GrantedTooOften);
    assert_eq!(grant(store, &order(0, at(50))).await, over);
    let tomorrow = Timestamp::from_micros(at(50).micros() + 86_400_000_000);
    assert!(matches!(grant(store, &order(0, tomorrow)).await, WriteOutcome::Done(_)));
}

pub(crate) async fn a_repeated_grant_counts_for_its_day(backend: &Backend) {
    let store = &*backend.store;
    let eve = person(backend, "eve").await;
    let (report, _) = shared(store, &eve, 1).await;
    let order = |at| WorkflowGrantOrder {
        grantee: name("ann@example.com"),
        at,
        ..grant_of(&eve, id(&report), &eve, AccessRole::View)
    };
    for time in 0..GRANTS_A_DAY {
        assert!(matches!(grant(store, &order(at(50))).await, WriteOutcome::Done(_)), "{time}");
    }
    let over = WriteOutcome::Refused(WorkflowRefusal::GrantedTooOften);
    assert_eq!(grant(store, &order(at(50))).await, over);
    let tomorrow = Timestamp::from_micros(at(50).micros() + 86_400_000_000);
    assert!(matches!(grant(store, &order(tomorrow)).await, WriteOutcome::Done(_)));
}

pub(crate) async fn a_revoked_grant_ends_for_the_account_it_was_made_to(backend: &Backend) {
    let store = &*backend.store;
    let (eve, ann) = (person(backend, "eve").await, person(backend, "ann").await);
    let (report, _) = shared(store, &eve, 1).await;
    let second = saved(store, &super::workflows::next(draft(&eve, "report", 2), &report)).await;
    let which = id(&second);
    let by = |text: &str, role, with_history| WorkflowGrantOrder {
        grantee: name(text),
        with_history,
        ..grant_of(&eve, which.clone(), &eve, role)
    };
    grant(store, &by("@ann", AccessRole::Edit, true)).await;
    grant(store, &by("ann@example.com", AccessRole::View, false)).await;
    assert_eq!(seen(store, &ann, &which, Some(1)).await.reached.floor, 0);
    // The handle belongs to another account by now.
    let new = user(store, "new").await;
    for sql in [
        format!("update accounts set handle = 'old' where id = '{ann}'"),
        format!("update accounts set handle = 'ann' where id = '{new}'"),
        format!("update handles set account_id = '{new}' where handle = 'ann'"),
    ] {
        backend.tamper(&sql).await.unwrap();
    }
    assert_eq!(seen(store, &ann, &which, None).await.reached.role, AccessRole::Edit, "until then");
    grant(store, &by("@ann", AccessRole::View, false)).await;
    let reached = seen(store, &new, &which, None).await.reached;
    assert_eq!((reached.role, reached.floor), (AccessRole::View, 2), "nothing is taken over");
    assert_eq!(view(store, &new, &which, Some(1)).await, NameMatch::Nothing);
    // The access that the other one has by another name stays, and no more than that.
    let reached = seen(store, &ann, &which, None).await.reached;
    assert_eq!((reached.role, reached.floor), (AccessRole::View, 2));
    assert_eq!(names(store, &eve, &which).await, ["@ann", "ann@example.com"]);
    let back = GrantRevocation {
        caller: eve.clone(),
        which: which.clone(),
        grantee: name("ann@example.com"),
        at: at(60),
    };
    store.workflows().revoke(&behalf(&eve), &back, None).await.unwrap();
    assert_eq!(view(store, &ann, &which, None).await, NameMatch::Nothing);
}
