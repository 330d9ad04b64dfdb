//! The macros that declare requests and the values of their fields.

/// Declares requests and the objects within them.
///
/// `strict` refuses unknown fields, `open` ignores them. `as` sets the name in the document: of the
/// schema if it follows the struct, of the member if it follows a field. `| alias` after a field
/// also accepts the alias, which is not described. A last line with `..` adds the fields of another
/// declaration. `draft` names a second struct with the same fields, as a caller writes them.
macro_rules! request {
    ($(
        $(#[doc = $about:expr])*
        $vis:vis $unknown:ident struct $name:ident $(as $title:literal)? $(, draft $draft:ident)? {
            $(
                $(#[doc = $doc:expr])*
                $field:ident $(| $alias:ident)? $(as $wire:literal)? : $ty:ty
            ),*
            $(,)?
            $( ; $( ..$flat:ident : $flat_ty:ty ),+ $(,)? )?
        }
    )+) => {$(
        $(#[doc = $about])*
        #[derive(Debug)]
        $vis struct $name {
            $( $(#[doc = $doc])* pub $field: $ty, )*
            $( $( #[doc = "Fields that other requests have too."] pub $flat: $flat_ty, )+ )?
        }

        const _: () = {
            use $crate::api::kit::{
                faults::RequestFaults,
                request::{
                    self as kit, FieldPath, RequestBody, RequestField, SchemaParts, UnknownFields,
                    unknown::{FieldShape, KnownFields},
                },
            };
            use ::std::{borrow::Cow, sync::LazyLock};
            use ::utoipa::{
                PartialSchema, ToSchema,
                openapi::{RefOr, schema::{ObjectBuilder, Schema}},
            };

            impl RequestField for $name {
                fn read(
                    value: &::serde_json::Value,
                    at: &FieldPath<'_>,
                    faults: &mut RequestFaults,
                ) -> Option<Self> {
                    let members = kit::members(value, at, faults)?;
                    $(
                        let names = (request!(@name $field $($wire)?), request!(@alias $($alias)?));
                        let $field = kit::member::<$ty>(members, names, at, faults);
                    )*
                    $( $( let $flat = <$flat_ty>::read(value, at, faults); )+ )?
                    let _ = members;
                    Some(Self { $( $field: $field?, )* $( $( $flat: $flat?, )+ )? })
                }

                fn describe() -> RefOr<Schema> {
                    kit::component::<Self>()
                }

                fn describe_parts(parts: &mut SchemaParts) {
                    kit::add_component::<Self>(parts);
                }

                fn shape() -> FieldShape {
                    match Self::UNKNOWN {
                        UnknownFields::Refused => Self::known().shape().clone(),
                        UnknownFields::Ignored => FieldShape::Free,
                    }
                }
            }

            impl RequestBody for $name {
                const UNKNOWN: UnknownFields = request!(@unknown $unknown);

                fn known() -> &'static KnownFields {
                    static KNOWN: LazyLock<KnownFields> = LazyLock::new(|| {
                        let known = KnownFields::from_iter([
                            $( (request!(@name $field $($wire)?), <$ty>::shape()), )*
                            $( $( (stringify!($alias), FieldShape::Free), )? )*
                        ]);
                        $( $( let known = known.with(<$flat_ty>::known()); )+ )?
                        known
                    });
                    &KNOWN
                }

                fn properties(object: ObjectBuilder) -> ObjectBuilder {
                    $(
                        let name = request!(@name $field $($wire)?);
                        let object = kit::property::<$ty>(object, name, &[ $($doc),* ]);
                    )*
                    $( $( let object = <$flat_ty>::properties(object); )+ )?
                    object
                }
            }

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    let object = kit::about(&[ $($about),* ], Self::UNKNOWN);
                    Self::properties(object).build().into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    Cow::Borrowed(request!(@name $name $($title)?))
                }

                fn schemas(parts: &mut SchemaParts) {
                    let add: &[fn(&mut SchemaParts)] = &[
                        $( <$ty>::describe_parts, )*
                        $( $( <$flat_ty>::schemas, )+ )?
                    ];
                    for add in add {
                        add(parts);
                    }
                }
            }
        };

        request! {
            @draft [$($draft)?] $vis $name
            { $( $(#[doc = $doc])* $field $(as $wire)? : $ty, )* }
            { $( $( $flat: $flat_ty, )+ )? }
        }
    )+};
    (@draft [] $($declared:tt)*) => {};
    (
        @draft [$draft:ident] $vis:vis $name:ident
        { $( $(#[doc = $doc:expr])* $field:ident $(as $wire:literal)? : $ty:ty, )* }
        { $( $flat:ident: $flat_ty:ty, )* }
    ) => {
        #[doc = concat!("The fields of [`", stringify!($name), "`] as a caller writes them.")]
        #[derive(Debug, Clone, Default, ::serde::Serialize)]
        $vis struct $draft {
            $(
                $(#[doc = $doc])*
                $(#[serde(rename = $wire)])?
                #[serde(skip_serializing_if = "crate::api::kit::request::DraftValue::is_left_out")]
                pub $field: <$ty as $crate::api::kit::request::DraftField>::Draft,
            )*
            $(
                #[doc = "Fields that other requests have too."]
                #[serde(flatten)]
                pub $flat: <$flat_ty as $crate::api::kit::request::DraftField>::Draft,
            )*
        }

        impl $crate::api::kit::request::DraftField for $name {
            type Draft = $draft;
        }

        impl $crate::api::kit::request::DraftValue for $draft {}
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $wire:literal) => { $wire };
    (@alias) => { None };
    (@alias $alias:ident) => { Some(stringify!($alias)) };
    (@unknown strict) => { UnknownFields::Refused };
    (@unknown open) => { UnknownFields::Ignored };
}

/// Declares values without fields of their own: a type, its schema and its reader.
///
/// The schema of a `named` value appears in the document under the name of the type. A value that
/// is `like` another type has the schema of that type. `absent` is the message for a field that is
/// left out, and `with` lists the types that the schema refers to. `as` sets the type that a caller
/// writes, if it differs from the type that is read.
macro_rules! values {
    () => {};
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident($inner:ty $(as $written:ty)?) like $other:ty => $read:expr;
        $($rest:tt)*
    ) => {
        values!(@type $(#[$meta])* $vis $name $inner $(, $written)?);

        impl $crate::api::kit::request::RequestField for $name {
            values!(@read $read);

            fn describe() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                $crate::api::kit::request::component::<$other>()
            }

            fn describe_parts(parts: &mut $crate::api::kit::request::SchemaParts) {
                $crate::api::kit::request::add_component::<$other>(parts);
            }
        }

        values! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident($inner:ty $(as $written:ty)?): $schema:expr => $read:expr
            $(, absent $absent:literal)? $(, with $($part:ty),+)?;
        $($rest:tt)*
    ) => {
        values!(@type $(#[$meta])* $vis $name $inner $(, $written)?);

        impl $crate::api::kit::request::RequestField for $name {
            values!(@read $read $(, $absent)?);

            fn describe() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                ::utoipa::openapi::RefOr::T($schema.build().into())
            }

            $(
                fn describe_parts(parts: &mut $crate::api::kit::request::SchemaParts) {
                    $( <$part as $crate::api::kit::request::RequestField>::describe_parts(parts); )+
                }
            )?
        }

        values! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        $vis:vis named struct $name:ident($inner:ty $(as $written:ty)?): $schema:expr => $read:expr
            $(, absent $absent:literal)?;
        $($rest:tt)*
    ) => {
        values!(@type $(#[$meta])* $vis $name $inner $(, $written)?);

        impl $crate::api::kit::request::RequestField for $name {
            values!(@read $read $(, $absent)?);

            fn describe() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                $crate::api::kit::request::component::<Self>()
            }

            fn describe_parts(parts: &mut $crate::api::kit::request::SchemaParts) {
                $crate::api::kit::request::add_component::<Self>(parts);
            }
        }

        $crate::api::kit::request::named!($name: $schema);

        values! { $($rest)* }
    };
    (@type $(#[$meta:meta])* $vis:vis $name:ident $inner:ty $(, $written:ty)?) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name(pub $inner);

        impl $crate::api::kit::request::DraftField for $name {
            type Draft = values!(@written $inner $(, $written)?);
        }
    };
    (@written $inner:ty) => { $inner };
    (@written $inner:ty, $written:ty) => { $written };
    (@read $read:expr $(, $absent:literal)?) => {
        $(
            fn absent() -> Result<Self, &'static str> {
                Err($absent)
            }
        )?

        fn read(
            value: &::serde_json::Value,
            at: &$crate::api::kit::request::FieldPath<'_>,
            faults: &mut $crate::api::kit::faults::RequestFaults,
        ) -> Option<Self> {
            $crate::api::kit::request::noted($read(value), at, faults).map(Self)
        }
    };
}

/// Sets the schema of a type, which appears in the document under the name of the type.
macro_rules! named {
    ($name:ident: $schema:expr $(, with $($part:ty),+)?) => {
        impl ::utoipa::PartialSchema for $name {
            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                ::utoipa::openapi::RefOr::T($schema.build().into())
            }
        }

        impl ::utoipa::ToSchema for $name {
            $(
                fn schemas(parts: &mut $crate::api::kit::request::SchemaParts) {
                    $( <$part as $crate::api::kit::request::RequestField>::describe_parts(parts); )+
                }
            )?
        }
    };
}

pub(crate) use {named, request, values};
