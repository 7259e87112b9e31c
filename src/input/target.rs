//! The URL of a job: what is accepted, and what becomes of its parts.
//!
//! Owns the rules for one URL text; leaves the rest of an entry to `urls`. The raw text is
//! looked at before the URL parser sees it, because that parser (WHATWG) mends in silence
//! what a list should be told about: it drops TABs, reads `\` as `/` and skips the missing
//! host of `http:///x`. Invariant: a URL that comes out can be written as an HTTP request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use url::{ParseError, Url};

use super::Reason;
use crate::model::Secret;

/// Longest URL the HTTP types carry.
const MAX_URL: usize = 65_534;
/// Longest host name that can be looked up anywhere (RFC 1035 §2.3.4, in text form).
const MAX_HOST: usize = 253;
/// Longest label of a host name.
const MAX_LABEL: usize = 63;

/// A URL that can be fetched.
#[derive(Clone, Debug)]
pub struct Target {
    /// Without login and fragment, host as A-label.
    pub url: Url,
    /// As listed, the login shown as `***`; `None` if that is `url`.
    pub listed: Option<Box<str>>,
    /// `Authorization` made from the login.
    pub authorization: Option<Secret>,
    /// What the default id is made from: as listed, the password left out.
    pub identity: Secret,
}

/// Reads one URL, outer blanks already removed.
///
/// # Errors
/// What is wrong and what would be right; never any part of the URL.
pub fn parse(raw: &str) -> Result<Target, Reason> {
    check_characters(raw)?;
    let (scheme, rest) = raw
        .split_once("://")
        .filter(|(scheme, _)| is_scheme(scheme))
        .ok_or("is no absolute URL: write http:// or https:// before it")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err("has a scheme other than http and https".into());
    }
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (login, place) = match authority.rsplit_once('@') {
        Some((login, place)) => (Some(login), place),
        None => (None, authority),
    };
    if place.is_empty() || place.starts_with(':') {
        return Err("has no host".into());
    }
    let Some(login) = login else {
        let url = parse_plain(raw)?;
        let listed = (raw != url.as_str()).then(|| raw.into());
        let identity = Secret::new(raw);
        return Ok(Target {
            url,
            listed,
            authorization: None,
            identity,
        });
    };
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    Ok(Target {
        url: parse_plain(&format!("{scheme}://{place}{tail}"))?,
        listed: Some(format!("{scheme}://***@{place}{tail}").into()),
        authorization: authorization(user, password)?,
        identity: Secret::new(format!("{scheme}://{user}@{place}{tail}")),
    })
}

/// RFC 3986 knows none of these characters in a URI.
fn check_characters(raw: &str) -> Result<(), Reason> {
    // Nearly every URL: one look at its bytes.
    if raw.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') {
        return Ok(());
    }
    if raw.contains(char::is_whitespace) {
        return Err("has a blank inside: write one URL per line, and blanks as %20".into());
    }
    if raw.contains(char::is_control) {
        return Err("has a control character inside".into());
    }
    if raw.contains('\\') {
        return Err("has a backslash inside: write %5C, or / for a path".into());
    }
    Ok(())
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// Parses a URL without login and checks what the URL type lets pass.
fn parse_plain(text: &str) -> Result<Url, Reason> {
    let mut url = Url::parse(text).map_err(reason)?;
    url.set_fragment(None);
    if url.port() == Some(0) {
        return Err(reason(ParseError::InvalidPort));
    }
    if let Some(url::Host::Domain(name)) = url.host() {
        check_name(name)?;
    }
    if url.as_str().len() > MAX_URL {
        return Err(format!("is longer than {MAX_URL} bytes").into());
    }
    http::Uri::try_from(url.as_str()).map_err(|_| "cannot be written as an HTTP request")?;
    Ok(url)
}

fn reason(error: ParseError) -> Reason {
    match error {
        ParseError::InvalidPort => "has a port that is not 1 to 65535".into(),
        ParseError::EmptyHost => "has no host".into(),
        ParseError::InvalidIpv6Address => "has an IPv6 address that is not valid".into(),
        ParseError::InvalidIpv4Address => "has an IPv4 address that is not valid".into(),
        _ => "has a host name that is not valid".into(),
    }
}

/// A host name as look-ups and every exit protocol can carry it.
fn check_name(name: &str) -> Result<(), Reason> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > MAX_HOST {
        return Err(format!("has a host name longer than {MAX_HOST} bytes").into());
    }
    let valid = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    if name.split('.').all(valid) {
        Ok(())
    } else {
        Err("has a host name that is not valid".into())
    }
}

/// `Basic` credentials (RFC 7617 §2) from the login of a URL, its escapes decoded once.
fn authorization(user: &str, password: &str) -> Result<Option<Secret>, Reason> {
    if user.is_empty() && password.is_empty() {
        return Ok(None);
    }
    let user: Vec<u8> = percent_decode_str(user).collect();
    let password: Vec<u8> = percent_decode_str(password).collect();
    if user.contains(&b':') {
        return Err("has a user name with a colon, which Basic authentication cannot carry".into());
    }
    let login = [user, b":".to_vec(), password].concat();
    if login.iter().any(u8::is_ascii_control) {
        return Err("has a control character in its login".into());
    }
    let value = format!("Basic {}", STANDARD.encode(login));
    Ok(Some(Secret::new(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(raw: &str) -> String {
        parse(raw)
            .unwrap_or_else(|reason| panic!("{raw}: {reason}"))
            .url
            .to_string()
    }

    fn refused(raw: &str) -> Reason {
        parse(raw).expect_err(raw)
    }

    #[test]
    fn hosts_become_a_labels_and_escapes_stay() {
        assert_eq!(
            url("http://b\u{fc}cher.test/"),
            "http://xn--bcher-kva.test/"
        );
        assert_eq!(url("HTTP://O.test:80/%7e%2F"), "http://o.test/%7e%2F");
        assert!(url("http://\u{1f600}.test/").starts_with("http://xn--"));
        assert_eq!(url("https://[::1]:8443/?q"), "https://[::1]:8443/?q");
        assert_eq!(url("http://a_b.o.test./x"), "http://a_b.o.test./x");
        url("http://o.test/{}|^`?{}|^`\"<>'");
    }

    #[test]
    fn the_fragment_is_not_sent_but_listed() {
        let target = parse("http://o.test/x#frag").unwrap();
        assert_eq!(target.url.as_str(), "http://o.test/x");
        assert_eq!(target.listed.as_deref(), Some("http://o.test/x#frag"));
        assert_eq!(parse("http://o.test/x").unwrap().listed, None);
    }

    #[test]
    fn a_missing_scheme_is_refused_and_not_guessed() {
        for raw in [
            "o.test/x",
            "o.test:8080/x",
            "//o.test/x",
            "/x",
            "mailto:a@b",
            "http:/o.test/",
            "not-a-url",
            "o.test/?u=http://p.test/",
        ] {
            assert!(refused(raw).contains("http:// or https://"), "{raw}");
        }
        assert!(refused("ftp://o.test/").contains("scheme"));
    }

    #[test]
    fn a_url_without_host_is_refused() {
        for raw in [
            "http:///x",
            "http://",
            "https://?q",
            "http://u:p@/x",
            "http://:80/",
        ] {
            assert_eq!(refused(raw), "has no host", "{raw}");
        }
    }

    #[test]
    fn blanks_control_characters_and_backslashes_are_refused() {
        for raw in [
            "http://o.test/a b",
            "http://o.test/a\tb",
            "http://o.test/a\u{a0}b",
            "http://o.test/a\rb",
            "http://o.test/\u{7}",
            "http://o.test\\x",
        ] {
            assert!(refused(raw).contains("inside"), "{raw}");
        }
    }

    #[test]
    fn hosts_and_ports_that_cannot_exist_are_refused() {
        let label = "a".repeat(64);
        let name = ["a".repeat(63).as_str(); 4].join(".");
        for raw in [
            "http://[::1".to_owned(),
            "http://[::g]/".to_owned(),
            "http://1.2.3.999/".to_owned(),
            "http://a..test/".to_owned(),
            "http://a%b.test/".to_owned(),
            "http://a\"b.test/".to_owned(),
            "http://o.test:99999/".to_owned(),
            "http://o.test:0/".to_owned(),
            "http://o.test:x/".to_owned(),
            format!("http://{label}.test/"),
            format!("http://{name}/"),
            format!("http://{}/", "a".repeat(300)),
            format!("http://o.test/{}", "a".repeat(70_000)),
        ] {
            refused(&raw);
        }
    }

    #[test]
    fn a_login_becomes_authorization_and_is_not_shown() {
        let target = parse("http://us%40er:p%3A@ss@o.test/x").unwrap();
        let value = target.authorization.clone().unwrap();
        let login = format!("Basic {}", STANDARD.encode("us@er:p:@ss"));
        assert_eq!(value.expose(), login);
        assert_eq!(target.url.as_str(), "http://o.test/x");
        assert_eq!(target.listed.as_deref(), Some("http://***@o.test/x"));
        assert!(!format!("{target:?}").contains("@ss"));
    }

    #[test]
    fn identities_differ_by_user_but_not_by_password() {
        let identity = |raw: &str| parse(raw).unwrap().identity.expose().to_owned();
        assert_eq!(
            identity("http://a:1@o.test/"),
            identity("http://a:2@o.test/")
        );
        assert_ne!(
            identity("http://a:1@o.test/"),
            identity("http://b:1@o.test/")
        );
        assert!(!identity("http://a:hunter2@o.test/").contains("hunter2"));
    }

    #[test]
    fn logins_that_basic_cannot_carry_are_refused() {
        refused("http://a%3Ab:c@o.test/");
        refused("http://a%0d:c@o.test/");
        assert!(parse("http://@o.test/").unwrap().authorization.is_none());
        assert!(parse("http://a@o.test/").unwrap().authorization.is_some());
    }
}
