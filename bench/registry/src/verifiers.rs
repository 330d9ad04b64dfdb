//! Verifiers as the program writes them, stored many at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jurat_core::{
    id::{AccountId, uuid},
    time::Timestamp,
    verifier::{InputContract, JudgeSettings, ModelRef, VerifierConfig, VerifierExample},
};
use jurat_store::{Behalf, NewVerifierVersion, Store, WriteOutcome};

/// Concurrent writes: as many as SQLite commits together.
const AT_ONCE: usize = 256;
/// 2026-01-01, followed by one verifier every second.
const FIRST_MS: i64 = 1_767_225_600_000;

/// The provider of the judge.
pub(crate) const PROVIDER: &str = "instant";

pub(crate) async fn fill(store: &Arc<Store>, count: u32) -> Result<()> {
    let deploys = stream::iter(0..count).map(|number| {
        let store = Arc::clone(store);
        async move {
            let deployed = store
                .verifiers()
                .deploy(&Behalf::from(&deploy(number).account), &deploy(number), None)
                .await?;
            ensure!(matches!(deployed, WriteOutcome::Done(_)), "{number} was not deployed");
            Ok(())
        }
    });
    deploys.buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await
}

/// Six digits, so that the names sort by number.
pub(crate) fn name(number: u32) -> String {
    format!("bench-{number:06}")
}

pub(crate) fn config() -> VerifierConfig {
    let example = |response: &str, passed, reasoning: &str| VerifierExample {
        inputs: inputs(response, "Otters eat fish, crabs and sometimes frogs; they sleep by day."),
        media_url: None,
        passed,
        reasoning: Some(reasoning.to_owned()),
    };
    VerifierConfig {
        criterion: "Return passed=true when every factual claim in the response is supported by \
            the provided source text, otherwise passed=false."
            .to_owned(),
        contract: InputContract::Text,
        fields: vec!["response".to_owned(), "source".to_owned()],
        examples: vec![
            example("Otters eat fish.", true, "The source names fish."),
            example("Otters eat grass.", false, "The source has nothing about grass."),
            example("Otters sleep at night.", false, "The source says that they sleep by day."),
        ],
        judge: JudgeSettings {
            model: ModelRef { provider: PROVIDER.to_owned(), model: "instant".to_owned() },
            effort: None,
            commit_first: false,
        },
    }
}

pub(crate) fn inputs(response: &str, source: &str) -> BTreeMap<String, String> {
    [("response", response), ("source", source)]
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into()
}

fn deploy(number: u32) -> NewVerifierVersion {
    let at = Timestamp::from_millis(FIRST_MS + i64::from(number) * 1_000);
    // Identifiers of one second differ only in their random bits, which a prime spreads.
    let bits = u128::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    NewVerifierVersion {
        account: AccountId::admin(),
        name: name(number),
        description: "Every factual claim is backed by the provided source.".to_owned(),
        config: config(),
        expected_token: None,
        new_id: uuid(at, bits),
        new_token: format!("{bits:032x}"),
        quota_bytes: u64::MAX,
        at,
    }
}
