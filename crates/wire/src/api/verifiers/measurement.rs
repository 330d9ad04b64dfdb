//! Measurements of a version, without their cases.

use std::borrow::Cow;

use jurat_core::{time::Timestamp, verifier::run::VerifierRunPurpose};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::kit::time::Time;

/// The newest measurements of a version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Measured)]
pub struct NewestMeasurements<'a> {
    /// Test against labelled examples; null if there was none.
    #[schema(required = true)]
    pub test: Option<MeasurementBody<'a>>,
    /// Attack with known injections; null if there was none.
    #[schema(required = true)]
    pub attack: Option<MeasurementBody<'a>>,
}

/// One measurement.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Measurement)]
pub struct MeasurementBody<'a> {
    pub measurement_id: Cow<'a, str>,
    #[schema(value_type = Time)]
    pub measured_at: Time,
    /// Two measurements with the same digest used the same examples.
    pub data_digest: Cow<'a, str>,
    /// The judge: always the version's own.
    #[schema(value_type = Vec<String>)]
    pub judges: Cow<'a, Value>,
    /// Number of judges per case.
    #[schema(value_type = u8)]
    pub replicas: Cow<'a, Value>,
    /// The attack families tried; empty for a test.
    #[schema(value_type = Vec<String>)]
    pub families: Cow<'a, Value>,
    /// The judge's scores.
    #[schema(value_type = Value)]
    pub figures: Cow<'a, Value>,
}

impl<'a> MeasurementBody<'a> {
    /// A measurement from the document that the engine stores.
    pub fn new(id: &'a str, at: Timestamp, data_digest: &'a str, document: &'a Value) -> Self {
        Self {
            measurement_id: Cow::Borrowed(id),
            measured_at: Time(at),
            data_digest: Cow::Borrowed(data_digest),
            judges: Cow::Borrowed(&document["judges"]),
            replicas: Cow::Borrowed(&document["replicas"]),
            families: Cow::Borrowed(&document["families"]),
            figures: Cow::Borrowed(&document["figures"]),
        }
    }
}

impl<'a> NewestMeasurements<'a> {
    /// The newest test and attack of a version; `None` if it was never measured.
    pub fn of(found: &[(VerifierRunPurpose, MeasurementBody<'a>)]) -> Option<Self> {
        let of = |wanted: VerifierRunPurpose| {
            let found = found.iter().find(|(purpose, _)| *purpose == wanted);
            found.map(|(_, measurement)| measurement.clone())
        };
        let measured =
            Self { test: of(VerifierRunPurpose::Test), attack: of(VerifierRunPurpose::Attack) };
        (measured.test.is_some() || measured.attack.is_some()).then_some(measured)
    }
}
