//! Deploys the first version of a verifier, or the next one.

use jurat_core::{
    account::caller::{Caller, Scope},
    id::uuid,
    verifier::{
        ModelRef, VerifierDraft, VerifierRef, VerifierSelector, registry::DeployedVersion, system,
    },
    workflow::VerifierRole,
};
use jurat_store::{Behalf, DeployRefusal, NewVerifierVersion, WriteOutcome};

use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, access::require_scope,
    accounts::storage::no_room,
};

impl Engine {
    /// Creates a verifier, or adds a version to the one with the name.
    pub async fn verifier_deploy(
        &self,
        caller: &Caller,
        new: VerifierDraft,
        keyed: Option<IdempotentWrite<DeployedVersion>>,
    ) -> Result<IdempotentOutcome<DeployedVersion>, EngineError> {
        require_scope(caller, Scope::VerifiersWrite)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Note).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        new.check().map_err(EngineError::Input)?;
        self.check_reserved(caller, &new.name).await?;
        let judge = self.judge_of(caller, &new).map_err(EngineError::Input)?;
        let deploy = self.deploy_of(caller, new, judge);
        let name = &deploy.name;
        let once = self.result_record(caller, keyed);
        let (verifiers, behalf) = (self.inner.store.verifiers(), Behalf::from(&deploy.account));
        match verifiers.deploy(&behalf, &deploy, once.as_ref()).await? {
            WriteOutcome::Done(deployment) => {
                tracing::info!(
                    verifier.id = %deployment.verifier.id,
                    version = deployment.verifier.current_version,
                    "deployed a version of a verifier"
                );
                Ok(IdempotentOutcome::Now(deployment))
            }
            WriteOutcome::Repeated => self.concurrent_answer(caller, keyed).await,
            WriteOutcome::Refused(refused) => Err(deploy_refusal(caller, name, refused)),
        }
    }

    /// A new verifier cannot have the name of a built-in one; one that had it before keeps it.
    async fn check_reserved(&self, caller: &Caller, name: &str) -> Result<(), EngineError> {
        if !system::names().any(|reserved| reserved == name) {
            return Ok(());
        }
        let which = VerifierSelector::Name(name.to_owned());
        let reference = VerifierRef { which, version: None };
        match self.verifier_reached(caller, &reference, VerifierRole::Owner).await {
            Ok(_) => Ok(()),
            Err(EngineError::NotFound { .. }) => Err(EngineError::Conflict(format!(
                "the name `{name}` is reserved for a platform verifier; choose another one"
            ))),
            Err(error) => Err(error),
        }
    }

    fn deploy_of(
        &self,
        caller: &Caller,
        mut new: VerifierDraft,
        judge: ModelRef,
    ) -> NewVerifierVersion {
        let clock = &self.inner.clock;
        let at = clock.now();
        NewVerifierVersion {
            account: caller.account().clone(),
            name: new.name.clone(),
            description: new.description.clone(),
            expected_token: new.expected_token.take(),
            config: new.into_config(judge),
            new_id: uuid(at, clock.bits()),
            new_token: format!("{:032x}", clock.bits()),
            quota_bytes: self.inner.limits.storage.quota_bytes,
            at,
        }
    }
}

/// Why nothing was deployed, with the token that the next version needs, if there is one.
fn refusal(problem: String, current: Option<String>) -> EngineError {
    EngineError::token_conflict("deploy", problem, current)
}

fn deploy_refusal(caller: &Caller, name: &str, refused: DeployRefusal) -> EngineError {
    match refused {
        DeployRefusal::Full(full) => no_room(caller, &full, "verifier"),
        DeployRefusal::TokenMissing { current } => {
            let problem = format!(
                "there is already a verifier `{name}`; its next version needs `expected_version_token`"
            );
            refusal(problem, Some(current))
        }
        DeployRefusal::TokenStale { current } => {
            let problem = format!(
                "`expected_version_token` is not the current token of `{name}`, which has a newer version"
            );
            refusal(problem, Some(current))
        }
        DeployRefusal::TokenUnexpected => {
            let problem = format!(
                "there is no verifier `{name}` yet; leave out `expected_version_token` for its first deploy"
            );
            refusal(problem, None)
        }
        DeployRefusal::TokenOfNone(names) => EngineError::token_of_none("verifier", name, names),
        DeployRefusal::NameRevoked => {
            let problem = format!(
                "the name `{name}` belongs to a revoked verifier and cannot be reused; choose another one"
            );
            refusal(problem, None)
        }
    }
}
