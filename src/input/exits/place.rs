//! `host:port` of an exit.
//!
//! Owns what a host is: a name, an IPv4 address or a bracketed IPv6 address, never digits
//! alone. One spelling comes out of all spellings of a host, so that an exit is known
//! again.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::super::Reason;
use super::variables::{Escapes, Variables};

/// How surely a text is meant as a host, lowest first. Tells the readings of an ambiguous
/// line apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// `alice`: could be a user as well.
    Label,
    /// `gate.provider.test`
    Name,
    /// `192.0.2.1`, `[2001:db8::1]`
    Address,
}

/// Where an exit listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Lower case, IPv6 without brackets in its shortest form.
    pub host: String,
    /// 1 to 65535.
    pub port: u16,
    /// Of `host`.
    pub certainty: Certainty,
}

impl Place {
    /// Reads `host:port`, or `host` alone where there is a `default_port`; a slash behind
    /// it does not matter.
    pub fn parse(
        text: &str,
        default_port: Option<u16>,
        variables: &Variables<'_>,
    ) -> Result<Place, Reason> {
        let text = text.strip_suffix('/').unwrap_or(text);
        if text.contains(['/', '?', '#']) {
            return Err("has something after the port: write host:port alone".into());
        }
        let (host, port) = split(text);
        match (port, default_port) {
            (Some(port), _) => Place::of(host, port, variables),
            (None, Some(port)) => Place::with_port(host, port, variables),
            (None, None) => Err("has no port: write host:port".into()),
        }
    }

    /// Reads host and port given apart.
    pub fn of(host: &str, port: &str, variables: &Variables<'_>) -> Result<Place, Reason> {
        let port = variables.fill(port, Escapes::Keep)?;
        // `parse` alone would take a plus sign.
        let port = match port.parse::<u16>() {
            Ok(number @ 1..) if port.bytes().all(|b| b.is_ascii_digit()) => number,
            _ => return Err("has a port that is not 1 to 65535".into()),
        };
        Place::with_port(host, port, variables)
    }

    /// Reads a host.
    pub fn with_port(host: &str, port: u16, variables: &Variables<'_>) -> Result<Place, Reason> {
        let host = variables.fill(host, Escapes::Keep)?;
        let (host, certainty) = self::host(&host).ok_or("has a host that is not valid")?;
        Ok(Place {
            host,
            port,
            certainty,
        })
    }
}

/// The text of host and port; the colons of a bracketed address are its own.
pub fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    }
}

/// The one spelling of a host and how certainly it is one; `None` if it cannot be a host.
pub fn host(text: &str) -> Option<(String, Certainty)> {
    if let Some(address) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let address: Ipv6Addr = address.parse().ok()?;
        return Some((address.to_string(), Certainty::Address));
    }
    let name = if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        url::Host::parse(text).ok()?.to_string()
    };
    let name = name.strip_suffix('.').unwrap_or(&name);
    let last = name.rsplit('.').next().unwrap_or_default();
    // A name that ends in a number is an address or nothing (WHATWG URL, "ends in a number").
    if !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()) {
        let address: Ipv4Addr = name.parse().ok()?;
        return Some((address.to_string(), Certainty::Address));
    }
    let certainty = match name.contains('.') {
        true => Certainty::Name,
        false => Certainty::Label,
    };
    is_name(name).then(|| (name.to_owned(), certainty))
}

/// RFC 1035 §2.3.4 lengths; the underscore is not of the RFC but in use.
fn is_name(name: &str) -> bool {
    name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, default_port: Option<u16>) -> Result<(String, u16), Reason> {
        let place = Place::parse(text, default_port, &Variables::new(&|_| None))?;
        Ok((place.host, place.port))
    }

    #[test]
    fn all_spellings_of_a_host_come_out_alike() {
        for (text, host) in [
            ("Proxy.Test.:81/", "proxy.test"),
            ("127.0.0.1:81", "127.0.0.1"),
            ("[0:0:0:0:0:0:0:1]:81", "::1"),
            ("b\u{fc}cher.test:81", "xn--bcher-kva.test"),
            ("my_proxy-1:81", "my_proxy-1"),
        ] {
            assert_eq!(place(text, None), Ok((host.to_owned(), 81)), "{text}");
        }
    }

    #[test]
    fn the_default_port_serves_where_there_is_one() {
        assert_eq!(place("a/", Some(80)), Ok(("a".to_owned(), 80)));
        assert_eq!(place("[::1]", Some(80)), Ok(("::1".to_owned(), 80)));
        assert!(place("a", None).unwrap_err().contains("no port"));
    }

    #[test]
    fn digits_alone_half_addresses_and_wrong_ports_are_refused() {
        for text in [
            "8080:8080",
            "1.2.3:80",
            "1.2.3.256:80",
            "[::g]:80",
            "[::1:80",
            "::1:80",
            "a..b:80",
            ".:80",
            ":80",
            "a%41:80",
            "a b:80",
            "a:0",
            "a:65536",
            "a:+1",
            "a:",
            "a:-1",
            "a:80/x",
            "a:80#x",
        ] {
            assert!(place(text, Some(80)).is_err(), "{text}");
        }
    }
}
