//! `${VAR}` in an exit list, so that a list can be shared without its secrets.
//!
//! A value is put in as it is, after the line was taken apart: whatever characters a
//! password from the environment holds, it cannot change what the line means. Values are
//! not searched for further variables.

use percent_encoding::percent_decode_str;

use super::super::Reason;

/// The look-up of variables.
#[derive(Clone, Copy)]
pub struct Variables<'a> {
    look_up: &'a dyn Fn(&str) -> Option<String>,
}

/// What becomes of percent-escapes in the text around variables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Escapes {
    /// Valid ones are decoded, once; a lone `%` stays (it is part of a raw password).
    Decode,
    /// They stand for themselves.
    Keep,
}

impl<'a> Variables<'a> {
    /// `look_up` gives a variable's value; `None` if it is not set.
    pub fn new(look_up: &'a dyn Fn(&str) -> Option<String>) -> Variables<'a> {
        Variables { look_up }
    }

    /// `text` with its variables filled in.
    ///
    /// # Errors
    /// A variable that is unset or empty, named; escapes that do not decode to UTF-8.
    pub fn fill(&self, text: &str, escapes: Escapes) -> Result<String, Reason> {
        let mut filled = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, name, after)) = next_variable(rest) {
            push(&mut filled, before, escapes);
            filled.extend_from_slice(self.value(name)?.as_bytes());
            rest = after;
        }
        push(&mut filled, rest, escapes);
        String::from_utf8(filled).map_err(|_| "has escapes that do not decode to UTF-8".into())
    }

    /// The variables that `text` names, as it names them.
    pub fn named(text: &str) -> impl Iterator<Item = String> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let (_, name, after) = next_variable(rest)?;
            rest = after;
            Some(format!("${{{name}}}"))
        })
    }

    /// The value of the variable that `text` consists of, if it is nothing else.
    pub fn whole(&self, text: &str) -> Result<Option<String>, Reason> {
        match next_variable(text) {
            Some(("", name, "")) => self.value(name).map(Some),
            _ => Ok(None),
        }
    }

    fn value(&self, name: &str) -> Result<String, Reason> {
        (self.look_up)(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| {
                format!("needs the environment variable {name}, which is not set").into()
            })
    }
}

fn push(filled: &mut Vec<u8>, text: &str, escapes: Escapes) {
    match escapes {
        Escapes::Decode => filled.extend(percent_decode_str(text)),
        Escapes::Keep => filled.extend_from_slice(text.as_bytes()),
    }
}

/// Splits at the first `${NAME}`. A `${` that begins no such thing is plain text.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(at) = text[from..].find("${").map(|at| from + at) {
        if let Some((name, after)) = text[at + 2..].split_once('}')
            && is_name(name)
        {
            return Some((&text[..at], name, after));
        }
        from = at + 2;
    }
    None
}

/// A name as POSIX shells know it.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str, escapes: Escapes) -> Result<String, Reason> {
        Variables::new(&|name| match name {
            "A" => Some("p@%41:${B}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
        .fill(text, escapes)
    }

    #[test]
    fn values_are_taken_as_they_are_and_the_text_around_is_decoded_once() {
        let filled = fill("%41${A}%2541%", Escapes::Decode).unwrap();
        assert_eq!(filled, "Ap@%41:${B}%41%");
        assert_eq!(fill("%41${A}", Escapes::Keep).unwrap(), "%41p@%41:${B}");
    }

    #[test]
    fn what_is_no_variable_is_text() {
        for text in ["$A", "${}", "${A", "${1}", "${A-B}", "$"] {
            assert_eq!(fill(text, Escapes::Keep).unwrap(), text);
        }
        assert_eq!(fill("${${A}", Escapes::Keep).unwrap(), "${p@%41:${B}");
        assert_eq!(fill("%24{A}", Escapes::Decode).unwrap(), "${A}");
    }

    #[test]
    fn an_unset_or_empty_variable_is_named() {
        assert!(fill("${NONE}", Escapes::Keep).unwrap_err().contains("NONE"));
        assert!(fill("${EMPTY}", Escapes::Keep).is_err());
        assert!(fill("%ff", Escapes::Decode).is_err());
    }
}
