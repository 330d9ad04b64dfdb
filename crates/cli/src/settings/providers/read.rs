//! Reads the sections of providers, and reports every fault with its position.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jurat_core::{account::ledger, judge::Price, verifier::ModelRef};
use jurat_engine::{BUILTIN_PROVIDER, ProviderKind, ProviderSettings};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    ANY_MODEL, INPUT_PRICE, OUTPUT_PRICE, PRICE_SETTINGS, PRICES, PROVIDER_SETTINGS,
    ProviderSection, TABLE,
};
use crate::{
    output::shortened,
    settings::{
        SettingKind,
        file::{FileFaults, a_kind, typed},
        nearest::closest,
    },
};

/// Maximum price of a million tokens, in micro-credits.
const DEAREST: u64 = 1_000_000 * ledger::MICROS.unsigned_abs();

const KINDS: &[&str] = &["anthropic", "openai"];

/// Known providers: name, URL and the variable with the key.
const KNOWN: [(&str, &str, &str); 2] = [
    ("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
];

/// The providers of a file. `line_of` turns a position into a line number.
pub(in crate::settings) fn read(
    table: &DeTable<'_>,
    line_of: impl Fn(usize) -> usize,
    faults: &mut FileFaults,
) -> Vec<ProviderSection> {
    let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == TABLE) else {
        return Vec::new();
    };
    let Some(sections) = value.get_ref().as_table() else {
        let kind = a_kind(value.get_ref());
        let text =
            format!("`{TABLE}` must contain sections like `[{TABLE}.openai]`, and is {kind}");
        faults.push((key.span().start, text));
        return Vec::new();
    };
    let mut providers = Vec::new();
    for (name, value) in sections {
        let at = name.span().start;
        let mut section = SectionReader { name: name.get_ref(), at, table: None, faults };
        if !section.has_name() {
            continue;
        }
        match value.get_ref().as_table() {
            Some(table) => {
                section.table = Some(table);
                providers.extend(section.provider(line_of(at)));
            }
            None => section
                .refuse(at, &format!("must be a section, and is {}", a_kind(value.get_ref()))),
        }
    }
    providers
}

/// A section that is being read.
struct SectionReader<'a, 'i> {
    name: &'a str,
    at: usize,
    table: Option<&'a DeTable<'i>>,
    faults: &'a mut FileFaults,
}

impl<'a, 'i> SectionReader<'a, 'i> {
    /// Whether the name of the section is allowed.
    fn has_name(&mut self) -> bool {
        let model: Result<ModelRef, ()> = format!("{}/m", self.name).parse();
        // A name with a slash would be read as another provider.
        let is_formed = model.is_ok_and(|model| model.provider == self.name);
        if self.name == BUILTIN_PROVIDER {
            let text = "cannot be set: it is the provider of Jurat's built-in judges";
            self.refuse(self.at, text);
        } else if !is_formed {
            self.refuse(self.at, "must have a name of lowercase letters, digits and hyphens");
        }
        is_formed && self.name != BUILTIN_PROVIDER
    }

    /// The provider; `None` without a URL, because every other setting can be left out.
    fn provider(&mut self, line: usize) -> Option<ProviderSection> {
        self.check_keys();
        let known = KNOWN.iter().find(|(name, ..)| *name == self.name);
        let kind = match self.text("kind", SettingKind::Word(KINDS)).as_deref() {
            Some("anthropic") => ProviderKind::Anthropic,
            None if self.name == "anthropic" => ProviderKind::Anthropic,
            Some(_) | None => ProviderKind::OpenAi,
        };
        let given = self.find("base_url").is_some();
        let base_url = self.text("base_url", SettingKind::Url);
        let base_url = base_url.or_else(|| known.map(|(_, url, _)| (*url).to_owned()));
        if base_url.is_none() && !given {
            let text = "needs a `base_url`, the URL of its API; only `anthropic` and `openai` have a default";
            self.refuse(self.at, text);
        }
        let key_env = self.text("key_env", SettingKind::Variable);
        // Reports all other faults too, even if the URL is missing.
        let concurrency = self.count("concurrency", (1, 10_000), 8);
        let timeout_ms = self.count("timeout_ms", (100, 600_000), 60_000);
        let max_output_tokens = self.count("max_output_tokens", (64, 1_000_000), 2_048);
        let models = self.models();
        let prices = self.prices(models.as_ref());
        let settings = ProviderSettings {
            kind,
            base_url: base_url?,
            key_env: key_env.or_else(|| known.map(|(.., key)| (*key).to_owned())),
            concurrency: usize::try_from(concurrency).unwrap_or(usize::MAX),
            timeout: Duration::from_millis(timeout_ms),
            max_output_tokens: u32::try_from(max_output_tokens).unwrap_or(u32::MAX),
            models,
            prices,
        };
        Some(ProviderSection { name: self.name.to_owned(), settings, line })
    }

    fn check_keys(&mut self) {
        for (key, _) in self.table.into_iter().flatten() {
            let name: &str = key.get_ref();
            let known = || PROVIDER_SETTINGS.iter().map(|it| it.name).chain([PRICES]);
            if !known().any(|known| known == name) {
                self.unknown(
                    key.span().start,
                    &format!("{TABLE}.{}.{name}", self.name),
                    closest(name, known()),
                );
            }
        }
    }

    fn unknown(&mut self, at: usize, name: &str, meant: Option<&str>) {
        let name = shortened(name, 100);
        let text = match meant {
            Some(meant) => format!("there is no setting `{name}`; did you mean `{meant}`?"),
            None => {
                format!("there is no setting `{name}`; `jurat config example` lists all settings")
            }
        };
        self.faults.push((at, text));
    }

    /// Reports a fault of the section itself.
    fn refuse(&mut self, at: usize, what: &str) {
        self.faults.push((at, format!("`{TABLE}.{}` {what}", shortened(self.name, 60))));
    }

    fn find(&self, name: &str) -> Option<(usize, &'a Spanned<DeValue<'i>>)> {
        let mut entries = self.table?.iter();
        entries.find(|(key, _)| key.get_ref() == name).map(|(key, value)| (key.span().start, value))
    }

    fn text(&mut self, name: &str, kind: SettingKind) -> Option<String> {
        let (at, given) = self.find(name)?;
        let full = format!("{TABLE}.{}.{name}", self.name);
        match typed(&full, kind, given.get_ref()) {
            Ok(text) => Some(text),
            Err(fault) => {
                self.faults.push((at, fault));
                None
            }
        }
    }

    fn count(&mut self, name: &str, (least, most): (u64, u64), default: u64) -> u64 {
        let text = self.text(name, SettingKind::Count { least, most });
        text.and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    fn models(&mut self) -> Option<BTreeSet<String>> {
        let (at, given) = self.find("models")?;
        let names: Option<BTreeSet<String>> = given.get_ref().as_array().and_then(|items| {
            let mut names = items.iter().map(|item| item.get_ref().as_str());
            let is_model =
                |name: &&str| format!("{}/{name}", self.name).parse::<ModelRef>().is_ok();
            names.by_ref().map(|name| name.filter(is_model).map(str::to_owned)).collect()
        });
        match names {
            Some(names) if !names.is_empty() => Some(names),
            Some(_) | None => {
                let text = format!(
                    "`{TABLE}.{}.models` must be a list of model names, like [\"llama3.3\"], or be left out",
                    self.name
                );
                self.faults.push((at, text));
                None
            }
        }
    }

    fn prices(&mut self, models: Option<&BTreeSet<String>>) -> BTreeMap<String, Price> {
        let mut prices = BTreeMap::new();
        let Some((at, given)) = self.find(PRICES) else { return prices };
        let Some(table) = given.get_ref().as_table() else {
            let text = format!(
                "`{TABLE}.{0}.{PRICES}` must contain sections like `[{TABLE}.{0}.{PRICES}.\"*\"]`, and is {1}",
                self.name,
                a_kind(given.get_ref())
            );
            self.faults.push((at, text));
            return prices;
        };
        for (model, value) in table {
            let (at, name): (usize, &str) = (model.span().start, model.get_ref());
            let is_allowed = models.is_none_or(|models| models.contains(name));
            if name != ANY_MODEL && !is_allowed {
                let text = format!(
                    "has a price for `{}`, which is not among its `models`",
                    shortened(name, 60)
                );
                self.refuse(at, &text);
            }
            if let Some(price) = self.price(name, (at, value.get_ref())) {
                prices.insert(name.to_owned(), price);
            }
        }
        prices
    }

    fn price(&mut self, model: &str, (at, given): (usize, &DeValue<'_>)) -> Option<Price> {
        let full = format!("{TABLE}.{}.{PRICES}.\"{}\"", self.name, shortened(model, 60));
        let Some(table) = given.as_table() else {
            self.faults.push((at, format!("`{full}` must be a section, and is {}", a_kind(given))));
            return None;
        };
        for (key, _) in table {
            let name: &str = key.get_ref();
            let known = || PRICE_SETTINGS.iter().map(|it| it.name);
            if !known().any(|known| known == name) {
                self.unknown(key.span().start, &format!("{full}.{name}"), closest(name, known()));
            }
        }
        let mut amount = |name: &str| {
            let found = table.iter().find(|(key, _)| key.get_ref() == name);
            let (at, given) =
                found.map_or((at, None), |(key, value)| (key.span().start, Some(value)));
            let text = given.and_then(|given| given.get_ref().as_str());
            let micros = text.and_then(ledger::micros).and_then(|it| u64::try_from(it).ok());
            let micros = micros.filter(|it| *it <= DEAREST);
            if micros.is_none() {
                let found =
                    given.map_or("is missing".to_owned(), |given| match given.get_ref().as_str() {
                        Some(text) => format!("is \"{}\"", shortened(text, 40)),
                        None => format!("is {}", a_kind(given.get_ref())),
                    });
                let text = format!(
                    "`{full}.{name}` must be an amount in quotes, like \"1.25\", and {found}"
                );
                self.faults.push((at, text));
            }
            micros
        };
        let (input, output) = (amount(INPUT_PRICE), amount(OUTPUT_PRICE));
        Some(Price { input_micros_per_million: input?, output_micros_per_million: output? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::providers::unknown_judges;

    fn parse(text: &str) -> Result<Vec<ProviderSection>, Vec<String>> {
        let table = DeTable::parse(text).unwrap();
        let line_of = |at: usize| text[..at].matches('\n').count() + 1;
        let mut faults = FileFaults::new();
        let providers = read(table.get_ref(), line_of, &mut faults);
        faults.sort();
        let faults: Vec<String> =
            faults.into_iter().map(|(at, text)| format!("{}: {text}", line_of(at))).collect();
        if faults.is_empty() { Ok(providers) } else { Err(faults) }
    }

    #[test]
    fn the_known_providers_need_nothing_but_their_names() {
        let found = parse("[providers.anthropic]\n[providers.openai]\n").unwrap();
        let said: Vec<(&str, &str, &str, Option<&str>)> = found
            .iter()
            .map(|ProviderSection { name, settings: it, .. }| {
                (name.as_str(), it.kind.as_str(), it.base_url.as_str(), it.key_env.as_deref())
            })
            .collect();
        let expected = [
            ("anthropic", "anthropic", "https://api.anthropic.com", Some("ANTHROPIC_API_KEY")),
            ("openai", "openai", "https://api.openai.com/v1", Some("OPENAI_API_KEY")),
        ];
        assert_eq!(said, expected);
        let first = &found[0].settings;
        // Settings that the section leaves out have the defaults of the code.
        let plain = ProviderSettings::new(first.kind, first.base_url.clone());
        assert_eq!(first, &ProviderSettings { key_env: first.key_env.clone(), ..plain });
        assert_eq!((found[0].line, found[1].line), (1, 2));
    }

    #[test]
    fn a_provider_of_any_name_says_where_it_is_and_what_it_costs() {
        let text = "[providers.local]\nbase_url = 'http://127.0.0.1:1/v1/'\nconcurrency = 2\n\
                    models = ['a', 'b/c']\n\
                    [providers.local.prices.a]\ninput_usd_per_million = '1.25'\noutput_usd_per_million = '10'\n\
                    [providers.local.prices.\"*\"]\ninput_usd_per_million = '0'\noutput_usd_per_million = '0'\n";
        let found = parse(text).unwrap();
        let local = &found[0].settings;
        assert_eq!(
            (local.kind, local.base_url.as_str()),
            (ProviderKind::OpenAi, "http://127.0.0.1:1/v1")
        );
        assert_eq!((local.key_env.as_deref(), local.concurrency), (None, 2));
        assert_eq!(local.models, Some(BTreeSet::from(["a".to_owned(), "b/c".to_owned()])));
        let dear =
            Price { input_micros_per_million: 1_250_000, output_micros_per_million: 10_000_000 };
        assert_eq!((local.prices["a"], local.prices["*"]), (dear, Price::default()));
    }

    #[test]
    fn every_fault_of_a_section_is_named_with_its_line() {
        let text = "[providers.local]\nkind = 'claude'\nkey_envs = 'A'\nkey_env = '$A'\nconcurrency = 0\n\
                    models = []\nzzz = 1\n\
                    [providers.builtin]\n[providers.Big]\n[providers.big]\nbase_url = 'ftp://h'\n\
                    [providers.openai]\nmodels = ['a']\n\
                    [providers.openai.prices.b]\ninput_usd_per_million = 1.25\noutput = '1'\n";
        let faults = parse(text).unwrap_err();
        let expected = [
            "1: `providers.local` needs a `base_url`, the URL of its API; only `anthropic` and `openai` have a default",
            "2: `providers.local.kind` must be `anthropic` or `openai`, and is `claude`",
            "3: there is no setting `providers.local.key_envs`; did you mean `key_env`?",
            "4: `providers.local.key_env` must be the name of an environment variable, like OPENAI_API_KEY, and never the key itself",
            "5: `providers.local.concurrency` must be a whole number from 1 to 10000, and is `0`",
            "6: `providers.local.models` must be a list of model names, like [\"llama3.3\"], or be left out",
            "7: there is no setting `providers.local.zzz`; `jurat config example` lists all settings",
            "8: `providers.builtin` cannot be set: it is the provider of Jurat's built-in judges",
            "9: `providers.Big` must have a name of lowercase letters, digits and hyphens",
            "11: `providers.big.base_url` must be a URL like http://127.0.0.1:5872",
            "14: `providers.openai.prices.\"b\".output_usd_per_million` must be an amount in quotes, like \"1.25\", and is missing",
            "14: `providers.openai` has a price for `b`, which is not among its `models`",
            "15: `providers.openai.prices.\"b\".input_usd_per_million` must be an amount in quotes, like \"1.25\", and is a float",
            "16: there is no setting `providers.openai.prices.\"b\".output`; `jurat config example` lists all settings",
        ];
        assert_eq!(faults, expected);
        assert_eq!(
            parse("providers = 1").unwrap_err(),
            ["1: `providers` must contain sections like `[providers.openai]`, and is an integer"]
        );
        assert_eq!(
            parse("[providers]\nopenai = 1").unwrap_err(),
            ["2: `providers.openai` must be a section, and is an integer"]
        );
    }

    #[test]
    fn a_judge_needs_a_provider_that_is_set_up() {
        let providers = parse("[providers.openai]\nmodels = ['a']\n").unwrap();
        let panel = "openai/a,builtin/rules,openai/b,local/x";
        assert_eq!(
            unknown_judges("judges.panel", panel, &providers),
            [
                "`judges.panel` names the judge `openai/b`, which is not among the `models` of its provider",
                "`judges.panel` names the judge `local/x`, but there is no section `[providers.local]`",
            ]
        );
    }
}
