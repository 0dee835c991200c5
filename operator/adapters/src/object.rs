//! JSON objects, and nothing else that serde would take for one: a derived struct also reads a list,
//! whose items are then its fields.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};

/// A value that was written as an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Only<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Only<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<T, M::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_map(Only(PhantomData)).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Pair {
        a: u32,
        b: Option<u32>,
    }

    #[rstest]
    #[case(r#"{"a":1,"b":2,"c":3}"#, Some((1, Some(2))))]
    #[case(r#"{"a":1}"#, Some((1, None)))]
    #[case("[1,2]", None)]
    #[case("[]", None)]
    #[case("null", None)]
    #[case(r#"{"b":1}"#, None)]
    #[case(r#"{"a":1,"a":2}"#, None)]
    fn only_an_object_is_one(#[case] text: &str, #[case] expected: Option<(u32, Option<u32>)>) {
        let found = serde_json::from_str::<Object<Pair>>(text).ok();
        assert_eq!(found.map(|Object(pair)| (pair.a, pair.b)), expected);
    }
}
