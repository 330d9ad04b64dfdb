//! Every setting of the program: its names, its type, its default and its purpose.
//!
//! We define the table ourselves, because a derive on a struct of values, such as that of
//! `confique`, stops at the first fault. It also does not know the line of a value in the file, its
//! flag, or whether it is a secret. With our table, `config check` lists all faults with file and
//! line, an unknown name gets a suggestion, `config show` hides secrets, and the reference page
//! comes from the same entries.

mod file;
mod nearest;
mod page;
pub(crate) mod profiles;
pub(crate) mod providers;
mod resolve;
mod table;
mod value;

pub(crate) use self::table::*;
pub(crate) use self::{
    file::{FILE_NAME, read as read_file},
    nearest::unknown_variable,
    page::{example, topic},
    resolve::{CommandLineSettings, ResolvedSetting, SettingOrigin, Settings},
    value::{listed, node_scope, range},
};

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The dotted name in the file.
    pub(crate) name: &'static str,
    pub(crate) variable: &'static str,
    pub(crate) flag: Option<&'static str>,
    pub(crate) kind: SettingKind,
    /// If there is none, an unset setting has no value.
    pub(crate) default: Option<&'static str>,
    /// The purpose of the setting, in one sentence.
    pub(crate) about: &'static str,
    /// A plausible value that differs from the default, for the example file.
    pub(crate) example: &'static str,
    pub(crate) privacy: SettingPrivacy,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingKind {
    Text,
    Folder,
    /// A host or an address, and a port.
    Listen,
    /// Addresses with ports, separated by commas.
    Sockets,
    /// The name of a node or a network, on one line.
    Name,
    /// Scopes of a node, separated by commas.
    NodeScopes,
    /// Web addresses, separated by commas.
    Urls,
    /// An http or https address.
    Url,
    /// An address on an EVM chain.
    EvmAddress,
    /// Host names, separated by commas.
    Hosts,
    /// A file, or a PostgreSQL URL.
    Store,
    Postgres,
    /// A log filter.
    Filter,
    /// The name of an environment variable.
    Variable,
    /// A judge: provider and model.
    Model,
    /// Judges, separated by commas.
    Models,
    /// Ranges of network addresses, separated by commas.
    Ranges,
    /// The id of an account.
    Account,
    /// Entries of an agent in registries, separated by commas.
    AgentRegistrations,
    Word(&'static [&'static str]),
    /// Some of these words, separated by commas.
    Words(&'static [&'static str]),
    /// An amount of credits with up to six decimal places.
    Amount,
    /// A number from 0 to 1.
    Share,
    Count {
        least: u64,
        most: u64,
    },
}

/// The part of a value that may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingPrivacy {
    Open,
    /// An address, which is shown without its password.
    Address,
    /// A secret: only the fact that it is set is shown.
    Hidden,
}

impl Setting {
    /// A setting without a flag and a default, whose value anyone may see.
    const fn new(name: &'static str, variable: &'static str, kind: SettingKind) -> Self {
        let (flag, default, privacy) = (None, None, SettingPrivacy::Open);
        Self { name, variable, flag, kind, default, about: "", example: "", privacy }
    }

    const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    const fn flag(self, flag: &'static str) -> Self {
        Self { flag: Some(flag), ..self }
    }

    const fn default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    const fn shown_without_password(self) -> Self {
        Self { privacy: SettingPrivacy::Address, ..self }
    }

    const fn hidden(self) -> Self {
        Self { privacy: SettingPrivacy::Hidden, ..self }
    }

    /// The part of the value that anyone may see.
    pub(crate) fn shown(&self, value: &str) -> String {
        match self.privacy {
            SettingPrivacy::Open => value.to_owned(),
            SettingPrivacy::Address => value::without_password(value),
            SettingPrivacy::Hidden => "(hidden)".to_owned(),
        }
    }

    /// The value in its normal form, or the reason why it is wrong.
    pub(crate) fn parse(&self, text: &str) -> Result<String, String> {
        value::parse(self.kind, text)
    }

    /// The requirement on a value, after the words `must be`.
    pub(crate) fn expects(&self) -> String {
        value::expected(self.kind)
    }
}
