//! How the answer is written.

use std::str::FromStr;

use clap::Args;

use crate::print::style::ColorChoice;

/// `-o`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// For people, with more columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// `kind.group/name`.
    Name,
    /// kubectl's template of JSONPath expressions.
    JsonPath(String),
}

impl Format {
    /// Whether a program reads it: then it is neither cleaned nor coloured.
    pub fn is_for_programs(&self) -> bool {
        !matches!(self, Self::Wide)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=').map_or((text, None), |(name, rest)| (name, Some(rest))) {
            ("wide", None) => Ok(Self::Wide),
            ("json", None) => Ok(Self::Json),
            ("yaml", None) => Ok(Self::Yaml),
            ("name", None) => Ok(Self::Name),
            ("jsonpath", Some(template)) if !template.is_empty() => {
                Ok(Self::JsonPath(template.to_owned()))
            }
            ("jsonpath", _) => Err("it needs a template: jsonpath='{.status.active}'".to_owned()),
            _ => Err("expected one of json, yaml, name, wide, jsonpath=TEMPLATE".to_owned()),
        }
    }
}

/// `-o`, for verbs that have it.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputArgs {
    /// Format: json, yaml, name, wide or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<Format>,
}

impl OutputArgs {
    /// Whether `-o wide` was given.
    pub fn is_wide(&self) -> bool {
        self.output == Some(Format::Wide)
    }

    /// The format for programs, if one was asked for.
    pub fn for_programs(&self) -> Option<&Format> {
        self.output.as_ref().filter(|format| format.is_for_programs())
    }
}

/// How it looks.
#[derive(Debug, Clone, Args)]
pub struct StyleArgs {
    /// When to colour
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        help_heading = "Global"
    )]
    pub color: ColorChoice,
    /// The same as --color=never
    #[arg(long, global = true, hide = true)]
    pub no_color: bool,
    /// ASCII characters alone; by default where the locale is not UTF-8
    #[arg(long, global = true, help_heading = "Global")]
    pub ascii: bool,
    /// Times instead of ages
    #[arg(long, global = true, help_heading = "Global")]
    pub absolute_time: bool,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("json", Format::Json)]
    #[case("wide", Format::Wide)]
    #[case("jsonpath={.a}", Format::JsonPath("{.a}".to_owned()))]
    #[case("jsonpath={.a=1}", Format::JsonPath("{.a=1}".to_owned()))]
    fn a_format_is_one_of_kubectls(#[case] text: &str, #[case] expected: Format) {
        assert_eq!(text.parse(), Ok(expected));
    }

    #[rstest]
    fn others_are_refused(#[values("", "xml", "jsonpath", "jsonpath=", "json=x")] text: &str) {
        text.parse::<Format>().unwrap_err();
    }
}
