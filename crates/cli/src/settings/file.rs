//! Reads the settings from a TOML file, and reports every fault with its line.

use std::{io::Read as _, path::Path};

use toml::de::{DeTable, DeValue};

use super::{
    ALL, DEFAULT_MODEL, PANEL, Setting, SettingKind,
    nearest::nearest,
    profiles::{self, ProfileLine},
    providers::{self, ProviderSection},
    value,
};

/// Name of the default config file, in the state folder.
pub(crate) const FILE_NAME: &str = "jurat.toml";
/// Maximum size of a file: many times what all settings take.
const LARGEST: u64 = 1024 * 1024;

/// Faults, each with its position in the text.
pub(super) type FileFaults = Vec<(usize, String)>;

/// A value from a file.
#[derive(Debug)]
pub(crate) struct FileValue {
    pub(crate) setting: &'static Setting,
    pub(crate) value: String,
    pub(crate) line: usize,
}

/// The contents of a config file.
#[derive(Debug, Default)]
pub(crate) struct FileSettings {
    pub(crate) values: Vec<FileValue>,
    pub(crate) providers: Vec<ProviderSection>,
    pub(crate) profiles: Vec<ProfileLine>,
}

/// The contents of a config file, or all its faults.
pub(crate) fn read(path: &Path) -> Result<FileSettings, Vec<String>> {
    let name = path.display();
    let unreadable = |why: String| vec![format!("`{name}` cannot be read: {why}")];
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut text = String::new();
    let read = file.take(LARGEST + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(error.to_string()))?;
    if LARGEST < u64::try_from(text.len()).unwrap_or(u64::MAX) {
        return Err(unreadable("it is larger than 1 MiB".into()));
    }
    parse(&text).map_err(|faults| {
        faults.into_iter().map(|(line, text)| format!("`{name}` line {line}: {text}")).collect()
    })
}

fn parse(text: &str) -> Result<FileSettings, Vec<(usize, String)>> {
    let line_of =
        |at: usize| text.as_bytes().iter().take(at).filter(|it| **it == b'\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| {
        let line = line_of(error.span().map_or(0, |span| span.start));
        vec![(line, format!("invalid TOML: {}", error.message()))]
    })?;
    let mut faults = Vec::new();
    let mut contents = FileSettings {
        values: Vec::new(),
        providers: providers::read(table.get_ref(), line_of, &mut faults),
        profiles: Vec::new(),
    };
    let are_providers_known = faults.is_empty();
    contents.profiles = profiles::read(table.get_ref(), line_of, &mut faults);
    let mut leaves = Vec::new();
    collect_leaves(table.get_ref(), "", &mut leaves);
    for (name, at, value) in leaves {
        match read_value(&name, value) {
            Ok((setting, value)) => {
                contents.values.push(FileValue { setting, value, line: line_of(at) });
            }
            Err(fault) => faults.push((at, fault)),
        }
    }
    let mut faults: Vec<(usize, String)> =
        faults.into_iter().map(|(at, text)| (line_of(at), text)).collect();
    if are_providers_known {
        faults.extend(unknown_judges(&contents));
    }
    faults.sort();
    if faults.is_empty() { Ok(contents) } else { Err(faults) }
}

/// Faults for judges whose provider the file does not set up.
fn unknown_judges(contents: &FileSettings) -> Vec<(usize, String)> {
    let judges = [DEFAULT_MODEL.name, PANEL.name];
    let named = contents.values.iter().filter(|it| judges.contains(&it.setting.name));
    let of_one = |it: &FileValue| {
        let faults = providers::unknown_judges(it.setting.name, &it.value, &contents.providers);
        faults.into_iter().map(|text| (it.line, text)).collect::<Vec<_>>()
    };
    named.flat_map(of_one).collect()
}

/// Collects the values that are not tables, each with its dotted name and its position.
fn collect_leaves<'a, 'i>(
    table: &'a DeTable<'i>,
    prefix: &str,
    leaves: &mut Vec<(String, usize, &'a DeValue<'i>)>,
) {
    for (key, value) in table {
        let name = if prefix.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{prefix}.{}", key.get_ref())
        };
        if [providers::TABLE, profiles::TABLE].contains(&name.as_str()) {
            continue;
        }
        let is_setting = ALL.iter().any(|setting| setting.name == name);
        match value.get_ref().as_table() {
            Some(inner) if !is_setting => collect_leaves(inner, &name, leaves),
            // A setting that holds a table by mistake is refused as a value.
            Some(_) | None => leaves.push((name, key.span().start, value.get_ref())),
        }
    }
}

fn read_value(name: &str, given: &DeValue<'_>) -> Result<(&'static Setting, String), String> {
    let Some(setting) = ALL.iter().find(|setting| setting.name == name) else {
        let name = crate::output::shortened(name, 60);
        return Err(match nearest(&name) {
            Some(meant) => format!("there is no setting `{name}`; did you mean `{meant}`?"),
            None => {
                format!("there is no setting `{name}`; `jurat config example` lists all settings")
            }
        });
    };
    Ok((setting, typed(name, setting.kind, given)?))
}

/// The value of a setting, or its fault.
pub(super) fn typed(name: &str, kind: SettingKind, given: &DeValue<'_>) -> Result<String, String> {
    let text = match kind {
        SettingKind::Count { .. } => given.as_integer().map(ToString::to_string),
        SettingKind::Share => number(given),
        // Amounts of money are text everywhere else, so they may be text here too.
        SettingKind::Amount => number(given).or_else(|| given.as_str().map(str::to_owned)),
        SettingKind::Sockets
        | SettingKind::NodeScopes
        | SettingKind::Urls
        | SettingKind::Hosts
        | SettingKind::Models
        | SettingKind::Ranges
        | SettingKind::AgentRegistrations
        | SettingKind::Words(_) => list(given).or_else(|| given.as_str().map(str::to_owned)),
        SettingKind::Text
        | SettingKind::Folder
        | SettingKind::Listen
        | SettingKind::Name
        | SettingKind::Url
        | SettingKind::EvmAddress
        | SettingKind::Store
        | SettingKind::Postgres
        | SettingKind::Filter
        | SettingKind::Variable
        | SettingKind::Model
        | SettingKind::Account
        | SettingKind::Word(_) => given.as_str().map(str::to_owned),
    };
    let Some(text) = text else {
        let expected = value::expected(kind);
        return Err(format!("`{name}` must be {expected}, and is {}", a_kind(given)));
    };
    value::parse(kind, &text).map_err(|fault| format!("`{name}` {fault}"))
}

/// A list of texts, as it is written without a list.
fn list(given: &DeValue<'_>) -> Option<String> {
    let items: Option<Vec<&str>> =
        given.as_array()?.iter().map(|item| item.get_ref().as_str()).collect();
    items.map(|items| items.join(","))
}

fn number(given: &DeValue<'_>) -> Option<String> {
    let number = given.as_float().map(ToString::to_string);
    number.or_else(|| given.as_integer().map(ToString::to_string))
}

/// The type of a value, with its article.
pub(super) fn a_kind(given: &DeValue<'_>) -> String {
    let kind = given.type_str();
    let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_with_their_lines() {
        let text = "# mine\n[limits]\nrounds = 1_000\n\n[server]\nlisten = \"[::1]:1\"\n";
        let found = parse(text).unwrap().values;
        let found: Vec<(&str, &str, usize)> =
            found.iter().map(|it| (it.setting.name, it.value.as_str(), it.line)).collect();
        assert_eq!(found, [("limits.rounds", "1000", 3), ("server.listen", "[::1]:1", 6)]);
        let dotted = parse("limits.rounds = 5").unwrap().values;
        assert_eq!(dotted[0].value, "5");
    }

    #[test]
    fn a_list_is_an_array_or_text_with_commas() {
        let listen = |value: &str| parse(&format!("node.listen = {value}"));
        for value in ["\"127.0.0.1:1, [::1]:1\"", "[\"127.0.0.1:1\", \"[::1]:1\"]"] {
            assert_eq!(listen(value).unwrap().values[0].value, "127.0.0.1:1,[::1]:1", "{value}");
        }
        for value in ["[]", "[1]", "[\"x\"]", "1"] {
            assert_eq!(listen(value).unwrap_err().len(), 1, "{value}");
        }
    }

    #[test]
    fn every_fault_is_named_with_its_line() {
        let text = "listen = \"x\"\n[limits]\nrounds = \"many\"\nround = 1\n[log]\nformat = \"xml\"\n\
                    [store.location]\nx = 1\n[zzz.q]\na = []\n";
        let faults = parse(text).unwrap_err();
        let lines: Vec<String> =
            faults.into_iter().map(|(line, text)| format!("{line}: {text}")).collect();
        assert_eq!(
            lines,
            [
                "1: there is no setting `listen`; did you mean `server.listen`?",
                "3: `limits.rounds` must be a whole number from 1 to 1000000, and is a string",
                "4: there is no setting `limits.round`; did you mean `limits.rounds`?",
                "6: `log.format` must be `text` or `json`, and is `xml`",
                "7: `store.location` must be a file or a postgres:// URL, and is a table",
                "10: there is no setting `zzz.q.a`; `jurat config example` lists all settings",
            ]
        );
        let faults = parse("[limits]\nrounds = \n").unwrap_err();
        assert_eq!(faults[0].0, 2);
        assert!(faults[0].1.starts_with("invalid TOML: "), "{faults:?}");
    }
}
