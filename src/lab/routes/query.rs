//! Query parameters of a target, read when they are asked for.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use url::form_urlencoded;

/// The part of a target after its first `?`.
#[derive(Clone, Copy)]
pub(in crate::lab) struct Query<'a>(pub(in crate::lab) &'a str);

impl<'a> Query<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The decoded values of `name`.
    pub(super) fn all<'n>(self, name: &'n str) -> impl Iterator<Item = Cow<'a, str>> + use<'a, 'n> {
        form_urlencoded::parse(self.0.as_bytes())
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value)
    }

    /// The first value of `name`.
    pub(super) fn get(self, name: &str) -> Option<Cow<'a, str>> {
        if self.is_empty() {
            return None;
        }
        self.all(name).next()
    }

    /// The value of `name` as a number, `default` without one.
    pub(super) fn number<T: FromStr>(self, name: &str, default: T) -> T {
        let value = self.get(name).and_then(|text| text.parse().ok());
        value.unwrap_or(default)
    }

    /// The value of `name` in milliseconds, `default` without one.
    pub(super) fn millis(self, name: &str, default: u64) -> Duration {
        Duration::from_millis(self.number(name, default))
    }

    /// The value of `name` as a status that has a body, `default` without one.
    pub(super) fn status(self, name: &str, default: u16) -> u16 {
        match self.number(name, default) {
            status @ 200..=999 => status,
            _ => default,
        }
    }
}
