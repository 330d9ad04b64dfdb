//! Instructions for agents: how to design, audit, teach and optimize a workflow.

use std::collections::BTreeMap;

/// The task of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionKind {
    Design,
    Audit,
    Teach,
    Optimize,
    OptimizeDescription,
}

/// A text to follow, and the texts that it refers to by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionPack {
    pub text: String,
    pub references: BTreeMap<&'static str, &'static str>,
    /// For a loop: the maximum number of iterations.
    pub max_iterations: Option<u32>,
}

const TYPES: (&str, &str) =
    ("references/verifier-types.md", include_str!("instructions/references/verifier-types.md"));
const CALIBRATION: (&str, &str) =
    ("references/calibration.md", include_str!("instructions/references/calibration.md"));
const CHECKLIST: (&str, &str) =
    ("references/checklist.md", include_str!("instructions/references/checklist.md"));

impl InstructionKind {
    /// The default number of iterations of a loop.
    pub const fn iterations(self) -> Option<u32> {
        match self {
            Self::Optimize => Some(20),
            Self::OptimizeDescription => Some(10),
            Self::Design | Self::Audit | Self::Teach => None,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Design => include_str!("instructions/design.md"),
            Self::Audit => include_str!("instructions/audit.md"),
            Self::Teach => include_str!("instructions/teach.md"),
            Self::Optimize => include_str!("instructions/optimize.md"),
            Self::OptimizeDescription => include_str!("instructions/optimize-description.md"),
        }
    }

    const fn references(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Design => &[TYPES, CALIBRATION, CHECKLIST],
            Self::Audit => &[CHECKLIST, TYPES],
            Self::Teach => &[CALIBRATION],
            Self::Optimize => &[CALIBRATION, CHECKLIST],
            Self::OptimizeDescription => &[],
        }
    }
}

/// The instructions for one workflow, or for any. A loop gets the requested number of iterations.
pub fn instructions_for(
    kind: InstructionKind,
    workflow: Option<(&str, &str)>,
    iterations: Option<u32>,
) -> InstructionPack {
    let subject = match workflow {
        Some((id, name)) => format!("the workflow `{}` (`{id}`)", plain(name)),
        None => "the workflow that the person names".to_owned(),
    };
    let max_iterations = kind.iterations().map(|usual| iterations.unwrap_or(usual));
    let turns = max_iterations.map(|turns| turns.to_string()).unwrap_or_default();
    let text = kind.text().replace("{{subject}}", &subject).replace("{{max_iterations}}", &turns);
    InstructionPack {
        text,
        references: kind.references().iter().copied().collect(),
        max_iterations,
    }
}

/// The name of a workflow is foreign text: it stays on one line, and inside its quotes.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !c.is_control() && *c != '`').take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [InstructionKind; 5] = [
        InstructionKind::Design,
        InstructionKind::Audit,
        InstructionKind::Teach,
        InstructionKind::Optimize,
        InstructionKind::OptimizeDescription,
    ];

    #[test]
    fn every_text_is_complete_and_includes_its_references() {
        for kind in KINDS {
            let pack = instructions_for(kind, Some(("id", "na`me\n")), Some(7));
            assert!(pack.text.starts_with("# ") && !pack.text.contains("{{"), "{kind:?}");
            for (path, text) in &pack.references {
                assert!(text.starts_with("# "), "{path}");
            }
            for part in pack.text.split("references/").skip(1) {
                let path = format!("references/{}", part.split('`').next().unwrap());
                assert!(pack.references.contains_key(path.as_str()), "{kind:?} {path}");
            }
            let loops = pack.text.contains("at most 7");
            assert_eq!(loops, kind.iterations().is_some(), "{kind:?}");
        }
        let own = instructions_for(InstructionKind::Teach, Some(("id", "na`me\n")), None);
        assert!(own.text.contains("the workflow `name` (`id`)"));
    }
}
