//! The resource `/v1/verifiers`: versioned checks that a judge decides.

mod deploy;
mod measurement;
mod show;

use jurat_core::{
    code::ProblemCode,
    verifier::{InputError, VerifierRef, VerifierRefError},
};

pub use self::{
    deploy::{DeployVerifierRequest, DeployedVerifier, decode_deploy},
    measurement::{MeasurementBody, NewestMeasurements},
    show::{
        DeletedVerifier, ExampleBody, JudgeModelConfig, ListedVerifier, RevokedVerifier,
        SnapshotBody, VerifierBody, VersionBody, deleted, listed, revoked, shown, version_line,
    },
};
use super::kit::json::short;
use crate::problem::Problem;

/// Reads a reference to a verifier. A malformed reference is a verifier that does not exist.
pub fn reference(text: &str) -> Result<VerifierRef, Problem> {
    VerifierRef::parse(text).map_err(|error| match error {
        VerifierRefError::Form => {
            Problem::new(ProblemCode::NotFound, format!("there is no verifier `{}`", short(text)))
        }
        VerifierRefError::Version => {
            let detail = format!("the verifier `{}` {error}", short(text));
            Problem::new(ProblemCode::ValidationError, detail).at("verifier_id")
        }
    })
}

/// Adds a separately given version to a reference. A pinned version must be the same.
pub fn pinned(reference: VerifierRef, version: Option<u32>) -> Result<VerifierRef, Problem> {
    match (reference.version, version) {
        (Some(pinned), Some(asked)) if pinned != asked => {
            let detail =
                format!("`version` {asked} contradicts the pin `@{pinned}`; leave one out");
            Err(Problem::new(ProblemCode::ValidationError, detail).at("version"))
        }
        (pinned, asked) => Ok(VerifierRef { version: pinned.or(asked), ..reference }),
    }
}

fn problem_of(error: &InputError) -> Problem {
    Problem::new(ProblemCode::ValidationError, error.to_string()).at(error.field.as_str())
}
