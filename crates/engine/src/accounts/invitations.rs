//! Operations on invitations.

use jurat_core::{
    account::{
        AccountName,
        caller::{Caller, Scope},
        team::{
            INVITATIONS_A_DAY, Invitation, InvitationFilter, InvitationKind, InvitationOutcome,
        },
    },
    code::ProblemCode,
    id::{AccountId, uuid},
    workflow::operation::OfferOutcome,
};
use jurat_guard::mail::Mail;
use jurat_store::{Behalf, InvitationAnswer, InvitationAnswerRefusal, InvitationRefusal};

use crate::access::behalf_of;
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, access::require_scope,
};

impl Engine {
    /// Invitations that the caller received or sent, newest first.
    pub async fn invitation_list(
        &self,
        caller: &Caller,
        filter: &InvitationFilter,
    ) -> Result<Vec<Invitation>, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let (invitations, now) = (self.inner.store.invitations(), self.inner.clock.now());
        Ok(invitations.list(&behalf_of(caller), caller.account(), filter, &now).await?)
    }

    /// Accepts or declines an invitation, or withdraws one that the caller sent.
    pub async fn invitation_answer(
        &self,
        caller: &Caller,
        id: &str,
        resolution: InvitationOutcome,
        keyed: Option<IdempotentWrite<Invitation>>,
    ) -> Result<IdempotentOutcome<Invitation>, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let (by, at) = (caller.account().clone(), self.inner.clock.now());
        let answer = InvitationAnswer { id: id.to_owned(), by, resolution, at };
        // The transferred object concerns two accounts; the operation itself checks who may answer.
        let invitations = self.inner.store.invitations();
        let write =
            async |once: Option<&_>| invitations.answer(&Behalf::Platform, &answer, once).await;
        // Accepting may make the caller the owner of something, with everything stored for it.
        let leaves =
            if resolution == InvitationOutcome::Accepted { Leaves::Rows } else { Leaves::Less };
        let done = self.write_idempotent(caller, keyed.as_ref(), leaves, write).await?;
        done.map_err(|refused| answer_refusal(refused, id, resolution))
    }
}

impl Engine {
    /// Mails the offer, unless it was made before or the caller already has it.
    pub(crate) fn mail_offer<T>(&self, done: &IdempotentOutcome<OfferOutcome<T>>) {
        if let IdempotentOutcome::Now(OfferOutcome::Invitation(invitation)) = done {
            self.mail_invitation(invitation);
        }
    }

    /// Notifies the recipient, if they have an address. The lookup runs in the background: its
    /// duration would reveal whether the account exists.
    pub(crate) fn mail_invitation(&self, invitation: &Invitation) {
        let (engine, invitation) = (self.clone(), invitation.clone());
        let _sending = self.inner.background.spawn(async move {
            match engine.mail_address(&invitation.to).await {
                Ok(Some(address)) => engine.mail(engine.invitation_mail(&invitation, address)),
                Ok(None) => {}
                Err(error) => tracing::error!(error = %error, "could not mail an invitation"),
            }
        });
    }

    /// The address of an account; any other text is an address itself.
    pub(crate) async fn mail_address(&self, to: &str) -> Result<Option<String>, EngineError> {
        let Ok(account) = AccountId::parse(to) else { return Ok(Some(to.to_owned())) };
        let (name, now) = (AccountName::Id(account), self.inner.clock.now());
        let people = self.inner.store.people();
        let profile = people.profile(&Behalf::Platform, &name, &now).await?;
        Ok(profile.and_then(|profile| profile.email))
    }

    fn invitation_mail(&self, invitation: &Invitation, to: String) -> Mail {
        let Invitation { id, from_label, .. } = invitation;
        let terms = &self.inner.accounts;
        let place = terms.public_url.as_ref().map_or(String::new(), |url| format!(" at {url}"));
        let without = if terms.is_open {
            format!(
                "If this address has no account there yet, create one first:\n\n    jurat auth register {to}\n"
            )
        } else {
            "If this address has no account there yet, ask the operator for one.\n".to_owned()
        };
        let text = format!(
            "{from_label} offers you {} on the Jurat installation{place}.\n\nThe offer is open until {}. To accept or decline it:\n\n    jurat invitations accept {id}\n    jurat invitations decline {id}\n\n{without}If you do not know the sender, you can ignore this message.\n",
            offer_text(invitation),
            invitation.expires_at.date(),
        );
        let id = uuid(invitation.created_at, self.inner.clock.bits());
        Mail { id, to, subject: "An invitation on Jurat".to_owned(), text }
    }
}

/// The offer in our words: the name of a workflow is foreign text.
fn offer_text(invitation: &Invitation) -> String {
    let label = &invitation.target_label;
    match invitation.kind {
        InvitationKind::TeamMembership => format!("membership in the team {label}"),
        InvitationKind::TeamOwnership => format!("the team {label}"),
        InvitationKind::TemplateOwnership => format!("the template {label}"),
        InvitationKind::WorkflowOwnership => format!("the workflow {}", invitation.target_id),
    }
}

pub(crate) fn unknown_user(user: &str) -> EngineError {
    EngineError::NotFound { what: "user", id: user.chars().take(80).collect() }
}

/// Why nothing was offered.
pub(crate) fn offer_refusal(refused: &InvitationRefusal, user: &str) -> EngineError {
    match refused {
        InvitationRefusal::Unknown => unknown_user(user),
        InvitationRefusal::Oneself => {
            EngineError::Conflict(format!("`{user}` is your own account; it is already yours"))
        }
        InvitationRefusal::Pending => EngineError::refused(
            ProblemCode::InvitationAlreadyPending,
            "such an invitation is already pending",
        ),
        InvitationRefusal::TooMany => EngineError::refused(
            ProblemCode::QuotaExceeded,
            format!("an account can send at most {INVITATIONS_A_DAY} invitations a day"),
        ),
    }
}

fn answer_refusal(
    refused: InvitationAnswerRefusal,
    id: &str,
    wanted: InvitationOutcome,
) -> EngineError {
    match refused {
        InvitationAnswerRefusal::Unknown => {
            EngineError::NotFound { what: "invitation", id: id.chars().take(80).collect() }
        }
        InvitationAnswerRefusal::OtherSide if wanted == InvitationOutcome::Cancelled => {
            EngineError::denied("only the sender may cancel the invitation")
        }
        InvitationAnswerRefusal::OtherSide => {
            EngineError::denied("only the invited account may answer the invitation")
        }
        InvitationAnswerRefusal::Expired => {
            EngineError::refused(ProblemCode::InvitationExpired, "the invitation has expired")
        }
        InvitationAnswerRefusal::Resolved(before) => EngineError::refused(
            ProblemCode::InvitationAlreadyResolved,
            format!("the invitation was already {before}"),
        ),
        InvitationAnswerRefusal::Conflict(reason) => EngineError::Conflict(reason),
        InvitationAnswerRefusal::TooMany(reason) => {
            EngineError::refused(ProblemCode::QuotaExceeded, reason)
        }
    }
}
