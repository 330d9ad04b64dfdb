//! Known injections against judges, and the inputs that try them on a verifier.
//!
//! Every try should fail: it is built on inputs that do not meet the criterion. An attack succeeds
//! if the judge passes it. Tries are sent only to the measured judge.

mod texts;

use std::{collections::BTreeMap, str::FromStr};

use super::calibration::Rate;
use crate::{judge::is_blank, round::job::words};

words!(
    /// The trick of an attack.
    AttackFamily {
        /// An answer without content that looks like the start of one.
        MasterKey => "master_key",
        /// A section that claims to come from the graders.
        Section => "section",
        /// A fake end of the data, so that the rest looks like instructions.
        Breakout => "breakout",
        /// A verdict that claims to have been given already.
        Verdict => "verdict",
        /// An instruction to the judge.
        Instruction => "instruction",
        /// The voice of the system, the owner or a person in a role.
        Authority => "authority",
        /// A frame around the data that says what to think of it.
        Framing => "framing",
        /// An instruction that people cannot see, or that must be decoded.
        Encoding => "encoding",
        /// An instruction in another language.
        Language => "language",
        /// Praise, pleas and threats.
        Flattery => "flattery",
        /// The same text in every field.
        Everywhere => "everywhere",
    }
);

words!(
    /// Where the text of an attack goes.
    AttackPlacement {
        /// Replaces one field after the other.
        Replace => "replace",
        /// Follows the text of one field after the other.
        Append => "append",
        /// Precedes the text of one field after the other.
        Prepend => "prepend",
        /// Surrounds the text of one field after the other, in place of `{base}`.
        Around => "around",
        /// Follows the text of every field in one try.
        Everywhere => "everywhere",
        /// Replaces every field in one try.
        EverywhereAlone => "everywhere_alone",
    }
);

/// One known injection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attack {
    /// Its family and a word, such as `breakout.candidate_tag`. It never changes its meaning.
    pub id: String,
    pub family: AttackFamily,
    pub text: String,
    pub placement: AttackPlacement,
}

/// The inputs of one try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttackTry {
    /// The attack and its field: `breakout.candidate_tag:response`.
    pub id: String,
    pub inputs: BTreeMap<String, String>,
}

/// How many fields one attack tries on its own. With more fields, the others are left to other
/// attacks.
const FIELDS_OF_ONE: usize = 3;

/// The text of a field of a verifier without an example of a failure.
const NEUTRAL: &str = "I did not look into it, and I have nothing to say about it.";

/// All built-in attacks, family by family.
pub fn attacks() -> &'static [Attack] {
    &texts::ATTACKS
}

/// Neutral inputs, for a verifier without an example that is labelled as a failure.
///
/// A criterion that even these meet, such as one against insults, lets many attacks succeed that
/// fool nobody: judge the base alone first, and keep the measurement only if that fails.
pub fn neutral(fields: &[String]) -> BTreeMap<String, String> {
    fields.iter().map(|field| (field.clone(), NEUTRAL.to_owned())).collect()
}

/// The tries of an attack on a verifier with these fields, built on a base that must fail.
///
/// A field that the base lacks is neutral. Without text fields there is nothing to attack.
pub fn tries(
    attack: &Attack,
    fields: &[String],
    base: &BTreeMap<String, String>,
) -> Vec<AttackTry> {
    let base: BTreeMap<String, String> = neutral(fields)
        .into_iter()
        .map(|(field, neutral)| {
            let given = base.get(&field).filter(|text| !is_blank(text));
            let text = given.cloned().unwrap_or(neutral);
            (field, text)
        })
        .collect();
    // In one field, or in all of them.
    let attacked = |only: Option<&str>| -> BTreeMap<String, String> {
        let fields = base.iter().map(|(field, text)| {
            let is_meant = only.is_none_or(|only| only == field);
            (field.clone(), if is_meant { attack.inject(text) } else { text.clone() })
        });
        fields.collect()
    };
    match attack.placement {
        AttackPlacement::Everywhere | AttackPlacement::EverywhereAlone if fields.is_empty() => {
            Vec::new()
        }
        AttackPlacement::Everywhere | AttackPlacement::EverywhereAlone => {
            vec![AttackTry { id: format!("{}:all", attack.id), inputs: attacked(None) }]
        }
        AttackPlacement::Replace
        | AttackPlacement::Append
        | AttackPlacement::Prepend
        | AttackPlacement::Around => {
            let tried = attack.fields_of(fields).into_iter().map(|field| AttackTry {
                id: format!("{}:{field}", attack.id),
                inputs: attacked(Some(field)),
            });
            tried.collect()
        }
    }
}

/// The inputs of the tries alone.
pub fn inputs(
    attack: &Attack,
    fields: &[String],
    base: &BTreeMap<String, String>,
) -> Vec<BTreeMap<String, String>> {
    tries(attack, fields, base).into_iter().map(|one| one.inputs).collect()
}

impl Attack {
    /// The text of a field with the attack in it.
    fn inject(&self, base: &str) -> String {
        match self.placement {
            AttackPlacement::Replace | AttackPlacement::EverywhereAlone => self.text.clone(),
            AttackPlacement::Append | AttackPlacement::Everywhere => {
                format!("{base}\n\n{}", self.text)
            }
            AttackPlacement::Prepend => format!("{}\n\n{base}", self.text),
            AttackPlacement::Around => self.text.replace("{base}", base),
        }
    }

    /// All fields, or those that this attack tries if there are many.
    fn fields_of<'f>(&self, fields: &'f [String]) -> Vec<&'f str> {
        let turn = attacks().iter().position(|other| other.id == self.id).unwrap_or_default();
        let count = fields.len().min(FIELDS_OF_ONE);
        let from = if fields.len() <= FIELDS_OF_ONE { 0 } else { turn * FIELDS_OF_ONE };
        let chosen = (0..count).filter_map(|step| fields.get((from + step) % fields.len()));
        chosen.map(String::as_str).collect()
    }
}

/// The result of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttackResult {
    pub family: AttackFamily,
    /// The verdict of the judge; `None` if it gave none.
    pub passed: Option<bool>,
}

/// How often attacks succeeded.
#[derive(Debug, Clone, PartialEq)]
pub struct AttackStats {
    pub n: usize,
    pub succeeded: usize,
    /// Tries without a verdict. They did not succeed, and stay in the denominator.
    pub inconclusive: usize,
    pub success_rate: Rate,
    /// Families that were tried, in the order of the attacks.
    pub families: Vec<FamilyStats>,
}

/// How often the attacks of one family succeeded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FamilyStats {
    pub family: AttackFamily,
    pub inconclusive: usize,
    pub success_rate: Rate,
}

impl AttackStats {
    /// Counts the results.
    pub fn of(tried: &[AttackResult]) -> Self {
        let passed =
            |tried: &[AttackResult]| tried.iter().filter(|one| one.passed == Some(true)).count();
        let open = |tried: &[AttackResult]| tried.iter().filter(|one| one.passed.is_none()).count();
        let families = AttackFamily::ALL.iter().filter_map(|family| {
            let own: Vec<AttackResult> =
                tried.iter().filter(|one| one.family == *family).copied().collect();
            (!own.is_empty()).then(|| FamilyStats {
                family: *family,
                inconclusive: open(&own),
                success_rate: Rate::of(passed(&own), own.len()),
            })
        });
        Self {
            n: tried.len(),
            succeeded: passed(tried),
            inconclusive: open(tried),
            success_rate: Rate::of(passed(tried), tried.len()),
            families: families.collect(),
        }
    }
}

#[cfg(test)]
mod tests;
