//! The sets of tools: which of them a server offers, and which of those a request selects.

use std::{collections::BTreeSet, str::FromStr};

use axum::http::Uri;
use jurat_core::code::ProblemCode;
use jurat_wire::problem::Problem;

use crate::{
    operation::{Operation, Tool},
    resources::{
        AGENT_RUNS, CONSENSUS, CREDITS, KEYS, PEOPLE, ROUNDS, TASKS, TEMPLATES, VERIFIERS,
        WEBHOOKS, WORKFLOW_TOOLS, WORKFLOWS,
    },
};

/// The query parameter of `/mcp` that selects sets.
pub(crate) const TOOLS: &str = "tools";
/// The word that also lists the second names of tools.
const ALIASES: &str = "aliases";

/// Every word that selects tools: the sets, and `aliases`.
pub const TOOL_SETS: [&str; 9] = [
    "consensus",
    "verifiers",
    "workflows",
    "templates",
    "tasks",
    "account",
    "admin",
    "cortensor",
    ALIASES,
];

/// A set of tools for one kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ToolSet {
    Consensus,
    Verifiers,
    Workflows,
    Templates,
    /// Tasks and agent runs.
    Tasks,
    /// Keys, credit, teams, shares, invitations and webhooks.
    Account,
    /// The work of operators.
    Admin,
    /// Tools with the names of another system. Off unless it is asked for.
    Cortensor,
}

impl ToolSet {
    const ALL: [Self; 8] = [
        Self::Consensus,
        Self::Verifiers,
        Self::Workflows,
        Self::Templates,
        Self::Tasks,
        Self::Account,
        Self::Admin,
        Self::Cortensor,
    ];

    /// The set of a tool: that of its names, or of the group of its operation.
    pub(super) fn of(operation: &Operation, tool: &Tool) -> Self {
        if tool.is_for_peers {
            return Self::Cortensor;
        }
        match operation.tag {
            CONSENSUS | ROUNDS => Self::Consensus,
            VERIFIERS => Self::Verifiers,
            WORKFLOWS | WORKFLOW_TOOLS => Self::Workflows,
            TEMPLATES => Self::Templates,
            TASKS | AGENT_RUNS => Self::Tasks,
            PEOPLE | KEYS | CREDITS | WEBHOOKS => Self::Account,
            _ => Self::Admin,
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Consensus => "consensus",
            Self::Verifiers => "verifiers",
            Self::Workflows => "workflows",
            Self::Templates => "templates",
            Self::Tasks => "tasks",
            Self::Account => "account",
            Self::Admin => "admin",
            Self::Cortensor => "cortensor",
        }
    }

    const fn is_on_by_default(self) -> bool {
        !matches!(self, Self::Cortensor)
    }
}

impl FromStr for ToolSet {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|set| set.as_str() == word).ok_or(())
    }
}

/// The sets that a server offers.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolOffer {
    /// The sets of the operator's setting, which no request can exceed; `None` offers all, and lists
    /// those that are on by default.
    limit: Option<BTreeSet<ToolSet>>,
    lists_aliases: bool,
}

impl ToolOffer {
    /// The offer of a setting. Words that are no sets are ignored: the settings refuse them.
    pub(crate) fn new(words: &[String]) -> Self {
        let sets: BTreeSet<ToolSet> = words.iter().filter_map(|word| word.parse().ok()).collect();
        let lists_aliases = words.iter().any(|word| word == ALIASES);
        Self { limit: Some(sets).filter(|sets| !sets.is_empty()), lists_aliases }
    }

    /// The tools for a request to an address, which may name sets.
    pub(super) fn select(&self, uri: &Uri) -> Result<ToolSelection, Problem> {
        let mut selection =
            ToolSelection { sets: BTreeSet::new(), lists_aliases: self.lists_aliases };
        let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        for (_, words) in query.filter(|(name, _)| name == TOOLS) {
            for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                if word == ALIASES {
                    selection.lists_aliases = true;
                } else {
                    selection.sets.insert(self.offered(word)?);
                }
            }
        }
        if selection.sets.is_empty() {
            selection.sets = self.usual();
        }
        Ok(selection)
    }

    /// The sets for a request that names none.
    fn usual(&self) -> BTreeSet<ToolSet> {
        let by_default = || ToolSet::ALL.into_iter().filter(|set| set.is_on_by_default()).collect();
        self.limit.clone().unwrap_or_else(by_default)
    }

    fn offered(&self, word: &str) -> Result<ToolSet, Problem> {
        let set = word.parse().ok();
        let is_offered = |set: &ToolSet| self.limit.as_ref().is_none_or(|it| it.contains(set));
        set.filter(is_offered).ok_or_else(|| {
            let word: String = word.chars().take(40).collect();
            let known = self.limit.clone().unwrap_or_else(|| ToolSet::ALL.into());
            let known: Vec<&str> = known.into_iter().map(ToolSet::as_str).collect();
            let detail = format!(
                "`{TOOLS}` names `{word}`, which is not a set of tools that this server offers; use {} or `{ALIASES}`, separated by commas",
                known.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
            );
            Problem::new(ProblemCode::ValidationError, detail).at(TOOLS)
        })
    }
}

/// The tools for one request. Others do not exist for it.
#[derive(Debug, Clone)]
pub(super) struct ToolSelection {
    sets: BTreeSet<ToolSet>,
    /// Whether the second names of tools are listed too. They can be called anyway.
    pub(super) lists_aliases: bool,
}

impl ToolSelection {
    pub(super) fn has(&self, set: ToolSet) -> bool {
        self.sets.contains(&set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(offer: &ToolOffer, uri: &'static str) -> Result<Vec<&'static str>, String> {
        let selection = offer.select(&Uri::from_static(uri)).map_err(|it| it.detail.clone())?;
        let aliases = selection.lists_aliases.then_some(ALIASES);
        Ok(selection.sets.into_iter().map(ToolSet::as_str).chain(aliases).collect())
    }

    #[test]
    fn the_words_of_the_setting_are_the_sets_and_the_aliases() {
        let sets = ToolSet::ALL.map(ToolSet::as_str);
        assert_eq!([&sets[..], &[ALIASES]].concat(), TOOL_SETS);
    }

    #[test]
    fn a_request_selects_sets_and_the_operator_limits_them() {
        let all = ToolOffer::default();
        assert_eq!(selected(&all, "/mcp"), Ok(TOOL_SETS[..7].to_vec()));
        assert_eq!(
            selected(&all, "/mcp?x=1&tools=tasks,%20verifiers"),
            Ok(vec!["verifiers", "tasks"])
        );
        assert_eq!(selected(&all, "/mcp?tools=cortensor"), Ok(vec!["cortensor"]));
        assert_eq!(selected(&all, "/mcp?tools=aliases&tools=tasks"), Ok(vec!["tasks", "aliases"]));
        let few = ToolOffer::new(&["tasks".to_owned(), "consensus".to_owned()]);
        assert_eq!(selected(&few, "/mcp"), Ok(vec!["consensus", "tasks"]));
        assert_eq!(selected(&few, "/mcp?tools=tasks"), Ok(vec!["tasks"]));
        let refusal = selected(&few, "/mcp?tools=tasks,account").unwrap_err();
        assert!(refusal.contains("`account`") && refusal.contains("use `consensus`, `tasks` or"));
        assert!(selected(&all, "/mcp?tools=everything").is_err());
    }
}
