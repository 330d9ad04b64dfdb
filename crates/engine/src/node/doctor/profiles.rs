//! Checks that the sessions of every consensus profile exist.

use jurat_core::{
    checkup::CheckupFinding,
    round::profile::{ConsensusProfile, ProfileAuthor},
};

use crate::{Engine, EngineError};

impl Engine {
    /// Built-in profiles name no sessions, so only those of the operator are shown.
    pub(super) async fn profile_findings(&self) -> Result<Vec<CheckupFinding>, EngineError> {
        let view = self.pool_view().await?;
        let is_known = |id: &str| view.pool.sessions.contains_key(id);
        let own = self.profiles().iter().filter(|it| it.author == ProfileAuthor::Operator);
        Ok(own.map(|profile| finding(profile, is_known)).collect())
    }
}

fn finding(profile: &ConsensusProfile, is_known: impl Fn(&str) -> bool) -> CheckupFinding {
    let (model, name) = (profile.model(), &profile.name);
    let missing: Vec<String> =
        profile.sessions().filter(|id| !is_known(id)).map(|id| format!("`{id}`")).collect();
    if missing.is_empty() {
        return CheckupFinding::ok("profiles", format!("`{model}`: {}", profile.terms()));
    }
    CheckupFinding::problem(
        "profiles",
        format!("`{model}` names sessions that do not exist: {}", missing.join(", ")),
        format!(
            "Add them with `jurat sessions add`, or correct `profiles.{name}.session_pool` and restart the server."
        ),
    )
}
