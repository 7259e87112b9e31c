//! What a proxy says about its own failure, in the headers of an error answer.
//!
//! Owns the reading of `Proxy-Status` (RFC 9209), `X-Squid-Error` and the error headers of
//! proxy vendors. Leaves to `blame` where such a header may be believed: in an answer to
//! CONNECT or to an absolute-form request. Inside a tunnel the same names come from the
//! origin's own front end and mean nothing about the exit.

use http::HeaderMap;

/// What kind of failure the proxy reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyError {
    /// It will not carry this request: a rule about the target.
    Denied,
    /// It carries as many connections as it may.
    LimitReached,
    /// It tried and could not get through to the target.
    Unreachable,
    /// It is broken, misconfigured or out of service for us.
    Broken,
}

/// Headers by which vendors mark an answer as their own. Their text is free form, so they
/// only say "mine"; which of their failures are the target's cannot be read from them.
const VENDOR_HEADERS: [&str; 8] = [
    "x-luminati-error",
    "x-luminati-error-code",
    "x-brd-error",
    "x-brd-err-code",
    "x-brd-err-msg",
    "x-oxylabs-error",
    "x-proxy-error",
    "x-zyte-error",
];

impl ProxyError {
    /// Reads the mark of a proxy, if the answer carries one.
    pub fn read(headers: &HeaderMap) -> Option<ProxyError> {
        if let Some(error) = proxy_status(headers) {
            return Some(error);
        }
        if let Some(value) = headers.get("x-squid-error") {
            return Some(squid(value.to_str().unwrap_or_default()));
        }
        VENDOR_HEADERS
            .iter()
            .any(|name| headers.contains_key(*name))
            .then_some(ProxyError::Broken)
    }
}

/// The `error` parameter of the last member of `Proxy-Status`: the proxy nearest to us
/// appends itself last (RFC 9209 §2). A member without `error` reports no failure.
fn proxy_status(headers: &HeaderMap) -> Option<ProxyError> {
    let value = headers.get_all("proxy-status").iter().next_back()?;
    let member = value.to_str().ok()?.rsplit(',').next()?;
    let error = member
        .split(';')
        .skip(1)
        .find_map(|parameter| parameter.trim().strip_prefix("error="))?;
    Some(match error.trim() {
        "http_request_denied" | "destination_ip_prohibited" => ProxyError::Denied,
        "connection_limit_reached" => ProxyError::LimitReached,
        "dns_timeout"
        | "dns_error"
        | "destination_not_found"
        | "destination_unavailable"
        | "destination_ip_unroutable"
        | "connection_refused"
        | "connection_terminated"
        | "connection_timeout"
        | "connection_read_timeout"
        | "connection_write_timeout"
        | "http_response_incomplete"
        | "http_response_timeout"
        | "http_protocol_error" => ProxyError::Unreachable,
        _ => ProxyError::Broken,
    })
}

/// `X-Squid-Error: ERR_CONNECT_FAIL 111`: the page's name, then an errno.
fn squid(value: &str) -> ProxyError {
    match value.split_whitespace().next().unwrap_or_default() {
        "ERR_ACCESS_DENIED" | "ERR_FORWARDING_DENIED" => ProxyError::Denied,
        "ERR_DNS_FAIL"
        | "ERR_CONNECT_FAIL"
        | "ERR_SECURE_CONNECT_FAIL"
        | "ERR_READ_ERROR"
        | "ERR_READ_TIMEOUT"
        | "ERR_WRITE_ERROR"
        | "ERR_ZERO_SIZE_OBJECT"
        | "ERR_CANNOT_FORWARD"
        | "ERR_INVALID_RESP"
        | "ERR_LIFETIME_EXP" => ProxyError::Unreachable,
        _ => ProxyError::Broken,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(name: &'static str, value: &'static str) -> Option<ProxyError> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        ProxyError::read(&headers)
    }

    #[test]
    fn each_mark_is_read_for_what_it_says() {
        for (name, value, error) in [
            (
                "proxy-status",
                "gw; error=http_request_denied",
                ProxyError::Denied,
            ),
            (
                "proxy-status",
                "gw;error=destination_ip_prohibited; details=\"x\"",
                ProxyError::Denied,
            ),
            (
                "proxy-status",
                "gw; error=connection_limit_reached",
                ProxyError::LimitReached,
            ),
            (
                "proxy-status",
                "gw; error=connection_refused",
                ProxyError::Unreachable,
            ),
            (
                "proxy-status",
                "gw; error=proxy_internal_error",
                ProxyError::Broken,
            ),
            ("x-squid-error", "ERR_ACCESS_DENIED 0", ProxyError::Denied),
            (
                "x-squid-error",
                "ERR_CONNECT_FAIL 111",
                ProxyError::Unreachable,
            ),
            ("x-squid-error", "ERR_OUT_OF_MEMORY 0", ProxyError::Broken),
            ("x-luminati-error", "no peers available", ProxyError::Broken),
        ] {
            assert_eq!(read(name, value), Some(error), "{name}: {value}");
        }
    }

    #[test]
    fn the_nearest_proxy_speaks_for_itself_and_a_report_without_error_is_none() {
        assert_eq!(
            read(
                "proxy-status",
                "cdn; error=connection_refused, gw; error=http_request_denied"
            ),
            Some(ProxyError::Denied)
        );
        assert_eq!(read("proxy-status", "gw; received-status=502"), None);
        assert_eq!(read("content-type", "text/html"), None);
    }
}
