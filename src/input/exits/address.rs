//! The address of an exit: scheme, login, host and port in one text.
//!
//! Owns the forms and which one a text is in. Four are read, each with or without
//! `scheme://` before it:
//!
//! - `host:port`
//! - `user:pass@host:port`, `user@host:port`; the login ends at the last `@`
//! - `host:port:user:pass`
//!
//! and the reversed `user:pass:host:port` is known only to be refused. No guess: where two
//! readings are possible, the one whose host is more certainly a host counts, and where
//! that does not tell them apart the text is refused.

use std::net::Ipv6Addr;

use super::super::Reason;
use super::place::{self, Place};
use super::variables::{Escapes, Variables};
use crate::model::Scheme;

/// An address taken apart. The login is decoded, `{session}` still in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// `http` where none was written.
    pub scheme: Scheme,
    /// Where it listens.
    pub place: Place,
    /// User name and password.
    pub login: Option<(String, String)>,
}

/// Reads an address.
///
/// # Errors
/// What is wrong and what would be right; nothing of the text but a variable's name.
pub fn parse(text: &str, variables: &Variables<'_>) -> Result<Address, Reason> {
    let whole = variables.whole(text)?;
    let text = whole.as_deref().map_or(text, str::trim);
    if text.starts_with(['"', '\'']) || text.ends_with(['"', '\'', ',', ';']) {
        return Err("has quotes or a comma around it: write the address alone".into());
    }
    let (listed, rest) = split_scheme(text)?;
    let scheme = listed.unwrap_or(Scheme::Http);
    let reader = Reader {
        default_port: listed.map(Scheme::default_port),
        variables,
    };
    let (place, login) = reader.read(rest)?;
    let login = login.map(|login| reader.decode(login)).transpose()?;
    Ok(Address {
        scheme,
        place,
        login,
    })
}

/// The scheme that `name` stands for, in any case.
pub fn scheme(name: &str) -> Result<Scheme, Reason> {
    match name.to_ascii_lowercase().as_str() {
        "http" => Ok(Scheme::Http),
        "https" => Ok(Scheme::Https),
        "socks5" | "socks5h" => Ok(Scheme::Socks5),
        _ => Err("has an unknown scheme: write http, https, socks5 or socks5h".into()),
    }
}

fn split_scheme(text: &str) -> Result<(Option<Scheme>, &str), Reason> {
    match text.split_once("://") {
        // `user:p://x@host:1` holds a login, no scheme.
        Some((name, rest)) if !name.contains([':', '@']) => Ok((Some(scheme(name)?), rest)),
        _ => Ok((None, text)),
    }
}

/// A login as written.
#[derive(Clone, Copy)]
enum Login<'t> {
    /// Before the `@`: `user:pass` or `user`.
    Joined(&'t str),
    /// Two fields.
    Apart(&'t str, &'t str),
}

/// A reading: where, and with what login.
type Reading<'t> = (Place, Option<Login<'t>>);

struct Reader<'v> {
    default_port: Option<u16>,
    variables: &'v Variables<'v>,
}

impl Reader<'_> {
    fn read<'t>(&self, rest: &'t str) -> Result<Reading<'t>, Reason> {
        if let Some((login, place)) = rest.rsplit_once('@') {
            return self.login_first(rest, login, place);
        }
        if is_bare_ipv6(rest) {
            return Err("has an IPv6 address without brackets: write [address]:port".into());
        }
        match self.fields(rest) {
            Some([host, port, user, password]) => {
                let place = Place::of(host, port, self.variables).map_err(|reason| {
                    match self.reversed(rest) {
                        Some(_) => "is in no known form: write user:pass@host:port".into(),
                        None => reason,
                    }
                })?;
                match self.reversed(rest) {
                    Some(other) if other.certainty >= place.certainty => {
                        Err("can be read in two ways: write user:pass@host:port".into())
                    }
                    _ => Ok((place, Some(Login::Apart(user, password)))),
                }
            }
            None => Ok((Place::parse(rest, self.default_port, self.variables)?, None)),
        }
    }

    /// `login@place`, unless `host:port:user:p@ss` is the more certain reading.
    fn login_first<'t>(
        &self,
        rest: &'t str,
        login: &'t str,
        place: &'t str,
    ) -> Result<Reading<'t>, Reason> {
        let provider = self.fields(rest).and_then(|[host, port, user, password]| {
            let place = Place::of(host, port, self.variables).ok()?;
            Some((place, Some(Login::Apart(user, password))))
        });
        let rival = provider.as_ref().map(|(place, _)| place.certainty);
        let standard = Place::parse(place, self.default_port, self.variables);
        let certainty = match &standard {
            Ok(place) => Some(place.certainty),
            Err(_) => place::host(place::split(place).0).map(|(_, certainty)| certainty),
        };
        match (standard, provider) {
            (Ok(_), Some(_)) if rival > certainty => {
                Err("can be read in two ways: write user:pass@host:port, @ as %40".into())
            }
            (Err(_), Some(provider)) if rival > certainty => Ok(provider),
            (standard, _) => Ok((standard?, Some(Login::Joined(login)))),
        }
    }

    /// The fields of `host:port:user:pass`; the password may hold colons.
    fn fields<'t>(&self, rest: &'t str) -> Option<[&'t str; 4]> {
        let host_end = match rest.starts_with('[') {
            true => rest.find("]:")? + 1,
            false => rest.find(':')?,
        };
        let mut fields = rest[host_end + 1..].splitn(3, ':');
        Some([
            &rest[..host_end],
            fields.next()?,
            fields.next()?,
            fields.next()?,
        ])
    }

    /// The place at the end of the text, if `user:pass:host:port` fits it.
    fn reversed(&self, rest: &str) -> Option<Place> {
        let from = match rest.rfind(":[") {
            Some(bracket) => bracket + 1,
            None => rest.rmatch_indices(':').nth(1)?.0 + 1,
        };
        Place::parse(&rest[from..], None, self.variables).ok()
    }

    fn decode(&self, login: Login<'_>) -> Result<(String, String), Reason> {
        let joined;
        let (user, password) = match login {
            Login::Apart(user, password) => (user, password),
            Login::Joined(text) => match self.variables.whole(text)? {
                // A variable for the whole login holds `user:pass` as it is.
                Some(value) => {
                    joined = value;
                    let (user, password) = joined.split_once(':').unwrap_or((&joined, ""));
                    return Ok((user.to_owned(), password.to_owned()));
                }
                None => text.split_once(':').unwrap_or((text, "")),
            },
        };
        Ok((
            self.variables.fill(user, Escapes::Decode)?,
            self.variables.fill(password, Escapes::Decode)?,
        ))
    }
}

fn is_bare_ipv6(text: &str) -> bool {
    let is = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    let text = text.strip_suffix('/').unwrap_or(text);
    is(text) || text.rsplit_once(':').is_some_and(|(host, _)| is(host))
}

#[cfg(test)]
mod tests;
