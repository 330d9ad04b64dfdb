//! The tools for handles, teams, invitations and keys.

use futures::FutureExt as _;
use jurat_core::{
    account::team::{InvitationKind, InvitationOutcome, TeamOffer},
    list::ListPage,
    workflow::share::ShareAction,
};
use jurat_engine::{InvitationQuery, KeyRef, ShareFilter};
use jurat_wire::api::{
    credits::{self, UsageMonth},
    invitations,
    keys::{self, CreatedKey, KeyPage, ListedKey, RevokedKey},
    kit::page::{PageBody, cursor},
    mcp::{arguments as tool, people as take},
    people, shares, teams,
};
use serde_json::json;

use super::{
    call::{ToolCall, ToolFuture},
    verifiers::now,
};
use crate::request::encode::engine_problem;

pub(super) fn claim_handle(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let handle = people::decode_handle(arguments)?;
        Ok(json!(people::claimed(&now(engine.handle_claim(caller, &handle, None).await)?)))
    }
    .boxed()
}

pub(super) fn rename_handle(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let handle = people::decode_handle(arguments)?;
        Ok(json!(people::claimed(&now(engine.handle_rename(caller, &handle, None).await)?)))
    }
    .boxed()
}

pub(super) fn create_team(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let handle = people::decode_handle(arguments)?;
        Ok(json!(teams::team(&now(engine.team_create(caller, &handle, None).await)?)))
    }
    .boxed()
}

pub(super) fn list_teams(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let role = take::teams(arguments)?;
        let found = engine.team_list(caller, role).await.map_err(|it| engine_problem(&it))?;
        Ok(json!(PageBody::new(found.iter().map(teams::team), None)))
    }
    .boxed()
}

pub(super) fn delete_team(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let team = take::one(arguments, "team_id")?;
        Ok(json!(teams::deleted(&now(engine.team_delete(caller, team, None).await)?)))
    }
    .boxed()
}

pub(super) fn list_team_members(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let team = take::one(arguments, "team_id")?;
        let found = engine.team_members(caller, team).await.map_err(|it| engine_problem(&it))?;
        Ok(json!(PageBody::new(found.iter().map(teams::member), None)))
    }
    .boxed()
}

pub(super) fn add_team_member(call: ToolCall<'_>) -> ToolFuture<'_> {
    offer(call, InvitationKind::TeamMembership, "user_identifier")
}

pub(super) fn transfer_team_ownership(call: ToolCall<'_>) -> ToolFuture<'_> {
    offer(call, InvitationKind::TeamOwnership, "new_owner_user_identifier")
}

fn offer<'a>(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'a>,
    kind: InvitationKind,
    whom: &'static str,
) -> ToolFuture<'a> {
    async move {
        let (team, to) = take::pair(arguments, ("team_id", whom))?;
        let made = engine.team_invite(caller, team, TeamOffer { kind, to }, None).await;
        Ok(json!(invitations::sent(&now(made)?)))
    }
    .boxed()
}

pub(super) fn remove_team_member(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let (team, user) = take::pair(arguments, ("team_id", "user_identifier"))?;
        let (team, member) = now(engine.team_remove(caller, team, user, None).await)?;
        Ok(json!(teams::removed(&team, &member)))
    }
    .boxed()
}

pub(super) fn list_invitations(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
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
        Ok(json!(PageBody::new(found.iter().map(invitations::listed), next.as_deref())))
    }
    .boxed()
}

pub(super) fn list_shares(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let (state, order) = take::shares(arguments)?;
        let limit = order.limit;
        let filter = ShareFilter { state, before: order.cursor, limit: limit + 1 };
        let found = engine.share_list(caller, filter).await;
        let mut found = found.map_err(|it| engine_problem(&it))?;
        let next = cut(&mut found, limit, |it| cursor(&it.id));
        Ok(json!(PageBody::new(found.iter().map(shares::share), next.as_deref())))
    }
    .boxed()
}

pub(super) fn accept_share(call: ToolCall<'_>) -> ToolFuture<'_> {
    answer_share(call, ShareAction::Accept)
}

pub(super) fn decline_share(call: ToolCall<'_>) -> ToolFuture<'_> {
    answer_share(call, ShareAction::Decline)
}

pub(super) fn block_share(call: ToolCall<'_>) -> ToolFuture<'_> {
    answer_share(call, ShareAction::Block)
}

fn answer_share(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
    verb: ShareAction,
) -> ToolFuture<'_> {
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

pub(super) fn accept_invitation(call: ToolCall<'_>) -> ToolFuture<'_> {
    answer(call, InvitationOutcome::Accepted)
}

pub(super) fn decline_invitation(call: ToolCall<'_>) -> ToolFuture<'_> {
    answer(call, InvitationOutcome::Declined)
}

pub(super) fn cancel_invitation(call: ToolCall<'_>) -> ToolFuture<'_> {
    answer(call, InvitationOutcome::Cancelled)
}

fn answer(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
    end: InvitationOutcome,
) -> ToolFuture<'_> {
    async move {
        let id = take::one(arguments, "invitation_id")?;
        let ended = engine.invitation_answer(caller, id, end, None).await;
        Ok(json!(invitations::resolved(&now(ended)?)))
    }
    .boxed()
}

pub(super) fn mint_api_key(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
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

pub(super) fn list_api_keys(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let order = tool::page(arguments)?;
        let page = ListPage { after: order.cursor, limit: order.limit + 1 };
        let account = Some(caller.account());
        let found = engine.key_list(caller, account, &page).await;
        let mut found = found.map_err(|it| engine_problem(&it))?;
        let next_cursor = cut(&mut found, order.limit, |key| cursor(&key.id));
        Ok(json!(KeyPage { items: found.iter().map(ListedKey::from).collect(), next_cursor }))
    }
    .boxed()
}

pub(super) fn revoke_api_key(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let id = take::one(arguments, "key_id")?;
        let key = KeyRef { id_or_name: id.to_owned(), account: Some(caller.account().clone()) };
        now(engine.key_revoke(caller, key, None).await)?;
        Ok(json!(RevokedKey { id, revoked: true }))
    }
    .boxed()
}

pub(super) fn get_usage(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        take::nothing(arguments)?;
        let usage = engine.usage_show(caller).await.map_err(|it| engine_problem(&it))?;
        let month = UsageMonth {
            since: usage.since,
            until: usage.until,
            used_micros: usage.spent.micros,
            charged_rounds: usage.spent.rounds,
        };
        Ok(json!(credits::usage(usage.balance, usage.is_metered, month)))
    }
    .boxed()
}
