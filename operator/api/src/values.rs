//! Closed sets of words, each an enum with its spelling and one sentence per word.

use std::{fmt, marker::PhantomData, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An enum whose every value has one spelling and one sentence.
pub trait NamedValue: Copy + Eq + fmt::Display + FromStr<Err = UnknownValue> + 'static {
    /// What a value of this set is called in an error: "gate", "driver".
    const NOUN: &'static str;
    /// All values, in the order in which the reference lists them.
    const ALL: &'static [Self];

    /// The spelling in JSON, YAML, annotations and command lines.
    fn as_str(self) -> &'static str;

    /// What the value means, in one or a few sentences.
    fn describe(self) -> &'static str;
}

/// A word that is not in the set it was looked up in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {text:?} as a {noun}: expected one of {expected}")]
pub struct UnknownValue {
    noun: &'static str,
    text: String,
    expected: String,
}

impl UnknownValue {
    /// An error for `text`, which is no value of `T`. Long text is clipped.
    pub fn of<T: NamedValue>(text: &str) -> Self {
        let expected: Vec<_> = T::ALL.iter().map(|value| value.as_str()).collect();
        Self { noun: T::NOUN, text: crate::limits::clip(text, 100), expected: expected.join(", ") }
    }

    /// The word that was not understood, clipped.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The value of `T` that is spelled `text`.
///
/// # Errors
/// [`UnknownValue`]; spelling is exact, also in case.
pub fn parse<T: NamedValue>(text: &str) -> Result<T, UnknownValue> {
    T::ALL
        .iter()
        .copied()
        .find(|value| value.as_str() == text)
        .ok_or_else(|| UnknownValue::of::<T>(text))
}

/// Reads a string with `FromStr`.
pub(crate) fn deserialize_str<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    struct Visitor<T>(PhantomData<T>);

    impl<T: FromStr<Err: fmt::Display>> de::Visitor<'_> for Visitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(de::Error::custom)
        }
    }

    deserializer.deserialize_str(Visitor(PhantomData))
}

/// A word of a set that may have grown: status fields are written by an operator that may be newer
/// than the program that reads them.
///
/// Writing happens with [`Open::Known`] alone; the CRDs list the known words, so the API server
/// refuses any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Open<T> {
    /// A word of this version.
    Known(T),
    /// A word of another version, as it was read.
    Unknown(String),
}

impl<T: NamedValue> Open<T> {
    /// The spelling.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(value) => value.as_str(),
            Self::Unknown(text) => text,
        }
    }

    /// The value, if this version knows it.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Unknown(_) => None,
        }
    }
}

impl<T> From<T> for Open<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: NamedValue> fmt::Display for Open<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<T: NamedValue> Serialize for Open<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: NamedValue> Deserialize<'de> for Open<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(parse(&text).map_or(Self::Unknown(text), Self::Known))
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for Open<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

/// Declares an enum and its [`NamedValue`]: `noun; docs pub enum Name [default Value] { docs
/// Variant = "spelling", … }`. The doc comment of a variant is its sentence in the reference.
macro_rules! named_values {
    (
        $noun:literal;
        $(#[doc = $enum_doc:literal])+
        pub enum $name:ident $([default $default:ident])? {
            $( $(#[doc = $doc:literal])+ $variant:ident = $value:literal, )+
        }
    ) => {
        $(#[doc = $enum_doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[doc = $doc])+ $variant, )+
        }

        impl $crate::values::NamedValue for $name {
            const NOUN: &'static str = $noun;
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $value,)+ }
            }

            fn describe(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad($crate::values::NamedValue::as_str(*self))
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::values::UnknownValue;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::values::parse(text)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::values::NamedValue::as_str(*self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::values::deserialize_str(deserializer)
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($value),+] })
            }
        }

        $(
            impl Default for $name {
                fn default() -> Self {
                    Self::$default
                }
            }
        )?
    };
}

pub(crate) use named_values;

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fmt::Debug};

    use proptest::prelude::*;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::{annotations, conditions, events, gates, policy, reasons, rollback};

    fn each_value_survives<T>()
    where
        T: NamedValue + Debug + Serialize + DeserializeOwned + schemars::JsonSchema,
    {
        let mut spellings = BTreeSet::new();
        for &value in T::ALL {
            let text = value.as_str();
            assert!(spellings.insert(text), "{}: {text} twice", T::NOUN);
            assert_eq!(value.to_string(), text);
            assert_eq!(text.parse::<T>().unwrap(), value);
            assert_eq!(serde_json::to_value(value).unwrap(), json!(text));
            assert_eq!(serde_json::from_value::<T>(json!(text)).unwrap(), value);
            let sentence = value.describe();
            assert!(sentence.ends_with('.') || sentence.ends_with(')'), "{text}: {sentence:?}");
            assert!(!sentence.contains("  ") && !sentence.contains('|'), "{text}: {sentence:?}");
        }
        let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
        let listed: BTreeSet<_> = schema.as_value()["enum"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(listed, spellings, "{}", T::NOUN);

        for wrong in ["", " ", "no-such-word", "\u{0}"] {
            wrong.parse::<T>().unwrap_err();
            serde_json::from_value::<T>(json!(wrong)).unwrap_err();
        }
        serde_json::from_value::<T>(json!(1)).unwrap_err();
        serde_json::from_value::<T>(json!(null)).unwrap_err();
    }

    macro_rules! each {
        ($($module:ident::{$($name:ident),+ $(,)?})+) => {
            $($( each_value_survives::<$module::$name>(); )+)+
        };
    }

    #[test]
    fn every_value_of_every_set_survives_its_spelling() {
        each! {
            annotations::{
                TargetAnnotation, ReleaseAnnotation, NamespaceAnnotation, OwnAnnotation, PauseMode,
                OnFailure, Mode, ImageCheck,
            }
            conditions::{
                ConditionStatus, ReleaseCondition, RollbackCondition, PolicyCondition,
                TargetCondition,
            }
            events::{EventReason}
            gates::{Gate, WaitReason, ForgeBudget, Verdict}
            policy::{TriggerStatus}
            reasons::{
                ActiveReason, HealthyReason, RollbackRequiredReason, BlockedReason,
                AnnotationsValidReason, ReleaseReadyReason, InProgressReason, SucceededReason,
                Rejection, AutomatedReason, RollbackBlockedReason, TargetReadyReason,
                ProgressingReason, StalledReason, HeldReason, Note,
            }
            rollback::{Driver, InitiatorType}
        }
    }

    #[test]
    fn a_word_of_a_newer_version_is_kept_as_it_is() {
        let open: Open<gates::Gate> = serde_json::from_value(json!("Moon")).unwrap();
        assert_eq!(open, Open::Unknown("Moon".to_owned()));
        assert_eq!(open.known(), None);
        assert_eq!(serde_json::to_value(&open).unwrap(), json!("Moon"));
        let open: Open<gates::Gate> = serde_json::from_value(json!("Age")).unwrap();
        assert_eq!(open, gates::Gate::Age.into());
        assert_eq!(open.known(), Some(gates::Gate::Age));
        serde_json::from_value::<Open<gates::Gate>>(json!(1)).unwrap_err();
    }

    #[test]
    fn an_error_names_the_word_and_what_was_expected() {
        let error = "nativ".parse::<rollback::Driver>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "read \"nativ\" as a driver: expected one of native, github, argocd, noop"
        );
        let error = "x".repeat(1_000_000).parse::<rollback::Driver>().unwrap_err();
        assert!(error.to_string().len() < 300);
    }

    proptest! {
        #[test]
        fn an_open_word_survives_whatever_it_is(text in ".{0,40}") {
            let open: Open<gates::Gate> = serde_json::from_value(json!(text)).unwrap();
            prop_assert_eq!(open.as_str(), &text);
            prop_assert_eq!(serde_json::to_value(&open).unwrap(), json!(text));
        }
    }
}
