//! Fetches the references of a candidate through the guarded client, and compares their digests.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use jurat_core::{
    id::AccountId,
    round::{
        candidate::ArtifactRef,
        evidence::{EvidenceFinding, EvidenceStatus, MOST_REFS},
        job::JobWork,
    },
    time::Timestamp,
};
use jurat_store::{Behalf, EvidenceBlob, EvidencePruning, NewEvidence};
use tokio::{sync::OnceCell, time::Instant};

use super::ask::ReplicaPlan;
use crate::{Engine, EngineError};

/// References of one candidate that are fetched concurrently.
const FETCHES_AT_ONCE: usize = 4;
/// Documents that this node fetches concurrently; others wait within their deadline.
pub(crate) const FETCH_PERMITS: usize = 16;

/// How long a fetched document counts as available.
const EVIDENCE_FRESH_MS: i64 = 24 * 60 * 60 * 1_000;
/// The maximum stored evidence of one account; the oldest is removed first.
const MOST_KEPT_BYTES: u64 = 256 * 1024 * 1024;
const PRUNED_AT_ONCE: u32 = 500;
/// How long the store may take to keep a document, for which nothing else waits.
const EVIDENCE_WRITE_TIMEOUT: Duration = Duration::from_secs(1);
const MOST_MIME: usize = 200;

/// The findings about a candidate's references, fetched by the replica that needs them first.
pub(crate) type SharedFindings = OnceCell<Vec<EvidenceFinding>>;

impl Engine {
    /// Fetches each reference once, until the deadline. Never fails: an unreachable reference is a
    /// finding.
    pub async fn evidence_check(
        &self,
        account: &AccountId,
        refs: &[ArtifactRef],
        deadline: Instant,
    ) -> Vec<EvidenceFinding> {
        let looks: Vec<_> = refs
            .iter()
            .take(MOST_REFS)
            .map(|it| self.check_reference(account, it, deadline))
            .collect();
        let found: Vec<EvidenceStatus> =
            stream::iter(looks).buffered(FETCHES_AT_ONCE).collect().await;
        let found = found.into_iter().chain(std::iter::repeat(EvidenceStatus::Unreachable));
        refs.iter()
            .zip(found)
            .map(|(reference, found)| EvidenceFinding::new(reference, found))
            .collect()
    }

    async fn check_reference(
        &self,
        account: &AccountId,
        reference: &ArtifactRef,
        deadline: Instant,
    ) -> EvidenceStatus {
        if self.is_evidence_cached(account, reference, deadline).await {
            return EvidenceStatus::Seen;
        }
        let place = tokio::time::timeout_at(deadline, self.inner.fetches.acquire()).await;
        let Ok(Ok(_place)) = place else { return EvidenceStatus::Timeout };
        let Some(client) = self.inner.judge_providers.media_client() else {
            return EvidenceStatus::Unreachable;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let looked = client.look_at(reference, left).await;
        self.inner.failpoints.pass("evidence_fetch_after");
        if looked.found != EvidenceStatus::Seen {
            // Callers learn only the code: the cause could reveal our network.
            tracing::warn!(
                account.id = %account,
                found = looked.found.as_str(),
                cause = %looked.detail,
                "could not confirm evidence"
            );
        }
        if let Some(bytes) = looked.bytes {
            self.cache_evidence(account, reference, bytes.to_vec()).await;
        }
        looked.found
    }

    /// Whether it was fetched recently, at the same address and for the same account: access of one
    /// account does not imply access of another, and neither does one address for another. If the
    /// store does not answer, the document is fetched.
    async fn is_evidence_cached(
        &self,
        account: &AccountId,
        reference: &ArtifactRef,
        deadline: Instant,
    ) -> bool {
        let behalf = Behalf::Account(account.clone());
        let digest = normalized_digest(&reference.digest);
        let known = self.inner.store.evidence().get(&behalf, account, &digest);
        match tokio::time::timeout_at(deadline, known).await {
            Ok(Ok(known)) => known.is_some_and(|blob| {
                let age_ms = self.inner.clock.now().millis() - blob.fetched_at.millis();
                let is_fresh = age_ms < EVIDENCE_FRESH_MS;
                let is_there = blob.uri == reference.uri;
                is_fresh && is_there && u64::try_from(blob.bytes.len()) == Ok(reference.size_bytes)
            }),
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "could not look up cached evidence");
                false
            }
            Err(_) => false,
        }
    }

    async fn cache_evidence(&self, account: &AccountId, reference: &ArtifactRef, bytes: Vec<u8>) {
        let behalf = Behalf::Account(account.clone());
        let blob = EvidenceBlob {
            digest: normalized_digest(&reference.digest),
            uri: reference.uri.clone(),
            mime: reference.mime.chars().take(MOST_MIME).collect(),
            bytes,
            fetched_at: self.inner.clock.now(),
        };
        let found = NewEvidence { account: account.clone(), blob };
        let kept = self.inner.store.evidence().put(&behalf, &found);
        match tokio::time::timeout(EVIDENCE_WRITE_TIMEOUT, kept).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = %error, "could not store evidence"),
            Err(_) => tracing::warn!("could not store evidence in time"),
        }
    }

    /// Removes outdated evidence, and evidence beyond the limit of an account.
    pub(crate) async fn prune_evidence(&self) -> Result<u64, EngineError> {
        let pruning = EvidencePruning {
            before: Timestamp::from_millis(self.inner.clock.now().millis() - EVIDENCE_FRESH_MS),
            most_bytes: MOST_KEPT_BYTES,
            limit: PRUNED_AT_ONCE,
        };
        Ok(self.inner.store.evidence().prune(&Behalf::Platform, &pruning).await?)
    }

    /// The findings about the candidate of a round, if its references are to be fetched.
    pub(crate) async fn findings<'a>(
        &self,
        errand: &'a ReplicaPlan,
    ) -> Option<&'a [EvidenceFinding]> {
        let shared = errand.findings.as_ref()?;
        let refs = &errand.checks.candidate.as_ref()?.evidence.refs;
        let look = || self.evidence_check(&errand.account, refs, errand.deadline);
        Some(shared.get_or_init(look).await)
    }
}

/// A cell for findings, if the job asks for them. A delegated job has its evidence later.
pub(crate) fn findings_cell(job: &jurat_core::round::job::Job) -> Option<SharedFindings> {
    let JobWork::Validate { evidence, .. } = &job.work else { return None };
    let by_step = job.step.as_ref().is_some_and(|step| step.fetch_evidence);
    let is_asked = by_step || job.policy.fetches_evidence();
    (is_asked && !evidence.refs.is_empty()).then(SharedFindings::new)
}

/// A digest as it is stored: with its prefix, in lower case.
fn normalized_digest(digest: &str) -> String {
    let small = digest.to_ascii_lowercase();
    if small.starts_with("sha256:") { small } else { format!("sha256:{small}") }
}
