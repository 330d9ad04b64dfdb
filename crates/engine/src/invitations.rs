//! Operations on invitations.

use jurat_core::{
    caller::{Caller, Scope},
    code::Code,
    team::{INVITATIONS_A_DAY, Invitation, Resolution},
};
use jurat_store::{AnswerRefused, Behalf, InvitationAnswer, InvitationFilter, InvitationRefused};

use crate::{Done, Engine, EngineError, Keyed, executors::require, people::behalf};

/// Which of the caller's invitations are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationQuery {
    pub is_received: bool,
    pub is_sent: bool,
    /// Only those that can still be answered.
    pub is_pending: bool,
    /// Starts behind this one.
    pub before: Option<String>,
    pub limit: u32,
}

impl Engine {
    /// Invitations that the caller received or sent, newest first.
    pub async fn invitation_list(
        &self,
        caller: &Caller,
        query: InvitationQuery,
    ) -> Result<Vec<Invitation>, EngineError> {
        require(caller, Scope::AccountWrite)?;
        let InvitationQuery { is_received, is_sent, is_pending, before, limit } = query;
        let (account, now) = (caller.account().clone(), self.inner.clock.now());
        let filter =
            InvitationFilter { account, is_received, is_sent, is_pending, before, limit, now };
        Ok(self.inner.store.sharing().invitation_list(&behalf(caller), &filter).await?)
    }

    /// Accepts or declines an invitation, or calls back one that the caller sent.
    pub async fn invitation_answer(
        &self,
        caller: &Caller,
        id: &str,
        resolution: Resolution,
        keyed: Option<Keyed<Invitation>>,
    ) -> Result<Done<Invitation>, EngineError> {
        require(caller, Scope::AccountWrite)?;
        let (by, at) = (caller.account().clone(), self.inner.clock.now());
        let answer = InvitationAnswer { id: id.to_owned(), by, resolution, at };
        // What changes hands belongs to two accounts; the operation itself asks who may answer.
        let sharing = self.inner.store.sharing();
        let write = async |once: Option<&_>| {
            sharing.invitation_answer(&Behalf::Platform, &answer, once).await
        };
        let done = self.write_once(caller, keyed.as_ref(), write).await?;
        done.map_err(|refused| unanswered(refused, id, resolution))
    }
}

pub(crate) fn unknown_user(user: &str) -> EngineError {
    EngineError::NotFound { what: "user", id: user.chars().take(80).collect() }
}

/// Why nothing was offered.
pub(crate) fn refusal(refused: &InvitationRefused, user: &str) -> EngineError {
    match refused {
        InvitationRefused::Unknown => unknown_user(user),
        InvitationRefused::Oneself => {
            EngineError::Conflict(format!("`{user}` is who asks; it is yours already"))
        }
        InvitationRefused::Pending => EngineError::refused(
            Code::InvitationAlreadyPending,
            "such an invitation is pending already",
        ),
        InvitationRefused::TooMany => EngineError::refused(
            Code::QuotaExceeded,
            format!("an account sends at most {INVITATIONS_A_DAY} invitations a day"),
        ),
    }
}

fn unanswered(refused: AnswerRefused, id: &str, wanted: Resolution) -> EngineError {
    match refused {
        AnswerRefused::Unknown => {
            EngineError::NotFound { what: "invitation", id: id.chars().take(80).collect() }
        }
        AnswerRefused::OtherSide if wanted == Resolution::Cancelled => {
            EngineError::Denied("only whoever sent the invitation may cancel it")
        }
        AnswerRefused::OtherSide => {
            EngineError::Denied("only whoever is invited may answer the invitation")
        }
        AnswerRefused::Expired => {
            EngineError::refused(Code::InvitationExpired, "the invitation has expired")
        }
        AnswerRefused::Resolved(before) => EngineError::refused(
            Code::InvitationAlreadyResolved,
            format!("the invitation was {before} already"),
        ),
        AnswerRefused::Conflict(reason) => EngineError::Conflict(reason),
        AnswerRefused::TooMany(reason) => EngineError::refused(Code::QuotaExceeded, reason),
    }
}
