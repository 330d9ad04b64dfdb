//! Consensus profiles: sections of the file whose names the operator chooses.

use std::fmt::Write as _;

use jurat_core::round::profile::ConsensusProfile;
use jurat_wire::api::openai::profile::{self, ProfileFault};
use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use super::file::{FileFaults, a_kind};
use crate::output::shortened;

/// The table of the file that holds a section for each profile.
pub(super) const TABLE: &str = "profiles";

/// One key of a section.
#[derive(Debug)]
pub(crate) struct ProfileSetting {
    /// The name in the section.
    pub(crate) name: &'static str,
    /// The default, in words.
    pub(crate) default: &'static str,
    /// The purpose of the setting, in one sentence.
    pub(crate) about: &'static str,
    /// The value in the example file.
    pub(crate) example: &'static str,
}

const fn setting(
    name: &'static str,
    default: &'static str,
    about: &'static str,
    example: &'static str,
) -> ProfileSetting {
    ProfileSetting { name, default, about, example }
}

/// The settings of a profile, in display order: the `consensus` block of a request, with the policy
/// and the deadline beside it.
pub(crate) static PROFILE_SETTINGS: &[ProfileSetting] = &[
    setting(
        "about",
        "its terms",
        "Purpose of the profile, for the list of models.",
        "\"Three opinions\"",
    ),
    setting(
        "replicas",
        "that of the tier of `policy`, or 1",
        "Number of sessions to call: 1, 3 or 5.",
        "3",
    ),
    setting(
        "session_pool",
        "all sessions",
        "Sessions that may be called, each by its id, `label:…` or `profile:…`.",
        "[\"one\", \"two\", \"three\"]",
    ),
    setting(
        "spares",
        "the number of replicas",
        "How many spare sessions may replace failed ones.",
        "1",
    ),
    setting(
        "policy",
        "`vp.schema_only.v1`",
        "A tier, the id of a policy, or a table with `tier`, `labels`, `policy_id`, `policy_params` and `task_type`.",
        "{ tier = \"safe\" }",
    ),
    setting(
        "aggregation",
        "`majority`",
        "How scores are combined: `majority`, `mean` or `median`.",
        "\"majority\"",
    ),
    setting(
        "equivalence",
        "by the outputs",
        "When two answers count as equal, such as `text` or a table with a tolerance.",
        "\"text\"",
    ),
    setting(
        "merge",
        "`medoid`",
        "How the output is built from the winners' outputs: `medoid` or `fields`.",
        "\"medoid\"",
    ),
    setting(
        "disagreement_policy",
        "`return_all`",
        "What to do when the replicas do not agree: `return_all` refuses, `best_effort` returns the leading answer, `fail_hard` is 409.",
        "\"return_all\"",
    ),
    setting(
        "min_agreement",
        "a majority",
        "Minimum share of the replicas that must agree, in addition to a majority.",
        "0.6",
    ),
    setting(
        "timeout_policy",
        "`count`",
        "How a replica without an answer counts: `count`, `ignore` or `negative`.",
        "\"count\"",
    ),
    setting(
        "early_stop",
        "false",
        "Stop as soon as no outstanding replica can change the winner.",
        "false",
    ),
    setting("timeout_ms", "60000", "Deadline of the round, in milliseconds.", "60000"),
];

/// One section.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProfileLine {
    pub(crate) profile: ConsensusProfile,
    /// The line on which the section begins.
    pub(crate) line: usize,
}

/// The profiles of a file. `line_of` turns a position into a line number.
pub(super) fn read(
    table: &DeTable<'_>,
    line_of: impl Fn(usize) -> usize,
    faults: &mut FileFaults,
) -> Vec<ProfileLine> {
    let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == TABLE) else {
        return Vec::new();
    };
    let Some(sections) = value.get_ref().as_table() else {
        let kind = a_kind(value.get_ref());
        let text =
            format!("`{TABLE}` must contain sections like `[{TABLE}.careful]`, and is {kind}");
        faults.push((key.span().start, text));
        return Vec::new();
    };
    let mut profiles = Vec::new();
    for (name, value) in sections {
        let (at, name): (usize, &str) = (name.span().start, name.get_ref());
        let Some(section) = value.get_ref().as_table() else {
            let kind = a_kind(value.get_ref());
            let text =
                format!("`{TABLE}.{}` must be a section, and is {kind}", shortened(name, 60));
            faults.push((at, text));
            continue;
        };
        match profile::read(name, &Value::Object(json_table(section))) {
            Ok(profile) => profiles.push(ProfileLine { profile, line: line_of(at) }),
            Err(found) => {
                faults.extend(found.into_iter().map(|fault| placed(name, at, section, &fault)));
            }
        }
    }
    profiles
}

/// A fault with the position of its setting.
fn placed(name: &str, at: usize, section: &DeTable<'_>, fault: &ProfileFault) -> (usize, String) {
    let ProfileFault { field, reason } = fault;
    let first = field.split('.').next().unwrap_or_default();
    let key = section.iter().find(|(key, _)| key.get_ref() == first);
    let dot = if field.is_empty() { "" } else { "." };
    let text = format!("`{TABLE}.{}{dot}{field}` {reason}", shortened(name, 60));
    (key.map_or(at, |(key, _)| key.span().start), text)
}

fn json_table(table: &DeTable<'_>) -> Map<String, Value> {
    table
        .iter()
        .map(|(key, value)| (key.get_ref().to_string(), json_value(value.get_ref())))
        .collect()
}

/// The value as it would be in a request. Dates, which no request has, become text.
fn json_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(number) => {
            number.to_string().parse::<i64>().map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => {
            number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
        }
        DeValue::Boolean(flag) => json!(flag),
        DeValue::Datetime(time) => json!(time.to_string()),
        DeValue::Array(items) => items.iter().map(|item| json_value(item.get_ref())).collect(),
        DeValue::Table(table) => Value::Object(json_table(table)),
    }
}

/// The section of the example file, commented out.
pub(super) fn example() -> String {
    let mut text = String::from(
        "\n# Consensus profiles, which chat clients select as models: this one is `jurat/careful`. The\n\
         # profiles `fast`, `safe` and `oracle` are built in.\n\
         # [profiles.careful]\n",
    );
    for setting in PROFILE_SETTINGS {
        let _ = write!(text, "\n# {}\n# {} = {}\n", setting.about, setting.name, setting.example);
    }
    text
}

/// The text about profiles in `jurat help settings`.
pub(super) fn topic() -> String {
    let mut text = String::from(
        "\nConsensus profiles, the models of chat clients, can only be set in the file, each in its own section:\n",
    );
    let _ = write!(text, "\n  [{TABLE}.NAME]\n");
    for ProfileSetting { name, default, about, .. } in PROFILE_SETTINGS {
        let _ = write!(text, "    {name}\n      {about}\n      default: {default}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Vec<ProfileLine>, Vec<String>) {
        let table = DeTable::parse(text).unwrap();
        let line_of = |at: usize| text[..at].matches('\n').count() + 1;
        let mut faults = FileFaults::new();
        let found = read(table.get_ref(), line_of, &mut faults);
        faults.sort();
        let faults = faults.into_iter().map(|(at, text)| format!("{}: {text}", line_of(at)));
        (found, faults.collect())
    }

    #[test]
    fn a_section_is_a_profile_with_its_line() {
        let text = "\n[profiles.careful]\nreplicas = 3\nsession_pool = ['a', 'b', 'c']\n\
                    equivalence = { numeric = { tolerance = 0.5 } }\nearly_stop = true\n";
        let (found, faults) = parse(text);
        assert_eq!(faults, [] as [&str; 0]);
        assert_eq!((found[0].profile.model().as_str(), found[0].line), ("jurat/careful", 2));
        let expected = json!({ "consensus": {
            "replicas": 3, "session_pool": ["a", "b", "c"], "early_stop": true,
            "equivalence": { "numeric": { "tolerance": 0.5 } },
        } });
        assert_eq!(Value::Object(found[0].profile.request.clone()), expected);
    }

    #[test]
    fn every_fault_is_named_with_its_line() {
        let text = "[profiles.a]\nreplicas = 2\npolicy = { tier = 'best' }\nreplica = 1\n\
                    [profiles.safe]\n[profiles]\nb = 1\n";
        // A table cannot be opened again, so the last two lines are a file of their own.
        let (text, rest) = text.split_at(text.find("[profiles]\n").unwrap());
        let (_, faults) = parse(text);
        assert_eq!(
            faults,
            [
                "2: `profiles.a.replicas` must be 1, 3 or 5",
                "3: `profiles.a.policy.tier` must be one of fast, safe, oracle, not `best`",
                "4: `profiles.a.replica` is not a known field; did you mean `replicas`?",
                "5: `profiles.safe` cannot be set: it is the built-in profile of that tier",
            ]
        );
        let (_, faults) = parse(rest);
        assert_eq!(faults, ["2: `profiles.b` must be a section, and is an integer"]);
        let (_, faults) = parse("profiles = 1");
        assert_eq!(
            faults,
            ["1: `profiles` must contain sections like `[profiles.careful]`, and is an integer"]
        );
    }

    #[test]
    fn the_example_is_a_valid_profile() {
        let text = example();
        let lines = text.lines().filter_map(|line| line.strip_prefix("# "));
        let lines = lines.filter(|line| line.starts_with('[') || line.contains(" = "));
        let (found, faults) = parse(&lines.collect::<Vec<_>>().join("\n"));
        assert_eq!(faults, [] as [&str; 0]);
        assert_eq!(found.len(), 1);
    }
}
