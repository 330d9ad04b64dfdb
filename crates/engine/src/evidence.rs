//! Looks at what evidence refers to: fetched through the guarded client, and held against its digest.

use futures::{StreamExt as _, stream};
use jurat_core::{
    candidate::ArtifactRef,
    evidence::{Finding, Found, MOST_REFS},
    id::AccountId,
    job::Work,
};
use tokio::{sync::OnceCell, time::Instant};

use crate::{Engine, ask::Errand};

/// References of one candidate that are fetched at the same time.
const AT_ONCE: usize = 4;
/// Documents that this node fetches at the same time; others wait within their deadline.
pub(crate) const FETCHES: usize = 16;

/// What was found where the evidence of a round refers to, by whoever needs it first.
pub(crate) type SharedFindings = OnceCell<Vec<Finding>>;

impl Engine {
    /// Looks at each reference once, and ends by the deadline. Never fails: what could not be
    /// looked at is a finding.
    pub async fn evidence_check(
        &self,
        account: &AccountId,
        refs: &[ArtifactRef],
        deadline: Instant,
    ) -> Vec<Finding> {
        let looks: Vec<_> =
            refs.iter().take(MOST_REFS).map(|it| self.look_at(account, it, deadline)).collect();
        let found: Vec<Found> = stream::iter(looks).buffered(AT_ONCE).collect().await;
        let found = found.into_iter().chain(std::iter::repeat(Found::Unreachable));
        refs.iter().zip(found).map(|(reference, found)| Finding::new(reference, found)).collect()
    }

    async fn look_at(
        &self,
        account: &AccountId,
        reference: &ArtifactRef,
        deadline: Instant,
    ) -> Found {
        let place = tokio::time::timeout_at(deadline, self.inner.fetches.acquire()).await;
        let Ok(Ok(_place)) = place else { return Found::Timeout };
        let Some(client) = self.inner.bench.media() else { return Found::Unreachable };
        let left = deadline.saturating_duration_since(Instant::now());
        let looked = client.look_at(reference, left).await;
        if looked.found != Found::Seen {
            // Callers learn the code alone: the cause could tell them about our network.
            tracing::warn!(
                account.id = %account,
                found = looked.found.as_str(),
                cause = %looked.detail,
                "evidence could not be confirmed"
            );
        }
        looked.found
    }

    /// What was found for the candidate of a round, where its references are to be looked at.
    pub(crate) async fn findings<'a>(&self, errand: &'a Errand) -> Option<&'a [Finding]> {
        let shared = errand.findings.as_ref()?;
        let refs = &errand.checks.candidate.as_ref()?.evidence.refs;
        let look = || self.evidence_check(&errand.account, refs, errand.deadline);
        Some(shared.get_or_init(look).await)
    }
}

/// A place for findings, where the job asks for them. What is delegated has its evidence later.
pub(crate) fn asked_for(job: &jurat_core::job::Job) -> Option<SharedFindings> {
    let Work::Validate { evidence, .. } = &job.work else { return None };
    let by_step = job.step.as_ref().is_some_and(|step| step.fetch_evidence);
    let is_asked = by_step || job.policy.fetches_evidence();
    (is_asked && !evidence.refs.is_empty()).then(SharedFindings::new)
}
