//! Which request headers a user may set.
//!
//! Owns the rule for entries of the URL list and for `-H` alike. Framing and connection
//! headers are the program's own: a listed one could contradict the request that is
//! sent, and a `Proxy-` one would reach the wrong side of the tunnel.

use http::{HeaderName, HeaderValue};

use super::Reason;

/// Headers about the connection (RFC 9110 §7.6.1) or the framing of this one request.
const OURS: [&str; 8] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A header name that may be set.
///
/// # Errors
/// No token, or one of those that the program itself decides.
pub fn name(name: &str) -> Result<HeaderName, Reason> {
    let header = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| Reason::from("has a header name that is not valid"))?;
    if OURS.contains(&header.as_str()) || header.as_str().starts_with("proxy-") {
        return Err(format!("sets the header {header}, which exitfetch decides itself").into());
    }
    Ok(header)
}

/// The value of header `name`, outer blanks removed. Marked sensitive: no `Debug` shows it.
///
/// # Errors
/// A control character, which would end the header.
pub fn value(name: &HeaderName, value: &str) -> Result<HeaderValue, Reason> {
    let mut header = HeaderValue::from_bytes(value.trim().as_bytes())
        .map_err(|_| Reason::from(format!("has a control character in the header {name}")))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_and_of_proxies_are_refused() {
        for ours in ["Host", "CONNECTION", "Proxy-Authorization", "te"] {
            assert!(name(ours).is_err(), "{ours}");
        }
        for theirs in ["Accept", "cookie", "Authorization", "X-Proxy"] {
            assert!(name(theirs).is_ok(), "{theirs}");
        }
        for broken in ["", "a b", "a:", "é"] {
            assert!(name(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn values_lose_outer_blanks_and_may_not_break_the_line() {
        let accept = name("Accept").unwrap();
        assert_eq!(value(&accept, " a b\t").unwrap(), "a b");
        assert_eq!(value(&accept, "é").unwrap().as_bytes(), "é".as_bytes());
        for broken in ["a\r\nb: c", "a\0b", "a\nb"] {
            assert!(value(&accept, broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn debug_does_not_show_a_value() {
        let cookie = name("Cookie").unwrap();
        let shown = format!("{:?}", value(&cookie, "hunter2").unwrap());
        assert!(!shown.contains("hunter2"));
    }
}
