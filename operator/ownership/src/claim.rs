//! What an apply of a body would own: what to compare an entry with after the write, and what to
//! predict conflicts from.

use serde_json::{Map, Value};

use crate::{
    Element, FieldPath, Literal, Schema, Structure, decode::MAX_DEPTH, resolve::key_of, schema,
    schema::Type,
};

/// A field that an applier wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted<'b> {
    /// The field.
    pub path: FieldPath,
    /// The value it shall have; `None` where only its presence is wanted (a list item as such, an
    /// empty map).
    pub value: Option<&'b Value>,
}

/// Why a body cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Nesting over [`MAX_DEPTH`].
    #[error("list the fields of an apply: nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A list item without the fields that name it.
    #[error("list the fields of an apply: an item of {list} lacks its key")]
    NoKey {
        /// The list.
        list: FieldPath,
    },
}

/// The fields of a body, as the API server puts them into the applier's entry: the leaves, atomic
/// wholes, and list items as such. What it does not track is left out.
///
/// It knows what [`Schema`] knows: of other kinds, and of lists that are not in the table, lists
/// are taken for atomic.
///
/// # Errors
/// [`BodyError`].
pub fn fields_of(body: &Value, schema: Schema) -> Result<Vec<Wanted<'_>>, BodyError> {
    let mut walk = Walk { wanted: Vec::new(), path: Vec::new() };
    if let Some(fields) = body.as_object() {
        walk.map(fields, Some(schema.root()))?;
    }
    walk.wanted.sort_by(|one, other| one.path.cmp(&other.path));
    // Duplicate items; the API server refuses the body.
    walk.wanted.dedup_by(|later, first| later.path == first.path);
    Ok(walk.wanted)
}

struct Walk<'b> {
    wanted: Vec<Wanted<'b>>,
    path: Vec<Element>,
}

impl<'b> Walk<'b> {
    fn map(
        &mut self,
        fields: &'b Map<String, Value>,
        known: Option<&'static Type>,
    ) -> Result<(), BodyError> {
        for (name, value) in fields {
            self.path.push(Element::field(name));
            if !schema::is_untracked(&self.path) {
                self.value(value, known.and_then(|known| known.field(name)))?;
            }
            self.path.pop();
        }
        Ok(())
    }

    fn value(&mut self, value: &'b Value, known: Option<&'static Type>) -> Result<(), BodyError> {
        if self.path.len() > MAX_DEPTH {
            return Err(BodyError::TooDeep);
        }
        let structure = known.map(|known| known.structure);
        match (value, structure) {
            (_, Some(Structure::Atomic)) => self.want(Some(value)),
            (Value::Object(fields), _) if fields.is_empty() => self.want(None),
            (Value::Object(fields), _) => self.map(fields, known)?,
            (Value::Array(items), Some(Structure::Associative(names))) => {
                let item_type = known.and_then(Type::item);
                for item in items {
                    let Some(key) = key_of(item, names.iter().copied()) else {
                        return Err(BodyError::NoKey { list: FieldPath::new(self.path.clone()) });
                    };
                    self.path.push(Element::Key(key));
                    let is_whole =
                        item_type.is_some_and(|known| known.structure == Structure::Atomic);
                    self.want(is_whole.then_some(item));
                    if let (Value::Object(fields), false) = (item, is_whole) {
                        self.map(fields, item_type)?;
                    }
                    self.path.pop();
                }
            }
            (Value::Array(items), Some(Structure::Set)) => {
                for item in items {
                    let Some(literal) = Literal::scalar(item) else { continue };
                    self.path.push(Element::Value(literal));
                    self.want(None);
                    self.path.pop();
                }
            }
            _ => self.want(Some(value)),
        }
        Ok(())
    }

    fn want(&mut self, value: Option<&'b Value>) {
        self.wanted.push(Wanted { path: FieldPath::new(self.path.clone()), value });
    }
}
