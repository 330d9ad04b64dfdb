//! Whether the providers of judges can be asked, and whether what they do is paid for.

use jurat_core::{checkup::Finding, id::AccountId};
use jurat_store::Page;

use crate::{Engine, EngineError, ProviderSettings};

/// The operator's own account and one that pays.
const ENOUGH_ACCOUNTS: u32 = 2;

impl Engine {
    /// Nobody is asked: a request to a provider costs.
    pub(super) async fn judge_findings(&self) -> Result<Vec<Finding>, EngineError> {
        let providers = &self.judges().providers;
        if providers.is_empty() {
            return Ok(vec![Finding::ok(
                "judges",
                "no provider is configured; only `builtin/rules` can judge",
            )]);
        }
        let mut findings: Vec<Finding> =
            providers.iter().map(|(name, settings)| self.key_finding(name, settings)).collect();
        if self.has_paying_accounts().await? {
            findings.extend(providers.iter().filter_map(|(name, it)| free_of_charge(name, it)));
        }
        Ok(findings)
    }

    fn key_finding(&self, name: &str, settings: &ProviderSettings) -> Finding {
        match settings.key_env.as_deref() {
            None => Finding::ok("judges", format!("the provider `{name}` is called without a key")),
            Some(variable) if (self.inner.secrets)(variable).is_some() => Finding::ok(
                "judges",
                format!(
                    "the provider `{name}` has its key in the environment variable `{variable}`"
                ),
            ),
            Some(variable) => Finding::problem(
                "judges",
                format!(
                    "the provider `{name}` needs the environment variable `{variable}`, which is not set on this node"
                ),
                "Set it where the server runs, and restart the server; until then its judges do not answer.",
            ),
        }
    }

    /// Whether there is any account but the operator's own.
    async fn has_paying_accounts(&self) -> Result<bool, EngineError> {
        let page = Page { after: None, limit: ENOUGH_ACCOUNTS };
        let accounts = self.inner.store.account_list(&page).await?;
        Ok(accounts.iter().any(|it| it.account != AccountId::admin()))
    }
}

/// Models that anybody may use for nothing, because nobody said what they cost.
fn free_of_charge(name: &str, settings: &ProviderSettings) -> Option<Finding> {
    let has_price = |model: &String| settings.prices.contains_key(model);
    let unpriced = match (settings.prices.contains_key("*"), &settings.models) {
        (true, _) => return None,
        (false, None) => "its models".to_owned(),
        (false, Some(models)) => {
            let without: Vec<&str> =
                models.iter().filter(|it| !has_price(it)).map(String::as_str).collect();
            if without.is_empty() {
                return None;
            }
            format!("`{}`", without.join("`, `"))
        }
    };
    Some(Finding::warning(
        "judges",
        format!(
            "the provider `{name}` has no price for {unpriced}, so metered accounts use them for free"
        ),
        "Set the prices in the provider's section; `\"*\"` applies to every model without its own price.",
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jurat_core::judge::Price;

    use super::*;
    use crate::ProviderKind;

    #[test]
    fn a_model_without_a_price_is_named() {
        let mut settings = ProviderSettings::new(ProviderKind::OpenAi, "http://h/v1");
        let detail =
            |settings: &ProviderSettings| free_of_charge("p", settings).map(|it| it.detail);
        let said = detail(&settings).unwrap();
        assert!(said.contains("no price for its models"), "{said}");
        settings.models = Some(BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        settings.prices.insert("a".to_owned(), Price::default());
        let said = detail(&settings).unwrap();
        assert!(said.contains("no price for `b`"), "{said}");
        settings.prices.insert("*".to_owned(), Price::default());
        assert_eq!(detail(&settings), None);
    }
}
