//! HTML as it is put together: markup is part of the program, everything else is escaped.
//!
//! Invariant: what comes from a list, a site or an exit cannot get into the page as markup,
//! because [`Html::raw`] takes only what is in the source code.

use std::fmt::{Display, Write};

/// A page that grows.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Adds markup.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Html {
        self.0.push_str(markup);
        self
    }

    /// Adds a text or a number, also as the value of an attribute in quotes.
    pub(super) fn put(&mut self, text: impl Display) -> &mut Html {
        // Writing to a string cannot fail.
        let _ = write!(Escaped(&mut self.0), "{text}");
        self
    }

    /// Adds a whole element with nothing but text in it.
    pub(super) fn element(
        &mut self,
        open: &'static str,
        text: impl Display,
        close: &'static str,
    ) -> &mut Html {
        self.raw(open).put(text).raw(close)
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Text from outside as it stands in a page, also as the value of an attribute in quotes.
pub fn escaped(text: &str) -> String {
    let mut html = Html::default();
    html.put(text);
    html.finish()
}

struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c if is_unseen(c) => self.0.push('\u{fffd}'),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// Controls, and what turns the direction of the text that follows.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_put_in_is_markup_and_nothing_turns_the_line() {
        let mut html = Html::default();
        html.element("<b title=\"", "\"><script>'&\u{202e}\u{7}", "\">");
        assert_eq!(
            html.finish(),
            "<b title=\"&quot;&gt;&lt;script&gt;&#39;&amp;\u{fffd}\u{fffd}\">"
        );
    }
}
