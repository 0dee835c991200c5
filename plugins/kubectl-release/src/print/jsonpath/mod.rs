//! kubectl's `-o jsonpath`: text with actions in braces. A test compares it with the real kubectl.
//!
//! What there is: fields (`.a.b`, `['a']`, `\.` for a dot within a name), `[0]`, `[-1]`, slices with a
//! step, unions, `*`, `..`, filters `?(@.a=="b")` and `?(@.a)`, `{range …}…{end}`, quoted text, `@` and
//! `$`. What is not there prints nothing; an index that is not there is an error. Where kubectl leaves
//! the order to chance, that of the members of an object, they are sorted by name.

mod fill;
mod read;

use serde_json::Value;

/// A template, ready to be filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Template(Vec<Part>);

/// A part of a template.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Action(Vec<Node>),
    /// For each value that the nodes find.
    Range(Vec<Node>, Vec<Self>),
}

/// A step of an action, from some values to others.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Field(String),
    Slice {
        from: Option<i64>,
        to: End,
        step: Option<i64>,
    },
    Union(Vec<Vec<Self>>),
    Wildcard,
    Descend,
    Filter {
        left: Vec<Self>,
        /// Nothing asks whether the left side finds anything.
        test: Option<(String, Vec<Self>)>,
    },
    /// Quoted text, which takes the place of all values.
    Text(String),
    /// A number or a truth value, which takes the place of each value.
    Literal(Value),
    /// A word that means nothing; an error only where it is met.
    Unknown(String),
}

/// Where a slice ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// After its first item: an index.
    Index,
    /// With the list.
    Open,
    /// Before that item.
    At(i64),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        read::template(text).map(Self)
    }

    /// Fills it in.
    ///
    /// # Errors
    /// An action cannot be evaluated on this value.
    pub fn fill(&self, value: &Value) -> Result<String, String> {
        let mut text = String::new();
        fill::parts(&self.0, value, &mut text)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn value() -> Value {
        json!({
            "kind": "List",
            "metadata": {"annotations": {"belay.dev/repo": "acme/web", "it's": "<x>"}},
            "items": [
                {"metadata": {"name": "web"}, "status": {"active": "web-1", "n": 3, "ok": true,
                    "conditions": [{"type": "Ready", "reason": "Ready"},
                        {"type": "Stalled", "reason": "TugOfWar"}]}},
                {"metadata": {"name": "api"}, "status": {"n": 4}},
            ],
        })
    }

    #[rstest]
    #[case("{.kind}", "List")]
    #[case("kind", "kind")]
    #[case("{$.kind}", "List")]
    #[case("{.items[*].metadata.name}", "web api")]
    #[case("{.items[-1].metadata.name}", "api")]
    #[case("{.items[-2].metadata.name}", "web")]
    #[case("{.items[0:1].metadata.name}", "web")]
    #[case("{.items[::2].metadata.name}", "web")]
    #[case("{.items[1,0].metadata.name}", "api web")]
    #[case("{.items[0]['metadata']['name']}", "web")]
    #[case("{..name}", "web api")]
    #[case("{.metadata.annotations.belay\\.dev/repo}", "acme/web")]
    #[case("{.metadata.annotations['belay\\.dev/repo']}", "acme/web")]
    #[case("{.metadata.annotations['belay.dev/repo']}", "")]
    #[case(
        "{.metadata.annotations}",
        "{\"belay.dev/repo\":\"acme/web\",\"it's\":\"\\u003cx\\u003e\"}"
    )]
    #[case("{.items[?(@.status.n==4)].metadata.name}", "api")]
    #[case("{.items[?(@.status.n<4)].metadata.name}", "web")]
    #[case("{.items[?(@.status.n>=3)].metadata.name}", "web api")]
    #[case("{.items[?(@.status.active)].metadata.name}", "web")]
    #[case("{.items[?(@.status.ok==true)].metadata.name}", "web")]
    #[case("{.items[?(@.metadata.name==\"web\")].status.active}", "web-1")]
    #[case("{.items[0].status.conditions[?(@.type==\"Stalled\")].reason}", "TugOfWar")]
    #[case("{range .items[*]}{.metadata.name}={.status.active}{\"\\n\"}{end}", "web=web-1\napi=\n")]
    #[case("{range .items}[{.metadata.name}]{end}", "[]")]
    #[case("{range .items[*]}{.metadata.name} ", "web api  ")]
    #[case("{range .none[*]}x{end}y", "y")]
    #[case("{.nothing.at.all}", "")]
    #[case("{.items[0].metadata}", "{\"name\":\"web\"}")]
    #[case("a {'{'} b", "a { b")]
    fn a_template_prints_what_kubectl_prints(#[case] template: &str, #[case] expected: &str) {
        assert_eq!(Template::parse(template).unwrap().fill(&value()).unwrap(), expected);
    }

    #[rstest]
    #[case("{.a")]
    #[case("{end}")]
    #[case("{.a[0}")]
    #[case("{.a[x]}")]
    #[case("{....a}")]
    #[case("{\"\\q\"}")]
    #[case("{?}")]
    fn what_is_no_template_is_refused(#[case] template: &str) {
        Template::parse(template).unwrap_err();
    }

    #[rstest]
    #[case("{.items[2]}")]
    #[case("{.items[-3]}")]
    #[case("{.kind[0]}")]
    #[case("{.items[?(@.status.n==\"4\")]}")]
    #[case("{.kind[?(@.a)]}")]
    #[case("{kind}")]
    fn what_cannot_be_evaluated_is_an_error(#[case] template: &str) {
        Template::parse(template).unwrap().fill(&value()).unwrap_err();
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(template in "[{}.\\[\\]@$?()*'\"a-c0-9 :,<!\\\\=+-]{0,24}") {
            if let Ok(template) = Template::parse(&template) {
                let _ = template.fill(&value());
            }
        }
    }
}
