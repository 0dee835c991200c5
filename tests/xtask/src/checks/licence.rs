//! SPDX licence expressions: whether the licences we accept are enough for a crate.
//!
//! Grammar: SPDX specification 2.3, annex D, with the older `MIT/Apache-2.0` of crates published before cargo
//! took SPDX over, where `/` means `OR`.

/// What we accept, each with an exception that belongs to it, if any.
const ALLOWED: [(&str, Option<&str>); 10] = [
    ("Apache-2.0", None),
    ("Apache-2.0", Some("LLVM-exception")),
    ("BSD-2-Clause", None),
    ("BSD-3-Clause", None),
    // A licence for data: the certificates of webpki-root-certs.
    ("CDLA-Permissive-2.0", None),
    ("ISC", None),
    ("MIT", None),
    // MIT without the duty to name the author.
    ("MIT-0", None),
    ("Unicode-3.0", None),
    ("Zlib", None),
];

/// Whether a crate under `expression` may be used under the accepted licences alone.
///
/// # Errors
/// What about the expression cannot be read.
pub(super) fn is_accepted(expression: &str) -> Result<bool, String> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let accepted = parser.either()?;
    match parser.next() {
        None => Ok(accepted),
        Some(token) => Err(format!("{token:?} was not expected")),
    }
}

struct Parser<'a> {
    tokens: &'a [&'a str],
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn take(&mut self, wanted: &str) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn either(&mut self) -> Result<bool, String> {
        let mut accepted = self.both()?;
        while self.take("OR") {
            accepted |= self.both()?;
        }
        Ok(accepted)
    }

    fn both(&mut self) -> Result<bool, String> {
        let mut accepted = self.one()?;
        while self.take("AND") {
            accepted &= self.one()?;
        }
        Ok(accepted)
    }

    fn one(&mut self) -> Result<bool, String> {
        match self.next() {
            Some("(") => {
                let accepted = self.either()?;
                if self.take(")") { Ok(accepted) } else { Err("a `)` is missing".to_owned()) }
            }
            Some(word) if !matches!(word, ")" | "OR" | "AND" | "WITH") => {
                let exception = if self.take("WITH") {
                    Some(self.next().ok_or("nothing follows WITH")?)
                } else {
                    None
                };
                Ok(ALLOWED.contains(&(word, exception)))
            }
            Some(token) => Err(format!("{token:?} where a licence was expected")),
            None => Err("it ends where a licence was expected".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::one("MIT", true)]
    #[case::one_that_is_not_accepted("GPL-3.0-only", false)]
    #[case::a_choice("MIT OR GPL-3.0-only", true)]
    #[case::no_choice("GPL-2.0-only OR GPL-3.0-only", false)]
    #[case::both_needed("MIT AND GPL-3.0-only", false)]
    #[case::and_binds_closer("MIT OR GPL-3.0-only AND LGPL-3.0-only", true)]
    #[case::and_binds_closer_on_the_left("GPL-3.0-only AND MIT OR MIT", true)]
    #[case::brackets_change_that("(MIT OR GPL-3.0-only) AND LGPL-3.0-only", false)]
    #[case::brackets("(MIT OR GPL-3.0-only) AND Unicode-3.0", true)]
    #[case::the_older_form("Unlicense/MIT", true)]
    #[case::the_older_form_with_blanks("Apache-2.0 / GPL-3.0-only", true)]
    #[case::the_older_form_without_a_choice("GPL-2.0/GPL-3.0", false)]
    #[case::an_exception_we_know("Apache-2.0 WITH LLVM-exception", true)]
    #[case::an_exception_of_another_licence("MIT WITH LLVM-exception", false)]
    #[case::an_exception_we_do_not_know("Apache-2.0 WITH Classpath-exception-2.0", false)]
    #[case::or_later_is_a_licence_of_its_own("GPL-2.0+", false)]
    #[case::nested("((MIT))", true)]
    fn an_expression_is_accepted_only_if_what_we_accept_suffices(
        #[case] expression: &str,
        #[case] accepted: bool,
    ) {
        assert_eq!(is_accepted(expression), Ok(accepted));
    }

    #[rstest]
    #[case("")]
    #[case("MIT OR")]
    #[case("AND MIT")]
    #[case("(MIT")]
    #[case("MIT)")]
    #[case("MIT Apache-2.0")]
    #[case("Apache-2.0 WITH")]
    fn an_expression_that_cannot_be_read_is_told(#[case] expression: &str) {
        is_accepted(expression).unwrap_err();
    }
}
