//! A string that must never be shown.

use std::fmt;

/// A password, a session username, a header value that authorises. `Debug` shows `***`
/// and there is no `Display` or `Serialize`, so it cannot slip into a log or a record.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps `value`.
    pub fn new(value: impl Into<Box<str>>) -> Secret {
        Secret(value.into())
    }

    /// The value itself, for the one place that puts it on the wire.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_never_shows_the_value() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter2"))), "Some(***)");
    }
}
