//! From the parts of a template and a value to text.

use std::{borrow::Cow, cmp::Ordering};

use serde_json::Value;

use super::{End, Node, Part};
use crate::print::object;

type Found<'v> = Vec<Cow<'v, Value>>;

/// Appends what the parts print of a value.
pub(super) fn parts(parts: &[Part], value: &Value, text: &mut String) -> Result<(), String> {
    for part in parts {
        match part {
            Part::Text(literal) => text.push_str(literal),
            Part::Action(nodes) => {
                let found = walk(nodes, vec![Cow::Borrowed(value)])?;
                let words: Vec<String> = found.iter().map(|value| shown(value)).collect();
                text.push_str(&words.join(" "));
            }
            Part::Range(nodes, inner) => {
                for item in walk(nodes, vec![Cow::Borrowed(value)])? {
                    self::parts(inner, &item, text)?;
                }
            }
        }
    }
    Ok(())
}

fn walk<'v>(nodes: &[Node], start: Found<'v>) -> Result<Found<'v>, String> {
    nodes.iter().try_fold(start, |found, node| step(node, found))
}

fn step<'v>(node: &Node, input: Found<'v>) -> Result<Found<'v>, String> {
    Ok(match node {
        Node::Text(text) => vec![Cow::Owned(Value::String(text.clone()))],
        Node::Literal(value) => input.iter().map(|_| Cow::Owned(value.clone())).collect(),
        Node::Unknown(word) => return Err(format!("{word:?} means nothing; a field has a dot")),
        Node::Field(name) => {
            let member =
                |value| member(value, |value| value.get(name.as_str()).into_iter().collect());
            input.into_iter().flat_map(member).collect()
        }
        Node::Wildcard => input.into_iter().flat_map(|value| member(value, inside)).collect(),
        Node::Descend => input.into_iter().flat_map(|value| member(value, below)).collect(),
        Node::Union(ways) => {
            let mut all = Vec::new();
            for way in ways {
                all.append(&mut walk(way, input.clone())?);
            }
            all
        }
        Node::Slice { from, to, step } => {
            let mut all = Vec::new();
            for value in lists(input)? {
                let range = bounds(length(&value), *from, *to, *step)?;
                all.extend(member(value, |value| {
                    let items = value.as_array();
                    range.iter().filter_map(|at| items?.get(*at)).collect()
                }));
            }
            all
        }
        Node::Filter { left, test } => {
            let mut all = Vec::new();
            for value in lists(input)? {
                for item in member(value, inside) {
                    if passes(&item, left, test.as_ref())? {
                        all.push(item);
                    }
                }
            }
            all
        }
    })
}

/// Values within a value.
fn member<'v>(
    value: Cow<'v, Value>,
    find: impl for<'a> Fn(&'a Value) -> Vec<&'a Value>,
) -> Found<'v> {
    match value {
        Cow::Borrowed(value) => find(value).into_iter().map(Cow::Borrowed).collect(),
        Cow::Owned(value) => find(&value).into_iter().cloned().map(Cow::Owned).collect(),
    }
}

/// The members of an object, by name, or the items of a list.
fn inside(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            members.into_iter().map(|(_, value)| value).collect()
        }
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

/// The value itself and all below it that hold others.
fn below(value: &Value) -> Vec<&Value> {
    let inner = inside(value);
    if inner.is_empty() {
        return Vec::new();
    }
    std::iter::once(value).chain(inner.into_iter().flat_map(below)).collect()
}

/// What is absent is passed over; what is no list is an error.
fn lists(input: Found<'_>) -> Result<Found<'_>, String> {
    let there: Found<'_> = input.into_iter().filter(|value| !value.is_null()).collect();
    match there.iter().find(|value| !value.is_array()) {
        Some(other) => Err(format!("{} is no list", clipped(other))),
        None => Ok(there),
    }
}

fn clipped(value: &Value) -> String {
    let text = shown(value);
    let clipped: String = text.chars().take(60).collect();
    if clipped.len() < text.len() { format!("{clipped}…") } else { clipped }
}

fn length(value: &Value) -> i64 {
    value.as_array().map_or(0, |list| i64::try_from(list.len()).unwrap_or(i64::MAX))
}

/// The indices of a slice.
fn bounds(
    length: i64,
    from: Option<i64>,
    to: End,
    step: Option<i64>,
) -> Result<Vec<usize>, String> {
    let start = from.unwrap_or(0);
    let end = match to {
        End::Index => start.saturating_add(1),
        End::Open => length,
        End::At(end) => end,
    };
    let is_from_behind = end < 0 || (end == 0 && to == End::Index);
    let end = if is_from_behind { end.saturating_add(length) } else { end };
    let start = if start < 0 { start.saturating_add(length) } else { start };
    if start == end {
        return Ok(Vec::new());
    }
    if !(0..length).contains(&start) || !(0..=length).contains(&end) || start > end {
        return Err(match to {
            End::Index => format!("there is no index {} in a list of {length}", from.unwrap_or(0)),
            _ => format!("a list of {length} has no slice from {start} to {end}"),
        });
    }
    let step = step.unwrap_or(1);
    if step < 1 {
        return Err(format!("the step {step} of a slice is less than 1"));
    }
    let indices = (start..end).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    Ok(indices.filter_map(|index| usize::try_from(index).ok()).collect())
}

fn passes(item: &Value, left: &[Node], test: Option<&(String, Vec<Node>)>) -> Result<bool, String> {
    let side = |nodes| walk(nodes, vec![Cow::Borrowed(item)]);
    let Some((operator, right)) = test else {
        return Ok(side(left).is_ok_and(|found| !found.is_empty()));
    };
    let one = |mut found: Found<'_>| match found.len() {
        0 | 1 => Ok(found.pop().map(Cow::into_owned)),
        more => Err(format!("a filter compares one value with another, not {more}")),
    };
    let Some(left) = one(side(left)?)? else { return Ok(false) };
    let Some(right) = one(side(right)?)? else { return Ok(false) };
    let is_equality = matches!(operator.as_str(), "==" | "!=");
    let order = compare(&left, &right, is_equality)
        .ok_or_else(|| format!("{} and {} cannot be compared", clipped(&left), clipped(&right)))?;
    Ok(match operator.as_str() {
        "<" => order.is_lt(),
        ">" => order.is_gt(),
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<=" => order.is_le(),
        _ => order.is_ge(),
    })
}

/// As in Go, values of two types are not compared, not even a whole number with another one.
fn compare(left: &Value, right: &Value, is_equality: bool) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => is_equality.then(|| left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.is_f64(), right.is_f64()) {
            (true, true) => left.as_f64()?.partial_cmp(&right.as_f64()?),
            (false, false) => Some(left.as_i128()?.cmp(&right.as_i128()?)),
            _ => None,
        },
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => object::go(other),
    }
}
