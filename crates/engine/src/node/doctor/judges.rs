//! Checks that the providers of judges can be asked, and that their work has a price.

use std::collections::BTreeSet;

use jurat_core::{checkup::CheckupFinding, id::AccountId, list::ListPage, verifier::ModelRef};
use jurat_store::Behalf;

use crate::{Engine, EngineError, JudgesConfig, ProviderSettings};

/// The operator's own account and one that pays.
const ENOUGH_ACCOUNTS: u32 = 2;

impl Engine {
    /// No provider is asked: a request costs money.
    pub(super) async fn judge_findings(&self) -> Result<Vec<CheckupFinding>, EngineError> {
        let providers = &self.judges_config().providers;
        if providers.is_empty() {
            return Ok(vec![CheckupFinding::ok(
                "judges",
                "no provider is configured; only `builtin/rules` can judge",
            )]);
        }
        let mut findings: Vec<CheckupFinding> =
            providers.iter().map(|(name, settings)| self.key_finding(name, settings)).collect();
        if self.has_paying_accounts().await? {
            findings.extend(
                providers.iter().flat_map(|(name, it)| unpriced(name, self.judges_config(), it)),
            );
        }
        Ok(findings)
    }

    fn key_finding(&self, name: &str, settings: &ProviderSettings) -> CheckupFinding {
        match settings.key_env.as_deref() {
            None => CheckupFinding::ok(
                "judges",
                format!("the provider `{name}` is called without a key"),
            ),
            Some(variable) if (self.inner.secrets)(variable).is_some() => CheckupFinding::ok(
                "judges",
                format!(
                    "the provider `{name}` has its key in the environment variable `{variable}`"
                ),
            ),
            Some(variable) => CheckupFinding::problem(
                "judges",
                format!(
                    "the provider `{name}` needs the environment variable `{variable}`, which is not set on this node"
                ),
                "Set it where the server runs, and restart the server; until then its judges do not answer.",
            ),
        }
    }

    /// Whether there is any account besides the operator's own.
    async fn has_paying_accounts(&self) -> Result<bool, EngineError> {
        let page = ListPage { after: None, limit: ENOUGH_ACCOUNTS };
        let accounts = self.inner.store.accounts().list(&Behalf::Platform, &page).await?;
        Ok(accounts.iter().any(|it| it.account != AccountId::admin()))
    }
}

/// Models without a price. Without any price all models are free; with some, the others are only
/// for the operator, except the default judge and the panel.
fn unpriced(name: &str, judges: &JudgesConfig, settings: &ProviderSettings) -> Vec<CheckupFinding> {
    let has_price = |model: &str| settings.prices.contains_key(model);
    if has_price("*") {
        return Vec::new();
    }
    let named: Vec<&str> = match &settings.models {
        None => Vec::new(),
        Some(models) => models.iter().map(String::as_str).filter(|it| !has_price(it)).collect(),
    };
    let is_of = |model: &&ModelRef| model.provider == name && !has_price(&model.model);
    let kept = judges.default_model.iter().chain(&judges.panel).filter(is_of);
    let kept: BTreeSet<&str> = kept.map(|it| it.model.as_str()).collect();
    let finding = |models: String, so: &str| {
        CheckupFinding::warning(
            "judges",
            format!("the provider `{name}` has no price for {models}, so metered accounts {so}"),
            "Set the prices in the provider's section; `\"*\"` applies to every model without its own price.",
        )
    };
    let listed = |models: Vec<&str>| format!("`{}`", models.join("`, `"));
    let for_nothing = "use them for free";
    if settings.prices.is_empty() {
        let are_all_known = settings.models.is_some();
        let models = if are_all_known { listed(named) } else { "its models".to_owned() };
        return vec![finding(models, for_nothing)];
    }
    let refused: Vec<&str> = named.into_iter().filter(|it| !kept.contains(it)).collect();
    let mut findings = Vec::new();
    if !kept.is_empty() {
        findings.push(finding(listed(kept.into_iter().collect()), for_nothing));
    }
    if !refused.is_empty() {
        findings.push(finding(listed(refused), "cannot use them"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use jurat_core::judge::Price;

    use super::*;
    use crate::ProviderKind;

    #[test]
    fn a_model_without_a_price_is_named() {
        let mut settings = ProviderSettings::new(ProviderKind::OpenAi, "http://h/v1");
        let mut judges = JudgesConfig::default();
        let said = |judges: &JudgesConfig, settings: &ProviderSettings| -> Vec<String> {
            let findings = unpriced("p", judges, settings).into_iter();
            findings.map(|it| it.detail.replace("the provider `p` has no price for ", "")).collect()
        };
        let nothing = "so metered accounts use them for free";
        assert_eq!(said(&judges, &settings), [format!("its models, {nothing}")]);
        settings.models = Some(["a", "b", "c"].map(str::to_owned).into());
        assert_eq!(said(&judges, &settings), [format!("`a`, `b`, `c`, {nothing}")]);
        settings.prices.insert("a".to_owned(), Price::default());
        let refused = "so metered accounts cannot use them";
        assert_eq!(said(&judges, &settings), [format!("`b`, `c`, {refused}")]);
        judges.panel = vec!["p/b".parse().unwrap(), "other/d".parse().unwrap()];
        let both = [format!("`b`, {nothing}"), format!("`c`, {refused}")];
        assert_eq!(said(&judges, &settings), both);
        settings.models = None;
        assert_eq!(said(&judges, &settings), [format!("`b`, {nothing}")]);
        settings.prices.insert("*".to_owned(), Price::default());
        assert_eq!(said(&judges, &settings), [] as [&str; 0]);
    }
}
