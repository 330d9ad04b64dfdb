//! Types of fields that several requests share, each with its rule and its schema.

use jurat_core::{
    account::AccountName,
    verifier::{ModelRef, URL_CHARS},
};
use serde_json::Value;
use utoipa::openapi::{
    KnownFormat, RefOr, SchemaFormat,
    schema::{ArrayBuilder, ObjectBuilder, Schema, Type},
};

use super::{FieldFault, FieldPath, RequestField, component, integer, noted, object, text, values};
use crate::api::kit::{
    faults::RequestFaults,
    json::{kind, short, whole_number},
};

/// Text that is not blank.
pub(crate) const NOT_BLANK: &str = r"\S";
/// Text that is not blank and has no NUL, which not every store can hold.
pub(crate) const PLAIN: &str = r"^[^\x00]*[^\s\x00][^\x00]*$";
/// A name that can be part of a URL and of a command line.
pub(crate) const NAME: &str = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$";
const LONGEST_NAME: usize = 64;
/// A provider and a model; the model may contain slashes.
const MODEL: &str = "^[a-z0-9-]+/[!-~]+$";
/// `@handle`, the id of an account, or an e-mail address.
const PERSON: &str = r"^\s*(@?[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]|acct_[A-Za-z0-9]{1,40}|[^\s@]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*)\s*$";

values! {
    /// Text that is not blank.
    pub struct NotBlank(String): text().pattern(Some(NOT_BLANK)) => filled;

    /// Text that identifies something, such as an e-mail address or a code.
    pub struct Identifier(String):
        text().pattern(Some(NOT_BLANK)).min_length(Some(1)) => filled;

    /// The name of an executor or a session.
    pub struct ResourceName(String): text().pattern(Some(NAME)) => name;

    /// An object that is passed on or stored without being interpreted.
    pub struct FreeObject(Value): object() => free_object;

    /// A user, a team or an account, by any of its names.
    pub named struct Person(AccountName as String): text().pattern(Some(PERSON)).description(Some("The e-mail address of a user, the handle of a user or team (with or without `@`), or an account id.")) => person;

    /// A judge.
    pub named struct JudgeModel(ModelRef as String): text().pattern(Some(MODEL)).max_length(Some(200)).description(Some("`provider/model`.")) => model;

    /// The URL of a public image.
    pub struct MediaUrl(String): text().pattern(Some(PLAIN)).max_length(Some(URL_CHARS)) => media_url;
}

/// The text of a value.
pub fn text_of(value: &Value) -> Result<&str, FieldFault> {
    value.as_str().ok_or_else(|| format!("must be a string, not {}", kind(value)).into())
}

/// The texts of a list.
pub fn texts_of(value: &Value) -> Result<Vec<&str>, FieldFault> {
    let texts = value.as_array().and_then(|items| items.iter().map(Value::as_str).collect());
    texts.ok_or_else(|| "must be a list of strings".into())
}

/// The texts of a list, as owned strings.
pub fn texts(value: &Value) -> Result<Vec<String>, FieldFault> {
    Ok(texts_of(value)?.into_iter().map(str::to_owned).collect())
}

/// Accepts any value.
#[expect(clippy::unnecessary_wraps, reason = "all readers of values have one signature")]
pub fn anything(value: &Value) -> Result<Value, FieldFault> {
    Ok(value.clone())
}

/// The text of a value, as an owned string.
pub fn any_text(value: &Value) -> Result<String, FieldFault> {
    text_of(value).map(str::to_owned)
}

/// Text that is not blank.
pub fn filled_text(value: &Value) -> Result<&str, FieldFault> {
    let text = text_of(value)?;
    if text.trim().is_empty() { Err("must not be blank".into()) } else { Ok(text) }
}

/// Text that is not blank and has no NUL.
fn plain_text(value: &Value) -> Result<&str, FieldFault> {
    let text = filled_text(value)?;
    if text.contains('\0') { Err("must not contain a NUL character".into()) } else { Ok(text) }
}

/// Text that is not blank, as an owned string.
pub fn filled(value: &Value) -> Result<String, FieldFault> {
    filled_text(value).map(str::to_owned)
}

/// The name of an executor or a session.
pub fn name(value: &Value) -> Result<String, FieldFault> {
    let text = filled_text(value)?;
    if is_name(text) {
        return Ok(text.to_owned());
    }
    let reason = format!(
        "must have at most {LONGEST_NAME} letters, digits, `-`, `_` or `.`, and start with a letter, a digit or `_`"
    );
    Err(reason.into())
}

/// Whether a text is a valid name of an executor or a session.
pub fn is_name(text: &str) -> bool {
    let is_first = |symbol: char| symbol.is_ascii_alphanumeric() || symbol == '_';
    text.len() <= LONGEST_NAME
        && text.starts_with(is_first)
        && text.chars().all(|symbol| is_first(symbol) || matches!(symbol, '.' | '-'))
}

fn free_object(value: &Value) -> Result<Value, FieldFault> {
    if value.is_object() {
        Ok(value.clone())
    } else {
        Err(format!("must be an object, not {}", kind(value)).into())
    }
}

fn person(value: &Value) -> Result<AccountName, FieldFault> {
    let name = AccountName::parse(filled_text(value)?.trim());
    name.ok_or_else(|| "must be an e-mail address, a handle or an account id".into())
}

fn model(value: &Value) -> Result<ModelRef, FieldFault> {
    let wrong = |()| "must be `provider/model`, such as `anthropic/claude-sonnet-4-6`".into();
    text_of(value)?.parse().map_err(wrong)
}

fn media_url(value: &Value) -> Result<String, FieldFault> {
    bounded(value, URL_CHARS)
}

fn bounded(value: &Value, most: usize) -> Result<String, FieldFault> {
    let text = text_of(value)?;
    if text.trim().is_empty() || text.contains('\0') || most < text.chars().count() {
        let reason = format!(
            "must have 1 to {most} characters, must not be blank, and must not contain NUL"
        );
        return Err(reason.into());
    }
    Ok(text.to_owned())
}

/// A short text that the caller chooses, such as its own id for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundedText<const MOST: usize>(pub String);

impl<const MOST: usize> RequestField for BoundedText<MOST> {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        noted(bounded(value, MOST), at, faults).map(Self)
    }

    fn describe() -> RefOr<Schema> {
        RefOr::T(text().pattern(Some(PLAIN)).max_length(Some(MOST)).build().into())
    }
}

/// Text to store: not blank, without NUL, and not too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainText<const MOST: usize = { usize::MAX }>(pub String);

impl<const MOST: usize> RequestField for PlainText<MOST> {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        let read = plain_text(value).and_then(|text| {
            if text.chars().count() <= MOST {
                Ok(Self(text.to_owned()))
            } else {
                Err(format!("must have at most {MOST} characters").into())
            }
        });
        noted(read, at, faults)
    }

    fn describe() -> RefOr<Schema> {
        let longest = Some(MOST).filter(|most| *most < usize::MAX);
        RefOr::T(text().pattern(Some(PLAIN)).max_length(longest).build().into())
    }
}

/// A whole number within limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole<const LEAST: u64, const MOST: u64>(pub u64);

impl<const LEAST: u64, const MOST: u64> RequestField for Whole<LEAST, MOST> {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        noted(whole(value, LEAST, MOST), at, faults).map(Self)
    }

    fn describe() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
        let number = integer().format(Some(format));
        RefOr::T(number.minimum(Some(LEAST)).maximum(Some(MOST)).build().into())
    }
}

/// A whole number of 32 bits within limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count<const LEAST: u32, const MOST: u32>(pub u32);

impl<const LEAST: u32, const MOST: u32> RequestField for Count<LEAST, MOST> {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        let number = noted(whole(value, LEAST.into(), MOST.into()), at, faults)?;
        u32::try_from(number).ok().map(Self)
    }

    fn describe() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Int32);
        let number = integer().format(Some(format));
        RefOr::T(number.minimum(Some(LEAST)).maximum(Some(MOST)).build().into())
    }
}

/// The number of a version.
pub type VersionNumber = Count<1, { u32::MAX }>;

fn whole(value: &Value, least: u64, most: u64) -> Result<u64, FieldFault> {
    match whole_number(value) {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        _ if least == most => Err(format!("must be {least}").into()),
        _ => Err(format!("must be a whole number from {least} to {most}").into()),
    }
}

/// The schema of a number with or without a fraction.
pub fn number() -> ObjectBuilder {
    let format = SchemaFormat::KnownFormat(KnownFormat::Double);
    ObjectBuilder::new().schema_type(Type::Number).format(Some(format))
}

/// The schema of a list of values that the document names.
pub fn list_of<T: utoipa::ToSchema>() -> ArrayBuilder {
    ArrayBuilder::new().items(component::<T>())
}

/// Reads one of the known words; a fault lists them.
pub fn word<T: std::str::FromStr>(
    value: &Value,
    known: impl Iterator<Item = &'static str>,
) -> Result<T, FieldFault> {
    let text = text_of(value)?;
    text.parse().map_err(|_| {
        let known: Vec<&str> = known.collect();
        format!("must be one of {}, not `{}`", known.join(", "), short(text)).into()
    })
}
