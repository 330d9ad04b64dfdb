//! Resolves settings: flags override the environment, the environment the file, the file defaults.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use jurat_core::account::ledger;

use super::{
    ALL, DEFAULT_MODEL, FILE_NAME, PANEL, STATE_DIR, Setting, file,
    profiles::ProfileLine,
    providers::{ProviderSection, unknown_judges},
    value,
};
use crate::{config::variable, failure::CliFailure};

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    Default,
    File { path: PathBuf, line: usize },
    Environment(&'static str),
    Flag(&'static str),
}

/// The settings on the command line.
#[derive(Debug, Default)]
pub(crate) struct CommandLineSettings<'a> {
    pub(crate) file: Option<&'a Path>,
    pub(crate) flags: Vec<(&'static Setting, &'a str)>,
}

/// A setting with its effective value.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedSetting {
    pub(crate) setting: &'static Setting,
    pub(crate) value: Option<String>,
    pub(crate) origin: SettingOrigin,
}

/// All settings.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    by_name: BTreeMap<&'static str, ResolvedSetting>,
    providers: Vec<ProviderSection>,
    profiles: Vec<ProfileLine>,
    /// The file that was read.
    file: Option<PathBuf>,
}

impl Settings {
    /// Reads all settings, and reports all faults together.
    pub(crate) fn read(given: &CommandLineSettings<'_>) -> anyhow::Result<Self> {
        let mut faults = Vec::new();
        let mut settings = Self::unset();
        for setting in ALL {
            settings.add(setting, from_outside(setting, given, &mut faults));
        }
        settings.read_file(given, &mut faults);
        if faults.is_empty() {
            settings.check_judges(&mut faults);
        }
        if faults.is_empty() { Ok(settings) } else { Err(CliFailure::usage(faults.join("\n"))) }
    }

    /// The settings if nothing is set.
    #[cfg(test)]
    pub(crate) fn defaults() -> Self {
        Self::unset()
    }

    fn unset() -> Self {
        let (by_name, providers, profiles) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { by_name, providers, profiles, file: None }
    }

    fn add(&mut self, setting: &'static Setting, found: Option<(String, SettingOrigin)>) {
        let (value, origin) = match found {
            Some((value, origin)) => (Some(value), origin),
            None => (setting.default.map(str::to_owned), SettingOrigin::Default),
        };
        self.by_name.insert(setting.name, ResolvedSetting { setting, value, origin });
    }

    /// Reads the file, for the settings that neither a flag nor the environment sets.
    fn read_file(&mut self, given: &CommandLineSettings<'_>, faults: &mut Vec<String>) {
        let named =
            given.file.map(Path::to_owned).or_else(|| variable("JURAT_CONFIG").map(PathBuf::from));
        let is_named = named.is_some();
        let own = Path::new(self.text(&STATE_DIR).unwrap_or_default()).join(FILE_NAME);
        let path = match named {
            Some(path) => path,
            None if own.exists() => own,
            None => return,
        };
        let contents = match file::read(&path) {
            Ok(contents) => contents,
            Err(found) => return faults.extend(found),
        };
        self.providers = contents.providers;
        self.profiles = contents.profiles;
        for found in contents.values {
            if found.setting.name == STATE_DIR.name && !is_named {
                faults.push(format!(
                    "`{}` line {}: `{}` cannot be set by the file in the state folder itself; leave it out, or pass the file with `--config`",
                    path.display(),
                    found.line,
                    STATE_DIR.name
                ));
            }
            let is_free = self.origin(found.setting) == &SettingOrigin::Default;
            if is_free {
                let origin = SettingOrigin::File { path: path.clone(), line: found.line };
                self.add(found.setting, Some((found.value, origin)));
            }
        }
        self.file = Some(path);
    }

    /// Checks the judges from the environment, to find a judge without a provider before a run
    /// needs it. Judges from the file have already been checked.
    fn check_judges(&self, faults: &mut Vec<String>) {
        for setting in [&DEFAULT_MODEL, &PANEL] {
            if let (SettingOrigin::Environment(variable), Some(text)) =
                (self.origin(setting), self.text(setting))
            {
                let found = unknown_judges(setting.name, text, &self.providers);
                let found = found.into_iter().map(|it| format!("the variable {variable}: {it}"));
                faults.extend(found);
            }
        }
    }

    pub(crate) fn providers(&self) -> &[ProviderSection] {
        &self.providers
    }

    pub(crate) fn profiles(&self) -> &[ProfileLine] {
        &self.profiles
    }

    /// The file that was read, if there was one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    pub(crate) fn text(&self, setting: &Setting) -> Option<&str> {
        match self.by_name.get(setting.name) {
            Some(resolved) => resolved.value.as_deref(),
            None => setting.default,
        }
    }

    /// The value of a setting that is a count, or its default.
    pub(crate) fn count(&self, setting: &Setting) -> u64 {
        let default = || setting.default.and_then(|text| text.parse().ok());
        let given = self.text(setting).and_then(|text| text.parse().ok());
        given.or_else(default).unwrap_or_default()
    }

    /// An amount of credits, in micro-credits.
    pub(crate) fn micros(&self, setting: &Setting) -> i64 {
        let default = || setting.default.and_then(ledger::micros);
        self.text(setting).and_then(ledger::micros).or_else(default).unwrap_or_default()
    }

    pub(crate) fn size(&self, setting: &Setting) -> usize {
        usize::try_from(self.count(setting)).unwrap_or(usize::MAX)
    }

    pub(crate) fn origin(&self, setting: &Setting) -> &SettingOrigin {
        self.by_name.get(setting.name).map_or(&SettingOrigin::Default, |resolved| &resolved.origin)
    }

    /// All settings, in the order of the table.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ResolvedSetting> {
        ALL.iter().filter_map(|setting| self.by_name.get(setting.name))
    }
}

/// The value from a flag or the environment, with its source.
fn from_outside(
    setting: &'static Setting,
    given: &CommandLineSettings<'_>,
    faults: &mut Vec<String>,
) -> Option<(String, SettingOrigin)> {
    let flag = given.flags.iter().find(|(known, _)| known.name == setting.name);
    let (text, origin, place) = if let (Some((_, text)), Some(flag)) = (flag, setting.flag) {
        ((*text).to_owned(), SettingOrigin::Flag(flag), format!("`{flag}`"))
    } else {
        let text = variable(setting.variable)?;
        let place = format!("the variable {}", setting.variable);
        (text, SettingOrigin::Environment(setting.variable), place)
    };
    match value::parse(setting.kind, &text) {
        Ok(value) => Some((value, origin)),
        Err(fault) => {
            faults.push(format!("{place} {fault}"));
            None
        }
    }
}

impl SettingOrigin {
    /// The source in a few words.
    pub(crate) fn said(&self) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::File { path, line } => format!("{}:{line}", path.display()),
            Self::Environment(variable) => (*variable).to_owned(),
            Self::Flag(flag) => (*flag).to_owned(),
        }
    }
}
