//! Teams and invitations.

use std::sync::Arc;

use futures::future::join_all;
use jurat_core::{
    account::{
        AccountName,
        team::{
            INVITATIONS_A_DAY, Invitation, InvitationFilter, InvitationKind, InvitationOutcome,
            Team, TeamRole,
        },
    },
    id::{AccountId, uuid},
    time::Timestamp,
};
use jurat_store::{
    Behalf, HandleChange, InvitationAnswer, InvitationAnswerRefusal, InvitationRefusal,
    MemberRemoval, NewTeam, Store, TeamInvite, TeamListQuery, TeamLookup, TeamRefusal,
    WriteOutcome,
};

use crate::{
    backend::Backend,
    samples::{account, at},
};

const DAY: i64 = 86_400_000_000;

fn on(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

/// A user with a handle of the same name.
async fn user(store: &Store, name: &str) -> AccountId {
    let account = account(name);
    store.accounts().ensure(&Behalf::Platform, &account, &at(0)).await.unwrap();
    let claim = HandleChange { account: account.clone(), handle: name.to_owned(), at: on(0) };
    store.people().claim_handle(&Behalf::Platform, &claim, None).await.unwrap();
    account
}

async fn team(store: &Store, owner: &AccountId, handle: &str) -> Team {
    match made(store, owner, handle, 1).await {
        WriteOutcome::Done(team) => team,
        other => panic!("{other:?}"),
    }
}

async fn made(
    store: &Store,
    owner: &AccountId,
    handle: &str,
    micros: i64,
) -> WriteOutcome<Team, TeamRefusal> {
    let id = account(&format!("{}{handle}", &owner.as_str()[5..]));
    let new =
        NewTeam { account: id, handle: handle.to_owned(), owner: owner.clone(), at: on(micros) };
    store.teams().create(&Behalf::Account(owner.clone()), &new, None).await.unwrap()
}

fn asked(team: &str, by: &AccountId, micros: i64) -> TeamLookup {
    let team = AccountName::Handle(team.to_owned());
    TeamLookup { team, by: by.clone(), at: on(micros) }
}

fn invite(asked: TeamLookup, kind: InvitationKind, to: &str, number: u64) -> TeamInvite {
    let to = AccountName::parse(to).unwrap();
    let invitation_id = uuid(Timestamp::from_millis(number.cast_signed()), 0);
    TeamInvite { asked, invitation_id, kind, to }
}

async fn invited(store: &Store, invite: &TeamInvite) -> WriteOutcome<Invitation, TeamRefusal> {
    let behalf = Behalf::Account(invite.asked.by.clone());
    store.teams().invite(&behalf, invite, None).await.unwrap()
}

async fn offered(store: &Store, invite: &TeamInvite) -> Invitation {
    match invited(store, invite).await {
        WriteOutcome::Done(invitation) => invitation,
        other => panic!("{other:?}"),
    }
}

async fn answered(
    store: &Store,
    id: &str,
    by: &AccountId,
    resolution: InvitationOutcome,
    micros: i64,
) -> WriteOutcome<Invitation, InvitationAnswerRefusal> {
    let at = on(micros);
    let answer = InvitationAnswer { id: id.to_owned(), by: by.clone(), resolution, at };
    store.invitations().answer(&Behalf::Platform, &answer, None).await.unwrap()
}

async fn members(store: &Store, team: &str, by: &AccountId) -> Option<Vec<(String, TeamRole)>> {
    let found = store.teams().members(&Behalf::Platform, &asked(team, by, 5)).await.unwrap();
    found.map(|(_, members)| {
        members.into_iter().map(|it| (it.account.to_string(), it.role)).collect()
    })
}

async fn removed(store: &Store, by: &AccountId, member: &str) -> Option<TeamRefusal> {
    let removal =
        MemberRemoval { asked: asked("crew", by, 9), member: AccountName::parse(member).unwrap() };
    match store.teams().remove_member(&Behalf::Platform, &removal, None).await.unwrap() {
        WriteOutcome::Refused(refused) => Some(refused),
        WriteOutcome::Done(_) => None,
        WriteOutcome::Repeated => panic!(),
    }
}

const JOIN: InvitationKind = InvitationKind::TeamMembership;
const OWN: InvitationKind = InvitationKind::TeamOwnership;

pub(crate) async fn a_team_is_made_by_somebody_with_a_handle(backend: &Backend) {
    let store = &*backend.store;
    let nameless = account("nameless");
    store.accounts().ensure(&Behalf::Platform, &nameless, &at(0)).await.unwrap();
    assert_eq!(
        made(store, &nameless, "crew", 1).await,
        WriteOutcome::Refused(TeamRefusal::NoHandle)
    );
    let ann = user(store, "ann").await;
    assert_eq!(made(store, &ann, "ann", 1).await, WriteOutcome::Refused(TeamRefusal::HandleTaken));
    let crew = team(store, &ann, "crew").await;
    assert_eq!((crew.owner.clone(), crew.role), (ann.clone(), TeamRole::Owner));
    let listed = |role| async move {
        let wanted = TeamListQuery { account: account("ann"), role };
        let found = store.teams().list(&Behalf::Platform, &wanted).await;
        found.unwrap().into_iter().map(|team| team.handle).collect::<Vec<_>>()
    };
    assert_eq!(listed(None).await, ["crew"]);
    assert_eq!(listed(Some(TeamRole::Owner)).await, ["crew"]);
    assert!(listed(Some(TeamRole::Member)).await.is_empty());
    // Users and teams share one set of handles.
    let name = AccountName::Handle("crew".to_owned());
    let found = store.people().profile(&Behalf::Platform, &name, &on(2)).await.unwrap();
    assert_eq!(found.unwrap().account, crew.account);
}

pub(crate) async fn a_member_joins_by_accepting_and_leaves_alone(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (user(store, "ann").await, user(store, "bob").await);
    team(store, &ann, "crew").await;
    let offer = offered(store, &invite(asked("crew", &ann, 2), JOIN, "@bob", 1)).await;
    assert_eq!((offer.from_label.as_str(), offer.to_label.as_str()), ("@ann", "@bob"));
    assert_eq!(offer.target_label, "@crew");
    assert_eq!(members(store, "crew", &bob).await, None, "nobody joins unasked");
    let WriteOutcome::Done(end) =
        answered(store, &offer.id, &bob, InvitationOutcome::Accepted, 3).await
    else {
        panic!()
    };
    assert_eq!((end.resolution, end.resolved_at), (Some(InvitationOutcome::Accepted), Some(on(3))));
    let both = vec![(ann.to_string(), TeamRole::Owner), (bob.to_string(), TeamRole::Member)];
    assert_eq!(members(store, "crew", &bob).await, Some(both));
    let again = invited(store, &invite(asked("crew", &ann, 4), JOIN, "@bob", 2)).await;
    assert_eq!(again, WriteOutcome::Refused(TeamRefusal::AlreadyMember));
    assert_eq!(removed(store, &bob, "@ann").await, Some(TeamRefusal::NotOwner));
    assert_eq!(removed(store, &ann, "@ann").await, Some(TeamRefusal::OwnerStays));
    assert_eq!(removed(store, &bob, "@bob").await, None);
    assert_eq!(removed(store, &ann, "@bob").await, Some(TeamRefusal::NotMember));
    assert_eq!(members(store, "crew", &bob).await, None);
}

pub(crate) async fn nobody_else_sees_or_changes_a_team(backend: &Backend) {
    let store = &*backend.store;
    let (ann, eve) = (user(store, "ann").await, user(store, "eve").await);
    let crew = team(store, &ann, "crew").await;
    let by_eve = asked("crew", &eve, 2);
    assert_eq!(members(store, "crew", &eve).await, None);
    let offer = invited(store, &invite(by_eve.clone(), JOIN, "@eve", 1)).await;
    assert_eq!(offer, WriteOutcome::Refused(TeamRefusal::Unknown));
    assert_eq!(removed(store, &eve, "@ann").await, Some(TeamRefusal::Unknown));
    let deleted = store.teams().delete(&Behalf::Platform, &by_eve, None).await.unwrap();
    assert_eq!(deleted, WriteOutcome::Refused(TeamRefusal::Unknown));
    // A user is not a team, and a team is not a user.
    assert_eq!(members(store, "ann", &ann).await, None);
    let to_team = invite(asked("crew", &ann, 2), JOIN, crew.account.as_str(), 1);
    let unknown = WriteOutcome::Refused(TeamRefusal::Invitation(InvitationRefusal::Unknown));
    assert_eq!(invited(store, &to_team).await, unknown);
    let to_nobody = invite(asked("crew", &ann, 2), JOIN, "@nobody", 1);
    assert_eq!(invited(store, &to_nobody).await, unknown);
    let to_self = invite(asked("crew", &ann, 2), OWN, "@ann", 1);
    let oneself = WriteOutcome::Refused(TeamRefusal::Invitation(InvitationRefusal::Oneself));
    assert_eq!(invited(store, &to_self).await, oneself);
}

pub(crate) async fn an_invitation_is_answered_once_and_in_time(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (user(store, "ann").await, user(store, "bob").await);
    let eve = user(store, "eve").await;
    team(store, &ann, "crew").await;
    let offer = offered(store, &invite(asked("crew", &ann, 0), JOIN, "@bob", 1)).await;
    let pending = invited(store, &invite(asked("crew", &ann, 1), JOIN, "@bob", 2)).await;
    assert_eq!(pending, WriteOutcome::Refused(TeamRefusal::Invitation(InvitationRefusal::Pending)));
    let refused = async |by: &AccountId, resolution, micros| match answered(
        store, &offer.id, by, resolution, micros,
    )
    .await
    {
        WriteOutcome::Refused(refused) => refused,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(&eve, InvitationOutcome::Accepted, 2).await,
        InvitationAnswerRefusal::Unknown
    );
    assert_eq!(
        refused(&ann, InvitationOutcome::Accepted, 2).await,
        InvitationAnswerRefusal::OtherSide
    );
    assert_eq!(
        refused(&bob, InvitationOutcome::Cancelled, 2).await,
        InvitationAnswerRefusal::OtherSide
    );
    assert_eq!(
        refused(&bob, InvitationOutcome::Accepted, 14 * DAY).await,
        InvitationAnswerRefusal::Expired
    );
    let declined =
        answered(store, &offer.id, &bob, InvitationOutcome::Declined, 14 * DAY - 1).await;
    assert!(matches!(declined, WriteOutcome::Done(_)));
    let before = InvitationAnswerRefusal::Resolved(InvitationOutcome::Declined);
    assert_eq!(refused(&bob, InvitationOutcome::Accepted, 3).await, before);
    // An expired invitation does not block the next.
    let second = offered(store, &invite(asked("crew", &ann, 1), JOIN, "@bob", 3)).await;
    let third = offered(store, &invite(asked("crew", &ann, 15 * DAY), JOIN, "@bob", 4)).await;
    let late = answered(store, &second.id, &ann, InvitationOutcome::Cancelled, 15 * DAY).await;
    assert_eq!(late, WriteOutcome::Refused(InvitationAnswerRefusal::Expired));
    let cancelled = answered(store, &third.id, &ann, InvitationOutcome::Cancelled, 15 * DAY).await;
    assert!(matches!(cancelled, WriteOutcome::Done(_)));
}

pub(crate) async fn an_address_without_an_account_is_invited_like_any_other(backend: &Backend) {
    let store = &*backend.store;
    let ann = user(store, "ann").await;
    team(store, &ann, "crew").await;
    let offer = offered(store, &invite(asked("crew", &ann, 1), JOIN, "new@example.com", 1)).await;
    assert_eq!(offer.to_label, "new@example.com");
    let again = invited(store, &invite(asked("crew", &ann, 2), JOIN, "New@Example.com", 2)).await;
    assert_eq!(again, WriteOutcome::Refused(TeamRefusal::Invitation(InvitationRefusal::Pending)));
}

pub(crate) async fn a_team_is_transferred_once(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (user(store, "ann").await, user(store, "bob").await);
    let cat = user(store, "cat").await;
    team(store, &ann, "crew").await;
    let joining = offered(store, &invite(asked("crew", &ann, 1), JOIN, "@cat", 1)).await;
    let owning = offered(store, &invite(asked("crew", &ann, 1), OWN, "@bob", 2)).await;
    let other = invited(store, &invite(asked("crew", &ann, 1), OWN, "@cat", 3)).await;
    assert_eq!(other, WriteOutcome::Refused(TeamRefusal::Invitation(InvitationRefusal::Pending)));
    let taken = answered(store, &owning.id, &bob, InvitationOutcome::Accepted, 2).await;
    assert!(matches!(taken, WriteOutcome::Done(_)), "{taken:?}");
    let now = vec![(ann.to_string(), TeamRole::Member), (bob.to_string(), TeamRole::Owner)];
    assert_eq!(members(store, "crew", &ann).await, Some(now));
    let late = invited(store, &invite(asked("crew", &ann, 3), JOIN, "@cat", 4)).await;
    assert_eq!(late, WriteOutcome::Refused(TeamRefusal::NotOwner));
    // The new owner may withdraw the offers of the former one.
    let theirs = answered(store, &joining.id, &ann, InvitationOutcome::Cancelled, 3).await;
    assert_eq!(theirs, WriteOutcome::Refused(InvitationAnswerRefusal::Unknown));
    let joined = answered(store, &joining.id, &cat, InvitationOutcome::Accepted, 3).await;
    assert!(matches!(joined, WriteOutcome::Done(_)), "{joined:?}");
}

pub(crate) async fn a_deleted_team_leaves_nothing_behind(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (user(store, "ann").await, user(store, "bob").await);
    team(store, &ann, "crew").await;
    let offer = offered(store, &invite(asked("crew", &ann, 1), JOIN, "@bob", 1)).await;
    let by_ann = asked("crew", &ann, 2);
    let deleted = store.teams().delete(&Behalf::Platform, &by_ann, None).await.unwrap();
    assert!(matches!(deleted, WriteOutcome::Done(_)), "{deleted:?}");
    assert_eq!(members(store, "crew", &ann).await, None);
    let late = answered(store, &offer.id, &bob, InvitationOutcome::Accepted, 3).await;
    let cancelled = InvitationAnswerRefusal::Resolved(InvitationOutcome::Cancelled);
    assert_eq!(late, WriteOutcome::Refused(cancelled));
    // Its handle is blocked for a while before another account can take it.
    let soon = made(store, &bob, "crew", 3).await;
    assert_eq!(soon, WriteOutcome::Refused(TeamRefusal::HandleTaken));
    let id = account("another");
    let new = NewTeam { account: id, handle: "crew".to_owned(), owner: bob, at: on(91 * DAY) };
    let later = store.teams().create(&Behalf::Platform, &new, None).await.unwrap();
    assert!(matches!(later, WriteOutcome::Done(_)), "{later:?}");
}

pub(crate) async fn many_concurrent_answers_count_once(backend: &Backend) {
    let (one, two) = (Arc::clone(&backend.store), backend.second().await);
    let (ann, bob) = (user(&one, "ann").await, user(&one, "bob").await);
    team(&one, &ann, "crew").await;
    let offer = offered(&one, &invite(asked("crew", &ann, 1), JOIN, "@bob", 1)).await;
    let ends = join_all((0..8).map(|index| {
        let store: &Store = if index % 2 == 0 { &one } else { &two };
        let (by, resolution) = match index % 4 {
            0 => (&bob, InvitationOutcome::Accepted),
            1 => (&bob, InvitationOutcome::Declined),
            _ => (&ann, InvitationOutcome::Cancelled),
        };
        answered(store, &offer.id, by, resolution, 2)
    }))
    .await;
    let done: Vec<_> = ends.iter().filter(|end| matches!(end, WriteOutcome::Done(_))).collect();
    assert_eq!(done.len(), 1, "{ends:?}");
    let [WriteOutcome::Done(end)] = done[..] else { panic!() };
    let is_member = members(&one, "crew", &bob).await.is_some();
    assert_eq!(is_member, end.resolution == Some(InvitationOutcome::Accepted));
    two.close().await;
}

pub(crate) async fn invitations_are_listed_newest_first_in_pages(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (user(store, "ann").await, user(store, "bob").await);
    for (number, handle) in [(1, "one"), (2, "two"), (3, "three")] {
        team(store, &ann, handle).await;
        offered(
            store,
            &invite(asked(handle, &ann, number * DAY), JOIN, "@bob", number.unsigned_abs()),
        )
        .await;
    }
    let listed = async |account: &AccountId, now, change: fn(&mut InvitationFilter)| {
        let mut filter = InvitationFilter {
            is_received: true,
            is_sent: true,
            is_pending: true,
            before: None,
            limit: 2,
        };
        change(&mut filter);
        let invitations = store.invitations();
        let found = invitations.list(&Behalf::Platform, account, &filter, &on(now)).await.unwrap();
        let label = |it: &Invitation| (it.target_label.clone(), it.resolution);
        (found.iter().map(label).collect::<Vec<_>>(), found.last().map(|it| it.id.clone()))
    };
    let (first, _) = listed(&bob, 4 * DAY, |_| ()).await;
    assert_eq!(first, [("@three".to_owned(), None), ("@two".to_owned(), None)]);
    let second = |it: &mut InvitationFilter| it.before = Some(uuid(Timestamp::from_millis(2), 0));
    let (second, _) = listed(&bob, 4 * DAY, second).await;
    assert_eq!(second, [("@one".to_owned(), None)]);
    assert!(listed(&bob, 4 * DAY, |it| it.is_received = false).await.0.is_empty());
    assert!(listed(&ann, 4 * DAY, |it| it.is_sent = false).await.0.is_empty());
    // The first has expired by then, and the list says so.
    assert_eq!(listed(&ann, 15 * DAY, |it| it.limit = 9).await.0.len(), 2);
    let all = |it: &mut InvitationFilter| {
        it.is_pending = false;
        it.limit = 9;
    };
    let (all, _) = listed(&ann, 15 * DAY, all).await;
    assert_eq!(all[2], ("@one".to_owned(), Some(InvitationOutcome::Expired)));
}

pub(crate) async fn invitations_are_limited(backend: &Backend) {
    let store = &*backend.store;
    let ann = user(store, "ann").await;
    team(store, &ann, "crew").await;
    for number in 0..INVITATIONS_A_DAY {
        let to = format!("user{number}@example.com");
        offered(store, &invite(asked("crew", &ann, 1), JOIN, &to, number.into())).await;
    }
    let more = invite(asked("crew", &ann, 2), JOIN, "more@example.com", 1_000);
    let too_many = WriteOutcome::Refused(TeamRefusal::Invitation(InvitationRefusal::TooMany));
    assert_eq!(invited(store, &more).await, too_many);
    let next_day = invite(asked("crew", &ann, 2 + DAY), JOIN, "more@example.com", 1_000);
    assert!(matches!(invited(store, &next_day).await, WriteOutcome::Done(_)));
}

/// What is offered to an account, or by it, by the names of the teams.
async fn pending(store: &Store, account: &AccountId, is_received: bool) -> Vec<String> {
    let filter = InvitationFilter {
        is_received,
        is_sent: !is_received,
        is_pending: true,
        before: None,
        limit: 9,
    };
    let invitations = store.invitations();
    let found = invitations.list(&Behalf::Platform, account, &filter, &on(3)).await.unwrap();
    found.into_iter().map(|it| it.target_label).collect()
}

pub(crate) async fn changes_of_one_team_do_not_affect_others(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (user(store, "ann").await, user(store, "bob").await);
    let (cat, eve) = (user(store, "cat").await, user(store, "eve").await);
    let mut number = 0;
    for handle in ["crew", "gang"] {
        team(store, &ann, handle).await;
        for (who, name) in [(&bob, "@bob"), (&cat, "@cat")] {
            number += 1;
            let offer = offered(store, &invite(asked(handle, &ann, 1), JOIN, name, number)).await;
            answered(store, &offer.id, who, InvitationOutcome::Accepted, 2).await;
        }
        number += 1;
        offered(store, &invite(asked(handle, &ann, 1), JOIN, "@eve", number)).await;
    }
    let roles = async |handle: &str, by: &AccountId| {
        let found = members(store, handle, by).await.unwrap();
        found.into_iter().map(|(who, role)| format!("{} {role}", &who[5..])).collect::<Vec<_>>()
    };
    let whole = ["ann owner", "bob member", "cat member"];
    assert_eq!(removed(store, &bob, "@bob").await, None);
    assert_eq!(roles("crew", &ann).await, ["ann owner", "cat member"]);
    assert_eq!(roles("gang", &bob).await, whole);
    // Nobody lists the offers of others.
    assert_eq!(pending(store, &eve, true).await, ["@gang", "@crew"]);
    assert_eq!(pending(store, &bob, true).await, [] as [&str; 0]);
    assert_eq!(pending(store, &bob, false).await, [] as [&str; 0]);
    let owning = offered(store, &invite(asked("crew", &ann, 1), OWN, "@cat", 20)).await;
    assert_eq!(pending(store, &eve, true).await, ["@gang", "@crew"]);
    answered(store, &owning.id, &cat, InvitationOutcome::Accepted, 3).await;
    assert_eq!(roles("crew", &ann).await, ["ann member", "cat owner"]);
    assert_eq!(roles("gang", &ann).await, whole);
    assert_eq!(
        (pending(store, &cat, false).await, pending(store, &ann, false).await),
        (vec!["@crew".to_owned()], vec!["@gang".to_owned()])
    );
    let granted = |team: &str| {
        format!(
            "insert into workflow_grants (account_id, workflow_id, grantee_id, role, floor_version, granted_by, granted_at) values ('acct_dan', 'w', 'acct_{team}', 'view', 0, 'acct_dan', 0);"
        )
    };
    backend.tamper(&(granted("anncrew") + &granted("anngang"))).await.unwrap();
    let deleted = store.teams().delete(&Behalf::Platform, &asked("crew", &cat, 4), None).await;
    assert!(matches!(deleted.unwrap(), WriteOutcome::Done(_)));
    assert_eq!(roles("gang", &bob).await, whole);
    assert_eq!(pending(store, &eve, true).await, ["@gang"]);
    // Its grants are gone, and those of the other are not.
    backend.tamper(&granted("anncrew")).await.unwrap();
    assert!(backend.tamper(&granted("anngang")).await.is_err(), "it is there already");
}
