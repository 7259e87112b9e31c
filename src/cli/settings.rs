//! From flags and settings file to what the parts of the program take.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use anyhow::Result;
use http::HeaderMap;

use super::args::RunArgs;
use super::config::{OriginConfig, Site};
use super::connection::ConnectionArgs;
use super::values::Header;
use crate::fetch::{Coding, Limits, Options, TlsRoots, Tunnel};
use crate::schedule::{OriginRules, Rules};

/// The scheduler's rules.
pub(super) fn rules(
    args: &RunArgs,
    origins: &BTreeMap<Site, OriginConfig>,
    max_in_flight: u32,
) -> Rules {
    let own = origins.iter().map(|(site, config)| {
        let rules = OriginRules {
            rate: config.rate.map(|rate| rate.0),
            burst: config.burst,
            per_origin: config.per_origin,
        };
        (site.0.to_string(), rules)
    });
    Rules {
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
        origins: own.collect(),
        // The standard library's hasher is seeded by the system, anew in each process.
        seed: args.seed.unwrap_or_else(|| RandomState::new().hash_one(0)),
    }
}

/// How attempts are made.
///
/// # Errors
/// A certificate file that cannot be used.
pub(super) fn fetch(args: &RunArgs, origins: &BTreeMap<Site, OriginConfig>) -> Result<Options> {
    let mut options = connection(&args.connection, origins)?;
    options.limits.max_body = args.max_body.map(|size| size.0);
    if args.compressed {
        options.coding = Coding::Compressed;
    }
    options.tapes = args.archive().is_some();
    Ok(options)
}

/// The part of it that `run` and `probe` share: bodies of any size, as they are, no archive.
///
/// # Errors
/// A certificate file that cannot be used.
pub(super) fn connection(
    args: &ConnectionArgs,
    origins: &BTreeMap<Site, OriginConfig>,
) -> Result<Options> {
    let per_origin = origins
        .iter()
        .filter(|(_, config)| !config.headers.is_empty())
        .map(|(site, config)| (site.0.to_string(), config.headers.clone()));
    Ok(Options {
        limits: Limits {
            connect: args.connect_timeout.0,
            first_byte: args.first_byte_timeout.0,
            stall: args.stall_timeout.0,
            total: args.timeout.0,
            max_body: None,
        },
        tunnel_http: if args.tunnel {
            Tunnel::Always
        } else {
            Tunnel::Https
        },
        coding: Coding::Identity,
        tls: if args.insecure {
            TlsRoots::insecure()
        } else {
            TlsRoots::load(args.cacert.as_deref())?
        },
        headers: headers(args.header.iter().cloned()),
        user_agent: args.user_agent.clone(),
        per_origin_headers: per_origin.collect(),
        tapes: false,
    })
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
    fn the_later_header_of_a_name_wins() {
        let list = ["A: 1", "B: 2", "a: 3"].map(|text| text.parse::<Header>().unwrap());
        let map = headers(list);
        assert_eq!(map.len(), 2);
        assert_eq!(map["a"], "3");
    }
}
