//! From flags and settings file to what the parts of the program take.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use anyhow::{Context, Result, anyhow};
use http::HeaderMap;
use toml::Value;
use url::Url;

use super::args::RunArgs;
use super::config::OriginConfig;
use super::values::{Header, Rate};
use crate::fetch::{Coding, Limits, Options, TlsRoots, Tunnel};
use crate::model::Origin;
use crate::schedule::{OriginRules, Rules};

/// The scheduler's rules.
///
/// # Errors
/// A host or a rate of the settings file that cannot be used.
pub(super) fn rules(
    args: &RunArgs,
    origins: &BTreeMap<String, OriginConfig>,
    max_in_flight: u32,
) -> Result<Rules> {
    let own = origins.iter().map(|(host, config)| {
        let rate = config.rate.as_ref().map(rate_of).transpose();
        let rate = rate.map_err(|error| anyhow!("[origins.\"{host}\"] rate: {error}"))?;
        let rules = OriginRules {
            rate: rate.map(|rate| rate.0),
            burst: config.burst.map(|burst| burst.max(1)),
            per_origin: config.per_origin.map(|most| most.max(1)),
        };
        Ok((origin_of(host)?.to_string(), rules))
    });
    Ok(Rules {
        rate: args.rate.0,
        burst: args.burst,
        per_origin: args.per_origin,
        max_in_flight,
        retries: args.retries,
        max_redirects: args.max_redirects,
        max_pause: args.max_pause.0,
        origin_patience: args.origin_patience.0,
        no_exit_timeout: args.no_exit_timeout.0,
        accept: args.accept.clone(),
        origins: own.collect::<Result<_>>()?,
        // The standard library's hasher is seeded by the system, anew in each process.
        seed: args.seed.unwrap_or_else(|| RandomState::new().hash_one(0)),
    })
}

/// How attempts are made.
///
/// # Errors
/// A header, a host or a certificate file that cannot be used.
pub(super) fn fetch(args: &RunArgs, origins: &BTreeMap<String, OriginConfig>) -> Result<Options> {
    let per_origin = origins
        .iter()
        .filter(|(_, config)| !config.headers.is_empty())
        .map(|(host, config)| Ok((origin_of(host)?.to_string(), headers_of(host, config)?)));
    Ok(Options {
        limits: Limits {
            connect: args.connect_timeout.0,
            first_byte: args.first_byte_timeout.0,
            stall: args.stall_timeout.0,
            total: args.timeout.0,
            max_body: args.max_body.map(|size| size.0),
        },
        tunnel_http: if args.tunnel {
            Tunnel::Always
        } else {
            Tunnel::Https
        },
        coding: if args.compressed {
            Coding::Compressed
        } else {
            Coding::Identity
        },
        tls: if args.insecure {
            TlsRoots::insecure()
        } else {
            TlsRoots::load(args.cacert.as_deref())?
        },
        headers: headers(args.header.iter().cloned()),
        user_agent: args.user_agent.clone(),
        per_origin_headers: per_origin.collect::<Result<HashMap<_, _>>>()?,
    })
}

fn origin_of(host: &str) -> Result<Origin> {
    let url = Url::parse(&format!("http://{host}/"));
    let url = url.ok().filter(|url| url.path() == "/" && url.has_host());
    let url = url.with_context(|| format!("[origins.\"{host}\"]: write a host, or host:port"))?;
    Ok(Origin::of(&url))
}

fn rate_of(value: &Value) -> Result<Rate, String> {
    match value {
        Value::String(text) => text.parse(),
        Value::Integer(number) => number.to_string().parse(),
        Value::Float(number) => number.to_string().parse(),
        _ => Err("write a number or text, such as 0.2 or \"30/m\"".to_owned()),
    }
}

fn headers_of(host: &str, config: &OriginConfig) -> Result<HeaderMap> {
    let parsed = config.headers.iter().map(|(name, value)| {
        let header: Result<Header, String> = format!("{name}: {value}").parse();
        header.map_err(|error| anyhow!("[origins.\"{host}\"] headers: {error}"))
    });
    Ok(headers(parsed.collect::<Result<Vec<_>>>()?))
}

/// The later of two values of one name wins.
fn headers(list: impl IntoIterator<Item = Header>) -> HeaderMap {
    list.into_iter()
        .map(|Header(name, value)| (name, value))
        .fold(HeaderMap::new(), |mut map, (name, value)| {
            map.insert(name, value);
            map
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_the_settings_file_are_written_as_origins() {
        let origin = |host: &str| origin_of(host).map(|origin| origin.to_string());
        assert_eq!(origin("A.test").unwrap(), "a.test");
        assert_eq!(origin("a.test:80").unwrap(), "a.test");
        assert_eq!(origin("a.test:8080").unwrap(), "a.test:8080");
        for host in ["", "a.test/x", "http://a.test", "a b"] {
            assert!(origin(host).is_err(), "{host}");
        }
    }

    #[test]
    fn rates_of_the_settings_file_are_numbers_or_text() {
        assert_eq!(rate_of(&Value::Integer(5)).unwrap().0, Some(5.0));
        assert_eq!(rate_of(&Value::Float(0.2)).unwrap().0, Some(0.2));
        assert_eq!(rate_of(&Value::String("30/m".into())).unwrap().0, Some(0.5));
        assert!(rate_of(&Value::Integer(-1)).is_err());
        assert!(rate_of(&Value::Boolean(true)).is_err());
    }

    #[test]
    fn the_later_header_of_a_name_wins() {
        let list = ["A: 1", "B: 2", "a: 3"].map(|text| text.parse::<Header>().unwrap());
        let map = headers(list);
        assert_eq!(map.len(), 2);
        assert_eq!(map["a"], "3");
    }
}
