//! Asking whether what is stored still holds (RFC 9110 §13).
//!
//! Owns the two fields of such a request. The user's own conditions win: with one of them
//! nothing is added, and what the answer to it means is the user's affair.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// What an earlier answer said about its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
}

/// Fields that make a request a conditional one, or one for a part.
const CONDITIONS: [HeaderName; 6] = [
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_MATCH,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
    header::RANGE,
];

impl Validators {
    /// From `ETag` and `Last-Modified` as they were received. `None` without one of them that
    /// can be sent.
    pub fn new(etag: Option<&str>, last_modified: Option<&str>) -> Option<Validators> {
        let sendable = |text: Option<&str>| text.and_then(|text| HeaderValue::from_str(text).ok());
        let own = Validators {
            etag: sendable(etag),
            last_modified: sendable(last_modified),
        };
        (own.etag.is_some() || own.last_modified.is_some()).then_some(own)
    }

    /// Adds both, unless the user has conditions of their own.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        if CONDITIONS.iter().any(|name| headers.contains_key(name)) {
            return;
        }
        if let Some(etag) = &self.etag {
            headers.insert(header::IF_NONE_MATCH, etag.clone());
        }
        if let Some(date) = &self.last_modified {
            headers.insert(header::IF_MODIFIED_SINCE, date.clone());
        }
    }

    /// Whether these, and not the user's, are what the request asks by.
    pub(super) fn are_in(&self, headers: &HeaderMap) -> bool {
        headers.get(header::IF_NONE_MATCH) == self.etag.as_ref()
            && headers.get(header::IF_MODIFIED_SINCE) == self.last_modified.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_validators_are_sent_and_known_again() {
        let own = Validators::new(Some("\"a\""), Some("Thu, 01 Jan 2026 00:00:00 GMT")).unwrap();
        let mut headers = HeaderMap::new();
        assert!(!own.are_in(&headers));
        own.add_to(&mut headers);
        assert_eq!(headers["if-none-match"], "\"a\"");
        assert!(headers.contains_key("if-modified-since") && own.are_in(&headers));
    }

    #[test]
    fn the_user_s_own_condition_wins() {
        let own = Validators::new(Some("\"a\""), None).unwrap();
        for name in CONDITIONS {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static("x"));
            own.add_to(&mut headers);
            assert_eq!(headers.len(), 1);
            assert!(!own.are_in(&headers));
        }
    }

    #[test]
    fn without_anything_to_send_there_is_nothing_to_ask_by() {
        assert_eq!(Validators::new(None, None), None);
        assert_eq!(Validators::new(Some("a\nb"), None), None);
    }
}
