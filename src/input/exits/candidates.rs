//! Fields to exits: what the fields of a row mean.
//!
//! Owns the attribute rules, `{session}`, and which logins a protocol can carry; leaves an
//! address in one text to `address`. Invariant: what is refused here could not have
//! worked, or would have meant something else than was written.

use std::sync::Arc;

use super::super::Reason;
use super::address::{self, Address};
use super::fields::{Field, Fields};
use super::names::Candidate;
use super::place::Place;
use super::variables::{Escapes, Variables};
use crate::model::{Exit, Login, Scheme, Secret};

/// Longest attribute value, in characters.
const MAX_VALUE: usize = 64;
/// Most exits that one row may make.
const MAX_SESSIONS: u32 = 100_000;
/// Stands for the number of the session in a username.
const SESSION: &str = "{session}";

/// The exits of a row: one, or one per session.
///
/// # Errors
/// What is wrong and what would be right, without the row's content.
pub fn of(line: u64, fields: &Fields, variables: &Variables<'_>) -> Result<Vec<Candidate>, Reason> {
    let row = Meaning { fields, variables };
    let address = row.address()?;
    let sessions = row.sessions(&address)?;
    let name = row.name()?;
    let exit = Exit {
        id: Arc::from(""),
        scheme: address.scheme,
        host: address.place.host.as_str().into(),
        port: address.place.port,
        login: None,
        tier: row.attribute(Field::Tier)?.map(Arc::from),
        region: row.attribute(Field::Region)?.map(Arc::from),
        group: row.attribute(Field::Group)?.map(Arc::from),
        cap: row.count(Field::Cap, u32::MAX)?,
        line,
    };
    let one = |session: Option<u32>| {
        let login = address.login.as_ref();
        let login = login.map(|login| carried(login, session, exit.scheme));
        let name = match (&name, session) {
            (Some(name), Some(n)) => Some(format!("{name}-{n}").into()),
            (name, _) => name.as_deref().map(Box::from),
        };
        Ok(Candidate {
            exit: Exit {
                login: login.transpose()?,
                ..exit.clone()
            },
            name,
        })
    };
    match sessions {
        None => Ok(vec![one(None)?]),
        Some(sessions) => (1..=sessions).map(|n| one(Some(n))).collect(),
    }
}

struct Meaning<'a> {
    fields: &'a Fields,
    variables: &'a Variables<'a>,
}

impl Meaning<'_> {
    /// The address, written in one field or in several.
    fn address(&self) -> Result<Address, Reason> {
        let text = self.fields.get(Field::Address);
        let host = self.fields.get(Field::Host);
        let mut address = match (text, host) {
            (Some(text), None) => self.whole_address(text)?,
            (None, Some(host)) => self.address_in_parts(host)?,
            (Some(_), Some(_)) => return Err("gives both an address and a host".into()),
            (None, None) => return Err("has no address".into()),
        };
        if let Some(login) = self.login_fields()? {
            if address.login.is_some() {
                return Err("gives a login in the address and beside it".into());
            }
            address.login = Some(login);
        }
        Ok(address)
    }

    fn whole_address(&self, text: &str) -> Result<Address, Reason> {
        let beside = [Field::Scheme, Field::Port];
        if beside.iter().any(|&field| self.fields.get(field).is_some()) {
            return Err("gives scheme or port beside a whole address".into());
        }
        if text.contains(char::is_whitespace) {
            return Err("has a blank inside the address: write it as %20".into());
        }
        address::parse(text, self.variables)
    }

    fn address_in_parts(&self, host: &str) -> Result<Address, Reason> {
        let listed = self.fields.get(Field::Scheme);
        let scheme = listed.map_or(Ok(Scheme::Http), address::scheme)?;
        // In a field of its own an IPv6 address needs no brackets.
        let host = match host.contains(':') && !host.starts_with('[') {
            true => format!("[{host}]"),
            false => host.to_owned(),
        };
        let place = match (self.fields.get(Field::Port), listed) {
            (Some(port), _) => Place::of(&host, port, self.variables)?,
            (None, Some(_)) => Place::with_port(&host, scheme.default_port(), self.variables)?,
            (None, None) => return Err("has no port".into()),
        };
        Ok(Address {
            scheme,
            place,
            login: None,
        })
    }

    /// The login in fields of its own. Nothing has to be escaped there, so a `%41` is part
    /// of it as it stands.
    fn login_fields(&self) -> Result<Option<(String, String)>, Reason> {
        let user = self.fields.get(Field::Username);
        let password = self.fields.get(Field::Password);
        if user.is_none() && password.is_none() {
            return Ok(None);
        }
        let fill = |text: Option<&str>| {
            let text = text.unwrap_or_default();
            self.variables.fill(text, Escapes::Keep)
        };
        Ok(Some((fill(user)?, fill(password)?)))
    }

    /// A free-text attribute: shown in tables, so short and without blanks.
    fn attribute(&self, field: Field) -> Result<Option<String>, Reason> {
        let Some(text) = self.fields.get(field) else {
            return Ok(None);
        };
        let value = self.variables.fill(text, Escapes::Keep)?;
        let odd = |c: char| c.is_whitespace() || c.is_control();
        if value.chars().count() > MAX_VALUE || value.contains(odd) {
            let field = field.as_str();
            return Err(
                format!("has a {field} with blanks or longer than {MAX_VALUE} characters").into(),
            );
        }
        Ok(Some(value))
    }

    fn name(&self) -> Result<Option<String>, Reason> {
        match self.attribute(Field::Name)? {
            Some(name) if name.contains('~') => {
                Err("has a name with ~, which marks ids that exitfetch makes".into())
            }
            name => Ok(name),
        }
    }

    /// A number from 1 to `most`.
    fn count(&self, field: Field, most: u32) -> Result<Option<u32>, Reason> {
        let Some(text) = self.fields.get(field) else {
            return Ok(None);
        };
        let text = self.variables.fill(text, Escapes::Keep)?;
        match text.parse() {
            Ok(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => {
                let field = field.as_str();
                Err(format!("has a {field} that is not a number from 1 to {most}").into())
            }
        }
    }

    /// How many sessions the row stands for; `None`: it is a plain exit.
    fn sessions(&self, address: &Address) -> Result<Option<u32>, Reason> {
        let sessions = self.count(Field::Sessions, MAX_SESSIONS)?;
        let login = address.login.as_ref();
        let marked = |part: &str| part.contains(SESSION);
        if login.is_some_and(|(_, password)| marked(password)) {
            return Err("has {session} in the password: only a username makes an exit".into());
        }
        match (login.is_some_and(|(user, _)| marked(user)), sessions) {
            (true, None) => Err("has {session} but does not say how many: write sessions=N".into()),
            (false, Some(_)) => Err("has sessions but no {session} in the username".into()),
            (_, sessions) => Ok(sessions),
        }
    }
}

/// The login of one exit, if its protocol can carry it.
fn carried(
    (user, password): &(String, String),
    session: Option<u32>,
    scheme: Scheme,
) -> Result<Login, Reason> {
    let user = match session {
        Some(n) => user.replace(SESSION, &n.to_string()),
        None => user.clone(),
    };
    if user.is_empty() && password.is_empty() {
        return Err("has an empty login".into());
    }
    if user.contains(char::is_control) || password.contains(char::is_control) {
        return Err("has a control character in the login".into());
    }
    let fits = |field: &str| (1..=255).contains(&field.len());
    match scheme {
        // RFC 7617 §2.
        Scheme::Http | Scheme::Https if user.contains(':') => {
            Err("has a colon in the username, which HTTP proxies cannot be told".into())
        }
        // RFC 1929 §2: both fields are 1 to 255 bytes.
        Scheme::Socks5 if !fits(&user) || !fits(password) => {
            Err("has a username or password that is not 1 to 255 bytes, as SOCKS5 wants".into())
        }
        Scheme::Http | Scheme::Https | Scheme::Socks5 => Ok(Login {
            username: Secret::new(user),
            password: Secret::new(password.as_str()),
        }),
    }
}
