//! The origin of a request: what a budget belongs to.

use std::fmt;
use std::sync::Arc;

use url::Url;

/// Host and port of a target: scheme ignored, default port dropped, host as a lower-case
/// A-label (IPv6 bracketed), a trailing dot removed. `http://A.test/x` and
/// `https://a.test:443/y` are one origin, `a.test`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(Arc<str>);

impl Origin {
    /// The origin of `url`. A URL without host (never an http one) gives the empty origin.
    pub fn of(url: &Url) -> Origin {
        let host = url.host_str().unwrap_or_default();
        let host = host.strip_suffix('.').unwrap_or(host);
        match url.port() {
            Some(port) => Origin(format!("{host}:{port}").into()),
            None => Origin(host.into()),
        }
    }

    /// As it is written in records, config and logs.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str) -> String {
        Origin::of(&Url::parse(url).unwrap()).to_string()
    }

    #[test]
    fn scheme_case_default_port_and_trailing_dot_do_not_matter() {
        for url in [
            "http://a.test/x",
            "https://A.test:443/",
            "http://a.test:80",
            "https://a.test./",
        ] {
            assert_eq!(origin(url), "a.test", "{url}");
        }
        assert_eq!(origin("http://a.test:8080/"), "a.test:8080");
        assert_eq!(origin("http://bücher.test/"), "xn--bcher-kva.test");
        assert_eq!(origin("http://[::1]:81/"), "[::1]:81");
    }
}
