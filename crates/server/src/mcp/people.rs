//! The tools for handles, teams, invitations and keys.

use futures::{FutureExt as _, future::BoxFuture};
use jurat_core::{
    share::ShareVerb,
    team::{InvitationKind, Resolution},
};
use jurat_engine::{EnginePage, InvitationQuery, KeyRef, ShareFilter};
use jurat_wire::{
    api::{
        credits::{self, Month},
        invitations,
        keys::{self, CreatedKey, KeyPage, ListedKey, RevokedKey},
        mcp::{arguments as tool, people as take},
        page::{Page, cursor},
        people, shares, teams,
    },
    problem::Problem,
};
use serde_json::{Value, json};

use super::{call::Call, verifiers::now};
use crate::encode::engine_problem;

type Answer<'a> = BoxFuture<'a, Result<Value, Problem>>;

pub(super) fn claim_handle(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let handle = people::decode_handle(arguments)?;
        Ok(json!(people::claimed(&now(engine.handle_claim(caller, handle, None).await)?)))
    }
    .boxed()
}

pub(super) fn rename_handle(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let handle = people::decode_handle(arguments)?;
        Ok(json!(people::claimed(&now(engine.handle_rename(caller, handle, None).await)?)))
    }
    .boxed()
}

pub(super) fn create_team(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let handle = people::decode_handle(arguments)?;
        Ok(json!(teams::team(&now(engine.team_create(caller, handle, None).await)?)))
    }
    .boxed()
}

pub(super) fn list_teams(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let role = take::teams(arguments)?;
        let found = engine.team_list(caller, role).await.map_err(|it| engine_problem(&it))?;
        Ok(json!(Page::new(found.iter().map(teams::team), None)))
    }
    .boxed()
}

pub(super) fn delete_team(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let team = take::one(arguments, "team_id")?;
        Ok(json!(teams::deleted(&now(engine.team_delete(caller, team, None).await)?)))
    }
    .boxed()
}

pub(super) fn list_team_members(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let team = take::one(arguments, "team_id")?;
        let found = engine.team_members(caller, team).await.map_err(|it| engine_problem(&it))?;
        Ok(json!(Page::new(found.iter().map(teams::member), None)))
    }
    .boxed()
}

pub(super) fn add_team_member(call: Call<'_>) -> Answer<'_> {
    offer(call, InvitationKind::TeamMembership, "user_identifier")
}

pub(super) fn transfer_team_ownership(call: Call<'_>) -> Answer<'_> {
    offer(call, InvitationKind::TeamOwnership, "new_owner_user_identifier")
}

fn offer<'a>(
    Call { engine, caller, arguments, .. }: Call<'a>,
    kind: InvitationKind,
    whom: &'static str,
) -> Answer<'a> {
    async move {
        let (team, user) = take::pair(arguments, ("team_id", whom))?;
        let made = engine.team_invite(caller, team, (kind, user), None).await;
        Ok(json!(invitations::sent(&now(made)?)))
    }
    .boxed()
}

pub(super) fn remove_team_member(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let (team, user) = take::pair(arguments, ("team_id", "user_identifier"))?;
        let (team, member) = now(engine.team_remove(caller, team, user, None).await)?;
        Ok(json!(teams::removed(&team, &member)))
    }
    .boxed()
}

pub(super) fn list_invitations(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let order = take::invitations(arguments)?;
        let limit = order.limit;
        let query = InvitationQuery {
            is_received: order.is_received,
            is_sent: order.is_sent,
            is_pending: order.is_pending,
            before: order.cursor,
            limit: limit + 1,
        };
        let found = engine.invitation_list(caller, query).await;
        let mut found = found.map_err(|it| engine_problem(&it))?;
        let next = cut(&mut found, limit, |it| cursor(&it.id));
        Ok(json!(Page::new(found.iter().map(invitations::listed), next.as_deref())))
    }
    .boxed()
}

pub(super) fn list_shares(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let (state, order) = take::shares(arguments)?;
        let limit = order.limit;
        let filter = ShareFilter { state, before: order.cursor, limit: limit + 1 };
        let found = engine.share_list(caller, filter).await;
        let mut found = found.map_err(|it| engine_problem(&it))?;
        let next = cut(&mut found, limit, |it| cursor(&it.id));
        Ok(json!(Page::new(found.iter().map(shares::share), next.as_deref())))
    }
    .boxed()
}

pub(super) fn accept_share(call: Call<'_>) -> Answer<'_> {
    answer_share(call, ShareVerb::Accept)
}

pub(super) fn decline_share(call: Call<'_>) -> Answer<'_> {
    answer_share(call, ShareVerb::Decline)
}

pub(super) fn block_share(call: Call<'_>) -> Answer<'_> {
    answer_share(call, ShareVerb::Block)
}

fn answer_share(Call { engine, caller, arguments, .. }: Call<'_>, verb: ShareVerb) -> Answer<'_> {
    async move {
        let id = take::share(arguments)?;
        let done = engine.share_answer(caller, id, verb, None).await;
        Ok(json!(shares::share(&now(done)?)))
    }
    .boxed()
}

/// Cuts a list that is one longer than asked for, which tells whether there is more.
pub(super) fn cut<T>(
    found: &mut Vec<T>,
    limit: u32,
    cursor: impl Fn(&T) -> String,
) -> Option<String> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = limit < found.len();
    found.truncate(limit);
    found.last().filter(|_| has_more).map(cursor)
}

pub(super) fn accept_invitation(call: Call<'_>) -> Answer<'_> {
    answer(call, Resolution::Accepted)
}

pub(super) fn decline_invitation(call: Call<'_>) -> Answer<'_> {
    answer(call, Resolution::Declined)
}

pub(super) fn cancel_invitation(call: Call<'_>) -> Answer<'_> {
    answer(call, Resolution::Cancelled)
}

fn answer(Call { engine, caller, arguments, .. }: Call<'_>, end: Resolution) -> Answer<'_> {
    async move {
        let id = take::one(arguments, "invitation_id")?;
        let ended = engine.invitation_answer(caller, id, end, None).await;
        Ok(json!(invitations::resolved(&now(ended)?)))
    }
    .boxed()
}

pub(super) fn mint_api_key(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let new = keys::decode_create(
            &json!({ "name": take::one(arguments, "name")? }),
            engine.clock().now(),
        )?;
        let issued = now(engine.key_create(caller, new, None).await)?;
        Ok(json!(CreatedKey::new(&issued.key, Some(&issued.clear), issued.replaces)))
    }
    .boxed()
}

pub(super) fn list_api_keys(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let order = tool::page(arguments)?;
        let page = EnginePage { after: order.cursor, limit: order.limit + 1 };
        let account = Some(caller.account());
        let found = engine.key_list(caller, account, &page).await;
        let mut found = found.map_err(|it| engine_problem(&it))?;
        let next_cursor = cut(&mut found, order.limit, |key| cursor(&key.id));
        Ok(json!(KeyPage { items: found.iter().map(ListedKey::from).collect(), next_cursor }))
    }
    .boxed()
}

pub(super) fn revoke_api_key(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let id = take::one(arguments, "key_id")?;
        let key = KeyRef { id_or_name: id.to_owned(), account: Some(caller.account().clone()) };
        now(engine.key_revoke(caller, key, None).await)?;
        Ok(json!(RevokedKey { id, revoked: true }))
    }
    .boxed()
}

pub(super) fn get_usage(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        take::nothing(arguments)?;
        let usage = engine.usage_show(caller).await.map_err(|it| engine_problem(&it))?;
        let month = Month {
            since: usage.since,
            until: usage.until,
            used_micros: usage.spent.micros,
            charged_rounds: usage.spent.rounds,
        };
        Ok(json!(credits::usage(usage.balance, usage.is_metered, month)))
    }
    .boxed()
}
